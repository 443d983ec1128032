//! `blumfeld console-consumer`: prints the records of a topic, as kafka-console-consumer does.
//!
//! Partitions are read directly, without a group: one if `--partition` names it, else all. Reading ends after
//! `--max-messages`, after `--timeout-ms` without a record, or on an interrupt.

mod format;
mod settings;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::timeout;
use wire::error_code::ErrorCode;
use wire::types::Offset;

use super::block_on;
use crate::cluster::fetcher::{Fetched, Fetcher};
use crate::cluster::offsets::Place;
use crate::cluster::settings::ConnectOptions;
use crate::cluster::{Cluster, ClusterError, Topics};
use crate::error::VerbError;
use crate::output::{StreamFormatOption, stdout};
use format::RecordFormat;
use settings::{Settings, Start};

/// Longer than anybody waits.
const FOREVER: Duration = Duration::from_secs(1 << 32);

/// The options of the verb.
#[derive(Debug, clap::Args)]
pub(crate) struct ConsoleConsumerOptions {
    #[command(flatten)]
    connect: ConnectOptions,
    #[command(flatten)]
    format: StreamFormatOption,
    /// The topic to read
    #[arg(long)]
    topic: Option<String>,
    /// Topics by a regular expression (not supported yet)
    #[arg(long, alias = "whitelist", value_name = "REGEX")]
    include: Option<String>,
    /// A group to read in (not supported yet)
    #[arg(long)]
    group: Option<String>,
    /// The partition to read; all if none is named
    #[arg(long, value_name = "N")]
    partition: Option<i32>,
    /// Where to begin: earliest, latest, or an offset
    #[arg(long)]
    offset: Option<String>,
    /// Begin at the earliest record
    #[arg(long)]
    from_beginning: bool,
    /// End after this many records
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    max_messages: Option<i64>,
    /// End when there was no record for so long
    #[arg(long, value_name = "MS", allow_hyphen_values = true)]
    timeout_ms: Option<i64>,
    /// read_uncommitted or read_committed
    #[arg(long, value_name = "LEVEL")]
    isolation_level: Option<String>,
    /// What is printed: print.timestamp, print.partition, print.offset, print.headers, print.key, print.value,
    /// key.separator, line.separator, headers.separator, null.literal
    #[arg(long, value_name = "KEY=VALUE")]
    property: Vec<String>,
    /// A file of such properties
    #[arg(long, value_name = "FILE")]
    formatter_config: Option<PathBuf>,
    /// The default formatter, or the one that prints nothing
    #[arg(long, value_name = "CLASS")]
    formatter: Option<String>,
    /// A property of the consumer, such as fetch.max.wait.ms=100
    #[arg(long, value_name = "KEY=VALUE")]
    consumer_property: Vec<String>,
    /// How keys are read: String, ByteArray, Short, Integer or Long
    #[arg(long, value_name = "CLASS")]
    key_deserializer: Option<String>,
    /// How values are read
    #[arg(long, value_name = "CLASS")]
    value_deserializer: Option<String>,
    /// Go on after a record that cannot be printed
    #[arg(long)]
    skip_message_on_error: bool,
    /// Accepted for compatibility
    #[arg(long, hide = true)]
    enable_systest_events: bool,
}

/// Runs the verb.
///
/// # Errors
/// See [`VerbError`].
pub(crate) fn run(options: &ConsoleConsumerOptions) -> Result<(), VerbError> {
    let settings = Settings::read(options)?;
    let mut printer = Printer { format: RecordFormat::read(options)?, settings: &settings, printed: 0 };
    let result = block_on(async {
        tokio::select! {
            result = printer.consume() => result,
            () = interrupted() => Ok(()),
        }
    });
    if !result.as_ref().is_err_and(VerbError::is_broken_pipe) {
        eprintln!("Processed a total of {} messages", printer.printed);
    }
    result
}

/// Waits for an interrupt (ctrl-c).
async fn interrupted() {
    // Without a handler of signals an interrupt ends the process anyway.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

struct Printer<'a> {
    format: RecordFormat,
    settings: &'a Settings,
    printed: u64,
}

impl Printer<'_> {
    /// Reads and prints until there is nothing more to do.
    async fn consume(&mut self) -> Result<(), VerbError> {
        let settings = self.settings;
        let mut cluster = Cluster::connect(settings.servers.clone(), settings.client.clone()).await?;
        let idle = settings.idle_timeout.unwrap_or(FOREVER);
        let Ok(partitions) = timeout(idle, find_partitions(&mut cluster, settings)).await else {
            return Ok(());
        };
        let positions = positions(&mut cluster, settings, &partitions?).await?;
        let mut fetcher = Fetcher::new(cluster, &settings.topic, settings.fetch.clone(), positions);
        while !self.is_done() {
            match timeout(idle, some_records(&mut fetcher)).await {
                Ok(records) => self.print(&records?)?,
                Err(_) => break,
            }
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.settings.max_messages.is_some_and(|most| self.printed >= most)
    }

    /// Prints records until there were enough.
    fn print(&mut self, records: &[Fetched]) -> Result<(), VerbError> {
        let mut out = stdout();
        for fetched in records {
            if self.is_done() {
                break;
            }
            match self.format.write(&mut out, &self.settings.topic, fetched) {
                Err(VerbError::Failed(text)) if self.settings.skip_errors => eprintln!("ERROR: {text}"),
                other => other?,
            }
            self.printed += 1;
        }
        Ok(out.flush()?)
    }
}

/// One record or more.
async fn some_records(fetcher: &mut Fetcher) -> Result<Vec<Fetched>, ClusterError> {
    loop {
        let records = fetcher.next().await?;
        if !records.is_empty() {
            return Ok(records);
        }
    }
}

/// The partitions to read, once the topic is there.
async fn find_partitions(cluster: &mut Cluster, settings: &Settings) -> Result<Vec<i32>, ClusterError> {
    let topic = &settings.topic;
    let mut warned = false;
    loop {
        let metadata = cluster.metadata(Topics::Named { name: topic, create: settings.create_topic }).await?;
        let Some(found) = metadata.topics.first() else { continue };
        let code = ErrorCode::from_code(found.error_code).unwrap_or(ErrorCode::UnknownServerError);
        let mut partitions: Vec<i32> = found.partitions.iter().map(|p| p.partition_index).collect();
        partitions.sort_unstable();
        if let Some(wanted) = settings.partition {
            partitions.retain(|partition| *partition == wanted);
        }
        if code == ErrorCode::None && !partitions.is_empty() {
            return Ok(partitions);
        }
        if code.is_error() && !code.is_retriable() {
            return Err(ClusterError::refused(format!("topic {topic}"), found.error_code, None));
        }
        let is_missing = matches!(code, ErrorCode::None | ErrorCode::UnknownTopicOrPartition);
        if is_missing && !std::mem::replace(&mut warned, true) {
            match settings.partition {
                Some(partition) => {
                    eprintln!("WARNING: {topic}-{partition} does not exist yet; waiting for it")
                }
                None => eprintln!("WARNING: topic {topic} does not exist yet; waiting for it"),
            }
        }
        tokio::time::sleep(settings.client.retry_backoff).await;
    }
}

/// Where reading begins in each partition.
async fn positions(
    cluster: &mut Cluster,
    settings: &Settings,
    partitions: &[i32],
) -> Result<BTreeMap<i32, Offset>, ClusterError> {
    match settings.start {
        Start::At(offset) => Ok(partitions.iter().map(|partition| (*partition, offset)).collect()),
        Start::From(place) => {
            cluster.offsets(&settings.topic, partitions, place, settings.fetch.isolation).await
        }
    }
}

/// The places that options and properties name.
fn place(name: &str) -> Option<Place> {
    match name {
        "earliest" => Some(Place::Earliest),
        "latest" => Some(Place::Latest),
        _ => None,
    }
}
