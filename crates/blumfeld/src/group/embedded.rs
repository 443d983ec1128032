//! What members of the protocol type `consumer` say to each other through the coordinator: their subscriptions, and
//! what the leader assigns. Versions 0 to 3, and later ones by the part that is known; trailing bytes are left alone.

use bytes::Bytes;
use wire::types::TopicPartition;
use wire::{DecodeError, Decoder, EncodeError, Encoder, Str};

use crate::cluster::leaders::by_topic;

/// The topics that a member wants to read, in order and each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The topics.
    pub(crate) topics: Vec<String>,
}

impl Wanted {
    /// The bytes of a subscription, version 0.
    ///
    /// # Errors
    /// If a name is longer than the protocol allows.
    pub(crate) fn encode(&self) -> Result<Bytes, EncodeError> {
        let mut out = Encoder::new();
        out.put_i16(0);
        out.put_count(self.topics.len(), false)?;
        for topic in &self.topics {
            out.put_string(&Str::from(topic.as_str()), false)?;
        }
        out.put_nullable_bytes(None, false)?;
        Ok(out.into_bytes())
    }

    /// Reads a subscription.
    ///
    /// # Errors
    /// If the bytes are cut short.
    pub(crate) fn decode(bytes: Bytes) -> Result<Self, DecodeError> {
        let mut input = Decoder::new(bytes);
        input.i16()?;
        let topics = input.array(false, 2, |input| Ok(input.string(false)?.as_str().to_owned()))?;
        Ok(Self { topics })
    }
}

/// The bytes of an assignment, version 0.
///
/// # Errors
/// If a name is longer than the protocol allows.
pub(crate) fn encode_assignment(partitions: &[TopicPartition]) -> Result<Bytes, EncodeError> {
    let mut out = Encoder::new();
    out.put_i16(0);
    let topics = by_topic(partitions);
    out.put_count(topics.len(), false)?;
    for (topic, indexes) in topics {
        out.put_string(&Str::from(topic), false)?;
        out.put_count(indexes.len(), false)?;
        indexes.into_iter().for_each(|index| out.put_i32(index));
    }
    out.put_nullable_bytes(None, false)?;
    Ok(out.into_bytes())
}

/// Reads an assignment; no bytes are no partitions.
///
/// # Errors
/// If the bytes are cut short.
pub(crate) fn decode_assignment(bytes: Bytes) -> Result<Vec<TopicPartition>, DecodeError> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let mut input = Decoder::new(bytes);
    input.i16()?;
    let topics = input.array(false, 6, |input| {
        let topic = input.string(false)?;
        Ok((topic, input.array(false, 4, Decoder::i32)?))
    })?;
    let of_topic = |(topic, indexes): (Str, Vec<i32>)| {
        indexes.into_iter().map(move |index| TopicPartition::new(topic.as_str(), index))
    };
    Ok(topics.into_iter().flat_map(of_topic).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscription_is_read_back_and_later_versions_by_their_beginning() {
        let wanted = Wanted { topics: vec!["a".into(), "b".into()] };
        let bytes = wanted.encode().unwrap();
        assert_eq!(&bytes[..], b"\0\0\0\0\0\x02\0\x01a\0\x01b\xff\xff\xff\xff");
        assert_eq!(Wanted::decode(bytes.clone()).unwrap(), wanted);
        let later = [&[0, 9], &bytes[2..], b"more"].concat();
        assert_eq!(Wanted::decode(later.into()).unwrap(), wanted);
        assert!(Wanted::decode(bytes.slice(..8)).is_err());
    }

    #[test]
    fn an_assignment_is_read_back_and_no_bytes_are_no_partitions() {
        let partitions =
            [("a", 0), ("a", 2), ("b", 1)].map(|(topic, index)| TopicPartition::new(topic, index));
        let bytes = encode_assignment(&partitions).unwrap();
        assert_eq!(decode_assignment(bytes.clone()).unwrap(), partitions);
        assert!(decode_assignment(bytes.slice(..7)).is_err());
        assert_eq!(decode_assignment(Bytes::new()).unwrap(), []);
    }
}
