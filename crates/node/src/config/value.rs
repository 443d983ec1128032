//! Config values: the nine types of Kafka's `ConfigDef`, how text becomes a value, and how a value is
//! printed again. Printing is normalised as DescribeConfigs shows it: lists joined by `,` without blanks,
//! booleans lower-case, doubles as Java prints them.

use std::fmt;

/// The type of a config key; the number is that of DescribeConfigs v3 and up (KIP-569).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `true` or `false`, in any case.
    Boolean,
    /// Text, blanks at both ends cut.
    String,
    /// A 32-bit integer.
    Int,
    /// A 16-bit integer.
    Short,
    /// A 64-bit integer.
    Long,
    /// A 64-bit floating point number.
    Double,
    /// Texts separated by commas.
    List,
    /// The name of a Java class.
    Class,
    /// Text that is never shown.
    Password,
}

impl Kind {
    /// The number of the type on the wire (DescribeConfigs v3+; 0 would be unknown).
    #[must_use]
    pub fn code(self) -> i8 {
        match self {
            Self::Boolean => 1,
            Self::String => 2,
            Self::Int => 3,
            Self::Short => 4,
            Self::Long => 5,
            Self::Double => 6,
            Self::List => 7,
            Self::Class => 8,
            Self::Password => 9,
        }
    }

    /// Parses `text` as a value of this type. The error says what was expected ("a number of 32 bits").
    ///
    /// # Errors
    /// What the type expects, when `text` is not a value of it.
    pub fn parse(self, text: &str) -> Result<Value, &'static str> {
        let text = text.trim();
        match self {
            Self::Boolean if text.eq_ignore_ascii_case("true") => Ok(Value::Boolean(true)),
            Self::Boolean if text.eq_ignore_ascii_case("false") => Ok(Value::Boolean(false)),
            Self::Boolean => Err("true or false"),
            Self::Int => integer::<i32>(text).ok_or("an INT (32 bits)"),
            Self::Short => integer::<i16>(text).ok_or("a SHORT (16 bits)"),
            Self::Long => integer::<i64>(text).ok_or("a LONG (64 bits)"),
            Self::Double => double(text).map(Value::Double).ok_or("a DOUBLE"),
            Self::List if text.is_empty() => Ok(Value::List(Vec::new())),
            Self::List => Ok(Value::List(text.split(',').map(|item| item.trim().to_owned()).collect())),
            Self::String | Self::Class | Self::Password => Ok(Value::Text(text.to_owned())),
        }
    }
}

/// A parsed config value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Of a BOOLEAN key.
    Boolean(bool),
    /// Of an INT, SHORT or LONG key.
    Integer(i64),
    /// Of a DOUBLE key.
    Double(f64),
    /// Of a STRING, CLASS or PASSWORD key.
    Text(String),
    /// Of a LIST key.
    List(Vec<String>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Double(value) => f.write_str(&java_double(*value)),
            Self::Text(value) => f.write_str(value),
            Self::List(items) => f.write_str(&items.join(",")),
        }
    }
}

fn integer<T: std::str::FromStr + Into<i64>>(text: &str) -> Option<Value> {
    text.parse::<T>().ok().map(|number| Value::Integer(number.into()))
}

/// Java's decimal notation: a trailing `f` or `d` is allowed, the names are `NaN` and `Infinity` only.
fn double(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let negative = text.starts_with('-');
    match unsigned {
        "NaN" => return Some(f64::NAN),
        "Infinity" if negative => return Some(f64::NEG_INFINITY),
        "Infinity" => return Some(f64::INFINITY),
        _ => {}
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    text.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(text).parse().ok()
}

/// Prints a double as Java's `Double.toString` does: `0.5`, `1.0E7`, `1.7976931348623157E308`.
fn java_double(value: f64) -> String {
    if !value.is_finite() {
        return if value.is_nan() {
            "NaN".to_owned()
        } else if value > 0.0 {
            "Infinity".to_owned()
        } else {
            "-Infinity".to_owned()
        };
    }
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-3..1e7).contains(&magnitude) {
        let scientific = format!("{value:E}");
        return match scientific.split_once('E') {
            Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0E{exponent}"),
            _ => scientific,
        };
    }
    format!("{value:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_printed_as_java_prints_them() {
        for (text, printed) in [
            ("0.5", "0.5"),
            ("1", "1.0"),
            ("0", "0.0"),
            ("1e7", "1.0E7"),
            ("9999999", "9999999.0"),
            ("0.001", "0.001"),
            ("0.0001", "1.0E-4"),
            ("1.7976931348623157E308", "1.7976931348623157E308"),
            ("0.25d", "0.25"),
            ("-Infinity", "-Infinity"),
        ] {
            let value = Kind::Double.parse(text).unwrap();
            assert_eq!(value.to_string(), printed, "{text}");
        }
        for text in ["", "inf", "nan", "infinity", "x", "1,5", "d"] {
            assert!(Kind::Double.parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn integers_must_fit_their_type() {
        assert_eq!(Kind::Int.parse(" 2147483647 "), Ok(Value::Integer(2_147_483_647)));
        assert_eq!(Kind::Int.parse("2147483648"), Err("an INT (32 bits)"));
        assert_eq!(Kind::Short.parse("32768"), Err("a SHORT (16 bits)"));
        assert_eq!(Kind::Long.parse("-9223372036854775808"), Ok(Value::Integer(i64::MIN)));
        assert_eq!(Kind::Long.parse("1.0"), Err("a LONG (64 bits)"));
        assert_eq!(Kind::Long.parse(""), Err("a LONG (64 bits)"));
    }

    #[test]
    fn lists_lose_their_blanks_and_empty_text_is_an_empty_list() {
        assert_eq!(Kind::List.parse(" compact , delete ").unwrap().to_string(), "compact,delete");
        assert_eq!(Kind::List.parse("  "), Ok(Value::List(vec![])));
        assert_eq!(Kind::List.parse("a,,b").unwrap().to_string(), "a,,b");
    }

    #[test]
    fn booleans_take_any_case_and_nothing_else() {
        assert_eq!(Kind::Boolean.parse("TRUE"), Ok(Value::Boolean(true)));
        assert_eq!(Kind::Boolean.parse(" False"), Ok(Value::Boolean(false)));
        assert_eq!(Kind::Boolean.parse("yes"), Err("true or false"));
    }
}
