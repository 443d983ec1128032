//! What stands for a request and for an append, between a group and the edge.

/// Stands for a request that waits for an answer; the edge knows whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// The number of an append of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppendId(pub u64);
