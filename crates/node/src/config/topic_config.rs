//! The configs of one topic: the broker's defaults and the topic's overrides joined, the checks of an
//! override, and the [`LogConfig`] that comes of it.

use std::collections::BTreeMap;

use storage::log_config::{LogConfig, TopicCompression};
use wire::batch::TimestampType;
use wire::types::Millis;

use super::broker_values::{BrokerValues, FromValue};
use super::definition::InvalidValue;
use super::topic_keys::{self, KEYS};
use super::value::Value;

/// Overrides of a topic that cannot be taken; all are INVALID_CONFIG on the wire.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopicConfigError {
    /// There is no such key.
    #[error("Unknown topic config name: {0}")]
    UnknownKey(String),
    /// A value that its key does not take.
    #[error(transparent)]
    Invalid(#[from] InvalidValue),
    /// Values that contradict each other or ask for what the broker cannot do.
    #[error("{0}")]
    Refused(String),
}

/// The values of a topic's configs: the broker's defaults with the topic's overrides on top.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicConfig {
    values: BTreeMap<&'static str, Value>,
}

impl TopicConfig {
    /// The configs of a topic without overrides.
    #[must_use]
    pub fn defaults(broker: &BrokerValues) -> Self {
        let values = KEYS.iter().filter_map(|key| {
            let name = key.definition.name;
            let of_broker =
                broker_default(broker, name).or_else(|| broker.get(key.synonyms.first()?).cloned());
            Some((name, of_broker.or_else(|| key.definition.default_value())?))
        });
        Self { values: values.collect() }
    }

    /// These configs with a topic's overrides on top, checked as CreateTopics and the alter requests do.
    ///
    /// # Errors
    /// The first override, in name order, that is unknown or invalid; then what contradicts.
    pub fn with(&self, overrides: &BTreeMap<String, String>) -> Result<Self, TopicConfigError> {
        if let Some(unknown) = overrides.keys().find(|name| topic_keys::get(name).is_none()) {
            return Err(TopicConfigError::UnknownKey(unknown.clone()));
        }
        let mut config = self.clone();
        for (name, text) in overrides {
            if let Some(key) = topic_keys::get(name) {
                config.values.insert(key.definition.name, key.definition.parse(text)?);
            }
        }
        config.check().map_err(TopicConfigError::Refused)?;
        Ok(config)
    }

    /// These configs with stored overrides on top. What is unknown or invalid is left at its default and told
    /// in the second part, so that a topic that another program configured still loads.
    #[must_use]
    pub fn with_stored(&self, overrides: &BTreeMap<String, String>) -> (Self, Vec<TopicConfigError>) {
        let mut config = self.clone();
        let mut problems = Vec::new();
        for (name, text) in overrides {
            match topic_keys::get(name).map(|key| (key.definition.name, key.definition.parse(text))) {
                Some((name, Ok(value))) => drop(config.values.insert(name, value)),
                Some((_, Err(invalid))) => problems.push(invalid.into()),
                None => problems.push(TopicConfigError::UnknownKey(name.clone())),
            }
        }
        (config, problems)
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    fn read<T: FromValue>(&self, name: &str) -> T {
        self.values.get(name).and_then(T::from_value).unwrap_or_default()
    }

    fn check(&self) -> Result<(), String> {
        let (least, most): (i64, i64) =
            (self.read("min.compaction.lag.ms"), self.read("max.compaction.lag.ms"));
        if least > most {
            return Err(format!(
                "min.compaction.lag.ms={least}: it must not be above max.compaction.lag.ms={most}"
            ));
        }
        for key in ["remote.storage.enable", "remote.log.copy.disable", "remote.log.delete.on.disable"] {
            if self.read(key) {
                return Err(format!("{key}=true: tiered storage is not available on this broker"));
            }
        }
        Ok(())
    }

    /// The settings of the topic's logs.
    #[must_use]
    pub fn log_config(&self) -> LogConfig {
        let cleanup: Vec<String> = match self.values.get("cleanup.policy") {
            Some(Value::List(policies)) => policies.clone(),
            _ => Vec::new(),
        };
        let timestamp_type: String = self.read("message.timestamp.type");
        let compression: String = self.read("compression.type");
        let difference: i64 = self.read("message.timestamp.difference.max.ms");
        // The older key stands in for a newer one that has its default (KIP-937).
        let timestamp_limit = |key: &str| match self.read::<i64>(key) {
            i64::MAX => Millis(difference),
            limit => Millis(limit),
        };
        LogConfig {
            segment_bytes: self.read("segment.bytes"),
            segment_ms: Millis(self.read("segment.ms")),
            segment_jitter_ms: Millis(self.read("segment.jitter.ms")),
            segment_index_bytes: self.read("segment.index.bytes"),
            index_interval_bytes: self.read("index.interval.bytes"),
            flush_messages: self.read("flush.messages"),
            flush_ms: Millis(self.read("flush.ms")),
            retention_bytes: self.read("retention.bytes"),
            retention_ms: Millis(self.read("retention.ms")),
            delete_retention_ms: Millis(self.read("delete.retention.ms")),
            file_delete_delay_ms: Millis(self.read("file.delete.delay.ms")),
            cleanup_delete: cleanup.iter().any(|policy| policy == "delete"),
            cleanup_compact: cleanup.iter().any(|policy| policy == "compact"),
            min_cleanable_dirty_ratio: self.read("min.cleanable.dirty.ratio"),
            min_compaction_lag_ms: Millis(self.read("min.compaction.lag.ms")),
            max_compaction_lag_ms: Millis(self.read("max.compaction.lag.ms")),
            compression_type: TopicCompression::from_name(&compression).unwrap_or_default(),
            compression_gzip_level: self.read("compression.gzip.level"),
            compression_lz4_level: self.read("compression.lz4.level"),
            compression_zstd_level: self.read("compression.zstd.level"),
            max_message_bytes: self.read("max.message.bytes"),
            message_timestamp_type: match timestamp_type.as_str() {
                "LogAppendTime" => TimestampType::LogAppendTime,
                _ => TimestampType::CreateTime,
            },
            message_timestamp_before_max_ms: timestamp_limit("message.timestamp.before.max.ms"),
            message_timestamp_after_max_ms: timestamp_limit("message.timestamp.after.max.ms"),
            message_downconversion_enable: self.read("message.downconversion.enable"),
            min_insync_replicas: self.read("min.insync.replicas"),
            unclean_leader_election_enable: self.read("unclean.leader.election.enable"),
            preallocate: self.read("preallocate"),
        }
    }
}

/// The default that several broker keys make together; `None` where one key gives it alone.
fn broker_default(broker: &BrokerValues, name: &str) -> Option<Value> {
    const MINUTE_MS: i64 = 60_000;
    const HOUR_MS: i64 = 60 * MINUTE_MS;
    let scaled = |key: &str, unit_ms: i64| Some(broker.integer(key)?.saturating_mul(unit_ms));
    let milliseconds = match name {
        "segment.ms" => scaled("log.roll.ms", 1).or_else(|| scaled("log.roll.hours", HOUR_MS)),
        "segment.jitter.ms" => {
            scaled("log.roll.jitter.ms", 1).or_else(|| scaled("log.roll.jitter.hours", HOUR_MS))
        }
        "flush.ms" => {
            scaled("log.flush.interval.ms", 1).or_else(|| scaled("log.flush.scheduler.interval.ms", 1))
        }
        "retention.ms" => scaled("log.retention.ms", 1)
            .or_else(|| scaled("log.retention.minutes", MINUTE_MS))
            .or_else(|| scaled("log.retention.hours", HOUR_MS))
            .map(|retention| retention.max(-1)),
        "message.timestamp.before.max.ms" | "message.timestamp.after.max.ms" => {
            let newer = broker.integer(&format!("log.{name}")).filter(|limit| *limit != i64::MAX);
            newer.or_else(|| broker.integer("log.message.timestamp.difference.max.ms"))
        }
        _ => None,
    };
    milliseconds.map(Value::Integer)
}

#[cfg(test)]
mod tests {
    use super::super::broker_keys;
    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    fn defaults(broker: &[(&str, &str)]) -> TopicConfig {
        TopicConfig::defaults(&BrokerValues::parse(pairs(broker)).unwrap())
    }

    fn with(broker: &[(&str, &str)], topic: &[(&str, &str)]) -> Result<TopicConfig, TopicConfigError> {
        defaults(broker).with(&pairs(topic))
    }

    #[test]
    fn every_synonym_is_a_broker_key_with_the_same_default() {
        for key in KEYS {
            let definition = key.definition;
            let parsed = definition.parse(definition.default.unwrap()).unwrap();
            assert_eq!(defaults(&[]).get(definition.name), Some(&parsed), "{}", definition.name);
            for synonym in key.synonyms {
                let broker = broker_keys::get(synonym).unwrap();
                let joined = ["segment.ms", "segment.jitter.ms", "flush.ms", "retention.ms"];
                if !joined.contains(&definition.name) {
                    assert_eq!(
                        (broker.kind, broker.default),
                        (definition.kind, definition.default),
                        "{synonym}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_log_without_settings_has_the_storage_defaults() {
        assert_eq!(defaults(&[]).log_config(), LogConfig::default());
    }

    #[test]
    fn the_finest_unit_of_a_broker_time_wins() {
        let log = |broker: &[(&str, &str)]| defaults(broker).log_config();
        let minutes = [("log.retention.hours", "1"), ("log.retention.minutes", "2")];
        assert_eq!(log(&minutes).retention_ms, Millis(120_000));
        assert_eq!(log(&[minutes[0], minutes[1], ("log.retention.ms", "3")]).retention_ms, Millis(3));
        assert_eq!(log(&[("log.retention.hours", "-5")]).retention_ms, Millis(-1));
        assert_eq!(log(&[("log.roll.hours", "2")]).segment_ms, Millis(7_200_000));
        assert_eq!(log(&[("log.roll.hours", "2"), ("log.roll.ms", "9")]).segment_ms, Millis(9));
        assert_eq!(log(&[("log.roll.jitter.hours", "1")]).segment_jitter_ms, Millis(3_600_000));
        assert_eq!(log(&[("log.flush.scheduler.interval.ms", "7")]).flush_ms, Millis(7));
        let both = [("log.flush.scheduler.interval.ms", "7"), ("log.flush.interval.ms", "8")];
        assert_eq!(log(&both).flush_ms, Millis(8));
    }

    #[test]
    fn overrides_reach_the_log() {
        let topic = [
            ("cleanup.policy", "compact, delete"),
            ("compression.type", "zstd"),
            ("message.timestamp.type", "LogAppendTime"),
            ("segment.bytes", "14"),
            ("max.message.bytes", "100"),
            ("message.timestamp.difference.max.ms", "5"),
            ("message.timestamp.after.max.ms", "6"),
        ];
        let log = with(&[("log.segment.bytes", "999")], &topic).unwrap().log_config();
        assert!(log.cleanup_compact && log.cleanup_delete);
        assert_eq!(log.compression_type.name(), "zstd");
        assert_eq!(log.message_timestamp_type, TimestampType::LogAppendTime);
        assert_eq!((log.segment_bytes, log.max_message_bytes), (14, 100));
        assert_eq!(log.message_timestamp_before_max_ms, Millis(5));
        assert_eq!(log.message_timestamp_after_max_ms, Millis(6));
    }

    #[test]
    fn unknown_invalid_and_contradicting_overrides_are_told() {
        let error = |topic: &[(&str, &str)]| with(&[], topic).unwrap_err().to_string();
        assert_eq!(error(&[("no.such", "1"), ("a", "1")]), "Unknown topic config name: a");
        assert_eq!(
            error(&[("segment.bytes", "13")]),
            "Invalid value 13 for configuration segment.bytes: must be an INT of at least 14"
        );
        assert!(error(&[("cleanup.policy", "compact,foo")]).contains("a list of compact, delete"));
        assert!(
            error(&[("min.compaction.lag.ms", "2"), ("max.compaction.lag.ms", "1")]).contains("not be above")
        );
        assert!(error(&[("remote.storage.enable", "true")]).contains("tiered storage"));
        let broker = [("log.cleaner.max.compaction.lag.ms", "5")];
        assert!(with(&broker, &[("min.compaction.lag.ms", "6")]).is_err());
        assert!(with(&broker, &[("min.compaction.lag.ms", "5")]).is_ok());
    }

    #[test]
    fn stored_overrides_that_cannot_be_taken_are_left_out_and_told() {
        let stored = pairs(&[("segment.bytes", "x"), ("old.key", "1"), ("retention.ms", "9")]);
        let (config, problems) = defaults(&[]).with_stored(&stored);
        assert_eq!(config.log_config().retention_ms, Millis(9));
        assert_eq!(config.log_config().segment_bytes, 1 << 30);
        let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 2);
        assert!(told[0].contains("old.key") && told[1].contains("segment.bytes"), "{told:?}");
    }
}
