//! Changes of a topic's configs: stored first, then in force in its logs, then seen.

use std::collections::BTreeMap;
use std::sync::Arc;

use metadata::store::{Op, Request};
use metadata::znode::config::{self, ConfigEntity};
use metadata::znode::config_change;
use wire::types::TopicName;

use super::topics::store_refusal;
use crate::broker::Broker;
use crate::refusal::Refusal;

/// Replaces all configs set on `topic`; they have passed every check.
pub(crate) fn replace(
    broker: &Arc<Broker>,
    topic: TopicName,
    configs: BTreeMap<String, String>,
    done: impl FnOnce(Result<(), Refusal>) + Send + 'static,
) {
    let entity = ConfigEntity::Topic(topic.clone());
    let ops = vec![
        Op::set(entity.path(), config::encode(&configs), None),
        // Other brokers, and Kafka's own, learn of a change by this node.
        config_change::notify(&entity),
    ];
    let then = broker.clone();
    broker.store().submit(
        Request::Multi(ops),
        Box::new(move |outcome| match outcome {
            Ok(_) => {
                apply(&then, &topic, configs);
                done(Ok(()));
            }
            Err(error) => done(Err(store_refusal(&error, &topic))),
        }),
    );
}

fn apply(broker: &Arc<Broker>, topic: &TopicName, configs: BTreeMap<String, String>) {
    let image = broker.image();
    let Some(current) = image.topic(topic.as_str()) else { return };
    let log_config = Arc::new(broker.log_config(&configs));
    for index in current.partitions.keys() {
        if let Ok(partition) = broker.partition(topic.as_str(), *index) {
            partition.update_config(broker, log_config.clone());
        }
    }
    broker.update_image(|now| match now.topic(topic.as_str()).cloned() {
        Some(current) => {
            let mut changed = (*current).clone();
            changed.configs = configs;
            now.with_topics([changed])
        }
        None => now,
    });
}
