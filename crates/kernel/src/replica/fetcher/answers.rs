//! Answers about epochs and offsets, and requests that have none.

use wire::error_code::ErrorCode;
use wire::types::{LeaderEpoch, Offset, TopicPartition};

use super::event::{Command, EpochReply, Failure, ListOffsetsReply, Note, RequestId, Target};
use super::partition::{Lookup, State, Work};
use super::truncation::{TruncationCause, decide};
use super::{Question, Step};
use crate::epochs::EpochEnd;

impl Step<'_> {
    /// The question of the request `id`, which is no longer under way; `None` if it was not.
    pub(super) fn end_request(&mut self, id: RequestId) -> Option<Question> {
        self.fetcher.under_way.take_if(|(current, _)| *current == id).map(|(_, question)| question)
    }

    pub(super) fn request_failed(&mut self, id: RequestId) {
        match self.end_request(id) {
            None => {}
            Some(Question::Fetch) => {
                self.fetcher.session.renew();
                self.delay_all();
            }
            Some(Question::Epochs(asked)) => {
                for (name, (_, leader_epoch)) in asked {
                    if self.is_in(&name, leader_epoch) {
                        self.delay(&name);
                    }
                }
            }
            Some(Question::Offsets(_, asked)) => {
                for (name, leader_epoch) in asked {
                    self.give_up_lookup(&name, leader_epoch);
                }
            }
        }
    }

    pub(super) fn epochs_replied(&mut self, id: RequestId, replies: Vec<EpochReply>) {
        let Some(Question::Epochs(mut asked)) = self.end_request(id) else { return };
        for reply in replies {
            let name = reply.partition.clone();
            match asked.remove(&name) {
                None => self.note(Note::NotAsked(name)),
                Some((epoch, leader_epoch)) if self.is_truncating(&name, leader_epoch) => {
                    self.epoch_replied(&name, epoch, &reply);
                }
                // The partition was added anew: it asks again in its present epoch (KAFKA-7786).
                Some(_) => self.note(Note::Outdated(name)),
            }
        }
        for (name, (_, leader_epoch)) in asked {
            self.unanswered(&name, leader_epoch);
        }
    }

    fn epoch_replied(&mut self, name: &TopicPartition, asked: LeaderEpoch, reply: &EpochReply) {
        match reply.error {
            ErrorCode::None => self.truncate_by(name, asked, reply.end),
            ErrorCode::FencedLeaderEpoch => self.fail(name, Failure::Fenced),
            error => {
                self.note(Note::Refused(name.clone(), error));
                self.delay(name);
            }
        }
    }

    /// Truncates as the leader's answer about the epoch `asked` wants it.
    pub(super) fn truncate_by(&mut self, name: &TopicPartition, asked: LeaderEpoch, answer: EpochEnd) {
        let Some(partition) = self.fetcher.partitions.get(name) else { return };
        let Some(offsets) = self.logs.offsets(name) else { return self.fail(name, Failure::Storage) };
        let lookup = |epoch| self.logs.end_offset_for(name, epoch);
        let decision = decide(answer, partition.fetch_offset, offsets.log_end, lookup);
        let cause = if answer.end == Offset::UNKNOWN {
            TruncationCause::LeaderKnowsNoEpoch { asked }
        } else {
            TruncationCause::LeaderEpochEnd { answer }
        };
        self.truncate(name, decision.offset, cause, Work::Truncate { done: decision.done });
    }

    pub(super) fn offsets_replied(&mut self, id: RequestId, replies: Vec<ListOffsetsReply>) {
        let Some(Question::Offsets(target, mut asked)) = self.end_request(id) else { return };
        for reply in replies {
            let name = reply.partition.clone();
            match asked.remove(&name) {
                None => self.note(Note::NotAsked(name)),
                Some(leader_epoch) => self.offset_replied(&name, leader_epoch, target, &reply),
            }
        }
        for (name, leader_epoch) in asked {
            self.unanswered(&name, leader_epoch);
            self.give_up_lookup(&name, leader_epoch);
        }
    }

    fn offset_replied(
        &mut self,
        name: &TopicPartition,
        leader_epoch: LeaderEpoch,
        target: Target,
        reply: &ListOffsetsReply,
    ) {
        let current = self.fetcher.partitions.get(name).filter(|it| it.leader_epoch == leader_epoch);
        let lookup = match current.map(|it| it.state()) {
            Some(State::OutOfRange(lookup)) if lookup.target() == target => lookup,
            _ => return self.note(Note::Outdated(name.clone())),
        };
        match reply.error {
            ErrorCode::None if reply.offset.0 >= 0 => self.found_offset(name, lookup, reply.offset),
            ErrorCode::None => {
                self.note(Note::Unanswered(name.clone()));
                self.give_up_lookup(name, leader_epoch);
            }
            ErrorCode::FencedLeaderEpoch => self.fail(name, Failure::Fenced),
            error => {
                self.note(Note::Refused(name.clone(), error));
                self.give_up_lookup(name, leader_epoch);
            }
        }
    }

    fn found_offset(&mut self, name: &TopicPartition, lookup: Lookup, offset: Offset) {
        let Some(log_end) = self.logs.offsets(name).map(|it| it.log_end) else {
            return self.fail(name, Failure::Storage);
        };
        match lookup {
            Lookup::Latest if offset < log_end => {
                let cause = TruncationCause::LeaderEndsBelow { leader_end: offset };
                self.truncate(name, offset, cause, Work::Resolve { lag: 0 });
            }
            Lookup::Latest => {
                let earliest = Lookup::Earliest { leader_end: offset };
                self.fetcher.partitions.set_state(name, State::OutOfRange(earliest));
            }
            Lookup::Earliest { leader_end } if offset > log_end => {
                let cause = TruncationCause::BelowLeaderStart { leader_start: offset };
                let lag = leader_end.0.saturating_sub(offset.0).max(0);
                if let Some(work) = self.begin_work(name, Work::Resolve { lag }) {
                    self.out.push(Command::TruncateFullyAndStartAt(work, offset, cause));
                }
            }
            Lookup::Earliest { leader_end } => {
                let lag = leader_end.0.saturating_sub(log_end.0).max(0);
                self.resume(name, log_end, self.logs.latest_epoch(name), lag);
            }
        }
    }

    /// Fetches again after the offset was out of range. If nothing has changed, only after a pause: the leader would
    /// refuse it again.
    pub(super) fn resume(
        &mut self,
        name: &TopicPartition,
        offset: Offset,
        latest_epoch: Option<LeaderEpoch>,
        lag: i64,
    ) {
        let Some(partition) = self.fetcher.partitions.get_mut(name) else { return };
        let same = (partition.fetch_offset, partition.last_fetched_epoch) == (offset, latest_epoch);
        partition.moved(offset, latest_epoch);
        partition.lag = Some(lag);
        self.fetcher.partitions.set_state(name, State::Fetching);
        if same {
            self.delay(name);
        } else {
            self.fetcher.partitions.move_to_end(name);
        }
    }

    /// An offset could not be had: back to fetching, from where it was, after a pause.
    fn give_up_lookup(&mut self, name: &TopicPartition, leader_epoch: LeaderEpoch) {
        let current = self.fetcher.partitions.get(name).filter(|it| it.leader_epoch == leader_epoch);
        let Some(partition) = current else { return };
        let unknown = partition.fetch_offset.0 < 0;
        let state = if unknown { State::OutOfRange(Lookup::Latest) } else { State::Fetching };
        self.fetcher.partitions.set_state(name, state);
        self.delay(name);
    }

    fn unanswered(&mut self, name: &TopicPartition, leader_epoch: LeaderEpoch) {
        if self.is_in(name, leader_epoch) {
            self.note(Note::Unanswered(name.clone()));
            self.delay(name);
        }
    }

    fn is_truncating(&self, name: &TopicPartition, leader_epoch: LeaderEpoch) -> bool {
        let partition = self.fetcher.partitions.get(name);
        partition.is_some_and(|it| it.leader_epoch == leader_epoch && it.state() == State::Truncating)
    }
}
