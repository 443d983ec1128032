//! `cargo xtask tidy`: the house rules that the compiler does not know.
//!
//! Each rule takes the text of one file (or manifest) and returns findings; this module walks the tree and
//! prints them. A finding names file and line, so that an editor can jump there.

mod arrows;
mod links;
mod named_tests;
mod sources;

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// One broken rule at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The file, relative to the workspace.
    pub(crate) file: String,
    /// The line, counted from 1.
    pub(crate) line: usize,
    /// What is wrong.
    pub(crate) message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

/// A text file of the workspace.
pub(crate) struct SourceFile {
    /// The path relative to the workspace, with forward slashes.
    pub(crate) path: String,
    /// The whole text.
    pub(crate) text: String,
}

/// Checks the workspace at `root`.
///
/// # Errors
/// When a rule is broken, or a file cannot be read.
pub(crate) fn run(root: &Path) -> Result<()> {
    let files = text_files(root)?;
    let findings = check(root, &files);
    for finding in &findings {
        eprintln!("{finding}");
    }
    if !findings.is_empty() {
        bail!("tidy: {} finding(s)", findings.len());
    }
    let rust_lines = sources::line_counts(&files);
    let median = rust_lines.get(rust_lines.len() / 2).copied().unwrap_or(0);
    let longest = rust_lines.last().copied().unwrap_or(0);
    println!("tidy: {} Rust files, median {median} lines, longest {longest}: no findings", rust_lines.len());
    Ok(())
}

fn check(root: &Path, files: &[SourceFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        if file.path.ends_with("Cargo.toml") {
            findings.extend(arrows::check(file));
        }
        if file.path.ends_with(".md") {
            findings.extend(links::check(root, file));
        }
        findings.extend(sources::check(file));
    }
    findings.extend(named_tests::check(files));
    findings
}

/// Folders that hold nothing of ours.
const SKIPPED_FOLDERS: [&str; 6] = [".git", "target", "node_modules", "corpus", "artifacts", "blumfeld-data"];
/// Extensions of the files that are read.
const EXTENSIONS: [&str; 9] = ["rs", "toml", "md", "py", "go", "js", "java", "sh", "txt"];

fn text_files(root: &Path) -> Result<Vec<SourceFile>> {
    let mut folders = vec![root.to_path_buf()];
    let mut paths = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().with_context(|| format!("cannot list {}", folder.display()))? {
            let entry = entry?;
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if entry.file_type()?.is_dir() {
                if !SKIPPED_FOLDERS.contains(&name.as_ref()) {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|e| EXTENSIONS.iter().any(|known| e == *known)) {
                paths.push(path);
            }
        }
    }
    paths.sort();
    paths.iter().map(|path| read(root, path)).collect()
}

fn read(root: &Path, path: &PathBuf) -> Result<SourceFile> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let relative = path.strip_prefix(root).unwrap_or(path);
    Ok(SourceFile { path: relative.to_string_lossy().replace('\\', "/"), text })
}
