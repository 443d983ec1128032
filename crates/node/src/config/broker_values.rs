//! The values of all broker keys as given and as parsed: what a file sets, checked key by key, over the
//! defaults. Rules that join several keys stand in `checks`.

use std::collections::BTreeMap;

use super::broker_keys;
use super::definition::InvalidValue;
use super::describe::DynamicConfigs;
use super::value::Value;

/// Every broker key's value.
#[derive(Clone, Debug, PartialEq)]
pub struct BrokerValues {
    originals: BTreeMap<String, String>,
    parsed: BTreeMap<&'static str, Value>,
}

impl BrokerValues {
    /// Parses what was given for known keys (with a listener prefix too) and adds the defaults. `broker.id`
    /// and `node.id` stand in for each other. Unknown keys are kept as given.
    ///
    /// # Errors
    /// The first value, in name order, that its key does not take.
    pub fn parse(mut originals: BTreeMap<String, String>) -> Result<Self, InvalidValue> {
        for (absent, present) in [("node.id", "broker.id"), ("broker.id", "node.id")] {
            if let (None, Some(id)) = (originals.get(absent), originals.get(present)) {
                originals.insert(absent.to_owned(), id.clone());
            }
        }
        let mut parsed: BTreeMap<&'static str, Value> = broker_keys::all()
            .chain(broker_keys::own())
            .filter_map(|definition| Some((definition.name, definition.default_value()?)))
            .collect();
        for (key, text) in &originals {
            let Some(definition) = broker_keys::governing(key) else { continue };
            let value =
                definition.parse(text).map_err(|invalid| InvalidValue { key: key.clone(), ..invalid })?;
            if definition.name == key {
                parsed.insert(definition.name, value);
            }
        }
        Ok(Self { originals, parsed })
    }

    /// These values with dynamic configs on top, as they are in effect. A dynamic key replaces all synonyms of
    /// it that were given; a dynamic value that its key does not take has no effect.
    #[must_use]
    pub fn with_dynamic(&self, dynamic: &DynamicConfigs) -> Self {
        let mut effective = self.clone();
        for (key, text) in dynamic.default.iter().chain(&dynamic.of_broker) {
            let governing = broker_keys::governing(key);
            let parsed = governing.map(|definition| (definition.name, definition.parse(text)));
            match parsed {
                Some((_, Err(_))) => continue,
                Some((name, Ok(value))) if name == key => drop(effective.parsed.insert(name, value)),
                _ => {}
            }
            if broker_keys::listener_base(key).is_none() {
                for synonym in broker_keys::synonyms(key).into_iter().filter(|synonym| synonym != key) {
                    effective.reset(synonym);
                }
            }
            effective.originals.insert(key.clone(), text.clone());
        }
        effective
    }

    /// Puts a key back to its default.
    fn reset(&mut self, key: &str) {
        self.originals.remove(key);
        let Some(definition) = broker_keys::get(key) else { return };
        match definition.default_value() {
            Some(default) => drop(self.parsed.insert(definition.name, default)),
            None => drop(self.parsed.remove(key)),
        }
    }

    /// What was given, unknown keys included, as text.
    #[must_use]
    pub fn originals(&self) -> &BTreeMap<String, String> {
        &self.originals
    }

    /// Whether a key was given, rather than left at its default.
    #[must_use]
    pub fn is_given(&self, key: &str) -> bool {
        self.originals.contains_key(key)
    }

    /// The value of a key; none is null.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.parsed.get(key)
    }

    /// The value of a STRING, CLASS or PASSWORD key; null and empty text are `None`.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.get(key) {
            Some(Value::Text(text)) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    /// The value of a LIST key; null is empty.
    #[must_use]
    pub fn list(&self, key: &str) -> &[String] {
        match self.get(key) {
            Some(Value::List(items)) => items,
            _ => &[],
        }
    }

    /// The value of a BOOLEAN key; null is false.
    #[must_use]
    pub fn boolean(&self, key: &str) -> bool {
        matches!(self.get(key), Some(Value::Boolean(true)))
    }

    /// The value of an INT, SHORT or LONG key; null is `None`.
    #[must_use]
    pub fn integer(&self, key: &str) -> Option<i64> {
        match self.get(key) {
            Some(Value::Integer(number)) => Some(*number),
            _ => None,
        }
    }
}

/// A field type that a config value can become. Ranges were checked when the value was parsed, so a value
/// that does not fit cannot come here; null becomes the type's default.
pub(super) trait FromValue: Default {
    /// The value as this type, if it is of a fitting kind.
    fn from_value(value: &Value) -> Option<Self>;
}

macro_rules! integers {
    ($($int:ty),*) => {$(
        impl FromValue for $int {
            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    Value::Integer(number) => Self::try_from(*number).ok(),
                    _ => None,
                }
            }
        }
    )*};
}

integers!(i16, i32, i64, u32, usize);

impl FromValue for bool {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Boolean(value) => Some(*value),
            _ => None,
        }
    }
}

impl FromValue for f64 {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Double(value) => Some(*value),
            _ => None,
        }
    }
}

impl FromValue for String {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        }
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: &Value) -> Option<Self> {
        T::from_value(value).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(pairs: &[(&str, &str)]) -> Result<BrokerValues, InvalidValue> {
        BrokerValues::parse(pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
    }

    #[test]
    fn broker_id_and_node_id_stand_in_for_each_other() {
        assert_eq!(given(&[("broker.id", "7")]).unwrap().integer("node.id"), Some(7));
        assert_eq!(given(&[("node.id", "8")]).unwrap().integer("broker.id"), Some(8));
        assert_eq!(given(&[]).unwrap().integer("broker.id"), Some(-1));
    }

    #[test]
    fn a_key_with_a_listener_prefix_is_checked_and_does_not_touch_the_base_key() {
        let error = given(&[("listener.name.x.max.connections", "-1")]).unwrap_err();
        assert_eq!(error.key, "listener.name.x.max.connections");
        let values = given(&[("listener.name.x.max.connections", "5")]).unwrap();
        assert_eq!(values.integer("max.connections"), Some(2_147_483_647));
    }

    #[test]
    fn a_dynamic_value_replaces_its_synonyms_unless_it_is_invalid() {
        let values = given(&[("log.retention.hours", "1"), ("num.io.threads", "4")]).unwrap();
        let of_broker =
            [("log.retention.ms", "1000"), ("num.io.threads", "0"), ("listener.name.x.max.connections", "5")];
        let of_broker = of_broker.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
        let effective = values.with_dynamic(&DynamicConfigs { of_broker, ..Default::default() });
        assert_eq!(effective.integer("log.retention.ms"), Some(1000));
        assert_eq!(effective.integer("log.retention.hours"), Some(168));
        assert_eq!(effective.integer("num.io.threads"), Some(4));
        assert_eq!(effective.integer("max.connections"), Some(2_147_483_647));
        assert!(!effective.is_given("log.retention.hours") && values.is_given("log.retention.hours"));
    }

    #[test]
    fn unknown_keys_are_kept() {
        let values = given(&[("some.plugin.key", "x")]).unwrap();
        assert_eq!(values.originals().get("some.plugin.key").map(String::as_str), Some("x"));
        assert_eq!(values.get("some.plugin.key"), None);
    }
}
