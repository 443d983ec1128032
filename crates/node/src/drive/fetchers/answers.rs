//! A leader's answers as events, and the records that come with them. Records stay slices of the frame.

use std::collections::BTreeMap;

use bytes::Bytes;
use kernel::epochs::EpochEnd;
use kernel::fetch::session::{PartitionKey, TopicRef};
use kernel::replica::fetcher::{EpochReply, Event, FetchReply, ListOffsetsReply, PartitionReply, RequestId};
use wire::error_code::ErrorCode;
use wire::messages::{FetchResponse, ListOffsetsResponse, OffsetForLeaderEpochResponse};
use wire::types::{LeaderEpoch, Offset, TopicId, TopicName, TopicPartition};

use crate::drive::to_broker;

/// The first version of Fetch that names topics by id.
const FIRST_FETCH_WITH_TOPIC_IDS: i16 = 13;

/// A request that waits for its answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) id: RequestId,
    pub(super) version: i16,
    pub(super) correlation_id: i32,
    pub(super) kind: Kind,
}

/// What was asked.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Fetch,
    Epochs,
    Offsets,
}

/// The records of one answer.
#[derive(Debug, Default)]
pub(super) struct Records(BTreeMap<PartitionKey, Bytes>);

impl Records {
    /// Those of one partition, whichever way the answer names it; empty if there are none.
    pub(super) fn of(&self, name: &TopicPartition, id: TopicId) -> Bytes {
        let by = |topic| self.0.get(&PartitionKey { topic, partition: name.partition });
        let found = by(TopicRef::Name(name.topic.clone())).or_else(|| by(TopicRef::Id(id)));
        found.cloned().unwrap_or_default()
    }
}

/// Reads the answer to `asked`.
///
/// # Errors
/// Why it cannot be read.
pub(super) fn read(asked: Asked, bytes: Bytes) -> Result<(Event, Records), String> {
    let Asked { id, version, correlation_id, kind } = asked;
    match kind {
        Kind::Fetch => {
            let response: FetchResponse = to_broker::decode(bytes, version, correlation_id)?;
            let (reply, records) = fetch_reply(response, version);
            Ok((Event::FetchReply(id, reply), records))
        }
        Kind::Epochs => {
            let response: OffsetForLeaderEpochResponse = to_broker::decode(bytes, version, correlation_id)?;
            Ok((Event::EpochReply(id, epoch_replies(response)), Records::default()))
        }
        Kind::Offsets => {
            let response: ListOffsetsResponse = to_broker::decode(bytes, version, correlation_id)?;
            Ok((Event::ListOffsetsReply(id, offset_replies(response)), Records::default()))
        }
    }
}

fn fetch_reply(response: FetchResponse, version: i16) -> (FetchReply, Records) {
    let mut records = Records::default();
    let mut partitions = Vec::new();
    for topic in response.responses {
        let topic_ref = if version >= FIRST_FETCH_WITH_TOPIC_IDS {
            TopicRef::Id(topic.topic_id)
        } else {
            TopicRef::Name(TopicName::from(&topic.topic))
        };
        for data in topic.partitions {
            let key = PartitionKey { topic: topic_ref.clone(), partition: data.partition_index };
            let diverging = data.diverging_epoch;
            let diverging = (diverging.epoch >= 0).then_some(EpochEnd {
                epoch: LeaderEpoch(diverging.epoch),
                end: Offset(diverging.end_offset),
            });
            let bytes = data.records.unwrap_or_default();
            partitions.push(PartitionReply {
                key: key.clone(),
                error: code(data.error_code),
                high_watermark: Offset(data.high_watermark),
                log_start: Offset(data.log_start_offset),
                diverging,
                records_bytes: bytes.len(),
            });
            if !bytes.is_empty() {
                records.0.insert(key, bytes);
            }
        }
    }
    let reply = FetchReply {
        error: code(response.error_code),
        session_id: response.session_id,
        throttled: response.throttle_time_ms > 0,
        partitions,
    };
    (reply, records)
}

fn epoch_replies(response: OffsetForLeaderEpochResponse) -> Vec<EpochReply> {
    let each = response.topics.into_iter().flat_map(|topic| {
        let name = TopicName::from(&topic.topic);
        topic.partitions.into_iter().map(move |it| EpochReply {
            partition: TopicPartition { topic: name.clone(), partition: it.partition },
            error: code(it.error_code),
            end: EpochEnd { epoch: LeaderEpoch(it.leader_epoch), end: Offset(it.end_offset) },
        })
    });
    each.collect()
}

fn offset_replies(response: ListOffsetsResponse) -> Vec<ListOffsetsReply> {
    let each = response.topics.into_iter().flat_map(|topic| {
        let name = TopicName::from(&topic.name);
        topic.partitions.into_iter().map(move |it| ListOffsetsReply {
            partition: TopicPartition { topic: name.clone(), partition: it.partition_index },
            error: code(it.error_code),
            // Version 0 answers a list.
            offset: Offset(it.old_style_offsets.first().copied().unwrap_or(it.offset)),
        })
    });
    each.collect()
}

fn code(code: i16) -> ErrorCode {
    ErrorCode::from_code(code).unwrap_or(ErrorCode::UnknownServerError)
}
