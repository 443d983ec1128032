//! The configs that are set on topics: read from the store when they are asked for, and in force in the logs from the
//! moment that this broker learns of a change.

use std::collections::BTreeMap;
use std::sync::Arc;

use metadata::store::{Op, Request, Response, StoreError};
use metadata::znode::config::{self, ConfigEntity, Configs};
use metadata::znode::config_change;
use wire::types::TopicName;

use super::pipeline::{one, pipeline};
use super::topics::store_refusal;
use crate::broker::Broker;
use crate::refusal::Refusal;

const UNCLEAN: &str = "unclean.leader.election.enable";

/// The configs of topics by name; a topic whose configs cannot be read is missing.
pub(crate) type TopicConfigs = BTreeMap<TopicName, Configs>;

/// Reads the configs of those of `names` that are topics; `then` gets them.
pub(crate) fn read<'a>(
    broker: &Arc<Broker>,
    names: impl Iterator<Item = &'a str>,
    then: impl FnOnce(TopicConfigs) + Send + 'static,
) {
    let image = broker.image();
    let topics: Vec<_> = names.filter_map(|name| image.topic(name)).map(|topic| topic.name.clone()).collect();
    let reads = topics.iter().map(|topic| Request::get(ConfigEntity::Topic(topic.clone()).path())).collect();
    pipeline(broker.store(), reads, move |answers| {
        let read = topics.into_iter().zip(answers).filter_map(|(topic, answer)| match decode(answer) {
            Ok(configs) => Some((topic, configs)),
            Err(reason) => {
                tracing::error!(%topic, reason, "the configs of the topic cannot be read");
                None
            }
        });
        then(read.collect());
    });
}

/// The configs in the answer to a read of their node; a node that is not there has none.
pub(super) fn decode(answer: Result<Response, StoreError>) -> Result<Configs, String> {
    match answer {
        Ok(Response::Data { data, .. }) => config::decode(data.as_deref()).map_err(|error| error.to_string()),
        Ok(_) => Err("the store answered what was not asked".to_owned()),
        // Of a topic, it was removed by hand.
        Err(error) if error.is_no_node() => Ok(Configs::new()),
        Err(error) => Err(error.to_string()),
    }
}

/// Replaces all configs set on `topic`; they have passed every check.
pub(crate) fn replace(
    broker: &Arc<Broker>,
    topic: TopicName,
    configs: Configs,
    done: impl FnOnce(Result<(), Refusal>) + Send + 'static,
) {
    let entity = ConfigEntity::Topic(topic.clone());
    let ops = vec![
        Op::set(entity.path(), config::encode(&configs), None),
        // Other brokers, and Kafka's own, learn of a change by this node.
        config_change::notify(&entity),
    ];
    let then = broker.clone();
    // Done twice, when a connection is lost, it is the same; one notification more harms nobody.
    one(broker.store(), Request::Multi(ops), move |outcome| match outcome {
        Ok(_) => {
            apply(&then, &topic, &configs);
            done(Ok(()));
        }
        Err(error) => done(Err(store_refusal(&error, &topic))),
    });
}

/// What the configs of a topic say of unclean elections; `None`: nothing, so the broker's config holds.
pub(super) fn allows_unclean_election(configs: &Configs) -> Option<bool> {
    configs.get(UNCLEAN).map(|value| value.eq_ignore_ascii_case("true"))
}

/// Puts the configs of a topic in force in its logs.
pub(crate) fn apply(broker: &Arc<Broker>, topic: &TopicName, configs: &Configs) {
    // Before the partitions are looked at: one that is hosted after that is told by whoever hosts it.
    broker.config_changes().in_force(topic, configs);
    let log_config = Arc::new(broker.log_config(configs));
    for partition in broker.partitions().all().iter().filter(|it| it.name().topic == *topic) {
        partition.update_config(broker, log_config.clone());
    }
}
