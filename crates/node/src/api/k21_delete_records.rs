//! DeleteRecords (key 21): raises the log start of partitions (KIP-107).

use std::sync::Arc;

use kernel::topic_name;
use wire::error_code::ErrorCode;
use wire::messages::delete_records_response::{DeleteRecordsPartitionResult, DeleteRecordsTopicResult};
use wire::messages::{DeleteRecordsRequest, DeleteRecordsResponse};
use wire::types::{LeaderEpoch, Offset};

use super::errors;
use crate::broker::Broker;
use crate::call::Call;

/// Stands for the high watermark in a request.
const TO_HIGH_WATERMARK: i64 = -1;

/// Answers a DeleteRecords request. This broker is the only replica, so nobody else has to follow.
pub(crate) fn handle(
    broker: &Arc<Broker>,
    _call: &Call,
    request: DeleteRecordsRequest,
) -> DeleteRecordsResponse {
    let topics = request.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|asked| {
            let outcome = delete(broker, &topic.name, asked.partition_index, asked.offset);
            let mut result = DeleteRecordsPartitionResult {
                partition_index: asked.partition_index,
                low_watermark: -1,
                ..DeleteRecordsPartitionResult::default()
            };
            match outcome {
                Ok(low) => result.low_watermark = low.0,
                Err(error) => result.error_code = error.code(),
            }
            result
        });
        DeleteRecordsTopicResult { partitions: partitions.collect(), name: topic.name.clone() }
    });
    DeleteRecordsResponse { topics: topics.collect(), ..DeleteRecordsResponse::default() }
}

fn delete(broker: &Broker, topic: &str, partition: i32, offset: i64) -> Result<Offset, ErrorCode> {
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
    log.increment_log_start(to).map_err(|error| errors::of_log(&error))?;
    Ok(log.positions().log_start)
}
