//! `ReplicaFetcherManager`, `FetcherLagMetrics`, `FetcherStats`, and what copying moves: of this broker as follower and
//! as leader of others.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;

use super::Counter;
use super::export::{Labels, counters, gauges, total};
use crate::broker::Broker;
use crate::drive::fetchers::FetcherReport;

/// What a broker counts of the copying between brokers.
#[derive(Debug, Default)]
pub(crate) struct ReplicationMeters {
    /// Bytes of records that leaders sent.
    pub(crate) bytes_in: Counter,
    /// Bytes of records that followers were sent.
    pub(crate) bytes_out: Counter,
    /// Followers' fetches that were answered because their time was over.
    pub(crate) expired_fetches: Counter,
}

/// Writes all of it.
pub(super) fn encode(broker: &Broker, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let meters = &broker.metrics().replication;
    for (name, help, counter) in [
        ("replicationbytesin", "Bytes of records fetched from leaders", &meters.bytes_in),
        ("replicationbytesout", "Bytes of records sent to followers", &meters.bytes_out),
    ] {
        let series = [(Vec::new(), counter.get())];
        counters(encoder, &format!("kafka_server_brokertopicmetrics_{name}"), help, series)?;
    }
    let fetchers = broker.fetchers().report(broker.now());
    let most_lag = fetchers.iter().flat_map(|it| &it.lags).filter_map(|(_, lag)| *lag).max().unwrap_or(0);
    let least_rate = fetchers.iter().map(|it| it.requests_per_second).reduce(f64::min).unwrap_or(0.0);
    for (name, help, value) in [
        ("maxlag", "Records that the slowest partition is behind its leader", records(most_lag)),
        ("minfetchrate", "Requests per second of the slowest fetcher", least_rate),
        (
            "failedpartitionscount",
            "Partitions that are no longer fetched",
            total(broker.fetchers().failed_count()),
        ),
        ("deadthreadcount", "Fetchers that have died; here none can", 0.0),
    ] {
        let name = format!("kafka_server_replicafetchermanager_{name}");
        gauges(encoder, &name, help, [(vec![("clientId", "Replica".to_owned())], value)])?;
    }
    let lags = fetchers.iter().flat_map(|fetcher| {
        fetcher.lags.iter().filter_map(|(name, lag)| {
            let labels = vec![
                ("clientId", fetcher.name.clone()),
                ("topic", name.topic.to_string()),
                ("partition", name.partition.to_string()),
            ];
            lag.map(|lag| (labels, records(lag)))
        })
    });
    gauges(
        encoder,
        "kafka_server_fetcherlagmetrics_consumerlag",
        "Records that a partition is behind its leader",
        lags,
    )?;
    fetcher_stats(encoder, &fetchers)
}

fn fetcher_stats(encoder: &mut DescriptorEncoder<'_>, fetchers: &[FetcherReport]) -> fmt::Result {
    let labels = |it: &FetcherReport| -> Labels {
        let address = it.address.as_ref().map(|it| format!("{}:{}", it.host, it.port));
        vec![("clientId", it.name.clone()), ("broker", address.unwrap_or_default())]
    };
    let requests = fetchers.iter().map(|it| (labels(it), it.requests));
    counters(encoder, "kafka_server_fetcherstats_requests", "Fetches sent to a leader", requests)?;
    let bytes = fetchers.iter().map(|it| (labels(it), it.bytes));
    counters(encoder, "kafka_server_fetcherstats_bytes", "Bytes of records taken from a leader", bytes)
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus knows only doubles")]
fn records(n: i64) -> f64 {
    n as f64
}
