//! The value of a committed offset in `__consumer_offsets`.
//!
//! Versions 0 and 2 are plain, 1 has a time of expiry, 3 has the leader epoch (KIP-320), 4 is 3 in the flexible
//! encoding and only read (KIP-915).

use bytes::Bytes;

use crate::types::{LeaderEpoch, Millis, Offset};
use crate::{DecodeError, Decoder, EncodeError, Encoder, Str};

const NAME: &str = "OffsetCommitValue";
const NO_EXPIRY: i64 = -1;

/// A committed offset.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OffsetCommitValue {
    /// The offset to go on from.
    pub offset: Offset,
    /// The leader epoch of the record before it; [`LeaderEpoch::UNKNOWN`] if none (always before version 3).
    pub leader_epoch: LeaderEpoch,
    /// What the consumer says of it.
    pub metadata: Str,
    /// When it was committed, in milliseconds since the Unix epoch.
    pub commit_timestamp: Millis,
    /// When it expires, if the consumer said so; only version 1 has it (KAFKA-8069: -1 stands for none).
    pub expire_timestamp: Option<Millis>,
}

impl OffsetCommitValue {
    /// Reads a value; the metadata is a slice of `bytes`.
    ///
    /// # Errors
    /// A version that is not known; bytes that end too early.
    pub fn decode(bytes: Bytes) -> Result<Self, DecodeError> {
        let mut src = Decoder::new(bytes);
        let version = src.i16()?;
        if !(0..=4).contains(&version) {
            return Err(DecodeError::UnsupportedVersion { message: NAME, version });
        }
        let flexible = version == 4;
        let value = Self {
            offset: Offset(src.i64()?),
            leader_epoch: if version >= 3 { LeaderEpoch(src.i32()?) } else { LeaderEpoch::UNKNOWN },
            metadata: src.string(flexible)?,
            commit_timestamp: Millis(src.i64()?),
            expire_timestamp: match version {
                1 => Some(Millis(src.i64()?)).filter(|time| time.0 != NO_EXPIRY),
                _ => None,
            },
        };
        if flexible {
            src.skip_tagged_fields()?;
        }
        Ok(value)
    }

    /// Writes a value in `version`. One with a time of expiry is always written in version 1, the only one that has
    /// room for it.
    ///
    /// # Errors
    /// A version that is never written; metadata that is too long.
    pub fn encode(&self, version: i16) -> Result<Bytes, EncodeError> {
        let version = if self.expire_timestamp.is_some() { 1 } else { version };
        if !(1..=3).contains(&version) {
            return Err(EncodeError::UnsupportedVersion { message: NAME, version });
        }
        let mut out = Encoder::new();
        out.put_i16(version);
        out.put_i64(self.offset.0);
        if version >= 3 {
            out.put_i32(self.leader_epoch.0);
        }
        out.put_string(&self.metadata, false)?;
        out.put_i64(self.commit_timestamp.0);
        if version == 1 {
            out.put_i64(self.expire_timestamp.map_or(NO_EXPIRY, |time| time.0));
        }
        Ok(out.into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::tests::unhex;

    const TIME: Millis = Millis(1_700_000_000_000);

    fn value(epoch: i32, metadata: &str, expire: Option<i64>) -> OffsetCommitValue {
        OffsetCommitValue {
            offset: Offset(42),
            leader_epoch: LeaderEpoch(epoch),
            metadata: Str::from(metadata),
            commit_timestamp: TIME,
            expire_timestamp: expire.map(Millis),
        }
    }

    fn read(hex: &str) -> Result<OffsetCommitValue, DecodeError> {
        OffsetCommitValue::decode(unhex(hex))
    }

    #[test]
    fn values_are_written_byte_for_byte_and_read_back() {
        for (value, version, hex) in [
            (value(5, "m", None), 3, "0003000000000000002a0000000500016d0000018bcfe56800"),
            (value(-1, "", None), 3, "0003000000000000002affffffff00000000018bcfe56800"),
            (value(-1, "m", None), 2, "0002000000000000002a00016d0000018bcfe56800"),
            (
                value(-1, "m", Some(TIME.0 + 86_400_000)),
                1,
                "0001000000000000002a00016d0000018bcfe568000000018bd50bc400",
            ),
        ] {
            assert_eq!(value.encode(version).unwrap(), unhex(hex));
            assert_eq!(read(hex), Ok(value));
        }
    }

    // KAFKA-7403, KAFKA-8069
    #[test]
    fn an_expiry_of_minus_one_is_none_both_ways() {
        let hex = "0001000000000000002a00016d0000018bcfe56800ffffffffffffffff";
        assert_eq!(value(-1, "m", None).encode(1).unwrap(), unhex(hex));
        assert_eq!(read(hex), Ok(value(-1, "m", None)));
    }

    #[test]
    fn an_expiry_makes_any_version_the_first() {
        let expiring = value(-1, "m", Some(7));
        assert_eq!(expiring.encode(3), expiring.encode(1));
    }

    #[test]
    fn the_flexible_version_is_read_and_never_written() {
        let tagged = "0004000000000000002a00000005026d0000018bcfe56800010702beef";
        assert_eq!(read("0004000000000000002a00000005026d0000018bcfe5680000"), Ok(value(5, "m", None)));
        assert_eq!(read(tagged), Ok(value(5, "m", None)));
        assert!(value(5, "m", None).encode(4).is_err());
        assert!(value(5, "m", None).encode(0).is_err());
    }

    // KAFKA-18672
    #[test]
    fn a_later_version_is_an_error_and_never_misread() {
        let later = read("0005000000000000002a0000000500016d0000018bcfe56800");
        assert_eq!(later, Err(DecodeError::UnsupportedVersion { message: NAME, version: 5 }));
    }

    #[test]
    fn a_value_that_ends_too_early_is_an_error() {
        let whole = unhex("0001000000000000002a00016d0000018bcfe568000000018bd50bc400");
        for end in 0..whole.len() {
            assert!(OffsetCommitValue::decode(Bytes::copy_from_slice(&whole[..end])).is_err(), "{end}");
        }
    }
}
