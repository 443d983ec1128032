//! The records of internal topics, as Kafka 3.9 writes and reads them.
//!
//! A key or value begins with its version, an `int16`; then come fields as in messages. Versions that Kafka only reads
//! (flexible values, KIP-915) are read here too, and never written. Decoding is total: any bytes give a record or a
//! [`DecodeError`](crate::DecodeError), and what is allocated is bounded by the bytes that are there. Trailing bytes
//! are passed over, as in Kafka.

mod consumer_protocol;
mod group_metadata;
mod offset_commit;
mod offsets_key;
#[cfg(test)]
mod tests;

pub use consumer_protocol::{
    ConsumerPartitions, ConsumerProtocolAssignment, ConsumerProtocolSubscription, subscribed_topics,
};
pub use group_metadata::{GroupMetadataValue, MemberValue};
pub use offset_commit::OffsetCommitValue;
pub use offsets_key::OffsetsKey;
