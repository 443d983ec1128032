//! The state that sessions and the committer share: the tree, its watches and sessions, and the queue of what is to be
//! made durable and then told. One lock guards it; it is never held across a disk write, a callback or an event.

use super::WallClock;
use crate::store::{
    Done, EventSink, MAX_WAITING_REQUESTS, OpResult, Request, Response, SessionId, StoreError, StoreEvent,
};
use crate::tree::{Applied, Record, Tree, WatchKind, Watches};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// One step of the queue: what must be durable first, then the events to tell, then the answer to give.
#[derive(Default)]
pub(super) struct Item {
    /// The transaction, if something changed.
    pub(super) zxid: Option<i64>,
    pub(super) records: BTreeMap<Arc<str>, Option<Record>>,
    pub(super) notices: Vec<(EventSink, StoreEvent)>,
    pub(super) answer: Option<(Done, Result<Response, StoreError>)>,
}

#[derive(Clone)]
enum Status {
    Open,
    Stopping,
    Failed(Arc<str>),
}

struct State {
    tree: Tree,
    watches: Watches,
    sinks: BTreeMap<SessionId, EventSink>,
    sessions_begun: u16,
    queue: VecDeque<Item>,
    status: Status,
}

pub(super) struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    clock: WallClock,
}

impl Shared {
    pub(super) fn new(tree: Tree, clock: WallClock) -> Self {
        let state = State {
            tree,
            watches: Watches::default(),
            sinks: BTreeMap::new(),
            sessions_begun: 0,
            queue: VecDeque::new(),
            status: Status::Open,
        };
        Self { state: Mutex::new(state), wake: Condvar::new(), clock }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn waiting(&self) -> usize {
        self.lock().queue.len()
    }

    pub(super) fn tree(&self) -> Tree {
        self.lock().tree.clone()
    }

    /// Begins a session. Its id is unlike that of any session that left a trace, also in earlier runs.
    pub(super) fn begin_session(&self, sink: &EventSink) -> SessionId {
        let mut state = self.lock();
        state.sessions_begun = state.sessions_begun.wrapping_add(1).max(1);
        let session_id = SessionId((state.tree.zxid() << 16) | i64::from(state.sessions_begun));
        state.sinks.insert(session_id, sink.clone());
        let notices = vec![(sink.clone(), StoreEvent::Connected { session_id })];
        state.queue.push_back(Item { notices, ..Item::default() });
        drop(state);
        self.wake.notify_one();
        session_id
    }

    pub(super) fn is_live(&self, session: SessionId) -> bool {
        self.lock().sinks.contains_key(&session)
    }

    /// Deletes the ephemerals and watches of `session`; `last` is the last event that it is told.
    pub(super) fn end_session(&self, session: SessionId, last: Option<StoreEvent>) {
        let mut state = self.lock();
        let Some(sink) = state.sinks.remove(&session) else { return };
        state.watches.drop_session(session);
        let now = (self.clock)();
        let mut item = match state.tree.close_session(session, now) {
            Some(applied) => state.item(applied).1,
            None => Item::default(),
        };
        item.notices.extend(last.map(|event| (sink, event)));
        state.queue.push_back(item);
        drop(state);
        self.wake.notify_one();
    }

    /// Takes a request in. Refused ones are queued like all others, but for overload and after the end.
    pub(super) fn submit(&self, session: SessionId, request: Request, done: Done) {
        let mut state = self.lock();
        if matches!(state.status, Status::Stopping) {
            drop(state);
            return done(Err(StoreError::Closed));
        }
        if state.queue.len() >= MAX_WAITING_REQUESTS {
            drop(state);
            return done(Err(StoreError::Overloaded));
        }
        let (answer, mut item) = match &state.status {
            Status::Failed(reason) => (Err(StoreError::Failed(reason.clone())), Item::default()),
            _ if !state.sinks.contains_key(&session) => (Err(StoreError::SessionExpired), Item::default()),
            _ => match state.execute(session, request, &self.clock) {
                Ok((response, item)) => (Ok(response), item),
                Err(error) => (Err(error), Item::default()),
            },
        };
        item.answer = Some((done, answer));
        state.queue.push_back(item);
        drop(state);
        self.wake.notify_one();
    }

    /// Queues a refusal, so that it comes after the answers to earlier requests.
    pub(super) fn refuse(&self, error: StoreError, done: Done) {
        let mut state = self.lock();
        if matches!(state.status, Status::Stopping) || state.queue.len() >= MAX_WAITING_REQUESTS {
            drop(state);
            return done(Err(error));
        }
        state.queue.push_back(Item { answer: Some((done, Err(error))), ..Item::default() });
        drop(state);
        self.wake.notify_one();
    }

    /// No more requests are taken.
    pub(super) fn stop(&self) {
        self.lock().status = Status::Stopping;
        self.wake.notify_all();
    }

    /// Waits for work; `None` when the store stops and nothing is left.
    pub(super) fn wait_for_batch(&self) -> Option<VecDeque<Item>> {
        let mut state = self.lock();
        while state.queue.is_empty() {
            if matches!(state.status, Status::Stopping) {
                return None;
            }
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Some(std::mem::take(&mut state.queue))
    }

    /// The work that is there.
    pub(super) fn take_batch(&self) -> VecDeque<Item> {
        std::mem::take(&mut self.lock().queue)
    }

    /// The reason, if the store has failed.
    pub(super) fn failure(&self) -> Option<Arc<str>> {
        match &self.lock().status {
            Status::Failed(reason) => Some(reason.clone()),
            Status::Open | Status::Stopping => None,
        }
    }

    /// Marks the store as failed; returns whom to tell.
    pub(super) fn fail(&self, reason: &Arc<str>) -> Vec<EventSink> {
        let mut state = self.lock();
        if matches!(state.status, Status::Open) {
            state.status = Status::Failed(reason.clone());
        }
        state.sinks.values().cloned().collect()
    }
}

impl State {
    fn execute(
        &mut self,
        session: SessionId,
        request: Request,
        clock: &WallClock,
    ) -> Result<(Response, Item), StoreError> {
        let response = match request {
            Request::Write(op) => {
                let applied = self
                    .tree
                    .apply(session, std::slice::from_ref(&op), clock())
                    .map_err(|failure| StoreError::Op(failure.error))?;
                let (mut results, item) = self.item(applied);
                let result = results.pop().ok_or(StoreError::Unexpected("no result"))?;
                return Ok((Response::Written(result), item));
            }
            Request::Multi(ops) if ops.is_empty() => Response::Multi(Vec::new()),
            Request::Multi(ops) => {
                let applied = self
                    .tree
                    .apply(session, &ops, clock())
                    .map_err(|failure| StoreError::Multi { index: failure.index, error: failure.error })?;
                let (mut results, item) = self.item(applied);
                results.iter_mut().for_each(forget_created_stat);
                return Ok((Response::Multi(results), item));
            }
            Request::Get { path, watch } => {
                let (data, stat) = self.tree.get(&path)?;
                self.watch_if(watch, session, &path, WatchKind::Data);
                Response::Data { data, stat }
            }
            Request::Exists { path, watch } => {
                let stat = self.tree.exists(&path)?;
                self.watch_if(watch, session, &path, WatchKind::Data);
                Response::Exists(stat)
            }
            Request::Children { path, watch } => {
                let (names, stat) = self.tree.children(&path)?;
                self.watch_if(watch, session, &path, WatchKind::Children);
                Response::Children { names, stat }
            }
        };
        Ok((response, Item::default()))
    }

    fn watch_if(&mut self, watch: bool, session: SessionId, path: &str, kind: WatchKind) {
        if watch {
            self.watches.set(session, path, kind);
        }
    }

    /// Fires the watches of a transaction and makes it a step of the queue.
    fn item(&mut self, applied: Applied) -> (Vec<OpResult>, Item) {
        let notices = self
            .watches
            .fire(&applied.changes)
            .into_iter()
            .filter_map(|event| {
                let sink = self.sinks.get(&event.session)?;
                Some((sink.clone(), StoreEvent::Node { path: event.path, kind: event.kind }))
            })
            .collect();
        let zxid = (!applied.changes.is_empty()).then_some(applied.zxid);
        (applied.results, Item { zxid, records: applied.records, notices, answer: None })
    }
}

/// ZooKeeper does not tell the stat of what a multi creates; nobody shall come to rely on it here.
fn forget_created_stat(result: &mut OpResult) {
    if let OpResult::Created { stat, .. } = result {
        *stat = None;
    }
}
