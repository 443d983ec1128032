//! Every story under `tests/scenarios/groups` is told again, and must go as it is written.
//!
//! `UPDATE_SCENARIOS=1` writes what happens into the files instead, to be looked at as a diff.

use std::fs;
use std::path::{Path, PathBuf};

use super::story::Story;

const INDENT: &str = "    ";

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/scenarios/groups");
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
    for file in files {
        let written = fs::read_to_string(&file).unwrap();
        let told = tell(&written);
        if is_update {
            fs::write(&file, told).unwrap();
            continue;
        }
        for (number, (written, now)) in (1..).zip(written.lines().zip(told.lines())) {
            assert_eq!(written, now, "{}, line {number}", file.display());
        }
        assert_eq!(written, told, "{}", file.display());
    }
}
