//! Replica fetchers, fetch sessions, purgatories and quotas.

use crate::config::definition::Scope::{ClusterWide, ReadOnly};
use crate::config::definition::Valid::{Any, AtLeast};
use crate::config::definition::{Definition, set, unset};
use crate::config::value::Kind::{Class, Int, Long, String};

/// The keys, in name order.
pub(super) const KEYS: &[Definition] = &[
    set("alter.log.dirs.replication.quota.window.num", Int, "11", AtLeast(1), ReadOnly),
    set("alter.log.dirs.replication.quota.window.size.seconds", Int, "1", AtLeast(1), ReadOnly),
    unset("client.quota.callback.class", Class, Any, ReadOnly),
    set("delete.records.purgatory.purge.interval.requests", Int, "1", Any, ReadOnly),
    set("fetch.max.bytes", Int, "57671680", AtLeast(1024), ReadOnly),
    set("fetch.purgatory.purge.interval.requests", Int, "1000", Any, ReadOnly),
    set("max.incremental.fetch.session.cache.slots", Int, "1000", AtLeast(0), ReadOnly),
    unset("num.replica.alter.log.dirs.threads", Int, Any, ReadOnly),
    set("num.replica.fetchers", Int, "1", Any, ClusterWide),
    set("producer.purgatory.purge.interval.requests", Int, "1000", Any, ReadOnly),
    set("quota.window.num", Int, "11", AtLeast(1), ReadOnly),
    set("quota.window.size.seconds", Int, "1", AtLeast(1), ReadOnly),
    set("replica.fetch.backoff.ms", Int, "1000", AtLeast(0), ReadOnly),
    set("replica.fetch.max.bytes", Int, "1048576", AtLeast(0), ReadOnly),
    set("replica.fetch.min.bytes", Int, "1", Any, ReadOnly),
    set("replica.fetch.response.max.bytes", Int, "10485760", AtLeast(0), ReadOnly),
    set("replica.fetch.wait.max.ms", Int, "500", Any, ReadOnly),
    set("replica.high.watermark.checkpoint.interval.ms", Long, "5000", Any, ReadOnly),
    set("replica.lag.time.max.ms", Long, "30000", Any, ReadOnly),
    unset("replica.selector.class", String, Any, ReadOnly),
    set("replica.socket.receive.buffer.bytes", Int, "65536", Any, ReadOnly),
    set("replica.socket.timeout.ms", Int, "30000", Any, ReadOnly),
    set("replication.quota.window.num", Int, "11", AtLeast(1), ReadOnly),
    set("replication.quota.window.size.seconds", Int, "1", AtLeast(1), ReadOnly),
];
