//! What consumers say inside JoinGroup, and are told inside SyncGroup: opaque to the protocol, but groups of type
//! `consumer` are looked into, to tell which topics are subscribed to and to show it to people.
//!
//! Versions only add fields at the end, so a later one is read by what is known of it. Bytes behind the last known field
//! do not matter.

use std::collections::BTreeSet;

use bytes::Bytes;

use crate::types::TopicName;
use crate::{DecodeError, Decoder, Str};

/// The last version of a subscription and of an assignment that is known.
const LATEST: i16 = 3;

/// The topics that a subscription names. Any version is read, unknown ones by what all have in common; what follows
/// the topics does not matter.
///
/// # Errors
/// A negative version; bytes that end too early or hold impossible lengths.
pub fn subscribed_topics(subscription: Bytes) -> Result<BTreeSet<TopicName>, DecodeError> {
    let mut src = Decoder::new(subscription);
    version(&mut src, "ConsumerProtocolSubscription")?;
    let topics = src.array(false, 2, |src| src.string(false))?;
    Ok(topics.iter().map(TopicName::from).collect())
}

/// A subscription, as a consumer sends it when it joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerProtocolSubscription {
    /// The version that it was read as.
    pub version: i16,
    /// The topics.
    pub topics: Vec<Str>,
    /// What the consumer's assignor has to say.
    pub user_data: Option<Bytes>,
    /// The partitions that it has; none before version 1 (KIP-429).
    pub owned_partitions: Vec<ConsumerPartitions>,
    /// The generation in which it got them; -1 before version 2.
    pub generation_id: i32,
    /// The rack that it is in; none before version 3 (KIP-881).
    pub rack_id: Option<Str>,
}

/// Partitions of a topic, in the order in which they were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerPartitions {
    /// The topic.
    pub topic: Str,
    /// Its partitions.
    pub partitions: Vec<i32>,
}

/// An assignment, as the leader makes it for a consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerProtocolAssignment {
    /// The version that it was read as; all have the same fields.
    pub version: i16,
    /// What the consumer is to read.
    pub assigned_partitions: Vec<ConsumerPartitions>,
    /// What the leader's assignor has to say.
    pub user_data: Option<Bytes>,
}

impl ConsumerProtocolSubscription {
    /// Reads a subscription whole; texts and bytes are slices of `bytes`.
    ///
    /// # Errors
    /// A negative version; bytes that end too early or hold impossible lengths.
    pub fn decode(bytes: Bytes) -> Result<Self, DecodeError> {
        let mut src = Decoder::new(bytes);
        let version = version(&mut src, "ConsumerProtocolSubscription")?;
        Ok(Self {
            version,
            topics: src.array(false, 2, |src| src.string(false))?,
            user_data: src.nullable_bytes(false)?,
            owned_partitions: if version >= 1 { partitions(&mut src)? } else { Vec::new() },
            generation_id: if version >= 2 { src.i32()? } else { -1 },
            rack_id: if version >= 3 { src.nullable_string(false)? } else { None },
        })
    }
}

impl ConsumerProtocolAssignment {
    /// Reads an assignment; texts and bytes are slices of `bytes`.
    ///
    /// # Errors
    /// A negative version; bytes that end too early or hold impossible lengths, as no bytes at all do.
    pub fn decode(bytes: Bytes) -> Result<Self, DecodeError> {
        let mut src = Decoder::new(bytes);
        let version = version(&mut src, "ConsumerProtocolAssignment")?;
        let assigned_partitions = partitions(&mut src)?;
        Ok(Self { version, assigned_partitions, user_data: src.nullable_bytes(false)? })
    }
}

/// The version as which the rest is read.
fn version(src: &mut Decoder, message: &'static str) -> Result<i16, DecodeError> {
    match src.i16()? {
        version if version < 0 => Err(DecodeError::UnsupportedVersion { message, version }),
        version => Ok(version.min(LATEST)),
    }
}

fn partitions(src: &mut Decoder) -> Result<Vec<ConsumerPartitions>, DecodeError> {
    src.array(false, 6, |src| {
        Ok(ConsumerPartitions { topic: src.string(false)?, partitions: src.array(false, 4, Decoder::i32)? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::tests::unhex;

    fn read(hex: &str) -> Result<Vec<String>, DecodeError> {
        let topics = subscribed_topics(unhex(hex))?;
        Ok(topics.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn topics_are_read_from_any_version() {
        for hex in [
            "000000000002000162000161ffffffff",
            "000100000002000162000161ffffffff00000000",
            "000300000002000162000161ffffffff00000000ffffffffffff",
            "7fff000000020001620001610102",
            "000000000002000162000161",
        ] {
            assert_eq!(read(hex), Ok(vec!["a".to_owned(), "b".to_owned()]), "{hex}");
        }
    }

    #[test]
    fn anything_else_is_an_error() {
        for hex in ["", "00", "0000", "0000ffffffff", "00000000000200016200", "ffff00000000", "00007fffffff"]
        {
            assert!(read(hex).is_err(), "{hex}");
        }
    }

    fn of_t(partitions: &[i32]) -> Vec<ConsumerPartitions> {
        vec![ConsumerPartitions { topic: Str::from("t"), partitions: partitions.to_vec() }]
    }

    #[test]
    fn a_subscription_is_read_by_what_its_version_has() {
        let read = |hex: &str| ConsumerProtocolSubscription::decode(unhex(hex)).unwrap();
        let first = read("0000000000010001740000000275750000");
        assert_eq!((first.version, first.topics[0].as_str(), first.rack_id), (0, "t", None));
        assert_eq!((first.user_data, first.owned_partitions), (Some(Bytes::from_static(b"uu")), Vec::new()));
        let third = "00000001000174ffffffff0000000100017400000002000000010000000200000005000172";
        let latest = read(&format!("0003{third}"));
        assert_eq!((latest.owned_partitions.clone(), latest.generation_id), (of_t(&[1, 2]), 5));
        assert_eq!(latest.rack_id.as_deref(), Some("r"));
        assert_eq!(read(&format!("0009{third}beef")), latest, "a later version is read as the latest known");
        let of_rebalances = read(&format!("0002{third}"));
        assert_eq!((of_rebalances.generation_id, of_rebalances.rack_id), (5, None));
        assert!(ConsumerProtocolSubscription::decode(unhex("000200000001000174ffffffff00000000")).is_err());
    }

    #[test]
    fn an_assignment_is_read_in_any_version() {
        for version in ["0000", "0003", "0009"] {
            let hex = format!("{version}0000000100017400000001000000000000000175");
            let read = ConsumerProtocolAssignment::decode(unhex(&hex)).unwrap();
            assert_eq!(
                (read.assigned_partitions, read.user_data),
                (of_t(&[0]), Some(Bytes::from_static(b"u")))
            );
        }
        for hex in ["", "0000", "ffff00000000ffffffff", "00007fffffff", "000000000001000174ffffffff"] {
            assert!(ConsumerProtocolAssignment::decode(unhex(hex)).is_err(), "{hex}");
        }
    }
}
