//! Every story under `tests/scenarios/controller` is told again, and must go as it is written.
//!
//! `UPDATE_SCENARIOS=1` writes what happens into the files instead, to be looked at as a diff.

use std::fs;
use std::path::{Path, PathBuf};

use super::story::Story;

const INDENT: &str = "    ";

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/scenarios/controller");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// The story as it goes: its own lines, each with what follows from it.
fn tell(text: &str) -> String {
    let mut story = Story::default();
    let mut told = String::new();
    for line in text.lines().filter(|line| !line.starts_with(INDENT)) {
        told += line;
        told.push('\n');
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line == "---" {
            story = Story::default();
            continue;
        }
        for consequence in story.line(line) {
            told += &format!("{INDENT}{consequence}\n");
        }
    }
    told
}

#[test]
fn every_story_goes_as_it_is_written() {
    let is_update = std::env::var_os("UPDATE_SCENARIOS").is_some();
    let files = files();
    assert!(!files.is_empty(), "there are no stories");
    let mut different = Vec::new();
    for file in files {
        let written = fs::read_to_string(&file).unwrap();
        let told = tell(&written);
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
