//! DescribeConfigs (key 32): the configs of topics, of this broker and of its loggers, with where each value
//! comes from (KIP-133, KIP-226, KIP-569).

use std::sync::Arc;

use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::describe_configs_request::DescribeConfigsResource;
use wire::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use wire::messages::{DescribeConfigsRequest, DescribeConfigsResponse};

use super::Answer;
use crate::broker::Broker;
use crate::config::describe::{ConfigEntry, Source, Synonym, select};
use crate::config::describe_resource::{Described, describe_resource, is_known_type};
use crate::config::resource::{BROKER_LOGGER, ResourceError};
use crate::drive::topic_configs::{self, TopicConfigs};

/// Answers a DescribeConfigs request.
pub(crate) fn handle(broker: &Arc<Broker>, answer: Answer, request: DescribeConfigsRequest) {
    let names: Vec<_> = request.resources.iter().map(|resource| resource.resource_name.clone()).collect();
    let then = broker.clone();
    topic_configs::read(broker, names.iter().map(Str::as_str), move |configs| {
        let response = respond(&then, answer.call().version(), &request, &configs);
        answer.send(&response);
    });
}

fn respond(
    broker: &Broker,
    version: i16,
    request: &DescribeConfigsRequest,
    topics: &TopicConfigs,
) -> DescribeConfigsResponse {
    let results = if request.resources.iter().all(|resource| is_known_type(resource.resource_type)) {
        request.resources.iter().map(|it| describe(broker, version, request, it, topics)).collect()
    } else {
        let error = ResourceError::code(ErrorCode::InvalidRequest);
        let text = Str::from(error.code.message());
        let refuse = |it| DescribeConfigsResult { error_message: Some(text.clone()), ..refused(it, &error) };
        request.resources.iter().map(refuse).collect()
    };
    DescribeConfigsResponse { results, ..DescribeConfigsResponse::default() }
}

fn describe(
    broker: &Broker,
    version: i16,
    request: &DescribeConfigsRequest,
    resource: &DescribeConfigsResource,
    topics: &TopicConfigs,
) -> DescribeConfigsResult {
    let config = broker.config();
    let described = Described {
        config: &config,
        broker_id: broker.id().0,
        topic: &|name| topics.get(name).cloned(),
        log_levels: &broker.loggers().levels(),
    };
    match describe_resource(resource.resource_type, &resource.resource_name, &described) {
        Ok(entries) => {
            let entries = select(entries, resource.configuration_keys.as_deref());
            let told = |entry| tell(entry, version, resource.resource_type, request.include_synonyms);
            DescribeConfigsResult { configs: entries.into_iter().map(told).collect(), ..blank(resource) }
        }
        Err(error) => refused(resource, &error),
    }
}

fn blank(resource: &DescribeConfigsResource) -> DescribeConfigsResult {
    DescribeConfigsResult {
        resource_type: resource.resource_type,
        resource_name: resource.resource_name.clone(),
        ..DescribeConfigsResult::default()
    }
}

fn refused(resource: &DescribeConfigsResource, error: &ResourceError) -> DescribeConfigsResult {
    DescribeConfigsResult {
        error_code: error.code.code(),
        error_message: Some(error.message.as_deref().map(Str::from).unwrap_or_default()),
        ..blank(resource)
    }
}

fn tell(
    entry: ConfigEntry,
    version: i16,
    resource_type: i8,
    with_synonyms: bool,
) -> DescribeConfigsResourceResult {
    let synonyms = if with_synonyms { entry.synonyms } else { Vec::new() };
    let synonym = |it: Synonym| DescribeConfigsSynonym {
        name: Str::from(it.name),
        value: it.value.map(Str::from),
        source: it.source.code(),
    };
    DescribeConfigsResourceResult {
        name: Str::from(entry.name),
        value: entry.value.map(Str::from),
        read_only: entry.read_only,
        // Later versions say it by the source.
        is_default: version == 0 && entry.source == Source::Default,
        config_source: entry.source.code(),
        is_sensitive: entry.is_sensitive,
        synonyms: synonyms.into_iter().map(synonym).collect(),
        config_type: entry.kind.map_or(0, crate::config::value::Kind::code),
        documentation: (resource_type == BROKER_LOGGER).then(Str::default),
    }
}
