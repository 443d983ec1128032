//! ElectLeaders (key 43): preferred or unclean leaders are elected by request (KIP-183, KIP-460).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kernel::controller::command::ApiAnswer;
use kernel::controller::elect_leaders::{ElectLeadersRequest as Asked, ElectedLeaders, ElectionType};
use kernel::controller::event::ApiRequest;
use kernel::metadata_image::MetadataImage;
use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::elect_leaders_response::{PartitionResult, ReplicaElectionResult};
use wire::messages::{ElectLeadersRequest, ElectLeadersResponse};
use wire::types::{BrokerId, TopicName, TopicPartition};

use super::Answer;
use crate::broker::Broker;
use crate::drive::{controller, image_waits};

type Results = BTreeMap<TopicPartition, Result<(), ErrorCode>>;

/// Answers an ElectLeaders request once this broker's picture shows the elected leaders, or they take too long.
pub(crate) fn handle(broker: &Arc<Broker>, answer: Answer, request: ElectLeadersRequest) {
    let asked = asked(request.topic_partitions.as_deref());
    let Some(kind) = kind(request.election_type) else {
        return answer.send(&failed(asked, ErrorCode::InvalidRequest));
    };
    let (then, timeout_ms) = (broker.clone(), request.timeout_ms);
    let wanted = Asked { kind, partitions: asked.clone() };
    controller::ask(
        broker,
        ApiRequest::ElectLeaders(wanted),
        Box::new(move |outcome| match outcome {
            Ok(ApiAnswer::ElectLeaders(elected)) => wait_for(&then, elected, timeout_ms, answer),
            Ok(_) => answer.send(&failed(asked, ErrorCode::UnknownServerError)),
            Err(error) => answer.send(&failed(asked, error)),
        }),
    );
}

fn kind(code: i8) -> Option<ElectionType> {
    match code {
        0 => Some(ElectionType::Preferred),
        1 => Some(ElectionType::Unclean),
        _ => None,
    }
}

/// The partitions that are named; `None` asks for all.
fn asked(
    topics: Option<&[wire::messages::elect_leaders_request::TopicPartitions]>,
) -> Option<BTreeSet<TopicPartition>> {
    let named = topics?.iter().flat_map(|topic| {
        topic.partitions.iter().map(|partition| TopicPartition {
            topic: TopicName::from(topic.topic.as_str()),
            partition: *partition,
        })
    });
    Some(named.collect())
}

/// Answers when the picture shows every leader that was elected.
fn wait_for(broker: &Arc<Broker>, elected: ElectedLeaders, timeout_ms: i32, answer: Answer) {
    let expected: Vec<(TopicPartition, BrokerId)> = elected
        .iter()
        .filter_map(|(partition, result)| Some((partition.clone(), result.as_ref().ok().copied()?)))
        .collect();
    if expected.is_empty() {
        return answer.send(&response(elected.into_iter().map(|(name, it)| (name, it.map(drop))).collect()));
    }
    let then = broker.clone();
    let shown = expected.clone();
    let all_shown =
        move |image: &MetadataImage| shown.iter().all(|(name, leader)| is_led(image, name, *leader));
    image_waits::wait(broker, i64::from(timeout_ms), all_shown, move |_| {
        let image = then.image();
        let late = |name: &TopicPartition| {
            expected.iter().any(|(it, leader)| it == name && !is_led(&image, it, *leader))
        };
        let results = elected.into_iter().map(|(name, result)| {
            let result = if late(&name) { Err(ErrorCode::RequestTimedOut) } else { result.map(drop) };
            (name, result)
        });
        answer.send(&response(results.collect()));
    });
}

fn is_led(image: &MetadataImage, name: &TopicPartition, leader: BrokerId) -> bool {
    image.partition(name.topic.as_str(), name.partition).is_some_and(|it| it.leader == leader)
}

fn failed(asked: Option<BTreeSet<TopicPartition>>, error: ErrorCode) -> ElectLeadersResponse {
    let results = asked.unwrap_or_default().into_iter().map(|name| (name, Err(error)));
    ElectLeadersResponse { error_code: error.code(), ..response(results.collect()) }
}

/// What tools print of a failure.
fn message(partition: &TopicPartition, error: ErrorCode) -> Str {
    let strategy = match error {
        ErrorCode::PreferredLeaderNotAvailable => "PreferredReplicaPartitionLeaderElectionStrategy",
        ErrorCode::EligibleLeadersNotAvailable => "OfflinePartitionLeaderElectionStrategy(true)",
        ErrorCode::UnknownTopicOrPartition => return Str::from("The partition does not exist."),
        ErrorCode::InvalidTopicException => return Str::from("The topic is being deleted"),
        other => return Str::from(other.message()),
    };
    Str::from(format!("Failed to elect leader for partition {partition} under strategy {strategy}").as_str())
}

fn response(results: Results) -> ElectLeadersResponse {
    let mut topics: Vec<ReplicaElectionResult> = Vec::new();
    for (name, result) in results {
        let error = result.err();
        let partition = PartitionResult {
            partition_id: name.partition,
            error_code: error.unwrap_or(ErrorCode::None).code(),
            error_message: error.map(|error| message(&name, error)),
        };
        match topics.last_mut() {
            Some(topic) if topic.topic == name.topic.as_str() => topic.partition_result.push(partition),
            _ => topics.push(ReplicaElectionResult {
                topic: Str::from(name.topic.as_str()),
                partition_result: vec![partition],
            }),
        }
    }
    ElectLeadersResponse { replica_election_results: topics, ..ElectLeadersResponse::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_told_which_partition_has_no_leader_and_by_which_rule() {
        let name = TopicPartition { topic: TopicName::from("t"), partition: 3 };
        let told = |error| message(&name, error).to_string();
        let preferred = told(ErrorCode::PreferredLeaderNotAvailable);
        assert!(
            preferred.contains(" t-3 ")
                && preferred.ends_with(" PreferredReplicaPartitionLeaderElectionStrategy")
        );
        let unclean = told(ErrorCode::EligibleLeadersNotAvailable);
        assert!(unclean.ends_with(" OfflinePartitionLeaderElectionStrategy(true)"));
        assert_eq!(told(ErrorCode::NotController), ErrorCode::NotController.message());
    }
}
