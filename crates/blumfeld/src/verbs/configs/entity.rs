//! Whose configs: `--entity-type` with `--entity-name` or `--entity-default`, or the short options.

use clap::ArgGroup;

use crate::failure::Failure;

/// The kinds of entities in Kafka's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum EntityType {
    Topics,
    Brokers,
    BrokerLoggers,
    #[value(hide = true)]
    Clients,
    #[value(hide = true)]
    Users,
    #[value(hide = true)]
    Ips,
    #[value(hide = true)]
    ClientMetrics,
}

/// The options that name an entity.
#[derive(Clone, Debug, clap::Args)]
#[command(group = ArgGroup::new("entity").required(true)
    .args(["entity_type", "topic", "broker", "broker_defaults", "broker_logger"]))]
pub(super) struct EntityArgs {
    /// The kind of entity
    #[arg(long, value_enum, value_name = "TYPE")]
    entity_type: Option<EntityType>,
    /// A topic's name or a broker's id
    #[arg(long, value_name = "NAME", requires = "entity_type")]
    entity_name: Option<String>,
    /// The defaults of all brokers
    #[arg(long, requires = "entity_type", conflicts_with = "entity_name")]
    entity_default: bool,
    /// Short for --entity-type topics --entity-name
    #[arg(long, value_name = "TOPIC")]
    topic: Option<String>,
    /// Short for --entity-type brokers --entity-name
    #[arg(long, value_name = "ID")]
    broker: Option<String>,
    /// Short for --entity-type brokers --entity-default
    #[arg(long)]
    broker_defaults: bool,
    /// Short for --entity-type broker-loggers --entity-name
    #[arg(long, value_name = "ID")]
    broker_logger: Option<String>,
}

/// What has configs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Topic,
    Broker,
    BrokerLogger,
}

/// Whose configs are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entity {
    /// The kind.
    pub(super) kind: Kind,
    /// The name; empty for the defaults of brokers, none for all of the kind.
    pub(super) name: Option<String>,
}

impl Kind {
    /// The number of the resource type on the wire.
    pub(super) fn code(self) -> i8 {
        match self {
            Self::Topic => 2,
            Self::Broker => 4,
            Self::BrokerLogger => 8,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Topic => "topic",
            Self::Broker => "broker",
            Self::BrokerLogger => "broker-logger",
        }
    }
}

impl Entity {
    /// How the entity is called in sentences.
    pub(super) fn title(kind: Kind, name: &str) -> String {
        match (kind, name) {
            (Kind::Broker, "") => "brokers in the cluster".to_owned(),
            (kind, name) => format!("{} {name}", kind.name()),
        }
    }
}

impl EntityArgs {
    /// The entity that the options name.
    pub(super) fn entity(&self) -> Result<Entity, Failure> {
        let named = |kind, name: &Option<String>| Entity { kind, name: name.clone() };
        if self.topic.is_some() {
            return Ok(named(Kind::Topic, &self.topic));
        }
        if self.broker.is_some() {
            return Ok(named(Kind::Broker, &self.broker));
        }
        if self.broker_logger.is_some() {
            return Ok(named(Kind::BrokerLogger, &self.broker_logger));
        }
        let defaults = Entity { kind: Kind::Broker, name: Some(String::new()) };
        match self.entity_type {
            None => Ok(defaults),
            Some(EntityType::Brokers) if self.entity_default => Ok(defaults),
            Some(_) if self.entity_default => Err(Failure::new("Only brokers have defaults")),
            Some(EntityType::Topics) => Ok(named(Kind::Topic, &self.entity_name)),
            Some(EntityType::Brokers) => Ok(named(Kind::Broker, &self.entity_name)),
            Some(EntityType::BrokerLoggers) if self.entity_name.is_none() => {
                Err(Failure::new("--entity-type broker-loggers needs --entity-name with the id of a broker"))
            }
            Some(EntityType::BrokerLoggers) => Ok(named(Kind::BrokerLogger, &self.entity_name)),
            Some(EntityType::Clients | EntityType::Users | EntityType::Ips) => {
                Err(Failure::new("Quotas and credentials are not available")
                    .hint("This tool knows topics, brokers and broker-loggers."))
            }
            Some(EntityType::ClientMetrics) => Err(Failure::new("Client metrics are not available")
                .hint("This tool knows topics, brokers and broker-loggers.")),
        }
    }
}
