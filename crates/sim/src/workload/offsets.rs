//! A client that asks again and again where partitions end.

use std::sync::Arc;

use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::ListOffsetsRequest;
use wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};

use super::Workload;
use super::client::Client;
use crate::check::offsets::Told;
use crate::world::World;

/// The pause between two questions, in microseconds.
const PAUSE_US: std::ops::RangeInclusive<u64> = 20_000..=150_000;
/// The timestamp that stands for the end.
const LATEST: i64 = -1;

/// Begins to ask for one partition.
pub(super) fn begin(
    workload: &Arc<Workload>,
    world: &Arc<World>,
    client: Arc<Client>,
    topic: String,
    partition: i32,
) {
    let pause_us = world.chances.clients.within(PAUSE_US);
    let workload = workload.clone();
    world.schedule.after(pause_us, "offsets", move |world| ask(&workload, world, client, topic, partition));
}

fn ask(workload: &Arc<Workload>, world: &Arc<World>, client: Arc<Client>, topic: String, partition: i32) {
    if !workload.topics.is_there(&topic) {
        return;
    }
    let workload = workload.clone();
    let Some((leader, epoch)) = client.leader(&topic, partition) else {
        return client.clone().refresh(world, Some(&topic.clone()), move |world| {
            begin(&workload, world, client, topic, partition);
        });
    };
    let asked = ListOffsetsPartition {
        partition_index: partition,
        current_leader_epoch: epoch,
        timestamp: LATEST,
        ..ListOffsetsPartition::default()
    };
    let request = ListOffsetsRequest {
        replica_id: -1,
        topics: vec![ListOffsetsTopic { name: Str::from(topic.as_str()), partitions: vec![asked] }],
        ..ListOffsetsRequest::default()
    };
    let asked_us = world.schedule.now_us();
    client.clone().call(world, leader, 7, &request, move |world, answer| {
        let told = answer.ok().and_then(|response| {
            response
                .topics
                .first()
                .and_then(|topic| topic.partitions.first())
                .map(|it| (it.error_code, it.offset))
        });
        match told {
            Some((code, offset)) if code == ErrorCode::None.code() => {
                workload.ends.told(world, &topic, partition, Told { epoch, offset, asked_us });
                workload.did("ends told");
                begin(&workload, world, client, topic, partition);
            }
            _ => client.clone().refresh(world, Some(&topic.clone()), move |world| {
                begin(&workload, world, client, topic, partition);
            }),
        }
    });
}
