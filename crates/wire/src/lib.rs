//! Vocabulary, messages and record batches of the Kafka protocol; pure.

pub mod types;
