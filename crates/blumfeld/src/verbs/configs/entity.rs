//! Whose configs are meant: an entity's type and name, in the long and in the short form of the options.

use crate::error::VerbError;

use super::resource::{Resource, ResourceKind};

/// The options that name an entity.
#[derive(Debug, clap::Args)]
pub(super) struct EntityOptions {
    /// topics, brokers or broker-loggers
    #[arg(long, value_name = "TYPE")]
    entity_type: Option<String>,
    /// The name of the topic, or the id of the broker
    #[arg(long, value_name = "NAME", conflicts_with = "entity_default")]
    entity_name: Option<String>,
    /// The defaults of all brokers
    #[arg(long)]
    entity_default: bool,
    /// Short for --entity-type topics --entity-name
    #[arg(long)]
    topic: Option<String>,
    /// Short for --entity-type brokers --entity-name
    #[arg(long)]
    broker: Option<String>,
    /// Short for --entity-type brokers --entity-default
    #[arg(long)]
    broker_defaults: bool,
    /// Short for --entity-type broker-loggers --entity-name
    #[arg(long)]
    broker_logger: Option<String>,
}

/// Whose configs are described or altered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entity {
    /// One topic, broker or broker's loggers.
    One(Resource),
    /// All topics, or all brokers.
    All(ResourceKind),
    /// The dynamic defaults of brokers.
    BrokerDefaults,
}

impl EntityOptions {
    /// The entity that the options name.
    ///
    /// # Errors
    /// If they name none, more than one, or one whose configs cannot be had.
    pub(super) fn get(&self) -> Result<Entity, VerbError> {
        let long = self.entity_type.as_deref().map(|kind| self.by_type(kind));
        let one =
            |kind, name: &Option<String>| name.clone().map(|name| Ok(Entity::One(Resource { kind, name })));
        let short = [
            one(ResourceKind::Topic, &self.topic),
            one(ResourceKind::Broker, &self.broker),
            one(ResourceKind::BrokerLogger, &self.broker_logger),
            self.broker_defaults.then_some(Ok(Entity::BrokerDefaults)),
        ];
        let mut named = std::iter::once(long).chain(short).flatten();
        let usage = |text: &str| VerbError::Usage(text.to_owned());
        let entity = named.next().ok_or_else(|| {
            usage("whose configs? --topic T, --broker ID, --broker-defaults, or --entity-type with --entity-name")
        })??;
        if named.next().is_some() {
            return Err(usage("only one entity can be named at a time"));
        }
        let number = |name: &str| name.parse::<i32>().is_ok();
        match &entity {
            Entity::One(Resource { kind, name }) if *kind != ResourceKind::Topic && !number(name) => {
                Err(VerbError::Usage(format!("a broker is named by its number, not by {name}")))
            }
            _ => Ok(entity),
        }
    }

    fn by_type(&self, kind: &str) -> Result<Entity, VerbError> {
        let kind = match kind {
            "topics" => ResourceKind::Topic,
            "brokers" if self.entity_default => return Ok(Entity::BrokerDefaults),
            "brokers" => ResourceKind::Broker,
            "broker-loggers" => ResourceKind::BrokerLogger,
            "users" | "clients" | "ips" | "client-metrics" => {
                return Err(VerbError::Usage(format!(
                    "--entity-type {kind}: quotas, SCRAM credentials and client metrics are not supported yet"
                )));
            }
            other => {
                return Err(VerbError::Usage(format!(
                    "--entity-type {other}: topics, brokers or broker-loggers are expected"
                )));
            }
        };
        match &self.entity_name {
            Some(name) if name.is_empty() && kind == ResourceKind::Broker => Ok(Entity::BrokerDefaults),
            Some(name) => Ok(Entity::One(Resource { kind, name: name.clone() })),
            None if self.entity_default => {
                Err(VerbError::Usage("only brokers have defaults that can be set".to_owned()))
            }
            None if kind == ResourceKind::BrokerLogger => {
                Err(VerbError::Usage("--entity-name is needed: the broker's id".to_owned()))
            }
            None => Ok(Entity::All(kind)),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: EntityOptions,
    }

    fn entity(line: &str) -> Result<Entity, VerbError> {
        Line::try_parse_from(std::iter::once("configs").chain(line.split(' '))).unwrap().options.get()
    }

    fn one(kind: ResourceKind, name: &str) -> Entity {
        Entity::One(Resource { kind, name: name.into() })
    }

    #[test]
    fn the_long_and_the_short_form_name_the_same() {
        for line in ["--entity-type topics --entity-name t", "--topic t"] {
            assert_eq!(entity(line).unwrap(), one(ResourceKind::Topic, "t"));
        }
        for line in ["--entity-type brokers --entity-name 3", "--broker 3"] {
            assert_eq!(entity(line).unwrap(), one(ResourceKind::Broker, "3"));
        }
        for line in ["--entity-type brokers --entity-default", "--broker-defaults"] {
            assert_eq!(entity(line).unwrap(), Entity::BrokerDefaults);
        }
        for line in ["--entity-type broker-loggers --entity-name 1", "--broker-logger 1"] {
            assert_eq!(entity(line).unwrap(), one(ResourceKind::BrokerLogger, "1"));
        }
        assert_eq!(entity("--entity-type topics").unwrap(), Entity::All(ResourceKind::Topic));
    }

    #[test]
    fn what_names_no_entity_or_two_is_refused() {
        for line in [
            "--entity-name t",
            "--topic t --broker 1",
            "--entity-type topics --entity-default",
            "--entity-type users --entity-name u",
            "--entity-type planets",
            "--broker one",
            "--entity-type broker-loggers",
        ] {
            assert!(matches!(entity(line), Err(VerbError::Usage(_))), "{line}");
        }
    }
}
