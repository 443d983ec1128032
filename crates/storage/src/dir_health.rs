//! Whether a log directory can be used. The first IO error takes it offline until the broker is started again
//! (KIP-112): every later operation fails at once, so no offset is used twice after a partial write
//! (KAFKA-10778) and no failed sync is repeated as if the data were safe.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A log directory failed, now or before. Answered as KAFKA_STORAGE_ERROR.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("log directory {} is offline: {cause}", dir.display())]
pub struct StorageError {
    /// The log directory.
    pub dir: Arc<Path>,
    /// The operation that failed first, and how.
    pub cause: Arc<str>,
}

/// Told once when a directory goes offline. May be called under the lock of a log: it notes the fact and wakes
/// somebody, and calls no log.
pub type OnOffline = Box<dyn Fn(&StorageError) + Send + Sync>;

/// The state of one log directory, shared by all its logs.
pub struct DirHealth {
    dir: Arc<Path>,
    failure: OnceLock<StorageError>,
    on_offline: OnOffline,
}

impl fmt::Debug for DirHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirHealth").field("dir", &self.dir).field("failure", &self.failure.get()).finish()
    }
}

impl DirHealth {
    /// A directory that is online.
    pub fn new(dir: impl Into<PathBuf>, on_offline: OnOffline) -> Arc<Self> {
        Arc::new(Self { dir: Arc::from(dir.into()), failure: OnceLock::new(), on_offline })
    }

    /// The directory.
    pub fn dir(&self) -> &Arc<Path> {
        &self.dir
    }

    /// Whether it can be used.
    pub fn is_online(&self) -> bool {
        self.failure.get().is_none()
    }

    /// Fails if the directory is offline.
    pub fn check(&self) -> Result<(), StorageError> {
        match self.failure.get() {
            Some(failure) => Err(failure.clone()),
            None => Ok(()),
        }
    }

    /// Takes the directory offline because `operation` (such as "append to t-0") failed with `error`. If it is
    /// offline already, the first failure stays and is returned.
    pub fn fail(&self, operation: &str, error: &io::Error) -> StorageError {
        let failure =
            StorageError { dir: self.dir.clone(), cause: Arc::from(format!("{operation}: {error}")) };
        if self.failure.set(failure.clone()).is_ok() {
            tracing::error!(
                dir = %self.dir.display(),
                operation,
                %error,
                "log directory goes offline; its partitions are unavailable here until the broker is restarted"
            );
            (self.on_offline)(&failure);
            return failure;
        }
        self.failure.get().cloned().unwrap_or(failure)
    }

    /// Passes a result on; an error takes the directory offline.
    pub fn guard<T>(&self, operation: &str, result: io::Result<T>) -> Result<T, StorageError> {
        result.map_err(|error| self.fail(operation, &error))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn the_first_error_takes_the_directory_offline_once() {
        let calls = Arc::new(AtomicUsize::new(0));
        let seen = calls.clone();
        let health = DirHealth::new(
            "/logs",
            Box::new(move |_| {
                seen.fetch_add(1, Ordering::Relaxed);
            }),
        );
        assert!(health.is_online() && health.check().is_ok());
        assert_eq!(health.guard("read", Ok(5)).unwrap(), 5);
        let first = health.guard::<()>("append to t-0", Err(io::ErrorKind::StorageFull.into())).unwrap_err();
        let second = health.guard::<()>("flush t-1", Err(io::ErrorKind::Other.into())).unwrap_err();
        assert_eq!(first, second);
        assert_eq!(health.check().unwrap_err(), first);
        assert!(first.to_string().starts_with("log directory /logs is offline: append to t-0: "));
        assert_eq!(calls.load(Ordering::Relaxed), 1);
    }
}
