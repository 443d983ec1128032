//! Where partitions begin and end, and where a time lies in them (ListOffsets), asked of their leaders.

use std::collections::BTreeMap;

use wire::Str;
use wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use wire::messages::metadata_response::MetadataResponseTopic;
use wire::messages::{ListOffsetsRequest, ListOffsetsResponse};
use wire::types::{Millis, Offset, TopicPartition};

use super::leaders::{ByPartition, LeaderQuestion, OfLeader, by_topic};
use super::{Cluster, ClusterError};

/// A place in a partition that ListOffsets finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The log start offset.
    Earliest,
    /// The end that a reader may see.
    Latest,
    /// The record with the highest timestamp (KIP-734).
    MaxTimestamp,
    /// The first offset on the broker's own disk (KIP-405).
    EarliestLocal,
    /// The last offset in tiered storage (KIP-1005).
    LatestTiered,
    /// The first record that is not older.
    Time(Millis),
}

impl Place {
    /// The place that `auto.offset.reset` and options name.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        match name {
            "earliest" => Some(Self::Earliest),
            "latest" => Some(Self::Latest),
            _ => None,
        }
    }

    /// The number in requests.
    pub(crate) fn timestamp(self) -> i64 {
        match self {
            Self::Latest => -1,
            Self::Earliest => -2,
            Self::MaxTimestamp => -3,
            Self::EarliestLocal => -4,
            Self::LatestTiered => -5,
            Self::Time(time) => time.0,
        }
    }

    /// The lowest version of ListOffsets that knows the place.
    fn least_version(self) -> i16 {
        match self {
            Self::Latest | Self::Earliest => 0,
            Self::Time(_) => 1,
            Self::MaxTimestamp => 7,
            Self::EarliestLocal => 8,
            Self::LatestTiered => 9,
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

/// The question where a place lies.
#[derive(Clone, Copy, Debug)]
struct Question {
    place: Place,
    isolation: Isolation,
}

impl LeaderQuestion for Question {
    type Request = ListOffsetsRequest;
    /// The offset; none if no record is there.
    type Told = Option<Offset>;

    fn least_version(&self) -> i16 {
        self.place.least_version()
    }

    fn subject(&self) -> &'static str {
        "offsets"
    }

    fn request(&self, partitions: &[TopicPartition]) -> ListOffsetsRequest {
        let partition = |partition_index| ListOffsetsPartition {
            partition_index,
            timestamp: self.place.timestamp(),
            ..Default::default()
        };
        let topics = by_topic(partitions).into_iter().map(|(name, indexes)| ListOffsetsTopic {
            name: Str::from(name),
            partitions: indexes.into_iter().map(partition).collect(),
        });
        ListOffsetsRequest { replica_id: -1, isolation_level: self.isolation.id(), topics: topics.collect() }
    }

    fn answers(&self, response: ListOffsetsResponse) -> Vec<OfLeader<Option<Offset>>> {
        let mut answers = Vec::new();
        for topic in response.topics {
            for answer in topic.partitions {
                let offset = answer.old_style_offsets.first().copied().unwrap_or(answer.offset);
                answers.push(OfLeader {
                    partition: TopicPartition::new(topic.name.as_str(), answer.partition_index),
                    code: answer.error_code,
                    told: (offset >= 0).then_some(Offset(offset)),
                });
            }
        }
        answers
    }
}

impl Cluster {
    /// The offset of `place` in each of `partitions`; none where no record is there.
    ///
    /// # Errors
    /// If no broker answers, or one does not know the place. What is wrong with one partition stands in its place.
    pub(crate) async fn list_offsets(
        &mut self,
        partitions: impl IntoIterator<Item = TopicPartition>,
        place: Place,
        isolation: Isolation,
    ) -> Result<ByPartition<Option<Offset>>, ClusterError> {
        self.ask_leaders(&Question { place, isolation }, partitions).await
    }

    /// The offsets of `place` in `partitions` of `topic`; the end where no record is at the place.
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
        let wanted = partitions.iter().map(|partition| TopicPartition::new(topic, *partition));
        let mut found = BTreeMap::new();
        let mut at_end = Vec::new();
        for (partition, offset) in self.list_offsets(wanted, place, isolation).await? {
            match offset? {
                Some(offset) => {
                    found.insert(partition.partition, offset);
                }
                None => at_end.push(partition),
            }
        }
        if !at_end.is_empty() {
            for (partition, offset) in self.list_offsets(at_end, Place::Latest, isolation).await? {
                found.insert(partition.partition, offset?.unwrap_or_default());
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use wire::messages::list_offsets_response::{ListOffsetsPartitionResponse, ListOffsetsTopicResponse};

    use super::*;

    #[test]
    fn one_request_names_each_topic_once() {
        let question = Question { place: Place::Time(Millis(5)), isolation: Isolation::ReadCommitted };
        let partitions =
            [("a", 0), ("a", 2), ("b", 1)].map(|(topic, index)| TopicPartition::new(topic, index));
        let request = question.request(&partitions);
        let shape: Vec<(&str, Vec<(i32, i64)>)> = request
            .topics
            .iter()
            .map(|topic| {
                let partitions = topic.partitions.iter();
                (topic.name.as_str(), partitions.map(|it| (it.partition_index, it.timestamp)).collect())
            })
            .collect();
        assert_eq!(shape, [("a", vec![(0, 5), (2, 5)]), ("b", vec![(1, 5)])]);
        assert_eq!(request.isolation_level, 1);
    }

    #[test]
    fn a_place_without_a_record_has_no_offset_and_old_brokers_tell_it_in_a_list() {
        let answer = |offset, old: &[i64]| ListOffsetsPartitionResponse {
            offset,
            old_style_offsets: old.to_vec(),
            ..Default::default()
        };
        let partitions = vec![answer(-1, &[]), answer(7, &[]), answer(-1, &[3])];
        let response = ListOffsetsResponse {
            topics: vec![ListOffsetsTopicResponse { name: Str::from("t"), partitions }],
            ..Default::default()
        };
        let question = Question { place: Place::Latest, isolation: Isolation::ReadUncommitted };
        let told: Vec<_> = question.answers(response).into_iter().map(|answer| answer.told).collect();
        assert_eq!(told, [None, Some(Offset(7)), Some(Offset(3))]);
    }
}
