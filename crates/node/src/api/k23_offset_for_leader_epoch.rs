//! OffsetForLeaderEpoch (key 23): where an epoch ended in this leader's log (KIP-101, KIP-279, KIP-320).

use std::sync::Arc;

use kernel::epochs::EpochEnd;
use kernel::replica::divergence::told_end;
use wire::error_code::ErrorCode;
use wire::messages::offset_for_leader_epoch_request::OffsetForLeaderPartition;
use wire::messages::offset_for_leader_epoch_response::{EpochEndOffset, OffsetForLeaderTopicResult};
use wire::messages::{OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse};
use wire::types::LeaderEpoch;

use crate::broker::Broker;
use crate::call::Call;

/// Answers an OffsetForLeaderEpoch request.
pub(crate) fn handle(
    broker: &Arc<Broker>,
    _call: &Call,
    request: OffsetForLeaderEpochRequest,
) -> OffsetForLeaderEpochResponse {
    let topics = request.topics.into_iter().map(|topic| OffsetForLeaderTopicResult {
        partitions: topic.partitions.iter().map(|asked| end_offset(broker, &topic.topic, asked)).collect(),
        topic: topic.topic,
    });
    OffsetForLeaderEpochResponse { topics: topics.collect(), ..OffsetForLeaderEpochResponse::default() }
}

fn end_offset(broker: &Broker, topic: &str, asked: &OffsetForLeaderPartition) -> EpochEndOffset {
    let mut answer = EpochEndOffset { partition: asked.partition, ..EpochEndOffset::default() };
    let found = broker.partition(topic, asked.partition).and_then(|partition| {
        partition.check_leader(LeaderEpoch(asked.current_leader_epoch))?;
        let (epoch, end) = partition.log().end_offset_for_epoch(LeaderEpoch(asked.leader_epoch));
        Ok(told_end(EpochEnd { epoch, end }, broker.config().planted_faults))
    });
    match found {
        Ok(told) => (answer.leader_epoch, answer.end_offset) = (told.epoch.0, told.end.0),
        Err(error) => answer.error_code = error.code(),
    }
    debug_assert!(answer.error_code == ErrorCode::None.code() || answer.end_offset == -1);
    answer
}
