//! Any record goes through its bytes and comes back, in every version that is written.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::types::{LeaderEpoch, Millis, Offset};
use crate::{DecodeError, Str};

fn text() -> impl Strategy<Value = Str> {
    prop_oneof!["[a-z]{0,9}", "\\PC{0,9}"].prop_map(|text: String| Str::from(text.as_str()))
}

fn bytes() -> impl Strategy<Value = Bytes> {
    proptest::collection::vec(any::<u8>(), 0..20).prop_map(Bytes::from)
}

fn time() -> impl Strategy<Value = Option<Millis>> {
    proptest::option::of((0_i64..i64::MAX).prop_map(Millis))
}

fn keys() -> impl Strategy<Value = OffsetsKey> {
    prop_oneof![
        (text(), text(), any::<i32>()).prop_map(|(group, topic, partition)| OffsetsKey::OffsetCommit {
            group,
            topic,
            partition
        }),
        text().prop_map(|group| OffsetsKey::GroupMetadata { group }),
        (3..=i16::MAX).prop_map(OffsetsKey::Unknown),
    ]
}

prop_compose! {
    fn offsets()(offset: i64, epoch: i32, metadata in text(), time: i64, expire in time()) -> OffsetCommitValue {
        OffsetCommitValue {
            offset: Offset(offset),
            leader_epoch: LeaderEpoch(epoch),
            metadata,
            commit_timestamp: Millis(time),
            expire_timestamp: expire,
        }
    }
}

prop_compose! {
    fn members()(
        ids in (text(), proptest::option::of(text()), text(), text()),
        timeouts: (i32, i32),
        said in (bytes(), bytes()),
    ) -> MemberValue {
        let (member_id, group_instance_id, client_id, client_host) = ids;
        MemberValue {
            member_id,
            group_instance_id,
            client_id,
            client_host,
            rebalance_timeout_ms: timeouts.0,
            session_timeout_ms: timeouts.1,
            subscription: said.0,
            assignment: said.1,
        }
    }
}

prop_compose! {
    fn groups()(
        protocol_type in text(),
        generation: i32,
        chosen in (proptest::option::of(text()), proptest::option::of(text())),
        current_state_timestamp in time(),
        members in proptest::collection::vec(members(), 0..4),
    ) -> GroupMetadataValue {
        let (protocol, leader) = chosen;
        GroupMetadataValue { protocol_type, generation, protocol, leader, current_state_timestamp, members }
    }
}

/// What a version keeps of a committed offset.
fn kept_offset(value: &OffsetCommitValue, version: i16) -> OffsetCommitValue {
    let mut kept = value.clone();
    if version < 3 || value.expire_timestamp.is_some() {
        kept.leader_epoch = LeaderEpoch::UNKNOWN;
    }
    kept
}

/// What a version keeps of a group.
fn kept_group(value: &GroupMetadataValue, version: i16) -> GroupMetadataValue {
    let mut kept = value.clone();
    kept.current_state_timestamp = kept.current_state_timestamp.filter(|_| version >= 2);
    for member in &mut kept.members {
        member.group_instance_id = member.group_instance_id.take().filter(|_| version >= 3);
        if version < 1 {
            member.rebalance_timeout_ms = member.session_timeout_ms;
        }
    }
    kept
}

fn with_tail(bytes: &Bytes, tail: &Bytes) -> Bytes {
    Bytes::from([&bytes[..], &tail[..]].concat())
}

proptest! {
    #[test]
    fn keys_come_back_whatever_follows_them(key in keys(), tail in bytes()) {
        let written = key.encode().unwrap();
        prop_assert_eq!(OffsetsKey::decode(with_tail(&written, &tail)), Ok(key));
    }

    #[test]
    fn committed_offsets_come_back_with_what_their_version_keeps(
        value in offsets(), version in 1_i16..=3, tail in bytes(),
    ) {
        let written = value.encode(version).unwrap();
        let expected = kept_offset(&value, version);
        prop_assert_eq!(OffsetCommitValue::decode(with_tail(&written, &tail)), Ok(expected));
    }

    #[test]
    fn groups_come_back_with_what_their_version_keeps(
        value in groups(), version in 0_i16..=3, tail in bytes(),
    ) {
        let written = value.encode(version).unwrap();
        prop_assert_eq!(GroupMetadataValue::decode(with_tail(&written, &tail)), Ok(kept_group(&value, version)));
    }

    #[test]
    fn values_of_unknown_versions_are_refused(version in prop_oneof![5..=i16::MAX, i16::MIN..0], tail in bytes()) {
        let bytes = with_tail(&Bytes::copy_from_slice(&version.to_be_bytes()), &tail);
        let is_refused = |error| matches!(error, DecodeError::UnsupportedVersion { version: it, .. } if it == version);
        prop_assert!(OffsetCommitValue::decode(bytes.clone()).is_err_and(is_refused));
        prop_assert!(GroupMetadataValue::decode(bytes).is_err_and(is_refused));
    }
}

#[test]
fn a_value_of_version_0_is_read() {
    let value = OffsetCommitValue {
        offset: Offset(42),
        leader_epoch: LeaderEpoch::UNKNOWN,
        metadata: Str::from("m"),
        commit_timestamp: Millis(1_700_000_000_000),
        expire_timestamp: None,
    };
    let mut bytes = value.encode(2).unwrap().to_vec();
    bytes[1] = 0;
    assert_eq!(OffsetCommitValue::decode(Bytes::from(bytes)), Ok(value));
}
