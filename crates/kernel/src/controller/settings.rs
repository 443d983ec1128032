//! What the controller is told of the configuration of its broker.

use wire::types::BrokerId;

use crate::metadata_version::MetadataVersion;
use crate::planted::Faults;

/// The settings. Only [`unclean_leader_election_enable`](Self::unclean_leader_election_enable) changes while the
/// broker runs, by an event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// `broker.id`, as it came out.
    pub broker_id: BrokerId,
    /// `inter.broker.protocol.version`: what the brokers of the cluster understand.
    pub release: MetadataVersion,
    /// The name of the listener between brokers; leaders are announced with its address.
    pub inter_broker_listener: String,
    /// `unclean.leader.election.enable`, for topics that do not say otherwise.
    pub unclean_leader_election_enable: bool,
    /// `delete.topic.enable`.
    pub delete_topic_enable: bool,
    /// `auto.leader.rebalance.enable`.
    pub auto_leader_rebalance_enable: bool,
    /// `leader.imbalance.check.interval.seconds`, in milliseconds.
    pub leader_imbalance_check_interval_ms: i64,
    /// `leader.imbalance.per.broker.percentage`.
    pub leader_imbalance_per_broker_percentage: u32,
    /// Faults planted by a test build; none otherwise.
    pub faults: Faults,
}

impl Settings {
    /// Kafka's defaults for what is not given.
    pub fn new(broker_id: BrokerId, release: MetadataVersion, inter_broker_listener: &str) -> Self {
        Self {
            broker_id,
            release,
            inter_broker_listener: inter_broker_listener.to_owned(),
            unclean_leader_election_enable: false,
            delete_topic_enable: true,
            auto_leader_rebalance_enable: true,
            leader_imbalance_check_interval_ms: 300_000,
            leader_imbalance_per_broker_percentage: 10,
            faults: Faults::default(),
        }
    }
}
