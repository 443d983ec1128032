//! `blumfeld console-consumer`: prints the records of a topic, as kafka-console-consumer does.
//!
//! With `--group` it shares the partitions with the other members; else they are read directly: one if `--partition`
//! names it, or all. Reading ends after `--max-messages`, after `--timeout-ms` without a record, or on an interrupt.

mod format;
mod internal;
mod settings;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use wire::error_code::ErrorCode;
use wire::types::{Offset, TopicPartition};

use super::{asked_to_end, block_on};
use crate::cluster::fetcher::{Fetched, Fetcher};
use crate::cluster::settings::ConnectOptions;
use crate::cluster::{Cluster, ClusterError, Topics};
use crate::error::VerbError;
use crate::group::{Consumer, ConsumerSettings, Event, Subscription};
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
    /// Topics by a regular expression; without a group, those that exist at the start
    #[arg(long, alias = "whitelist", value_name = "REGEX")]
    include: Option<String>,
    /// The group to read in; it goes on where the group has come to
    #[arg(long)]
    group: Option<String>,
    /// The partition to read; all if none is named
    #[arg(long, value_name = "N")]
    partition: Option<i32>,
    /// Where to begin: earliest, latest, or an offset
    #[arg(long)]
    offset: Option<String>,
    /// Begin at the first record that is not older than this: milliseconds since 1970, or 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    from_timestamp: Option<String>,
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
    /// DefaultMessageFormatter, NoOpMessageFormatter, or for __consumer_offsets: OffsetsMessageFormatter,
    /// GroupMetadataMessageFormatter
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
        let mut end = asked_to_end()?;
        match &settings.group {
            // A member leaves its group before it ends.
            Some(group) => printer.consume_in_group(group.clone(), &end).await,
            None => tokio::select! {
                result = printer.consume_directly() => result,
                _ = end.changed() => Ok(()),
            },
        }
    });
    if !result.as_ref().is_err_and(VerbError::is_broken_pipe) {
        eprintln!("Processed a total of {} messages", printer.printed);
    }
    result
}

struct Printer<'a> {
    format: RecordFormat,
    settings: &'a Settings,
    printed: u64,
}

impl Printer<'_> {
    /// Reads and prints until there is nothing more to do.
    async fn consume_directly(&mut self) -> Result<(), VerbError> {
        let settings = self.settings;
        let mut cluster = Cluster::connect(settings.servers.clone(), settings.client.clone()).await?;
        let idle = settings.idle_timeout.unwrap_or(FOREVER);
        let Ok(partitions) = timeout(idle, find_partitions(&mut cluster, settings)).await else {
            return Ok(());
        };
        let positions = positions(&mut cluster, settings, partitions?).await?;
        let mut fetcher = Fetcher::new(cluster, settings.fetch.clone(), positions);
        while !self.is_done() {
            match timeout(idle, some_records(&mut fetcher)).await {
                Ok(records) => self.print(&records?)?,
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// The same as a member of a group, until `end`.
    async fn consume_in_group(
        &mut self,
        group: ConsumerSettings,
        end: &watch::Receiver<bool>,
    ) -> Result<(), VerbError> {
        let settings = self.settings;
        let subscription = settings.subscription.clone();
        let (servers, client) = (settings.servers.clone(), settings.client.clone());
        let mut consumer = Consumer::open(servers, client, subscription, group).await?;
        let idle = settings.idle_timeout.unwrap_or(FOREVER);
        let mut last = Instant::now();
        let result = loop {
            match consumer.next().await {
                Ok(Event::Records(records)) if !records.is_empty() => {
                    last = Instant::now();
                    let before = self.printed;
                    let printed = self.print(&records);
                    let count = usize::try_from(self.printed - before).unwrap_or(usize::MAX);
                    if let Err(error) = printed {
                        consumer.stop_at(&ends(&records, count));
                        break Err(error);
                    }
                    if self.is_done() {
                        consumer.stop_at(&ends(&records, count));
                        break Ok(());
                    }
                }
                Ok(Event::Assigned(_)) => last = Instant::now(),
                Ok(Event::Revoked(_) | Event::Records(_)) => {}
                Err(error) => return Err(error.into()),
            }
            if last.elapsed() >= idle || *end.borrow() {
                break Ok(());
            }
        };
        consumer.close().await?;
        result
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
            match self.format.write(&mut out, fetched) {
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

/// Where each partition goes on when only the first `count` of the records were read.
fn ends(records: &[Fetched], count: usize) -> BTreeMap<TopicPartition, Offset> {
    let mut ends = BTreeMap::new();
    for (at, fetched) in records.iter().enumerate() {
        let offset = fetched.record.offset;
        if at < count {
            ends.insert(fetched.partition.clone(), offset.plus(1));
        } else {
            ends.entry(fetched.partition.clone()).or_insert(offset);
        }
    }
    ends
}

/// The partitions to read, once the topics are there.
async fn find_partitions(
    cluster: &mut Cluster,
    settings: &Settings,
) -> Result<Vec<TopicPartition>, ClusterError> {
    if let Subscription::Names(names) = &settings.subscription {
        let mut found = Vec::new();
        for name in names {
            found.extend(partitions_of(cluster, name, settings).await?);
        }
        return Ok(found);
    }
    let mut warned = false;
    loop {
        let names: BTreeSet<String> = settings.subscription.topics(cluster).await?;
        let mut found = Vec::new();
        for name in &names {
            found.extend(partitions_of(cluster, name, settings).await?);
        }
        if !found.is_empty() {
            return Ok(found);
        }
        if !std::mem::replace(&mut warned, true) {
            eprintln!("WARNING: no topic fits --include yet; waiting for one");
        }
        tokio::time::sleep(settings.client.retry_backoff).await;
    }
}

/// The partitions of a topic that are to be read, once it is there.
async fn partitions_of(
    cluster: &mut Cluster,
    topic: &str,
    settings: &Settings,
) -> Result<Vec<TopicPartition>, ClusterError> {
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
            return Ok(partitions.into_iter().map(|index| TopicPartition::new(topic, index)).collect());
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
    partitions: Vec<TopicPartition>,
) -> Result<BTreeMap<TopicPartition, Offset>, ClusterError> {
    let place = match settings.start {
        Start::At(offset) => {
            return Ok(partitions.into_iter().map(|partition| (partition, offset)).collect());
        }
        Start::From(place) => place,
    };
    let mut topics: BTreeMap<String, Vec<i32>> = BTreeMap::new();
    for partition in partitions {
        topics.entry(partition.topic.to_string()).or_default().push(partition.partition);
    }
    let mut positions = BTreeMap::new();
    for (topic, indexes) in topics {
        let found = cluster.offsets(&topic, &indexes, place, settings.fetch.isolation).await?;
        let at = |(index, offset)| (TopicPartition::new(topic.as_str(), index), offset);
        positions.extend(found.into_iter().map(at));
    }
    Ok(positions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_printed_is_read_again_by_the_group() {
        let records = [(0, 5), (0, 6), (0, 7), (1, 9)].map(|(index, offset)| Fetched::empty(index, offset));
        let ends = ends(&records, 2);
        let told: Vec<(i32, i64)> = ends.iter().map(|(at, offset)| (at.partition, offset.0)).collect();
        assert_eq!(told, [(0, 7), (1, 9)]);
    }
}
