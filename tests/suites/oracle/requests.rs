//! Requests that many cases start from.

use bytes::Bytes;
use wire::Str;
use wire::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use wire::messages::fetch_request::{FetchPartition, FetchTopic};
use wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use wire::messages::{CreateTopicsRequest, FetchRequest, ListOffsetsRequest, ProduceRequest};

use crate::lab::Side;

/// The timestamp of records, the same for both brokers.
pub const THEN: i64 = 1_700_000_000_000;

/// A topic to be created.
pub fn creatable(name: &str, partitions: i32, replicas: i16, configs: &[(&str, &str)]) -> CreatableTopic {
    let configs = configs
        .iter()
        .map(|(name, value)| CreatableTopicConfig { name: Str::from(*name), value: Some(Str::from(*value)) });
    CreatableTopic {
        name: Str::from(name),
        num_partitions: partitions,
        replication_factor: replicas,
        configs: configs.collect(),
        ..CreatableTopic::default()
    }
}

/// One topic with one replica a partition.
pub fn create_topic(name: &str, partitions: i32, configs: &[(&str, &str)]) -> CreateTopicsRequest {
    create_topics(vec![creatable(name, partitions, 1, configs)])
}

/// Several topics.
pub fn create_topics(topics: Vec<CreatableTopic>) -> CreateTopicsRequest {
    CreateTopicsRequest { topics, timeout_ms: 60_000, validate_only: false }
}

/// A produce for one partition.
pub fn produce(topic: &str, index: i32, acks: i16, records: Option<Bytes>) -> ProduceRequest {
    produce_many(acks, vec![(topic, vec![(index, records)])])
}

/// A produce for several partitions.
pub fn produce_many(acks: i16, topics: Vec<(&str, Vec<(i32, Option<Bytes>)>)>) -> ProduceRequest {
    let topic_data = topics.into_iter().map(|(name, partitions)| TopicProduceData {
        name: Str::from(name),
        partition_data: partitions
            .into_iter()
            .map(|(index, records)| PartitionProduceData { index, records })
            .collect(),
    });
    ProduceRequest { transactional_id: None, acks, timeout_ms: 30_000, topic_data: topic_data.collect() }
}

/// A fetch that does not wait, of one partition, without a session.
pub fn fetch(side: &Side, version: i16, topic: &str, partition: i32, offset: i64) -> FetchRequest {
    let partition = FetchPartition {
        partition,
        fetch_offset: offset,
        partition_max_bytes: 1 << 20,
        ..FetchPartition::default()
    };
    FetchRequest {
        max_wait_ms: 0,
        min_bytes: 0,
        topics: vec![fetch_topic(side, version, topic, vec![partition])],
        ..FetchRequest::default()
    }
}

/// A topic of a fetch, by name or by id as the version asks.
pub fn fetch_topic(side: &Side, version: i16, topic: &str, partitions: Vec<FetchPartition>) -> FetchTopic {
    let mut it = FetchTopic { partitions, ..FetchTopic::default() };
    if version >= 13 {
        it.topic_id = side.id(topic);
    } else {
        it.topic = Str::from(topic);
    }
    it
}

/// A query of offsets of one partition, once for each timestamp.
pub fn list_offsets(topic: &str, partition_index: i32, timestamps: &[i64]) -> ListOffsetsRequest {
    let partitions = timestamps
        .iter()
        .map(|timestamp| ListOffsetsPartition {
            partition_index,
            timestamp: *timestamp,
            ..ListOffsetsPartition::default()
        })
        .collect();
    let topic = ListOffsetsTopic { name: Str::from(topic), partitions };
    ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..ListOffsetsRequest::default() }
}
