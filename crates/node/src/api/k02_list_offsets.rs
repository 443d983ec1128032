//! ListOffsets (key 2): offsets by time and by meaning (KIP-79, KIP-207, KIP-405, KIP-734, KIP-1005).

use std::sync::Arc;

use storage::partition_log::{PartitionLog, Positions, TimestampedOffset};
use wire::error_code::ErrorCode;
use wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use wire::messages::list_offsets_response::{ListOffsetsPartitionResponse, ListOffsetsTopicResponse};
use wire::messages::{ListOffsetsRequest, ListOffsetsResponse};
use wire::types::{LeaderEpoch, Offset};

use super::{doubled, errors};
use crate::broker::Broker;
use crate::call::Call;
use crate::partition::Leading;

/// The first version that knows OFFSET_NOT_AVAILABLE.
const FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE: i16 = 5;

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
const LATEST_TIERED: i64 = -5;

/// Answers a ListOffsets request.
pub(crate) fn handle(broker: &Arc<Broker>, call: &Call, request: ListOffsetsRequest) -> ListOffsetsResponse {
    let partitions = |t: &ListOffsetsTopic| {
        let name = t.name.clone();
        t.partitions.iter().map(|p| (name.clone(), p.partition_index)).collect::<Vec<_>>()
    };
    let doubled = doubled(request.topics.iter().flat_map(partitions));
    let query = Query {
        broker,
        version: call.version(),
        replica_id: request.replica_id,
        read_committed: request.isolation_level == 1,
    };
    let answer = |topic: ListOffsetsTopic| {
        let partitions = topic.partitions.iter().map(|asked| {
            if query.version >= 1 && doubled.contains(&(topic.name.clone(), asked.partition_index)) {
                return failed(asked, ErrorCode::InvalidRequest);
            }
            query.partition(&topic.name, asked).unwrap_or_else(|error| failed(asked, error))
        });
        ListOffsetsTopicResponse { partitions: partitions.collect(), name: topic.name.clone() }
    };
    ListOffsetsResponse {
        topics: request.topics.into_iter().map(answer).collect(),
        ..ListOffsetsResponse::default()
    }
}

fn failed(asked: &ListOffsetsPartition, error: ErrorCode) -> ListOffsetsPartitionResponse {
    ListOffsetsPartitionResponse {
        partition_index: asked.partition_index,
        error_code: error.code(),
        ..ListOffsetsPartitionResponse::default()
    }
}

struct Query<'a> {
    broker: &'a Broker,
    version: i16,
    replica_id: i32,
    read_committed: bool,
}

/// An offset that was found, with the record's time and leader epoch where they are known.
struct Found {
    timestamp: i64,
    offset: Offset,
    leader_epoch: LeaderEpoch,
}

const NOTHING: Found = Found { timestamp: -1, offset: Offset::UNKNOWN, leader_epoch: LeaderEpoch::UNKNOWN };

impl Query<'_> {
    fn partition(
        &self,
        topic: &str,
        asked: &ListOffsetsPartition,
    ) -> Result<ListOffsetsPartitionResponse, ErrorCode> {
        let partition = self.broker.partition(topic, asked.partition_index)?;
        let leader_epoch = partition.check_leader(LeaderEpoch(asked.current_leader_epoch))?;
        let epoch_start = partition.while_leading(Leading::epoch_start)?;
        let mut answer = failed(asked, ErrorCode::None);
        if self.version == 0 {
            answer.old_style_offsets = self.old_style(partition.log(), asked)?;
            return Ok(answer);
        }
        let found = self.find(partition.log(), asked.timestamp, leader_epoch, epoch_start)?;
        answer.timestamp = found.timestamp;
        answer.offset = found.offset.0;
        if self.version >= 4 {
            answer.leader_epoch = found.leader_epoch.0;
        }
        Ok(answer)
    }

    /// The offset beyond which this client may see nothing (exclusive).
    fn limit(&self, positions: &Positions) -> Offset {
        if self.replica_id >= 0 {
            positions.log_end
        } else if self.read_committed {
            positions.last_stable
        } else {
            positions.high_watermark
        }
    }

    fn find(
        &self,
        log: &PartitionLog,
        timestamp: i64,
        leader_epoch: LeaderEpoch,
        epoch_start: Offset,
    ) -> Result<Found, ErrorCode> {
        let positions = log.positions();
        let limit = self.limit(&positions);
        // A leader that does not know yet what the one before it had committed must not tell an end that lies below
        // what consumers have seen (KIP-207).
        let beyond = if self.replica_id < 0 && positions.high_watermark < epoch_start {
            let older = self.version < FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE;
            Err(if older { ErrorCode::LeaderNotAvailable } else { ErrorCode::OffsetNotAvailable })
        } else {
            Ok(NOTHING)
        };
        let known = |offset: Offset, leader_epoch| Found { timestamp: -1, offset, leader_epoch };
        match timestamp {
            LATEST => beyond.map(|_| known(limit, leader_epoch)),
            EARLIEST => Ok(known(positions.log_start, log.earliest_epoch())),
            EARLIEST_LOCAL if self.version >= 8 => Ok(known(positions.log_start, log.earliest_epoch())),
            LATEST_TIERED if self.version >= 9 => Ok(NOTHING),
            MAX_TIMESTAMP if self.version >= 7 => {
                let found = log.offset_of_max_timestamp().map_err(|error| errors::of_read(&error))?;
                Self::visible(found, limit).map_or(beyond, Ok)
            }
            at if at >= 0 => {
                let found = log.offset_for_timestamp(at).map_err(|error| errors::of_read(&error))?;
                Self::visible(found, limit).map_or(beyond, Ok)
            }
            _ => Err(ErrorCode::UnsupportedVersion),
        }
    }

    /// What was found, if this client may see it.
    fn visible(found: Option<TimestampedOffset>, limit: Offset) -> Option<Found> {
        let TimestampedOffset { timestamp, offset, leader_epoch } =
            found.filter(|found| found.offset < limit)?;
        Some(Found { timestamp, offset, leader_epoch })
    }

    /// Base offsets of segments, newest first, as the first version of the request asks for them.
    fn old_style(&self, log: &PartitionLog, asked: &ListOffsetsPartition) -> Result<Vec<i64>, ErrorCode> {
        if asked.timestamp < EARLIEST {
            return Err(ErrorCode::UnsupportedVersion);
        }
        let limit = self.limit(&log.positions());
        let max = usize::try_from(asked.max_num_offsets).unwrap_or(0);
        let found = log
            .offsets_before(asked.timestamp, max, self.broker.now())
            .map_err(|error| errors::of_read(&error))?;
        if self.replica_id >= 0 || found.iter().all(|offset| *offset <= limit) {
            return Ok(found.into_iter().map(|offset| offset.0).collect());
        }
        // What lies beyond the limit is told as the limit itself, once, at the head of the list.
        let below = found.into_iter().filter(|offset| *offset < limit);
        Ok(std::iter::once(limit).chain(below).map(|offset| offset.0).take(max).collect())
    }
}
