//! DeleteTopics (key 20): by name, or by id from version 6 (KIP-516).

use std::collections::BTreeSet;
use std::sync::Arc;

use kernel::metadata_image::{MetadataImage, TopicImage};
use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::delete_topics_response::DeletableTopicResult;
use wire::messages::{DeleteTopicsRequest, DeleteTopicsResponse};
use wire::types::{TopicId, TopicName};

use super::Answer;
use crate::broker::Broker;
use crate::drive::gather::Gather;
use crate::drive::topics;
use crate::refusal::Refusal;

/// A topic as the request names it.
#[derive(Clone)]
struct Named {
    name: Option<Str>,
    id: TopicId,
}

/// Answers a DeleteTopics request once every topic is gone or refused.
pub(crate) fn handle(broker: &Arc<Broker>, answer: Answer, request: DeleteTopicsRequest) {
    let version = answer.call().version();
    let named = named(&request, version);
    if let Some(error) = refuse_all(broker, &named, version) {
        return answer.send(&response(named.iter().map(|topic| result(topic, &Err(Refusal::code(error))))));
    }
    let timeout_ms = request.timeout_ms;
    let image = broker.image();
    let gather = Gather::new(named.len(), move |results: Vec<DeletableTopicResult>| {
        answer.send(&response(results));
    });
    let mut begun = BTreeSet::new();
    for (at, topic) in named.into_iter().enumerate() {
        match find(&image, &topic) {
            Err(error) => gather.put(at, result(&topic, &Err(Refusal::code(error)))),
            Ok(found) => {
                // The id is told to those who asked by id.
                let told = Named { name: Some(Str::from(found.name.as_str())), id: topic.id };
                // Of two entries for one topic the first carries the outcome.
                if !begun.insert(TopicName::clone(&found.name)) {
                    gather.put(at, result(&told, &Ok(())));
                    continue;
                }
                let gather = gather.clone();
                topics::delete(broker, &found.name, timeout_ms, move |outcome| {
                    gather.put(at, result(&told, &outcome));
                });
            }
        }
    }
}

fn named(request: &DeleteTopicsRequest, version: i16) -> Vec<Named> {
    if version >= 6 {
        request.topics.iter().map(|t| Named { name: t.name.clone(), id: t.topic_id }).collect()
    } else {
        request.topic_names.iter().map(|name| Named { name: Some(name.clone()), id: TopicId::ZERO }).collect()
    }
}

/// What fails the whole request.
fn refuse_all(broker: &Broker, named: &[Named], version: i16) -> Option<ErrorCode> {
    if !broker.is_controller() {
        return Some(ErrorCode::NotController);
    }
    if !broker.config().delete_topic_enable {
        return Some(if version < 3 { ErrorCode::InvalidRequest } else { ErrorCode::TopicDeletionDisabled });
    }
    let both = named.iter().any(|topic| topic.name.is_some() && !topic.id.is_zero());
    both.then_some(ErrorCode::InvalidRequest)
}

fn find(image: &MetadataImage, topic: &Named) -> Result<Arc<TopicImage>, ErrorCode> {
    match &topic.name {
        Some(name) => image.topic(name).cloned().ok_or(ErrorCode::UnknownTopicOrPartition),
        None if topic.id.is_zero() => Err(ErrorCode::TopicAuthorizationFailed),
        None => image.topic_by_id(topic.id).cloned().ok_or(ErrorCode::UnknownTopicId),
    }
}

fn result(topic: &Named, outcome: &Result<(), Refusal>) -> DeletableTopicResult {
    let mut result = DeletableTopicResult {
        name: topic.name.clone(),
        topic_id: topic.id,
        ..DeletableTopicResult::default()
    };
    if let Err(refusal) = outcome {
        result.error_code = refusal.code.code();
        result.error_message = refusal.message();
    }
    result
}

fn response(results: impl IntoIterator<Item = DeletableTopicResult>) -> DeleteTopicsResponse {
    DeleteTopicsResponse { responses: results.into_iter().collect(), ..DeleteTopicsResponse::default() }
}
