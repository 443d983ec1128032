//! The dynamic configs of brokers (KIP-226): reads and replaces what is stored, and puts it in force.
//!
//! What is stored comes in force at once, wherever it was changed: the broker that answers the change does not wait for
//! its own notification. Everything here runs in the order of the store's answers, so that the last that was stored is
//! the last that comes in force.

use std::sync::Arc;

use kernel::controller::event::Event;
use metadata::store::{CreateMode, Op, Request, Response, StoreError};
use metadata::znode::config::{self, ConfigEntity, Configs};
use metadata::znode::config_change;
use wire::error_code::ErrorCode;

use super::pipeline::{one, pipeline};
use super::topic_configs::{self, decode};
use super::{controller, fetchers};
use crate::broker::Broker;
use crate::config::CurrentConfig;
use crate::config::dynamic::Level;
use crate::refusal::Refusal;

/// How often a write is tried whose node comes and goes meanwhile.
const TRIES: usize = 5;

/// What is stored for this broker and for all brokers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stored {
    of_broker: Configs,
    default: Configs,
}

impl Stored {
    /// What is stored for `level`.
    pub(crate) fn get(&self, level: Level) -> Configs {
        match level {
            Level::OneBroker => self.of_broker.clone(),
            Level::AllBrokers => self.default.clone(),
        }
    }
}

/// Where the configs of a level lie.
fn entity(broker: &Broker, level: Level) -> ConfigEntity {
    match level {
        Level::OneBroker => ConfigEntity::Broker(broker.id()),
        Level::AllBrokers => ConfigEntity::DefaultBroker,
    }
}

/// Reads what is stored; `then` gets it. What cannot be read is told and counts as nothing.
pub(crate) fn read(broker: &Arc<Broker>, then: impl FnOnce(Stored) + Send + 'static) {
    let levels = [Level::OneBroker, Level::AllBrokers];
    let reads = levels.iter().map(|level| Request::get(entity(broker, *level).path())).collect();
    pipeline(broker.store(), reads, move |answers| {
        let mut read = answers.into_iter().map(|answer| {
            decode(answer).unwrap_or_else(|reason| {
                tracing::error!(reason, "dynamic configs of brokers cannot be read");
                Configs::new()
            })
        });
        let of_broker = read.next().unwrap_or_default();
        then(Stored { of_broker, default: read.next().unwrap_or_default() });
    });
}

/// Replaces all configs of a level; they have passed every check. `done` is called when they are in force here.
pub(crate) fn replace(
    broker: &Arc<Broker>,
    level: Level,
    configs: Configs,
    done: impl FnOnce(Result<(), Refusal>) + Send + 'static,
) {
    write(broker, level, configs, TRIES, done);
}

/// Sets the node, or creates it if there is none.
fn write(
    broker: &Arc<Broker>,
    level: Level,
    configs: Configs,
    tries: usize,
    done: impl FnOnce(Result<(), Refusal>) + Send + 'static,
) {
    let entity = entity(broker, level);
    let (then, path) = (broker.clone(), entity.path());
    one(broker.store(), Request::get(path.clone()), move |answer| {
        let value = config::encode(&configs);
        let op = match answer {
            Ok(Response::Data { .. }) => Op::set(path, value, None),
            Err(error) if error.is_no_node() => Op::create(path, value, CreateMode::Persistent),
            Ok(_) => return done(Err(refusal(&StoreError::Unexpected("an answer of another kind")))),
            Err(error) => return done(Err(refusal(&error))),
        };
        let ops = vec![op, config_change::notify(&entity)];
        let broker = then.clone();
        // A write whose answer is lost is not repeated: the notification would come twice.
        then.store().submit(
            Request::Multi(ops),
            Box::new(move |outcome| match outcome {
                Ok(_) => apply(&broker, level, &configs, move || done(Ok(()))),
                Err(error) if tries > 1 && (error.is_no_node() || error.is_node_exists()) => {
                    write(&broker, level, configs, tries - 1, done);
                }
                Err(error) => done(Err(refusal(&error))),
            }),
        );
    });
}

fn refusal(error: &StoreError) -> Refusal {
    tracing::error!(%error, "dynamic configs of brokers cannot be stored");
    let code = match error {
        StoreError::ConnectionLoss | StoreError::SessionExpired | StoreError::Closed => {
            ErrorCode::RequestTimedOut
        }
        _ => ErrorCode::UnknownServerError,
    };
    Refusal::new(code, format!("The configs could not be stored: {error}"))
}

/// Puts what is stored for `level` in force; `done` is called when logs and fetchers go by it.
pub(crate) fn apply(
    broker: &Arc<Broker>,
    level: Level,
    stored: &Configs,
    done: impl FnOnce() + Send + 'static,
) {
    let (before, after, problems) = broker.reconfigure(|now| now.with(level, stored));
    for problem in problems {
        tracing::error!(?level, problem, "a stored dynamic config has no effect");
    }
    take_effect(broker, &before, &after, done);
}

fn take_effect(
    broker: &Arc<Broker>,
    before: &CurrentConfig,
    after: &CurrentConfig,
    done: impl FnOnce() + Send + 'static,
) {
    if before.num_replica_fetchers != after.num_replica_fetchers {
        fetchers::resize(broker);
    }
    let allows = |config: &CurrentConfig| config.log_config(&Configs::new()).unclean_leader_election_enable;
    let allowed = allows(after);
    if allows(before) != allowed {
        controller::tell(broker, Event::UncleanElectionDefault(allowed));
    }
    broker.tell_reconfigured();
    if before.topic_defaults() == after.topic_defaults() {
        return done();
    }
    // Before the hosted partitions are looked at: one that is hosted after that is told by whoever hosts it.
    broker.config_changes().defaults_in_force();
    refresh_logs(broker, done);
}

/// Lets every hosted log go by the defaults that are in force, but for what is set on its topic (KAFKA-9254).
pub(crate) fn refresh_logs(broker: &Arc<Broker>, done: impl FnOnce() + Send + 'static) {
    let mut topics: Vec<_> =
        broker.partitions().all().iter().map(|partition| partition.name().topic.clone()).collect();
    topics.sort();
    topics.dedup();
    let reads = topics.iter().map(|topic| Request::get(ConfigEntity::Topic(topic.clone()).path())).collect();
    let then = broker.clone();
    pipeline(broker.store(), reads, move |answers| {
        for (topic, answer) in topics.iter().zip(answers) {
            match decode(answer) {
                Ok(configs) => topic_configs::apply(&then, topic, &configs),
                Err(reason) => {
                    tracing::error!(%topic, reason, "the logs of the topic keep the defaults that they had");
                }
            }
        }
        done();
    });
}
