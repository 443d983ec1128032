//! What the controller is told of the configuration of its broker.

use wire::types::BrokerId;

use crate::metadata_version::MetadataVersion;

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
}
