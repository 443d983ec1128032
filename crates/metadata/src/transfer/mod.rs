//! The tree of a store as a text file, to carry a cluster from one store to another.
//!
//! The file is UTF-8 text with one JSON object a line, one line a znode, sorted by path, so that parents come before
//! children: `{"path":"/cluster/id","value":"…"}`. `"value":null` is a znode with null data. Data that is no UTF-8 stands
//! in `"base64"` (standard alphabet, padded) instead of `"value"`. `/brokers/seqid` has a third field, `"version"`: the
//! version its znode must reach, since it counts the broker ids that were generated. No other version is carried.
//! Ephemeral znodes, the root, ZooKeeper's own `/zookeeper` and the children of [`NOTIFICATIONS`] are left out. The file
//! holds the users' credentials as the store does.

mod export;
mod import;

#[cfg(test)]
mod tests;

pub use export::export;
pub use import::{Imported, OnConflict, import};

use crate::store::StoreError;
use crate::{path, znode};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize};

/// The parents of passing notifications, whose sequence numbers mean nothing in another store.
pub const NOTIFICATIONS: [&str; 6] = [
    znode::config_change::ROOT,
    znode::isr_change::ROOT,
    znode::log_dir_event::ROOT,
    "/kafka-acl-changes",
    "/kafka-acl-extended-changes",
    "/delegation_token/token_changes",
];

/// The subtree that an ensemble keeps for itself.
const ZOOKEEPER: &str = "/zookeeper";

/// The longest line that is read, in bytes.
pub const MAX_LINE_BYTES: usize = 2 * crate::store::MAX_DATA_BYTES;

/// How many requests are under way at once.
const WINDOW: usize = 1000;

/// Why an export or import failed.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The store refused.
    #[error("{path}: {error}")]
    Store {
        /// The znode that was read or written.
        path: String,
        /// Why.
        error: StoreError,
    },
    /// A line of the file is malformed.
    #[error("line {line}: {reason}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// Znodes hold other data than the file; nothing was written.
    #[error("the store holds other data in {count} znodes, the first is {first}")]
    Conflict {
        /// How many.
        count: usize,
        /// The path of the first.
        first: String,
    },
    /// The file cannot be read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// A znode as the file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    data: Option<Bytes>,
    version: Option<i32>,
}

/// A line of the file. Exactly one of `value` and `base64` is there.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    value: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<i32>,
}

/// Tells a field that is null from one that is not there.
fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Option<String>>, D::Error> {
    Option::<String>::deserialize(value).map(Some)
}

impl Line {
    fn new(path: &str, entry: &Entry) -> Self {
        let text = entry.data.as_deref().map(std::str::from_utf8);
        let (value, base64) = match text {
            None => (Some(None), None),
            Some(Ok(text)) => (Some(Some(text.to_owned())), None),
            Some(Err(_)) => (None, entry.data.as_deref().map(|data| STANDARD.encode(data))),
        };
        Self { path: path.to_owned(), value, base64, version: entry.version }
    }

    fn into_entry(self) -> Result<(String, Entry), String> {
        if !path::is_valid(&self.path) || self.path == path::ROOT {
            return Err(format!("{:?} is no path of a znode", self.path));
        }
        let data = match (self.value, self.base64) {
            (Some(value), None) => value.map(Bytes::from),
            (None, Some(text)) => Some(STANDARD.decode(text).map_err(|error| error.to_string())?.into()),
            _ => return Err("it must have one of \"value\" and \"base64\"".to_owned()),
        };
        Ok((self.path, Entry { data, version: self.version }))
    }
}

/// Whether a znode is carried at all.
fn is_carried(path: &str) -> bool {
    path != path::ROOT
        && !path::is_within(path, ZOOKEEPER)
        && !path::parent(path).is_some_and(|parent| NOTIFICATIONS.contains(&parent))
}
