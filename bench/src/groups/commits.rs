//! Commits of one offset each, five in flight on each of two connections.

use anyhow::{Result, ensure};
use bytes::Bytes;
use interop::broker::Broker;
use interop::calls;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::{OffsetCommitRequest, OffsetCommitResponse, ResponseHeader};
use kafka_protocol::protocol::{Decodable, StrBytes};

use super::{group_id, until_coordinated};
use crate::Effort;
use crate::figures::{Figures, Goal, Row};
use crate::load::{self, Plan};

const TOPIC: &str = "committed";
const GROUPS: [&str; 2] = ["one", "two"];
pub(super) const VERSION: i16 = 8;
/// One request for so many bytes of a run's volume.
const BYTES_PER_COMMIT: u64 = 16 << 10;

const SPEED: Row =
    Row { name: "commits of one offset, 5 in flight", unit: "commits/s", goal: Goal::RatioAtLeast(3.0) };
const COST: Row =
    Row { name: "commits of one offset, 5 in flight", unit: "CPU-us/commit", goal: Goal::RatioAtMost(0.3) };

/// Makes the topics, and works the broker warm.
pub(super) fn prepare(broker: &mut Broker, effort: Effort) -> Result<()> {
    let address = broker.bootstrap();
    calls::create_topic(&address, TOPIC, 1, &[])?;
    for group in GROUPS {
        until_coordinated(&address, group)?;
    }
    run(&address, effort.warm_up / BYTES_PER_COMMIT).map(drop)
}

/// One run.
pub(super) fn measure(broker: &mut Broker, effort: Effort, figures: &mut Figures) -> Result<()> {
    let before = broker.process()?.cpu_seconds()?;
    let moved = run(&broker.bootstrap(), effort.volume / BYTES_PER_COMMIT)?;
    let cpu = broker.process()?.cpu_seconds()? - before;
    figures.add(SPEED, broker.kind(), moved.requests as f64 / moved.seconds);
    figures.add(COST, broker.kind(), cpu * 1e6 / moved.requests as f64);
    Ok(())
}

fn run(address: &str, commits: u64) -> Result<load::Moved> {
    let plan = |group| {
        let request = request(group, TOPIC, 0..1, 42, "");
        Ok(Plan { frames: vec![load::encode(VERSION, &request)?], requests: commits / GROUPS.len() as u64 })
    };
    load::replay(address, &GROUPS.into_iter().map(plan).collect::<Result<Vec<_>>>()?, committed)
}

/// A commit of `offset` for each of the partitions, by nobody's member.
pub(super) fn request(
    group: &str,
    topic: &str,
    partitions: std::ops::Range<i32>,
    offset: i64,
    metadata: &str,
) -> OffsetCommitRequest {
    let metadata = StrBytes::from_string(metadata.to_owned());
    let partition = |index| {
        OffsetCommitRequestPartition::default()
            .with_partition_index(index)
            .with_committed_offset(offset)
            .with_committed_metadata(Some(metadata.clone()))
    };
    let topic = OffsetCommitRequestTopic::default()
        .with_name(calls::topic_name(topic))
        .with_partitions(partitions.map(partition).collect());
    OffsetCommitRequest::default()
        .with_group_id(group_id(group))
        .with_generation_id_or_member_epoch(-1)
        .with_topics(vec![topic])
}

/// Wants every offset to be committed.
pub(super) fn committed(body: &[u8]) -> Result<()> {
    let mut bytes = Bytes::copy_from_slice(body);
    ResponseHeader::decode(&mut bytes, 1)?;
    let response = OffsetCommitResponse::decode(&mut bytes, VERSION)?;
    for partition in response.topics.iter().flat_map(|topic| &topic.partitions) {
        ensure!(partition.error_code == 0, "a commit was refused: {partition:?}");
    }
    Ok(())
}
