//! Stories under `tests/scenarios`: each file is told again, and must go as it is written.
//!
//! `UPDATE_SCENARIOS=1` writes what happens into the files instead, to be looked at as a diff.

use std::fs;
use std::path::{Path, PathBuf};

/// Before each consequence of a line.
const INDENT: &str = "    ";

/// Tells every story in a folder again. One begins with `begin`, and anew after a line of dashes; `line` does what a line
/// says and returns what follows from it.
///
/// # Panics
/// When there is no story, or when one goes otherwise than written.
pub(crate) fn go_as_written<S>(
    folder: &str,
    begin: impl Fn() -> S,
    line: impl Fn(&mut S, &str) -> Vec<String>,
) {
    let is_update = std::env::var_os("UPDATE_SCENARIOS").is_some();
    let files = files(folder);
    assert!(!files.is_empty(), "there are no stories");
    let mut different = Vec::new();
    for file in files {
        let written = fs::read_to_string(&file).unwrap();
        let told = tell(&written, &begin, &line);
        if told == written {
            continue;
        }
        if is_update {
            fs::write(&file, told).unwrap();
        } else {
            different.push(format!("{}: {}", file.display(), first_difference(&written, &told)));
        }
    }
    assert!(different.is_empty(), "stories go otherwise than written:\n{}", different.join("\n"));
}

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/scenarios").join(folder);
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// The story as it goes: its own lines, each with what follows from it.
fn tell<S>(text: &str, begin: impl Fn() -> S, act: impl Fn(&mut S, &str) -> Vec<String>) -> String {
    let mut story = begin();
    let mut told = String::new();
    for line in text.lines().filter(|line| !line.starts_with(INDENT)) {
        told += line;
        told.push('\n');
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line == "---" {
            story = begin();
            continue;
        }
        for consequence in act(&mut story, line) {
            told += &format!("{INDENT}{consequence}\n");
        }
    }
    told
}

fn first_difference(written: &str, told: &str) -> String {
    let (mut written, mut told) = (written.lines(), told.lines());
    for number in 1.. {
        match (written.next(), told.next()) {
            (None, None) => break,
            (a, b) if a == b => {}
            (a, b) => {
                return format!(
                    "line {number}\n  written: {}\n  now:     {}",
                    a.unwrap_or("the end"),
                    b.unwrap_or("the end")
                );
            }
        }
    }
    "the last line".to_owned()
}
