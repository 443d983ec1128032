//! Configuration: the keys of a 3.9 broker and of its topics with types, defaults, ranges and synonyms
//! (KIP-226), the reading of `server.properties`, and the logic behind DescribeConfigs and the two requests
//! that alter configs. Everything here is pure: files are read and znodes are written elsewhere.

pub mod alter;
pub mod broker_keys;
pub mod broker_values;
mod checks;
mod connection_rates;
pub mod current;
pub mod definition;
pub mod describe;
pub mod describe_resource;
pub mod dynamic;
mod kafka_config;
pub mod listeners;
pub mod properties;
mod reconfigure;
pub mod resource;
pub mod topic_config;
pub mod topic_keys;
mod topics;
mod typed;
pub mod value;
mod zookeeper;

use kernel::metadata_version;

pub use checks::Listeners;
pub use connection_rates::ConnectionRates;
pub use current::CurrentConfig;
pub use kafka_config::{ConfigError, KafkaConfig, Warning};
pub use listeners::{EndPoint, SecurityProtocol};
pub use metadata_version::MetadataVersion;
pub use properties::Properties;
pub use topic_config::{TopicConfig, TopicConfigError};
pub use typed::BrokerKeys;
pub use zookeeper::ZooKeeperConfig;
