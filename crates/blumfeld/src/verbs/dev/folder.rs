//! A folder that is gone when the process ends in order.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::VerbError;

/// Names that are tried.
const TRIES: u32 = 100;

/// See the module.
#[derive(Debug)]
pub(super) struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// A new folder below the system's folder for what is temporary.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(super) fn make() -> Result<Self, VerbError> {
        let name =
            |number| std::env::temp_dir().join(format!("blumfeld-dev-{}-{number}", std::process::id()));
        let mut path = name(0);
        for number in 1..=TRIES {
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => path = name(number),
                Err(error) => return Err(VerbError::file(&path, error)),
            }
        }
        Err(VerbError::file(&path, ErrorKind::AlreadyExists.into()))
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(path = %self.0.display(), %error, "the temporary folder is left behind");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_differ_and_are_gone_afterwards() {
        let (one, other) = (TemporaryFolder::make().unwrap(), TemporaryFolder::make().unwrap());
        assert_ne!(one.path(), other.path());
        std::fs::write(one.path().join("file"), "x").unwrap();
        let path = one.path().to_owned();
        drop(one);
        assert!(!path.exists() && other.path().exists());
    }
}
