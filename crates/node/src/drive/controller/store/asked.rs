//! What others ask of the controller by znodes: preferred leaders, blocks of producer ids, notifications.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kernel::controller::producer_ids::ProducerIdBlock;
use kernel::controller::store::{NotificationKind, StoreFailure, StoreReply};
use metadata::store::{CreateMode, Op, OpError, Request, Response, StoreError, Value};
use metadata::znode::{
    DecodeError, isr_change, log_dir_event, preferred_replica_election, producer_id_block,
};

use super::{Done, Ended, deletion, failure, fenced, lists, mismatch, unreadable};
use crate::broker::Broker;
use crate::drive::pipeline::{one, pipeline};

/// The watch is set by the first request, which also stands when the znode is missing; the second reads it.
pub(super) fn read_preferred_election(broker: &Arc<Broker>, done: Done) {
    const PATH: &str = preferred_replica_election::PATH;
    let requests = vec![Request::exists(PATH).watched(), Request::get(PATH)];
    pipeline(broker.store(), requests, move |mut answers| {
        let data = answers.pop().unwrap_or(Err(StoreError::Closed));
        let watch = answers.pop().unwrap_or(Err(StoreError::Closed));
        done(watch.map_err(failure).and_then(|_| preferred_election(data)));
    });
}

fn preferred_election(answer: Result<Response, StoreError>) -> Ended {
    let partitions = match answer {
        Ok(Response::Data { data, .. }) => match preferred_replica_election::decode(data.as_deref()) {
            Ok(partitions) => Some(partitions.into_iter().collect()),
            Err(error) => {
                tracing::error!(%error, "what is asked for cannot be read and is dropped");
                Some(BTreeSet::new())
            }
        },
        Ok(_) => return Err(mismatch()),
        Err(error) if error.is_no_node() => None,
        Err(error) => return Err(failure(error)),
    };
    Ok(StoreReply::PreferredElection(partitions))
}

pub(super) fn drop_preferred_election(broker: &Arc<Broker>, epoch_version: i32, done: Done) {
    let path = preferred_replica_election::PATH.to_owned();
    deletion::delete(broker.store(), vec![path], epoch_version, move |outcome| {
        done(outcome.map(|()| StoreReply::Done));
    });
}

/// Reads the last block; the znode, which every broker makes sure of at its start, is made if it is missing.
pub(super) fn read_producer_ids(broker: &Arc<Broker>, done: Done) {
    const PATH: &str = producer_id_block::PATH;
    let store = broker.store().clone();
    one(broker.store(), Request::get(PATH), move |answer| match answer {
        Ok(Response::Data { data, stat }) => {
            done(
                producer_id_block::ProducerIdBlock::decode(data.as_deref())
                    .map(|last| StoreReply::ProducerIds {
                        last: last.map(|last| last.end),
                        version: stat.version,
                    })
                    .map_err(|error| unreadable(PATH, &error)),
            );
        }
        Ok(_) => done(Err(mismatch())),
        Err(error) if error.is_no_node() => {
            one(&store, Request::create(PATH, Value::NULL, CreateMode::Persistent), move |answer| {
                done(match answer {
                    Err(error) if !error.is_node_exists() => Err(failure(error)),
                    // Whatever is there now, a write over version 0 tells.
                    _ => Ok(StoreReply::ProducerIds { last: None, version: 0 }),
                });
            });
        }
        Err(error) => done(Err(failure(error))),
    });
}

pub(super) fn write_producer_ids(
    broker: &Arc<Broker>,
    block: ProducerIdBlock,
    version: i32,
    epoch_version: i32,
    done: Done,
) {
    let ProducerIdBlock { broker: of, first, last } = block;
    let value = producer_id_block::ProducerIdBlock { broker: of, start: first, end: last }.encode();
    let set = vec![Op::set(producer_id_block::PATH, value, Some(version))];
    fenced::write_all(broker.store(), vec![set], epoch_version, move |outcomes| {
        done(match outcomes.map(|mut outcomes| outcomes.pop()) {
            Ok(Some(Ok(_))) => Ok(StoreReply::Done),
            Ok(Some(Err((_, OpError::BadVersion)))) => Ok(StoreReply::BadVersion),
            Ok(Some(Err((_, error)))) => Err(StoreFailure::Unexpected(error.to_string())),
            Ok(None) => Err(mismatch()),
            Err(failure) => Err(failure),
        });
    });
}

pub(super) fn read_log_dir_events(broker: &Arc<Broker>, done: Done) {
    read_notifications(broker, log_dir_event::ROOT, log_dir_event::decode, move |read| {
        let events = |read: BTreeMap<_, _>| {
            read.into_iter().map(|(name, event): (_, Result<_, _>)| (name, event.ok()))
        };
        done(read.map(|read| StoreReply::LogDirEvents(events(read).collect())));
    });
}

pub(super) fn read_isr_changes(broker: &Arc<Broker>, done: Done) {
    read_notifications(broker, isr_change::ROOT, isr_change::decode, move |read| {
        let partitions = |change: Result<Vec<_>, _>| change.unwrap_or_default().into_iter().collect();
        let changes =
            |read: BTreeMap<_, _>| read.into_iter().map(move |(name, change)| (name, partitions(change)));
        done(read.map(|read| StoreReply::IsrChanges(changes(read).collect())));
    });
}

/// Lists the notifications below `root`, with a watch, and reads each. One that has gone meanwhile is left out.
fn read_notifications<T: Send + 'static>(
    broker: &Arc<Broker>,
    root: &'static str,
    decode: fn(Option<&[u8]>) -> Result<T, DecodeError>,
    done: impl FnOnce(Result<BTreeMap<String, Result<T, DecodeError>>, StoreFailure>) + Send + 'static,
) {
    let store = broker.store().clone();
    one(broker.store(), Request::children(root).watched(), move |answer| {
        let names = match lists::names(answer) {
            Ok(names) => names,
            Err(Err(failure)) => return done(Err(failure)),
            Err(Ok(_)) => return done(Err(mismatch())),
        };
        let reads = names.iter().map(|name| Request::get(format!("{root}/{name}"))).collect();
        pipeline(&store, reads, move |answers| {
            let mut read = BTreeMap::new();
            for (name, answer) in names.into_iter().zip(answers) {
                match answer {
                    Ok(Response::Data { data, .. }) => {
                        let value = decode(data.as_deref());
                        if let Err(error) = &value {
                            tracing::error!(%name, %error, "a notification cannot be read and is dropped");
                        }
                        read.insert(name, value);
                    }
                    Ok(_) => return done(Err(mismatch())),
                    Err(error) if error.is_no_node() => {}
                    Err(error) => return done(Err(failure(error))),
                }
            }
            done(Ok(read));
        });
    });
}

pub(super) fn drop_notifications_read(
    broker: &Arc<Broker>,
    kind: NotificationKind,
    names: &BTreeSet<String>,
    epoch_version: i32,
    done: Done,
) {
    let root = lists::root_of(kind);
    let paths = names.iter().map(|name| format!("{root}/{name}")).collect();
    deletion::delete(broker.store(), paths, epoch_version, move |outcome| {
        done(outcome.map(|()| StoreReply::Done));
    });
}
