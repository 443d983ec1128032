//! How a record is printed: the parts that Kafka's default formatter knows, in its order, or one JSON object.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::{Value, json};
use wire::batch::TimestampType;

use crate::cluster::fetcher::Fetched;
use crate::output::{StreamFormat, write_json};

/// Prints records.
#[derive(Debug)]
pub(super) struct Printer {
    topic: String,
    format: StreamFormat,
    timestamp: bool,
    partition: bool,
    offset: bool,
    headers: bool,
    key: bool,
    value: bool,
    key_separator: String,
    line_separator: String,
    headers_separator: String,
    null: String,
}

impl Printer {
    /// A printer by the properties of Kafka's formatter; unknown ones are ignored, as there.
    pub(super) fn new(topic: String, format: StreamFormat, properties: &BTreeMap<String, String>) -> Self {
        let flag = |key: &str, default: bool| match properties.get(key) {
            Some(text) => text.trim().eq_ignore_ascii_case("true"),
            None => default,
        };
        let text =
            |key: &str, default: &str| properties.get(key).cloned().unwrap_or_else(|| default.to_owned());
        Self {
            topic,
            format,
            timestamp: flag("print.timestamp", false),
            partition: flag("print.partition", false),
            offset: flag("print.offset", false),
            headers: flag("print.headers", false),
            key: flag("print.key", false),
            value: flag("print.value", true),
            key_separator: text("key.separator", "\t"),
            line_separator: text("line.separator", "\n"),
            headers_separator: text("headers.separator", ","),
            null: text("null.literal", "null"),
        }
    }

    /// Prints one record.
    pub(super) fn print(&self, out: &mut dyn Write, fetched: &Fetched) -> io::Result<()> {
        match self.format {
            StreamFormat::Kafka => self.print_line(out, fetched),
            StreamFormat::Json => write_json(out, &self.object(fetched)),
        }
    }

    fn print_line(&self, out: &mut dyn Write, fetched: &Fetched) -> io::Result<()> {
        let mut parts: Vec<Vec<u8>> = Vec::new();
        let record = &fetched.record;
        if self.timestamp {
            let name = match fetched.timestamp_type {
                TimestampType::CreateTime => "CreateTime",
                TimestampType::LogAppendTime => "LogAppendTime",
            };
            parts.push(format!("{name}:{}", record.timestamp).into_bytes());
        }
        if self.partition {
            parts.push(format!("Partition:{}", fetched.partition).into_bytes());
        }
        if self.offset {
            parts.push(format!("Offset:{}", record.offset).into_bytes());
        }
        if self.headers {
            parts.push(self.header_text(fetched));
        }
        if self.key {
            parts.push(self.bytes(record.key.as_deref()).to_vec());
        }
        if self.value {
            parts.push(self.bytes(record.value.as_deref()).to_vec());
        }
        out.write_all(&parts.join(self.key_separator.as_bytes()))?;
        out.write_all(self.line_separator.as_bytes())
    }

    fn header_text(&self, fetched: &Fetched) -> Vec<u8> {
        let headers = &fetched.record.headers;
        if headers.is_empty() {
            return b"NO_HEADERS".to_vec();
        }
        let one = |header: &wire::batch::Header| {
            let mut text = header.key.to_vec();
            text.push(b':');
            text.extend_from_slice(self.bytes(header.value.as_deref()));
            text
        };
        headers.iter().map(one).collect::<Vec<_>>().join(self.headers_separator.as_bytes())
    }

    fn bytes<'a>(&'a self, bytes: Option<&'a [u8]>) -> &'a [u8] {
        bytes.unwrap_or(self.null.as_bytes())
    }

    fn object(&self, fetched: &Fetched) -> Value {
        let record = &fetched.record;
        let text = |bytes: Option<&[u8]>| bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let headers = record.headers.iter().map(|header| {
            json!({ "key": String::from_utf8_lossy(&header.key), "value": text(header.value.as_deref()) })
        });
        json!({
            "topic": self.topic,
            "partition": fetched.partition,
            "offset": record.offset.0,
            "timestamp": record.timestamp.0,
            "key": text(record.key.as_deref()),
            "value": text(record.value.as_deref()),
            "headers": headers.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::batch::{BatchBuilder, Compression, Limits};
    use wire::types::{Millis, Offset};

    fn fetched() -> Fetched {
        let mut builder = BatchBuilder::new(Compression::None).base_offset(Offset(7));
        builder.append_with_headers(Millis(5), Some(b"k"), None, &[(b"h", Some(&b"x"[..]))]);
        let record = builder.build().unwrap().records(Limits::default()).next().unwrap().unwrap();
        Fetched { partition: 3, timestamp_type: TimestampType::CreateTime, record }
    }

    fn printed(format: StreamFormat, properties: &[(&str, &str)]) -> String {
        let properties = properties.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let mut out = Vec::new();
        Printer::new("t".to_owned(), format, &properties).print(&mut out, &fetched()).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_the_value_is_printed_unless_more_is_asked_for() {
        assert_eq!(printed(StreamFormat::Kafka, &[]), "null\n");
        let all = ["timestamp", "partition", "offset", "headers", "key"].map(|part| format!("print.{part}"));
        let all: Vec<_> = all.iter().map(|key| (key.as_str(), "true")).collect();
        assert_eq!(printed(StreamFormat::Kafka, &all), "CreateTime:5\tPartition:3\tOffset:7\th:x\tk\tnull\n");
    }

    #[test]
    fn separators_and_the_word_for_null_can_be_chosen() {
        let chosen =
            [("print.key", "true"), ("key.separator", "|"), ("line.separator", ";"), ("null.literal", "-")];
        assert_eq!(printed(StreamFormat::Kafka, &chosen), "k|-;");
    }

    #[test]
    fn json_holds_everything() {
        let value: Value = serde_json::from_str(&printed(StreamFormat::Json, &[])).unwrap();
        assert_eq!(
            (value["offset"].as_i64(), value["key"].as_str(), value["value"].is_null()),
            (Some(7), Some("k"), true)
        );
        assert_eq!(value["headers"][0]["value"], "x");
    }
}
