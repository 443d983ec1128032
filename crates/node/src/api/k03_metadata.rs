//! Metadata (key 3): who leads what, and where the brokers are, for clients of the listener they came in on.
//!
//! A topic that does not exist may be created in passing (`auto.create.topics.enable`): the client is told
//! LEADER_NOT_AVAILABLE and asks again.

use std::collections::BTreeSet;
use std::sync::Arc;

use kernel::metadata_image::{MetadataImage, PartitionImage, TopicImage};
use kernel::topic_name;
use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use wire::messages::{MetadataRequest, MetadataResponse};
use wire::types::{BrokerId, TopicId};

use super::authorized::{CLUSTER_OPERATIONS, OPERATIONS_NOT_ASKED_FOR, TOPIC_OPERATIONS};
use crate::broker::Broker;
use crate::call::Call;
use crate::drive::auto_create;

/// Answers a Metadata request.
pub(crate) fn handle(broker: &Arc<Broker>, call: &Call, request: MetadataRequest) -> MetadataResponse {
    let version = call.version();
    let image = broker.image();
    let mut response = MetadataResponse {
        brokers: brokers(&image, &call.connection.listener),
        cluster_id: image.cluster_id().map(Str::from),
        controller_id: image.controller().unwrap_or(BrokerId::NONE).0,
        ..MetadataResponse::default()
    };
    if (8..=10).contains(&version) && request.include_cluster_authorized_operations {
        response.cluster_authorized_operations = CLUSTER_OPERATIONS;
    }
    let lookup = Lookup {
        broker,
        image: &image,
        version,
        listener: &call.connection.listener,
        operations: request.include_topic_authorized_operations,
    };
    response.topics = match asked(&request, version) {
        Asked::All => image.topics().map(|topic| lookup.found(topic)).collect(),
        Asked::Refused(names) => names.into_iter().map(|name| refused(name, version)).collect(),
        Asked::Ids(ids) => ids.into_iter().map(|id| lookup.by_id(id)).collect(),
        Asked::Names(names) => {
            let create = version < 4 || request.allow_auto_topic_creation;
            names.into_iter().map(|name| lookup.by_name(name, create)).collect()
        }
    };
    response
}

enum Asked {
    All,
    Names(Vec<Str>),
    Ids(Vec<TopicId>),
    // Ids, or no name, in a version that has the fields but no meaning for them.
    Refused(Vec<Option<Str>>),
}

fn asked(request: &MetadataRequest, version: i16) -> Asked {
    let Some(topics) = &request.topics else {
        return Asked::All;
    };
    if version == 0 && topics.is_empty() {
        return Asked::All;
    }
    if version < 12 && topics.iter().any(|t| !t.topic_id.is_zero() || t.name.is_none()) {
        return Asked::Refused(topics.iter().map(|t| t.name.clone()).collect());
    }
    if topics.iter().any(|t| !t.topic_id.is_zero()) {
        let ids: BTreeSet<_> = topics.iter().map(|t| t.topic_id).filter(|id| !id.is_zero()).collect();
        return Asked::Ids(ids.into_iter().collect());
    }
    if topics.iter().any(|t| t.name.is_none()) {
        return Asked::Refused(topics.iter().map(|t| t.name.clone()).collect());
    }
    let mut seen = BTreeSet::new();
    Asked::Names(
        topics.iter().filter_map(|t| t.name.clone()).filter(|name| seen.insert(name.clone())).collect(),
    )
}

fn refused(name: Option<Str>, version: i16) -> MetadataResponseTopic {
    // Only version 12 can say "no name"; before, the empty one stands for it.
    let name = if version >= 12 { name } else { Some(name.unwrap_or_default()) };
    MetadataResponseTopic {
        error_code: ErrorCode::InvalidRequest.code(),
        name,
        ..MetadataResponseTopic::default()
    }
}

fn brokers(image: &MetadataImage, listener: &str) -> Vec<MetadataResponseBroker> {
    let reachable = image.brokers().iter().filter_map(|(id, broker)| {
        let endpoint = broker.endpoint(listener)?;
        Some(MetadataResponseBroker {
            node_id: id.0,
            host: Str::from(endpoint.host.as_str()),
            port: endpoint.port,
            rack: broker.rack.as_deref().map(Str::from),
        })
    });
    reachable.collect()
}

struct Lookup<'a> {
    broker: &'a Arc<Broker>,
    image: &'a MetadataImage,
    version: i16,
    listener: &'a str,
    operations: bool,
}

impl Lookup<'_> {
    fn by_id(&self, id: TopicId) -> MetadataResponseTopic {
        match self.image.topic_by_id(id) {
            Some(topic) => self.found(topic),
            None => MetadataResponseTopic {
                error_code: ErrorCode::UnknownTopicId.code(),
                name: None,
                topic_id: id,
                ..MetadataResponseTopic::default()
            },
        }
    }

    fn by_name(&self, name: Str, create: bool) -> MetadataResponseTopic {
        if let Some(topic) = self.image.topic(&name) {
            return self.found(topic);
        }
        let error = if create && self.broker.config().auto_create_topics_enable {
            auto_create::create(self.broker, &name)
        } else if topic_name::check(&name).is_err() {
            ErrorCode::InvalidTopicException
        } else {
            ErrorCode::UnknownTopicOrPartition
        };
        MetadataResponseTopic {
            error_code: error.code(),
            is_internal: topic_name::is_internal(&name),
            name: Some(name),
            topic_authorized_operations: self.operations(),
            ..MetadataResponseTopic::default()
        }
    }

    /// What the client may do with a topic, known or not: everything.
    fn operations(&self) -> i32 {
        if self.operations { TOPIC_OPERATIONS } else { OPERATIONS_NOT_ASKED_FOR }
    }

    fn found(&self, topic: &TopicImage) -> MetadataResponseTopic {
        let partitions = topic.partitions.iter().map(|(index, it)| self.partition(*index, it)).collect();
        MetadataResponseTopic {
            name: Some(Str::from(topic.name.as_str())),
            topic_id: topic.id,
            is_internal: topic_name::is_internal(topic.name.as_str()),
            partitions,
            topic_authorized_operations: self.operations(),
            ..MetadataResponseTopic::default()
        }
    }

    fn partition(&self, index: i32, it: &PartitionImage) -> MetadataResponsePartition {
        let alive = |id: &BrokerId| self.image.brokers().contains_key(id) && !it.offline.contains(id);
        let reachable = |id: BrokerId| self.image.brokers().get(&id)?.endpoint(self.listener);
        let live = |ids: &[BrokerId]| {
            let live = ids.iter().filter(|id| alive(id) && reachable(**id).is_some());
            live.map(|id| id.0).collect::<Vec<_>>()
        };
        let all = |ids: &[BrokerId]| ids.iter().map(|id| id.0).collect::<Vec<_>>();
        let leader = self.image.brokers().get(&it.leader);
        let mut partition = MetadataResponsePartition {
            partition_index: index,
            // A leader that the client's listener does not lead to is none for this client.
            leader_id: reachable(it.leader).map_or(BrokerId::NONE.0, |_| it.leader.0),
            leader_epoch: it.leader_epoch.0,
            offline_replicas: it.replicas.iter().filter(|id| !alive(id)).map(|id| id.0).collect(),
            ..MetadataResponsePartition::default()
        };
        if self.version == 0 {
            // The first version has no place for offline replicas: it leaves them out and says so.
            (partition.replica_nodes, partition.isr_nodes) = (live(&it.replicas), live(&it.isr));
        } else {
            (partition.replica_nodes, partition.isr_nodes) = (all(&it.replicas), all(&it.isr));
        }
        let error = match leader {
            None => ErrorCode::LeaderNotAvailable,
            Some(leader) if leader.endpoint(self.listener).is_none() => {
                if self.version >= 6 {
                    ErrorCode::ListenerNotFound
                } else {
                    ErrorCode::LeaderNotAvailable
                }
            }
            Some(_) if self.version == 0 && partition.replica_nodes.len() < it.replicas.len() => {
                ErrorCode::ReplicaNotAvailable
            }
            Some(_) if self.version == 0 && partition.isr_nodes.len() < it.isr.len() => {
                ErrorCode::ReplicaNotAvailable
            }
            Some(_) => ErrorCode::None,
        };
        partition.error_code = error.code();
        partition
    }
}
