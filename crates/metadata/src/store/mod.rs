//! The trait by which the broker reaches the cluster's tree of znodes, with ZooKeeper's semantics.
//!
//! Requests of one session take effect, and are answered, in the order of their submission. Watches fire once. A node
//! event that a write causes reaches a session before that session sees an answer that already shows the write. After a
//! session has expired nothing is sent in its name: every request is refused until the owner calls [`Store::renew`], so
//! that no step planned under the old session can slip into the new one.

mod blocking;
mod error;
mod guard;

pub use blocking::Blocking;
pub use error::{OpError, StoreError};
pub(crate) use guard::guarded;

use bytes::Bytes;
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc;

/// The largest value of one znode, in bytes: what a Kafka client of ZooKeeper takes in one packet (KAFKA-13270).
pub const MAX_DATA_BYTES: usize = 4 * 1024 * 1024;

/// The most requests that may wait for a store; more are refused as overload.
pub const MAX_WAITING_REQUESTS: usize = 65_536;

/// The id of a session; the `ephemeral_owner` of the znodes it created as ephemerals.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub i64);

impl SessionId {
    /// No session: the owner of a persistent znode.
    pub const NONE: Self = Self(0);
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// What a store knows about a znode beside its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stat {
    /// The transaction that created the znode. Of a broker's registration it is the broker epoch (KIP-380).
    pub czxid: i64,
    /// The transaction that last wrote the data.
    pub mzxid: i64,
    /// The transaction that last created or deleted a child.
    pub pzxid: i64,
    /// Milliseconds since the Unix epoch at creation.
    pub ctime_ms: i64,
    /// Milliseconds since the Unix epoch at the last write of the data.
    pub mtime_ms: i64,
    /// How often the data was written since creation, from 0.
    pub version: i32,
    /// How often children were created or deleted.
    pub cversion: i32,
    /// The session that an ephemeral znode lives by; [`SessionId::NONE`] for a persistent one.
    pub ephemeral_owner: SessionId,
    /// The length of the data in bytes; null counts 0.
    pub data_length: i32,
    /// The number of children.
    pub num_children: i32,
}

/// How a znode is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CreateMode {
    /// It stays until it is deleted.
    Persistent,
    /// It vanishes with the session.
    Ephemeral,
    /// Persistent; ten digits that grow with every child of the parent are appended to the path.
    PersistentSequential,
    /// Ephemeral and sequential.
    EphemeralSequential,
}

impl CreateMode {
    /// Whether the znode vanishes with the session.
    pub fn is_ephemeral(self) -> bool {
        matches!(self, Self::Ephemeral | Self::EphemeralSequential)
    }

    /// Whether digits are appended to the path.
    pub fn is_sequential(self) -> bool {
        matches!(self, Self::PersistentSequential | Self::EphemeralSequential)
    }
}

/// One write, alone or within a multi. A `version` of `None` matches any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Creates a znode whose parent exists.
    Create {
        /// The path, or the prefix of it for a sequential znode.
        path: String,
        /// The value; `None` is null, which Kafka tells from an empty value.
        data: Option<Bytes>,
        /// Whether it is ephemeral or sequential.
        mode: CreateMode,
    },
    /// Replaces the data of a znode.
    SetData {
        /// The path.
        path: String,
        /// The new value.
        data: Option<Bytes>,
        /// The version it must have.
        version: Option<i32>,
    },
    /// Deletes a znode without children.
    Delete {
        /// The path.
        path: String,
        /// The version it must have.
        version: Option<i32>,
    },
    /// Changes nothing; fails unless the znode is there and has the version.
    Check {
        /// The path.
        path: String,
        /// The version it must have.
        version: Option<i32>,
    },
}

impl Op {
    /// Creates `path` with `data`.
    pub fn create(path: impl Into<String>, data: impl Into<Value>, mode: CreateMode) -> Self {
        Self::Create { path: path.into(), data: data.into().0, mode }
    }

    /// Replaces the data of `path` if it has `version`.
    pub fn set(path: impl Into<String>, data: impl Into<Value>, version: Option<i32>) -> Self {
        Self::SetData { path: path.into(), data: data.into().0, version }
    }

    /// Deletes `path` if it has `version`.
    pub fn delete(path: impl Into<String>, version: Option<i32>) -> Self {
        Self::Delete { path: path.into(), version }
    }

    /// Checks that `path` has `version`.
    pub fn check(path: impl Into<String>, version: i32) -> Self {
        Self::Check { path: path.into(), version: Some(version) }
    }

    /// The path that the operation names.
    pub fn path(&self) -> &str {
        match self {
            Self::Create { path, .. }
            | Self::SetData { path, .. }
            | Self::Delete { path, .. }
            | Self::Check { path, .. } => path,
        }
    }
}

/// The value of a znode as an argument: bytes, text, or null.
#[derive(Clone, Debug, Default)]
pub struct Value(pub Option<Bytes>);

impl Value {
    /// Null: no data at all.
    pub const NULL: Self = Self(None);
}

impl From<Option<Bytes>> for Value {
    fn from(data: Option<Bytes>) -> Self {
        Self(data)
    }
}

impl From<Bytes> for Value {
    fn from(data: Bytes) -> Self {
        Self(Some(data))
    }
}

impl From<Vec<u8>> for Value {
    fn from(data: Vec<u8>) -> Self {
        Self(Some(Bytes::from(data)))
    }
}

impl From<&str> for Value {
    fn from(data: &str) -> Self {
        Self(Some(Bytes::copy_from_slice(data.as_bytes())))
    }
}

/// What a session asks of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// One write.
    Write(Op),
    /// Several writes that take effect together or not at all.
    Multi(Vec<Op>),
    /// The data and the stat of a znode. The watch is set only if the znode exists.
    Get {
        /// The path.
        path: String,
        /// Whether to be told once of its deletion or the next write of its data.
        watch: bool,
    },
    /// The stat of a znode, if there is one.
    Exists {
        /// The path.
        path: String,
        /// Whether to be told once of its creation, deletion or the next write of its data.
        watch: bool,
    },
    /// The names of the children of a znode. The watch is set only if the znode exists.
    Children {
        /// The path.
        path: String,
        /// Whether to be told once of its deletion or the next change of its set of children.
        watch: bool,
    },
}

impl Request {
    /// Creates `path` with `data`.
    pub fn create(path: impl Into<String>, data: impl Into<Value>, mode: CreateMode) -> Self {
        Self::Write(Op::create(path, data, mode))
    }

    /// Replaces the data of `path` if it has `version`.
    pub fn set(path: impl Into<String>, data: impl Into<Value>, version: Option<i32>) -> Self {
        Self::Write(Op::set(path, data, version))
    }

    /// Deletes `path` if it has `version`.
    pub fn delete(path: impl Into<String>, version: Option<i32>) -> Self {
        Self::Write(Op::delete(path, version))
    }

    /// Reads data and stat without a watch.
    pub fn get(path: impl Into<String>) -> Self {
        Self::Get { path: path.into(), watch: false }
    }

    /// Asks for the stat without a watch.
    pub fn exists(path: impl Into<String>) -> Self {
        Self::Exists { path: path.into(), watch: false }
    }

    /// Lists the children without a watch.
    pub fn children(path: impl Into<String>) -> Self {
        Self::Children { path: path.into(), watch: false }
    }

    /// The same read with a watch; a write stays as it is.
    #[must_use]
    pub fn watched(mut self) -> Self {
        match &mut self {
            Self::Get { watch, .. } | Self::Exists { watch, .. } | Self::Children { watch, .. } => {
                *watch = true
            }
            Self::Write(_) | Self::Multi(_) => {}
        }
        self
    }
}

/// The outcome of one operation that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpResult {
    /// The znode was created.
    Created {
        /// Its path, digits included.
        path: String,
        /// Its stat; `None` within a multi, where ZooKeeper does not tell it.
        stat: Option<Stat>,
    },
    /// The data was replaced.
    Set {
        /// The stat after the write.
        stat: Stat,
    },
    /// The znode was deleted.
    Deleted,
    /// The check held.
    Checked,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// To [`Request::Write`].
    Written(OpResult),
    /// To [`Request::Multi`]: one result for each operation, in order.
    Multi(Vec<OpResult>),
    /// To [`Request::Get`].
    Data {
        /// The value; `None` is null.
        data: Option<Bytes>,
        /// The stat.
        stat: Stat,
    },
    /// To [`Request::Exists`]; `None` if there is no such znode.
    Exists(Option<Stat>),
    /// To [`Request::Children`].
    Children {
        /// The names, without the path, in ascending order.
        names: Vec<String>,
        /// The stat of the parent.
        stat: Stat,
    },
}

/// What happened to a watched znode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeEventKind {
    /// It was created.
    Created,
    /// It was deleted.
    Deleted,
    /// Its data was written.
    DataChanged,
    /// A child was created or deleted.
    ChildrenChanged,
}

/// What a store tells its session unasked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreEvent {
    /// The session is established: a new one at the start and after [`Store::renew`], the same one after a lost
    /// connection.
    Connected {
        /// The id of the session.
        session_id: SessionId,
    },
    /// The connection is lost; the session may still live.
    Disconnected,
    /// The session is over, and with it its ephemerals and watches.
    SessionExpired,
    /// A watch fired; it is spent.
    Node {
        /// The path of the znode that was watched.
        path: Arc<str>,
        /// What happened to it.
        kind: NodeEventKind,
    },
    /// The store cannot go on; every request is answered with [`StoreError::Failed`].
    Failed {
        /// What went wrong, for the operator.
        reason: Arc<str>,
    },
}

/// Takes the answer to one request, once.
pub type Done = Box<dyn FnOnce(Result<Response, StoreError>) + Send>;

/// Takes the events of a session. It must not wait for the store.
pub type EventSink = Arc<dyn Fn(StoreEvent) + Send + Sync>;

/// A session with the cluster's tree of znodes.
pub trait Store: Send + Sync + 'static {
    /// Hands in a request. `done` is called exactly once, on a thread of the store's; only a request that is refused
    /// because too many wait, or because the store is shut down, is answered within this call.
    fn submit(&self, request: Request, done: Done);

    /// The id of the session while it lives.
    fn session_id(&self) -> Option<SessionId>;

    /// Begins a new session after [`StoreEvent::SessionExpired`]; [`StoreEvent::Connected`] reports it. Without effect
    /// while a session lives or after [`Store::close`].
    fn renew(&self);

    /// Ends the session in order: its ephemerals and watches vanish, and no event follows but those under way. Later
    /// requests are refused with [`StoreError::Closed`].
    fn close(&self);

    /// Hands in a request and waits for the answer: for the start and for tools. Never call it from within `done` or
    /// an event sink.
    fn call(&self, request: Request) -> Result<Response, StoreError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.submit(request, Box::new(move |answer| drop(sender.send(answer))));
        receiver.recv().unwrap_or(Err(StoreError::Closed))
    }
}
