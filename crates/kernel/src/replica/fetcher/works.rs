//! What became of work on a log.

use wire::types::{LeaderEpoch, Offset, TopicPartition};

use super::Step;
use super::data::lag;
use super::event::{AppendFailure, Command, Failure, Note, WorkId};
use super::partition::{State, Told, Work};
use super::truncation::TruncationCause;

impl Step<'_> {
    pub(super) fn truncated(
        &mut self,
        id: WorkId,
        name: &TopicPartition,
        log_end: Offset,
        latest_epoch: Option<LeaderEpoch>,
    ) {
        match self.fetcher.partitions.end_work(name, id) {
            Some(Work::Truncate { done }) => {
                let told_by_fetch = self.fetcher.settings.is_told_by_fetch();
                let Some(partition) = self.fetcher.partitions.get_mut(name) else { return };
                let fetched = partition.state() == State::Fetching;
                let same = (partition.fetch_offset, partition.last_fetched_epoch) == (log_end, latest_epoch);
                partition.moved(log_end, latest_epoch);
                // If the logs may still differ below, the next fetch tells, or the next question.
                let state = if done || told_by_fetch { State::Fetching } else { State::Truncating };
                self.fetcher.partitions.set_state(name, state);
                if fetched && same {
                    // No answer of a sound leader leaves things as they were; the same fetch would get it again.
                    self.delay(name);
                }
            }
            Some(Work::Resolve { lag }) => self.resume(name, log_end, latest_epoch, lag),
            Some(Work::MakeRoom { told }) => {
                self.append_after_cut(name, (log_end, latest_epoch), Work::Append { told, room_made: true });
            }
            Some(Work::StartAnew { told }) => {
                self.append_after_cut(name, (log_end, latest_epoch), Work::Append { told, room_made: false });
            }
            Some(Work::Append { .. }) | None => {}
        }
    }

    fn append_after_cut(
        &mut self,
        name: &TopicPartition,
        (log_end, latest_epoch): (Offset, Option<LeaderEpoch>),
        append: Work,
    ) {
        if let Some(partition) = self.fetcher.partitions.get_mut(name) {
            partition.moved(log_end, latest_epoch);
        }
        if let Some(work) = self.begin_work(name, append) {
            self.out.push(Command::Append(work));
        }
    }

    pub(super) fn appended(
        &mut self,
        id: WorkId,
        name: &TopicPartition,
        log_end: Offset,
        last_epoch: Option<LeaderEpoch>,
    ) {
        let Some(Work::Append { told, .. }) = self.fetcher.partitions.end_work(name, id) else { return };
        let Some(partition) = self.fetcher.partitions.get_mut(name) else { return };
        if partition.fetch_offset == log_end {
            self.note(Note::NothingAppended(name.clone()));
            self.delay(name);
            return;
        }
        partition.fetch_offset = log_end;
        partition.last_fetched_epoch = last_epoch.or(partition.last_fetched_epoch);
        partition.lag = Some(lag(told.high_watermark, log_end));
        self.fetcher.partitions.move_to_end(name);
        self.take_offsets(name, told);
    }

    pub(super) fn append_failed(&mut self, id: WorkId, name: &TopicPartition, failure: AppendFailure) {
        let Some(Work::Append { told, room_made }) = self.fetcher.partitions.end_work(name, id) else {
            return;
        };
        match failure {
            AppendFailure::Corrupt => {
                self.note(Note::CorruptRecords(name.clone()));
                self.delay(name);
            }
            AppendFailure::UnexpectedOffset { first, last } => {
                if room_made || !self.make_room(name, told, first, last) {
                    self.fail(name, Failure::UnexpectedRecords { first, last });
                }
            }
            AppendFailure::Storage => self.fail(name, Failure::Storage),
        }
    }

    /// The leader's first batch begins below the log end and reaches it. A log without records may begin inside that
    /// batch, and then begins with it (KAFKA-6975). So may any other log that ends inside it if the leader's log starts
    /// there: the leader no longer knows where the epoch of that batch began, and could not tell that the logs part below.
    /// What is gone then is no longer part of the leader's log.
    fn make_room(&mut self, name: &TopicPartition, told: Told, first: Offset, last: Offset) -> bool {
        let Some(offsets) = self.logs.offsets(name) else { return false };
        let empty = offsets.log_start == offsets.log_end;
        let leader_starts_inside = first < told.log_start && told.log_start <= last;
        if last < offsets.log_end || first.0 < 0 || !(empty || leader_starts_inside) {
            return false;
        }
        let Some(work) = self.begin_work(name, Work::MakeRoom { told }) else { return false };
        let cause = if empty {
            TruncationCause::StartsInsideBatch { first }
        } else {
            TruncationCause::EndsInsideBatch { first }
        };
        self.out.push(Command::TruncateFullyAndStartAt(work, first, cause));
        true
    }

    pub(super) fn log_failed(&mut self, name: &TopicPartition, leader_epoch: LeaderEpoch) {
        if self.is_in(name, leader_epoch) {
            self.fail(name, Failure::Storage);
        }
    }

    /// Whoever took the role away has removed the partition, or will add it anew.
    pub(super) fn fenced(&mut self, name: &TopicPartition, leader_epoch: LeaderEpoch) {
        if self.is_in(name, leader_epoch) {
            self.fetcher.partitions.remove(name);
        }
    }
}
