//! The decisions behind AlterConfigs, which replaces all overrides of a resource (KIP-133), and
//! IncrementalAlterConfigs, which sets, deletes, appends and subtracts (KIP-339): every check in Kafka's
//! order, and the configs or log levels that the resource is to have afterwards. Each resource of a request stands alone.

use std::collections::{BTreeMap, BTreeSet};

use wire::error_code::ErrorCode;

use super::broker_keys;
use super::current::CurrentConfig;
use super::definition::Definition;
use super::dynamic::{self, Level};
use super::resource::{
    BROKER, BROKER_LOGGER, CLIENT_METRICS, ResourceError, TOPIC, check_own_id, invalid, refuse,
};
use super::topic_keys;
use super::value::Kind;
use crate::loggers::{self, LogLevel};

/// The operation that sets a value; AlterConfigs knows no other.
pub const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

/// What one request wants of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alteration<'a> {
    /// The resource type as it came.
    pub resource_type: i8,
    /// Topic name, broker id, or empty for the defaults of all brokers.
    pub resource_name: &'a str,
    /// The changes in the order given.
    pub changes: Vec<Change<'a>>,
}

/// One change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<'a> {
    /// The key.
    pub name: &'a str,
    /// The operation as it came.
    pub operation: i8,
    /// The value; only a deletion may have none.
    pub value: Option<&'a str>,
}

/// Which of the two requests it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// AlterConfigs: what is not given is removed.
    Replace,
    /// IncrementalAlterConfigs: what is not given stays.
    Incremental,
}

/// What the checks look at.
pub struct Current<'a> {
    /// The broker's configuration as it is in force.
    pub config: &'a CurrentConfig,
    /// The broker's id.
    pub broker_id: i32,
    /// What is stored for this broker, or for all.
    pub broker: &'a dyn Fn(Level) -> BTreeMap<String, String>,
    /// The stored overrides of a topic; none if there is no such topic.
    pub topic: &'a dyn Fn(&str) -> Option<BTreeMap<String, String>>,
}

/// What is to be done for a resource that passed all checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// The topic gets these overrides in place of its present ones.
    Topic(BTreeMap<String, String>),
    /// This broker, or all of them, get these dynamic configs in place of the present ones.
    Broker(Level, BTreeMap<String, String>),
    /// Loggers get levels of their own, or lose them.
    Loggers(Vec<(String, Option<LogLevel>)>),
    /// The value of this password would have to be stored, which is refused; it may be validated.
    Password(String),
}

fn server_error<T>() -> Result<T, ResourceError> {
    Err(ResourceError::code(ErrorCode::UnknownServerError))
}

/// Decides each resource of a request, in the request's order.
#[must_use]
pub fn plan(way: Way, request: &[Alteration<'_>], current: &Current<'_>) -> Vec<Result<Plan, ResourceError>> {
    let mut times: BTreeMap<(i8, &str), usize> = BTreeMap::new();
    for alteration in request {
        *times.entry((alteration.resource_type, alteration.resource_name)).or_default() += 1;
    }
    let decide = |alteration: &Alteration<'_>| {
        if times.get(&(alteration.resource_type, alteration.resource_name)).is_some_and(|times| *times > 1) {
            return invalid("Each resource may appear only once");
        }
        plan_one(way, alteration, current)
    };
    request.iter().map(decide).collect()
}

fn plan_one(way: Way, alteration: &Alteration<'_>, current: &Current<'_>) -> Result<Plan, ResourceError> {
    check_changes(&alteration.changes)?;
    match alteration.resource_type {
        TOPIC => plan_topic(way, alteration, current),
        BROKER => plan_broker(way, alteration, current),
        BROKER_LOGGER if way == Way::Incremental => plan_logger(alteration, current),
        CLIENT_METRICS => invalid("Only topics and brokers can be altered, not CLIENT_METRICS"),
        other => invalid(format!("Unknown resource type {other}")),
    }
}

fn check_changes(changes: &[Change<'_>]) -> Result<(), ResourceError> {
    let mut names = BTreeSet::new();
    if let Some(twice) = changes.iter().find(|change| !names.insert(change.name)) {
        return invalid(format!("The config key {} appears more than once", twice.name));
    }
    let null = changes.iter().filter(|change| change.operation != DELETE && change.value.is_none());
    let null: Vec<_> = null.map(|change| change.name).collect();
    if null.is_empty() { Ok(()) } else { invalid(format!("Null is no value for: {}", null.join(", "))) }
}

fn plan_topic(way: Way, alteration: &Alteration<'_>, current: &Current<'_>) -> Result<Plan, ResourceError> {
    let name = alteration.resource_name;
    if name.is_empty() {
        return invalid("There are no default configs of topics");
    }
    let stored = (current.topic)(name);
    let key = |name: &str| topic_keys::get(name).map(|key| key.definition);
    let altered = match way {
        Way::Replace => replaced(&alteration.changes),
        Way::Incremental => changed(&alteration.changes, stored.as_ref(), &key, |_| server_error())?,
    };
    if stored.is_none() {
        return refuse(ErrorCode::UnknownTopicOrPartition, format!("The topic '{name}' does not exist"));
    }
    match current.config.check_topic_configs(&altered) {
        Ok(()) => Ok(Plan::Topic(altered)),
        Err(error) => refuse(ErrorCode::InvalidConfig, error.to_string()),
    }
}

fn replaced(changes: &[Change<'_>]) -> BTreeMap<String, String> {
    let set = |change: &Change<'_>| Some((change.name.to_owned(), change.value?.to_owned()));
    changes.iter().filter_map(set).collect()
}

/// The stored configs with the changes applied. `unknown` tells what an unknown operation ends with.
fn changed(
    changes: &[Change<'_>],
    stored: Option<&BTreeMap<String, String>>,
    key: &dyn Fn(&str) -> Option<Definition>,
    unknown: impl Fn(i8) -> Result<(), ResourceError>,
) -> Result<BTreeMap<String, String>, ResourceError> {
    let mut configs = stored.cloned().unwrap_or_default();
    for change in changes {
        let name = change.name.to_owned();
        let value = change.value.unwrap_or_default();
        match change.operation {
            SET => drop(configs.insert(name, value.to_owned())),
            DELETE => drop(configs.remove(&name)),
            APPEND | SUBTRACT => {
                let present = list_of(change, configs.get(&name), key)?;
                let items = items(value);
                let list = if change.operation == APPEND {
                    let added = items.into_iter().filter(|item| !present.iter().any(|old| old == item));
                    present.iter().cloned().chain(added.map(str::to_owned)).collect()
                } else {
                    without(present, &items)
                };
                configs.insert(name, list.join(","));
            }
            other => unknown(other)?,
        }
    }
    Ok(configs)
}

/// The list that an append or a subtraction starts from: the stored one, else the key's default (KAFKA-9644).
fn list_of(
    change: &Change<'_>,
    stored: Option<&String>,
    key: &dyn Fn(&str) -> Option<Definition>,
) -> Result<Vec<String>, ResourceError> {
    let Some(definition) = key(change.name) else { return server_error() };
    if definition.kind != Kind::List {
        let verb = if change.operation == APPEND { "appended to" } else { "subtracted from" };
        let message = format!("Nothing can be {verb} {}, which is no list", change.name);
        return refuse(ErrorCode::InvalidConfig, message);
    }
    let text = stored.map(String::as_str).or(definition.default).unwrap_or_default();
    Ok(items(text).into_iter().map(str::to_owned).collect())
}

fn items(text: &str) -> Vec<&str> {
    if text.is_empty() { Vec::new() } else { text.split(',').collect() }
}

/// Each item to remove takes away one of its kind.
fn without(mut list: Vec<String>, remove: &[&str]) -> Vec<String> {
    for item in remove {
        if let Some(at) = list.iter().position(|present| present == item) {
            list.remove(at);
        }
    }
    list
}

fn plan_broker(way: Way, alteration: &Alteration<'_>, current: &Current<'_>) -> Result<Plan, ResourceError> {
    let name = alteration.resource_name;
    let level = if name.is_empty() { Level::AllBrokers } else { Level::OneBroker };
    if level == Level::OneBroker {
        check_own_id(name, current.broker_id)?;
    }
    let altered = match way {
        Way::Replace => replaced(&alteration.changes),
        Way::Incremental => {
            let key = |name: &str| broker_keys::get(name).copied();
            let unknown = |operation| invalid(format!("Unknown operation {operation}"));
            let (stored, _) = dynamic::usable(&(current.broker)(level), level);
            changed(&alteration.changes, Some(&stored), &key, unknown)?
        }
    };
    dynamic::check(&altered, level).or_else(invalid)?;
    current.config.check_dynamic(level, &altered).or_else(invalid)?;
    let is_password = |change: &&Change<'_>| {
        let governing = broker_keys::governing(change.name);
        change.operation == SET && governing.is_some_and(|definition| definition.is_sensitive())
    };
    match alteration.changes.iter().find(is_password) {
        Some(change) => Ok(Plan::Password(change.name.to_owned())),
        None => Ok(Plan::Broker(level, altered)),
    }
}

fn plan_logger(alteration: &Alteration<'_>, current: &Current<'_>) -> Result<Plan, ResourceError> {
    check_own_id(alteration.resource_name, current.broker_id)?;
    let mut levels = Vec::new();
    for change in &alteration.changes {
        let name = change.name;
        let level = match change.operation {
            SET | DELETE if !loggers::exists(name) => {
                return refuse(ErrorCode::InvalidConfig, format!("There is no logger {name}"));
            }
            SET => Some(level(change.value.unwrap_or_default())?),
            DELETE if name == loggers::ROOT => {
                return invalid("The level of the root logger cannot be removed");
            }
            DELETE => None,
            APPEND | SUBTRACT => return invalid("Levels of loggers can only be set or deleted"),
            _ => return server_error(),
        };
        levels.push((name.to_owned(), level));
    }
    Ok(Plan::Loggers(levels))
}

fn level(name: &str) -> Result<LogLevel, ResourceError> {
    if let Some(level) = LogLevel::parse(name) {
        return Ok(level);
    }
    let names = LogLevel::ALL.map(LogLevel::name).join(", ");
    refuse(ErrorCode::InvalidConfig, format!("{name} is no log level; it must be one of {names}"))
}

#[cfg(test)]
mod tests;
