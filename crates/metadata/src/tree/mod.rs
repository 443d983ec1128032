//! ZooKeeper's tree as pure data: no clock, no IO, no sessions beyond their ids.
//!
//! One call of [`Tree::apply`] is one transaction: all of its operations take effect under the next zxid, or none does
//! and the tree is as before. Invariants: every znode but the root has a parent; an ephemeral has no children; zxids
//! and the sequence numbers of a parent only grow.

mod node;
mod transaction;
mod watches;

#[cfg(test)]
mod tests;

pub use node::Record;
pub use transaction::{Applied, Change, ChangeKind, OpFailure};
pub use watches::{NodeEvent, WatchKind, Watches};

use crate::path;
use crate::store::{Op, OpError, SessionId, Stat};
use bytes::Bytes;
use node::Node;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use transaction::Transaction;
use wire::types::Millis;

/// The tree of znodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tree {
    zxid: i64,
    nodes: BTreeMap<Arc<str>, Node>,
    ephemerals: BTreeMap<SessionId, BTreeSet<Arc<str>>>,
}

/// Why records do not make a tree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// A path is malformed.
    #[error("malformed path {0:?}")]
    Path(String),
    /// A znode with children is missing.
    #[error("{0:?} is missing, but its children are there")]
    Orphan(String),
    /// A znode is newer than the last transaction.
    #[error("{0:?} is newer than the last transaction")]
    Future(String),
}

impl Default for Tree {
    fn default() -> Self {
        Self::new()
    }
}

impl Tree {
    /// A tree of nothing but the root.
    pub fn new() -> Self {
        Self {
            zxid: 0,
            nodes: BTreeMap::from([(Arc::from(path::ROOT), Node::new(Record::default()))]),
            ephemerals: BTreeMap::new(),
        }
    }

    /// The tree of persistent `records` whose last transaction was `zxid`. The root may be missing.
    pub fn from_records(
        zxid: i64,
        records: impl IntoIterator<Item = (Arc<str>, Record)>,
    ) -> Result<Self, TreeError> {
        let mut nodes: BTreeMap<Arc<str>, Node> =
            records.into_iter().map(|(path, record)| (path, Node::new(record))).collect();
        nodes.entry(Arc::from(path::ROOT)).or_insert_with(|| Node::new(Record::default()));
        let mut children: HashMap<Arc<str>, Vec<Arc<str>>> = HashMap::new();
        for (path, node) in &nodes {
            if !path::is_valid(path) {
                return Err(TreeError::Path(path.to_string()));
            }
            if node.record.newest_zxid() > zxid {
                return Err(TreeError::Future(path.to_string()));
            }
            let Some(parent) = path::parent(path) else { continue };
            match children.get_mut(parent) {
                Some(paths) => paths.push(path.clone()),
                None => drop(children.insert(Arc::from(parent), vec![path.clone()])),
            }
        }
        for (path, node) in &mut nodes {
            if let Some(paths) = children.remove(path) {
                node.children = BTreeSet::from_iter(paths);
            }
        }
        match children.into_keys().min() {
            Some(missing) => Err(TreeError::Orphan(missing.to_string())),
            None => Ok(Self { zxid, nodes, ephemerals: BTreeMap::new() }),
        }
    }

    /// The number of the last transaction.
    pub fn zxid(&self) -> i64 {
        self.zxid
    }

    /// How many znodes there are, the root included.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether nothing but the root is there.
    pub fn is_empty(&self) -> bool {
        self.len() <= 1
    }

    /// Every znode with its stat, parents before children.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Option<Bytes>, Stat)> {
        self.nodes.iter().map(|(path, node)| (path, &node.record.data, node.stat()))
    }

    /// The data and stat of `path`.
    pub fn get(&self, path: &str) -> Result<(Option<Bytes>, Stat), OpError> {
        let node = self.node(path)?;
        Ok((node.record.data.clone(), node.stat()))
    }

    /// The stat of `path`, if there is such a znode.
    pub fn exists(&self, path: &str) -> Result<Option<Stat>, OpError> {
        match self.node(path) {
            Ok(node) => Ok(Some(node.stat())),
            Err(OpError::NoNode) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The names of the children of `path`, ascending, and its stat.
    pub fn children(&self, path: &str) -> Result<(Vec<String>, Stat), OpError> {
        let node = self.node(path)?;
        Ok((node.children.iter().map(|child| path::name(child).to_owned()).collect(), node.stat()))
    }

    /// Applies all of `ops` in the name of `session` as one transaction, or none of them.
    pub fn apply(&mut self, session: SessionId, ops: &[Op], now: Millis) -> Result<Applied, OpFailure> {
        let mut transaction = Transaction::begin(self, session, now);
        for (index, op) in ops.iter().enumerate() {
            if let Err(error) = transaction.run(op) {
                transaction.roll_back();
                return Err(OpFailure { index, error });
            }
        }
        Ok(transaction.commit())
    }

    /// Deletes the ephemerals of `session`, as one transaction; none if it has none.
    pub fn close_session(&mut self, session: SessionId, now: Millis) -> Option<Applied> {
        let paths = self.ephemerals.get(&session)?.clone();
        let mut transaction = Transaction::begin(self, session, now);
        for path in paths {
            transaction.delete_ephemeral(&path);
        }
        Some(transaction.commit())
    }

    fn node(&self, path: &str) -> Result<&Node, OpError> {
        match self.nodes.get(path) {
            Some(node) => Ok(node),
            None if path::is_valid(path) => Err(OpError::NoNode),
            None => Err(OpError::BadArguments),
        }
    }

    /// Panics if an invariant of the module comment does not hold.
    #[cfg(any(test, feature = "contract"))]
    pub fn check(&self) {
        for (path, node) in &self.nodes {
            assert!(node.record.newest_zxid() <= self.zxid, "{path} is newer than the last transaction");
            let is_ephemeral = node.record.owner != SessionId::NONE;
            assert!(!is_ephemeral || node.children.is_empty(), "{path} is ephemeral and has children");
            let owned = self.ephemerals.get(&node.record.owner).is_some_and(|paths| paths.contains(path));
            assert_eq!(owned, is_ephemeral, "{path} and its owner disagree");
            for child in &node.children {
                assert!(self.nodes.contains_key(child), "{path} lists {child}");
                assert_eq!(path::parent(child), Some(&**path));
            }
            if let Some(parent) = path::parent(path) {
                let parent = self.nodes.get(parent);
                assert!(parent.is_some_and(|node| node.children.contains(path)), "{path} is an orphan");
            }
        }
        for paths in self.ephemerals.values() {
            assert!(!paths.is_empty() && paths.iter().all(|path| self.nodes.contains_key(path)));
        }
    }
}
