//! Topics that come into being because a client asked about them (`auto.create.topics.enable`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use kernel::topic_name;
use wire::error_code::ErrorCode;
use wire::types::TopicName;

use super::topics::{self, NewTopic};
use crate::broker::Broker;

/// How many topics may be in creation for clients that merely asked, at once.
const MAX_IN_FLIGHT: usize = 1000;

/// How long a name counts as in creation, in milliseconds, if its leaders are not seen.
const AUTO_CREATE_TIMEOUT_MS: i32 = 5_000;

/// The names in creation: a second request for one of them does not begin again.
#[derive(Debug, Default)]
pub(crate) struct InFlight(Mutex<BTreeSet<TopicName>>);

impl InFlight {
    fn enter(&self, name: &TopicName) -> bool {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.len() < MAX_IN_FLIGHT && names.insert(name.clone())
    }

    fn leave(&self, name: &TopicName) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}

/// Begins to create `name` with the broker's defaults; returns what the client is told meanwhile.
pub(crate) fn create(broker: &Arc<Broker>, name: &str) -> ErrorCode {
    if topic_name::check(name).is_err() {
        return ErrorCode::InvalidTopicException;
    }
    let image = broker.image();
    if let Err(refusal) = topics::check_name(&image, name) {
        return refusal.code;
    }
    let config = broker.config();
    let (partitions, replicas, configs) = match name {
        topic_name::CONSUMER_OFFSETS => config.offsets_topic(),
        topic_name::TRANSACTION_STATE => config.transaction_state_topic(),
        _ => (config.num_partitions, config.default_replication_factor, BTreeMap::new()),
    };
    let assignment = match topics::assign(broker, &image, partitions, replicas) {
        Ok(assignment) => assignment,
        Err(refusal) => {
            tracing::error!(topic = name, replicas, "a topic cannot be created: too few live brokers");
            return refusal.code;
        }
    };
    let name = TopicName::from(name);
    if !broker.creating().enter(&name) {
        return ErrorCode::UnknownTopicOrPartition;
    }
    let then = broker.clone();
    topics::create(
        broker,
        NewTopic { name: name.clone(), assignment, configs },
        AUTO_CREATE_TIMEOUT_MS,
        move |outcome| {
            then.creating().leave(&name);
            if let Err(refusal) = outcome
                && refusal.code != ErrorCode::TopicAlreadyExists
            {
                tracing::warn!(topic = %name, code = refusal.code.name(), "a topic was not created");
            }
        },
    );
    ErrorCode::LeaderNotAvailable
}
