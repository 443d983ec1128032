//! The watches that a session has set and that have not fired: a new connection sets them again, and an event without
//! one is not told.

use super::request::WatchList;
use crate::store::{NodeEventKind, Request, Response};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Watches by path, as the session names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WatchSet {
    data: BTreeSet<Arc<str>>,
    absent: BTreeSet<Arc<str>>,
    children: BTreeSet<Arc<str>>,
}

impl WatchSet {
    /// Notes the watch that an answered read has set.
    pub(super) fn answered(&mut self, request: &Request, response: &Response) {
        let (list, path) = match (request, response) {
            (Request::Get { path, watch: true }, _) => (&mut self.data, path),
            (Request::Exists { path, watch: true }, Response::Exists(Some(_))) => (&mut self.data, path),
            (Request::Exists { path, watch: true }, _) => (&mut self.absent, path),
            (Request::Children { path, watch: true }, _) => (&mut self.children, path),
            _ => return,
        };
        if !list.contains(path.as_str()) {
            list.insert(Arc::from(path.as_str()));
        }
    }

    /// Takes the watches out that an event spends; the path, if there was one.
    pub(super) fn fire(&mut self, path: &str, kind: NodeEventKind) -> Option<Arc<str>> {
        let data = |set: &mut Self| {
            let (present, absent) = (set.data.take(path), set.absent.take(path));
            present.or(absent)
        };
        match kind {
            NodeEventKind::Created | NodeEventKind::DataChanged => data(self),
            NodeEventKind::ChildrenChanged => self.children.take(path),
            NodeEventKind::Deleted => {
                let (data, children) = (data(self), self.children.take(path));
                data.or(children)
            }
        }
    }

    /// All watches.
    pub(super) fn iter(&self) -> impl Iterator<Item = (WatchList, &str)> {
        self.data
            .iter()
            .map(|path| (WatchList::Data, &**path))
            .chain(self.absent.iter().map(|path| (WatchList::Absent, &**path)))
            .chain(self.children.iter().map(|path| (WatchList::Children, &**path)))
    }

    /// The session is over, and its watches with it.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
