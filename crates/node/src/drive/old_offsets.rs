//! Offsets that consumers of the first protocol versions keep in the metadata store, below `/consumers`.

use std::sync::Arc;

use metadata::store::{CreateMode, Request, Response, StoreError, Value};
use metadata::znode::consumer_offset;
use wire::error_code::ErrorCode;
use wire::types::{Offset, TopicPartition};

use super::pipeline::pipeline;
use crate::broker::Broker;

/// Writes the offsets of a group; `done` gets a code for each, in their order.
pub(crate) fn commit(
    broker: &Arc<Broker>,
    group_id: &str,
    offsets: &[(TopicPartition, Offset)],
    done: impl FnOnce(Vec<ErrorCode>) + Send + 'static,
) {
    let mut requests = Vec::new();
    // As many for each partition of a group.
    let mut creations = 0;
    for (partition, offset) in offsets {
        let Some(path) = consumer_offset::path(group_id, partition) else {
            return done(vec![ErrorCode::InvalidGroupId; offsets.len()]);
        };
        // What is there already stays; only the last one has a value, which is then replaced.
        let before = requests.len();
        requests.extend(
            consumer_offset::with_parents(&path)
                .map(|path| Request::create(path, Value::NULL, CreateMode::Persistent)),
        );
        creations = requests.len() - before;
        requests.push(Request::set(path, consumer_offset::encode(*offset), None));
    }
    pipeline(broker.store(), requests, move |answers| {
        let sets = answers.into_iter().skip(creations).step_by(creations + 1);
        done(sets.map(|answer| answer.err().as_ref().map_or(ErrorCode::None, code)).collect());
    });
}

/// Reads the offsets of a group; `done` gets one for each partition, or none, in their order.
pub(crate) fn fetch(
    broker: &Arc<Broker>,
    group_id: &str,
    partitions: &[TopicPartition],
    done: impl FnOnce(Vec<Result<Option<Offset>, ErrorCode>>) + Send + 'static,
) {
    let mut requests = Vec::with_capacity(partitions.len());
    for partition in partitions {
        let Some(path) = consumer_offset::path(group_id, partition) else {
            return done(vec![Ok(None); partitions.len()]);
        };
        requests.push(Request::get(path));
    }
    pipeline(broker.store(), requests, |answers| done(answers.into_iter().map(read).collect()));
}

fn read(answer: Result<Response, StoreError>) -> Result<Option<Offset>, ErrorCode> {
    match answer {
        Ok(Response::Data { data, .. }) => consumer_offset::decode(data.as_deref()).map_err(|error| {
            tracing::warn!(%error, "a committed offset cannot be read");
            ErrorCode::UnknownServerError
        }),
        Ok(_) => Err(ErrorCode::UnknownServerError),
        Err(error) if error.is_no_node() => Ok(None),
        Err(error) => Err(code(&error)),
    }
}

fn code(error: &StoreError) -> ErrorCode {
    tracing::warn!(%error, "offsets below /consumers cannot be read or written");
    ErrorCode::UnknownServerError
}
