//! Writes the metrics as Prometheus reads them.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::cleaner;
use super::controller;
use super::group_lag;
use super::groups;
use super::replicas;
use super::replication;
use super::requests::QUANTILES;
use crate::append::Lanes;
use crate::broker::Broker;

pub(super) type Labels = Vec<(&'static str, String)>;

/// All metrics of the broker, as text of the OpenMetrics format.
pub(crate) fn render(broker: &Arc<Broker>) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Snapshot(broker.clone())));
    let mut text = String::new();
    if let Err(error) = text::encode(&mut text, &registry) {
        tracing::error!(%error, "the metrics cannot be written");
    }
    text
}

struct Snapshot(Arc<Broker>);

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Snapshot")
    }
}

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        topics(&self.0, &mut encoder)?;
        requests(&self.0, &mut encoder)?;
        states(&self.0, &mut encoder)?;
        controller::encode(&self.0, &mut encoder)?;
        groups::encode(&self.0, &mut encoder)?;
        group_lag::encode(&self.0, &mut encoder)?;
        replicas::encode(&self.0, &mut encoder)?;
        replication::encode(&self.0, &mut encoder)?;
        cleaner::encode(&self.0, &mut encoder)?;
        logs(&self.0, &mut encoder)
    }
}

pub(super) fn counters(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    series: impl IntoIterator<Item = (Labels, u64)>,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, value) in series {
        ConstCounter::new(value).encode(metric.encode_family(&labels)?)?;
    }
    Ok(())
}

pub(super) fn gauges(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    series: impl IntoIterator<Item = (Labels, f64)>,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in series {
        ConstGauge::new(value).encode(metric.encode_family(&labels)?)?;
    }
    Ok(())
}

pub(super) fn gauge(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: f64) -> fmt::Result {
    gauges(encoder, name, help, [(Vec::new(), value)])
}

fn topics(broker: &Broker, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let of_topics = broker.metrics().topic_meters();
    for (at, (name, total)) in broker.metrics().all_topics.named().into_iter().enumerate() {
        let each = of_topics.iter().filter_map(|(topic, meters)| {
            let (_, counter) = meters.named().into_iter().nth(at)?;
            Some((vec![("topic", topic.to_string())], counter.get()))
        });
        let series = std::iter::once((Vec::new(), total.get())).chain(each);
        counters(encoder, &format!("kafka_server_brokertopicmetrics_{name}"), "BrokerTopicMetrics", series)?;
    }
    Ok(())
}

fn requests(broker: &Broker, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let keys = broker.metrics().requests.snapshot();
    let by_version = keys.iter().flat_map(|key| {
        let labels =
            |version: usize| vec![("request", key.name.to_owned()), ("version", version.to_string())];
        key.by_version.iter().map(move |(version, n)| (labels(*version), *n))
    });
    counters(encoder, "kafka_network_requestmetrics_requests", "Requests by name and version", by_version)?;
    let times = keys.iter().flat_map(|key| {
        QUANTILES.iter().zip(key.total_ms).map(|(quantile, ms)| {
            (vec![("request", key.name.to_owned()), ("quantile", format!("{quantile:.3}"))], ms)
        })
    });
    gauges(
        encoder,
        "kafka_network_requestmetrics_totaltimems",
        "Milliseconds from arrival to answer",
        times,
    )?;
    let counts = keys.iter().map(|key| (vec![("request", key.name.to_owned())], count(key.count)));
    gauges(encoder, "kafka_network_requestmetrics_totaltimems_count", "Requests that were timed", counts)
}

fn states(broker: &Broker, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let (sessions, cached, evictions) = broker.fetch_sessions().counts();
    let plain = [
        ("kafka_server_kafkaserver_brokerstate", "State of the broker", f64::from(broker.state())),
        (
            "kafka_server_fetchsessioncache_numincrementalfetchsessions",
            "Open fetch sessions",
            total(sessions),
        ),
        (
            "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached",
            "Partitions in sessions",
            total(cached),
        ),
        (
            "kafka_log_logmanager_offlinelogdirectorycount",
            "Failed log directories",
            total(broker.offline_log_dirs()),
        ),
        (
            "blumfeld_stalled_log_directories",
            "Log directories whose disk holds an append up",
            total(broker.lanes().map_or(0, Lanes::stalled)),
        ),
    ];
    for (name, help, value) in plain {
        gauge(encoder, name, help, value)?;
    }
    counters(
        encoder,
        "kafka_server_delayedfetchmetrics_expires",
        "Fetches answered because their time was over",
        [
            (vec![("fetcherType", "consumer".to_owned())], broker.metrics().expired_fetches.get()),
            (
                vec![("fetcherType", "follower".to_owned())],
                broker.metrics().replication.expired_fetches.get(),
            ),
        ],
    )?;
    let evicted = [(Vec::new(), evictions)];
    counters(
        encoder,
        "kafka_server_fetchsessioncache_incrementalfetchsessionevictions",
        "Evicted sessions",
        evicted,
    )
}

fn logs(broker: &Broker, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let partitions = broker.partitions().all();
    let series = |value: &dyn Fn(&crate::partition::Partition) -> f64| {
        let each = partitions.iter().map(|partition| {
            let name = partition.name();
            let labels = vec![("topic", name.topic.to_string()), ("partition", name.partition.to_string())];
            (labels, value(partition))
        });
        each.collect::<Vec<_>>()
    };
    let size = series(&|p| count(p.log().size_bytes()));
    gauges(encoder, "kafka_log_log_size", "Bytes of the log", size)?;
    let segments = series(&|p| total(p.log().segment_count()));
    gauges(encoder, "kafka_log_log_numlogsegments", "Segments of the log", segments)?;
    let start = series(&|p| offset(p.log().positions().log_start));
    gauges(encoder, "kafka_log_log_logstartoffset", "First offset", start)?;
    let end = series(&|p| offset(p.log().positions().log_end));
    gauges(encoder, "kafka_log_log_logendoffset", "Next offset", end)?;
    let lag = series(&|p| {
        let positions = p.log().positions();
        offset(positions.high_watermark) - offset(positions.last_stable)
    });
    gauges(encoder, "kafka_cluster_partition_laststableoffsetlag", "Offsets in open transactions", lag)
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus knows only doubles")]
pub(super) fn total(n: usize) -> f64 {
    n as f64
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus knows only doubles")]
pub(super) fn count(n: u64) -> f64 {
    n as f64
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus knows only doubles")]
pub(super) fn offset(offset: wire::types::Offset) -> f64 {
    offset.0 as f64
}
