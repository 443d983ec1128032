//! `ReplicaManager`, `Partition`, and the requests that wait for replicas: what is counted where it happens, and what is
//! read from the partitions when somebody asks.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use prometheus_client::encoding::DescriptorEncoder;

use super::Counter;
use super::export::{counters, gauge, gauges, total};
use crate::broker::Broker;
use crate::partition::{Partition, ReplicaCounts, Role};

/// A number that grows and shrinks.
#[derive(Debug, Default)]
pub(crate) struct Gauge(AtomicUsize);

impl Gauge {
    /// Adds one.
    pub(crate) fn inc(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes one away.
    pub(crate) fn dec(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// The number now.
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a broker counts of its replicas.
#[derive(Debug, Default)]
pub(crate) struct ReplicaMeters {
    pub(crate) isr_expands: Counter,
    pub(crate) isr_shrinks: Counter,
    pub(crate) failed_isr_updates: Counter,
    pub(crate) truncations: Counter,
    pub(crate) truncations_below_high_watermark: Counter,
    pub(crate) waiting_produces: Gauge,
    pub(crate) expired_produces: Counter,
    pub(crate) waiting_deletes: Gauge,
}

/// Writes all of it.
pub(super) fn encode(broker: &Broker, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let partitions = broker.partitions().all();
    let counted: Vec<_> = partitions.iter().map(|it| (it.clone(), it.role(), it.replica_counts())).collect();
    let having = |what: &dyn Fn(&ReplicaCounts) -> bool| {
        total(counted.iter().filter(|(_, _, counts)| what(counts)).count())
    };
    let in_role = |what: &dyn Fn(&Role) -> bool| counted.iter().filter(|(_, role, _)| what(role)).count();
    let leaders = in_role(&|role| matches!(role, Role::Leader(_)));
    let offline = in_role(&|role| *role == Role::Offline) + broker.partitions().offline_count();
    let hosted = counted.len() + broker.partitions().offline_count();
    let producers = partitions.iter().map(|it| it.log().producer_count()).sum();
    for (name, help, value) in [
        ("leadercount", "Partitions led", total(leaders)),
        ("partitioncount", "Partitions hosted", total(hosted)),
        ("offlinereplicacount", "Replicas on failed disks", total(offline)),
        ("underreplicatedpartitions", "Led partitions that lack replicas", having(&|it| it.under_replicated)),
        (
            "underminisrpartitioncount",
            "Led partitions below min.insync.replicas",
            having(&|it| it.under_min_isr),
        ),
        ("atminisrpartitioncount", "Led partitions at min.insync.replicas", having(&|it| it.at_min_isr)),
        ("reassigningpartitions", "Led partitions being reassigned", having(&|it| it.reassigning)),
        ("produceridcount", "Producers with state", total(producers)),
    ] {
        gauge(encoder, &format!("kafka_server_replicamanager_{name}"), help, value)?;
    }
    let meters = &broker.metrics().replicas;
    for (name, help, counter) in [
        ("isrexpands", "Replicas that joined an ISR", &meters.isr_expands),
        ("isrshrinks", "ISRs that lost replicas", &meters.isr_shrinks),
        ("failedisrupdates", "Changes of an ISR that were refused", &meters.failed_isr_updates),
    ] {
        let series = [(Vec::new(), counter.get())];
        counters(encoder, &format!("kafka_server_replicamanager_{name}"), help, series)?;
    }
    losses(broker, encoder)?;
    of_partitions(encoder, &counted)?;
    waiting(broker, encoder)
}

/// What Kafka has no metrics for: records that had been replicated and are gone here.
fn losses(broker: &Broker, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let logs = broker.log_dirs().all();
    let shortened = logs.iter().filter(|log| log.loss().is_some()).count();
    let help = "Logs that came back ending below their high watermarks";
    gauge(encoder, "blumfeld_log_lost_tails", help, total(shortened))?;
    let meters = &broker.metrics().replicas;
    for (name, help, counter) in [
        ("truncations", "Logs of followers that were cut", &meters.truncations),
        (
            "truncations_below_high_watermark",
            "Logs of followers that were cut below their high watermarks",
            &meters.truncations_below_high_watermark,
        ),
    ] {
        counters(encoder, &format!("blumfeld_log_{name}"), help, [(Vec::new(), counter.get())])?;
    }
    Ok(())
}

fn of_partitions(
    encoder: &mut DescriptorEncoder<'_>,
    counted: &[(Arc<Partition>, Role, ReplicaCounts)],
) -> fmt::Result {
    type Value = fn(&ReplicaCounts) -> usize;
    let kinds: [(&str, &str, Value); 5] = [
        ("underreplicated", "Whether replicas are missing from the ISR", |it| {
            usize::from(it.under_replicated)
        }),
        ("insyncreplicascount", "In-sync replicas", |it| it.in_sync),
        ("underminisr", "Whether too few are in sync", |it| usize::from(it.under_min_isr)),
        ("atminisr", "Whether just enough are in sync", |it| usize::from(it.at_min_isr)),
        ("replicascount", "Replicas", |it| it.replicas),
    ];
    for (name, help, value) in kinds {
        let series = counted.iter().map(|(partition, _, counts)| {
            let name = partition.name();
            let labels = vec![("topic", name.topic.to_string()), ("partition", name.partition.to_string())];
            (labels, total(value(counts)))
        });
        gauges(encoder, &format!("kafka_cluster_partition_{name}"), help, series)?;
    }
    Ok(())
}

fn waiting(broker: &Broker, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let meters = &broker.metrics().replicas;
    let (produces, deletes) = (meters.waiting_produces.get(), meters.waiting_deletes.get());
    // All others that wait are fetches.
    let fetches = broker.timers().len().saturating_sub(produces).saturating_sub(deletes);
    let series = [("Fetch", fetches), ("Produce", produces), ("DeleteRecords", deletes)];
    let series = series.map(|(name, n)| (vec![("delayedOperation", name.to_owned())], total(n)));
    gauges(encoder, "kafka_server_delayedoperationpurgatory_purgatorysize", "Requests that wait", series)?;
    counters(
        encoder,
        "kafka_server_delayedproducemetrics_expires",
        "Produces answered because their time was over",
        [(Vec::new(), meters.expired_produces.get())],
    )
}
