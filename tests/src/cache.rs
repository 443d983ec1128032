//! Where the tools and clients lie that `cargo xtask setup` installed.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// The cache folder: `$BLUMFELD_TEST_CACHE`, or `blumfeld-tests` in the user's cache folder.
///
/// # Errors
/// When no variable names a place, or nothing was installed there.
pub fn folder() -> Result<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = named("BLUMFELD_TEST_CACHE")
        .or_else(|| named("XDG_CACHE_HOME").map(|folder| folder.join("blumfeld-tests")))
        .or_else(|| named("HOME").map(|folder| folder.join(".cache/blumfeld-tests")))
        .context("neither BLUMFELD_TEST_CACHE nor HOME is set")?;
    ensure!(folder.is_dir(), "{} is missing: run `cargo xtask setup` once", folder.display());
    Ok(folder)
}

/// The workspace's folder.
pub fn workspace() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// The broker under test: `$BLUMFELD_BINARY`, or the release binary of the workspace.
///
/// # Errors
/// When there is no such file.
pub fn blumfeld_binary() -> Result<PathBuf> {
    binary("BLUMFELD_BINARY", "release/blumfeld", "cargo build --release")
}

/// A broker under test in which faults can be planted: `$BLUMFELD_PLANTED_BINARY`, or the one that `cargo xtask test`
/// has built.
///
/// # Errors
/// When there is no such file.
pub fn planted_binary() -> Result<PathBuf> {
    let build = "cargo build --features planted-faults --target-dir target/planted";
    binary("BLUMFELD_PLANTED_BINARY", "planted/debug/blumfeld", build)
}

fn binary(variable: &str, place: &str, build: &str) -> Result<PathBuf> {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace().join("target"), PathBuf::from);
    let binary = std::env::var_os(variable).map_or_else(|| target.join(place), PathBuf::from);
    ensure!(binary.is_file(), "{} is missing: run `{build}` once", binary.display());
    Ok(binary)
}
