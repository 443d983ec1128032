//! Why a store refuses a request. The names are ZooKeeper's.

use std::sync::Arc;

/// Why one operation cannot be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum OpError {
    /// There is no such znode, or for a create no parent.
    #[error("no such znode")]
    NoNode,
    /// The znode is there already.
    #[error("the znode exists")]
    NodeExists,
    /// The znode has another version.
    #[error("the znode has another version")]
    BadVersion,
    /// A znode with children cannot be deleted.
    #[error("the znode has children")]
    NotEmpty,
    /// An ephemeral znode has no children.
    #[error("ephemeral znodes have no children")]
    NoChildrenForEphemerals,
    /// The path is malformed, or the root was to be deleted.
    #[error("malformed path or operation")]
    BadArguments,
    /// The value is larger than [`MAX_DATA_BYTES`](super::MAX_DATA_BYTES).
    #[error("the value is too large")]
    TooLarge,
    /// The access list of the znode does not allow it.
    #[error("not authorized")]
    NoAuth,
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The single operation or read failed; nothing changed.
    #[error(transparent)]
    Op(#[from] OpError),
    /// Operation `index` of a multi failed, counted from 0; nothing changed.
    #[error("operation {index} of the transaction: {error}")]
    Multi {
        /// The place of the operation that failed.
        index: usize,
        /// Why it failed.
        error: OpError,
    },
    /// The session is over; nothing was done.
    #[error("the session has expired")]
    SessionExpired,
    /// The connection was lost: the request may or may not have taken effect.
    #[error("the connection to the store was lost")]
    ConnectionLoss,
    /// The store did not accept the credentials.
    #[error("authentication with the store failed")]
    AuthFailed,
    /// The session or the store was closed; nothing was done.
    #[error("the store is closed")]
    Closed,
    /// More requests wait than the store holds; nothing was done.
    #[error("too many requests wait for the store")]
    Overloaded,
    /// The store failed for good: the request may or may not have taken effect.
    #[error("the store failed: {0}")]
    Failed(Arc<str>),
    /// The store answered what was not asked, or was called where it must not be.
    #[error("unexpected: {0}")]
    Unexpected(&'static str),
}

impl StoreError {
    /// The error of the operation, if one is the cause.
    pub fn op_error(&self) -> Option<OpError> {
        match self {
            Self::Op(error) | Self::Multi { error, .. } => Some(*error),
            _ => None,
        }
    }

    /// Whether the cause is that a znode is missing.
    pub fn is_no_node(&self) -> bool {
        self.op_error() == Some(OpError::NoNode)
    }

    /// Whether the cause is that a znode is there already.
    pub fn is_node_exists(&self) -> bool {
        self.op_error() == Some(OpError::NodeExists)
    }
}
