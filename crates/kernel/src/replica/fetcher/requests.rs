//! What to ask next: epochs before anything is fetched, then offsets of those out of range, then records.

use wire::types::{LeaderEpoch, Offset, TopicId, TopicPartition};

use super::event::{Asked, Command, EpochQuestion, FetchRequest, LogWork, Note, RequestId, Target, WorkId};
use super::partition::{State, Work};
use super::session::Next;
use super::truncation::TruncationCause;
use super::{Question, Step};
use crate::fetch::session::FetchPartition;

/// How often all partitions are looked at, in milliseconds: a log start may move without anybody saying so.
const LOOK_AT_ALL_MS: i64 = 1_000;

impl Step<'_> {
    /// Begins the next request, if nothing is under way.
    pub(super) fn go_on(&mut self) {
        if !self.is_idle() {
            return;
        }
        if !self.fetcher.partitions.all_settled() {
            self.begin_truncation();
            if self.is_idle() {
                self.look_up_offsets();
            }
        }
        if self.is_idle() {
            self.fetch();
        }
    }

    fn is_idle(&self) -> bool {
        self.fetcher.under_way.is_none() && !self.fetcher.partitions.any_work()
    }

    /// Asks for the ends of the latest epochs; where no epoch is known here, truncates to the high watermark. The
    /// question waits until those truncations are done.
    fn begin_truncation(&mut self) {
        let may_ask = self.fetcher.settings.may_ask_epochs();
        let (mut questions, mut cuts) = (Vec::new(), Vec::new());
        for (name, partition) in self.fetcher.partitions.in_order() {
            if partition.state() != State::Truncating || partition.is_delayed(self.mono_ms) {
                continue;
            }
            match self.logs.latest_epoch(name).filter(|_| may_ask) {
                Some(epoch) => {
                    let (partition, current_leader_epoch) = (name.clone(), partition.leader_epoch);
                    questions.push(EpochQuestion { partition, current_leader_epoch, epoch });
                }
                None => cuts.push((name.clone(), partition.fetch_offset)),
            }
        }
        if cuts.is_empty() {
            self.ask_epochs(questions);
        }
        for (name, offset) in cuts {
            self.truncate(&name, offset, TruncationCause::NoLocalEpoch, Work::Truncate { done: true });
        }
    }

    fn ask_epochs(&mut self, questions: Vec<EpochQuestion>) {
        if questions.is_empty() {
            return;
        }
        let asked = questions.iter().map(|it| (it.partition.clone(), (it.epoch, it.current_leader_epoch)));
        let id = self.begin_request(Question::Epochs(asked.collect()));
        self.out.push(Command::SendOffsetsForLeaderEpoch(id, questions));
    }

    fn look_up_offsets(&mut self) {
        for target in [Target::Latest, Target::Earliest] {
            let due = self.fetcher.partitions.in_order().filter(|(_, it)| {
                matches!(it.state(), State::OutOfRange(lookup) if lookup.target() == target)
                    && !it.is_delayed(self.mono_ms)
            });
            let asked: Vec<(TopicPartition, LeaderEpoch)> =
                due.map(|(name, it)| (name.clone(), it.leader_epoch)).collect();
            if !asked.is_empty() {
                let id = self.begin_request(Question::Offsets(target, asked.iter().cloned().collect()));
                self.out.push(Command::SendListOffsets(id, target, asked));
                return;
            }
        }
    }

    fn fetch(&mut self) {
        let look_at_all = self.mono_ms >= self.fetcher.look_at_all_ms || self.fetcher.session.is_begun_anew();
        let next = if look_at_all { None } else { self.fetch_touched() };
        let next = next.unwrap_or_else(|| self.fetch_all());
        let Some(next) = next else { return };
        let id = self.begin_request(Question::Fetch);
        self.out.push(Command::SendFetch(FetchRequest {
            id,
            session_id: next.id,
            session_epoch: next.epoch,
            by_id: next.by_id,
            partitions: next.named,
            forgotten: next.forgotten,
        }));
    }

    /// A fetch that names only what has happened since the last one; `None` if that does not do.
    fn fetch_touched(&mut self) -> Option<Option<Next>> {
        let touched = self.fetcher.partitions.take_touched();
        let mut changes = Vec::with_capacity(touched.len());
        for name in touched {
            let wanted = self.wanted(&name);
            changes.push((name, wanted));
        }
        let ids_allowed = self.ids_allowed();
        self.fetcher.session.next_changed(changes, ids_allowed)
    }

    /// A fetch of everything that is ready, as far as the session does not know it.
    fn fetch_all(&mut self) -> Option<Next> {
        self.fetcher.partitions.take_touched();
        let names: Vec<_> = self.fetcher.partitions.in_order().map(|(name, _)| name.clone()).collect();
        let wanted = names.into_iter().filter_map(|name| self.wanted(&name).map(|asked| (name, asked)));
        let wanted = wanted.collect();
        let delays = self.fetcher.partitions.iter().filter_map(|(_, it)| it.delayed_until_ms);
        let next_end = delays.filter(|end| *end > self.mono_ms).min().unwrap_or(i64::MAX);
        self.fetcher.look_at_all_ms = self.mono_ms.saturating_add(LOOK_AT_ALL_MS).min(next_end);
        let ids_allowed = self.ids_allowed();
        self.fetcher.session.next_all(wanted, ids_allowed)
    }

    /// What to ask of a partition; `None` if it is not ready, or its log cannot be used.
    fn wanted(&mut self, name: &TopicPartition) -> Option<Asked> {
        let partition = self.fetcher.partitions.get(name).filter(|it| it.is_ready(self.mono_ms))?;
        let Some(offsets) = self.logs.offsets(name) else {
            self.note(Note::LogUnavailable(name.clone()));
            self.delay(name);
            return None;
        };
        let told_by_fetch = self.fetcher.settings.is_told_by_fetch();
        let known = partition.last_fetched_epoch.filter(|_| told_by_fetch);
        let fetch = FetchPartition {
            max_bytes: self.fetcher.settings.partition_max_bytes,
            fetch_offset: partition.fetch_offset,
            current_leader_epoch: partition.leader_epoch,
            log_start: offsets.log_start.max(partition.leader_log_start),
            last_fetched_epoch: known.unwrap_or(LeaderEpoch::UNKNOWN),
        };
        Some(Asked { topic_id: partition.topic_id.unwrap_or(TopicId::ZERO), fetch })
    }

    /// Whether the version may be one that names topics by id.
    fn ids_allowed(&self) -> bool {
        let protocol = self.fetcher.settings.protocol;
        protocol.fetch_version(true) > protocol.fetch_version(false)
    }

    fn begin_request(&mut self, question: Question) -> RequestId {
        let id = RequestId(self.fetcher.next_request);
        self.fetcher.next_request += 1;
        self.fetcher.under_way = Some((id, question));
        id
    }

    /// Begins to cut a log.
    pub(super) fn truncate(
        &mut self,
        name: &TopicPartition,
        offset: Offset,
        cause: TruncationCause,
        work: Work,
    ) {
        if let Some(work) = self.begin_work(name, work) {
            self.out.push(Command::TruncateTo(work, offset, cause));
        }
    }

    pub(super) fn begin_work(&mut self, name: &TopicPartition, work: Work) -> Option<LogWork> {
        let leader_epoch = self.fetcher.partitions.get(name)?.leader_epoch;
        let id = WorkId(self.fetcher.next_work);
        self.fetcher.next_work += 1;
        self.fetcher.partitions.begin_work(name, id, work);
        Some(LogWork { id, partition: name.clone(), leader_epoch })
    }
}
