//! Rules for source files: size, placeholders, module comments, and what pure crates may touch.
//!
//! The words looked for are put together here from halves, so that this file does not find itself.

use super::{Finding, SourceFile};

/// The longest file that is allowed, in lines.
const MAX_LINES: usize = 800;

/// What must not be left behind in code.
const PLACEHOLDERS: [&str; 7] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X:"),
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
    concat!("db", "g!"),
    concat!("#[ign", "ore"),
];

/// Crates that decide and never touch the world.
const PURE: [&str; 2] = ["crates/wire/src/", "crates/kernel/src/"];
/// What touches the world.
const WORLD: [&str; 8] = [
    "std::fs",
    "std::net",
    "std::thread",
    "std::process",
    "Instant::now",
    "SystemTime::now",
    "std::env::",
    "fastrand::",
];

/// Checks one file of any language.
pub(super) fn check(file: &SourceFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    if file.path.ends_with(".md") || file.path.ends_with(".txt") {
        return findings;
    }
    let mut add = |line: usize, message: String| {
        findings.push(Finding { file: file.path.clone(), line, message });
    };
    for (index, line) in file.text.lines().enumerate() {
        if let Some(word) = PLACEHOLDERS.iter().find(|word| contains_word(line, word)) {
            add(index + 1, format!("placeholder {word}"));
        }
    }
    if !file.path.ends_with(".rs") {
        return findings;
    }
    let lines = file.text.lines().count();
    if lines > MAX_LINES {
        add(lines, format!("{lines} lines; {MAX_LINES} are allowed"));
    }
    let first = file.text.lines().find(|line| !line.trim().is_empty());
    if !is_test_file(&file.path) && !first.is_some_and(|line| line.starts_with("//!")) {
        add(1, "no module comment at the top".to_owned());
    }
    if PURE.iter().any(|folder| file.path.starts_with(folder)) && !is_test_file(&file.path) {
        for (index, line) in code_lines(&file.text) {
            if let Some(word) = WORLD.iter().find(|word| line.contains(**word)) {
                add(index + 1, format!("{word} in a crate without IO, clock and randomness"));
            }
        }
    }
    findings
}

/// Lines of all Rust files, sorted.
pub(super) fn line_counts(files: &[SourceFile]) -> Vec<usize> {
    let mut counts: Vec<usize> = files
        .iter()
        .filter(|file| file.path.ends_with(".rs"))
        .map(|file| file.text.lines().count())
        .collect();
    counts.sort_unstable();
    counts
}

/// Whether `word` stands in `line` and is not the end of a longer word.
fn contains_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        let after = line.get(at + word.len()..).and_then(|text| text.chars().next());
        let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        !is_word(before) && (word.ends_with(['!', ':']) || word.starts_with('#') || !is_word(after))
    })
}

/// Lines before the test module, without comments.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .take_while(|(_, line)| line.trim() != "#[cfg(test)]")
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.ends_with("_tests.rs") || path.contains("/tests/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, text: &str) -> Vec<String> {
        check(&SourceFile { path: path.to_owned(), text: text.to_owned() })
            .into_iter()
            .map(|finding| finding.message)
            .collect()
    }

    #[test]
    fn each_placeholder_is_found_and_words_around_it_are_not() {
        for word in PLACEHOLDERS {
            assert_eq!(messages("a/b.py", &format!("x {word} y")).len(), 1, "{word}");
        }
        let longer = concat!("MASTO", "DON, auto", "do");
        assert_eq!(messages("a/b.rs", &format!("//! {longer}")), [""; 0]);
    }

    #[test]
    fn a_file_over_the_limit_is_found() {
        let at_limit = "//! x\n".repeat(MAX_LINES);
        assert_eq!(messages("a.rs", &at_limit), [""; 0]);
        assert_eq!(messages("a.rs", &format!("{at_limit}//! x\n")), ["801 lines; 800 are allowed"]);
    }

    #[test]
    fn a_rust_file_needs_a_module_comment_and_others_do_not() {
        assert_eq!(messages("a.rs", "\nfn main() {}"), ["no module comment at the top"]);
        assert_eq!(messages("a.py", "print()"), [""; 0]);
        assert_eq!(messages("a/tests.rs", "use super::*;"), [""; 0]);
    }

    #[test]
    fn clocks_and_files_are_found_in_pure_crates_outside_tests() {
        let text = "//! x\nlet now = Instant::now();\n#[cfg(test)]\nmod tests { use std::fs; }";
        assert_eq!(messages("crates/kernel/src/a.rs", text).len(), 1);
        assert_eq!(messages("crates/storage/src/a.rs", text), [""; 0]);
        assert_eq!(messages("crates/kernel/src/a/tests.rs", text), [""; 0]);
    }
}
