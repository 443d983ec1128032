//! `blumfeld console-producer`: each line of standard input becomes a record, as kafka-console-producer reads it.
//!
//! A thread reads lines; records are gathered for as long as `--timeout` says, or until a batch is full, and are
//! sent and acknowledged before the next ones. What the broker refuses is told, and the verb fails at its end.

mod line;
mod settings;

use std::collections::BTreeMap;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use super::{block_on, now_ms};
use crate::cluster::Cluster;
use crate::cluster::producer::{NewRecord, Producer, Sent};
use crate::cluster::settings::{ConnectOptions, key_and_value, read_properties};
use crate::error::VerbError;
use crate::output::{StreamFormat, StreamFormatOption, stdout, write_json};
use line::{LineError, LineReader};
use settings::Settings;

/// Records that wait between the thread that reads and the one that sends.
const WAITING_RECORDS: usize = 1024;

/// The options of the verb.
#[derive(Debug, clap::Args)]
pub(crate) struct ConsoleProducerOptions {
    #[command(flatten)]
    connect: ConnectOptions,
    #[command(flatten)]
    format: StreamFormatOption,
    /// The topic to produce to
    #[arg(long)]
    topic: String,
    /// A property of the producer, such as linger.ms=5
    #[arg(long, value_name = "KEY=VALUE")]
    producer_property: Vec<String>,
    /// How lines are read: parse.key, key.separator, parse.headers, headers.delimiter, headers.separator,
    /// headers.key.separator, ignore.error, null.marker
    #[arg(long, value_name = "KEY=VALUE")]
    property: Vec<String>,
    /// A file of such properties
    #[arg(long, value_name = "FILE")]
    reader_config: Option<PathBuf>,
    /// What reads lines; only Kafka's own LineMessageReader is known
    #[arg(long, value_name = "CLASS")]
    line_reader: Option<String>,
    /// none, gzip, snappy, lz4 or zstd; gzip if no codec is named
    #[arg(long, value_name = "CODEC", num_args = 0..=1, default_missing_value = "gzip")]
    compression_codec: Option<String>,
    /// Which acknowledgement is waited for: 0, 1, -1 or all
    #[arg(long, value_name = "ACKS", allow_hyphen_values = true)]
    request_required_acks: Option<String>,
    /// Bytes after which a batch is sent
    #[arg(long, value_name = "BYTES", alias = "max-partition-memory-bytes")]
    batch_size: Option<String>,
    /// Milliseconds for which records are gathered
    #[arg(long, value_name = "MS")]
    timeout: Option<String>,
    /// Milliseconds that a request may take
    #[arg(long, value_name = "MS")]
    request_timeout_ms: Option<String>,
    /// Milliseconds that the topic is waited for
    #[arg(long, value_name = "MS")]
    max_block_ms: Option<String>,
    /// Milliseconds between two attempts
    #[arg(long, value_name = "MS")]
    retry_backoff_ms: Option<String>,
    /// Send each record by itself
    #[arg(long)]
    sync: bool,
    /// Accepted for compatibility
    #[arg(long, hide = true, value_name = "N")]
    message_send_max_retries: Option<String>,
    /// Accepted for compatibility
    #[arg(long, hide = true, value_name = "BYTES")]
    max_memory_bytes: Option<String>,
    /// Accepted for compatibility
    #[arg(long, hide = true, value_name = "MS")]
    metadata_expiry_ms: Option<String>,
    /// Accepted for compatibility
    #[arg(long, hide = true, value_name = "BYTES")]
    socket_buffer_size: Option<String>,
}

impl ConsoleProducerOptions {
    /// How lines are read.
    fn line_reader(&self) -> Result<LineReader, VerbError> {
        if let Some(class) = &self.line_reader
            && class.rsplit(['.', '$']).next() != Some("LineMessageReader")
        {
            return Err(VerbError::Usage(format!("--line-reader {class}: only LineMessageReader is known")));
        }
        let mut properties = match &self.reader_config {
            Some(path) => read_properties(path)?,
            None => BTreeMap::new(),
        };
        for pair in &self.property {
            let (key, value) = key_and_value(pair)?;
            properties.insert(key, value);
        }
        LineReader::new(properties)
    }
}

/// Runs the verb.
///
/// # Errors
/// See [`VerbError`].
pub(crate) fn run(options: &ConsoleProducerOptions) -> Result<(), VerbError> {
    let reader = options.line_reader()?;
    let settings = Settings::read(options)?;
    let servers = options.connect.servers()?;
    block_on(async {
        let cluster = Cluster::connect(servers, settings.client.clone()).await?;
        let producer = settings.producer.clone();
        let producer = Producer::open(cluster, &options.topic, producer, settings.max_block).await?;
        let (sender, records) = mpsc::channel(WAITING_RECORDS);
        let max_line = settings.producer.max_request_size;
        // It ends with the input, or with the process if the input does not end.
        std::thread::Builder::new()
            .name("read-lines".to_owned())
            .spawn(move || read_lines(&reader, max_line, &sender))?;
        let report = Report::new(options.topic.clone(), options.format.output);
        produce(producer, &settings, records, report).await
    })
}

/// A record and the time at which its line was read, or why reading has ended early.
type Read = Result<(NewRecord, i64), LineError>;

/// Reads lines until the input ends or one cannot be read.
fn read_lines(reader: &LineReader, max_line: usize, records: &mpsc::Sender<Read>) {
    let prompt = io::stdin().is_terminal();
    let mut input = io::stdin().lock();
    let mut line = Vec::new();
    for number in 1.. {
        if prompt {
            let mut out = io::stdout();
            // A prompt that cannot be shown stops nobody from typing.
            let _ = out.write_all(b">").and_then(|()| out.flush());
        }
        let read = match read_line(&mut input, max_line, &mut line) {
            Ok(false) => return,
            Ok(true) => reader.parse(&line, number),
            Err(error) => Err(LineError::input(number, &error)),
        };
        let failed = read.is_err();
        if records.blocking_send(read.map(|record| (record, now_ms()))).is_err() || failed {
            return;
        }
    }
}

/// Reads one line without its end; false at the end of the input. A line longer than `max` bytes is an error,
/// as nobody would take it.
fn read_line(input: &mut impl BufRead, max: usize, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let limit = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(2);
    let read = io::Read::take(&mut *input, limit).read_until(b'\n', line)?;
    if line.last() == Some(&b'\n') {
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
    }
    if line.len() > max {
        let text = format!("it is longer than max.request.size, {max} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(read > 0)
}

/// Produces records until there are no more.
async fn produce(
    mut producer: Producer,
    settings: &Settings,
    mut records: mpsc::Receiver<Read>,
    mut report: Report,
) -> Result<(), VerbError> {
    let mut flush_at = Instant::now();
    let mut ended = None;
    loop {
        let next = if producer.has_gathered() {
            timeout_at(flush_at, records.recv()).await
        } else {
            Ok(records.recv().await)
        };
        match next {
            Ok(Some(Ok((record, timestamp_ms)))) => {
                if producer.overflows(&record) {
                    report.sent(producer.flush().await?)?;
                }
                if !producer.has_gathered() {
                    flush_at = Instant::now() + settings.linger;
                }
                match producer.add(&record, timestamp_ms) {
                    Ok(full) if full || settings.linger == Duration::ZERO => {
                        report.sent(producer.flush().await?)?;
                    }
                    Ok(_) => {}
                    Err(error) => report.refused(1, &error),
                }
            }
            Ok(Some(Err(error))) => {
                ended = Some(error);
                break;
            }
            Ok(None) => break,
            Err(_) => report.sent(producer.flush().await?)?,
        }
    }
    if producer.has_gathered() {
        report.sent(producer.flush().await?)?;
    }
    match ended {
        Some(error) => Err(VerbError::Failed(error.to_string())),
        None => report.end(),
    }
}

/// What became of the records.
struct Report {
    topic: String,
    format: StreamFormat,
    accepted: u64,
    refused: u64,
}

impl Report {
    fn new(topic: String, format: StreamFormat) -> Self {
        Self { topic, format, accepted: 0, refused: 0 }
    }

    fn sent(&mut self, batches: Vec<Sent>) -> Result<(), VerbError> {
        let mut out = stdout();
        for batch in batches {
            match batch.result {
                Ok(offset) => {
                    self.accepted += u64::from(batch.count.cast_unsigned());
                    if self.format == StreamFormat::Json {
                        let (partition, count) = (batch.partition, batch.count);
                        let offset = (offset.0 >= 0).then_some(offset.0);
                        write_json(
                            &mut out,
                            &json!({
                                "topic": self.topic,
                                "partition": partition,
                                "baseOffset": offset,
                                "count": count,
                            }),
                        )?;
                    }
                }
                Err(error) => self.refused(batch.count, &error),
            }
        }
        Ok(out.flush()?)
    }

    fn refused(&mut self, count: i32, error: &dyn std::error::Error) {
        self.refused += u64::from(count.cast_unsigned());
        eprintln!("ERROR: {count} record(s) not accepted: {error}");
    }

    fn end(self) -> Result<(), VerbError> {
        if self.refused == 0 {
            return Ok(());
        }
        let all = self.accepted + self.refused;
        Err(VerbError::Failed(format!("{} of {all} records were not accepted", self.refused)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(mut input: &[u8], max: usize) -> Vec<Result<String, io::ErrorKind>> {
        let mut line = Vec::new();
        let mut lines = Vec::new();
        loop {
            match read_line(&mut input, max, &mut line) {
                Ok(false) => return lines,
                Ok(true) => lines.push(Ok(String::from_utf8(line.clone()).unwrap())),
                Err(error) => {
                    lines.push(Err(error.kind()));
                    return lines;
                }
            }
        }
    }

    #[test]
    fn lines_end_with_line_feeds_or_with_the_input() {
        let text = |line: &str| Ok(line.to_owned());
        assert_eq!(lines(b"a\r\n\nb\rc\nd", 10), [text("a"), text(""), text("b\rc"), text("d")]);
        assert_eq!(lines(b"", 10), []);
    }

    #[test]
    fn a_line_that_nobody_would_take_is_not_read_into_memory() {
        assert_eq!(lines(b"12345\n123456\n", 5), [Ok("12345".to_owned()), Err(io::ErrorKind::InvalidData)]);
        let mut endless = io::BufReader::new(io::repeat(b'x'));
        assert!(read_line(&mut endless, 1000, &mut Vec::new()).is_err());
    }

    #[test]
    fn refused_records_make_the_verb_fail_at_its_end() {
        let mut report = Report::new("t".into(), StreamFormat::Kafka);
        report.sent(vec![Sent { partition: 0, count: 3, result: Ok(wire::types::Offset(0)) }]).unwrap();
        report.refused(2, &io::Error::other("no"));
        assert_eq!(report.end().unwrap_err().to_string(), "2 of 5 records were not accepted");
        Report::new("t".into(), StreamFormat::Kafka).end().unwrap();
    }
}
