//! Every topic config key of a 3.9 broker, with the broker keys that give its default.

use super::definition::Scope::ClusterWide;
use super::definition::Valid::{
    Any, AtLeast, Between, BetweenOr, EachOf, OneOf, Ratio, ThrottledReplicas, Version,
};
use super::definition::{Definition, set};
use super::value::Kind::{Boolean, Double, Int, List, Long, String as Text};

/// A topic config key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopicKey {
    /// Type, default and valid values.
    pub definition: Definition,
    /// The broker keys that give the default, the strongest first; some keys have none.
    pub synonyms: &'static [&'static str],
}

const fn topic(definition: Definition, synonyms: &'static [&'static str]) -> TopicKey {
    TopicKey { definition, synonyms }
}

/// Every topic config key, in name order.
pub const KEYS: &[TopicKey] = &[
    topic(
        set("cleanup.policy", List, "delete", EachOf(&["compact", "delete"]), ClusterWide),
        &["log.cleanup.policy"],
    ),
    topic(
        set("compression.gzip.level", Int, "-1", BetweenOr(1, 9, -1), ClusterWide),
        &["compression.gzip.level"],
    ),
    topic(set("compression.lz4.level", Int, "9", Between(1, 17), ClusterWide), &["compression.lz4.level"]),
    topic(
        set(
            "compression.type",
            Text,
            "producer",
            OneOf(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]),
            ClusterWide,
        ),
        &["compression.type"],
    ),
    topic(
        set("compression.zstd.level", Int, "3", Between(-131_072, 22), ClusterWide),
        &["compression.zstd.level"],
    ),
    topic(
        set("delete.retention.ms", Long, "86400000", AtLeast(0), ClusterWide),
        &["log.cleaner.delete.retention.ms"],
    ),
    topic(
        set("file.delete.delay.ms", Long, "60000", AtLeast(0), ClusterWide),
        &["log.segment.delete.delay.ms"],
    ),
    topic(
        set("flush.messages", Long, "9223372036854775807", AtLeast(1), ClusterWide),
        &["log.flush.interval.messages"],
    ),
    topic(
        set("flush.ms", Long, "9223372036854775807", AtLeast(0), ClusterWide),
        &["log.flush.interval.ms", "log.flush.scheduler.interval.ms"],
    ),
    topic(set("follower.replication.throttled.replicas", List, "", ThrottledReplicas, ClusterWide), &[]),
    topic(set("index.interval.bytes", Int, "4096", AtLeast(0), ClusterWide), &["log.index.interval.bytes"]),
    topic(set("leader.replication.throttled.replicas", List, "", ThrottledReplicas, ClusterWide), &[]),
    topic(set("local.retention.bytes", Long, "-2", AtLeast(-2), ClusterWide), &["log.local.retention.bytes"]),
    topic(set("local.retention.ms", Long, "-2", AtLeast(-2), ClusterWide), &["log.local.retention.ms"]),
    topic(
        set("max.compaction.lag.ms", Long, "9223372036854775807", AtLeast(1), ClusterWide),
        &["log.cleaner.max.compaction.lag.ms"],
    ),
    topic(set("max.message.bytes", Int, "1048588", AtLeast(0), ClusterWide), &["message.max.bytes"]),
    topic(
        set("message.downconversion.enable", Boolean, "true", Any, ClusterWide),
        &["log.message.downconversion.enable"],
    ),
    topic(
        set("message.format.version", Text, "3.0-IV1", Version, ClusterWide),
        &["log.message.format.version"],
    ),
    topic(
        set("message.timestamp.after.max.ms", Long, "9223372036854775807", AtLeast(0), ClusterWide),
        &["log.message.timestamp.after.max.ms"],
    ),
    topic(
        set("message.timestamp.before.max.ms", Long, "9223372036854775807", AtLeast(0), ClusterWide),
        &["log.message.timestamp.before.max.ms"],
    ),
    topic(
        set("message.timestamp.difference.max.ms", Long, "9223372036854775807", AtLeast(0), ClusterWide),
        &["log.message.timestamp.difference.max.ms"],
    ),
    topic(
        set(
            "message.timestamp.type",
            Text,
            "CreateTime",
            OneOf(&["CreateTime", "LogAppendTime"]),
            ClusterWide,
        ),
        &["log.message.timestamp.type"],
    ),
    topic(
        set("min.cleanable.dirty.ratio", Double, "0.5", Ratio(0.0, 1.0), ClusterWide),
        &["log.cleaner.min.cleanable.ratio"],
    ),
    topic(
        set("min.compaction.lag.ms", Long, "0", AtLeast(0), ClusterWide),
        &["log.cleaner.min.compaction.lag.ms"],
    ),
    topic(set("min.insync.replicas", Int, "1", AtLeast(1), ClusterWide), &["min.insync.replicas"]),
    topic(set("preallocate", Boolean, "false", Any, ClusterWide), &["log.preallocate"]),
    topic(set("remote.log.copy.disable", Boolean, "false", Any, ClusterWide), &[]),
    topic(set("remote.log.delete.on.disable", Boolean, "false", Any, ClusterWide), &[]),
    topic(set("remote.storage.enable", Boolean, "false", Any, ClusterWide), &[]),
    topic(set("retention.bytes", Long, "-1", Any, ClusterWide), &["log.retention.bytes"]),
    topic(
        set("retention.ms", Long, "604800000", AtLeast(-1), ClusterWide),
        &["log.retention.ms", "log.retention.minutes", "log.retention.hours"],
    ),
    topic(set("segment.bytes", Int, "1073741824", AtLeast(14), ClusterWide), &["log.segment.bytes"]),
    topic(
        set("segment.index.bytes", Int, "10485760", AtLeast(4), ClusterWide),
        &["log.index.size.max.bytes"],
    ),
    topic(
        set("segment.jitter.ms", Long, "0", AtLeast(0), ClusterWide),
        &["log.roll.jitter.ms", "log.roll.jitter.hours"],
    ),
    topic(set("segment.ms", Long, "604800000", AtLeast(1), ClusterWide), &["log.roll.ms", "log.roll.hours"]),
    topic(
        set("unclean.leader.election.enable", Boolean, "false", Any, ClusterWide),
        &["unclean.leader.election.enable"],
    ),
];

/// The key of this name.
#[must_use]
pub fn get(name: &str) -> Option<&'static TopicKey> {
    KEYS.iter().find(|key| key.definition.name == name)
}
