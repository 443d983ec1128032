//! What one broker tells of the cluster: its Metadata, asked at its own port and not through its proxy.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::Result;
use kafka_protocol::messages::MetadataRequest;
use kafka_protocol::messages::metadata_response::MetadataResponseBroker;

use crate::calls;
use crate::raw::Connection;

/// How long a broker may take to answer; a frozen one never does.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// What a broker believes of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionView {
    /// The leader, or -1.
    pub leader: i32,
    /// Its epoch.
    pub leader_epoch: i32,
    /// The in-sync replicas, sorted.
    pub isr: Vec<i32>,
    /// The replicas that are not available, sorted.
    pub offline: Vec<i32>,
}

/// The controller and the brokers, as the broker at `address` tells of them.
///
/// # Errors
/// When it does not answer.
pub fn cluster_view(address: &str) -> Result<(Option<i32>, BTreeSet<i32>)> {
    let request = MetadataRequest::default().with_topics(Some(Vec::new()));
    let metadata = connect(address)?.call(1, &request)?;
    let controller = Some(metadata.controller_id.0).filter(|id| *id >= 0);
    Ok((controller, metadata.brokers.iter().map(|broker| broker.node_id.0).collect()))
}

/// Where the broker at `address`, asked by whoever comes in there, says that brokers are: `host:port` by id.
///
/// # Errors
/// When it does not answer.
pub fn told_addresses(address: &str) -> Result<BTreeMap<i32, String>> {
    let request = MetadataRequest::default().with_topics(Some(Vec::new()));
    let metadata = connect(address)?.call(1, &request)?;
    let address = |it: MetadataResponseBroker| (it.node_id.0, format!("{}:{}", it.host.as_str(), it.port));
    Ok(metadata.brokers.into_iter().map(address).collect())
}

/// What the broker at `address` tells of a topic's partitions; nothing when it does not know the topic.
///
/// # Errors
/// When it does not answer.
pub fn topic_view(address: &str, topic: &str) -> Result<BTreeMap<i32, PartitionView>> {
    let described = calls::describe_topic(&mut connect(address)?, topic)?;
    let sorted = |ids: Vec<kafka_protocol::messages::BrokerId>| {
        let mut ids: Vec<i32> = ids.into_iter().map(|id| id.0).collect();
        ids.sort_unstable();
        ids
    };
    let partitions = described.partitions.into_iter().map(|it| {
        let view = PartitionView {
            leader: it.leader_id.0,
            leader_epoch: it.leader_epoch,
            isr: sorted(it.isr_nodes),
            offline: sorted(it.offline_replicas),
        };
        (it.partition_index, view)
    });
    Ok(partitions.collect())
}

fn connect(address: &str) -> Result<Connection> {
    let connection = Connection::open(address)?;
    connection.set_answer_limit(ANSWER_LIMIT)?;
    Ok(connection)
}
