//! How a line becomes a record: `[headers DELIMITER] [key SEPARATOR] value`, with headers as
//! `key:value,key:value`, and a marker for null if one is set (KIP-798, KIP-810).
//!
//! Lines are bytes; separators are looked for as bytes, so that text of any encoding goes through unchanged.

use std::collections::BTreeMap;
use std::io;

use crate::cluster::producer::NewRecord;
use crate::error::VerbError;

/// A line that is no record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {number}: {reason}")]
pub(super) struct LineError {
    /// The number of the line, from 1.
    number: u64,
    /// What is wrong.
    reason: String,
}

impl LineError {
    /// The error of an input that cannot be read on.
    pub(super) fn input(number: u64, error: &io::Error) -> Self {
        Self { number, reason: error.to_string() }
    }
}

/// How lines are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LineReader {
    parse_key: bool,
    key_separator: Vec<u8>,
    parse_headers: bool,
    headers_delimiter: Vec<u8>,
    headers_separator: Vec<u8>,
    headers_key_separator: Vec<u8>,
    ignore_error: bool,
    null_marker: Option<Vec<u8>>,
}

/// Keys and values of headers, in order.
type Headers = Vec<(Vec<u8>, Option<Vec<u8>>)>;

impl LineReader {
    /// Reads the properties of `--property`.
    ///
    /// # Errors
    /// If a property is unknown, or separators cannot be told apart.
    pub(super) fn new(mut properties: BTreeMap<String, String>) -> Result<Self, VerbError> {
        let mut text = |key: &str, default: &str| {
            properties.remove(key).unwrap_or_else(|| default.to_owned()).into_bytes()
        };
        let flag = |bytes: Vec<u8>| bytes.trim_ascii().eq_ignore_ascii_case(b"true");
        let reader = Self {
            parse_key: flag(text("parse.key", "false")),
            key_separator: text("key.separator", "\t"),
            parse_headers: flag(text("parse.headers", "false")),
            headers_delimiter: text("headers.delimiter", "\t"),
            headers_separator: text("headers.separator", ","),
            headers_key_separator: text("headers.key.separator", ":"),
            ignore_error: flag(text("ignore.error", "false")),
            null_marker: properties.remove("null.marker").map(String::into_bytes),
        };
        properties.remove("topic");
        if let Some(unknown) = properties.keys().next() {
            return Err(VerbError::Usage(format!(
                "--property {unknown}: no such property of the line reader"
            )));
        }
        reader.check()?;
        Ok(reader)
    }

    fn check(&self) -> Result<(), VerbError> {
        let separators = [
            ("key.separator", &self.key_separator),
            ("headers.delimiter", &self.headers_delimiter),
            ("headers.separator", &self.headers_separator),
            ("headers.key.separator", &self.headers_key_separator),
        ];
        if let Some((name, _)) = separators.iter().find(|(_, separator)| separator.is_empty()) {
            return Err(VerbError::Usage(format!("{name} must not be empty")));
        }
        let same = |(a, first): (&str, &Vec<u8>), (b, second): (&str, &Vec<u8>)| {
            let text = format!("{a} and {b} must not be equal");
            if first == second { Err(VerbError::Usage(text)) } else { Ok(()) }
        };
        let [key, delimiter, separator, key_separator] = separators;
        same(delimiter, separator)?;
        same(delimiter, key_separator)?;
        same(separator, key_separator)?;
        if let Some(marker) = &self.null_marker {
            for other in [key, delimiter, separator, key_separator] {
                same(("null.marker", marker), other)?;
            }
        }
        Ok(())
    }

    /// Reads line `number` (from 1), given without its end.
    ///
    /// # Errors
    /// If a separator is missing and `ignore.error` is not set.
    pub(super) fn parse(&self, line: &[u8], number: u64) -> Result<NewRecord, LineError> {
        let mut record = NewRecord::default();
        let mut rest = line;
        if self.parse_headers {
            match split(rest, &self.headers_delimiter) {
                Some((headers, after)) => {
                    record.headers = self.headers(headers, number)?;
                    rest = after;
                }
                None => self.missing(number, "headers delimiter", &self.headers_delimiter, line)?,
            }
        }
        if self.parse_key {
            match split(rest, &self.key_separator) {
                Some((key, after)) => {
                    record.key = self.unless_null(key);
                    rest = after;
                }
                None => self.missing(number, "key separator", &self.key_separator, line)?,
            }
        }
        record.value = self.unless_null(rest);
        Ok(record)
    }

    fn headers(&self, mut text: &[u8], number: u64) -> Result<Headers, LineError> {
        let mut headers = Vec::new();
        if self.is_null(text) || text.is_empty() {
            return Ok(headers);
        }
        loop {
            let (pair, rest) = match split(text, &self.headers_separator) {
                Some((pair, rest)) => (pair, Some(rest)),
                None => (text, None),
            };
            let (key, value) = match split(pair, &self.headers_key_separator) {
                Some((key, value)) => (key, self.unless_null(value)),
                None => {
                    self.missing(number, "headers key separator", &self.headers_key_separator, pair)?;
                    (pair, None)
                }
            };
            if self.is_null(key) {
                let reason = "the key of a header cannot be null".to_owned();
                return Err(LineError { number, reason });
            }
            headers.push((key.to_owned(), value));
            match rest {
                Some(rest) => text = rest,
                None => return Ok(headers),
            }
        }
    }

    fn missing(&self, number: u64, what: &str, separator: &[u8], text: &[u8]) -> Result<(), LineError> {
        if self.ignore_error {
            return Ok(());
        }
        let separator = separator.escape_ascii();
        let reason = format!("no {what} ('{separator}') in '{}'", String::from_utf8_lossy(text));
        Err(LineError { number, reason })
    }

    fn is_null(&self, text: &[u8]) -> bool {
        self.null_marker.as_deref().is_some_and(|marker| marker == text)
    }

    fn unless_null(&self, text: &[u8]) -> Option<Vec<u8>> {
        (!self.is_null(text)).then(|| text.to_owned())
    }
}

/// What stands before and after the first `separator`.
fn split<'a>(text: &'a [u8], separator: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = text.windows(separator.len()).position(|window| window == separator)?;
    let (before, rest) = text.split_at_checked(at)?;
    Some((before, rest.get(separator.len()..)?))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn reader(properties: &[&str]) -> Result<LineReader, VerbError> {
        let pairs = properties.iter().map(|pair| pair.split_once('=').unwrap());
        LineReader::new(pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).collect())
    }

    /// A record as `headers|key|value`, null as `-`.
    fn parse(properties: &[&str], line: &str) -> String {
        let text = |bytes: &Option<Vec<u8>>| match bytes {
            Some(bytes) => String::from_utf8(bytes.clone()).unwrap(),
            None => "-".to_owned(),
        };
        match reader(properties).unwrap().parse(line.as_bytes(), 3) {
            Ok(record) => {
                let header = |(key, value): &(Vec<u8>, Option<Vec<u8>>)| {
                    format!("{}={}", String::from_utf8_lossy(key), text(value))
                };
                let headers: Vec<String> = record.headers.iter().map(header).collect();
                format!("{}|{}|{}", headers.join(";"), text(&record.key), text(&record.value))
            }
            Err(error) => error.to_string(),
        }
    }

    const KEY: &str = "parse.key=true";
    const HEADERS: &str = "parse.headers=TRUE";

    #[test]
    fn a_plain_line_is_a_value_without_a_key() {
        assert_eq!(parse(&[], "a\tb"), "|-|a\tb");
        assert_eq!(parse(&[], ""), "|-|");
    }

    #[test]
    fn a_key_stands_before_the_first_separator() {
        assert_eq!(parse(&[KEY], "k\tv\tw"), "|k|v\tw");
        assert_eq!(parse(&[KEY, "key.separator=::"], "k:a::v"), "|k:a|v");
        assert_eq!(parse(&[KEY], "\tv"), "||v");
        assert_eq!(parse(&[KEY], "k\t"), "|k|");
    }

    #[test]
    fn headers_stand_before_the_key() {
        assert_eq!(parse(&[HEADERS, KEY], "a:1,b:2:3\tk\tv"), "a=1;b=2:3|k|v");
        assert_eq!(parse(&[HEADERS], "a:1\tv"), "a=1|-|v");
        assert_eq!(parse(&[HEADERS], "\tv"), "|-|v");
        let other = ["headers.delimiter=|", "headers.separator=;", "headers.key.separator==", HEADERS, KEY];
        assert_eq!(parse(&other, "a=1;b=x|k\tv"), "a=1;b=x|k|v");
    }

    #[test]
    fn a_marker_stands_for_null() {
        let null = "null.marker=NULL";
        assert_eq!(parse(&[null], "NULL"), "|-|-");
        assert_eq!(parse(&[null, KEY], "NULL\tNULL"), "|-|-");
        assert_eq!(parse(&[null, KEY, HEADERS], "NULL\tk\tNULLx"), "|k|NULLx");
        assert_eq!(parse(&[null, HEADERS], "a:NULL,b:\tv"), "a=-;b=|-|v");
        assert_eq!(parse(&[null, HEADERS], "NULL:1\tv"), "line 3: the key of a header cannot be null");
        assert_eq!(parse(&[KEY], "NULL\tNULL"), "|NULL|NULL");
    }

    #[test]
    fn a_missing_separator_is_an_error_unless_it_is_to_be_ignored() {
        expect![[r"line 3: no key separator ('\t') in 'abc'"]].assert_eq(&parse(&[KEY], "abc"));
        expect![[r"line 3: no headers delimiter ('\t') in 'abc'"]].assert_eq(&parse(&[HEADERS], "abc"));
        expect!["line 3: no headers key separator (':') in 'a'"].assert_eq(&parse(&[HEADERS], "a\tv"));
        let ignore = "ignore.error=true";
        assert_eq!(parse(&[KEY, ignore], "abc"), "|-|abc");
        assert_eq!(parse(&[HEADERS, KEY, ignore], "abc"), "|-|abc");
        assert_eq!(parse(&[HEADERS, ignore], "a\tv"), "a=-|-|v");
    }

    #[test]
    fn separators_must_be_told_apart() {
        for properties in [
            ["headers.delimiter=,", "parse.key=true"],
            ["headers.separator=:", "parse.key=true"],
            ["headers.key.separator=\t", "parse.key=true"],
            ["null.marker=:", "parse.key=true"],
            ["null.marker=x", "key.separator=x"],
            ["key.separator=", "parse.key=true"],
            ["key.seperator=x", "parse.key=true"],
        ] {
            assert!(matches!(reader(&properties), Err(VerbError::Usage(_))), "{properties:?}");
        }
    }

    #[test]
    fn bytes_go_through_as_they_are() {
        let record = reader(&[KEY]).unwrap().parse(b"\xff\t\xfe\x00", 1).unwrap();
        assert_eq!((record.key.unwrap(), record.value.unwrap()), (vec![0xff], vec![0xfe, 0]));
    }
}
