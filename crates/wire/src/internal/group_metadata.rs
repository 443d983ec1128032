//! The value of a group in `__consumer_offsets`: its generation and its members.
//!
//! The state of a group is not stored: one with members is Stable, one without is Empty. Versions add the members'
//! rebalance timeout (1), the time of the last change of state (2), instance ids (3, KIP-345); 4 is 3 in the flexible
//! encoding and only read (KIP-915).

use bytes::Bytes;

use crate::types::Millis;
use crate::{DecodeError, Decoder, EncodeError, Encoder, Str};

const NAME: &str = "GroupMetadataValue";
const NO_TIME: i64 = -1;
/// The fewest bytes that a member takes in any version.
const MIN_MEMBER_LEN: usize = 14;

/// A group as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct GroupMetadataValue {
    /// What kind of members it has, such as `consumer`; empty if not known.
    pub protocol_type: Str,
    /// The generation.
    pub generation: i32,
    /// The protocol that was chosen for the generation.
    pub protocol: Option<Str>,
    /// The member id of the leader.
    pub leader: Option<Str>,
    /// When its state changed last, in milliseconds since the Unix epoch; none before version 2.
    pub current_state_timestamp: Option<Millis>,
    /// The members.
    pub members: Vec<MemberValue>,
}

/// A member as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MemberValue {
    /// The member id.
    pub member_id: Str,
    /// The instance id of a static member; none before version 3.
    pub group_instance_id: Option<Str>,
    /// The client id.
    pub client_id: Str,
    /// The client's address, as Java prints one: `/127.0.0.1`.
    pub client_host: Str,
    /// The rebalance timeout in milliseconds; before version 1 that is the session timeout.
    pub rebalance_timeout_ms: i32,
    /// The session timeout in milliseconds.
    pub session_timeout_ms: i32,
    /// The metadata for the chosen protocol.
    pub subscription: Bytes,
    /// The assignment.
    pub assignment: Bytes,
}

impl GroupMetadataValue {
    /// Reads a value; texts and bytes are slices of `bytes`.
    ///
    /// # Errors
    /// A version that is not known; bytes that end too early or hold impossible lengths.
    pub fn decode(bytes: Bytes) -> Result<Self, DecodeError> {
        let mut src = Decoder::new(bytes);
        let version = src.i16()?;
        if !(0..=4).contains(&version) {
            return Err(DecodeError::UnsupportedVersion { message: NAME, version });
        }
        let flexible = version == 4;
        let value = Self {
            protocol_type: src.string(flexible)?,
            generation: src.i32()?,
            protocol: src.nullable_string(flexible)?,
            leader: src.nullable_string(flexible)?,
            current_state_timestamp: match version {
                2.. => Some(Millis(src.i64()?)).filter(|time| time.0 != NO_TIME),
                _ => None,
            },
            members: src.array(flexible, MIN_MEMBER_LEN, |src| MemberValue::decode(src, version))?,
        };
        if flexible {
            src.skip_tagged_fields()?;
        }
        Ok(value)
    }

    /// Writes a value in `version`; what the version has no room for is left out.
    ///
    /// # Errors
    /// A version that is never written; texts or bytes that are too long.
    pub fn encode(&self, version: i16) -> Result<Bytes, EncodeError> {
        if !(0..=3).contains(&version) {
            return Err(EncodeError::UnsupportedVersion { message: NAME, version });
        }
        let mut out = Encoder::new();
        out.put_i16(version);
        out.put_string(&self.protocol_type, false)?;
        out.put_i32(self.generation);
        out.put_nullable_string(self.protocol.as_ref(), false)?;
        out.put_nullable_string(self.leader.as_ref(), false)?;
        if version >= 2 {
            out.put_i64(self.current_state_timestamp.map_or(NO_TIME, |time| time.0));
        }
        out.put_count(self.members.len(), false)?;
        for member in &self.members {
            member.encode(&mut out, version)?;
        }
        Ok(out.into_bytes())
    }
}

impl MemberValue {
    fn decode(src: &mut Decoder, version: i16) -> Result<Self, DecodeError> {
        let flexible = version == 4;
        let member_id = src.string(flexible)?;
        let group_instance_id = if version >= 3 { src.nullable_string(flexible)? } else { None };
        let client_id = src.string(flexible)?;
        let client_host = src.string(flexible)?;
        let rebalance_timeout_ms = if version >= 1 { Some(src.i32()?) } else { None };
        let session_timeout_ms = src.i32()?;
        let value = Self {
            member_id,
            group_instance_id,
            client_id,
            client_host,
            rebalance_timeout_ms: rebalance_timeout_ms.unwrap_or(session_timeout_ms),
            session_timeout_ms,
            subscription: src.bytes(flexible)?,
            assignment: src.bytes(flexible)?,
        };
        if flexible {
            src.skip_tagged_fields()?;
        }
        Ok(value)
    }

    fn encode(&self, out: &mut Encoder, version: i16) -> Result<(), EncodeError> {
        out.put_string(&self.member_id, false)?;
        if version >= 3 {
            out.put_nullable_string(self.group_instance_id.as_ref(), false)?;
        }
        out.put_string(&self.client_id, false)?;
        out.put_string(&self.client_host, false)?;
        if version >= 1 {
            out.put_i32(self.rebalance_timeout_ms);
        }
        out.put_i32(self.session_timeout_ms);
        out.put_bytes(&self.subscription, false)?;
        out.put_bytes(&self.assignment, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::tests::unhex;

    const EMPTY: &str = "00030008636f6e73756d657200000002ffffffff0000018bcfe5680000000000";
    const STABLE: &str = "00030008636f6e73756d657200000001000572616e67650003632d310000018bcfe56800000000010003632d\
        31ffff000163000a2f3132372e302e302e31000493e00000afc80000000d000000000001000174ffffffff000000150000000000010001\
        740000000100000000ffffffff";

    fn stable() -> GroupMetadataValue {
        GroupMetadataValue {
            protocol_type: Str::from("consumer"),
            generation: 1,
            protocol: Some(Str::from("range")),
            leader: Some(Str::from("c-1")),
            current_state_timestamp: Some(Millis(1_700_000_000_000)),
            members: vec![MemberValue {
                member_id: Str::from("c-1"),
                group_instance_id: None,
                client_id: Str::from("c"),
                client_host: Str::from("/127.0.0.1"),
                rebalance_timeout_ms: 300_000,
                session_timeout_ms: 45_000,
                subscription: unhex("000000000001000174ffffffff"),
                assignment: unhex("0000000000010001740000000100000000ffffffff"),
            }],
        }
    }

    fn empty() -> GroupMetadataValue {
        GroupMetadataValue { generation: 2, protocol: None, leader: None, members: Vec::new(), ..stable() }
    }

    fn read(bytes: impl Into<Bytes>) -> Result<GroupMetadataValue, DecodeError> {
        GroupMetadataValue::decode(bytes.into())
    }

    #[test]
    fn groups_are_written_byte_for_byte_and_read_back() {
        for (value, hex) in [(empty(), EMPTY), (stable(), STABLE)] {
            assert_eq!(value.encode(3).unwrap(), unhex(hex));
            assert_eq!(read(unhex(hex)), Ok(value));
        }
    }

    #[test]
    fn each_version_keeps_what_it_has_room_for() {
        let mut whole = stable();
        whole.members[0].group_instance_id = Some(Str::from("i"));
        assert_eq!(read(whole.encode(3).unwrap()), Ok(whole.clone()));
        let mut kept = stable();
        assert_eq!(read(whole.encode(2).unwrap()), Ok(kept.clone()));
        kept.current_state_timestamp = None;
        assert_eq!(read(whole.encode(1).unwrap()), Ok(kept.clone()));
        kept.members[0].rebalance_timeout_ms = 45_000;
        assert_eq!(read(whole.encode(0).unwrap()), Ok(kept));
    }

    #[test]
    fn the_flexible_version_is_read_and_never_written() {
        let hex = "000409636f6e73756d6572000000010672616e676504632d310000018bcfe568000204632d310002630b2f3132372e302e30\
            2e31000493e00000afc80e000000000001000174ffffffff160000000000010001740000000100000000ffffffff0000";
        assert_eq!(read(unhex(hex)), Ok(stable()));
        assert!(stable().encode(4).is_err());
    }

    #[test]
    fn a_later_version_is_an_error_and_never_misread() {
        let mut bytes = unhex(STABLE).to_vec();
        bytes[1] = 5;
        assert_eq!(read(bytes), Err(DecodeError::UnsupportedVersion { message: NAME, version: 5 }));
    }

    #[test]
    fn damaged_bytes_never_panic_and_ends_that_come_too_early_are_errors() {
        let whole = unhex(STABLE);
        for end in 0..whole.len() {
            assert!(read(whole[..end].to_vec()).is_err(), "{end}");
        }
        for at in 0..whole.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut damaged = whole.to_vec();
                damaged[at] = byte;
                let _ = read(damaged);
            }
        }
    }

    #[test]
    fn a_count_of_members_beyond_the_bytes_left_is_refused_before_anything_is_allocated() {
        let mut bytes = unhex(EMPTY).to_vec();
        let end = bytes.len();
        bytes[end - 4..].copy_from_slice(&i32::MAX.to_be_bytes());
        assert!(matches!(read(bytes), Err(DecodeError::CountTooLarge { .. })));
    }
}
