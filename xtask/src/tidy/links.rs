//! Links in Markdown: a relative link must lead to a file or folder that exists.
//!
//! Links to other sites and to anchors within the same page are not followed; code blocks are skipped.

use std::path::Path;

use super::{Finding, SourceFile};

/// Checks one Markdown file below `root`.
pub(super) fn check(root: &Path, file: &SourceFile) -> Vec<Finding> {
    let folder = root.join(&file.path);
    let folder = folder.parent().unwrap_or(root);
    targets(&file.text)
        .into_iter()
        .filter(|(_, target)| !folder.join(target).exists())
        .map(|(line, target)| Finding {
            file: file.path.clone(),
            line,
            message: format!("link to {target}, which does not exist"),
        })
        .collect()
}

/// Line and path of every relative link.
fn targets(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_code_block = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code_block = !in_code_block;
        }
        if in_code_block {
            continue;
        }
        for rest in line.split("](").skip(1) {
            let Some((target, _)) = rest.split_once(')') else { continue };
            let path = target.split(['#', ' ']).next().unwrap_or(target);
            if !path.is_empty() && !path.contains("://") && !path.starts_with("mailto:") {
                found.push((index + 1, path));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_into_the_void_is_found_with_its_line() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let file = SourceFile {
            path: "src/page.md".to_owned(),
            text: "See [one](main.rs), [two](../Cargo.toml#x)\nand [three](missing.md).".to_owned(),
        };
        let findings = check(root, &file);
        assert_eq!(findings.len(), 1);
        assert_eq!((findings[0].line, findings[0].message.contains("missing.md")), (2, true));
    }

    #[test]
    fn sites_anchors_and_code_are_not_followed() {
        assert_eq!(targets("[a](https://example.org/x) [b](#part)\n```\n[c](d.md)\n```"), []);
    }
}
