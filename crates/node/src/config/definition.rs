//! What is known of a config key: its type, default, valid values, and how it may be changed at run time.
//! The tables of keys are made of [`Definition`]s; nothing here knows a key by name.

use super::metadata_version::MetadataVersion;
use super::value::{Kind, Value};

/// How a broker key may be changed while the broker runs (KIP-226).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Only by a restart.
    ReadOnly,
    /// In `/config/brokers/<id>` only.
    PerBroker,
    /// In `/config/brokers/<default>` or per broker.
    ClusterWide,
}

/// Which values of its type a key takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Valid {
    /// All.
    Any,
    /// Numbers from this one on.
    AtLeast(i64),
    /// Numbers of this range, both ends included.
    Between(i64, i64),
    /// Numbers of this range, both ends included, and one more.
    BetweenOr(i64, i64, i64),
    /// Doubles of this range, both ends included.
    Ratio(f64, f64),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// One of these words, in any case.
    OneOfIgnoringCase(&'static [&'static str]),
    /// A list of nothing but these words.
    EachOf(&'static [&'static str]),
    /// Text that is not empty.
    NotEmpty,
    /// A release such as `3.9` or `3.9-IV0`.
    Version,
    /// `*`, or a list of `partition:broker`.
    ThrottledReplicas,
    /// -1 (use another key), or a count of threads.
    ThreadPoolSize,
}

impl Valid {
    /// Whether `value` is allowed.
    #[must_use]
    pub fn allows(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::AtLeast(least), Value::Integer(number)) => number >= least,
            (Self::Between(least, most), Value::Integer(number)) => (least..=most).contains(&number),
            (Self::BetweenOr(least, most, other), Value::Integer(number)) => {
                (least..=most).contains(&number) || number == other
            }
            (Self::ThreadPoolSize, Value::Integer(number)) => *number == -1 || *number >= 1,
            (Self::Ratio(least, most), Value::Double(number)) => number >= least && number <= most,
            (Self::OneOf(words), Value::Text(text)) => words.contains(&text.as_str()),
            (Self::OneOfIgnoringCase(words), Value::Text(text)) => {
                words.iter().any(|word| word.eq_ignore_ascii_case(text))
            }
            (Self::EachOf(words), Value::List(items)) => items.iter().all(|i| words.contains(&i.as_str())),
            (Self::NotEmpty, Value::Text(text)) => !text.is_empty(),
            (Self::Version, Value::Text(text)) => MetadataVersion::parse(text).is_some(),
            (Self::ThrottledReplicas, Value::List(items)) => is_throttled_replicas(items),
            _ => true,
        }
    }

    /// The allowed values in words, to stand after "must be".
    #[must_use]
    pub fn describe(&self, kind: Kind) -> String {
        let number = match kind {
            Kind::Short => "a SHORT",
            Kind::Long => "a LONG",
            Kind::Double => "a DOUBLE",
            _ => "an INT",
        };
        match self {
            Self::Any => match kind {
                Kind::Boolean => "true or false".to_owned(),
                Kind::Int | Kind::Short | Kind::Long | Kind::Double => number.to_owned(),
                Kind::List => "a list separated by commas".to_owned(),
                Kind::Class => "the name of a class".to_owned(),
                Kind::String | Kind::Password => "text".to_owned(),
            },
            Self::AtLeast(least) => format!("{number} of at least {least}"),
            Self::Between(least, most) => format!("{number} from {least} to {most}"),
            Self::BetweenOr(least, most, other) => format!("{number} from {least} to {most}, or {other}"),
            Self::Ratio(least, most) => format!("{number} from {least} to {most}"),
            Self::OneOf(words) | Self::OneOfIgnoringCase(words) => format!("one of {}", words.join(", ")),
            Self::EachOf(words) => format!("a list of {}", words.join(", ")),
            Self::NotEmpty => "text that is not empty".to_owned(),
            Self::Version => "a release from 0.8.0 to 4.0, such as 3.9 or 3.9-IV0".to_owned(),
            Self::ThrottledReplicas => "* or a list of partition:broker".to_owned(),
            Self::ThreadPoolSize => format!("{number} of at least 1, or -1"),
        }
    }
}

fn is_throttled_replicas(items: &[String]) -> bool {
    let is_id = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    items.is_empty()
        || items == ["*"]
        || items.iter().all(|item| {
            item.split_once(':').is_some_and(|(partition, broker)| is_id(partition) && is_id(broker))
        })
}

/// One config key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Definition {
    /// Kafka's name of the key.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Its default as printed; none is null.
    pub default: Option<&'static str>,
    /// Its allowed values.
    pub valid: Valid,
    /// How it may be changed at run time.
    pub scope: Scope,
    /// Whether DescribeConfigs hides it unless it is set.
    pub internal: bool,
}

/// A key that has a default.
pub(super) const fn set(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    valid: Valid,
    scope: Scope,
) -> Definition {
    Definition { name, kind, default: Some(default), valid, scope, internal: false }
}

/// A key whose default is null.
pub(super) const fn unset(name: &'static str, kind: Kind, valid: Valid, scope: Scope) -> Definition {
    Definition { name, kind, default: None, valid, scope, internal: false }
}

impl Definition {
    /// The same key, hidden from DescribeConfigs.
    pub(super) const fn internal(self) -> Self {
        Self { internal: true, ..self }
    }

    /// Whether values of this key are never shown.
    #[must_use]
    pub fn is_sensitive(&self) -> bool {
        self.kind == Kind::Password
    }

    /// The default as a value; none is null. The tables' tests show that every default parses.
    #[must_use]
    pub fn default_value(&self) -> Option<Value> {
        self.default.and_then(|text| self.kind.parse(text).ok())
    }

    /// Parses and checks `text` as a value of this key.
    ///
    /// # Errors
    /// [`InvalidValue`] naming key, value and what is allowed.
    pub fn parse(&self, text: &str) -> Result<Value, InvalidValue> {
        let invalid = |allowed: String| InvalidValue {
            key: self.name.to_owned(),
            value: if self.is_sensitive() { "[hidden]".to_owned() } else { text.trim().to_owned() },
            allowed,
        };
        match self.kind.parse(text) {
            Ok(value) if self.valid.allows(&value) => Ok(value),
            Ok(_) => Err(invalid(self.valid.describe(self.kind))),
            Err(_) if self.valid != Valid::Any => Err(invalid(self.valid.describe(self.kind))),
            Err(expected) => Err(invalid(expected.to_owned())),
        }
    }
}

/// A value that its key does not take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Invalid value {value} for configuration {key}: must be {allowed}")]
pub struct InvalidValue {
    /// The key.
    pub key: String,
    /// The value as given; `[hidden]` for passwords.
    pub value: String,
    /// The allowed values in words.
    pub allowed: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_value_is_told_with_key_value_and_range() {
        let key = set("num.partitions", Kind::Int, "1", Valid::AtLeast(1), Scope::ReadOnly);
        let expected = |v: &str| {
            format!("Invalid value {v} for configuration num.partitions: must be an INT of at least 1")
        };
        assert_eq!(key.parse("0").unwrap_err().to_string(), expected("0"));
        assert_eq!(key.parse(" many ").unwrap_err().to_string(), expected("many"));
        assert_eq!(key.parse(" 3 "), Ok(Value::Integer(3)));
        let secret = unset("ssl.key.password", Kind::Password, Valid::NotEmpty, Scope::PerBroker);
        assert!(secret.parse("").unwrap_err().to_string().contains("[hidden]"));
    }

    #[test]
    fn each_kind_of_range_has_its_edges() {
        let int = |n| Value::Integer(n);
        let text = |t: &str| Value::Text(t.to_owned());
        let list = |t: &str| Kind::List.parse(t).unwrap();
        for (valid, good, bad) in [
            (Valid::AtLeast(1), int(1), int(0)),
            (Valid::Between(1, 17), int(17), int(18)),
            (Valid::BetweenOr(1, 9, -1), int(-1), int(0)),
            (Valid::ThreadPoolSize, int(-1), int(0)),
            (Valid::Ratio(0.0, 1.0), Value::Double(1.0), Value::Double(1.5)),
            (Valid::Ratio(0.0, 1.0), Value::Double(0.0), Value::Double(f64::NAN)),
            (Valid::OneOf(&["none"]), text("none"), text("None")),
            (Valid::OneOfIgnoringCase(&["UPGRADE"]), text("upgrade"), text("up")),
            (Valid::EachOf(&["compact", "delete"]), list("delete,compact"), list("delete,")),
            (Valid::NotEmpty, text("x"), text("")),
            (Valid::Version, text("3.9"), text("3.10")),
            (Valid::ThrottledReplicas, list("0:1,1:2"), list("0:1,x")),
            (Valid::ThrottledReplicas, list("*"), list("*,0:1")),
            (Valid::ThrottledReplicas, list(""), list("0:-1")),
        ] {
            assert!(valid.allows(&good), "{valid:?} {good}");
            assert!(!valid.allows(&bad), "{valid:?} {bad}");
        }
    }
}
