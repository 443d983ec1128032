//! Dynamic configs of brokers, for one and for all: what is taken, what is refused, and what is told of it afterwards.

use anyhow::Result;
use wire::Str;
use wire::messages::describe_configs_request::DescribeConfigsResource;
use wire::messages::{AlterConfigsRequest, DescribeConfigsRequest, IncrementalAlterConfigsRequest};
use wire::messages::{alter_configs_request as legacy, incremental_alter_configs_request as incremental};

use super::all;
use crate::lab::Lab;

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const ONE: &str = "0";
const ALL: &str = "";
const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;
/// A key without any effect in these cases: whoever shows its newest value has followed all changes before it.
const MARK: &str = "replica.alter.log.dirs.io.max.bytes.per.second";

type Changes<'a> = &'a [(&'a str, i8, Option<&'a str>)];

/// What is taken, in this order, by one broker or by all.
const TAKEN: &[(&str, Changes<'_>)] = &[
    (ALL, &[("num.io.threads", SET, Some("10"))]),
    (ONE, &[("num.io.threads", SET, Some("12"))]),
    (ONE, &[("num.io.threads", DELETE, None)]),
    (ALL, &[("num.io.threads", DELETE, None)]),
    (ONE, &[("num.replica.fetchers", SET, Some("2")), ("background.threads", SET, Some(" 11 "))]),
    (ONE, &[("num.recovery.threads.per.data.dir", SET, Some("2"))]),
    (ONE, &[("num.network.threads", SET, Some("4"))]),
    (ONE, &[("listener.name.plaintext.num.network.threads", SET, Some("5"))]),
    (ONE, &[("listener.name.other.num.network.threads", SET, Some("70"))]),
    (ALL, &[("log.cleaner.threads", SET, Some("2")), ("log.cleaner.backoff.ms", SET, Some("100"))]),
    (
        ALL,
        &[
            ("log.cleaner.io.buffer.load.factor", SET, Some("0.5")),
            ("log.cleaner.io.buffer.size", SET, Some("0")),
        ],
    ),
    (ALL, &[("message.max.bytes", SET, Some("5000000"))]),
    (ALL, &[("log.retention.ms", SET, Some("-2"))]),
    (ALL, &[("log.retention.ms", SET, Some("2000000"))]),
    (ONE, &[("log.retention.ms", SET, Some("3000000"))]),
    (ALL, &[("log.local.retention.ms", SET, Some("1000"))]),
    (ONE, &[("log.retention.ms", DELETE, None)]),
    (ALL, &[("log.retention.ms", DELETE, None), ("log.local.retention.ms", DELETE, None)]),
    (ALL, &[("log.roll.ms", SET, Some("1000000")), ("log.flush.interval.ms", SET, Some("1000"))]),
    (ALL, &[("compression.type", SET, Some("zstd")), ("min.insync.replicas", SET, Some("2"))]),
    (ALL, &[("log.cleanup.policy", APPEND, Some("compact"))]),
    (ALL, &[("log.cleanup.policy", SUBTRACT, Some("delete"))]),
    (ALL, &[("log.cleanup.policy", DELETE, None)]),
    (ALL, &[("unclean.leader.election.enable", SET, Some("TRUE"))]),
    (ALL, &[("max.connections.per.ip.overrides", SET, Some("127.0.0.1:1000"))]),
    (ALL, &[("max.connections", SET, Some("1000")), ("max.connection.creation.rate", SET, Some("1000"))]),
    (ONE, &[("listener.name.plaintext.max.connections", SET, Some("900"))]),
    (ALL, &[("metric.reporters", SET, Some("org.apache.kafka.common.metrics.JmxReporter"))]),
    (ALL, &[("metric.reporters", SET, Some(""))]),
    (ONE, &[("leader.replication.throttled.rate", SET, Some("1000"))]),
    (ALL, &[("follower.replication.throttled.rate", SET, Some("1000"))]),
    (ONE, &[("producer.id.expiration.ms", SET, Some("500000"))]),
    (ONE, &[("transaction.partition.verification.enable", SET, Some("false"))]),
    (ONE, &[("remote.fetch.max.wait.ms", SET, Some("5"))]),
    (ONE, &[("no.such.key", SET, Some("value"))]),
    (ALL, &[("no.such.key.of.all", SET, Some("value"))]),
    (ONE, &[("broker.rack", DELETE, None)]),
    (ONE, &[("log.preallocate", SET, Some("true")), ("log.segment.delete.delay.ms", SET, Some("1"))]),
    (ONE, &[]),
];

/// What is refused.
const REFUSED: &[(&str, Changes<'_>)] = &[
    (ONE, &[("num.io.threads", SET, Some("17"))]),
    (ONE, &[("num.io.threads", SET, Some("3"))]),
    (ONE, &[("num.io.threads", SET, Some("0"))]),
    (ONE, &[("num.io.threads", SET, Some("x"))]),
    (ONE, &[("num.io.threads", SET, None)]),
    (ONE, &[("num.io.threads", APPEND, Some("4"))]),
    (ONE, &[("num.io.threads", 7, Some("4"))]),
    (ONE, &[("num.io.threads", SET, Some("8")), ("num.io.threads", DELETE, None)]),
    (ALL, &[("background.threads", SET, Some("21"))]),
    (ONE, &[("num.network.threads", SET, Some("7"))]),
    (ONE, &[("listener.name.plaintext.num.network.threads", SET, Some("7"))]),
    (ONE, &[("listener.name.plaintext.max.connections", SET, Some("0"))]),
    (ONE, &[("listener.name.plaintext.max.connection.creation.rate", SET, Some("0"))]),
    (ALL, &[("max.connections.per.ip", SET, Some("0"))]),
    (ALL, &[("max.connections.per.ip.overrides", SET, Some("garbage"))]),
    (ALL, &[("log.cleaner.threads", SET, Some("3"))]),
    (ALL, &[("log.cleaner.dedupe.buffer.size", SET, Some("100"))]),
    (ALL, &[("log.retention.ms", SET, Some("0"))]),
    (ALL, &[("log.retention.ms", SET, Some("1000")), ("log.local.retention.ms", SET, Some("2000"))]),
    (ALL, &[("log.retention.ms", SET, Some("1000")), ("log.local.retention.ms", SET, Some("-1"))]),
    (ALL, &[("log.retention.bytes", SET, Some("1000")), ("log.local.retention.bytes", SET, Some("2000"))]),
    (ALL, &[("log.retention.hours", SET, Some("1"))]),
    (ALL, &[("log.roll.ms", SET, Some("0"))]),
    (ALL, &[("compression.type", SET, Some("foo"))]),
    (ALL, &[("compression.gzip.level", SET, Some("0"))]),
    (ALL, &[("log.message.format.version", SET, Some("2.0"))]),
    (ALL, &[("unclean.leader.election.enable", SET, Some("maybe"))]),
    (ALL, &[("metric.reporters", SET, Some("no.such.Class"))]),
    (ONE, &[("principal.builder.class", SET, Some("no.such.Class"))]),
    (ONE, &[("sasl.jaas.config", SET, Some("foo"))]),
    (ALL, &[("sasl.jaas.config", SET, Some("foo"))]),
    (ONE, &[("listener.name.other.plain.sasl.jaas.config", SET, Some("foo"))]),
    (ONE, &[("ssl.keystore.password", SET, Some("foo"))]),
    (ONE, &[("ssl.truststore.location", SET, Some("foo"))]),
    (ONE, &[("listener.name.other.ssl.key.password", SET, Some("foo"))]),
    (ONE, &[("listeners", SET, Some("NEW://127.0.0.1:0"))]),
    (ALL, &[("listeners", SET, Some("PLAINTEXT://127.0.0.1:0"))]),
    (ALL, &[("advertised.listeners", SET, Some("PLAINTEXT://localhost:1"))]),
    (ONE, &[("advertised.listeners", SET, Some("NEW://localhost:1"))]),
    (ALL, &[("listener.name.plaintext.ssl.protocol", SET, Some("TLSv1.2"))]),
    (ALL, &[("leader.replication.throttled.rate", SET, Some("-1"))]),
    (ONE, &[("producer.id.expiration.ms", SET, Some("0"))]),
    (ONE, &[("no.such.key", APPEND, Some("value"))]),
    (ONE, &[("broker.rack", SET, Some("x"))]),
    (ALL, &[("num.partitions", SET, Some("2")), ("num.io.threads", SET, Some("9"))]),
    (ONE, &[("log.segment.bytes", SET, Some("13"))]),
    (ONE, &[("log.index.size.max.bytes", SET, Some("3"))]),
];

pub fn run(lab: &mut Lab) -> Result<()> {
    lab.create_topic("t", 1, &[("retention.bytes", "5")])?;
    let mut mark = 0;
    for (name, changes) in REFUSED {
        let case = format!("refused {name:?} {changes:?}");
        for validate_only in [true, false] {
            lab.ask(&format!("{case}, dry {validate_only}"), 0..=1, |_, _| {
                change(name, changes, validate_only)
            })?;
        }
    }
    look(lab, "all refusals", &mut mark)?;
    for (name, changes) in TAKEN {
        let case = format!("taken {name:?} {changes:?}");
        lab.ask(&format!("{case}, dry"), 0..=1, |_, _| change(name, changes, true))?;
        lab.ask(&case, 0..=0, |_, _| change(name, changes, false))?;
        look(lab, &case, &mut mark)?;
    }
    for name in [ONE, ALL] {
        let replaced: &[(&str, &str)] = &[("background.threads", "9"), ("log.roll.ms", "7000000")];
        for (configs, version) in [(replaced, 0), (&replaced[..1], 1), (&[], 2)] {
            let case = format!("replaced {name:?} {configs:?}");
            lab.ask(&case, version..=version, |_, _| replace(name, configs))?;
            look(lab, &case, &mut mark)?;
        }
    }
    Ok(())
}

fn change(name: &str, changes: Changes<'_>, validate_only: bool) -> IncrementalAlterConfigsRequest {
    let configs = changes.iter().map(|(name, operation, value)| incremental::AlterableConfig {
        name: Str::from(*name),
        config_operation: *operation,
        value: value.map(Str::from),
    });
    let resource = incremental::AlterConfigsResource {
        resource_type: BROKER,
        resource_name: Str::from(name),
        configs: configs.collect(),
    };
    IncrementalAlterConfigsRequest { resources: vec![resource], validate_only }
}

fn replace(name: &str, configs: &[(&str, &str)]) -> AlterConfigsRequest {
    let configs = configs.iter().map(|(name, value)| legacy::AlterableConfig {
        name: Str::from(*name),
        value: Some(Str::from(*value)),
    });
    let resource = legacy::AlterConfigsResource {
        resource_type: BROKER,
        resource_name: Str::from(name),
        configs: configs.collect(),
    };
    AlterConfigsRequest { resources: vec![resource], validate_only: false }
}

fn describe(kind: i8, name: &str, keys: Option<&[&str]>) -> DescribeConfigsRequest {
    DescribeConfigsRequest {
        resources: vec![DescribeConfigsResource {
            resource_type: kind,
            resource_name: Str::from(name),
            configuration_keys: keys.map(|keys| keys.iter().map(|key| Str::from(*key)).collect()),
        }],
        include_synonyms: true,
        ..DescribeConfigsRequest::default()
    }
}

/// Compares what is told of the broker, of all brokers and of a topic, when both have followed what was changed.
fn look(lab: &mut Lab, case: &str, mark: &mut i64) -> Result<()> {
    for name in [ALL, ONE] {
        *mark += 1;
        let value = mark.to_string();
        let marking = change(name, &[(MARK, SET, Some(&value))], false);
        lab.ask(&format!("mark after {case}"), 1..=1, |_, _| marking.clone())?;
        lab.until("the mark", 4, &describe(BROKER, name, Some(&[MARK])), |response| {
            let told = response.results.iter().flat_map(|result| &result.configs);
            told.into_iter().any(|config| config.value.as_deref() == Some(&value))
        })?;
    }
    for (kind, name) in [(BROKER, ALL), (BROKER, ONE), (TOPIC, "t")] {
        lab.ask(&format!("broker configs after {case}"), all::<DescribeConfigsRequest>(), |_, version| {
            DescribeConfigsRequest { include_synonyms: version > 0, ..describe(kind, name, None) }
        })?;
    }
    Ok(())
}
