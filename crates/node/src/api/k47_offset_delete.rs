//! OffsetDelete (key 47): an administrator deletes what a group has committed for partitions (KIP-496).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kernel::group::gate::Api;
use kernel::group::{self, Event};
use wire::error_code::ErrorCode;
use wire::messages::offset_delete_request::OffsetDeleteRequestTopic;
use wire::messages::offset_delete_response::{OffsetDeleteResponsePartition, OffsetDeleteResponseTopic};
use wire::messages::{OffsetDeleteRequest, OffsetDeleteResponse};
use wire::types::TopicPartition;

use super::Answer;
use crate::broker::Broker;
use crate::drive::groups;

/// Handles an OffsetDelete request. Partitions that do not exist are not looked for (KAFKA-8954).
pub(crate) fn handle(broker: &Arc<Broker>, mut answer: Answer, request: OffsetDeleteRequest) {
    answer.unpin();
    let image = broker.image();
    let named = request.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|it| TopicPartition::new(topic.name.as_str(), it.partition_index))
    });
    let is_known = |it: &TopicPartition| image.partition(it.topic.as_str(), it.partition).is_some();
    let known: BTreeSet<_> = named.filter(is_known).collect();
    let topics = request.topics;
    groups::ask(
        broker,
        Api::DeleteOffsets,
        &request.group_id,
        |id| Event::DeleteOffsets(id, known),
        move |outcome| {
            let codes = match outcome {
                Ok(group::Answer::DeleteOffsets(codes)) => codes,
                Ok(_) => Err(ErrorCode::UnknownServerError),
                Err(error) => Err(error),
            };
            answer.send(&response(topics, codes));
        },
    );
}

fn response(
    topics: Vec<OffsetDeleteRequestTopic>,
    codes: Result<BTreeMap<TopicPartition, ErrorCode>, ErrorCode>,
) -> OffsetDeleteResponse {
    let codes = match codes {
        Ok(codes) => codes,
        Err(error) => {
            return OffsetDeleteResponse { error_code: error.code(), ..OffsetDeleteResponse::default() };
        }
    };
    let topics = topics.into_iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|it| {
            let partition = TopicPartition::new(topic.name.as_str(), it.partition_index);
            let code = codes.get(&partition).copied().unwrap_or(ErrorCode::UnknownTopicOrPartition);
            OffsetDeleteResponsePartition { partition_index: it.partition_index, error_code: code.code() }
        });
        OffsetDeleteResponseTopic { partitions: partitions.collect(), name: topic.name.clone() }
    });
    OffsetDeleteResponse { topics: topics.collect(), ..OffsetDeleteResponse::default() }
}
