//! Stands where rskafka's tests drive Java's client, which wants a virtual machine inside their process.
//!
//! The tests that would need it are left out by name.

use rskafka::client::partition::Compression;
use rskafka::record::{Record, RecordAndOffset};

/// Fails the test that asks for Java.
#[macro_export]
macro_rules! maybe_skip_java_interopt {
    () => {
        assert!(std::env::var("TEST_JAVA_INTEROPT").is_ok(), "no client of Java here")
    };
}

/// Writes nothing.
pub async fn produce(_: &[String], _: Vec<(String, i32, Record)>, _: Compression) -> Vec<i64> {
    Vec::new()
}

/// Reads nothing.
pub async fn consume(_: &[String], _: &str, _: i32, _: usize) -> Vec<RecordAndOffset> {
    Vec::new()
}
