//! `blumfeld verifiable-producer`: produces the numbers from 0 on, and tells of each as JSON whether it was taken, as
//! kafka-verifiable-producer does.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;

use super::pace::Pace;
use super::{asked_to_end, block_on, now_ms};
use crate::cluster::producer::{NewRecord, Producer, ProducerSettings, Sent};
use crate::cluster::settings::{ClientSettings, ConnectOptions};
use crate::cluster::{Cluster, ClusterError};
use crate::error::VerbError;
use crate::output::{stdout, write_json};

/// Records that are sent together at most, so that none waits long to be told of.
const TOGETHER: usize = 500;

/// The options of the verb.
#[derive(Debug, clap::Args)]
pub(crate) struct VerifiableProducerOptions {
    #[command(flatten)]
    connect: ConnectOptions,
    /// The topic
    #[arg(long)]
    topic: String,
    /// How many records; -1: until the process is ended
    #[arg(long, value_name = "N", default_value_t = -1, allow_hyphen_values = true)]
    max_messages: i64,
    /// Records a second, about; -1: as fast as can be
    #[arg(long, value_name = "N", default_value_t = -1, allow_hyphen_values = true)]
    throughput: i64,
    /// Which acknowledgement is waited for: 0, 1 or -1
    #[arg(long, default_value = "-1", allow_hyphen_values = true, value_parser = ["0", "1", "-1"])]
    acks: String,
    /// The timestamp of the first record, in milliseconds since 1970; -1: now
    #[arg(long, value_name = "MS", default_value_t = -1, allow_hyphen_values = true)]
    message_create_time: i64,
    /// A number that goes before each value, with a dot between
    #[arg(long, value_name = "N")]
    value_prefix: Option<i64>,
    /// Give records the keys from 0 on, and begin anew after so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    repeating_keys: Option<u64>,
}

/// Runs the verb.
///
/// # Errors
/// See [`VerbError`].
pub(crate) fn run(options: &VerifiableProducerOptions) -> Result<(), VerbError> {
    let mut properties = options.connect.properties(&[])?;
    properties.take("acks");
    properties.set_default("acks", options.acks.as_str());
    let client = ClientSettings::take(&mut properties, "verifiable-producer")?;
    let settings = ProducerSettings::take(&mut properties)?;
    let max_block = properties.take_millis("max.block.ms", Duration::from_secs(60))?;
    properties.warn_rest();
    let servers = options.connect.servers()?;
    block_on(async {
        let end = asked_to_end()?;
        say(json!({ "timestamp": now_ms(), "name": "startup_complete" }))?;
        let cluster = Cluster::connect(servers, client).await?;
        let producer = Producer::open(cluster, &options.topic, settings, max_block).await?;
        let mut run = Run { options, producer, waiting: BTreeMap::new(), sent: 0, acked: 0 };
        let pace = Pace::start(options.throughput as f64);
        let result = run.produce(&pace, &end).await;
        say(json!({ "timestamp": now_ms(), "name": "shutdown_complete" }))?;
        let seconds = pace.elapsed().as_secs_f64().max(0.001);
        say(json!({
            "timestamp": now_ms(),
            "name": "tool_data",
            "sent": run.sent,
            "acked": run.acked,
            "target_throughput": options.throughput,
            "avg_throughput": run.acked as f64 / seconds,
        }))?;
        result
    })
}

/// One line of JSON, seen at once by whoever reads.
fn say(line: Value) -> Result<(), VerbError> {
    let mut out = stdout();
    write_json(&mut out, &line)?;
    Ok(out.flush()?)
}

/// Key and value of a record that is under way.
type Text = (Option<String>, String);

struct Run<'a> {
    options: &'a VerifiableProducerOptions,
    producer: Producer,
    /// By partition, in order.
    waiting: BTreeMap<i32, Vec<Text>>,
    sent: u64,
    acked: u64,
}

impl Run<'_> {
    async fn produce(&mut self, pace: &Pace, end: &watch::Receiver<bool>) -> Result<(), VerbError> {
        let most = u64::try_from(self.options.max_messages).unwrap_or(u64::MAX);
        while self.sent < most && !*end.borrow() {
            pace.wait(self.sent).await;
            let full = self.add(pace)?;
            let gathered: usize = self.waiting.values().map(Vec::len).sum();
            if full || gathered >= TOGETHER || pace.is_early(self.sent) || self.sent == most {
                self.flush().await?;
            }
        }
        self.flush().await
    }

    fn add(&mut self, pace: &Pace) -> Result<bool, VerbError> {
        let text = text(self.options, self.sent);
        let first = self.options.message_create_time;
        let elapsed = i64::try_from(pace.elapsed().as_millis()).unwrap_or(i64::MAX);
        let timestamp = if first < 0 { now_ms() } else { first.saturating_add(elapsed) };
        let record = NewRecord {
            key: text.0.as_ref().map(|key| key.as_bytes().to_vec()),
            value: Some(text.1.as_bytes().to_vec()),
            headers: Vec::new(),
        };
        let partition = self.producer.partition_of(&record);
        let full = self.producer.add(&record, timestamp)?;
        self.waiting.entry(partition).or_default().push(text);
        self.sent += 1;
        Ok(full)
    }

    async fn flush(&mut self) -> Result<(), VerbError> {
        if !self.producer.has_gathered() {
            return Ok(());
        }
        let batches = match self.producer.flush().await {
            Ok(batches) => batches,
            Err(error) => {
                // What became of them is not known.
                for (key, value) in std::mem::take(&mut self.waiting).into_values().flatten() {
                    say(failure(&self.options.topic, key.as_deref(), &value, &error))?;
                }
                return Err(error.into());
            }
        };
        let mut out = stdout();
        for Sent { partition, result, .. } in batches {
            for (at, (key, value)) in (0..).zip(self.waiting.remove(&partition).unwrap_or_default()) {
                let line = match &result {
                    Ok(base) => {
                        self.acked += 1;
                        let offset = if base.0 < 0 { -1 } else { base.0.saturating_add(at) };
                        json!({
                            "timestamp": now_ms(),
                            "name": "producer_send_success",
                            "key": key,
                            "value": value,
                            "offset": offset,
                            "topic": self.options.topic,
                            "partition": partition,
                        })
                    }
                    Err(error) => failure(&self.options.topic, key.as_deref(), &value, error),
                };
                write_json(&mut out, &line)?;
            }
        }
        Ok(out.flush()?)
    }
}

/// Key and value of record `number`, counted from 0.
fn text(options: &VerifiableProducerOptions, number: u64) -> Text {
    let key = options.repeating_keys.and_then(|keys| number.checked_rem(keys)).map(|key| key.to_string());
    let value = match options.value_prefix {
        Some(prefix) => format!("{prefix}.{number}"),
        None => number.to_string(),
    };
    (key, value)
}

fn failure(topic: &str, key: Option<&str>, value: &str, error: &ClusterError) -> Value {
    let shown = error.java_text();
    let exception = shown.split(':').next().unwrap_or_default();
    json!({
        "timestamp": now_ms(),
        "name": "producer_send_error",
        "topic": topic,
        "key": key,
        "value": value,
        "exception": exception,
        "message": error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use wire::error_code::ErrorCode;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: VerifiableProducerOptions,
    }

    fn parse(line: &str) -> Result<VerifiableProducerOptions, clap::Error> {
        let words = ["producer", "--topic", "t"].into_iter().chain(line.split_whitespace());
        Line::try_parse_from(words).map(|line| line.options)
    }

    #[test]
    fn values_count_up_and_keys_come_again() {
        let options = parse("--value-prefix 7 --repeating-keys 2").unwrap();
        let told: Vec<Text> = (0..3).map(|number| text(&options, number)).collect();
        let expected = [("0", "7.0"), ("1", "7.1"), ("0", "7.2")];
        assert_eq!(told, expected.map(|(key, value)| (Some(key.to_owned()), value.to_owned())));
        assert_eq!(text(&parse("").unwrap(), 5), (None, "5".to_owned()));
    }

    #[test]
    fn a_failure_names_the_record_and_the_class_of_the_error() {
        let refused = ClusterError::refused("t-0", ErrorCode::MessageTooLarge.code(), None);
        let line = failure("t", None, "5", &refused);
        assert_eq!(line["exception"], "org.apache.kafka.common.errors.RecordTooLargeException");
        assert_eq!((&line["value"], &line["name"]), (&json!("5"), &json!("producer_send_error")));
    }

    #[test]
    fn acks_are_one_of_three() {
        assert!(parse("--acks 5").is_err());
        assert!(parse("--acks -1 --throughput -1 --max-messages -1").is_ok());
        assert!(parse("--repeating-keys 0").is_err());
    }
}
