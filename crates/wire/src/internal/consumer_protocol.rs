//! What consumers say of their subscription inside JoinGroup: opaque to the protocol, but groups of type `consumer` are
//! looked into, to tell which topics are subscribed to.

use std::collections::BTreeSet;

use bytes::Bytes;

use crate::types::TopicName;
use crate::{DecodeError, Decoder};

/// The topics that a subscription names. Any version is read, unknown ones by what all have in common; what follows
/// the topics does not matter.
///
/// # Errors
/// A negative version; bytes that end too early or hold impossible lengths.
pub fn subscribed_topics(subscription: Bytes) -> Result<BTreeSet<TopicName>, DecodeError> {
    let mut src = Decoder::new(subscription);
    let version = src.i16()?;
    if version < 0 {
        return Err(DecodeError::UnsupportedVersion { message: "ConsumerProtocolSubscription", version });
    }
    let topics = src.array(false, 2, |src| src.string(false))?;
    Ok(topics.iter().map(TopicName::from).collect())
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
}
