//! One znode: what a store keeps of it, and its children.

use crate::store::{SessionId, Stat};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What must be kept of a znode; the number of its children follows from the tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Record {
    /// The value; `None` is null.
    pub data: Option<Bytes>,
    /// The transaction that created it.
    pub czxid: i64,
    /// The transaction that last wrote its data.
    pub mzxid: i64,
    /// The transaction that last created or deleted a child.
    pub pzxid: i64,
    /// Milliseconds since the Unix epoch at creation.
    pub ctime_ms: i64,
    /// Milliseconds since the Unix epoch at the last write of its data.
    pub mtime_ms: i64,
    /// How often its data was written since creation.
    pub version: i32,
    /// How many children were ever created: the next sequence number.
    pub created_children: i32,
    /// The session it lives by; [`SessionId::NONE`] if it is persistent.
    pub owner: SessionId,
}

impl Record {
    pub(super) fn newest_zxid(&self) -> i64 {
        self.czxid.max(self.mzxid).max(self.pzxid)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Node {
    pub(super) record: Record,
    /// The whole paths of its children, shared with the keys of the tree.
    pub(super) children: BTreeSet<Arc<str>>,
}

impl Node {
    pub(super) fn new(record: Record) -> Self {
        Self { record, children: BTreeSet::new() }
    }

    pub(super) fn stat(&self) -> Stat {
        let record = &self.record;
        let num_children = i32::try_from(self.children.len()).unwrap_or(i32::MAX);
        let data_length = record.data.as_ref().map_or(0, Bytes::len);
        Stat {
            czxid: record.czxid,
            mzxid: record.mzxid,
            pzxid: record.pzxid,
            ctime_ms: record.ctime_ms,
            mtime_ms: record.mtime_ms,
            version: record.version,
            // Creations and deletions: what is not there any more was created and deleted.
            cversion: record.created_children.wrapping_mul(2).wrapping_sub(num_children),
            ephemeral_owner: record.owner,
            data_length: i32::try_from(data_length).unwrap_or(i32::MAX),
            num_children,
        }
    }
}
