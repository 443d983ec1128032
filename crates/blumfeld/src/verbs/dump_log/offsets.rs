//! Records of `__consumer_offsets` as JSON, in the form in which kafka-dump-log prints them with `--offsets-decoder`.
//!
//! A record has the fields that its version has. In groups of type `consumer` subscriptions and assignments are looked
//! into; where they cannot be read, and in other groups, they are base64. A record that cannot be read is told, and no
//! fault of the log: a later broker may have written it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Map, Value, json};
use wire::batch::Record;
use wire::internal::{
    ConsumerPartitions, ConsumerProtocolAssignment, ConsumerProtocolSubscription, GroupMetadataValue,
    MemberValue, OffsetCommitValue, OffsetsKey,
};

/// The protocol type whose subscriptions and assignments are looked into.
const CONSUMER: &str = "consumer";

/// A record as JSON.
#[derive(Debug, PartialEq)]
pub(super) struct Decoded {
    /// The key.
    pub(super) key: Value,
    /// The value; none if the record is a tombstone.
    pub(super) payload: Option<Value>,
}

/// Reads a record; what comes instead says why it cannot be read.
pub(super) fn decode(record: &Record) -> Result<Decoded, String> {
    let skipped = |why: String| format!("Error at offset {}, skipping. {why}", record.offset);
    let bytes = record.key.clone().ok_or_else(|| skipped("The record has no key.".to_owned()))?;
    let version = version_of(&bytes, "key").map_err(skipped)?;
    let key = OffsetsKey::decode(bytes).map_err(|error| skipped(unreadable(version, "key", &error)))?;
    let data = match &key {
        OffsetsKey::OffsetCommit { group, topic, partition } => {
            json!({ "group": group.as_str(), "topic": topic.as_str(), "partition": partition })
        }
        OffsetsKey::GroupMetadata { group } => json!({ "group": group.as_str() }),
        OffsetsKey::Unknown(version) => {
            return Err(format!("Unknown record type {version} at offset {}, skipping.", record.offset));
        }
    };
    let payload = record.value.clone().map(|value| payload(&key, value)).transpose().map_err(skipped)?;
    Ok(Decoded { key: json!({ "type": version.to_string(), "data": data }), payload })
}

fn payload(key: &OffsetsKey, bytes: Bytes) -> Result<Value, String> {
    let version = version_of(&bytes, "value")?;
    let data = match key {
        OffsetsKey::OffsetCommit { .. } => {
            OffsetCommitValue::decode(bytes).map(|value| offset_json(&value, version))
        }
        _ => GroupMetadataValue::decode(bytes).map(|value| group_json(&value, version)),
    };
    let data = data.map_err(|error| unreadable(version, "value", &error))?;
    Ok(json!({ "version": version.to_string(), "data": data }))
}

fn version_of(bytes: &[u8], what: &str) -> Result<i16, String> {
    let first = bytes.first_chunk().ok_or_else(|| format!("Could not read version from {what}'s buffer."))?;
    Ok(i16::from_be_bytes(*first))
}

fn unreadable(version: i16, what: &str, error: &wire::DecodeError) -> String {
    format!("Could not read record with version {version} from {what}'s buffer due to: {error}.")
}

fn offset_json(value: &OffsetCommitValue, version: i16) -> Value {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    put("offset", value.offset.0.into());
    if version >= 3 {
        put("leaderEpoch", value.leader_epoch.0.into());
    }
    put("metadata", value.metadata.as_str().into());
    put("commitTimestamp", value.commit_timestamp.0.into());
    if version == 1 {
        put("expireTimestamp", value.expire_timestamp.map_or(-1, |time| time.0).into());
    }
    Value::Object(fields)
}

fn group_json(value: &GroupMetadataValue, version: i16) -> Value {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    put("protocolType", value.protocol_type.as_str().into());
    put("generation", value.generation.into());
    put("protocol", value.protocol.as_deref().into());
    put("leader", value.leader.as_deref().into());
    if version >= 2 {
        put("currentStateTimestamp", value.current_state_timestamp.map_or(-1, |time| time.0).into());
    }
    let is_consumer = value.protocol_type == *CONSUMER;
    put("members", value.members.iter().map(|member| member_json(member, version, is_consumer)).collect());
    Value::Object(fields)
}

fn member_json(member: &MemberValue, version: i16, is_consumer: bool) -> Value {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    put("memberId", member.member_id.as_str().into());
    if version >= 3 {
        put("groupInstanceId", member.group_instance_id.as_deref().into());
    }
    put("clientId", member.client_id.as_str().into());
    put("clientHost", member.client_host.as_str().into());
    if version >= 1 {
        put("rebalanceTimeout", member.rebalance_timeout_ms.into());
    }
    put("sessionTimeout", member.session_timeout_ms.into());
    let subscription = ConsumerProtocolSubscription::decode(member.subscription.clone()).ok();
    let subscription = subscription.filter(|_| is_consumer).map(|it| subscription_json(&it));
    put("subscription", subscription.unwrap_or_else(|| base64(&member.subscription)));
    let assignment = ConsumerProtocolAssignment::decode(member.assignment.clone()).ok();
    let assignment = assignment.filter(|_| is_consumer).map(|it| {
        let partitions = partitions_json(&it.assigned_partitions);
        json!({ "assignedPartitions": partitions, "userData": it.user_data.as_deref().map(base64) })
    });
    put("assignment", assignment.unwrap_or_else(|| base64(&member.assignment)));
    Value::Object(fields)
}

fn subscription_json(it: &ConsumerProtocolSubscription) -> Value {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    put("topics", it.topics.iter().map(|topic| topic.as_str()).collect());
    put("userData", it.user_data.as_deref().map(base64).into());
    if it.version >= 1 {
        put("ownedPartitions", partitions_json(&it.owned_partitions));
    }
    if it.version >= 2 {
        put("generationId", it.generation_id.into());
    }
    if it.version >= 3 {
        put("rackId", it.rack_id.as_deref().into());
    }
    Value::Object(fields)
}

fn partitions_json(partitions: &[ConsumerPartitions]) -> Value {
    let of_topic =
        |it: &ConsumerPartitions| json!({ "topic": it.topic.as_str(), "partitions": it.partitions });
    partitions.iter().map(of_topic).collect()
}

fn base64(bytes: &[u8]) -> Value {
    Value::from(STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests;
