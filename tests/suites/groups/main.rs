//! Groups of real clients: three members share a topic, members and brokers are killed, and writing goes on. Nothing is
//! lost, and what was confirmed as committed is read by nobody again, as far as clients tell what they commit. With
//! `BLUMFELD_TEST_TARGET=kafka` the same runs against the real one.

mod judge;
mod many;
mod member;
mod one_node;
mod seen;
mod tenth;
mod three_nodes;
mod tool;

use std::time::Duration;

pub(crate) const TOPIC: &str = "shared";
pub(crate) const GROUP: &str = "sharers";
pub(crate) const PARTITIONS: usize = 6;
/// Records that are written at a time.
pub(crate) const COUNT: usize = 300;
pub(crate) const LIMIT: Duration = Duration::from_secs(120);
/// Joined within a second after the first, the members of a new group share the topic at once.
pub(crate) const PROPERTIES: [(&str, &str); 2] =
    [("group.initial.rebalance.delay.ms", "1000"), ("offsets.topic.num.partitions", "5")];
