//! CreateTopics (key 19): checks each topic of the request on its own and creates those that pass
//! (KIP-4, KIP-525).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kernel::metadata_image::MetadataImage;
use kernel::topic_name;
use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::create_topics_request::CreatableTopic;
use wire::messages::create_topics_response::{CreatableTopicConfigs, CreatableTopicResult};
use wire::messages::{CreateTopicsRequest, CreateTopicsResponse};
use wire::types::{BrokerId, TopicId, TopicName};

use super::{Answer, doubled};
use crate::broker::Broker;
use crate::config::TopicConfigError;
use crate::drive::gather::Gather;
use crate::drive::topics::{self, Created, NewTopic};
use crate::refusal::Refusal;

/// Answers a CreateTopics request once every topic is there or refused.
pub(crate) fn handle(broker: &Arc<Broker>, answer: Answer, request: CreateTopicsRequest) {
    if !broker.is_controller() {
        return answer.send(&response(request.topics.iter().map(|t| failed(t, &Refusal::not_controller()))));
    }
    let doubled = doubled(request.topics.iter().map(|topic| topic.name.clone()));
    let image = broker.image();
    let timeout_ms = request.timeout_ms;
    let validate_only = request.validate_only;
    let count = request.topics.len();
    let gather = Gather::new(count, move |results: Vec<CreatableTopicResult>| {
        answer.send(&response(results));
    });
    for (at, topic) in request.topics.into_iter().enumerate() {
        let checked = if doubled.contains(&topic.name) {
            Err(Refusal::new(ErrorCode::InvalidRequest, "Found multiple entries for this topic."))
        } else {
            check(broker, &image, &topic)
        };
        match checked {
            Err(refusal) => gather.put(at, failed(&topic, &refusal)),
            Ok(new) if validate_only => gather.put(at, created(broker, &new, TopicId::ZERO)),
            Ok(new) => {
                let (gather, created_as) = (gather.clone(), new.clone());
                let broker_then = broker.clone();
                topics::create(broker, new, timeout_ms, move |outcome| {
                    gather.put(
                        at,
                        match outcome {
                            Ok(Created { id, in_time: false }) => {
                                CreatableTopicResult { topic_id: id, ..failed(&topic, &Refusal::timed_out()) }
                            }
                            Ok(Created { id, .. }) => created(&broker_then, &created_as, id),
                            Err(refusal) => failed(&topic, &refusal),
                        },
                    );
                });
            }
        }
    }
}

fn response(topics: impl IntoIterator<Item = CreatableTopicResult>) -> CreateTopicsResponse {
    CreateTopicsResponse { topics: topics.into_iter().collect(), ..CreateTopicsResponse::default() }
}

fn failed(topic: &CreatableTopic, refusal: &Refusal) -> CreatableTopicResult {
    CreatableTopicResult {
        name: topic.name.clone(),
        error_code: refusal.code.code(),
        error_message: refusal.message(),
        configs: Some(Vec::new()),
        ..CreatableTopicResult::default()
    }
}

fn created(broker: &Broker, new: &NewTopic, id: TopicId) -> CreatableTopicResult {
    let configs =
        broker.config().describe_topic(&new.configs).into_iter().map(|entry| CreatableTopicConfigs {
            name: Str::from(entry.name),
            value: entry.value.map(Str::from),
            read_only: false,
            config_source: entry.source.code(),
            is_sensitive: entry.is_sensitive,
        });
    let replicas = new.assignment.values().next().map_or(0, Vec::len);
    CreatableTopicResult {
        name: Str::from(new.name.as_str()),
        topic_id: id,
        num_partitions: i32::try_from(new.assignment.len()).unwrap_or(i32::MAX),
        replication_factor: i16::try_from(replicas).unwrap_or(i16::MAX),
        configs: Some(configs.collect()),
        error_message: None,
        ..CreatableTopicResult::default()
    }
}

/// The checks of one topic, in Kafka's order.
fn check(broker: &Broker, image: &MetadataImage, topic: &CreatableTopic) -> Result<NewTopic, Refusal> {
    let name = topic.name.as_str();
    if name == topic_name::CLUSTER_METADATA {
        return Err(Refusal::new(
            ErrorCode::InvalidRequest,
            format!("Creation of internal topic {name} is prohibited."),
        ));
    }
    if image.topic(name).is_some() {
        return Err(Refusal::new(ErrorCode::TopicAlreadyExists, format!("Topic '{name}' already exists.")));
    }
    let configs = configs(topic)?;
    let assignment = assignment(broker, image, topic)?;
    topics::check_name(image, name)?;
    check_assignment(&assignment)?;
    let invalid = |error: TopicConfigError| Refusal::new(ErrorCode::InvalidConfig, error.to_string());
    broker.config().check_topic_configs(&configs).map_err(invalid)?;
    Ok(NewTopic { name: TopicName::from(name), assignment, configs })
}

fn configs(topic: &CreatableTopic) -> Result<BTreeMap<String, String>, Refusal> {
    let unset: Vec<_> =
        topic.configs.iter().filter(|c| c.value.is_none()).map(|c| c.name.to_string()).collect();
    if !unset.is_empty() {
        return Err(Refusal::new(
            ErrorCode::InvalidConfig,
            format!("Null value not supported for topic configs: {}", unset.join(",")),
        ));
    }
    Ok(topic
        .configs
        .iter()
        .filter_map(|c| Some((c.name.to_string(), c.value.as_ref()?.to_string())))
        .collect())
}

fn assignment(
    broker: &Broker,
    image: &MetadataImage,
    topic: &CreatableTopic,
) -> Result<BTreeMap<i32, Vec<BrokerId>>, Refusal> {
    if topic.assignments.is_empty() {
        let config = broker.config();
        let partitions =
            if topic.num_partitions == -1 { config.num_partitions } else { topic.num_partitions };
        let replicas = if topic.replication_factor == -1 {
            config.default_replication_factor
        } else {
            i32::from(topic.replication_factor)
        };
        return topics::assign(broker, image, partitions, replicas);
    }
    if topic.num_partitions != -1 || topic.replication_factor != -1 {
        return Err(Refusal::new(
            ErrorCode::InvalidRequest,
            "Both numPartitions or replicationFactor and replicasAssignments were set. \
             Both cannot be used at the same time.",
        ));
    }
    let manual = topic.assignments.iter();
    Ok(manual.map(|a| (a.partition_index, a.broker_ids.iter().map(|id| BrokerId(*id)).collect())).collect())
}

/// The rules of an assignment given by hand. Brokers that do not exist are accepted, as Kafka does.
fn check_assignment(assignment: &BTreeMap<i32, Vec<BrokerId>>) -> Result<(), Refusal> {
    let refuse = |message: String| Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, message));
    let mut sizes = BTreeSet::new();
    for (expected, (index, replicas)) in (0..).zip(assignment) {
        if *index != expected {
            return refuse("partitions should be a consecutive 0-based integer sequence".to_owned());
        }
        let distinct: BTreeSet<_> = replicas.iter().collect();
        if distinct.len() != replicas.len() {
            return refuse(format!("Duplicate replica assignment found: {replicas:?}"));
        }
        sizes.insert(replicas.len());
    }
    if sizes.len() > 1 {
        return refuse("All partitions should have the same number of replicas.".to_owned());
    }
    if sizes.contains(&0) {
        return refuse("A partition needs at least one replica.".to_owned());
    }
    Ok(())
}
