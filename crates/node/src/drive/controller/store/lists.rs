//! Lists of znodes: registrations, topics, partitions, notifications. Reading a list arms its watch.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kernel::controller::store::{NotificationKind, StoreReply};
use kernel::controller::values::{self, BrokerRegistration, Endpoint};
use metadata::store::{Op, Request, Response, StoreError};
use metadata::znode::broker::{self, SecurityProtocol};
use metadata::znode::{isr_change, log_dir_event, partition_state, topic};
use wire::types::{BrokerEpoch, BrokerId, TopicName};

use super::{Done, Ended, failure, fenced, mismatch, unreadable};
use crate::broker::Broker;
use crate::drive::pipeline::{one, pipeline};

/// The names below a path, or how the operation ends.
pub(super) fn names(answer: Result<Response, StoreError>) -> Result<Vec<String>, Ended> {
    match answer {
        Ok(Response::Children { names, .. }) => Ok(names),
        Ok(_) => Err(Err(mismatch())),
        Err(error) => Err(Err(failure(error))),
    }
}

pub(super) fn read_brokers(broker: &Arc<Broker>, done: Done) {
    let store = broker.store().clone();
    one(broker.store(), Request::children(broker::ROOT).watched(), move |answer| match names(answer) {
        Ok(names) => {
            let ids: Vec<_> = names.iter().filter_map(|name| name.parse().ok().map(BrokerId)).collect();
            let reads = ids.iter().map(|id| Request::get(broker::path(*id)).watched()).collect();
            pipeline(&store, reads, move |answers| {
                let brokers: Result<BTreeMap<_, _>, _> = ids
                    .into_iter()
                    .zip(answers)
                    .filter_map(|(id, answer)| {
                        registered(id, answer).map(|it| it.map(|it| (id, it))).transpose()
                    })
                    .collect();
                done(brokers.map(StoreReply::Brokers));
            });
        }
        Err(ended) => done(ended),
    });
}

pub(super) fn read_broker(broker: &Arc<Broker>, id: BrokerId, done: Done) {
    one(broker.store(), Request::get(broker::path(id)).watched(), move |answer| {
        done(registered(id, answer).map(StoreReply::Broker));
    });
}

/// The registration; none if the broker has gone meanwhile.
fn registered(
    id: BrokerId,
    answer: Result<Response, StoreError>,
) -> Result<Option<values::Broker>, kernel::controller::store::StoreFailure> {
    match answer {
        Ok(Response::Data { data, stat }) => {
            let read = broker::BrokerRegistration::decode(data.as_deref())
                .map_err(|error| unreadable(&broker::path(id), &error))?;
            let registration = Arc::new(registration(read));
            Ok(Some(values::Broker { epoch: BrokerEpoch(stat.czxid), registration }))
        }
        Ok(_) => Err(mismatch()),
        Err(error) if error.is_no_node() => Ok(None),
        Err(error) => Err(failure(error)),
    }
}

fn registration(read: broker::BrokerRegistration) -> BrokerRegistration {
    let endpoint = |it: broker::Endpoint| Endpoint {
        listener: it.listener_name,
        host: it.host,
        port: it.port,
        security_protocol: match it.security_protocol {
            SecurityProtocol::Plaintext => 0,
            SecurityProtocol::Ssl => 1,
            SecurityProtocol::SaslPlaintext => 2,
            SecurityProtocol::SaslSsl => 3,
        },
    };
    BrokerRegistration { endpoints: read.endpoints.into_iter().map(endpoint).collect(), rack: read.rack }
}

pub(super) fn read_topic_list(broker: &Arc<Broker>, done: Done) {
    one(broker.store(), Request::children(topic::ROOT).watched(), move |answer| {
        done(match names(answer) {
            Ok(names) => {
                Ok(StoreReply::TopicList(names.iter().map(|n| TopicName::from(n.as_str())).collect()))
            }
            Err(ended) => ended,
        });
    });
}

pub(super) fn read_partition_list(broker: &Arc<Broker>, topic: &TopicName, done: Done) {
    let list = Request::children(partition_state::partitions_path(topic));
    one(broker.store(), list, move |answer| {
        done(match answer {
            Err(error) if error.is_no_node() => Ok(StoreReply::PartitionList(BTreeSet::new())),
            answer => match names(answer) {
                Ok(names) => {
                    Ok(StoreReply::PartitionList(names.iter().filter_map(|n| n.parse().ok()).collect()))
                }
                Err(ended) => ended,
            },
        });
    });
}

pub(super) fn root_of(kind: NotificationKind) -> &'static str {
    match kind {
        NotificationKind::LogDirEvent => log_dir_event::ROOT,
        NotificationKind::IsrChange => isr_change::ROOT,
    }
}

pub(super) fn drop_notifications(
    broker: &Arc<Broker>,
    kind: NotificationKind,
    epoch_version: i32,
    done: Done,
) {
    let store = broker.store().clone();
    let root = root_of(kind);
    one(broker.store(), Request::children(root).watched(), move |answer| match names(answer) {
        Ok(names) => {
            let deletes = names.iter().map(|name| vec![Op::delete(format!("{root}/{name}"), None)]).collect();
            // One that is gone already is what was wanted.
            fenced::write_all(&store, deletes, epoch_version, move |outcomes| {
                done(outcomes.map(|_| StoreReply::Done));
            });
        }
        Err(ended) => done(ended),
    });
}
