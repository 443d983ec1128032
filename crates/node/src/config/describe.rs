//! What DescribeConfigs tells of a topic, a broker or the brokers' dynamic defaults: every key with its value,
//! where the value comes from, and the values that it hides, the strongest first (KIP-226, KIP-569). Values
//! of PASSWORD keys and of keys of unknown type are never told.

use std::collections::BTreeMap;

use super::broker_keys;
use super::broker_values::BrokerValues;
use super::definition::Scope;
use super::topic_config::TopicConfig;
use super::topic_keys;
use super::value::Kind;

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The topic's own config.
    Topic,
    /// `/config/brokers/<id>`.
    DynamicBroker,
    /// `/config/brokers/<default>`.
    DynamicDefaultBroker,
    /// The broker's file or command line.
    StaticBroker,
    /// Nobody set it.
    Default,
    /// The level of a logger.
    DynamicBrokerLogger,
}

impl Source {
    /// The number on the wire.
    #[must_use]
    pub fn code(self) -> i8 {
        match self {
            Self::Topic => 1,
            Self::DynamicBroker => 2,
            Self::DynamicDefaultBroker => 3,
            Self::StaticBroker => 4,
            Self::Default => 5,
            Self::DynamicBrokerLogger => 6,
        }
    }
}

/// One of the values that a key would have, had a stronger source none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synonym {
    /// The key that gives it.
    pub name: String,
    /// The value; none for sensitive keys.
    pub value: Option<String>,
    /// Where it is set.
    pub source: Source,
}

/// One key as DescribeConfigs tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigEntry {
    /// The key.
    pub name: String,
    /// The value in effect; none if it is null or sensitive.
    pub value: Option<String>,
    /// Where the value comes from.
    pub source: Source,
    /// Whether the value is hidden.
    pub is_sensitive: bool,
    /// Whether the key cannot be altered at run time.
    pub read_only: bool,
    /// The type; none for unknown keys.
    pub kind: Option<Kind>,
    /// The values by strength; the first is in effect.
    pub synonyms: Vec<Synonym>,
}

/// The broker configs that are kept in the metadata store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DynamicConfigs {
    /// Of this broker alone.
    pub of_broker: BTreeMap<String, String>,
    /// Of all brokers.
    pub default: BTreeMap<String, String>,
}

/// What a broker's answers are made of.
#[derive(Clone, Copy, Debug)]
pub struct Describer<'a> {
    /// File, command line and defaults.
    pub values: &'a BrokerValues,
    /// What the metadata store adds.
    pub dynamic: &'a DynamicConfigs,
}

impl Describer<'_> {
    /// All keys of a topic whose `overrides` are stored; `config` is what they make of the broker's defaults.
    #[must_use]
    pub fn topic(&self, config: &TopicConfig, overrides: &BTreeMap<String, String>) -> Vec<ConfigEntry> {
        let unknown = overrides.keys().filter(|name| topic_keys::get(name).is_none());
        let known = topic_keys::KEYS.iter().map(|key| key.definition.name);
        known
            .chain(unknown.map(String::as_str))
            .map(|name| self.topic_entry(name, config, overrides))
            .collect()
    }

    fn topic_entry(
        &self,
        name: &str,
        config: &TopicConfig,
        overrides: &BTreeMap<String, String>,
    ) -> ConfigEntry {
        let key = topic_keys::get(name);
        let is_sensitive = key.is_none_or(|key| key.definition.is_sensitive());
        let value = if is_sensitive { None } else { config.get(name).map(ToString::to_string) };
        let mut synonyms = Vec::new();
        if overrides.contains_key(name) {
            synonyms.push(Synonym { name: name.to_owned(), value: value.clone(), source: Source::Topic });
        }
        if let Some(broker_key) = key.and_then(|key| key.synonyms.first()) {
            synonyms.extend(self.broker_synonyms(broker_key, is_sensitive));
        }
        ConfigEntry {
            name: name.to_owned(),
            value,
            source: synonyms.first().map_or(Source::Default, |first| first.source),
            is_sensitive,
            read_only: false,
            kind: key.map(|key| key.definition.kind),
            synonyms,
        }
    }

    /// All keys of the broker: what was given, known or not, and every key that is not internal.
    #[must_use]
    pub fn broker(&self) -> Vec<ConfigEntry> {
        let effective = self.values.with_dynamic(self.dynamic);
        let public = broker_keys::all().filter(|definition| !definition.internal).map(|d| d.name);
        let mut names: Vec<&str> = public.chain(effective.originals().keys().map(String::as_str)).collect();
        names.sort_unstable();
        names.dedup();
        let entry = |name: &str| {
            let parsed = effective.get(name).map(ToString::to_string);
            let value = parsed.or_else(|| effective.originals().get(name).cloned());
            self.broker_entry(name, value, |_| true)
        };
        names.into_iter().map(entry).collect()
    }

    /// The dynamic defaults of all brokers, as the resource without a name tells them.
    #[must_use]
    pub fn broker_defaults(&self) -> Vec<ConfigEntry> {
        let of_default = |source| source == Source::DynamicDefaultBroker;
        let entries = self.dynamic.default.iter();
        entries.map(|(name, value)| self.broker_entry(name, Some(value.clone()), of_default)).collect()
    }

    fn broker_entry(&self, name: &str, value: Option<String>, keep: impl Fn(Source) -> bool) -> ConfigEntry {
        let definition = broker_keys::governing(name);
        let is_sensitive = definition.is_none_or(|definition| definition.is_sensitive());
        let mut synonyms = self.broker_synonyms(name, is_sensitive);
        synonyms.retain(|synonym| keep(synonym.source));
        ConfigEntry {
            name: name.to_owned(),
            value: if is_sensitive { None } else { value },
            source: synonyms.first().map_or(Source::Default, |first| first.source),
            is_sensitive,
            read_only: broker_keys::get(name).is_none_or(|known| known.scope == Scope::ReadOnly),
            kind: definition.map(|definition| definition.kind),
            synonyms,
        }
    }

    /// Source by source, and within each name by name; what stands before the first entry of the asked name
    /// itself is dropped.
    fn broker_synonyms(&self, name: &str, is_sensitive: bool) -> Vec<Synonym> {
        let names = broker_keys::synonyms(name);
        let mut found = Vec::new();
        let mut add = |source, value_of: &dyn Fn(&str) -> Option<String>| {
            for name in &names {
                if let Some(value) = value_of(name) {
                    let value = if is_sensitive { None } else { Some(value) };
                    found.push(Synonym { name: (*name).to_owned(), value, source });
                }
            }
        };
        add(Source::DynamicBroker, &|name| self.dynamic.of_broker.get(name).cloned());
        add(Source::DynamicDefaultBroker, &|name| self.dynamic.default.get(name).cloned());
        add(Source::StaticBroker, &|name| self.values.originals().get(name).cloned());
        add(Source::Default, &|name| broker_keys::get(name)?.default.map(str::to_owned));
        let first = found.iter().position(|synonym| synonym.name == name).unwrap_or(found.len());
        found.split_off(first)
    }
}

/// The entries that a request asks for by name: all if it names none.
#[must_use]
pub fn select<S: AsRef<str>>(mut entries: Vec<ConfigEntry>, keys: Option<&[S]>) -> Vec<ConfigEntry> {
    if let Some(keys) = keys.filter(|keys| !keys.is_empty()) {
        entries.retain(|entry| keys.iter().any(|key| key.as_ref() == entry.name));
    }
    entries
}

#[cfg(test)]
mod tests;
