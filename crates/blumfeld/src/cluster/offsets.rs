//! Where partitions begin and end (ListOffsets), asked of their leaders.

use std::collections::BTreeMap;

use wire::Str;
use wire::messages::ListOffsetsRequest;
use wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use wire::messages::metadata_response::MetadataResponseTopic;
use wire::types::Offset;

use super::{Cluster, ClusterError, Topics, is_retriable, is_transient};

/// A place in a partition that ListOffsets finds by a special timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The log start offset.
    Earliest,
    /// The end that a reader may see.
    Latest,
}

impl Place {
    fn timestamp(self) -> i64 {
        match self {
            Self::Earliest => -2,
            Self::Latest => -1,
        }
    }
}

/// The isolation levels of a reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Isolation {
    /// Everything below the high watermark.
    #[default]
    ReadUncommitted,
    /// Only what no open or aborted transaction covers.
    ReadCommitted,
}

impl Isolation {
    /// The number in requests.
    pub(crate) fn id(self) -> i8 {
        match self {
            Self::ReadUncommitted => 0,
            Self::ReadCommitted => 1,
        }
    }
}

/// The leaders of the partitions of one topic, ascending.
pub(crate) type Leaders = BTreeMap<i32, i32>;

/// The leaders that a description of a topic tells; -1 where there is none.
pub(crate) fn leaders(topic: &MetadataResponseTopic) -> Leaders {
    topic.partitions.iter().map(|partition| (partition.partition_index, partition.leader_id)).collect()
}

impl Cluster {
    /// The offsets of `place` in `partitions` of `topic`.
    ///
    /// # Errors
    /// If a leader refuses, or is not found in time.
    pub(crate) async fn offsets(
        &mut self,
        topic: &str,
        partitions: &[i32],
        place: Place,
        isolation: Isolation,
    ) -> Result<BTreeMap<i32, Offset>, ClusterError> {
        let attempts = self.attempts();
        let mut found = BTreeMap::new();
        loop {
            let metadata = self.metadata(Topics::Named { name: topic, create: false }).await?;
            let leaders = metadata.topics.first().map(leaders).unwrap_or_default();
            let mut last = format!("topic {topic} has no leader");
            for (leader, missing) in by_leader(&leaders, partitions, &found) {
                let Some(address) = self.brokers.get(&leader).cloned() else { continue };
                let request = request(topic, &missing, place, isolation);
                match self.send(&address, &request).await {
                    Ok(response) => {
                        for answer in response.topics.iter().flat_map(|topic| &topic.partitions) {
                            if answer.error_code == 0 {
                                let offset = answer.old_style_offsets.first().copied();
                                let offset = offset.unwrap_or(answer.offset);
                                found.insert(answer.partition_index, Offset(offset));
                                continue;
                            }
                            let what = format!("offsets of {topic}-{}", answer.partition_index);
                            let refused = ClusterError::refused(what, answer.error_code, None);
                            if !is_retriable(answer.error_code) {
                                return Err(refused);
                            }
                            last = refused.to_string();
                        }
                    }
                    Err(error) if is_transient(&error) => last = error.to_string(),
                    Err(error) => return Err(ClusterError::Client { address, error }),
                }
            }
            if partitions.iter().all(|partition| found.contains_key(partition)) {
                return Ok(found);
            }
            if !attempts.again().await {
                return Err(self.timed_out(format!("offsets of {topic} were not found"), last));
            }
        }
    }
}

/// The partitions that are not found yet, by leader.
fn by_leader(
    leaders: &Leaders,
    partitions: &[i32],
    found: &BTreeMap<i32, Offset>,
) -> BTreeMap<i32, Vec<i32>> {
    let mut grouped: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for partition in partitions.iter().filter(|partition| !found.contains_key(partition)) {
        if let Some(leader) = leaders.get(partition) {
            grouped.entry(*leader).or_default().push(*partition);
        }
    }
    grouped
}

fn request(topic: &str, partitions: &[i32], place: Place, isolation: Isolation) -> ListOffsetsRequest {
    let partition = |partition: &i32| ListOffsetsPartition {
        partition_index: *partition,
        timestamp: place.timestamp(),
        ..Default::default()
    };
    ListOffsetsRequest {
        replica_id: -1,
        isolation_level: isolation.id(),
        topics: vec![ListOffsetsTopic {
            name: Str::from(topic),
            partitions: partitions.iter().map(partition).collect(),
        }],
    }
}
