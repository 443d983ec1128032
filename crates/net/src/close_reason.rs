//! Why connections end, in words for the log.

use std::fmt;

use crate::frame_reader::FrameError;

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseReason {
    /// The peer closed it.
    Peer,
    /// Reading or writing failed.
    Failed(std::io::ErrorKind),
    /// Nothing was said for too long.
    Idle,
    /// The peer sent a size that no frame may have.
    InvalidFrame(FrameError),
    /// The handler asked for it, and has told why.
    Handler,
    /// An answer is longer than a size prefix can tell.
    ResponseTooLong,
    /// The process is ending.
    Shutdown,
    /// There are more connections than there may be (`max.connections`).
    Evicted,
    /// Its listener was taken out of `listeners`.
    ListenerRemoved,
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Peer => f.write_str("closed by the peer"),
            Self::Failed(kind) => write!(f, "socket failed: {kind}"),
            Self::Idle => f.write_str("idle for longer than connections.max.idle.ms"),
            Self::InvalidFrame(error) => error.fmt(f),
            Self::Handler => f.write_str("refused by the broker"),
            Self::ResponseTooLong => f.write_str("a response exceeds 2 GiB"),
            Self::Shutdown => f.write_str("the broker stops"),
            Self::Evicted => f.write_str("max.connections leaves no room"),
            Self::ListenerRemoved => f.write_str("its listener was removed"),
        }
    }
}
