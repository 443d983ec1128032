//! The gauges of the controller; all are 0 on a broker that is not in office.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;

use super::export::{counters, gauge, gauges, total};
use crate::broker::Broker;

/// Writes all of it.
pub(super) fn encode(broker: &Broker, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let status = broker.controller().status();
    let is = status.gauges;
    for (name, help, value) in [
        ("activecontrollercount", "Whether this is the controller", is.active_controller_count),
        ("activebrokercount", "Registered brokers", is.active_broker_count),
        ("globaltopiccount", "Topics", is.global_topic_count),
        ("globalpartitioncount", "Partitions", is.global_partition_count),
        ("offlinepartitionscount", "Partitions without a leader", is.offline_partitions_count),
        (
            "preferredreplicaimbalancecount",
            "Partitions that another replica than the first leads",
            is.preferred_replica_imbalance_count,
        ),
        ("topicstodeletecount", "Topics to delete", is.topics_to_delete_count),
        ("replicastodeletecount", "Replicas to delete", is.replicas_to_delete_count),
        (
            "topicsineligibletodeletecount",
            "Topics that wait for a broker",
            is.topics_ineligible_to_delete_count,
        ),
        (
            "replicasineligibletodeletecount",
            "Replicas that wait for a broker",
            is.replicas_ineligible_to_delete_count,
        ),
        ("controllerstate", "What the controller works on, as Kafka numbers it", status.state),
        // In ZooKeeper mode no broker is fenced.
        ("fencedbrokercount", "Fenced brokers", 0),
    ] {
        gauge(encoder, &format!("kafka_controller_kafkacontroller_{name}"), help, total(value))?;
    }
    gauge(
        encoder,
        "kafka_controller_controllereventmanager_eventqueuesize",
        "Events that wait for the controller",
        total(status.queue_size),
    )?;
    let queues = broker.controller().queue_sizes();
    gauge(
        encoder,
        "kafka_controller_controllerchannelmanager_totalqueuesize",
        "Control requests that wait",
        total(queues.values().sum()),
    )?;
    let by_broker = queues.iter().map(|(id, size)| (vec![("broker_id", id.to_string())], total(*size)));
    gauges(
        encoder,
        "kafka_controller_controllerchannelmanager_queuesize",
        "Control requests that wait for a broker",
        by_broker,
    )?;
    counters(
        encoder,
        "kafka_controller_controllerstats_uncleanleaderelections",
        "Leaders elected that were not in sync",
        [(Vec::new(), broker.controller().unclean_elections())],
    )
}
