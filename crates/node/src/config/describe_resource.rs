//! DescribeConfigs for one resource: which type and name is answered with what, and the errors in Kafka's
//! order.

use std::collections::BTreeMap;

use kernel::topic_name;
use wire::error_code::ErrorCode;

use super::current::CurrentConfig;
use super::describe::{ConfigEntry, Source};
use super::resource::{
    BROKER, BROKER_LOGGER, CLIENT_METRICS, ResourceError, TOPIC, check_own_id, invalid, refuse,
};
use crate::loggers::{LogLevels, NAMES, ROOT};

/// What the answers are made of.
pub struct Described<'a> {
    /// The broker's configuration as it is in force.
    pub config: &'a CurrentConfig,
    /// The broker's id.
    pub broker_id: i32,
    /// The stored overrides of a topic; none if there is no such topic.
    pub topic: &'a dyn Fn(&str) -> Option<BTreeMap<String, String>>,
    /// The levels of the loggers.
    pub log_levels: &'a LogLevels,
}

/// Whether a resource type can stand in a request at all; one that cannot fails the whole request.
#[must_use]
pub fn is_known_type(resource_type: i8) -> bool {
    [TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS].contains(&resource_type)
}

/// All entries of one resource.
///
/// # Errors
/// INVALID_TOPIC_EXCEPTION, UNKNOWN_TOPIC_OR_PARTITION, or INVALID_REQUEST for everything else.
pub fn describe_resource(
    resource_type: i8,
    name: &str,
    described: &Described<'_>,
) -> Result<Vec<ConfigEntry>, ResourceError> {
    match resource_type {
        TOPIC => {
            if let Err(illegal) = topic_name::check(name) {
                return refuse(
                    ErrorCode::InvalidTopicException,
                    format!("Topic name '{name}' is invalid: {illegal}"),
                );
            }
            let overrides = (described.topic)(name);
            let unknown = ResourceError::code(ErrorCode::UnknownTopicOrPartition);
            overrides.map(|overrides| described.config.describe_topic(&overrides)).ok_or(unknown)
        }
        BROKER if name.is_empty() => Ok(described.config.describe_broker_defaults()),
        BROKER => {
            check_own_id(name, described.broker_id)?;
            Ok(described.config.describe_broker())
        }
        BROKER_LOGGER => {
            check_own_id(name, described.broker_id)?;
            Ok(loggers(described.log_levels))
        }
        CLIENT_METRICS => invalid("Client metrics are not available on this broker"),
        other => invalid(format!("Unknown resource type {other}")),
    }
}

/// Every logger with the level that it goes by.
fn loggers(levels: &LogLevels) -> Vec<ConfigEntry> {
    let entry = |name: &str| ConfigEntry {
        name: name.to_owned(),
        value: Some(levels.of(name).name().to_owned()),
        source: Source::DynamicBrokerLogger,
        is_sensitive: false,
        read_only: false,
        kind: None,
        synonyms: Vec::new(),
    };
    NAMES.into_iter().chain([ROOT]).map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::super::dynamic::Level;
    use super::super::kafka_config::KafkaConfig;
    use super::*;
    use crate::loggers::LogLevel;

    fn describe(resource_type: i8, name: &str) -> Result<Vec<ConfigEntry>, ResourceError> {
        let (config, _) = KafkaConfig::without_file(&[]).unwrap();
        let default = BTreeMap::from([("num.io.threads".to_owned(), "9".to_owned())]);
        let (config, _) = CurrentConfig::new(config).with(Level::AllBrokers, &default);
        let topic = |name: &str| (name == "t").then(BTreeMap::new);
        let own = BTreeMap::from([("node".to_owned(), LogLevel::Debug)]);
        let log_levels = LogLevels { root: LogLevel::Info, own };
        let described = Described { config: &config, broker_id: 0, topic: &topic, log_levels: &log_levels };
        describe_resource(resource_type, name, &described)
    }

    #[test]
    fn topics_brokers_and_loggers_have_their_entries() {
        assert_eq!(describe(TOPIC, "t").unwrap().len(), 36);
        // The dynamic default shows, and so does everything that is not internal.
        assert_eq!(describe(BROKER, "0").unwrap().len(), 315);
        assert_eq!(describe(BROKER, "").unwrap().len(), 1);
        let loggers = describe(BROKER_LOGGER, "0").unwrap();
        let level = |name: &str| {
            let it = loggers.iter().find(|it| it.name == name).unwrap();
            (it.value.as_deref().unwrap(), it.source.code())
        };
        assert_eq!(loggers.len(), NAMES.len() + 1);
        assert_eq!((level("root"), level("node.api")), (("INFO", 6), ("DEBUG", 6)));
    }

    #[test]
    fn what_cannot_be_described_has_kafkas_code() {
        for (resource_type, name, code) in [
            (TOPIC, "u", 3),
            (TOPIC, "a b", 17),
            (TOPIC, "", 17),
            (BROKER, "7", 42),
            (BROKER, "x", 42),
            (BROKER_LOGGER, "7", 42),
            (BROKER_LOGGER, "", 42),
            (CLIENT_METRICS, "m", 42),
            (0, "x", 42),
        ] {
            let error = describe(resource_type, name).unwrap_err();
            assert_eq!(error.code.code(), code, "{resource_type} {name}");
            assert_eq!(error.message.is_none(), code == 3);
        }
    }

    #[test]
    fn only_four_types_may_stand_in_a_request() {
        let known: Vec<i8> = (0..=i8::MAX).filter(|t| is_known_type(*t)).collect();
        assert_eq!(known, [2, 4, 8, 16]);
    }
}
