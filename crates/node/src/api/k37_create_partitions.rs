//! CreatePartitions (key 37): more partitions for a topic that exists (KIP-195).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kernel::metadata_image::{MetadataImage, TopicImage};
use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::create_partitions_request::CreatePartitionsTopic;
use wire::messages::create_partitions_response::CreatePartitionsTopicResult;
use wire::messages::{CreatePartitionsRequest, CreatePartitionsResponse};
use wire::types::{BrokerId, TopicName};

use super::{Answer, doubled};
use crate::broker::Broker;
use crate::drive::gather::Gather;
use crate::drive::topics;
use crate::refusal::Refusal;

/// Answers a CreatePartitions request once every topic has its partitions or is refused.
pub(crate) fn handle(broker: &Arc<Broker>, answer: Answer, request: CreatePartitionsRequest) {
    if !broker.is_controller() {
        let refused = Err(Refusal::not_controller());
        return answer.send(&response(request.topics.iter().map(|topic| result(&topic.name, &refused))));
    }
    let doubled = doubled(request.topics.iter().map(|topic| topic.name.clone()));
    let (timeout_ms, validate_only) = (request.timeout_ms, request.validate_only);
    let image = broker.image();
    let gather = Gather::new(request.topics.len(), move |results: Vec<CreatePartitionsTopicResult>| {
        answer.send(&response(results));
    });
    let mut reported = BTreeSet::new();
    for (at, topic) in request.topics.into_iter().enumerate() {
        if doubled.contains(&topic.name) {
            if reported.insert(topic.name.clone()) {
                let refusal = Refusal::new(ErrorCode::InvalidRequest, "Duplicate topic in request.");
                gather.put(at, result(&topic.name, &Err(refusal)));
            } else {
                gather.skip(at);
            }
            continue;
        }
        match check(broker, &image, &topic) {
            Err(refusal) => gather.put(at, result(&topic.name, &Err(refusal))),
            Ok(_) if validate_only => gather.put(at, result(&topic.name, &Ok(()))),
            Ok((current, added)) => {
                let gather = gather.clone();
                topics::add_partitions(broker, &current.name, added, timeout_ms, move |outcome| {
                    gather.put(at, result(&topic.name, &outcome));
                });
            }
        }
    }
}

type Checked = (Arc<TopicImage>, BTreeMap<i32, Vec<BrokerId>>);

fn check(broker: &Broker, image: &MetadataImage, topic: &CreatePartitionsTopic) -> Result<Checked, Refusal> {
    if broker.controller().is_queued_for_deletion(&TopicName::from(topic.name.as_str())) {
        return Err(Refusal::new(ErrorCode::InvalidTopicException, "The topic is queued for deletion."));
    }
    let Some(current) = image.topic(&topic.name) else {
        let text = format!("The topic '{}' does not exist.", topic.name);
        return Err(Refusal::new(ErrorCode::UnknownTopicOrPartition, text));
    };
    let have = i32::try_from(current.partitions.len()).unwrap_or(i32::MAX);
    if topic.count <= have {
        let text = if topic.count == have {
            format!("Topic already has {have} partitions.")
        } else {
            format!(
                "Topic currently has {have} partitions, which is higher than the requested {}.",
                topic.count
            )
        };
        return Err(Refusal::new(ErrorCode::InvalidPartitions, text));
    }
    let replicas = current.partitions.values().next().map_or(1, |it| it.replicas.len());
    let added = match &topic.assignments {
        None => topics::assign_more(image, current, topic.count - have)?,
        Some(lists) => {
            let lists = lists.iter().map(|a| a.broker_ids.iter().map(|id| BrokerId(*id)).collect()).collect();
            manual(image, have, topic.count - have, replicas, lists)?
        }
    };
    Ok((current.clone(), added))
}

fn manual(
    image: &MetadataImage,
    have: i32,
    increment: i32,
    replicas: usize,
    lists: Vec<Vec<BrokerId>>,
) -> Result<BTreeMap<i32, Vec<BrokerId>>, Refusal> {
    let refuse = |text: String| Refusal::new(ErrorCode::InvalidReplicaAssignment, text);
    let unknown: BTreeSet<_> =
        lists.iter().flatten().filter(|id| !image.brokers().contains_key(id)).map(|id| id.0).collect();
    if !unknown.is_empty() {
        let ids: Vec<_> = unknown.iter().map(ToString::to_string).collect();
        return Err(refuse(format!("Unknown broker(s) in replica assignment: {}.", ids.join(", "))));
    }
    if usize::try_from(increment).unwrap_or(0) != lists.len() {
        return Err(refuse(format!(
            "Increasing the number of partitions by {increment} but {} assignments provided.",
            lists.len()
        )));
    }
    for list in &lists {
        let distinct: BTreeSet<_> = list.iter().collect();
        if list.is_empty() || distinct.len() != list.len() || list.len() != replicas {
            return Err(refuse(format!(
                "Each new partition needs {replicas} different replicas, as the partitions there are; got {list:?}."
            )));
        }
    }
    Ok((have..).zip(lists).collect())
}

fn result(name: &Str, outcome: &Result<(), Refusal>) -> CreatePartitionsTopicResult {
    let mut result =
        CreatePartitionsTopicResult { name: name.clone(), ..CreatePartitionsTopicResult::default() };
    if let Err(refusal) = outcome {
        result.error_code = refusal.code.code();
        result.error_message = refusal.message();
    }
    result
}

fn response(results: impl IntoIterator<Item = CreatePartitionsTopicResult>) -> CreatePartitionsResponse {
    CreatePartitionsResponse { results: results.into_iter().collect(), ..CreatePartitionsResponse::default() }
}
