//! How far groups have come, and how far they lag, under the names that dashboards know from exporters beside the broker
//! (`kafka_consumergroup_…`): Kafka's own MBeans do not tell it.
//!
//! A coordinator tells of the groups that it serves. The lag is told where it has the log as well, as leader or follower,
//! against the high watermark that it knows; elsewhere it follows from the offset and the log's end, which another broker
//! tells. A scrape tells of so many offsets at most.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;
use wire::types::Offset;

use super::export::{self, Labels, count, gauge, gauges, total};
use crate::broker::Broker;

/// Offsets that are told in one scrape.
const MOST: usize = 10_000;

/// A committed offset, and how far the log goes on behind it.
struct Told {
    labels: Labels,
    offset: Offset,
    lag: Option<u64>,
}

/// Writes all of it.
pub(super) fn encode(broker: &Broker, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let (mut members, mut offsets, mut left_out) = (Vec::new(), Vec::new(), 0_usize);
    broker.groups().look_at_each(|group| {
        let id = group.group_id().to_string();
        if members.len() < MOST {
            members.push((vec![("consumergroup", id.clone())], total(group.len())));
        }
        let (all, room) = (group.committed(), MOST.saturating_sub(offsets.len()));
        left_out = left_out.saturating_add(all.len().saturating_sub(room));
        for (partition, committed) in all.take(room) {
            let labels = vec![
                ("consumergroup", id.clone()),
                ("topic", partition.topic.to_string()),
                ("partition", partition.partition.to_string()),
            ];
            let offset = committed.offset;
            let here = broker.partitions().get(partition.topic.as_str(), partition.partition);
            let end = here.map(|it| it.log().positions().high_watermark);
            let lag = end.map(|end| u64::try_from(end.0.saturating_sub(offset.0)).unwrap_or(0));
            offsets.push(Told { labels, offset, lag });
        }
    });
    let help = "Members of the group";
    gauges(encoder, "kafka_consumergroup_members", help, members)?;
    let current = offsets.iter().map(|it| (it.labels.clone(), export::offset(it.offset)));
    gauges(encoder, "kafka_consumergroup_current_offset", "Offset that the group has committed", current)?;
    let lags = offsets.iter().filter_map(|it| Some((it.labels.clone(), count(it.lag?))));
    let help = "Offsets from there to the high watermark, if the log is here";
    gauges(encoder, "kafka_consumergroup_lag", help, lags)?;
    let help = "Committed offsets that are not told, since there are too many";
    gauge(encoder, "blumfeld_consumergroup_offsets_left_out", help, total(left_out))
}
