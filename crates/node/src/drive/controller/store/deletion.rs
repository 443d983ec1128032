//! Topics that are to be deleted: the requests for it, and the znodes that go at the end.

use std::collections::BTreeSet;
use std::sync::Arc;

use kernel::controller::store::{StoreFailure, StoreReply};
use metadata::store::{Op, OpError, Request, Response, Store};
use metadata::znode::config::ConfigEntity;
use metadata::znode::{delete_topics, topic};
use wire::types::TopicName;

use super::fenced::{self, Outcome};
use super::{Done, failure, lists, mismatch};
use crate::broker::Broker;
use crate::drive::pipeline::{one, pipeline};

/// The paths of znodes, level by level from the top.
type Levels = Vec<Vec<String>>;

/// Takes what was found.
type Found = Box<dyn FnOnce(Result<Levels, StoreFailure>) + Send>;

pub(super) fn read(broker: &Arc<Broker>, done: Done) {
    one(broker.store(), Request::children(delete_topics::ROOT).watched(), move |answer| {
        done(lists::names(answer).map_or_else(
            |ended| ended,
            |names| {
                Ok(StoreReply::TopicList(names.iter().map(|name| TopicName::from(name.as_str())).collect()))
            },
        ));
    });
}

pub(super) fn drop_requests(
    broker: &Arc<Broker>,
    topics: &BTreeSet<TopicName>,
    epoch_version: i32,
    done: Done,
) {
    delete(broker.store(), topics.iter().map(delete_topics::path).collect(), epoch_version, move |outcome| {
        done(outcome.map(|()| StoreReply::Done));
    });
}

/// Deletes paths, each on its own; one that is gone already is what was wanted.
pub(super) fn delete(
    store: &Arc<dyn Store>,
    paths: Vec<String>,
    epoch_version: i32,
    done: impl FnOnce(Result<(), StoreFailure>) + Send + 'static,
) {
    let deletes = paths.iter().map(|path| vec![Op::delete(path, None)]).collect();
    fenced::write_all(store, deletes, epoch_version, move |outcomes| {
        done(outcomes.and_then(|outcomes| outcomes.into_iter().try_for_each(gone)));
    });
}

fn gone(outcome: Outcome) -> Result<(), StoreFailure> {
    match outcome {
        Ok(_) | Err((_, OpError::NoNode)) => Ok(()),
        Err((_, error)) => Err(StoreFailure::Unexpected(format!("a znode cannot be deleted: {error}"))),
    }
}

/// How many znodes below a topic go with it in one transaction.
const MAX_TOGETHER: usize = 100;

/// Deletes what is below a topic, the lowest first; then the topic, its configs and the request for its deletion in one
/// transaction, to which all belongs that is not too much for it: whoever makes a topic of that name anew finds nothing of the old one, and loses nothing of the new one.
pub(super) fn delete_topic(broker: &Arc<Broker>, name: &TopicName, epoch_version: i32, done: Done) {
    let store = broker.store().clone();
    let last = [topic::path(name), ConfigEntity::Topic(name.clone()).path(), delete_topics::path(name)];
    let below = store.clone();
    find_below(
        &store,
        vec![topic::path(name)],
        Vec::new(),
        Box::new(move |found| match found {
            Ok(levels) if levels.iter().map(Vec::len).sum::<usize>() <= MAX_TOGETHER => {
                let lowest_first = levels.into_iter().rev().flatten();
                delete_together(&below, lowest_first.chain(last).collect(), epoch_version, done);
            }
            Ok(levels) => {
                delete_levels(&below.clone(), levels, epoch_version, move |outcome| match outcome {
                    Ok(()) => delete_together(&below, last.to_vec(), epoch_version, done),
                    Err(failure) => done(Err(failure)),
                })
            }
            Err(failure) => done(Err(failure)),
        }),
    );
}

/// Finds everything below the znodes of `level`.
fn find_below(store: &Arc<dyn Store>, level: Vec<String>, mut found: Levels, done: Found) {
    let again = store.clone();
    let requests = level.iter().map(Request::children).collect();
    pipeline(store, requests, move |answers| {
        let mut next = Vec::new();
        for (parent, answer) in level.iter().zip(answers) {
            match answer {
                Ok(Response::Children { names, .. }) => {
                    next.extend(names.iter().map(|name| format!("{parent}/{name}")));
                }
                Ok(_) => return done(Err(mismatch())),
                Err(error) if error.is_no_node() => {}
                Err(error) => return done(Err(failure(error))),
            }
        }
        if next.is_empty() {
            return done(Ok(found));
        }
        found.push(next.clone());
        find_below(&again, next, found, done);
    });
}

/// Deletes level after level from below: a znode goes only when nothing is left below it.
fn delete_levels(
    store: &Arc<dyn Store>,
    mut levels: Levels,
    epoch_version: i32,
    done: impl FnOnce(Result<(), StoreFailure>) + Send + 'static,
) {
    let Some(lowest) = levels.pop() else { return done(Ok(())) };
    let again = store.clone();
    let done: Box<dyn FnOnce(Result<(), StoreFailure>) + Send> = Box::new(done);
    delete(store, lowest, epoch_version, move |outcome| match outcome {
        Ok(()) => delete_levels(&again, levels, epoch_version, done),
        Err(failure) => done(Err(failure)),
    });
}

/// Deletes paths in one transaction; each on its own, in their order, if one of them is gone already.
fn delete_together(store: &Arc<dyn Store>, paths: Vec<String>, epoch_version: i32, done: Done) {
    let again = store.clone();
    let together = paths.iter().map(|path| Op::delete(path, None)).collect();
    fenced::write_all(store, vec![together], epoch_version, move |outcomes| {
        match outcomes.map(|mut outcomes| outcomes.pop()) {
            Ok(Some(Err((_, OpError::NoNode)))) => delete(&again, paths, epoch_version, move |outcome| {
                done(outcome.map(|()| StoreReply::Done));
            }),
            Ok(Some(outcome)) => done(gone(outcome).map(|()| StoreReply::Done)),
            Ok(None) => done(Err(mismatch())),
            Err(failure) => done(Err(failure)),
        }
    });
}
