//! Why a verb fails: one line for people on stderr, exit code 1 as of Kafka's tools.

use std::io;
use std::path::{Path, PathBuf};

use crate::cluster::ClusterError;

/// Why a verb did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VerbError {
    /// Options that contradict each other, or a value that cannot be read.
    #[error("{0}")]
    Usage(String),
    /// The cluster refused, or cannot be reached.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// Standard output cannot be written to.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    /// The verb ran, and what it found or did is a failure; details were printed.
    #[error("{0}")]
    Failed(String),
}

impl VerbError {
    /// An error about a file.
    pub(crate) fn file(path: &Path, error: io::Error) -> Self {
        Self::File { path: path.to_owned(), error }
    }

    /// Whether the reader of the output has gone, which is its way to say that it has seen enough.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}
