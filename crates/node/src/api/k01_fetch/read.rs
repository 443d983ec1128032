//! Reads the partitions of a plan, in order, within the limits of each and of all.

use std::sync::Arc;

use kernel::epochs::EpochEnd;
use kernel::fetch::session::{FetchPartition, TopicRef};
use kernel::replica::divergence::{FetchVerdict, judge_fetch};
use storage::disk::FileRange;
use storage::log_config::TopicCompression;
use storage::partition_log::{PartitionLog, Positions, ReadBound};
use storage::txn_index::AbortedTxn;
use wire::batch::CompressionType;
use wire::error_code::ErrorCode;
use wire::types::{BrokerId, LeaderEpoch, Offset};

use super::plan::{FIRST_SERVED_VERSION, Plan, TOPIC_ID_VERSION, Target};
use crate::api::errors;
use crate::broker::Broker;
use crate::partition::{FollowerFetch, Partition};

/// The first version whose consumers know zstd (KIP-110).
const FIRST_VERSION_WITH_ZSTD: i16 = 10;

/// What one partition is answered.
#[derive(Debug)]
pub(super) struct PartitionAnswer {
    pub(super) error: ErrorCode,
    pub(super) high_watermark: Offset,
    pub(super) last_stable: Offset,
    pub(super) log_start: Offset,
    /// The log end when it was read; not told.
    pub(super) log_end: Offset,
    /// The epoch of the leadership that a follower's fetch was read in; not told.
    pub(super) leader_epoch: LeaderEpoch,
    pub(super) diverging: Option<EpochEnd>,
    pub(super) aborted: Option<Vec<AbortedTxn>>,
    pub(super) records: Option<FileRange>,
    /// The follower that the consumer should read from instead; it is given no records then (KIP-392).
    pub(super) preferred: Option<BrokerId>,
    /// Told to clients that went to the wrong broker (KIP-951).
    pub(super) current_leader: Option<(BrokerId, LeaderEpoch)>,
    /// The partition, if it is here.
    pub(super) partition: Option<Arc<Partition>>,
}

impl PartitionAnswer {
    pub(super) fn failed(error: ErrorCode) -> Self {
        Self {
            error,
            high_watermark: Offset::UNKNOWN,
            last_stable: Offset::UNKNOWN,
            log_start: Offset::UNKNOWN,
            log_end: Offset::UNKNOWN,
            leader_epoch: LeaderEpoch::UNKNOWN,
            diverging: None,
            aborted: None,
            records: None,
            preferred: None,
            current_leader: None,
            partition: None,
        }
    }

    /// A partition that is not read at all: Kafka's list of aborted transactions is empty then, not null.
    fn refused(error: ErrorCode) -> Self {
        Self { aborted: Some(Vec::new()), ..Self::failed(error) }
    }

    /// Records may follow, or there are none: no error, the logs do not part, and nobody else is to be asked.
    pub(super) fn is_read(&self) -> bool {
        self.error == ErrorCode::None && self.diverging.is_none() && self.preferred.is_none()
    }

    /// The number of bytes of records.
    pub(super) fn bytes(&self) -> usize {
        self.records.as_ref().map_or(0, |range| range.len)
    }
}

/// The outcome of one round of reading; answers stand in the order of the plan's targets.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) answers: Vec<PartitionAnswer>,
    bytes: i64,
    urgent: bool,
}

impl Found {
    /// Whether the fetcher should be answered now rather than wait for more.
    pub(super) fn satisfies(&self, plan: &Plan) -> bool {
        self.urgent || plan.targets.is_empty() || self.bytes >= plan.min_bytes
    }
}

/// Reads every target once.
pub(super) fn read(broker: &Arc<Broker>, plan: &Plan) -> Found {
    let mut found = Found { answers: Vec::with_capacity(plan.targets.len()), ..Found::default() };
    let mut left = plan.max_bytes;
    for target in &plan.targets {
        let answer = read_target(broker, plan, target, left, found.bytes == 0);
        left = left.saturating_sub(answer.bytes());
        found.bytes = found.bytes.saturating_add(i64::try_from(answer.bytes()).unwrap_or(i64::MAX));
        found.urgent |= !answer.is_read();
        found.answers.push(answer);
    }
    found
}

fn read_target(
    broker: &Arc<Broker>,
    plan: &Plan,
    target: &Target,
    left: usize,
    first: bool,
) -> PartitionAnswer {
    let Some(topic) = &target.topic else {
        return PartitionAnswer::refused(ErrorCode::UnknownTopicId);
    };
    let failed = |error| {
        // Old consumers do not know the error of a failed disk; they would stop instead of asking again.
        let old = plan.version <= 5 && error == ErrorCode::KafkaStorageError;
        let mut answer = PartitionAnswer::failed(if old { ErrorCode::NotLeaderOrFollower } else { error });
        if matches!(error, ErrorCode::NotLeaderOrFollower | ErrorCode::FencedLeaderEpoch) {
            answer.current_leader = broker.known_leader(topic.as_str(), target.key.partition);
        }
        answer
    };
    let partition = match broker.partition(topic.as_str(), target.key.partition) {
        Ok(partition) => partition,
        Err(ErrorCode::UnknownTopicOrPartition) => {
            return PartitionAnswer::refused(ErrorCode::UnknownTopicOrPartition);
        }
        Err(error) => return failed(error),
    };
    if let TopicRef::Id(id) = target.key.topic
        && plan.version >= TOPIC_ID_VERSION
        && !partition.topic_id().is_zero()
        && partition.topic_id() != id
    {
        let answer = failed(ErrorCode::InconsistentTopicId);
        return PartitionAnswer { partition: Some(partition), ..answer };
    }
    let answer = match preferred(broker, &partition, plan, target) {
        Some(Ok(answer)) => answer,
        Some(Err(error)) => failed(error),
        None => read_partition(&partition, plan, target, left, first).unwrap_or_else(failed),
    };
    PartitionAnswer { partition: Some(partition), ..answer }
}

fn read_partition(
    partition: &Partition,
    plan: &Plan,
    target: &Target,
    left: usize,
    first: bool,
) -> Result<PartitionAnswer, ErrorCode> {
    // Any negative epoch stands for none.
    let asked_epoch = target.asked.current_leader_epoch.max(LeaderEpoch::UNKNOWN);
    let max_bytes = usize::try_from(target.asked.max_bytes).unwrap_or(0).min(left);
    if plan.may_read_from_follower() {
        partition.check_epoch(asked_epoch)?;
        return read_log(partition.log(), plan, target, max_bytes, first);
    }
    let epoch = partition.check_leader(asked_epoch)?;
    if !plan.is_from_follower() {
        return read_log(partition.log(), plan, target, max_bytes, first);
    }
    if !partition.is_replica(plan.replica_id) {
        // Its metadata may be newer than ours (KAFKA-13837, KAFKA-14078).
        let told_epoch = asked_epoch != LeaderEpoch::UNKNOWN;
        return Err(if told_epoch { ErrorCode::UnknownLeaderEpoch } else { ErrorCode::NotLeaderOrFollower });
    }
    // What a follower is given must be this leadership's: the log is not cut before it was read.
    partition.while_leading(|leading| {
        if leading.epoch() != epoch {
            return Err(ErrorCode::NotLeaderOrFollower);
        }
        let answer = read_log(partition.log(), plan, target, max_bytes, first)?;
        Ok(PartitionAnswer { leader_epoch: epoch, ..answer })
    })?
}

/// The answer that sends a consumer to a follower in its rack; `None` if it is served here. Only a leader sends
/// anybody away (KAFKA-13778).
fn preferred(
    broker: &Broker,
    partition: &Partition,
    plan: &Plan,
    target: &Target,
) -> Option<Result<PartitionAnswer, ErrorCode>> {
    let place = plan.place.as_ref()?;
    let image = broker.image();
    let rack_of = |id: BrokerId| {
        let info = image.brokers().get(&id)?;
        info.endpoint(&place.listener).and(info.rack.as_deref())
    };
    let preferred = partition.preferred_read_replica(target.asked.fetch_offset, &place.rack, rack_of)?;
    let checked = partition.check_epoch(target.asked.current_leader_epoch.max(LeaderEpoch::UNKNOWN));
    Some(
        checked
            .map(|_| PartitionAnswer { preferred: Some(preferred), ..offsets(partition.log().positions()) }),
    )
}

fn read_log(
    log: &PartitionLog,
    plan: &Plan,
    target: &Target,
    max_bytes: usize,
    first: bool,
) -> Result<PartitionAnswer, ErrorCode> {
    if plan.version < FIRST_SERVED_VERSION {
        return Err(ErrorCode::UnsupportedVersion);
    }
    if plan.version < FIRST_VERSION_WITH_ZSTD
        && log.config().compression_type == TopicCompression::Codec(CompressionType::Zstd)
    {
        return Ok(PartitionAnswer::refused(ErrorCode::UnsupportedCompressionType));
    }
    let asked = target.asked;
    if asked.last_fetched_epoch != LeaderEpoch::UNKNOWN
        && let Some(diverging) = diverging(log, plan, target)?
    {
        return Ok(diverging);
    }
    let read = log.read(asked.fetch_offset, max_bytes, first, plan.bound());
    let read = read.map_err(|error| errors::of_read(&error))?;
    Ok(PartitionAnswer {
        aborted: if plan.bound() == ReadBound::LastStable { Some(read.aborted) } else { None },
        // A batch that does not fit is left out; its reader comes again when it is the first of the answer.
        records: read.range.filter(|range| range.len > 0 && !read.first_batch_incomplete),
        ..offsets(read.positions)
    })
}

/// Where the fetcher's last epoch ended, if that is not where the fetcher believes (KIP-595).
fn diverging(log: &PartitionLog, plan: &Plan, target: &Target) -> Result<Option<PartitionAnswer>, ErrorCode> {
    let FetchPartition { last_fetched_epoch, fetch_offset, .. } = target.asked;
    let positions = log.positions();
    let (epoch, end) = log.end_offset_for_epoch(last_fetched_epoch);
    let end = EpochEnd { epoch, end };
    match judge_fetch(last_fetched_epoch, fetch_offset, end, positions.log_start, plan.faults) {
        FetchVerdict::Read => Ok(None),
        FetchVerdict::OutOfRange => Err(ErrorCode::OffsetOutOfRange),
        FetchVerdict::Diverging(end) => {
            Ok(Some(PartitionAnswer { diverging: Some(end), ..offsets(positions) }))
        }
    }
}

/// An answer with these offsets and nothing else.
fn offsets(positions: Positions) -> PartitionAnswer {
    PartitionAnswer {
        high_watermark: positions.high_watermark,
        last_stable: positions.last_stable,
        log_start: positions.log_start,
        log_end: positions.log_end,
        ..PartitionAnswer::failed(ErrorCode::None)
    }
}

/// Notes how far the follower has copied each partition that was read for it.
pub(super) fn note_progress(broker: &Arc<Broker>, plan: &Plan, found: &Found) {
    if !plan.is_from_follower() {
        return;
    }
    for (target, answer) in plan.targets.iter().zip(&found.answers).filter(|(_, answer)| answer.is_read()) {
        let Some(partition) = &answer.partition else { continue };
        partition.follower_fetched(
            broker,
            FollowerFetch {
                replica: plan.replica_id,
                broker_epoch: plan.broker_epoch,
                leader_epoch: answer.leader_epoch,
                offset: target.asked.fetch_offset,
                log_start: target.asked.log_start,
                leader_end: answer.log_end,
            },
        );
    }
}
