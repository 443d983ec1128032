//! An administrator: makes topics, adds partitions, deletes topics, and tries again until it is done.

use std::sync::Arc;

use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::create_partitions_request::CreatePartitionsTopic;
use wire::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use wire::messages::{CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest};

use super::Workload;
use super::topics::{Kind, Stage, Topic};
use crate::world::World;

/// How long the administrator waits before it tries again, in microseconds.
const PAUSE_US: u64 = 200_000;
/// How long the brokers may take over an order, in milliseconds.
const PATIENCE_MS: i32 = 1_500;

/// Makes a topic, then `then`.
pub(super) fn create(
    workload: &Arc<Workload>,
    world: &Arc<World>,
    topic: Topic,
    then: impl FnOnce(&Arc<World>) + Send + 'static,
) {
    let Some(controller) = workload.admin.controller() else {
        return again(workload, world, move |workload, world| create(&workload, world, topic, then));
    };
    let configs = topic.kind.configs().into_iter();
    let configs = configs
        .map(|(name, value)| CreatableTopicConfig { name: Str::from(name), value: Some(Str::from(value)) });
    let creatable = CreatableTopic {
        name: Str::from(topic.name.as_str()),
        num_partitions: topic.partitions,
        replication_factor: topic.kind.replicas(),
        configs: configs.collect(),
        ..CreatableTopic::default()
    };
    let request = CreateTopicsRequest {
        topics: vec![creatable],
        timeout_ms: PATIENCE_MS,
        ..CreateTopicsRequest::default()
    };
    let workload_then = workload.clone();
    workload.admin.call(world, controller, 7, &request, move |world, answer| {
        let code = answer.map(|response| response.topics.first().map_or(-1, |topic| topic.error_code));
        match code.map(ErrorCode::from_code) {
            Ok(Some(ErrorCode::None | ErrorCode::TopicAlreadyExists)) => {
                world.matters(format_args!("topic {} is there", topic.name));
                workload_then.topics.change(&topic.name, |topic| topic.stage = Stage::There);
                workload_then.did("topics created");
                then(world);
            }
            // Too few brokers, no controller, no answer.
            _ => again(&workload_then, world, move |workload, world| create(&workload, world, topic, then)),
        }
    });
}

/// Brings a topic to more partitions.
pub(super) fn grow(workload: &Arc<Workload>, world: &Arc<World>, name: String, count: i32) {
    let Some(controller) = workload.admin.controller() else {
        return again(workload, world, move |workload, world| grow(&workload, world, name, count));
    };
    let topic = CreatePartitionsTopic { name: Str::from(name.as_str()), count, assignments: None };
    let request =
        CreatePartitionsRequest { topics: vec![topic], timeout_ms: PATIENCE_MS, validate_only: false };
    let then = workload.clone();
    workload.admin.call(world, controller, 3, &request, move |world, answer| {
        let code = answer.map(|response| response.results.first().map_or(-1, |result| result.error_code));
        match code.map(ErrorCode::from_code) {
            // The second is what a try gets whose predecessor was done unheard.
            Ok(Some(ErrorCode::None | ErrorCode::InvalidPartitions)) => {
                world.matters(format_args!("topic {name} has {count} partitions"));
                then.topics.change(&name, |topic| topic.partitions = count);
                then.did("topics grown");
            }
            Ok(Some(ErrorCode::UnknownTopicOrPartition)) if !then.topics.is_there(&name) => {}
            _ => again(&then, world, move |workload, world| grow(&workload, world, name, count)),
        }
    });
}

/// Deletes a topic.
pub(super) fn delete(workload: &Arc<Workload>, world: &Arc<World>, name: String) {
    workload.topics.change(&name, |topic| topic.stage = Stage::Leaving);
    let Some(controller) = workload.admin.controller() else {
        return again(workload, world, move |workload, world| delete(&workload, world, name));
    };
    let request = DeleteTopicsRequest {
        topic_names: vec![Str::from(name.as_str())],
        timeout_ms: PATIENCE_MS,
        ..DeleteTopicsRequest::default()
    };
    let then = workload.clone();
    workload.admin.call(world, controller, 5, &request, move |world, answer| {
        let code = answer.map(|response| response.responses.first().map_or(-1, |result| result.error_code));
        match code.map(ErrorCode::from_code) {
            Ok(Some(ErrorCode::None | ErrorCode::UnknownTopicOrPartition)) => {
                world.matters(format_args!("topic {name} is deleted"));
                then.topics.change(&name, |topic| topic.stage = Stage::Gone);
                then.did("topics deleted");
            }
            _ => again(&then, world, move |workload, world| delete(&workload, world, name)),
        }
    });
}

/// Asks who is controller, pauses, and goes on.
fn again(
    workload: &Arc<Workload>,
    world: &Arc<World>,
    then: impl FnOnce(Arc<Workload>, &Arc<World>) + Send + 'static,
) {
    let workload = workload.clone();
    workload.admin.clone().refresh(world, None, move |world| {
        world.schedule.after(PAUSE_US, "admin", move |world| then(workload, world));
    });
}

/// The topics that a run begins with. In every other run records are deleted, in the others a log is compacted.
pub(super) fn first_topics(seed: u64) -> [(&'static str, Kind, i32); 5] {
    let shrinking = if seed.is_multiple_of(2) { Kind::Trimmed } else { Kind::Compacted };
    [
        (Kind::Safe.name(), Kind::Safe, 2),
        ("other", Kind::Safe, 1),
        (Kind::Pair.name(), Kind::Pair, 1),
        (Kind::Unclean.name(), Kind::Unclean, 1),
        (shrinking.name(), shrinking, 1),
    ]
}
