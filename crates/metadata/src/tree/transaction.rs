//! One transaction on the tree: it writes in place and keeps what it needs to take everything back.

use super::Tree;
use super::node::{Node, Record};
use crate::path;
use crate::store::{CreateMode, MAX_DATA_BYTES, Op, OpError, OpResult, SessionId};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::types::Millis;

/// Which operation of a transaction failed, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpFailure {
    /// Its place, from 0.
    pub index: usize,
    /// Why it failed.
    pub error: OpError,
}

/// What a transaction did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Its number.
    pub zxid: i64,
    /// The result of each operation. A `Created` carries its stat as if it stood alone.
    pub results: Vec<OpResult>,
    /// What happened to znodes, in order; it fires watches.
    pub changes: Vec<Change>,
    /// Every persistent znode it touched, as it is now; `None` if it is gone. It is what a durable store must keep.
    pub records: BTreeMap<Arc<str>, Option<Record>>,
}

/// What happened to one znode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its path.
    pub path: Arc<str>,
    /// What happened.
    pub kind: ChangeKind,
}

/// What can happen to a znode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was created.
    Created,
    /// Its data was written.
    DataChanged,
    /// It was deleted.
    Deleted,
}

enum Undo {
    Remove(Arc<str>),
    Insert(Arc<str>, Record),
    Restore(Arc<str>, Record),
}

pub(super) struct Transaction<'a> {
    tree: &'a mut Tree,
    session: SessionId,
    zxid: i64,
    now: Millis,
    undo: Vec<Undo>,
    results: Vec<OpResult>,
    changes: Vec<Change>,
    records: BTreeMap<Arc<str>, Option<Record>>,
}

impl<'a> Transaction<'a> {
    pub(super) fn begin(tree: &'a mut Tree, session: SessionId, now: Millis) -> Self {
        let zxid = tree.zxid + 1;
        Self {
            tree,
            session,
            zxid,
            now,
            undo: Vec::new(),
            results: Vec::new(),
            changes: Vec::new(),
            records: BTreeMap::new(),
        }
    }

    pub(super) fn commit(self) -> Applied {
        self.tree.zxid = self.zxid;
        Applied { zxid: self.zxid, results: self.results, changes: self.changes, records: self.records }
    }

    pub(super) fn roll_back(mut self) {
        while let Some(step) = self.undo.pop() {
            match step {
                Undo::Remove(path) => drop(unlink(self.tree, &path)),
                Undo::Insert(path, record) => link(self.tree, path, record),
                Undo::Restore(path, record) => {
                    if let Some(node) = self.tree.nodes.get_mut(&path) {
                        node.record = record;
                    }
                }
            }
        }
    }

    pub(super) fn run(&mut self, op: &Op) -> Result<(), OpError> {
        let result = match op {
            Op::Create { path, data, mode } => self.create(path, data, *mode)?,
            Op::SetData { path, data, version } => self.set_data(path, data, *version)?,
            Op::Delete { path, version } => self.delete(path, *version)?,
            Op::Check { path, version } => {
                check_version(&self.tree.node(path)?.record, *version)?;
                OpResult::Checked
            }
        };
        self.results.push(result);
        Ok(())
    }

    /// Deletes a znode that is known to be an ephemeral.
    pub(super) fn delete_ephemeral(&mut self, path: &Arc<str>) {
        self.remove(path);
    }

    fn create(&mut self, path: &str, data: &Option<Bytes>, mode: CreateMode) -> Result<OpResult, OpError> {
        let is_valid =
            if mode.is_sequential() { path::is_valid_sequential_prefix(path) } else { path::is_valid(path) };
        if !is_valid {
            return Err(OpError::BadArguments);
        }
        check_size(data)?;
        let parent = path::parent(path).ok_or(OpError::NodeExists)?;
        let (parent, node) = self.tree.nodes.get_key_value(parent).ok_or(OpError::NoNode)?;
        let (parent, before) = (parent.clone(), node.record.clone());
        let path: Arc<str> = if mode.is_sequential() {
            Arc::from(format!("{path}{:010}", before.created_children))
        } else {
            Arc::from(path)
        };
        if self.tree.nodes.contains_key(&path) {
            return Err(OpError::NodeExists);
        }
        if before.owner != SessionId::NONE {
            return Err(OpError::NoChildrenForEphemerals);
        }
        self.write_parent(parent, before, 1);
        let record = Record {
            data: data.clone(),
            czxid: self.zxid,
            mzxid: self.zxid,
            pzxid: self.zxid,
            ctime_ms: self.now.0,
            mtime_ms: self.now.0,
            version: 0,
            created_children: 0,
            owner: if mode.is_ephemeral() { self.session } else { SessionId::NONE },
        };
        self.keep(&path, Some(&record));
        link(self.tree, path.clone(), record);
        let stat = self.tree.nodes.get(&path).map(Node::stat);
        self.undo.push(Undo::Remove(path.clone()));
        let created = path.to_string();
        self.changes.push(Change { path, kind: ChangeKind::Created });
        Ok(OpResult::Created { path: created, stat })
    }

    fn set_data(
        &mut self,
        path: &str,
        data: &Option<Bytes>,
        version: Option<i32>,
    ) -> Result<OpResult, OpError> {
        check_version(&self.tree.node(path)?.record, version)?;
        check_size(data)?;
        let path = self.key(path)?;
        let Some(node) = self.tree.nodes.get_mut(&path) else { return Err(OpError::NoNode) };
        let before = node.record.clone();
        node.record.data.clone_from(data);
        node.record.mzxid = self.zxid;
        node.record.mtime_ms = self.now.0;
        node.record.version = before.version.wrapping_add(1);
        let stat = node.stat();
        let after = node.record.clone();
        self.keep(&path, Some(&after));
        self.undo.push(Undo::Restore(path.clone(), before));
        self.changes.push(Change { path, kind: ChangeKind::DataChanged });
        Ok(OpResult::Set { stat })
    }

    fn delete(&mut self, path: &str, version: Option<i32>) -> Result<OpResult, OpError> {
        if path == path::ROOT {
            return Err(OpError::BadArguments);
        }
        let node = self.tree.node(path)?;
        check_version(&node.record, version)?;
        if !node.children.is_empty() {
            return Err(OpError::NotEmpty);
        }
        let path = self.key(path)?;
        self.remove(&path);
        Ok(OpResult::Deleted)
    }

    fn remove(&mut self, path: &Arc<str>) {
        let Some(record) = unlink(self.tree, path) else { return };
        if record.owner == SessionId::NONE {
            self.keep(path, None);
        }
        self.undo.push(Undo::Insert(path.clone(), record));
        self.changes.push(Change { path: path.clone(), kind: ChangeKind::Deleted });
        let parent = path::parent(path).and_then(|parent| self.tree.nodes.get_key_value(parent));
        if let Some((parent, node)) = parent {
            let (parent, before) = (parent.clone(), node.record.clone());
            self.write_parent(parent, before, 0);
        }
    }

    fn write_parent(&mut self, parent: Arc<str>, before: Record, created: i32) {
        let Some(node) = self.tree.nodes.get_mut(&parent) else { return };
        node.record.pzxid = self.zxid;
        node.record.created_children = before.created_children.wrapping_add(created);
        let after = node.record.clone();
        self.keep(&parent, Some(&after));
        self.undo.push(Undo::Restore(parent, before));
    }

    /// Notes the state of a znode for the durable store, which keeps no ephemerals.
    fn keep(&mut self, path: &Arc<str>, record: Option<&Record>) {
        if record.is_none_or(|record| record.owner == SessionId::NONE) {
            self.records.insert(path.clone(), record.cloned());
        }
    }

    /// The tree's own copy of a path.
    fn key(&self, path: &str) -> Result<Arc<str>, OpError> {
        self.tree.nodes.get_key_value(path).map(|(key, _)| key.clone()).ok_or(OpError::NoNode)
    }
}

fn check_version(record: &Record, version: Option<i32>) -> Result<(), OpError> {
    match version {
        // -1 matches any version, as in ZooKeeper's protocol.
        None | Some(-1) => Ok(()),
        Some(version) if version == record.version => Ok(()),
        Some(_) => Err(OpError::BadVersion),
    }
}

fn check_size(data: &Option<Bytes>) -> Result<(), OpError> {
    match data {
        Some(data) if data.len() > MAX_DATA_BYTES => Err(OpError::TooLarge),
        _ => Ok(()),
    }
}

fn link(tree: &mut Tree, path: Arc<str>, record: Record) {
    if let Some(parent) = path::parent(&path).and_then(|parent| tree.nodes.get_mut(parent)) {
        parent.children.insert(path.clone());
    }
    if record.owner != SessionId::NONE {
        tree.ephemerals.entry(record.owner).or_default().insert(path.clone());
    }
    tree.nodes.insert(path, Node::new(record));
}

fn unlink(tree: &mut Tree, path: &str) -> Option<Record> {
    let record = tree.nodes.remove(path)?.record;
    if let Some(parent) = path::parent(path).and_then(|parent| tree.nodes.get_mut(parent)) {
        parent.children.remove(path);
    }
    if let Some(paths) = tree.ephemerals.get_mut(&record.owner) {
        paths.remove(path);
        if paths.is_empty() {
            tree.ephemerals.remove(&record.owner);
        }
    }
    Some(record)
}
