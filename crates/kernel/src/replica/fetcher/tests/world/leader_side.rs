//! A broker that leads: it appends, answers its followers, and moves the high watermark.

use super::*;
use crate::fetch::session::{Answer, PartitionKey};
use crate::replica::divergence::{FetchVerdict, judge_fetch, told_end};

impl World {
    /// Appends batches on the leader `id`.
    pub(in super::super) fn append(&mut self, id: i32, batches: &[Vec<String>]) {
        let Role::Leader(leader) = &self.brokers[&id].role else {
            return self.tell(format!("{id} does not lead"));
        };
        let epoch = leader.leader_epoch().0;
        for records in batches {
            let records: Vec<&str> = records.iter().map(String::as_str).collect();
            self.broker(id).log().append_as_leader(epoch, &records);
        }
        let log_end = Offset(self.log(id).log_end);
        self.lead(id, leader::Event::Appended { log_end });
    }

    /// Records below `offset` are deleted on the leader.
    pub(in super::super) fn delete_records(&mut self, id: i32, offset: i64) {
        self.broker(id).log().set_log_start(offset);
        self.confirmed.retain(|_, batch| batch.last() >= offset);
    }

    /// The latest offset as the leader `id` tells it to consumers (KIP-207).
    pub(in super::super) fn latest_for_consumers(&self, id: i32) -> Result<i64, ErrorCode> {
        let Role::Leader(leader) = &self.brokers[&id].role else {
            return Err(ErrorCode::NotLeaderOrFollower);
        };
        if leader.high_watermark() < leader.epoch_start() {
            return Err(ErrorCode::OffsetNotAvailable);
        }
        Ok(leader.high_watermark().0)
    }

    /// Lets an event happen to a leader; nothing happens to another broker.
    pub(super) fn lead(&mut self, id: i32, event: leader::Event) {
        let now = self.now();
        let mut out = Vec::new();
        if let Role::Leader(leader) = &mut self.broker(id).role {
            leader.step(now, event, &mut out);
            leader.check();
        }
        self.obey_leader(id, out);
    }

    pub(super) fn obey_leader(&mut self, id: i32, commands: Vec<leader::Command>) {
        for command in commands {
            match command {
                leader::Command::AdvanceHighWatermark(offset) => {
                    self.broker(id).log().high_watermark = offset.0;
                    self.tell(format!("{id}: high watermark {offset}"));
                    let log = self.log(id).clone();
                    for batch in log.batches.into_iter().filter(|batch| batch.last() < offset.0) {
                        self.confirmed.insert((batch.base, batch.epoch), batch);
                    }
                }
                leader::Command::SubmitIsr(change) => self.change_isr(id, change),
                leader::Command::Note(_) => {}
            }
        }
    }

    fn change_isr(&mut self, id: i32, change: leader::IsrChange) {
        let current = (change.leader_epoch.0, change.partition_epoch)
            == (self.state.leader_epoch, self.state.partition_epoch);
        let answer = if current {
            self.state.isr = change.isr.iter().map(|member| member.0).collect();
            self.state.partition_epoch += 1;
            let isr = names(&self.state.isr);
            self.tell(format!("controller: isr {isr}"));
            leader::IsrAnswer::Confirmed {
                leader_epoch: change.leader_epoch,
                partition_epoch: self.state.partition_epoch,
                isr: change.isr.clone(),
            }
        } else {
            leader::IsrAnswer::Superseded
        };
        self.lead(id, leader::Event::IsrAnswered { change, answer });
    }

    /// Answers a fetch; `None` if the broker is down. The records go along with the answer.
    pub(super) fn answer_fetch(
        &mut self,
        id: i32,
        follower: i32,
        request: &FetchRequest,
    ) -> Option<(FetchReply, Vec<MemoryBatch>)> {
        if !self.is_up(id) {
            return None;
        }
        let plan = match self.enter_session(id, follower, request) {
            Ok(plan) => plan,
            Err(error) => return Some((refused(error), Vec::new())),
        };
        let mut batches = Vec::new();
        let replies: Vec<_> = plan
            .into_iter()
            .map(|(key, fetch)| (self.read(id, follower, &key, fetch, &mut batches), fetch))
            .collect();
        let reply = self.remember(id, follower, request, replies);
        if reply.partitions.iter().all(|it| it.records_bytes == 0) {
            batches.clear();
        }
        Some((reply, batches))
    }

    fn enter_session(
        &mut self,
        id: i32,
        follower: i32,
        request: &FetchRequest,
    ) -> Result<Vec<(PartitionKey, FetchPartition)>, ErrorCode> {
        let named = request.partitions.iter().map(|(name, asked)| (key(name.partition), asked.fetch));
        let broker = self.broker(id);
        if request.session_epoch == 0 {
            broker.sessions.remove(&follower);
            return Ok(named.collect());
        }
        let session = broker.sessions.get_mut(&follower).filter(|(number, _)| *number == request.session_id);
        let Some((_, session)) = session else { return Err(ErrorCode::FetchSessionIdNotFound) };
        let forgotten = request.forgotten.iter().map(|(name, _)| key(name.partition));
        let begun = session.begin(request.session_epoch, false, named, forgotten);
        begun.map_err(|_| ErrorCode::InvalidFetchSessionEpoch)?;
        Ok(session.partitions().map(|(key, fetch)| (key.clone(), fetch)).collect())
    }

    fn remember(
        &mut self,
        id: i32,
        follower: i32,
        request: &FetchRequest,
        replies: Vec<(PartitionReply, FetchPartition)>,
    ) -> FetchReply {
        let answered = |it: &PartitionReply| Answer {
            has_records: it.records_bytes > 0,
            has_error: it.error.is_error(),
            is_diverging: it.diverging.is_some(),
            has_preferred_replica: false,
            high_watermark: it.high_watermark,
            log_start: it.log_start,
        };
        if request.session_epoch == 0 {
            if replies.is_empty() {
                return reply(0, Vec::new());
            }
            let number = self.next_session;
            self.next_session += 1;
            let partitions = replies.iter().map(|(it, fetch)| (it.key.clone(), *fetch, answered(it)));
            let session = LeaderSession::new(false, partitions);
            self.broker(id).sessions.insert(follower, (number, session));
            return reply(number, replies.into_iter().map(|(it, _)| it).collect());
        }
        let Some((number, session)) = self.broker(id).sessions.get_mut(&follower) else {
            return reply(0, Vec::new());
        };
        if session.is_empty() {
            return reply(0, Vec::new());
        }
        let told = replies.into_iter().map(|(it, _)| it).filter(|it| session.answered(&it.key, answered(it)));
        let told = told.collect();
        reply(*number, told)
    }

    fn read(
        &mut self,
        id: i32,
        follower: i32,
        key: &PartitionKey,
        fetch: FetchPartition,
        batches: &mut Vec<MemoryBatch>,
    ) -> PartitionReply {
        if let Err(error) = self.fence(id, fetch.current_leader_epoch) {
            return failed(key.partition, error);
        }
        let log = self.log(id).clone();
        let offset = fetch.fetch_offset;
        let mut answer = quiet(key.partition, log.high_watermark);
        answer.log_start = Offset(log.log_start);
        if fetch.last_fetched_epoch != LeaderEpoch::UNKNOWN {
            let end = log.end_offset_for(fetch.last_fetched_epoch);
            match judge_fetch(fetch.last_fetched_epoch, offset, end, answer.log_start, self.settings.faults) {
                FetchVerdict::Read => {}
                FetchVerdict::Diverging(end) => return PartitionReply { diverging: Some(end), ..answer },
                FetchVerdict::OutOfRange => return failed(key.partition, ErrorCode::OffsetOutOfRange),
            }
        }
        if offset.0 < log.log_start || offset.0 > log.log_end {
            return failed(key.partition, ErrorCode::OffsetOutOfRange);
        }
        *batches = log.read(offset.0, log.log_end, self.most_batches);
        let (replica, log_start) = (BrokerId(follower), fetch.log_start);
        let leader_end = Offset(log.log_end);
        if let Role::Leader(leader) = &self.broker(id).role {
            let leader_epoch = leader.leader_epoch();
            let broker_epoch = BrokerEpoch(-1);
            let event = leader::Event::FollowerFetched {
                replica,
                broker_epoch,
                leader_epoch,
                offset,
                log_start,
                leader_end,
            };
            self.lead(id, event);
        }
        answer.records_bytes = batches.len();
        if batches.is_empty() {
            // Such a fetch waits, and is answered with what holds in the end.
            answer.high_watermark = Offset(self.log(id).high_watermark);
        }
        answer
    }

    pub(super) fn answer_epochs(&self, id: i32, questions: &[EpochQuestion]) -> Option<Vec<EpochReply>> {
        let answer = |question: &EpochQuestion| {
            let partition = question.partition.clone();
            if let Err(error) = self.fence(id, question.current_leader_epoch) {
                return EpochReply { partition, error, end: EpochEnd::UNDEFINED };
            }
            let mut end = told_end(self.log(id).end_offset_for(question.epoch), self.settings.faults);
            if self.settings.protocol.offset_for_leader_epoch_version() == 0 {
                end.epoch = LeaderEpoch::UNKNOWN;
            }
            EpochReply { partition, error: ErrorCode::None, end }
        };
        self.is_up(id).then(|| questions.iter().map(answer).collect())
    }

    pub(super) fn answer_offsets(
        &self,
        id: i32,
        target: Target,
        asked: &[(TopicPartition, LeaderEpoch)],
    ) -> Option<Vec<ListOffsetsReply>> {
        let answer = |(partition, epoch): &(TopicPartition, LeaderEpoch)| {
            let partition = partition.clone();
            if let Err(error) = self.fence(id, *epoch) {
                return ListOffsetsReply { partition, error, offset: Offset::UNKNOWN };
            }
            let log = self.log(id);
            let offset = Offset(if target == Target::Latest { log.log_end } else { log.log_start });
            ListOffsetsReply { partition, error: ErrorCode::None, offset }
        };
        self.is_up(id).then(|| asked.iter().map(answer).collect())
    }

    /// The leader epoch is compared before anything else, in versions that tell it.
    fn fence(&self, id: i32, asked: LeaderEpoch) -> Result<(), ErrorCode> {
        let known = match &self.brokers[&id].role {
            Role::Leader(leader) => leader.leader_epoch(),
            Role::Follower { leader_epoch, .. } => LeaderEpoch(*leader_epoch),
            Role::None => return Err(ErrorCode::NotLeaderOrFollower),
        };
        if self.settings.protocol.leader_epoch_fencing_supported() {
            if asked < known {
                return Err(ErrorCode::FencedLeaderEpoch);
            }
            if asked > known {
                return Err(ErrorCode::UnknownLeaderEpoch);
            }
        }
        match self.brokers[&id].role {
            Role::Leader(_) => Ok(()),
            _ => Err(ErrorCode::NotLeaderOrFollower),
        }
    }
}
