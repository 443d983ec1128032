//! DescribeProducers (key 61): who writes to a partition, and since which offset a transaction is open (KIP-664). Any
//! replica answers, whether it leads or follows.

use std::sync::Arc;

use kernel::producer::ProducerEntry;
use kernel::topic_name;
use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::describe_producers_response::{PartitionResponse, ProducerState, TopicResponse};
use wire::messages::{DescribeProducersRequest, DescribeProducersResponse};

use super::Answer;
use crate::broker::Broker;

/// Handles a DescribeProducers request, on a thread that may wait until nobody writes to the logs.
pub(crate) fn handle(broker: &Arc<Broker>, answer: Answer, request: DescribeProducersRequest) {
    let then = broker.clone();
    broker.run_job(move || {
        let topics = request.topics.into_iter().map(|topic| TopicResponse {
            partitions: topic.partition_indexes.iter().map(|it| describe(&then, &topic.name, *it)).collect(),
            name: topic.name,
        });
        let response =
            DescribeProducersResponse { topics: topics.collect(), ..DescribeProducersResponse::default() };
        answer.send(&response);
    });
}

fn describe(broker: &Broker, topic: &str, partition: i32) -> PartitionResponse {
    let mut answer = PartitionResponse { partition_index: partition, ..PartitionResponse::default() };
    match producers(broker, topic, partition) {
        Ok(producers) => answer.active_producers = producers.iter().map(told).collect(),
        Err(refusal) => {
            answer.error_code = refusal.code.code();
            answer.error_message = refusal.of_topic.then(|| Str::from(refusal.code.message()));
        }
    }
    answer
}

/// Why nothing is told; as in Kafka, in words only where it is the whole topic.
struct Refused {
    code: ErrorCode,
    of_topic: bool,
}

fn producers(broker: &Broker, topic: &str, partition: i32) -> Result<Vec<ProducerEntry>, Refused> {
    if topic_name::check(topic).is_err() {
        return Err(Refused { code: ErrorCode::InvalidTopicException, of_topic: true });
    }
    if broker.image().topic(topic).is_none() {
        return Err(Refused { code: ErrorCode::UnknownTopicOrPartition, of_topic: true });
    }
    match broker.partition(topic, partition) {
        Ok(partition) => Ok(partition.log().producers()),
        Err(code) => Err(Refused { code, of_topic: false }),
    }
}

fn told(producer: &ProducerEntry) -> ProducerState {
    ProducerState {
        producer_id: producer.producer_id,
        producer_epoch: i32::from(producer.producer_epoch),
        last_sequence: producer.last_sequence(),
        last_timestamp: producer.last_timestamp,
        coordinator_epoch: producer.coordinator_epoch,
        current_txn_start_offset: producer.open_txn_first_offset.map_or(-1, |offset| offset.0),
    }
}
