//! The cases, one file a subject; they run in order on the same two brokers.

pub mod administration;
pub mod broker_configs;
pub mod configs;
pub mod fetch;
pub mod forbidden;
pub mod frames;
pub mod group_refusals;
pub mod groups;
pub mod metadata;
pub mod offsets;
pub mod produce;
pub mod producers;
pub mod static_members;
pub mod topics;

use std::ops::RangeInclusive;

use anyhow::Result;
use wire::messages::Message;

use crate::lab::Lab;

/// All versions of a request.
pub fn all<M: Message>() -> RangeInclusive<i16> {
    M::VERSIONS
}

/// The topics that the cases use, with what is special about each.
pub fn setup(lab: &mut Lab) -> Result<()> {
    lab.create_topic("one", 1, &[])?;
    lab.create_topic("three", 3, &[])?;
    lab.create_topic("stamped", 1, &[("message.timestamp.type", "LogAppendTime")])?;
    lab.create_topic("zipped", 1, &[("compression.type", "gzip")])?;
    lab.create_topic("plain", 1, &[("compression.type", "uncompressed")])?;
    lab.create_topic("small", 1, &[("max.message.bytes", "300")])?;
    lab.create_topic("fresh", 1, &[("message.timestamp.before.max.ms", "60000")])?;
    lab.create_topic("two-replicas", 1, &[("min.insync.replicas", "2")])?;
    lab.create_topic("segments", 1, &[("segment.bytes", "300")])?;
    lab.create_topic("keyed", 1, &[("cleanup.policy", "compact")])?;
    lab.create_topic("odd", 2, &[])?;
    lab.create_topic("odd-zipped", 1, &[("compression.type", "gzip")])?;
    lab.create_topic("life", 3, &[])?;
    lab.create_topic("other", 1, &[])?;
    lab.create_topic("empty", 2, &[])
}
