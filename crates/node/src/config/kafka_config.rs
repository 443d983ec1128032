//! The broker's configuration: a properties file and overrides on top of it become one checked value. Nothing
//! contradictory leaves this module; what stops the start is one line that names key, value and what is
//! allowed. Without a file the broker is a single node on `localhost:9092` with an embedded metadata store.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;

use kernel::planted::Faults;

use super::broker_keys;
use super::broker_values::BrokerValues;
use super::checks::{self, Listeners};
use super::definition::InvalidValue;
use super::describe::DynamicConfigs;
use super::metadata_version::MetadataVersion;
use super::properties::Properties;
use super::topic_config::TopicConfig;
use super::typed::BrokerKeys;
use super::zookeeper::ZooKeeperConfig;

/// A checked broker configuration. It dereferences to [`BrokerKeys`], the plain keys; what is made of several
/// keys stands beside them.
#[derive(Clone, Debug, PartialEq)]
pub struct KafkaConfig {
    keys: BrokerKeys,
    values: BrokerValues,
    /// `log.dirs`, else `log.dir`: the data directories in the order given.
    pub log_dirs: Vec<PathBuf>,
    /// `listeners` and what belongs to them.
    pub listeners: Listeners,
    /// `inter.broker.protocol.version`.
    pub inter_broker_protocol_version: MetadataVersion,
    pub(super) topic_defaults: TopicConfig,
    /// The cluster's ensemble; without one the broker is alone on an embedded store.
    pub zookeeper: Option<ZooKeeperConfig>,
    /// `max.connections.per.ip.overrides`: host or address to its limit of connections.
    pub max_connections_per_ip_overrides: BTreeMap<String, usize>,
    /// Faults planted by a test build; none otherwise.
    pub planted_faults: Faults,
}

impl Deref for KafkaConfig {
    type Target = BrokerKeys;

    fn deref(&self) -> &BrokerKeys {
        &self.keys
    }
}

/// Something in the configuration that does not stop the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The line of the file, from 1; `None` for an override.
    pub line: Option<usize>,
    /// What is odd.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match self.line {
            Some(line) => write!(f, " (line {line})"),
            None => Ok(()),
        }
    }
}

/// A configuration that stops the start: one line that names key, value and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A value that its key does not take.
    #[error("{0}{line}", line = Line(*.1))]
    Invalid(InvalidValue, Option<usize>),
    /// Values that contradict each other or ask for what the broker cannot do.
    #[error("{0}")]
    Refused(String),
}

struct Line(Option<usize>);

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |line| write!(f, " (line {line})"))
    }
}

/// What a broker without a file uses in place of Kafka's defaults.
const WITHOUT_FILE: [(&str, &str); 3] =
    [("broker.id", "0"), ("listeners", "PLAINTEXT://localhost:9092"), ("log.dirs", "./blumfeld-data")];

/// What a single node with the embedded store uses where nothing else is given: its internal topics cannot
/// have more replicas than there are brokers.
const EMBEDDED: [(&str, &str); 3] = [
    ("offsets.topic.replication.factor", "1"),
    ("transaction.state.log.replication.factor", "1"),
    ("transaction.state.log.min.isr", "1"),
];

impl KafkaConfig {
    /// Lets so many threads load and flush the logs of a directory, unless `num.recovery.threads.per.data.dir` is set.
    /// Kafka's default of one spares disks that seek; whoever has such disks says so.
    pub fn prefer_recovery_threads(&mut self, threads: usize) {
        if !self.values().is_given("num.recovery.threads.per.data.dir") {
            self.keys.num_recovery_threads_per_data_dir = threads;
        }
    }

    /// The configuration of a file, with `overrides` on top. An absent `zookeeper.connect` means the embedded
    /// metadata store.
    ///
    /// # Errors
    /// [`ConfigError`] for the first value that is invalid, contradicts another or asks for something that
    /// Blumfeld does not have.
    pub fn from_properties(
        properties: &Properties,
        overrides: &[(String, String)],
    ) -> Result<(Self, Vec<Warning>), ConfigError> {
        let mut properties = properties.clone();
        for (key, value) in overrides {
            properties.set(key.clone(), value.clone());
        }
        let warnings = warnings(&properties);
        let mut given: BTreeMap<String, String> =
            properties.iter().map(|(key, entry)| (key.to_owned(), entry.value.clone())).collect();
        if given.get("zookeeper.connect").is_none_or(|connect| connect.trim().is_empty()) {
            for (key, value) in EMBEDDED {
                given.entry(key.to_owned()).or_insert_with(|| value.to_owned());
            }
        }
        let values = BrokerValues::parse(given).map_err(|invalid| {
            let line = properties.get(&invalid.key).and_then(|entry| entry.line);
            ConfigError::Invalid(invalid, line)
        })?;
        Ok((Self::from_values(values)?, warnings))
    }

    /// The configuration of a broker that is started without a file: a single node on `localhost:9092` with
    /// its data in `./blumfeld-data`, with `overrides` on top.
    ///
    /// # Errors
    /// As [`Self::from_properties`].
    pub fn without_file(overrides: &[(String, String)]) -> Result<(Self, Vec<Warning>), ConfigError> {
        let mut properties = Properties::default();
        for (key, value) in WITHOUT_FILE {
            properties.set(key, value);
        }
        if overrides.iter().any(|(key, _)| key == "node.id") {
            properties.remove("broker.id");
        }
        Self::from_properties(&properties, overrides)
    }

    fn from_values(values: BrokerValues) -> Result<Self, ConfigError> {
        let keys = BrokerKeys::read(&values);
        let refuse = ConfigError::Refused;
        checks::check_support(&values).map_err(refuse)?;
        checks::check_identity(&keys).map_err(refuse)?;
        checks::check_numbers(&values).map_err(refuse)?;
        checks::check_group_ranges(&values).map_err(refuse)?;
        Ok(Self {
            log_dirs: checks::log_dirs(&values).map_err(refuse)?,
            listeners: Listeners::read(&values).map_err(refuse)?,
            inter_broker_protocol_version: checks::inter_broker_version(&values).map_err(refuse)?,
            zookeeper: ZooKeeperConfig::read(&values).map_err(refuse)?,
            max_connections_per_ip_overrides: checks::per_ip_overrides(&values).map_err(refuse)?,
            topic_defaults: TopicConfig::defaults(&values),
            planted_faults: planted_faults(&values).map_err(refuse)?,
            keys,
            values,
        })
    }

    /// This configuration with `dynamic` on top.
    ///
    /// # Errors
    /// [`ConfigError`] if the values contradict each other; single values that are invalid have no effect.
    pub(super) fn with_dynamic(&self, dynamic: &DynamicConfigs) -> Result<Self, ConfigError> {
        let mut config = Self::from_values(self.values.with_dynamic(dynamic))?;
        config.prefer_recovery_threads(self.num_recovery_threads_per_data_dir);
        Ok(config)
    }

    /// All values by key, as given and as parsed.
    #[must_use]
    pub fn values(&self) -> &BrokerValues {
        &self.values
    }

    /// Whether cluster state lives in the embedded store, rather than in a ZooKeeper.
    #[must_use]
    pub fn uses_embedded_store(&self) -> bool {
        self.zookeeper.is_none()
    }
}

/// The property that plants faults in a test build; others do not know it.
#[cfg(feature = "planted-faults")]
const PLANTED_FAULTS: &str = "blumfeld.planted.faults";

#[cfg(feature = "planted-faults")]
fn planted_faults(values: &BrokerValues) -> Result<Faults, String> {
    let names = values.originals().get(PLANTED_FAULTS).map_or("", String::as_str);
    Faults::parse(names).map_err(|name| format!("{PLANTED_FAULTS} names no fault: {name}"))
}

#[cfg(not(feature = "planted-faults"))]
fn planted_faults(_: &BrokerValues) -> Result<Faults, String> {
    Ok(Faults::default())
}

fn warnings(properties: &Properties) -> Vec<Warning> {
    let duplicates = properties.duplicates().iter().map(|duplicate| Warning {
        line: Some(duplicate.ignored),
        message: format!("{} is set again on line {}, which wins", duplicate.key, duplicate.wins),
    });
    let unknown = properties.iter().filter(|(key, _)| broker_keys::governing(key).is_none());
    let unknown = unknown.map(|(key, entry)| Warning {
        line: entry.line,
        message: format!("{key} is no config of the broker and has no effect"),
    });
    duplicates.chain(unknown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(file: &str) -> Result<(KafkaConfig, Vec<Warning>), ConfigError> {
        KafkaConfig::from_properties(&Properties::parse(file.as_bytes()).unwrap(), &[])
    }

    fn pair(key: &str, value: &str) -> (String, String) {
        (key.to_owned(), value.to_owned())
    }

    #[test]
    fn without_a_file_the_broker_is_a_single_node_on_localhost() {
        let (config, warnings) = KafkaConfig::without_file(&[]).unwrap();
        assert_eq!(config.broker_id, 0);
        assert_eq!(config.log_dirs, [PathBuf::from("./blumfeld-data")]);
        assert_eq!(config.listeners.bound[0].to_string(), "PLAINTEXT://localhost:9092");
        assert_eq!(config.blumfeld_http_address, "127.0.0.1:9644");
        assert_eq!((config.offsets_topic_replication_factor, config.transaction_state_log_min_isr), (1, 1));
        assert!(config.uses_embedded_store());
        assert_eq!(warnings, []);
    }

    #[test]
    fn the_threads_of_recovery_are_the_machines_unless_they_are_set() {
        let (mut config, _) = KafkaConfig::without_file(&[]).unwrap();
        assert_eq!(config.num_recovery_threads_per_data_dir, 1);
        config.prefer_recovery_threads(4);
        assert_eq!(config.num_recovery_threads_per_data_dir, 4);
        let set = [pair("num.recovery.threads.per.data.dir", "1")];
        let (mut config, _) = KafkaConfig::without_file(&set).unwrap();
        config.prefer_recovery_threads(4);
        assert_eq!(config.num_recovery_threads_per_data_dir, 1);
    }

    #[test]
    fn a_file_has_kafkas_defaults() {
        let (config, _) = config("").unwrap();
        assert_eq!(config.broker_id, -1);
        assert_eq!(config.log_dirs, [PathBuf::from("/tmp/kafka-logs")]);
        assert_eq!(config.listeners.bound[0].to_string(), "PLAINTEXT://:9092");
        assert_eq!(config.offsets_topic_replication_factor, 1);
        assert_eq!(config.num_io_threads, 8);
    }

    #[cfg(feature = "planted-faults")]
    #[test]
    fn faults_are_planted_as_told_and_no_others() {
        use kernel::planted::Fault;

        assert_eq!(config("").unwrap().0.planted_faults, Faults::default());
        let (planted, _) = config("blumfeld.planted.faults=epoch-end-without-epoch").unwrap();
        assert_eq!(planted.planted_faults, Faults::default().and(Fault::EpochEndWithoutEpoch));
        let error = config("blumfeld.planted.faults=bug").unwrap_err().to_string();
        assert_eq!(error, "blumfeld.planted.faults names no fault: bug");
    }

    #[test]
    fn overrides_win_over_the_file() {
        let file = Properties::parse(b"num.partitions=3\noffsets.topic.replication.factor=2").unwrap();
        let overrides = [pair("num.partitions", "4"), pair("node.id", "9")];
        let (config, _) = KafkaConfig::from_properties(&file, &overrides).unwrap();
        assert_eq!((config.num_partitions, config.broker_id), (4, 9));
        assert_eq!(config.offsets_topic_replication_factor, 2);
        let (config, _) = KafkaConfig::without_file(&[pair("node.id", "5")]).unwrap();
        assert_eq!(config.broker_id, 5);
    }

    #[test]
    fn unknown_and_repeated_keys_warn_with_their_line() {
        let (_, warnings) = config("no.such.key=1\nnum.partitions=1\nnum.partitions=2\n").unwrap();
        let shown: Vec<_> = warnings.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "num.partitions is set again on line 3, which wins (line 2)",
                "no.such.key is no config of the broker and has no effect (line 1)"
            ]
        );
    }

    #[test]
    fn an_invalid_value_names_key_value_range_and_line() {
        let error = config("\nnum.partitions=0").unwrap_err().to_string();
        assert_eq!(
            error,
            "Invalid value 0 for configuration num.partitions: must be an INT of at least 1 (line 2)"
        );
        let error = KafkaConfig::without_file(&[pair("num.partitions", "x")]).unwrap_err().to_string();
        assert_eq!(error, "Invalid value x for configuration num.partitions: must be an INT of at least 1");
    }
}
