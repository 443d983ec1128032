//! Keys of `__consumer_offsets`: what a record there is about.

use bytes::Bytes;

use crate::{DecodeError, Decoder, EncodeError, Encoder, Str};

/// The version that is written for offset commits; 0 is read alike.
const OFFSET_COMMIT: i16 = 1;
const GROUP_METADATA: i16 = 2;

/// The key of a record of `__consumer_offsets`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OffsetsKey {
    /// A committed offset.
    OffsetCommit {
        /// The group.
        group: Str,
        /// The topic.
        topic: Str,
        /// The partition.
        partition: i32,
    },
    /// A group and its members.
    GroupMetadata {
        /// The group.
        group: Str,
    },
    /// A record of a later kind, with its version: whoever does not know it passes it over (KIP-915).
    Unknown(i16),
}

impl OffsetsKey {
    /// Reads a key; texts are slices of `bytes`.
    ///
    /// # Errors
    /// Bytes that end too early or hold impossible lengths.
    pub fn decode(bytes: Bytes) -> Result<Self, DecodeError> {
        let mut src = Decoder::new(bytes);
        Ok(match src.i16()? {
            0 | OFFSET_COMMIT => Self::OffsetCommit {
                group: src.string(false)?,
                topic: src.string(false)?,
                partition: src.i32()?,
            },
            GROUP_METADATA => Self::GroupMetadata { group: src.string(false)? },
            version => Self::Unknown(version),
        })
    }

    /// Writes a key; of an unknown one nothing but its version is left.
    ///
    /// # Errors
    /// A text that is too long.
    pub fn encode(&self) -> Result<Bytes, EncodeError> {
        let mut out = Encoder::new();
        match self {
            Self::OffsetCommit { group, topic, partition } => {
                out.put_i16(OFFSET_COMMIT);
                out.put_string(group, false)?;
                out.put_string(topic, false)?;
                out.put_i32(*partition);
            }
            Self::GroupMetadata { group } => {
                out.put_i16(GROUP_METADATA);
                out.put_string(group, false)?;
            }
            Self::Unknown(version) => out.put_i16(*version),
        }
        Ok(out.into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::tests::unhex;

    #[test]
    fn keys_are_written_byte_for_byte_and_read_back() {
        let group = Str::from("g");
        for (key, hex) in [
            (
                OffsetsKey::OffsetCommit { group: group.clone(), topic: Str::from("t"), partition: 3 },
                "000100016700017400000003",
            ),
            (OffsetsKey::GroupMetadata { group }, "0002000167"),
        ] {
            assert_eq!(key.encode().unwrap(), unhex(hex));
            assert_eq!(OffsetsKey::decode(unhex(hex)), Ok(key));
        }
    }

    #[test]
    fn an_offset_key_of_version_0_is_read_as_one_of_version_1() {
        let read = |hex| OffsetsKey::decode(unhex(hex)).unwrap();
        assert_eq!(read("000000016700017400000003"), read("000100016700017400000003"));
    }

    // KAFKA-14869
    #[test]
    fn a_key_of_a_later_version_is_unknown_and_no_error() {
        for version in [3, 8, 16, i16::MAX, -1] {
            let bytes = [&version.to_be_bytes()[..], &[9, 9, 9]].concat();
            assert_eq!(OffsetsKey::decode(Bytes::from(bytes)), Ok(OffsetsKey::Unknown(version)));
        }
    }

    #[test]
    fn a_key_that_ends_too_early_is_an_error() {
        let whole = unhex("000100016700017400000003");
        for end in 0..whole.len() {
            assert!(OffsetsKey::decode(Bytes::copy_from_slice(&whole[..end])).is_err(), "{end}");
        }
    }
}
