//! Every config key of a 3.9 broker, one table per subject. Keys of parts that Blumfeld does not have are
//! here too: they are accepted, checked and described as Kafka does.

mod cluster;
mod coordinators;
mod log;
mod metrics;
mod remote;
mod replication;
mod security;
mod sockets;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::definition::Scope::{ClusterWide, ReadOnly};
use super::definition::Valid::{Any, AtLeast};
use super::definition::{Definition, set};
use super::value::Kind::{Long, String};

/// Keys that exist only as dynamic broker configs, never in a file.
const DYNAMIC_ONLY: &[Definition] = &[
    set("follower.replication.throttled.rate", Long, "9223372036854775807", AtLeast(0), ClusterWide),
    set("leader.replication.throttled.rate", Long, "9223372036854775807", AtLeast(0), ClusterWide),
    set(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        Long,
        "9223372036854775807",
        AtLeast(0),
        ClusterWide,
    ),
];

/// Keys that Kafka does not have.
const OWN: &[Definition] = &[set("blumfeld.http.address", String, "127.0.0.1:9644", Any, ReadOnly)];

static BY_NAME: LazyLock<BTreeMap<&'static str, Definition>> = LazyLock::new(|| {
    let tables = [
        cluster::KEYS,
        coordinators::KEYS,
        log::KEYS,
        metrics::KEYS,
        remote::KEYS,
        replication::KEYS,
        security::KEYS,
        sockets::KEYS,
    ];
    tables.into_iter().flatten().map(|definition| (definition.name, *definition)).collect()
});

/// All keys of a Kafka broker that a file may set, in name order.
pub fn all() -> impl Iterator<Item = &'static Definition> {
    BY_NAME.values()
}

/// The keys that Kafka does not have.
pub fn own() -> impl Iterator<Item = &'static Definition> {
    OWN.iter()
}

/// The definition of exactly this key, among those that a file may set.
#[must_use]
pub fn get(name: &str) -> Option<&'static Definition> {
    BY_NAME.get(name).or_else(|| OWN.iter().find(|definition| definition.name == name))
}

/// The definition of a key that exists only as a dynamic config.
#[must_use]
pub fn dynamic_only(name: &str) -> Option<&'static Definition> {
    DYNAMIC_ONLY.iter().find(|definition| definition.name == name)
}

/// The definition that rules `name`, which may carry a listener prefix (`listener.name.x.ssl.protocol`) or a
/// listener and a mechanism (`listener.name.x.plain.sasl.jaas.config`).
#[must_use]
pub fn governing(name: &str) -> Option<&'static Definition> {
    get(name).or_else(|| dynamic_only(name)).or_else(|| get(listener_base(name)?))
}

/// Keys that may be set per SASL mechanism of a listener.
const PER_MECHANISM: [&str; 5] = [
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
];

/// The key below a listener prefix, without the mechanism; `None` if there is no listener prefix.
#[must_use]
pub fn listener_base(name: &str) -> Option<&str> {
    let (_, base) = name.strip_prefix("listener.name.")?.split_once('.')?;
    let mechanism_key = PER_MECHANISM.into_iter().find(|key| base.ends_with(key));
    Some(mechanism_key.unwrap_or(base))
}

/// The names that may give the value of `name`, the strongest first (KIP-226): for the time keys their group,
/// for a key with a listener prefix the key itself and then the one without, else the name alone.
#[must_use]
pub fn synonyms(name: &str) -> Vec<&str> {
    const GROUPS: [&[&str]; 3] = [
        &["log.roll.ms", "log.roll.hours"],
        &["log.roll.jitter.ms", "log.roll.jitter.hours"],
        &["log.retention.ms", "log.retention.minutes", "log.retention.hours"],
    ];
    if let Some(group) = GROUPS.into_iter().find(|group| group.contains(&name)) {
        return group.to_vec();
    }
    match listener_base(name) {
        _ if name == "log.flush.interval.ms" => vec![name, "log.flush.scheduler.interval.ms"],
        Some(base) => vec![name, base],
        None => vec![name],
    }
}

#[cfg(test)]
mod tests {
    use super::super::definition::{Scope, Valid};
    use super::*;

    #[test]
    fn the_tables_hold_every_key_once_and_every_default_is_valid() {
        assert_eq!(all().count(), 329);
        for definition in all().chain(own()).chain(DYNAMIC_ONLY) {
            if let Some(default) = definition.default {
                let parsed = definition.parse(default).unwrap();
                assert_eq!(parsed.to_string(), default, "{}", definition.name);
            }
        }
    }

    #[test]
    fn eighty_nine_keys_are_dynamic() {
        let dynamic = all().filter(|definition| definition.scope != Scope::ReadOnly).count();
        assert_eq!(dynamic, 89);
    }

    #[test]
    fn ranges_that_are_easily_forgotten() {
        let valid = |name| get(name).unwrap().valid;
        assert_eq!(valid("log.segment.bytes"), Valid::AtLeast(14));
        assert_eq!(valid("fetch.max.bytes"), Valid::AtLeast(1024));
        assert_eq!(valid("log.cleaner.min.cleanable.ratio"), Valid::Ratio(0.0, 1.0));
        assert_eq!(valid("compression.gzip.level"), Valid::BetweenOr(1, 9, -1));
        assert_eq!(valid("log.retention.ms"), Valid::Any);
    }

    #[test]
    fn a_listener_prefix_leads_to_the_base_key() {
        assert_eq!(listener_base("listener.name.x.ssl.keystore.type"), Some("ssl.keystore.type"));
        assert_eq!(listener_base("listener.name.x.plain.sasl.jaas.config"), Some("sasl.jaas.config"));
        assert_eq!(listener_base("listeners"), None);
        assert_eq!(governing("listener.name.x.max.connections").unwrap().name, "max.connections");
        assert!(governing("listener.name.x.no.such.key").is_none());
        assert_eq!(governing("leader.replication.throttled.rate").unwrap().kind, Long);
    }

    #[test]
    fn synonyms_are_asked_in_kafkas_order() {
        assert_eq!(
            synonyms("log.retention.hours"),
            ["log.retention.ms", "log.retention.minutes", "log.retention.hours"]
        );
        assert_eq!(
            synonyms("log.flush.interval.ms"),
            ["log.flush.interval.ms", "log.flush.scheduler.interval.ms"]
        );
        assert_eq!(synonyms("log.flush.scheduler.interval.ms"), ["log.flush.scheduler.interval.ms"]);
        assert_eq!(
            synonyms("listener.name.x.plain.sasl.jaas.config"),
            ["listener.name.x.plain.sasl.jaas.config", "sasl.jaas.config"]
        );
    }
}
