//! Pages that name tests name tests that exist: a table of what is tested is worth nothing once its names rot.
//!
//! A name is what stands in backticks and looks like a test (words joined by underscores, at least four, and no metric) or
//! like a story (`….txt` under `tests/scenarios`).

use std::collections::BTreeSet;

use super::{Finding, SourceFile};

/// The pages.
const PAGES: [&str; 2] = ["docs/regressions.md", "docs/durability.md"];
/// Where stories lie.
const STORIES: &str = "tests/scenarios/";
/// What names of metrics begin with.
const METRICS: [&str; 2] = ["blumfeld_", "kafka_"];
/// A name with fewer words is not taken for that of a test.
const FEWEST_WORDS: usize = 4;

/// Names on the pages that no test or story has.
pub(crate) fn check(files: &[SourceFile]) -> Vec<Finding> {
    let pages: Vec<_> = files.iter().filter(|file| PAGES.contains(&file.path.as_str())).collect();
    if pages.is_empty() {
        return Vec::new();
    }
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for file in files {
        if file.path.ends_with(".rs") {
            known.extend(functions(&file.text));
        } else if file.path.starts_with(STORIES) {
            known.extend(file.path.rsplit('/').next());
        }
    }
    let mut findings = Vec::new();
    for page in pages {
        for (at, line) in page.text.lines().enumerate() {
            for name in line.split('`').skip(1).step_by(2).filter(|name| is_test(name) || is_story(name)) {
                if !known.contains(name) {
                    let message = format!("there is no test or story {name}");
                    findings.push(Finding { file: page.path.clone(), line: at + 1, message });
                }
            }
        }
    }
    findings
}

fn functions(text: &str) -> impl Iterator<Item = &str> {
    let declared = text.lines().map(str::trim_start).map(|line| line.strip_prefix("async ").unwrap_or(line));
    declared.filter_map(|line| line.strip_prefix("fn ")?.split('(').next())
}

fn is_test(name: &str) -> bool {
    let is_word =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let is_metric = METRICS.iter().any(|it| name.starts_with(it));
    !is_metric && name.split('_').count() >= FEWEST_WORDS && name.split('_').all(is_word)
}

fn is_story(name: &str) -> bool {
    name.strip_suffix(".txt").is_some_and(|stem| !stem.is_empty() && !stem.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn names_that_no_test_and_no_story_has_are_found() {
        let page = "`a_test_that_is_there` `another_that_is_there` `story.txt` `min_isr` `tests/scenarios/x.txt`\n`a_test_that_is_gone`, `gone.txt`";
        let files = [
            file("docs/regressions.md", page),
            file("crates/a/src/b.rs", "    fn a_test_that_is_there() {\n"),
            file("crates/a/src/c.rs", "async fn another_that_is_there() {\n"),
            file("tests/scenarios/replica/story.txt", ""),
        ];
        let found: Vec<_> = check(&files).into_iter().map(|it| (it.line, it.message)).collect();
        let expected =
            ["a_test_that_is_gone", "gone.txt"].map(|it| (2, format!("there is no test or story {it}")));
        assert_eq!(found, expected);
    }

    #[test]
    fn other_pages_may_name_what_they_like() {
        assert!(check(&[file("README.md", "`a_test_that_is_gone`")]).is_empty());
    }
}
