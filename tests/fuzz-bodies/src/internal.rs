//! Records of internal topics, whatever an earlier or later broker, or a client with too many rights, has written.

use bytes::Bytes;
use wire::internal::{
    ConsumerProtocolAssignment, ConsumerProtocolSubscription, GroupMetadataValue, OffsetCommitValue,
    OffsetsKey, subscribed_topics,
};

/// Keys and values of `__consumer_offsets`, and what consumers say in them: the first byte chooses.
pub fn offsets_records(input: &[u8]) {
    let Some((choice, bytes)) = input.split_first() else { return };
    let bytes = Bytes::copy_from_slice(bytes);
    match choice % 4 {
        0 => {
            let Ok(key) = OffsetsKey::decode(bytes) else { return };
            let again = key.encode().ok().map(OffsetsKey::decode);
            assert!(again == Some(Ok(key)), "a key is not read back as written");
        }
        1 => {
            let Ok(value) = OffsetCommitValue::decode(bytes) else { return };
            let again = value.encode(3).ok().map(OffsetCommitValue::decode);
            assert!(again == Some(Ok(value)), "an offset is not read back as written");
        }
        2 => {
            let Ok(value) = GroupMetadataValue::decode(bytes) else { return };
            let again = value.encode(3).ok().map(GroupMetadataValue::decode);
            assert!(again == Some(Ok(value)), "a group is not read back as written");
        }
        _ => {
            let _any_assignment = ConsumerProtocolAssignment::decode(bytes.clone());
            let whole = ConsumerProtocolSubscription::decode(bytes.clone());
            let topics = subscribed_topics(bytes);
            let named = whole.map(|whole| whole.topics.iter().map(Into::into).collect());
            assert!(named.is_err() || named == topics, "two ways to read a subscription differ");
        }
    }
}
