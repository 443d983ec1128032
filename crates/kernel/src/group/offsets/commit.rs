//! OffsetCommit and TxnOffsetCommit (KIP-98, KIP-447), and the ends of transactions.

use std::collections::BTreeMap;

use wire::error_code::ErrorCode;
use wire::types::{Millis, Now, Offset, TopicPartition};
use wire::{EncodeError, Str};

use super::Committed;
use crate::group::ids::{AppendId, RequestId};
use crate::group::in_flight::InFlight;
use crate::group::member::owned;
use crate::group::records::Record;
use crate::group::{
    Answer, Batch, Command, CommitRequest, Group, OffsetToCommit, Producer, State, answer, errors,
};

/// A commit that is being written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::group) struct CommitInFlight {
    request: RequestId,
    producer_id: Option<i64>,
    /// What is in the batch; its place in the log is not known yet.
    pub(super) offsets: BTreeMap<TopicPartition, Committed>,
    /// What is decided already.
    pub(super) decided: BTreeMap<TopicPartition, ErrorCode>,
    /// How the transaction ended whose marker overtook the end of the append; in the log it comes after the batch.
    ended: Option<bool>,
}

impl CommitInFlight {
    /// The answer to whoever waits, with one code for all that was to be written.
    pub(in crate::group) fn answer(self, error: ErrorCode) -> (RequestId, Answer) {
        let mut codes = self.decided;
        codes.extend(self.offsets.into_keys().map(|partition| (partition, error)));
        (self.request, Answer::Commit(codes))
    }
}

impl Group {
    pub(in crate::group) fn commit(
        &mut self,
        now: Now,
        request: RequestId,
        commit: CommitRequest,
        out: &mut Vec<Command>,
    ) {
        if let Err(error) = self.check_commit(&commit) {
            let codes = commit.offsets.into_keys().map(|partition| (partition, error));
            return answer(request, Answer::Commit(codes.collect()), out);
        }
        if commit.producer.is_none() {
            self.restart_session(now, &commit.member_id);
        }
        let producer = commit.producer;
        let in_flight = self.sort_out(request, commit);
        if in_flight.offsets.is_empty() {
            let (request, said) = in_flight.answer(ErrorCode::None);
            return answer(request, said, out);
        }
        match self.commit_records(&in_flight.offsets) {
            Ok(records) => {
                let batch = Batch { timestamp: Millis(now.wall_ms), producer, records };
                let partitions: Vec<_> = in_flight.offsets.keys().cloned().collect();
                let append = self.append(batch, InFlight::Commit(in_flight), out);
                self.mark_pending(partitions, producer, append);
            }
            Err(_) => {
                let (request, said) = in_flight.answer(ErrorCode::UnknownServerError);
                answer(request, said, out);
            }
        }
    }

    fn check_commit(&self, commit: &CommitRequest) -> Result<(), ErrorCode> {
        let CommitRequest { member_id, instance_id, generation, producer, .. } = commit;
        if self.state == State::Dead {
            return Err(ErrorCode::CoordinatorNotAvailable);
        }
        let is_plain = producer.is_none();
        if is_plain && *generation < 0 && self.state == State::Empty {
            // KAFKA-14201: without members nobody's ids are looked at.
            return Ok(());
        }
        if *generation >= 0 || !member_id.is_empty() || instance_id.is_some() {
            self.check_member(member_id, instance_id.as_ref())?;
            if *generation != self.generation {
                return Err(ErrorCode::IllegalGeneration);
            }
        } else if is_plain {
            // Offsets of a group with members are theirs to commit.
            return Err(ErrorCode::UnknownMemberId);
        }
        match self.state {
            State::CompletingRebalance if is_plain => Err(ErrorCode::RebalanceInProgress),
            _ => Ok(()),
        }
    }

    /// Parts what is to be written from what is refused: metadata that is too long.
    fn sort_out(&self, request: RequestId, commit: CommitRequest) -> CommitInFlight {
        let max = usize::try_from(self.settings.offset_metadata_max).unwrap_or(0);
        let mut in_flight = CommitInFlight {
            request,
            producer_id: commit.producer.map(|it| it.id),
            offsets: BTreeMap::new(),
            decided: BTreeMap::new(),
            ended: None,
        };
        for (partition, offset) in commit.offsets {
            if is_longer_than(&offset.metadata, max) {
                in_flight.decided.insert(partition, ErrorCode::OffsetMetadataTooLarge);
            } else {
                in_flight.offsets.insert(partition, to_committed(&offset));
            }
        }
        in_flight
    }

    fn commit_records(
        &self,
        offsets: &BTreeMap<TopicPartition, Committed>,
    ) -> Result<Vec<Record>, EncodeError> {
        let version = self.settings.offset_commit_version();
        let record = |(partition, committed): (&TopicPartition, &Committed)| {
            Ok((self.offset_key(partition)?, Some(committed.to_value().encode(version)?)))
        };
        offsets.iter().map(record).collect()
    }

    fn mark_pending(
        &mut self,
        partitions: Vec<TopicPartition>,
        producer: Option<Producer>,
        append: AppendId,
    ) {
        match producer {
            None => self.offsets.pending.extend(partitions.into_iter().map(|it| (it, append))),
            Some(producer) => {
                let open = self.offsets.transactional.entry(producer.id).or_default();
                for partition in partitions {
                    open.entry(partition).or_default().in_flight = Some(append);
                }
            }
        }
    }

    /// The end of the append of a commit.
    pub(in crate::group) fn commit_ended(
        &mut self,
        append: AppendId,
        commit: CommitInFlight,
        outcome: Result<Offset, ErrorCode>,
        out: &mut Vec<Command>,
    ) {
        for (partition, committed) in &commit.offsets {
            let stored = outcome.ok().map(|batch_offset| Committed { batch_offset, ..committed.clone() });
            if let Err(error) = outcome {
                self.offsets.failed(partition, error);
            }
            match (commit.producer_id, commit.ended) {
                (None, _) | (Some(_), Some(true)) => {
                    if self.offsets.pending.get(partition) == Some(&append) {
                        self.offsets.pending.remove(partition);
                    }
                    if let Some(stored) = stored {
                        self.offsets.put(partition.clone(), stored);
                    }
                }
                (Some(_), Some(false)) => {}
                (Some(producer_id), None) => self.transactional_ended(producer_id, partition, append, stored),
            }
        }
        let error = outcome.err().map_or(ErrorCode::None, errors::of_commit);
        let (request, said) = commit.answer(error);
        answer(request, said, out);
    }

    fn transactional_ended(
        &mut self,
        producer_id: i64,
        partition: &TopicPartition,
        append: AppendId,
        stored: Option<Committed>,
    ) {
        let Some(open) = self.offsets.transactional.get_mut(&producer_id) else { return };
        if let Some(entry) = open.get_mut(partition) {
            entry.in_flight.take_if(|it| *it == append);
            let is_later =
                |it: &Committed| entry.appended.as_ref().is_none_or(|b| b.batch_offset < it.batch_offset);
            if let Some(stored) = stored.filter(is_later) {
                entry.appended = Some(stored);
            }
            if entry.appended.is_none() && entry.in_flight.is_none() {
                // KAFKA-7296: a failed append leaves nothing.
                open.remove(partition);
            }
        }
        if open.is_empty() {
            self.offsets.transactional.remove(&producer_id);
        }
    }

    /// A transaction has ended: what it said counts from now on, or never did. What is in the log before the marker,
    /// but is not known to be, becomes like a plain commit that is being written.
    pub(in crate::group) fn transaction_ended(&mut self, producer_id: i64, committed: bool) {
        for in_flight in self.in_flight.values_mut() {
            if let InFlight::Commit(commit) = in_flight
                && commit.producer_id == Some(producer_id)
                && commit.ended.is_none()
            {
                commit.ended = Some(committed);
            }
        }
        let open = self.offsets.transactional.remove(&producer_id).unwrap_or_default();
        for (partition, entry) in open.into_iter().filter(|_| committed) {
            if let Some(append) = entry.in_flight {
                let pending = self.offsets.pending.entry(partition.clone()).or_insert(append);
                *pending = append.max(*pending);
            }
            if let Some(appended) = entry.appended {
                self.offsets.put(partition, appended);
            }
        }
    }
}

/// A copy that does not pin the frame it came in; its place in the log is not known yet.
fn to_committed(offset: &OffsetToCommit) -> Committed {
    Committed {
        batch_offset: Offset::UNKNOWN,
        offset: offset.offset,
        leader_epoch: offset.leader_epoch,
        metadata: owned(&offset.metadata),
        commit_timestamp: offset.commit_timestamp,
        expire_timestamp: offset.expire_timestamp,
    }
}

/// Counts as Java does, in UTF-16 code units; there are never more of them than bytes.
fn is_longer_than(text: &Str, max: usize) -> bool {
    text.len() > max && text.encode_utf16().count() > max
}
