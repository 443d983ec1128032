//! Tiered storage (KIP-405).

use crate::config::definition::Scope::{ClusterWide, ReadOnly};
use crate::config::definition::Valid::{Any, AtLeast, NotEmpty, Ratio, ThreadPoolSize};
use crate::config::definition::{Definition, set, unset};
use crate::config::value::Kind::{Boolean, Double, Int, Long, String};

/// The keys, in name order.
pub(super) const KEYS: &[Definition] = &[
    set("remote.fetch.max.wait.ms", Int, "500", AtLeast(1), ClusterWide),
    set("remote.log.index.file.cache.total.size.bytes", Long, "1073741824", AtLeast(1), ClusterWide),
    set("remote.log.manager.copier.thread.pool.size", Int, "-1", ThreadPoolSize, ReadOnly),
    set("remote.log.manager.copy.max.bytes.per.second", Long, "9223372036854775807", AtLeast(1), ClusterWide),
    set("remote.log.manager.copy.quota.window.num", Int, "11", AtLeast(1), ReadOnly),
    set("remote.log.manager.copy.quota.window.size.seconds", Int, "1", AtLeast(1), ReadOnly),
    set("remote.log.manager.expiration.thread.pool.size", Int, "-1", ThreadPoolSize, ReadOnly),
    set(
        "remote.log.manager.fetch.max.bytes.per.second",
        Long,
        "9223372036854775807",
        AtLeast(1),
        ClusterWide,
    ),
    set("remote.log.manager.fetch.quota.window.num", Int, "11", AtLeast(1), ReadOnly),
    set("remote.log.manager.fetch.quota.window.size.seconds", Int, "1", AtLeast(1), ReadOnly),
    set("remote.log.manager.task.interval.ms", Long, "30000", AtLeast(1), ReadOnly),
    set("remote.log.manager.task.retry.backoff.max.ms", Long, "30000", AtLeast(1), ReadOnly).internal(),
    set("remote.log.manager.task.retry.backoff.ms", Long, "500", AtLeast(1), ReadOnly).internal(),
    set("remote.log.manager.task.retry.jitter", Double, "0.2", Ratio(0.0, 0.5), ReadOnly).internal(),
    set("remote.log.manager.thread.pool.size", Int, "10", AtLeast(1), ReadOnly),
    set("remote.log.metadata.custom.metadata.max.bytes", Int, "128", AtLeast(0), ReadOnly),
    set(
        "remote.log.metadata.manager.class.name",
        String,
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
        NotEmpty,
        ReadOnly,
    ),
    unset("remote.log.metadata.manager.class.path", String, Any, ReadOnly),
    set("remote.log.metadata.manager.impl.prefix", String, "rlmm.config.", NotEmpty, ReadOnly),
    unset("remote.log.metadata.manager.listener.name", String, NotEmpty, ReadOnly),
    set("remote.log.reader.max.pending.tasks", Int, "100", AtLeast(1), ReadOnly),
    set("remote.log.reader.threads", Int, "10", AtLeast(1), ReadOnly),
    unset("remote.log.storage.manager.class.name", String, NotEmpty, ReadOnly),
    unset("remote.log.storage.manager.class.path", String, Any, ReadOnly),
    set("remote.log.storage.manager.impl.prefix", String, "rsm.config.", NotEmpty, ReadOnly),
    set("remote.log.storage.system.enable", Boolean, "false", Any, ReadOnly),
];
