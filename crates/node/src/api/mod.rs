//! One file per API key, and the table that leads to them.
//!
//! A frame becomes a header and a body; an unknown key, a key that is not served and a version out of range
//! end as Kafka ends them: the connection is closed, but for ApiVersions, which is always answered.

mod authorized;
pub(crate) mod errors;
mod k00_produce;
mod k01_fetch;
mod k02_list_offsets;
mod k03_metadata;
mod k04_leader_and_isr;
mod k05_stop_replica;
mod k06_update_metadata;
mod k07_controlled_shutdown;
mod k08_offset_commit;
mod k09_offset_fetch;
mod k10_find_coordinator;
mod k11_join_group;
mod k12_heartbeat;
mod k13_leave_group;
mod k14_sync_group;
mod k15_describe_groups;
mod k16_list_groups;
mod k18_api_versions;
mod k19_create_topics;
mod k20_delete_topics;
mod k21_delete_records;
mod k22_init_producer_id;
mod k23_offset_for_leader_epoch;
mod k32_describe_configs;
mod k33_alter_configs;
mod k35_describe_log_dirs;
mod k37_create_partitions;
mod k42_delete_groups;
mod k43_elect_leaders;
mod k44_incremental_alter_configs;
mod k47_offset_delete;
mod k56_alter_partition;
mod k57_update_features;
mod k60_describe_cluster;
mod k61_describe_producers;
mod k67_allocate_producer_ids;

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use wire::api::ApiKey;
use wire::header::decode_request_header;
use wire::messages::Message;
use wire::{Decoder, Str};

pub(crate) use k01_fetch::FetchSessions;

use crate::broker::Broker;
use crate::call::{Call, Connection, Outcome, Reply, inline};
use crate::metrics::RequestTimer;

/// The keys that are served, in ascending order: what ApiVersions tells.
pub(crate) const SERVED: [ApiKey; 36] = [
    ApiKey::Produce,
    ApiKey::Fetch,
    ApiKey::ListOffsets,
    ApiKey::Metadata,
    ApiKey::LeaderAndIsr,
    ApiKey::StopReplica,
    ApiKey::UpdateMetadata,
    ApiKey::ControlledShutdown,
    ApiKey::OffsetCommit,
    ApiKey::OffsetFetch,
    ApiKey::FindCoordinator,
    ApiKey::JoinGroup,
    ApiKey::Heartbeat,
    ApiKey::LeaveGroup,
    ApiKey::SyncGroup,
    ApiKey::DescribeGroups,
    ApiKey::ListGroups,
    ApiKey::ApiVersions,
    ApiKey::CreateTopics,
    ApiKey::DeleteTopics,
    ApiKey::DeleteRecords,
    ApiKey::InitProducerId,
    ApiKey::OffsetForLeaderEpoch,
    ApiKey::DescribeConfigs,
    ApiKey::AlterConfigs,
    ApiKey::DescribeLogDirs,
    ApiKey::CreatePartitions,
    ApiKey::DeleteGroups,
    ApiKey::ElectLeaders,
    ApiKey::IncrementalAlterConfigs,
    ApiKey::OffsetDelete,
    ApiKey::AlterPartition,
    ApiKey::UpdateFeatures,
    ApiKey::DescribeCluster,
    ApiKey::DescribeProducers,
    ApiKey::AllocateProducerIds,
];

/// The place of an answer: the request it belongs to and the way back.
#[derive(Debug)]
pub(crate) struct Answer {
    call: Call,
    reply: Reply,
    timer: RequestTimer,
}

impl Answer {
    /// The request.
    pub(crate) fn call(&self) -> &Call {
        &self.call
    }

    /// Whether nobody waits for the answer any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.reply.is_abandoned()
    }

    /// Copies what is left of the request out of its frame: an answer that waits must not keep the frame in memory.
    pub(crate) fn unpin(&mut self) {
        self.call.header.client_id = self.call.header.client_id.as_deref().map(Str::from);
    }

    /// Sends a message as the answer.
    pub(crate) fn send<M: Message>(self, message: &M) {
        let outcome = match self.encode(message) {
            Ok(bytes) => inline(bytes),
            Err(reason) => Outcome::Close(reason),
        };
        self.end(outcome);
    }

    /// Ends the request with any outcome.
    pub(crate) fn end(self, outcome: Outcome) {
        self.timer.ended();
        self.reply.send(outcome);
    }

    fn encode<M: Message>(&self, message: &M) -> Result<Bytes, String> {
        let header = &self.call.header;
        wire::response::encode(message, header.api_version, header.correlation_id).map_err(|error| {
            tracing::error!(api_key = header.api_key, %error, "an answer cannot be encoded");
            format!("the answer cannot be encoded: {error}")
        })
    }
}

/// The addresses of all brokers, told with the leader's id to clients that went to the wrong one (KIP-951).
pub(crate) fn node_endpoints<E: From<Endpoint>>(broker: &Broker, listener: &str) -> Vec<E> {
    let image = broker.image();
    let endpoints = image.brokers().iter().filter_map(|(id, info)| {
        let endpoint = info.endpoint(listener)?;
        Some(E::from(Endpoint {
            node_id: id.0,
            host: Str::from(endpoint.host.as_str()),
            port: endpoint.port,
            rack: info.rack.as_deref().map(Str::from),
        }))
    });
    endpoints.collect()
}

/// An address as it stands in several responses.
pub(crate) struct Endpoint {
    node_id: i32,
    host: Str,
    port: i32,
    rack: Option<Str>,
}

impl From<Endpoint> for wire::messages::produce_response::NodeEndpoint {
    fn from(it: Endpoint) -> Self {
        Self { node_id: it.node_id, host: it.host, port: it.port, rack: it.rack }
    }
}

impl From<Endpoint> for wire::messages::fetch_response::NodeEndpoint {
    fn from(it: Endpoint) -> Self {
        Self { node_id: it.node_id, host: it.host, port: it.port, rack: it.rack }
    }
}

/// What stands more than once in a request that allows it once.
pub(crate) fn doubled<T: Ord + Clone>(named: impl Iterator<Item = T>) -> BTreeSet<T> {
    let mut seen = BTreeSet::new();
    named.filter(|name| !seen.insert(name.clone())).collect()
}

/// Handles one frame, without its size prefix.
pub(crate) fn dispatch(broker: &Arc<Broker>, connection: &Arc<Connection>, frame: Bytes, reply: Reply) {
    let mut body = Decoder::new(frame);
    let header = match decode_request_header(&mut body) {
        Ok(header) => header,
        Err(error) => {
            return reply.send(Outcome::Close(format!("the request header cannot be read: {error}")));
        }
    };
    let Some(key) = ApiKey::from_code(header.api_key).filter(|key| SERVED.contains(key)) else {
        return reply.send(Outcome::Close(format!("API key {} is not served", header.api_key)));
    };
    let timer = broker.metrics().request(key, header.api_version);
    let version = header.api_version;
    let call = Call { header, connection: connection.clone(), received: broker.now() };
    let answer = Answer { call, reply, timer };
    if !key.versions().contains(&version) {
        return if key == ApiKey::ApiVersions {
            k18_api_versions::answer_unsupported(answer)
        } else {
            answer.end(Outcome::Close(format!("{} has no version {version}", key.name())))
        };
    }
    route(broker, key, answer, &mut body);
}

fn route(broker: &Arc<Broker>, key: ApiKey, answer: Answer, body: &mut Decoder) {
    match key {
        ApiKey::Produce => begin(broker, answer, body, k00_produce::handle),
        ApiKey::Fetch => begin(broker, answer, body, k01_fetch::handle),
        ApiKey::ListOffsets => at_once(broker, answer, body, k02_list_offsets::handle),
        ApiKey::Metadata => at_once(broker, answer, body, k03_metadata::handle),
        ApiKey::LeaderAndIsr => begin(broker, answer, body, k04_leader_and_isr::handle),
        ApiKey::StopReplica => begin(broker, answer, body, k05_stop_replica::handle),
        ApiKey::UpdateMetadata => begin(broker, answer, body, k06_update_metadata::handle),
        ApiKey::ControlledShutdown => begin(broker, answer, body, k07_controlled_shutdown::handle),
        ApiKey::OffsetCommit => begin(broker, answer, body, k08_offset_commit::handle),
        ApiKey::OffsetFetch => begin(broker, answer, body, k09_offset_fetch::handle),
        ApiKey::FindCoordinator => at_once(broker, answer, body, k10_find_coordinator::handle),
        ApiKey::JoinGroup => begin(broker, answer, body, k11_join_group::handle),
        ApiKey::Heartbeat => begin(broker, answer, body, k12_heartbeat::handle),
        ApiKey::LeaveGroup => begin(broker, answer, body, k13_leave_group::handle),
        ApiKey::SyncGroup => begin(broker, answer, body, k14_sync_group::handle),
        ApiKey::DescribeGroups => at_once(broker, answer, body, k15_describe_groups::handle),
        ApiKey::ListGroups => at_once(broker, answer, body, k16_list_groups::handle),
        ApiKey::ApiVersions => at_once(broker, answer, body, k18_api_versions::handle),
        ApiKey::CreateTopics => begin(broker, answer, body, k19_create_topics::handle),
        ApiKey::DeleteTopics => begin(broker, answer, body, k20_delete_topics::handle),
        ApiKey::DeleteRecords => begin(broker, answer, body, k21_delete_records::handle),
        ApiKey::InitProducerId => begin(broker, answer, body, k22_init_producer_id::handle),
        ApiKey::OffsetForLeaderEpoch => at_once(broker, answer, body, k23_offset_for_leader_epoch::handle),
        ApiKey::DescribeConfigs => begin(broker, answer, body, k32_describe_configs::handle),
        ApiKey::AlterConfigs => begin(broker, answer, body, k33_alter_configs::handle),
        ApiKey::DescribeLogDirs => at_once(broker, answer, body, k35_describe_log_dirs::handle),
        ApiKey::CreatePartitions => begin(broker, answer, body, k37_create_partitions::handle),
        ApiKey::DeleteGroups => begin(broker, answer, body, k42_delete_groups::handle),
        ApiKey::ElectLeaders => begin(broker, answer, body, k43_elect_leaders::handle),
        ApiKey::IncrementalAlterConfigs => begin(broker, answer, body, k44_incremental_alter_configs::handle),
        ApiKey::OffsetDelete => begin(broker, answer, body, k47_offset_delete::handle),
        ApiKey::AlterPartition => begin(broker, answer, body, k56_alter_partition::handle),
        ApiKey::UpdateFeatures => begin(broker, answer, body, k57_update_features::handle),
        ApiKey::DescribeCluster => at_once(broker, answer, body, k60_describe_cluster::handle),
        ApiKey::DescribeProducers => begin(broker, answer, body, k61_describe_producers::handle),
        ApiKey::AllocateProducerIds => begin(broker, answer, body, k67_allocate_producer_ids::handle),
        _ => answer.end(Outcome::Close(format!("{} is not served", key.name()))),
    }
}

/// Decodes the body and hands it to a handler that answers when it can.
fn begin<M: Message>(
    broker: &Arc<Broker>,
    answer: Answer,
    body: &mut Decoder,
    handler: impl FnOnce(&Arc<Broker>, Answer, M),
) {
    match M::decode(body, answer.call.version()) {
        Ok(request) => handler(broker, answer, request),
        Err(error) => answer.end(Outcome::Close(format!("the request cannot be read: {error}"))),
    }
}

/// Decodes the body and answers with what the handler returns.
fn at_once<M: Message, R: Message>(
    broker: &Arc<Broker>,
    answer: Answer,
    body: &mut Decoder,
    handler: impl FnOnce(&Arc<Broker>, &Call, M) -> R,
) {
    begin(broker, answer, body, |broker, answer, request| {
        let response = handler(broker, &answer.call, request);
        answer.send(&response);
    });
}
