//! Control requests as the wire carries them at the cluster's `inter.broker.protocol.version`, and the answers as plain
//! values.
//!
//! A controller does not ask a broker which versions it knows: the configured version decides (KIP-35 came later than
//! these requests). Everything a version has no field for is left out here, so that encoding cannot fail for that reason.
//! Requests are never of the type "full" and never say that a KRaft controller sends them.

mod leader_and_isr;
mod stop_replica;
mod update_metadata;

#[cfg(test)]
mod tests;

use wire::error_code::ErrorCode;
use wire::messages::{self, Message as _};
use wire::types::{BrokerId, TopicName};
use wire::{EncodeError, Encoder};

use super::values::{ControlRequest, ControlResponse};
use crate::metadata_version::MetadataVersion;

/// A control request in the version it is sent in.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlMessage {
    /// The version of its api.
    pub version: i16,
    /// The request.
    pub body: ControlBody,
}

/// The request itself.
#[derive(Clone, Debug, PartialEq)]
pub enum ControlBody {
    /// Key 4.
    LeaderAndIsr(messages::LeaderAndIsrRequest),
    /// Key 6.
    UpdateMetadata(messages::UpdateMetadataRequest),
    /// Key 5.
    StopReplica(messages::StopReplicaRequest),
}

impl ControlMessage {
    /// The message that `request` is in a cluster of `release`. A StopReplica must have come out of [`split`].
    #[must_use]
    pub fn new(request: &ControlRequest, release: MetadataVersion) -> Self {
        match request {
            ControlRequest::LeaderAndIsr(request) => {
                let version = release.leader_and_isr_version();
                Self { version, body: ControlBody::LeaderAndIsr(leader_and_isr::message(request, version)) }
            }
            ControlRequest::UpdateMetadata(request) => {
                let version = release.update_metadata_version();
                Self {
                    version,
                    body: ControlBody::UpdateMetadata(update_metadata::message(request, version)),
                }
            }
            ControlRequest::StopReplica(request) => {
                let version = release.stop_replica_version();
                Self { version, body: ControlBody::StopReplica(stop_replica::message(request, version)) }
            }
        }
    }

    /// The key of its api.
    #[must_use]
    pub fn api_key(&self) -> i16 {
        match self.body {
            ControlBody::LeaderAndIsr(_) => messages::LeaderAndIsrRequest::API_KEY,
            ControlBody::UpdateMetadata(_) => messages::UpdateMetadataRequest::API_KEY,
            ControlBody::StopReplica(_) => messages::StopReplicaRequest::API_KEY,
        }
    }

    /// Writes the request without its header.
    ///
    /// # Errors
    /// When a text or a list is longer than the version can say.
    pub fn encode(&self, dst: &mut Encoder) -> Result<(), EncodeError> {
        match &self.body {
            ControlBody::LeaderAndIsr(message) => message.encode(dst, self.version),
            ControlBody::UpdateMetadata(message) => message.encode(dst, self.version),
            ControlBody::StopReplica(message) => message.encode(dst, self.version),
        }
    }
}

/// What a broker answered.
#[derive(Clone, Debug, PartialEq)]
pub enum ControlReply {
    /// To LeaderAndIsr.
    LeaderAndIsr(messages::LeaderAndIsrResponse),
    /// To UpdateMetadata.
    UpdateMetadata(messages::UpdateMetadataResponse),
    /// To StopReplica.
    StopReplica(messages::StopReplicaResponse),
}

impl ControlReply {
    /// The answer to `request` as plain values; `None` if it answers another kind of request.
    ///
    /// Partitions that were not asked about are left out, as are topic ids that the request does not name.
    #[must_use]
    pub fn read(&self, request: &ControlRequest) -> Option<ControlResponse> {
        match (self, request) {
            (Self::LeaderAndIsr(reply), ControlRequest::LeaderAndIsr(request)) => {
                Some(leader_and_isr::response(reply, request))
            }
            (Self::UpdateMetadata(reply), ControlRequest::UpdateMetadata(_)) => {
                Some(ControlResponse::UpdateMetadata { error: error(reply.error_code) })
            }
            (Self::StopReplica(reply), ControlRequest::StopReplica(request)) => {
                Some(stop_replica::response(reply, request))
            }
            _ => None,
        }
    }
}

/// The requests that carry `request` in a cluster of `release`: two for a StopReplica that deletes some replicas and
/// keeps others, while the version has one flag for all (before KIP-570); else the request itself.
#[must_use]
pub fn split(request: ControlRequest, release: MetadataVersion) -> Vec<ControlRequest> {
    match request {
        ControlRequest::StopReplica(request) if !release.stop_replica_leader_epoch_supported() => {
            stop_replica::split(request).into_iter().map(ControlRequest::StopReplica).collect()
        }
        other => vec![other],
    }
}

/// The error of a code; one that no release has given yet is a failure like any other.
fn error(code: i16) -> ErrorCode {
    ErrorCode::from_code(code).unwrap_or(ErrorCode::UnknownServerError)
}

fn ids(brokers: &[BrokerId]) -> Vec<i32> {
    brokers.iter().map(|id| id.0).collect()
}

/// Gathers `items`, which must come ordered by topic, into one `T` per topic.
fn by_topic<K, T>(
    items: impl IntoIterator<Item = (TopicName, K)>,
    open: impl Fn(&TopicName) -> T,
    add: impl Fn(&mut T, K),
) -> Vec<T> {
    let mut topics: Vec<(TopicName, T)> = Vec::new();
    for (topic, item) in items {
        match topics.last_mut() {
            Some((name, group)) if *name == topic => add(group, item),
            _ => {
                let mut group = open(&topic);
                add(&mut group, item);
                topics.push((topic, group));
            }
        }
    }
    topics.into_iter().map(|(_, group)| group).collect()
}
