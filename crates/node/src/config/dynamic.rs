//! Broker configs that are kept in the metadata store (KIP-226): which keys may stand there for one broker, and which
//! for all. What a client sends is refused if it breaks a rule; what is stored nevertheless, by another program or
//! another release, is left out.

use std::collections::BTreeMap;

use super::broker_keys;
use super::definition::Scope;

/// For whom dynamic broker configs hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// `/config/brokers/<id>`: one broker.
    OneBroker,
    /// `/config/brokers/<default>`: every broker that has no value of its own.
    AllBrokers,
}

type Configs = BTreeMap<String, String>;

/// Checks what a client wants to be stored, in Kafka's order.
///
/// # Errors
/// The first rule that is broken, with the keys or the value at fault.
pub fn check(configs: &Configs, level: Level) -> Result<(), String> {
    let named = |test: &dyn Fn(&str) -> bool| {
        let names: Vec<&str> = configs.keys().map(String::as_str).filter(|name| test(name)).collect();
        if names.is_empty() { None } else { Some(names.join(", ")) }
    };
    if let Some(names) = named(&is_read_only) {
        return Err(format!("These configs can only be set by a restart: {names}"));
    }
    if let Some(names) = named(&lacks_listener) {
        return Err(format!("These configs can only be altered with a listener prefix: {names}"));
    }
    for (name, value) in configs {
        check_value(name, value)?;
    }
    match named(&is_per_broker) {
        Some(names) if level == Level::AllBrokers => {
            Err(format!("These configs can only be set for a single broker: {names}"))
        }
        _ => Ok(()),
    }
}

/// What of `stored` can be in force, and why the rest cannot.
#[must_use]
pub fn usable(stored: &Configs, level: Level) -> (Configs, Vec<String>) {
    let mut problems = Vec::new();
    let mut usable = stored.clone();
    usable.retain(|name, value| {
        let one = Configs::from([(name.clone(), value.clone())]);
        match check(&one, level) {
            Ok(()) => true,
            Err(problem) => {
                problems.push(problem);
                false
            }
        }
    });
    (usable, problems)
}

fn check_value(name: &str, value: &str) -> Result<(), String> {
    match broker_keys::governing(name) {
        Some(definition) => definition.parse(value).map(drop).map_err(|invalid| invalid.to_string()),
        // A key of a plug-in takes any value.
        None => Ok(()),
    }
}

fn is_read_only(name: &str) -> bool {
    broker_keys::get(name).is_some_and(|definition| definition.scope == Scope::ReadOnly)
}

/// Stores of keys and certificates belong to a listener.
fn lacks_listener(name: &str) -> bool {
    let is_store = name.starts_with("ssl.keystore.") || name.starts_with("ssl.truststore.");
    is_store || name == "ssl.key.password"
}

fn is_per_broker(name: &str) -> bool {
    /// Keys that may stand for all brokers with a listener prefix, too.
    const OF_ALL: [&str; 3] = ["max.connections", "max.connection.creation.rate", "num.network.threads"];
    match broker_keys::listener_base(name) {
        Some(base) => !OF_ALL.contains(&base),
        None => broker_keys::get(name).is_some_and(|definition| definition.scope == Scope::PerBroker),
    }
}

#[cfg(test)]
mod tests {
    use super::Level::{AllBrokers, OneBroker};
    use super::*;

    fn one(name: &str, value: &str) -> Configs {
        Configs::from([(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn every_key_of_a_broker_is_dynamic_for_one_for_all_or_not_at_all() {
        for definition in broker_keys::all() {
            let name = definition.name;
            if definition.kind == super::super::value::Kind::Password || lacks_listener(name) {
                continue;
            }
            let value = definition.default.unwrap_or(match definition.kind {
                super::super::value::Kind::String | super::super::value::Kind::Class => "x",
                _ => "1",
            });
            let configs = one(name, value);
            let allowed = (check(&configs, OneBroker).is_ok(), check(&configs, AllBrokers).is_ok());
            let expected = match definition.scope {
                Scope::ReadOnly => (false, false),
                Scope::PerBroker => (true, false),
                Scope::ClusterWide => (true, true),
            };
            assert_eq!(allowed, expected, "{name}");
        }
    }

    #[test]
    fn keys_of_listeners_hold_for_one_broker_but_for_three() {
        for (name, of_all) in [
            ("listener.name.x.max.connections", true),
            ("listener.name.x.max.connection.creation.rate", true),
            ("listener.name.x.num.network.threads", true),
            ("listener.name.x.ssl.protocol", false),
            ("listener.name.x.some.plugin", false),
            ("some.plugin", true),
        ] {
            assert_eq!(check(&one(name, "5"), AllBrokers).is_ok(), of_all, "{name}");
            assert!(check(&one(name, "5"), OneBroker).is_ok(), "{name}");
        }
    }

    #[test]
    fn what_is_stored_against_the_rules_is_left_out_and_told() {
        let mut stored = one("num.io.threads", "0");
        stored.extend(one("broker.rack", "r"));
        stored.extend(one("listeners", "PLAINTEXT://:1"));
        stored.extend(one("log.retention.ms", "5"));
        let (usable, problems) = usable(&stored, AllBrokers);
        assert_eq!(usable, one("log.retention.ms", "5"));
        assert_eq!(problems.len(), 3, "{problems:?}");
    }
}
