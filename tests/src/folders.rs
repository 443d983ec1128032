//! Folders for brokers and what belongs to them: gone at the end, unless somebody wants to look into them.

use anyhow::{Context, Result};
use tempfile::TempDir;

/// A new folder whose name begins with `prefix`. With `$BLUMFELD_TEST_KEEP` set it is still there afterwards, logs and
/// all.
///
/// # Errors
/// When it cannot be made.
pub fn temporary(prefix: &str) -> Result<TempDir> {
    let keep = std::env::var_os("BLUMFELD_TEST_KEEP").is_some_and(|value| !value.is_empty());
    let folder = tempfile::Builder::new().prefix(prefix).disable_cleanup(keep).tempdir();
    folder.context("no temporary folder")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_new_and_gone_afterwards() {
        let (one, other) = (temporary("a-").unwrap(), temporary("a-").unwrap());
        assert_ne!(one.path(), other.path());
        let path = one.path().to_owned();
        drop(one);
        assert!(!path.exists() && other.path().is_dir());
    }
}
