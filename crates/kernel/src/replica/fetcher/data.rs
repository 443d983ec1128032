//! The answer to a fetch: records, offsets, divergence, errors.

use wire::error_code::ErrorCode;
use wire::types::{Offset, TopicPartition};

use super::event::{Command, Failure, FetchReply, Note, PartitionReply, RequestId};
use super::partition::{Lookup, State, Told, Work};
use super::session::Received;
use super::truncation::TruncationCause;
use super::{Question, Step};
use crate::planted::Fault;

impl Step<'_> {
    pub(super) fn fetch_replied(&mut self, id: RequestId, reply: FetchReply) {
        let Some(Question::Fetch) = self.end_request(id) else { return };
        match self.fetcher.session.receive(reply) {
            Received::Partitions(partitions) => {
                for (name, reply) in partitions {
                    self.partition_replied(&name, &reply);
                }
            }
            Received::Lost(error) => self.note(Note::SessionLost(error)),
            Received::Refused(error) => {
                self.note(Note::FetchRefused(error));
                self.delay_all();
            }
            Received::Mismatch => {
                self.note(Note::SessionMismatch);
                self.delay_all();
            }
            Received::Throttled => self.delay_all(),
        }
    }

    fn partition_replied(&mut self, name: &TopicPartition, reply: &PartitionReply) {
        let Some(asked) = self.fetcher.session.asked(name).copied() else { return };
        let Some(partition) = self.fetcher.partitions.get(name) else { return };
        let fits = partition.leader_epoch == asked.fetch.current_leader_epoch
            && partition.fetch_offset == asked.fetch.fetch_offset
            && partition.is_ready(self.mono_ms);
        if !fits {
            self.note(Note::Outdated(name.clone()));
            // The leader believes that its offsets were heard, and would not tell them again in this session.
            self.fetcher.session.renew();
            return;
        }
        match reply.error {
            ErrorCode::None => match reply.diverging {
                // Offsets of an answer that tells divergence are not taken: they may lie above the cut
                // (KAFKA-14704).
                Some(answer) if self.fetcher.settings.is_told_by_fetch() => {
                    if self.fetcher.settings.faults.has(Fault::HighWatermarkOfDivergingReply) {
                        self.take_offsets(name, Told::of(reply));
                    }
                    self.truncate_by(name, asked.fetch.last_fetched_epoch, answer);
                }
                _ => self.received(name, reply),
            },
            ErrorCode::OffsetOutOfRange => self.out_of_range(name),
            ErrorCode::FencedLeaderEpoch => self.fail(name, Failure::Fenced),
            error => {
                self.note(Note::Refused(name.clone(), error));
                self.delay(name);
            }
        }
    }

    fn received(&mut self, name: &TopicPartition, reply: &PartitionReply) {
        let Some(partition) = self.fetcher.partitions.get(name) else { return };
        let Some(offsets) = self.logs.offsets(name) else { return self.fail(name, Failure::Storage) };
        let (fetch_offset, log_end) = (partition.fetch_offset, offsets.log_end);
        let is_of_leader = partition.last_fetched_epoch == Some(partition.leader_epoch);
        if fetch_offset != log_end {
            return self.fail(name, Failure::UnexpectedLogEnd { fetch_offset, log_end });
        }
        let told = Told::of(reply);
        if reply.records_bytes > 0 {
            if told.log_start == log_end && offsets.first_segment < log_end && !is_of_leader {
                return self.start_anew(name, told);
            }
            if let Some(work) = self.begin_work(name, Work::Append { told, room_made: false }) {
                self.out.push(Command::Append(work));
            }
            return;
        }
        // The lag is known without records too, and the last epoch stays (KAFKA-15080, KAFKA-15510).
        let lag = lag(told.high_watermark, fetch_offset);
        if partition.lag != Some(lag) {
            let first = partition.lag.is_none();
            if let Some(partition) = self.fetcher.partitions.get_mut(name) {
                partition.lag = Some(lag);
            }
            if first {
                self.fetcher.partitions.move_to_end(name);
            }
        }
        self.take_offsets(name, told);
    }

    /// Empties a log that ends where the leader's starts. Below, the leader may have forgotten where epochs ended, and could
    /// not tell that the logs differ; if that stayed, it would be there again after a crash that lost the log start.
    fn start_anew(&mut self, name: &TopicPartition, told: Told) {
        let start = told.log_start;
        if let Some(work) = self.begin_work(name, Work::StartAnew { told }) {
            let cause = TruncationCause::BelowLeaderStart { leader_start: start };
            self.out.push(Command::TruncateFullyAndStartAt(work, start, cause));
        }
    }

    /// Follows the leader's high watermark, then its log start.
    pub(super) fn take_offsets(&mut self, name: &TopicPartition, told: Told) {
        let Some(leader_epoch) = self.fetcher.partitions.get(name).map(|it| it.leader_epoch) else { return };
        let Some(offsets) = self.logs.offsets(name) else { return self.fail(name, Failure::Storage) };
        let high_watermark = told.high_watermark.min(offsets.log_end).max(offsets.log_start);
        if high_watermark != offsets.high_watermark {
            self.out.push(Command::SetHighWatermark(name.clone(), leader_epoch, high_watermark));
        }
        if told.log_start > offsets.log_start {
            if let Some(partition) = self.fetcher.partitions.get_mut(name) {
                partition.leader_log_start = told.log_start;
            }
            self.out.push(Command::SetLogStart(name.clone(), leader_epoch, told.log_start));
        }
    }

    fn out_of_range(&mut self, name: &TopicPartition) {
        let Some(offset) = self.fetcher.partitions.get(name).map(|it| it.fetch_offset) else { return };
        self.fetcher.partitions.set_state(name, State::OutOfRange(Lookup::Latest));
        self.note(Note::OutOfRange(name.clone(), offset));
    }
}

/// How many records a log that ends at `log_end` is behind.
pub(super) fn lag(high_watermark: Offset, log_end: Offset) -> i64 {
    high_watermark.0.saturating_sub(log_end.0).max(0)
}
