//! The integers and names of the protocol, each with a type of its own, so that an offset is never
//! mistaken for an epoch. All are plain values; sentinels carry Kafka's names.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

macro_rules! int_type {
    ($(#[$doc:meta])* $name:ident, $int:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $int);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl From<$int> for $name {
            fn from(value: $int) -> Self {
                Self(value)
            }
        }
    };
}

int_type!(
    /// A position in a partition log. Ends (log end, high watermark) are exclusive unless said otherwise.
    Offset, i64);
int_type!(
    /// The number of a leadership of one partition; -1 means unknown.
    LeaderEpoch, i32);
int_type!(
    /// The number of a controller's term.
    ControllerEpoch, i32);
int_type!(
    /// The id of a broker; -1 means none.
    BrokerId, i32);
int_type!(
    /// The czxid of a broker's registration; -1 means unknown.
    BrokerEpoch, i64);
int_type!(
    /// Milliseconds, as a duration or since the Unix epoch, as the name of the field says.
    Millis, i64);

impl Offset {
    /// No offset is known.
    pub const UNKNOWN: Self = Self(-1);

    /// This offset moved by `delta`, kept within the range of an `i64`.
    #[must_use]
    pub fn plus(self, delta: i64) -> Self {
        Self(self.0.saturating_add(delta))
    }
}

impl LeaderEpoch {
    /// No leader epoch is known (as a producer sends it, or an old client).
    pub const UNKNOWN: Self = Self(-1);
}

impl BrokerId {
    /// No broker: a partition without a leader, or a consumer as replica id.
    pub const NONE: Self = Self(-1);
}

/// An instant as the pure code sees it: timers use `mono_ms`, timestamps and retention `wall_ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Now {
    /// Milliseconds of a clock that never goes backwards.
    pub mono_ms: i64,
    /// Milliseconds since the Unix epoch.
    pub wall_ms: i64,
}

/// The name of a topic. Cheap to clone; owns its text, so it never pins a request's frame.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicName(Arc<str>);

impl TopicName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for TopicName {
    fn from(name: &str) -> Self {
        Self(Arc::from(name))
    }
}

impl Borrow<str> for TopicName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl fmt::Display for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One partition of one topic.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    /// The topic.
    pub topic: TopicName,
    /// The index of the partition, from 0.
    pub partition: i32,
}

impl TopicPartition {
    /// The partition `partition` of `topic`.
    pub fn new(topic: impl Into<TopicName>, partition: i32) -> Self {
        Self { topic: topic.into(), partition }
    }
}

impl fmt::Debug for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

/// The id of a topic (KIP-516): 16 bytes, written in URL-safe base64 without padding.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicId(pub [u8; 16]);

const BASE64URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl TopicId {
    /// The absent id.
    pub const ZERO: Self = Self([0; 16]);

    /// Whether this is the absent id.
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }

    /// Reads the 22 characters of [`Display`](fmt::Display); `None` if the text is anything else.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != 22 {
            return None;
        }
        let mut value: u128 = 0;
        for (at, byte) in text.bytes().enumerate() {
            let digit = BASE64URL.iter().position(|b| *b == byte)? as u128;
            // 22 digits carry 132 bits; the lowest four of the last one are padding.
            value = if at == 21 { (value << 2) | (digit >> 4) } else { (value << 6) | digit };
        }
        Some(Self(value.to_be_bytes()))
    }
}

impl fmt::Display for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = u128::from_be_bytes(self.0);
        for at in 0..22u32 {
            let digit = if at == 21 { (value << 4) & 63 } else { (value >> (128 - 6 * (at + 1))) & 63 };
            let letter = BASE64URL.get(digit as usize).copied().unwrap_or(b'A');
            write!(f, "{}", char::from(letter))?;
        }
        Ok(())
    }
}

impl fmt::Debug for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_id_is_written_and_read_as_url_safe_base64_without_padding() {
        let bytes =
            [0x95, 0xef, 0x80, 0x09, 0x1a, 0xe6, 0x4b, 0x5c, 0x8e, 0xf2, 0x19, 0x3e, 0xfd, 0x74, 0xe3, 0x4f];
        assert_eq!(TopicId(bytes).to_string(), "le-ACRrmS1yO8hk-_XTjTw");
        for id in [TopicId(bytes), TopicId::ZERO, TopicId([255; 16])] {
            assert_eq!(TopicId::parse(&id.to_string()), Some(id));
        }
        assert_eq!(TopicId::parse("short"), None);
        assert_eq!(TopicId::parse("le+ACRrmS1yO8hk-_XTjTw"), None);
    }
}
