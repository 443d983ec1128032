//! `GroupMetadataManager` and `group-coordinator-metrics`.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;

use super::export::{count, gauge, total};
use crate::broker::Broker;
use crate::drive::groups::Meter;

/// Writes all of it.
pub(super) fn encode(broker: &Broker, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let prefix = "kafka_coordinator_group_groupmetadatamanager";
    let (states, offsets) = broker.groups().counts();
    gauge(encoder, &format!("{prefix}_numoffsets"), "Committed offsets", total(offsets))?;
    gauge(encoder, &format!("{prefix}_numgroups"), "Groups", total(states.values().sum()))?;
    for (state, groups) in states {
        let name = format!("{prefix}_numgroups{}", state.name().to_ascii_lowercase());
        gauge(encoder, &name, &format!("Groups in the state {}", state.name()), total(groups))?;
    }
    meters(broker, encoder)
}

fn meters(broker: &Broker, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let prefix = "kafka_server_group_coordinator_metrics";
    let (meters, now_ms) = (broker.groups().meters(), broker.now().mono_ms);
    let all: [(&str, &str, &Meter); 4] = [
        ("offset_commit", "Offsets that were committed", &meters.offset_commits),
        ("offset_expiration", "Offsets that have expired", &meters.offset_expirations),
        ("offset_deletion", "Offsets that were deleted", &meters.offset_deletions),
        ("group_completed_rebalance", "Generations that began with members", &meters.completed_rebalances),
    ];
    for (name, help, meter) in all {
        gauge(encoder, &format!("{prefix}_{name}_count"), help, count(meter.count()))?;
        gauge(encoder, &format!("{prefix}_{name}_rate"), help, meter.per_second(now_ms))?;
    }
    let (max_ms, avg_ms) = meters.load_times.max_and_avg(now_ms);
    let help = "Milliseconds that loading a partition of groups took in the last minute";
    gauge(encoder, &format!("{prefix}_partition_load_time_max"), help, max_ms)?;
    gauge(encoder, &format!("{prefix}_partition_load_time_avg"), help, avg_ms)
}
