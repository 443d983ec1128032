//! AlterConfigs (key 33): replaces all configs that are set on a topic or a broker (KIP-133, KIP-226).
//! IncrementalAlterConfigs goes the same way from [`carry_out`] on.

use std::sync::Arc;

use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::alter_configs_response::AlterConfigsResourceResponse;
use wire::messages::{AlterConfigsRequest, AlterConfigsResponse};
use wire::types::TopicName;

use super::Answer;
use crate::broker::Broker;
use crate::config::alter::{self, Alteration, Change, Current, Plan, Way};
use crate::config::resource::ResourceError;
use crate::drive::broker_configs;
use crate::drive::gather::Gather;
use crate::drive::topic_configs::{self, TopicConfigs};
use crate::refusal::Refusal;

/// Answers an AlterConfigs request once every resource is altered or refused.
pub(crate) fn handle(broker: &Arc<Broker>, answer: Answer, request: AlterConfigsRequest) {
    let names: Vec<_> = request.resources.iter().map(|resource| resource.resource_name.clone()).collect();
    let then = broker.clone();
    read_stored(broker, &names, move |stored| alter(&then, answer, &request, &stored));
}

fn alter(broker: &Arc<Broker>, answer: Answer, request: &AlterConfigsRequest, stored: &Stored) {
    let wanted = request.resources.iter().map(|resource| Alteration {
        resource_type: resource.resource_type,
        resource_name: &resource.resource_name,
        changes: resource
            .configs
            .iter()
            .map(|config| Change {
                name: &config.name,
                operation: alter::SET,
                value: config.value.as_deref(),
            })
            .collect(),
    });
    let wanted: Vec<_> = wanted.collect();
    carry_out(broker, Way::Replace, request.validate_only, &wanted, stored, move |outcomes| {
        let responses = outcomes.into_iter().map(|outcome| AlterConfigsResourceResponse {
            error_code: outcome.error_code,
            error_message: outcome.error_message,
            resource_type: outcome.resource_type,
            resource_name: outcome.resource_name,
        });
        answer.send(&AlterConfigsResponse {
            responses: responses.collect(),
            ..AlterConfigsResponse::default()
        });
    });
}

/// What is stored of the resources of a request.
pub(super) struct Stored {
    topics: TopicConfigs,
    brokers: broker_configs::Stored,
}

/// Reads what is stored for topics of these names and for brokers.
pub(super) fn read_stored(broker: &Arc<Broker>, names: &[Str], then: impl FnOnce(Stored) + Send + 'static) {
    let next = broker.clone();
    topic_configs::read(broker, names.iter().map(Str::as_str), move |topics| {
        broker_configs::read(&next, move |brokers| then(Stored { topics, brokers }));
    });
}

/// How a resource's alteration ended.
pub(super) struct Altered {
    pub(super) error_code: i16,
    pub(super) error_message: Option<Str>,
    pub(super) resource_type: i8,
    pub(super) resource_name: Str,
}

impl Altered {
    fn new(wanted: &Alteration<'_>) -> Self {
        Self {
            error_code: 0,
            error_message: None,
            resource_type: wanted.resource_type,
            resource_name: Str::from(wanted.resource_name),
        }
    }

    fn ended(self, outcome: Result<(), Refusal>) -> Self {
        match outcome {
            Ok(()) => self,
            Err(refusal) => {
                Self { error_code: refusal.code.code(), error_message: refusal.message(), ..self }
            }
        }
    }

    fn refused(self, error: &ResourceError) -> Self {
        Self { error_code: error.code.code(), error_message: error.message.as_deref().map(Str::from), ..self }
    }
}

/// Alters what may be altered; `then` learns how each resource ended, in the request's order.
pub(super) fn carry_out(
    broker: &Arc<Broker>,
    way: Way,
    validate_only: bool,
    wanted: &[Alteration<'_>],
    stored: &Stored,
    then: impl FnOnce(Vec<Altered>) + Send + 'static,
) {
    let config = broker.config();
    let current = Current {
        config: &config,
        broker_id: broker.id().0,
        broker: &|level| stored.brokers.get(level),
        topic: &|name| stored.topics.get(name).cloned(),
    };
    let plans = alter::plan(way, wanted, &current);
    drop(config);
    let gather = Gather::new(wanted.len(), then);
    for (at, (wanted, plan)) in wanted.iter().zip(plans).enumerate() {
        let altered = Altered::new(wanted);
        match plan {
            Err(error) => gather.put(at, altered.refused(&error)),
            Ok(Plan::Topic(configs)) if !validate_only => {
                let gather = gather.clone();
                let topic = TopicName::from(wanted.resource_name);
                topic_configs::replace(broker, topic, configs, move |it| gather.put(at, altered.ended(it)));
            }
            Ok(Plan::Broker(level, configs)) if !validate_only => {
                let gather = gather.clone();
                broker_configs::replace(broker, level, configs, move |it| gather.put(at, altered.ended(it)));
            }
            Ok(Plan::Loggers(levels)) if !validate_only => {
                broker.loggers().change(levels.iter().map(|(name, level)| (name.as_str(), *level)));
                gather.put(at, altered);
            }
            Ok(Plan::Password(key)) if !validate_only => gather.put(at, altered.refused(&no_passwords(&key))),
            Ok(_) => gather.put(at, altered),
        }
    }
}

/// Kafka stores passwords encrypted, by `password.encoder.secret`, and refuses them without it.
fn no_passwords(key: &str) -> ResourceError {
    let message = format!("{key} is a password, and this broker stores none; set it in the broker's file");
    ResourceError { code: ErrorCode::InvalidConfig, message: Some(message) }
}
