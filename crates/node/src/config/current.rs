//! The configuration in force: what the broker was started with, and what the metadata store adds to it (KIP-226).
//! It dereferences to the [`KafkaConfig`] in force, so that who reads a key need not know where its value comes from.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use super::connection_rates::ConnectionRates;
use super::describe::{ConfigEntry, Describer, DynamicConfigs};
use super::dynamic::{self, Level};
use super::kafka_config::KafkaConfig;
use super::reconfigure;

type Configs = BTreeMap<String, String>;

/// A broker's configuration at a moment.
#[derive(Clone, Debug)]
pub struct CurrentConfig {
    started_with: Arc<KafkaConfig>,
    dynamic: DynamicConfigs,
    in_force: Arc<KafkaConfig>,
    connection_rates: ConnectionRates,
}

impl Deref for CurrentConfig {
    type Target = KafkaConfig;

    fn deref(&self) -> &KafkaConfig {
        &self.in_force
    }
}

impl CurrentConfig {
    /// The configuration of a broker for which the store has nothing.
    #[must_use]
    pub fn new(config: KafkaConfig) -> Self {
        let in_force = Arc::new(config);
        Self {
            started_with: in_force.clone(),
            dynamic: DynamicConfigs::default(),
            in_force,
            connection_rates: ConnectionRates::default(),
        }
    }

    /// This configuration with other dynamic configs, as they are stored for `level`. What may not stand there is left
    /// out; if what is left contradicts itself, all remains in force as it was. The second part tells of both.
    #[must_use]
    pub fn with(&self, level: Level, stored: &Configs) -> (Self, Vec<String>) {
        let (usable, mut problems) = dynamic::usable(stored, level);
        let dynamic = self.dynamic_with(level, usable);
        let in_force = match self.started_with.with_dynamic(&dynamic) {
            Ok(config) => Arc::new(config),
            Err(error) => {
                problems.push(error.to_string());
                self.in_force.clone()
            }
        };
        (Self { dynamic, in_force, ..self.clone() }, problems)
    }

    /// This configuration with another rate of connections from one IP, or from all that have none of their own (`None`), as
    /// it is stored. The second part tells of what is no rate.
    #[must_use]
    pub fn with_connection_rate(&self, ip: Option<&str>, stored: &Configs) -> (Self, Vec<String>) {
        let mut next = self.clone();
        let problems = next.connection_rates.set(ip, stored).err();
        (next, problems.into_iter().collect())
    }

    /// How many connections a second there may be from each address.
    #[must_use]
    pub fn connection_rates(&self) -> &ConnectionRates {
        &self.connection_rates
    }

    /// Checks whether `configs`, which pass [`dynamic::check`], can come in force for `level` while the broker runs.
    ///
    /// # Errors
    /// Why they cannot, in one line.
    pub fn check_dynamic(&self, level: Level, configs: &Configs) -> Result<(), String> {
        let next = self.started_with.with_dynamic(&self.dynamic_with(level, configs.clone()));
        reconfigure::check(&self.in_force, &next.map_err(|error| error.to_string())?)
    }

    fn dynamic_with(&self, level: Level, configs: Configs) -> DynamicConfigs {
        let mut dynamic = self.dynamic.clone();
        match level {
            Level::OneBroker => dynamic.of_broker = configs,
            Level::AllBrokers => dynamic.default = configs,
        }
        dynamic
    }

    /// All configs of a topic, as DescribeConfigs and CreateTopics tell them.
    #[must_use]
    pub fn describe_topic(&self, overrides: &Configs) -> Vec<ConfigEntry> {
        let (config, _) = self.in_force.topic_defaults().with_stored(overrides);
        self.describer().topic(&config, overrides)
    }

    /// All configs of the broker, as DescribeConfigs tells them.
    #[must_use]
    pub fn describe_broker(&self) -> Vec<ConfigEntry> {
        self.describer().broker()
    }

    /// The dynamic defaults of all brokers, as DescribeConfigs tells them.
    #[must_use]
    pub fn describe_broker_defaults(&self) -> Vec<ConfigEntry> {
        self.describer().broker_defaults()
    }

    fn describer(&self) -> Describer<'_> {
        Describer { values: self.started_with.values(), dynamic: &self.dynamic }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configs(pairs: &[(&str, &str)]) -> Configs {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn current(file: &[(&str, &str)]) -> CurrentConfig {
        let file: Vec<_> = configs(file).into_iter().collect();
        CurrentConfig::new(KafkaConfig::without_file(&file).unwrap().0)
    }

    fn with(current: &CurrentConfig, level: Level, stored: &[(&str, &str)]) -> CurrentConfig {
        let (next, problems) = current.with(level, &configs(stored));
        assert_eq!(problems, Vec::<String>::new());
        next
    }

    #[test]
    fn a_broker_goes_before_all_brokers_and_they_before_the_file() {
        let file = current(&[("num.io.threads", "4")]);
        let all = with(&file, Level::AllBrokers, &[("num.io.threads", "5")]);
        let one = with(&all, Level::OneBroker, &[("num.io.threads", "6")]);
        assert_eq!((file.num_io_threads, all.num_io_threads, one.num_io_threads), (4, 5, 6));
        assert_eq!(with(&one, Level::OneBroker, &[]).num_io_threads, 5);
        assert_eq!(with(&with(&one, Level::AllBrokers, &[]), Level::OneBroker, &[]).num_io_threads, 4);
    }

    /// KAFKA-10268, KAFKA-17584.
    #[test]
    fn a_time_in_milliseconds_hides_the_hours_of_the_file_until_it_is_deleted() {
        let file = current(&[("log.retention.hours", "2"), ("log.roll.hours", "3")]);
        let retention = |config: &CurrentConfig| config.log_config(&Configs::new()).retention_ms.0;
        let set = with(&file, Level::AllBrokers, &[("log.retention.ms", "1000"), ("log.roll.ms", "7")]);
        assert_eq!(retention(&set), 1000);
        assert_eq!(set.log_config(&Configs::new()).segment_ms.0, 7);
        let deleted = with(&set, Level::AllBrokers, &[]);
        assert_eq!(retention(&deleted), 7_200_000);
        assert_eq!(deleted.log_config(&Configs::new()).segment_ms.0, 10_800_000);
    }

    #[test]
    fn stored_values_that_contradict_leave_all_as_it_was() {
        let file = current(&[]);
        let stored = configs(&[("log.retention.ms", "0"), ("num.io.threads", "9")]);
        let (next, problems) = file.with(Level::AllBrokers, &stored);
        assert_eq!(next.num_io_threads, file.num_io_threads);
        assert!(problems.len() == 1 && problems[0].contains("log.retention.ms"), "{problems:?}");
        // The next change finds a way out.
        assert_eq!(with(&next, Level::AllBrokers, &[("num.io.threads", "9")]).num_io_threads, 9);
    }

    #[test]
    fn preferred_recovery_threads_stay_until_the_key_is_set() {
        let mut config = KafkaConfig::without_file(&[]).unwrap().0;
        config.prefer_recovery_threads(6);
        let current = CurrentConfig::new(config);
        let other = with(&current, Level::OneBroker, &[("num.io.threads", "9")]);
        assert_eq!(other.num_recovery_threads_per_data_dir, 6);
        let set = with(&current, Level::OneBroker, &[("num.recovery.threads.per.data.dir", "2")]);
        assert_eq!(set.num_recovery_threads_per_data_dir, 2);
    }
}
