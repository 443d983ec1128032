//! How a record is printed: the fields of Kafka's default formatter in its order, or a JSON object.

use std::collections::BTreeMap;
use std::io::Write;

use bytes::Bytes;
use serde_json::{Value, json};
use wire::batch::{Header, NO_TIMESTAMP};

use super::ConsoleConsumerOptions;
use super::internal::Kind;
use crate::cluster::fetcher::Fetched;
use crate::cluster::settings::{key_and_value, read_properties};
use crate::error::VerbError;
use crate::output::{StreamFormat, bytes_json, write_json};

/// How bytes are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deserializer {
    /// As they are.
    Bytes,
    /// As a signed number of 2, 4 or 8 bytes, big-endian.
    Number(usize),
}

impl Deserializer {
    fn of_class(class: Option<&str>) -> Result<Self, VerbError> {
        let Some(class) = class else { return Ok(Self::Bytes) };
        match class.rsplit('.').next().unwrap_or(class) {
            "StringDeserializer" | "String" | "ByteArrayDeserializer" | "ByteArray" => Ok(Self::Bytes),
            "ByteBufferDeserializer" | "BytesDeserializer" => Ok(Self::Bytes),
            "ShortDeserializer" | "Short" => Ok(Self::Number(2)),
            "IntegerDeserializer" | "Integer" => Ok(Self::Number(4)),
            "LongDeserializer" | "Long" => Ok(Self::Number(8)),
            _ => Err(VerbError::Usage(format!(
                "deserializer {class}: String, ByteArray, Short, Integer and Long are supported"
            ))),
        }
    }

    /// The number that `bytes` are, if they are to be one.
    fn number(self, bytes: &[u8]) -> Result<Option<i64>, VerbError> {
        let Self::Number(size) = self else { return Ok(None) };
        let wrong = || VerbError::Failed(format!("{} bytes are no number of {size} bytes", bytes.len()));
        if bytes.len() != size {
            return Err(wrong());
        }
        let sign = if bytes.first().is_some_and(|first| *first >= 0x80) { -1 } else { 0 };
        Ok(Some(bytes.iter().fold(sign, |number, byte| (number << 8) | i64::from(*byte))))
    }
}

/// How records are printed.
#[derive(Clone, Debug)]
pub(super) struct RecordFormat {
    json: bool,
    silent: bool,
    internal: Option<Kind>,
    print_timestamp: bool,
    print_partition: bool,
    print_offset: bool,
    print_headers: bool,
    print_key: bool,
    print_value: bool,
    key_separator: String,
    line_separator: String,
    headers_separator: String,
    null_literal: String,
    key: Deserializer,
    value: Deserializer,
}

impl RecordFormat {
    /// Reads the options that concern the output.
    ///
    /// # Errors
    /// If a formatter or deserializer is not supported.
    pub(super) fn read(options: &ConsoleConsumerOptions) -> Result<Self, VerbError> {
        let mut properties = match &options.formatter_config {
            Some(path) => read_properties(path)?,
            None => BTreeMap::new(),
        };
        for pair in &options.property {
            let (key, value) = key_and_value(pair)?;
            properties.insert(key, value);
        }
        let class = |option: &Option<String>, property: Option<String>| {
            Deserializer::of_class(option.as_deref().or(property.as_deref()))
        };
        let key = class(&options.key_deserializer, properties.remove("key.deserializer"))?;
        let value = class(&options.value_deserializer, properties.remove("value.deserializer"))?;
        let formatter = options.formatter.as_deref().unwrap_or("DefaultMessageFormatter");
        let class = formatter.rsplit(['.', '$']).next().unwrap_or(formatter);
        let internal = Kind::of_class(class);
        let silent = class == "NoOpMessageFormatter";
        if !silent && internal.is_none() && class != "DefaultMessageFormatter" {
            return Err(VerbError::Usage(format!(
                "--formatter {formatter}: DefaultMessageFormatter, NoOpMessageFormatter, OffsetsMessageFormatter and \
                 GroupMetadataMessageFormatter are supported"
            )));
        }
        let json = options.format.output == StreamFormat::Json;
        Ok(Self { json, silent, internal, key, value, ..Self::of_properties(properties) })
    }

    fn of_properties(mut properties: BTreeMap<String, String>) -> Self {
        let mut text =
            |key: &str, default: &str| properties.remove(key).unwrap_or_else(|| default.to_owned());
        let flag = |text: String| text.trim().eq_ignore_ascii_case("true");
        let format = Self {
            json: false,
            silent: false,
            internal: None,
            print_timestamp: flag(text("print.timestamp", "false")),
            print_partition: flag(text("print.partition", "false")),
            print_offset: flag(text("print.offset", "false")),
            print_headers: flag(text("print.headers", "false")),
            print_key: flag(text("print.key", "false")),
            print_value: flag(text("print.value", "true")),
            key_separator: text("key.separator", "\t"),
            line_separator: text("line.separator", "\n"),
            headers_separator: text("headers.separator", ","),
            null_literal: text("null.literal", "null"),
            key: Deserializer::Bytes,
            value: Deserializer::Bytes,
        };
        for unknown in properties.keys() {
            eprintln!("WARNING: --property {unknown} has no effect: the formatter has no such property");
        }
        format
    }

    /// Prints a record.
    ///
    /// # Errors
    /// [`VerbError::Output`] if the output cannot be written to, [`VerbError::Failed`] if the record cannot be
    /// shown as it should.
    pub(super) fn write(&self, out: &mut dyn Write, fetched: &Fetched) -> Result<(), VerbError> {
        if self.silent {
            return Ok(());
        }
        if let Some(kind) = self.internal {
            let record = &fetched.record;
            let read = kind.read(record.key.as_ref(), record.value.as_ref());
            let wrong = |error| VerbError::Failed(format!("the record cannot be read: {error}"));
            return match read.map_err(wrong)? {
                Some(shown) => Ok(write_json(out, &shown)?),
                None => Ok(()),
            };
        }
        if self.json {
            return Ok(write_json(out, &self.to_json(fetched)?)?);
        }
        let mut line = Vec::new();
        self.write_line(&mut line, fetched)?;
        Ok(out.write_all(&line)?)
    }

    fn write_line(&self, line: &mut Vec<u8>, fetched: &Fetched) -> Result<(), VerbError> {
        let record = &fetched.record;
        let mut fields: Vec<Vec<u8>> = Vec::new();
        if self.print_timestamp {
            let kind = fetched.timestamp_type.name();
            fields.push(match record.timestamp {
                NO_TIMESTAMP => b"NO_TIMESTAMP".to_vec(),
                timestamp => format!("{kind}:{timestamp}").into_bytes(),
            });
        }
        if self.print_partition {
            fields.push(format!("Partition:{}", fetched.partition.partition).into_bytes());
        }
        if self.print_offset {
            fields.push(format!("Offset:{}", record.offset).into_bytes());
        }
        if self.print_headers {
            fields.push(self.headers(&record.headers));
        }
        if self.print_key {
            fields.push(self.text(self.key, record.key.as_ref())?);
        }
        if self.print_value {
            fields.push(self.text(self.value, record.value.as_ref())?);
        }
        line.extend(fields.join(self.key_separator.as_bytes()));
        line.extend(self.line_separator.as_bytes());
        Ok(())
    }

    fn text(&self, deserializer: Deserializer, bytes: Option<&Bytes>) -> Result<Vec<u8>, VerbError> {
        let Some(bytes) = bytes else { return Ok(self.null_literal.clone().into_bytes()) };
        let number = deserializer.number(bytes)?;
        Ok(number.map_or_else(|| bytes.to_vec(), |number| number.to_string().into_bytes()))
    }

    fn headers(&self, headers: &[Header]) -> Vec<u8> {
        if headers.is_empty() {
            return b"NO_HEADERS".to_vec();
        }
        let null = self.null_literal.as_bytes();
        let pair =
            |header: &Header| [&header.key, &b":"[..], header.value.as_deref().unwrap_or(null)].concat();
        headers.iter().map(pair).collect::<Vec<_>>().join(self.headers_separator.as_bytes())
    }

    fn to_json(&self, fetched: &Fetched) -> Result<Value, VerbError> {
        let record = &fetched.record;
        let header = |header: &Header| json!({ "key": bytes_json(&header.key), "value": header.value.as_deref().map(bytes_json) });
        Ok(json!({
            "topic": fetched.partition.topic.as_str(),
            "partition": fetched.partition.partition,
            "offset": record.offset.0,
            "timestamp": record.timestamp.0,
            "timestampType": fetched.timestamp_type.name(),
            "headers": record.headers.iter().map(header).collect::<Vec<_>>(),
            "key": value_json(self.key, record.key.as_ref())?,
            "value": value_json(self.value, record.value.as_ref())?,
        }))
    }
}

fn value_json(deserializer: Deserializer, bytes: Option<&Bytes>) -> Result<Value, VerbError> {
    let Some(bytes) = bytes else { return Ok(Value::Null) };
    Ok(deserializer.number(bytes)?.map_or_else(|| bytes_json(bytes), Value::from))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use expect_test::{Expect, expect};
    use wire::batch::{Record, TimestampType};
    use wire::types::{Millis, Offset, TopicPartition};

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: ConsoleConsumerOptions,
    }

    fn record(key: Option<&'static [u8]>, value: Option<&'static [u8]>) -> Fetched {
        let header = |key: &'static str, value: Option<&'static str>| Header {
            key: Bytes::from_static(key.as_bytes()),
            value: value.map(|value| Bytes::from_static(value.as_bytes())),
        };
        let record = Record {
            offset: Offset(5),
            offset_delta: 0,
            timestamp: Millis(1234),
            sequence: -1,
            key: key.map(Bytes::from_static),
            value: value.map(Bytes::from_static),
            headers: vec![header("a", Some("1")), header("b", None)],
            size_in_bytes: 0,
        };
        let partition = TopicPartition::new("t", 2);
        Fetched { partition, timestamp_type: TimestampType::CreateTime, record }
    }

    fn print(line: &str, fetched: &Fetched) -> Result<String, VerbError> {
        let words = ["consumer", "--topic", "t"].into_iter().chain(line.split_whitespace());
        let format = RecordFormat::read(&Line::try_parse_from(words).unwrap().options)?;
        let mut out = Vec::new();
        format.write(&mut out, fetched)?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    }

    fn check(line: &str, fetched: &Fetched, expected: &Expect) {
        expected.assert_eq(&print(line, fetched).unwrap().replace('\t', "⇥"));
    }

    const ALL: &str = "--property print.timestamp=true --property print.partition=true --property \
                       print.offset=true --property print.headers=true --property print.key=true";

    #[test]
    fn the_value_alone_is_printed_unless_more_is_asked_for() {
        check("", &record(Some(b"k"), Some(b"v")), &expect![["v\n"]]);
        check("", &record(None, None), &expect![["null\n"]]);
    }

    #[test]
    fn fields_come_in_kafkas_order() {
        check(
            ALL,
            &record(Some(b"k"), None),
            &expect![["CreateTime:1234⇥Partition:2⇥Offset:5⇥a:1,b:null⇥k⇥null\n"]],
        );
        let mut bare = record(None, Some(b"v"));
        bare.record.headers.clear();
        bare.record.timestamp = NO_TIMESTAMP;
        check(ALL, &bare, &expect![["NO_TIMESTAMP⇥Partition:2⇥Offset:5⇥NO_HEADERS⇥null⇥v\n"]]);
    }

    #[test]
    fn separators_and_the_literal_for_null_can_be_chosen() {
        let line = "--property print.key=true --property key.separator=|  --property line.separator=; \
                    --property null.literal=NIL";
        check(line, &record(None, Some(b"v")), &expect![["NIL|v;"]]);
        check(
            "--property print.value=false --property print.key=true",
            &record(None, None),
            &expect![["null\n"]],
        );
    }

    #[test]
    fn numbers_are_read_by_their_deserializer() {
        let line = "--value-deserializer org.apache.kafka.common.serialization.LongDeserializer \
                    --key-deserializer IntegerDeserializer --property print.key=true";
        let fetched = record(Some(&[255, 255, 255, 254]), Some(&[0, 0, 0, 0, 0, 0, 1, 0]));
        check(line, &fetched, &expect![["-2⇥256\n"]]);
        let wrong = print(line, &record(None, Some(b"short"))).unwrap_err();
        assert_eq!(wrong.to_string(), "5 bytes are no number of 8 bytes");
        assert!(print("--value-deserializer my.Avro", &fetched).is_err());
    }

    #[test]
    fn programs_get_every_field_and_bytes_that_are_no_text_as_base64() {
        check(
            "--output json",
            &record(None, Some(b"\xff\x00")),
            &expect![[r#"
                {"topic":"t","partition":2,"offset":5,"timestamp":1234,"timestampType":"CreateTime","headers":[{"key":"a","value":"1"},{"key":"b","value":null}],"key":null,"value":{"base64":"/wA="}}
            "#]],
        );
    }

    #[test]
    fn a_formatter_may_print_nothing() {
        check("--formatter kafka.tools.NoOpMessageFormatter", &record(None, None), &expect![[""]]);
        assert!(print("--formatter my.Formatter", &record(None, None)).is_err());
    }
}
