//! Reads the partitions of a plan, in order, within the limits of each and of all.

use std::sync::Arc;

use storage::disk::FileRange;
use storage::log_config::TopicCompression;
use storage::partition_log::{LogRead, ReadBound};
use storage::txn_index::AbortedTxn;
use wire::batch::CompressionType;
use wire::error_code::ErrorCode;
use wire::types::{BrokerId, LeaderEpoch, Offset};

use super::plan::{FIRST_SERVED_VERSION, Plan, TOPIC_ID_VERSION, Target};
use crate::api::errors;
use crate::broker::Broker;
use crate::metrics::TopicMeters;
use crate::partition::Partition;

/// The first version whose consumers know zstd (KIP-110).
const FIRST_VERSION_WITH_ZSTD: i16 = 10;

/// What one partition is answered.
#[derive(Debug)]
pub(super) struct PartitionAnswer {
    pub(super) error: ErrorCode,
    pub(super) high_watermark: Offset,
    pub(super) last_stable: Offset,
    pub(super) log_start: Offset,
    pub(super) diverging: Option<(LeaderEpoch, Offset)>,
    pub(super) aborted: Option<Vec<AbortedTxn>>,
    pub(super) records: Option<FileRange>,
    /// Told to clients that went to the wrong broker (KIP-951).
    pub(super) current_leader: Option<(BrokerId, LeaderEpoch)>,
    /// Counts for the topic; none if the partition is not here.
    pub(super) meters: Option<Arc<TopicMeters>>,
}

impl PartitionAnswer {
    pub(super) fn failed(error: ErrorCode) -> Self {
        Self {
            error,
            high_watermark: Offset::UNKNOWN,
            last_stable: Offset::UNKNOWN,
            log_start: Offset::UNKNOWN,
            diverging: None,
            aborted: None,
            records: None,
            current_leader: None,
            meters: None,
        }
    }

    /// A partition that is not read at all: Kafka's list of aborted transactions is empty then, not null.
    fn refused(error: ErrorCode) -> Self {
        Self { aborted: Some(Vec::new()), ..Self::failed(error) }
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
        found.urgent |= answer.error != ErrorCode::None || answer.diverging.is_some();
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
    if let kernel::fetch::session::TopicRef::Id(id) = target.key.topic
        && plan.version >= TOPIC_ID_VERSION
        && !partition.topic_id().is_zero()
        && partition.topic_id() != id
    {
        return PartitionAnswer {
            meters: Some(partition.meters().clone()),
            ..failed(ErrorCode::InconsistentTopicId)
        };
    }
    let answer = read_partition(&partition, plan, target, left, first).unwrap_or_else(failed);
    PartitionAnswer { meters: Some(partition.meters().clone()), ..answer }
}

fn read_partition(
    partition: &Partition,
    plan: &Plan,
    target: &Target,
    left: usize,
    first: bool,
) -> Result<PartitionAnswer, ErrorCode> {
    let asked = target.asked;
    // Any negative epoch stands for none.
    partition.check_leader(asked.current_leader_epoch.max(LeaderEpoch::UNKNOWN))?;
    if plan.replica_id.0 >= 0 {
        // This broker is the only replica: whoever else claims to be one is not in the assignment.
        let knows_epoch = asked.current_leader_epoch != LeaderEpoch::UNKNOWN;
        return Err(if knows_epoch { ErrorCode::UnknownLeaderEpoch } else { ErrorCode::NotLeaderOrFollower });
    }
    if plan.version < FIRST_SERVED_VERSION {
        return Err(ErrorCode::UnsupportedVersion);
    }
    let log = partition.log();
    if plan.version < FIRST_VERSION_WITH_ZSTD
        && log.config().compression_type == TopicCompression::Codec(CompressionType::Zstd)
    {
        return Ok(PartitionAnswer::refused(ErrorCode::UnsupportedCompressionType));
    }
    if asked.last_fetched_epoch != LeaderEpoch::UNKNOWN
        && let Some(diverging) = diverging(partition, plan, target)?
    {
        return Ok(diverging);
    }
    let bound = if plan.read_committed { ReadBound::LastStable } else { ReadBound::HighWatermark };
    let max_bytes = usize::try_from(asked.max_bytes).unwrap_or(0).min(left);
    let read =
        log.read(asked.fetch_offset, max_bytes, first, bound).map_err(|error| errors::of_read(&error))?;
    Ok(filled(read, plan))
}

fn filled(read: LogRead, plan: &Plan) -> PartitionAnswer {
    PartitionAnswer {
        error: ErrorCode::None,
        high_watermark: read.positions.high_watermark,
        last_stable: read.positions.last_stable,
        log_start: read.positions.log_start,
        diverging: None,
        aborted: if plan.read_committed { Some(read.aborted) } else { None },
        // A batch that does not fit is left out; its reader comes again when it is the first of the answer.
        records: read.range.filter(|range| range.len > 0 && !read.first_batch_incomplete),
        current_leader: None,
        meters: None,
    }
}

/// Where the fetcher's last epoch ended, if that is not where the fetcher believes (KIP-595).
fn diverging(
    partition: &Partition,
    _plan: &Plan,
    target: &Target,
) -> Result<Option<PartitionAnswer>, ErrorCode> {
    let asked = target.asked;
    let (epoch, end) = partition.log().end_offset_for_epoch(asked.last_fetched_epoch);
    if epoch == LeaderEpoch::UNKNOWN || end == Offset::UNKNOWN {
        return Err(ErrorCode::OffsetOutOfRange);
    }
    if epoch >= asked.last_fetched_epoch && end >= asked.fetch_offset {
        return Ok(None);
    }
    let positions = partition.log().positions();
    Ok(Some(PartitionAnswer {
        error: ErrorCode::None,
        high_watermark: positions.high_watermark,
        last_stable: positions.last_stable,
        log_start: positions.log_start,
        diverging: Some((epoch, end)),
        aborted: None,
        records: None,
        current_leader: None,
        meters: None,
    }))
}
