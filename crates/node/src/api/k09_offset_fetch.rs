//! OffsetFetch (key 9): how far groups have come (KIP-447, KIP-709).
//!
//! Partitions need not exist, and neither do groups: there is no offset then, which is no error. Version 0 reads from the
//! metadata store; there an offset that does not exist is an unknown partition.

use std::sync::Arc;

use kernel::group::gate::Api;
use kernel::group::{FetchedOffset, Group};
use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};
use wire::messages::{OffsetFetchRequest, OffsetFetchResponse};
use wire::types::TopicPartition;

use super::Answer;
use crate::broker::Broker;
use crate::drive::{groups, old_offsets};

/// The first version that has a place for an error of the group.
const FIRST_VERSION_WITH_ERROR: i16 = 2;
/// The first version that asks for several groups.
const FIRST_BATCHED_VERSION: i16 = 8;

/// Topics and their partitions that are asked for; none asks for all that the group has committed.
type Asked = Option<Vec<(Str, Vec<i32>)>>;
/// Topics and what is told of their partitions.
type Fetched = Vec<(Str, Vec<(i32, FetchedOffset)>)>;

/// Handles an OffsetFetch request.
pub(crate) fn handle(broker: &Arc<Broker>, answer: Answer, request: OffsetFetchRequest) {
    let version = answer.call().version();
    let stable = request.require_stable;
    if version >= FIRST_BATCHED_VERSION {
        let groups = request.groups.into_iter().map(|it| {
            let topics = it.topics;
            let asked = topics.map(|all| all.into_iter().map(|it| (it.name, it.partition_indexes)).collect());
            of_group(it.group_id.clone(), fetch(broker, &it.group_id, &asked, stable))
        });
        let groups = groups.collect();
        return answer.send(&OffsetFetchResponse { groups, ..OffsetFetchResponse::default() });
    }
    let topics = request.topics;
    let asked: Asked = topics.map(|all| all.into_iter().map(|it| (it.name, it.partition_indexes)).collect());
    if version == 0 {
        return fetch_from_store(broker, answer, &request.group_id, asked.unwrap_or_default());
    }
    let response = match fetch(broker, &request.group_id, &asked, stable) {
        Ok(fetched) => of_single(fetched),
        Err(error) if version >= FIRST_VERSION_WITH_ERROR => {
            OffsetFetchResponse { error_code: error.code(), ..OffsetFetchResponse::default() }
        }
        // KAFKA-19246: it must stand somewhere.
        Err(error) => of_single(everywhere(asked, error)),
    };
    answer.send(&response);
}

fn fetch(broker: &Arc<Broker>, group_id: &str, asked: &Asked, stable: bool) -> Result<Fetched, ErrorCode> {
    groups::look(broker, Api::Fetch, group_id, |group| match (asked, group) {
        (Some(asked), group) => {
            let topics = asked.iter().map(|(name, indexes)| {
                let partitions = indexes.iter().map(|index| {
                    let partition = TopicPartition::new(name.as_str(), *index);
                    let none = FetchedOffset::none(ErrorCode::None);
                    (*index, group.map_or(none, |group| group.fetch_offset(&partition, stable)))
                });
                (name.clone(), partitions.collect())
            });
            topics.collect()
        }
        (None, Some(group)) => all_of(group, stable),
        (None, None) => Fetched::new(),
    })
}

fn all_of(group: &Group, stable: bool) -> Fetched {
    let mut fetched = Fetched::new();
    for (partition, _) in group.committed() {
        let told = (partition.partition, group.fetch_offset(partition, stable));
        match fetched.last_mut().filter(|(name, _)| **name == *partition.topic.as_str()) {
            Some((_, partitions)) => partitions.push(told),
            None => fetched.push((Str::from(partition.topic.as_str()), vec![told])),
        }
    }
    fetched
}

fn everywhere(asked: Asked, error: ErrorCode) -> Fetched {
    let of_topic = |indexes: Vec<i32>| indexes.into_iter().map(|index| (index, FetchedOffset::none(error)));
    asked.into_iter().flatten().map(|(name, indexes)| (name, of_topic(indexes).collect())).collect()
}

fn fetch_from_store(broker: &Arc<Broker>, mut answer: Answer, group_id: &str, asked: Vec<(Str, Vec<i32>)>) {
    answer.unpin();
    let image = broker.image();
    let asked: Vec<_> =
        asked.into_iter().map(|(name, indexes)| (Str::from(name.as_str()), indexes)).collect();
    let partitions = asked
        .iter()
        .flat_map(|(name, indexes)| indexes.iter().map(|index| TopicPartition::new(name.as_str(), *index)));
    let partitions: Vec<_> = partitions.collect();
    old_offsets::fetch(broker, group_id, &partitions, move |offsets| {
        let mut offsets = offsets.into_iter();
        let topics = asked.into_iter().map(|(name, indexes)| {
            let is_known = image.topic(&name).is_some();
            let partitions = indexes.into_iter().map(|index| {
                let told = match offsets.next() {
                    Some(Ok(Some(offset))) if is_known => {
                        FetchedOffset { offset, ..FetchedOffset::none(ErrorCode::None) }
                    }
                    Some(Err(error)) if is_known => FetchedOffset::none(error),
                    _ => FetchedOffset::none(ErrorCode::UnknownTopicOrPartition),
                };
                (index, told)
            });
            (name, partitions.collect())
        });
        answer.send(&of_single(topics.collect()));
    });
}

fn of_single(fetched: Fetched) -> OffsetFetchResponse {
    let topics = fetched.into_iter().map(|(name, partitions)| OffsetFetchResponseTopic {
        name,
        partitions: partitions
            .into_iter()
            .map(|(index, it)| OffsetFetchResponsePartition {
                partition_index: index,
                committed_offset: it.offset.0,
                committed_leader_epoch: it.leader_epoch.0,
                metadata: Some(it.metadata),
                error_code: it.error.code(),
            })
            .collect(),
    });
    OffsetFetchResponse { topics: topics.collect(), ..OffsetFetchResponse::default() }
}

fn of_group(group_id: Str, fetched: Result<Fetched, ErrorCode>) -> OffsetFetchResponseGroup {
    let fetched = match fetched {
        Ok(fetched) => fetched,
        Err(error) => {
            let error_code = error.code();
            return OffsetFetchResponseGroup { group_id, error_code, ..OffsetFetchResponseGroup::default() };
        }
    };
    let topics = fetched.into_iter().map(|(name, partitions)| OffsetFetchResponseTopics {
        name,
        partitions: partitions
            .into_iter()
            .map(|(index, it)| OffsetFetchResponsePartitions {
                partition_index: index,
                committed_offset: it.offset.0,
                committed_leader_epoch: it.leader_epoch.0,
                metadata: Some(it.metadata),
                error_code: it.error.code(),
            })
            .collect(),
    });
    OffsetFetchResponseGroup { group_id, topics: topics.collect(), ..OffsetFetchResponseGroup::default() }
}
