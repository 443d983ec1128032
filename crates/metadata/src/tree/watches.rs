//! The one-shot watches of all sessions: who is to be told of what, once.
//!
//! Two kinds, as in ZooKeeper: watches on a znode's data (set by reading it or asking for it) and on its children (set
//! by listing them). A deletion fires both kinds on the znode but tells a session once; it also fires the child
//! watches of the parent.

use super::transaction::{Change, ChangeKind};
use crate::path;
use crate::store::{NodeEventKind, SessionId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a watch is set on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WatchKind {
    /// Creation, deletion and data.
    Data,
    /// Deletion and the set of children.
    Children,
}

/// A watch that fired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEvent {
    /// The session to tell.
    pub session: SessionId,
    /// The path that was watched.
    pub path: Arc<str>,
    /// What happened to it.
    pub kind: NodeEventKind,
}

/// All watches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Watches {
    by_path: BTreeMap<(Arc<str>, WatchKind), BTreeSet<SessionId>>,
}

impl Watches {
    /// Tells `session` of the next event on `path`. Setting the same watch twice has no further effect.
    pub fn set(&mut self, session: SessionId, path: &str, kind: WatchKind) {
        self.by_path.entry((Arc::from(path), kind)).or_default().insert(session);
    }

    /// How many watches are set.
    pub fn len(&self) -> usize {
        self.by_path.values().map(BTreeSet::len).sum()
    }

    /// Whether no watch is set.
    pub fn is_empty(&self) -> bool {
        self.by_path.is_empty()
    }

    /// Drops the watches of a session that is over.
    pub fn drop_session(&mut self, session: SessionId) {
        self.by_path.retain(|_, sessions| {
            sessions.remove(&session);
            !sessions.is_empty()
        });
    }

    /// Fires, and thereby spends, the watches that `changes` concern.
    pub fn fire(&mut self, changes: &[Change]) -> Vec<NodeEvent> {
        let mut events = Vec::new();
        if self.by_path.is_empty() {
            return events;
        }
        for Change { path, kind } in changes {
            match kind {
                ChangeKind::DataChanged => {
                    let watchers = self.take(path, WatchKind::Data);
                    tell(&mut events, watchers, path, NodeEventKind::DataChanged);
                }
                ChangeKind::Created => {
                    let watchers = self.take(path, WatchKind::Data);
                    tell(&mut events, watchers, path, NodeEventKind::Created);
                    self.fire_parent(&mut events, path);
                }
                ChangeKind::Deleted => {
                    let mut watchers = self.take(path, WatchKind::Data);
                    watchers.append(&mut self.take(path, WatchKind::Children));
                    tell(&mut events, watchers, path, NodeEventKind::Deleted);
                    self.fire_parent(&mut events, path);
                }
            }
        }
        events
    }

    fn fire_parent(&mut self, events: &mut Vec<NodeEvent>, path: &str) {
        let Some(parent) = path::parent(path) else { return };
        let parent: Arc<str> = Arc::from(parent);
        let watchers = self.take(&parent, WatchKind::Children);
        tell(events, watchers, &parent, NodeEventKind::ChildrenChanged);
    }

    fn take(&mut self, path: &Arc<str>, kind: WatchKind) -> BTreeSet<SessionId> {
        self.by_path.remove(&(path.clone(), kind)).unwrap_or_default()
    }
}

fn tell(events: &mut Vec<NodeEvent>, sessions: BTreeSet<SessionId>, path: &Arc<str>, kind: NodeEventKind) {
    events.extend(sessions.into_iter().map(|session| NodeEvent { session, path: path.clone(), kind }));
}
