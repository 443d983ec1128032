//! The fetcher's side of an incremental fetch session (KIP-227): what the leader remembers of the last request, and so
//! what the next one must name.
//!
//! Invariant: once a request is built, `partitions` is what the leader will remember when it has read it. If that
//! becomes doubtful the next request is a full one, which begins a new session.

use std::collections::{BTreeMap, BTreeSet};

use wire::error_code::ErrorCode;
use wire::types::{TopicId, TopicName, TopicPartition};

use super::event::{Asked, FetchReply, PartitionReply};
use crate::fetch::session::{INITIAL_EPOCH, NO_SESSION, PartitionKey, TopicRef, next_epoch};

/// The memory of one session, as the leader has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Session {
    id: i32,
    /// The epoch of the next request.
    epoch: i32,
    by_id: bool,
    partitions: BTreeMap<TopicPartition, Asked>,
    /// How many of them are of topics without an id.
    without_id: usize,
    names: BTreeMap<TopicId, TopicName>,
}

/// The part of a request that the session decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Next {
    pub(super) id: i32,
    pub(super) epoch: i32,
    pub(super) by_id: bool,
    pub(super) named: Vec<(TopicPartition, Asked)>,
    pub(super) forgotten: Vec<(TopicPartition, TopicId)>,
}

/// What an answer means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// It fits.
    Partitions(Vec<(TopicPartition, PartitionReply)>),
    /// The leader does not know the session any more: a full fetch may follow at once.
    Lost(ErrorCode),
    /// The leader refuses the request.
    Refused(ErrorCode),
    /// It names other partitions than it should.
    Mismatch,
    /// The leader wants a pause.
    Throttled,
}

impl Session {
    /// What was asked of a partition in the last request or an earlier one of the session.
    pub(super) fn asked(&self, partition: &TopicPartition) -> Option<&Asked> {
        self.partitions.get(partition)
    }

    /// Whether the next request must name everything: it begins a session.
    pub(super) fn is_begun_anew(&self) -> bool {
        self.epoch == INITIAL_EPOCH
    }

    /// The next request, that the leader then answers all of `wanted` and nothing else; `None` if there is nothing to
    /// say. `ids_allowed`: the version may be one that names topics by id.
    pub(super) fn next_all(
        &mut self,
        wanted: Vec<(TopicPartition, Asked)>,
        ids_allowed: bool,
    ) -> Option<Next> {
        let without_id = wanted.iter().filter(|(_, asked)| asked.topic_id.is_zero()).count();
        if !wanted.is_empty() {
            let by_id = ids_allowed && without_id == 0;
            if by_id != self.by_id {
                // A session names topics in one way all its life.
                self.renew();
            }
            self.by_id = by_id;
        }
        self.without_id = without_id;
        let (named, forgotten) =
            if self.is_begun_anew() { self.full(wanted) } else { self.incremental(wanted) };
        self.next(named, forgotten)
    }

    /// The next request if only these partitions are to be asked for otherwise than before, or no longer (`None`).
    /// Gives `None` if that does not do: [`Session::next_all`] must be called then.
    pub(super) fn next_changed(
        &mut self,
        changes: Vec<(TopicPartition, Option<Asked>)>,
        ids_allowed: bool,
    ) -> Option<Option<Next>> {
        let (mut named, mut forgotten) = (Vec::new(), Vec::new());
        for (partition, asked) in changes {
            let known = match asked {
                Some(asked) => self.partitions.insert(partition.clone(), asked),
                None => self.partitions.remove(&partition),
            };
            if known == asked {
                continue;
            }
            self.without_id -= usize::from(known.is_some_and(|it| it.topic_id.is_zero()));
            self.without_id += usize::from(asked.is_some_and(|it| it.topic_id.is_zero()));
            let other_id = asked.is_none_or(|asked| known.is_some_and(|it| it.topic_id != asked.topic_id));
            if let Some(known) = known.filter(|_| other_id && (self.by_id || asked.is_none())) {
                forgotten.push((partition.clone(), known.topic_id));
            }
            if let Some(asked) = asked {
                self.learn(&partition, asked.topic_id);
                named.push((partition, asked));
            }
        }
        let by_id = ids_allowed && self.without_id == 0;
        if by_id != self.by_id && !self.partitions.is_empty() {
            // What the leader remembers and what stands here are no longer the same.
            self.renew();
        }
        if self.is_begun_anew() {
            return None;
        }
        if !forgotten.is_empty() {
            self.learn_all();
        }
        Some(self.next(named, forgotten))
    }

    fn next(
        &self,
        named: Vec<(TopicPartition, Asked)>,
        forgotten: Vec<(TopicPartition, TopicId)>,
    ) -> Option<Next> {
        let silent = self.partitions.is_empty() && forgotten.is_empty();
        (!silent).then_some(Next { id: self.id, epoch: self.epoch, by_id: self.by_id, named, forgotten })
    }

    /// Takes in the answer to the last request.
    pub(super) fn receive(&mut self, reply: FetchReply) -> Received {
        let full = self.is_begun_anew();
        if reply.error.is_error() {
            let error = reply.error;
            if error == ErrorCode::FetchSessionIdNotFound {
                self.restart();
            } else {
                self.renew();
            }
            let unknown =
                matches!(error, ErrorCode::FetchSessionIdNotFound | ErrorCode::InvalidFetchSessionEpoch);
            // A full fetch cannot lack a session: the leader would say so for ever.
            return if unknown && !full { Received::Lost(error) } else { Received::Refused(error) };
        }
        if full && reply.partitions.is_empty() && reply.throttled {
            self.restart();
            return Received::Throttled;
        }
        let session_id = reply.session_id;
        let Some(partitions) = self.resolve(reply.partitions, full) else {
            if full {
                self.restart();
            } else {
                self.renew();
            }
            return Received::Mismatch;
        };
        if session_id == NO_SESSION {
            self.restart();
        } else {
            self.id = session_id;
            self.epoch = if full { 1 } else { next_epoch(self.epoch) };
        }
        Received::Partitions(partitions)
    }

    /// It is not certain what the leader remembers: the next request closes the session, if there is one, and begins
    /// another.
    pub(super) fn renew(&mut self) {
        self.epoch = INITIAL_EPOCH;
    }

    #[cfg(test)]
    pub(super) fn set_epoch(&mut self, epoch: i32) {
        self.epoch = epoch;
    }

    /// There is no session.
    fn restart(&mut self) {
        self.id = NO_SESSION;
        self.epoch = INITIAL_EPOCH;
    }

    fn full(&mut self, wanted: Vec<(TopicPartition, Asked)>) -> Changes {
        self.partitions = wanted.iter().cloned().collect();
        self.learn_all();
        (wanted, Vec::new())
    }

    fn incremental(&mut self, wanted: Vec<(TopicPartition, Asked)>) -> Changes {
        let mut gone = std::mem::take(&mut self.partitions);
        let (mut named, mut forgotten) = (Vec::new(), Vec::new());
        for (partition, asked) in wanted {
            let known = gone.remove(&partition);
            if known != Some(asked) {
                self.learn(&partition, asked.topic_id);
                named.push((partition.clone(), asked));
                // The leader keeps partitions by the id of their topic: the old one is another partition to it.
                if let Some(known) = known.filter(|it| self.by_id && it.topic_id != asked.topic_id) {
                    forgotten.push((partition.clone(), known.topic_id));
                }
            }
            self.partitions.insert(partition, asked);
        }
        forgotten.extend(gone.into_iter().map(|(partition, asked)| (partition, asked.topic_id)));
        if !forgotten.is_empty() {
            self.learn_all();
        }
        (named, forgotten)
    }

    /// Forgets the ids of topics that are no longer part of the session.
    fn learn_all(&mut self) {
        let ids = self.partitions.iter().map(|(partition, asked)| (asked.topic_id, partition.topic.clone()));
        self.names = if self.by_id { ids.collect() } else { BTreeMap::new() };
    }

    fn learn(&mut self, partition: &TopicPartition, id: TopicId) {
        if self.by_id && !self.names.contains_key(&id) {
            self.names.insert(id, partition.topic.clone());
        }
    }

    /// The names of the partitions of an answer: all of the session's in a full one, some of them in another. `None`
    /// if they do not fit.
    fn resolve(
        &self,
        replies: Vec<PartitionReply>,
        full: bool,
    ) -> Option<Vec<(TopicPartition, PartitionReply)>> {
        let mut seen = BTreeSet::new();
        let mut order = Vec::with_capacity(replies.len());
        for reply in replies {
            let partition = self.name_of(&reply.key)?;
            seen.insert(partition.clone());
            order.push((partition, reply));
        }
        let twice = seen.len() != order.len();
        let missing = full && seen.len() != self.partitions.len();
        (!twice && !missing).then_some(order)
    }

    fn name_of(&self, key: &PartitionKey) -> Option<TopicPartition> {
        let topic = match &key.topic {
            TopicRef::Name(name) => name.clone(),
            TopicRef::Id(id) => self.names.get(id)?.clone(),
        };
        let partition = TopicPartition { topic, partition: key.partition };
        let asked = self.partitions.get(&partition)?;
        let fits = match key.topic {
            TopicRef::Name(_) => !self.by_id,
            TopicRef::Id(id) => self.by_id && asked.topic_id == id,
        };
        fits.then_some(partition)
    }
}

type Changes = (Vec<(TopicPartition, Asked)>, Vec<(TopicPartition, TopicId)>);
