//! Stands where rskafka's tests drive librdkafka: its own tests run beside them.
//!
//! The tests that would need it are left out by name.

use rskafka::client::partition::Compression;
use rskafka::record::{Record, RecordAndOffset};

/// Writes nothing.
pub async fn produce(_: &[String], _: Vec<(String, i32, Record)>, _: Compression) -> Vec<i64> {
    Vec::new()
}

/// Reads nothing.
pub async fn consume(_: &[String], _: &str, _: i32, _: usize) -> Vec<RecordAndOffset> {
    Vec::new()
}
