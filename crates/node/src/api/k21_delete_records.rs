//! DeleteRecords (key 21): raises the log start of partitions (KIP-107).
//!
//! The leader raises its own at once; the answer waits until the live followers have raised theirs ([`wait`]).

mod wait;

use std::sync::Arc;

use kernel::planted::Fault;
use kernel::topic_name;
use wire::error_code::ErrorCode;
use wire::messages::delete_records_response::{DeleteRecordsPartitionResult, DeleteRecordsTopicResult};
use wire::messages::{DeleteRecordsRequest, DeleteRecordsResponse};
use wire::types::{LeaderEpoch, Offset};

use self::wait::Unfollowed;
use super::{Answer, errors};
use crate::broker::Broker;
use crate::partition::Partition;

/// Stands for the high watermark in a request.
const TO_HIGH_WATERMARK: i64 = -1;
/// What is told where there is no low watermark.
const NO_LOW_WATERMARK: i64 = -1;

/// Handles a DeleteRecords request, on a thread that may wait until nobody writes to the logs.
pub(crate) fn handle(broker: &Arc<Broker>, answer: Answer, request: DeleteRecordsRequest) {
    let then = broker.clone();
    broker.run_job(move || delete_all(&then, answer, request));
}

fn delete_all(broker: &Arc<Broker>, answer: Answer, request: DeleteRecordsRequest) {
    let timeout_ms = i64::from(request.timeout_ms.max(0));
    let mut unfollowed = Vec::new();
    let topics = request.topics.into_iter().enumerate().map(|(at, topic)| {
        let partitions = topic.partitions.iter().enumerate().map(|(place, asked)| {
            let outcome = delete(broker, &topic.name, asked.partition_index, asked.offset);
            let mut result = DeleteRecordsPartitionResult {
                partition_index: asked.partition_index,
                low_watermark: NO_LOW_WATERMARK,
                ..DeleteRecordsPartitionResult::default()
            };
            match outcome {
                Ok(deleted) => {
                    result.low_watermark = deleted.low_watermark.0;
                    if deleted.low_watermark < deleted.offset {
                        let Deleted { partition, offset, .. } = deleted;
                        unfollowed.push(Unfollowed { place: (at, place), partition, offset });
                    }
                }
                Err(error) => result.error_code = error.code(),
            }
            result
        });
        DeleteRecordsTopicResult { partitions: partitions.collect(), name: topic.name.clone() }
    });
    let response = DeleteRecordsResponse { topics: topics.collect(), ..DeleteRecordsResponse::default() };
    if unfollowed.is_empty() {
        answer.send(&response);
    } else {
        wait::wait(broker, answer, response, unfollowed, timeout_ms);
    }
}

/// A partition whose log start was raised here.
struct Deleted {
    partition: Arc<Partition>,
    /// Where the log is to begin in all replicas.
    offset: Offset,
    /// Where it begins in the one that is furthest behind.
    low_watermark: Offset,
}

fn delete(broker: &Broker, topic: &str, partition: i32, offset: i64) -> Result<Deleted, ErrorCode> {
    if topic_name::is_internal(topic) {
        let known = broker.image().topic(topic).is_some();
        return Err(if known {
            ErrorCode::InvalidTopicException
        } else {
            ErrorCode::UnknownTopicOrPartition
        });
    }
    let partition = broker.partition(topic, partition)?;
    partition.check_leader(LeaderEpoch::UNKNOWN)?;
    let log = partition.log();
    if !log.config().cleanup_delete {
        return Err(ErrorCode::PolicyViolation);
    }
    let to = if offset == TO_HIGH_WATERMARK { log.positions().high_watermark } else { Offset(offset) };
    if to.0 < 0 || to > log.positions().high_watermark {
        return Err(ErrorCode::OffsetOutOfRange);
    }
    // The role lasts until the log start is raised: a follower takes it from its leader only.
    let low_watermark = partition.while_leading(|leading| {
        log.increment_log_start(to).map_err(|error| errors::of_log(&error))?;
        Ok(leading.low_watermark(log))
    })??;
    let is_awaited = !broker.config().planted_faults.has(Fault::DeletionsNotAwaited);
    Ok(Deleted { partition, offset: to, low_watermark: if is_awaited { low_watermark } else { to } })
}
