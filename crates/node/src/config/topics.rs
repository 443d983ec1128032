//! What the configuration says of topics: the settings of a topic's logs, the checks of its overrides, and how the two
//! internal topics are made.

use std::collections::BTreeMap;

use storage::log_config::LogConfig;

use super::kafka_config::KafkaConfig;
use super::topic_config::{TopicConfig, TopicConfigError};

impl KafkaConfig {
    /// The configs of a topic without overrides.
    #[must_use]
    pub fn topic_defaults(&self) -> &TopicConfig {
        &self.topic_defaults
    }

    /// The settings of the logs of a topic whose `overrides` are stored. Overrides that cannot be taken have
    /// no effect; they are logged.
    #[must_use]
    pub fn log_config(&self, overrides: &BTreeMap<String, String>) -> LogConfig {
        if overrides.is_empty() {
            return self.topic_defaults.log_config();
        }
        let (config, problems) = self.topic_defaults.with_stored(overrides);
        for problem in problems {
            tracing::warn!(%problem, "a stored topic config has no effect");
        }
        config.log_config()
    }

    /// Checks overrides of a topic as a client gives them.
    ///
    /// # Errors
    /// The first override that cannot be taken; INVALID_CONFIG on the wire.
    pub fn check_topic_configs(&self, overrides: &BTreeMap<String, String>) -> Result<(), TopicConfigError> {
        self.topic_defaults.with(overrides).map(drop)
    }

    /// Partitions, replication factor and configs of `__consumer_offsets` when it is created.
    #[must_use]
    pub fn offsets_topic(&self) -> (i32, i32, BTreeMap<String, String>) {
        let configs = [
            ("cleanup.policy", "compact".to_owned()),
            ("compression.type", "producer".to_owned()),
            ("segment.bytes", self.offsets_topic_segment_bytes.to_string()),
        ];
        let replicas = i32::from(self.offsets_topic_replication_factor);
        (self.offsets_topic_num_partitions, replicas, owned(configs))
    }

    /// Partitions, replication factor and configs of `__transaction_state` when it is created.
    #[must_use]
    pub fn transaction_state_topic(&self) -> (i32, i32, BTreeMap<String, String>) {
        let configs = [
            ("cleanup.policy", "compact".to_owned()),
            ("compression.type", "uncompressed".to_owned()),
            ("min.insync.replicas", self.transaction_state_log_min_isr.to_string()),
            ("segment.bytes", self.transaction_state_log_segment_bytes.to_string()),
            ("unclean.leader.election.enable", "false".to_owned()),
        ];
        let replicas = i32::from(self.transaction_state_log_replication_factor);
        (self.transaction_state_log_num_partitions, replicas, owned(configs))
    }
}

fn owned<const N: usize>(configs: [(&str, String); N]) -> BTreeMap<String, String> {
    configs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn internal_topics_are_made_with_valid_configs() {
        let overrides = [("offsets.topic.segment.bytes".to_owned(), "1000".to_owned())];
        let (config, _) = KafkaConfig::without_file(&overrides).unwrap();
        let (partitions, replicas, configs) = config.offsets_topic();
        assert_eq!((partitions, replicas), (50, 1));
        config.check_topic_configs(&configs).unwrap();
        let log = config.log_config(&configs);
        assert!(log.cleanup_compact && !log.cleanup_delete);
        assert_eq!(log.segment_bytes, 1000);
        let (_, _, configs) = config.transaction_state_topic();
        config.check_topic_configs(&configs).unwrap();
        assert_eq!(config.log_config(&configs).min_insync_replicas, 1);
    }
}
