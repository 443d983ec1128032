//! OffsetDelete (KIP-496) and DeleteGroups.

use std::collections::{BTreeMap, BTreeSet};

use wire::error_code::ErrorCode;
use wire::types::{Now, TopicPartition};

use super::Offsets;
use crate::group::in_flight::InFlight;
use crate::group::{Answer, CONSUMER, Command, Group, RequestId, State, answer};

impl Group {
    pub(in crate::group) fn delete_offsets(
        &mut self,
        now: Now,
        request: RequestId,
        partitions: &BTreeSet<TopicPartition>,
        out: &mut Vec<Command>,
    ) {
        let is_consumer = self.protocol_type.as_ref().is_some_and(|it| *it == *CONSUMER);
        let error = match self.state {
            State::Dead => Some(ErrorCode::GroupIdNotFound),
            State::Empty => None,
            _ if is_consumer => None,
            _ => Some(ErrorCode::NonEmptyGroup),
        };
        if let Some(error) = error {
            return answer(request, Answer::DeleteOffsets(Err(error)), out);
        }
        // What is subscribed to is not known before a generation has begun, nor if it cannot be read: then it is all.
        let subscribed = |it: &TopicPartition| {
            self.subscribed_topics.as_ref().is_none_or(|topics| topics.contains(&it.topic))
        };
        let (kept, gone): (BTreeSet<_>, BTreeSet<_>) =
            partitions.iter().cloned().partition(|it| self.state != State::Empty && subscribed(it));
        let mut codes: BTreeMap<_, _> =
            kept.into_iter().map(|it| (it, ErrorCode::GroupSubscribedToTopic)).collect();
        codes.extend(gone.iter().map(|it| (it.clone(), ErrorCode::None)));
        let removed = self.remove_offsets(&gone, ErrorCode::None);
        self.entomb_and_maybe_die(now, removed, out);
        answer(request, Answer::DeleteOffsets(Ok(codes)), out);
    }

    /// DeleteGroups: only a group without members goes, with all that was committed.
    pub(in crate::group) fn delete(&mut self, now: Now, request: RequestId, out: &mut Vec<Command>) {
        let error = match self.state {
            State::Dead => ErrorCode::GroupIdNotFound,
            State::Empty => ErrorCode::None,
            _ => ErrorCode::NonEmptyGroup,
        };
        if self.state == State::Empty {
            let Offsets { committed, pending, uncertain, .. } = &self.offsets;
            let written: BTreeSet<_> =
                committed.keys().chain(pending.keys()).chain(uncertain).cloned().collect();
            self.entomb(now, written, true, out);
            self.die(ErrorCode::CoordinatorNotAvailable, out);
        }
        answer(request, Answer::Delete(error), out);
    }

    /// Partitions are gone, and with them what was committed for them. As with every expiry, a group that holds nothing
    /// ends, even if it held nothing before.
    pub(in crate::group) fn partitions_deleted(
        &mut self,
        now: Now,
        partitions: &BTreeSet<TopicPartition>,
        out: &mut Vec<Command>,
    ) {
        let removed = self.remove_offsets(partitions, ErrorCode::UnknownTopicOrPartition);
        self.entomb_and_maybe_die(now, removed, out);
    }

    /// Removes offsets in whatever state they are; a commit under way is answered with `code` for them. Returns those
    /// that need a tombstone: what is committed, and what is being written or has failed, which may be in the log.
    fn remove_offsets(
        &mut self,
        partitions: &BTreeSet<TopicPartition>,
        code: ErrorCode,
    ) -> Vec<TopicPartition> {
        let mut removed = Vec::new();
        for partition in partitions {
            let is_pending = self.offsets.pending.remove(partition).is_some();
            let is_committed = self.offsets.committed.remove(partition).is_some();
            let is_uncertain = self.offsets.uncertain.remove(partition);
            if is_pending || is_committed || is_uncertain {
                removed.push(partition.clone());
            }
            for open in self.offsets.transactional.values_mut() {
                open.remove(partition);
            }
        }
        self.offsets.transactional.retain(|_, open| !open.is_empty());
        for in_flight in self.in_flight.values_mut() {
            let InFlight::Commit(commit) = in_flight else { continue };
            for partition in partitions {
                if commit.offsets.remove(partition).is_some() {
                    commit.decided.insert(partition.clone(), code);
                }
            }
        }
        removed
    }
}
