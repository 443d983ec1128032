//! `blumfeld consumer-perf`: how fast records can be read, as kafka-consumer-perf-test measures it. Without `--group`
//! the partitions are read directly, so that nothing of a group is measured.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use jiff::ZonedDateTime;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;
use wire::types::TopicPartition;

use super::{asked_to_end, block_on};
use crate::cluster::fetcher::{FetchSettings, Fetched, Fetcher};
use crate::cluster::offsets::Place;
use crate::cluster::settings::{ClientSettings, ConnectOptions};
use crate::cluster::{Cluster, ClusterError, Topics};
use crate::error::VerbError;
use crate::group::{Consumer, ConsumerSettings, Event, Subscription};
use crate::output::{StreamFormat, StreamFormatOption, stdout, write_json};

const MIB: f64 = 1024.0 * 1024.0;
const COLUMNS: &str = "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, \
                       fetch.MB.sec, fetch.nMsg.sec";

/// The options of the verb.
#[derive(Debug, clap::Args)]
pub(crate) struct ConsumerPerfOptions {
    #[command(flatten)]
    connect: ConnectOptions,
    #[command(flatten)]
    format: StreamFormatOption,
    /// The topic
    #[arg(long)]
    topic: String,
    /// How many records
    #[arg(long, value_name = "N")]
    messages: u64,
    /// The group to read in
    #[arg(long)]
    group: Option<String>,
    /// Begin at the end if the group has been nowhere
    #[arg(long)]
    from_latest: bool,
    /// Bytes that an answer may hold of a partition
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20)]
    fetch_size: i32,
    /// Print a line for each interval instead of one at the end
    #[arg(long)]
    show_detailed_stats: bool,
    /// Milliseconds of an interval
    #[arg(long, value_name = "MS", default_value_t = 5_000)]
    reporting_interval: u32,
    /// Do not print the names of the columns
    #[arg(long)]
    hide_header: bool,
    /// Milliseconds without a record after which reading ends
    #[arg(long, value_name = "MS", default_value_t = 10_000)]
    timeout: u32,
    /// How times are written: yyyy, MM, dd, HH, mm, ss and SSS stand for their digits
    #[arg(long, value_name = "FORMAT", default_value = "yyyy-MM-dd HH:mm:ss:SSS")]
    date_format: String,
    /// Accepted for compatibility
    #[arg(long, hide = true, value_name = "BYTES")]
    socket_buffer_size: Option<u32>,
    /// Accepted for compatibility
    #[arg(long, hide = true, value_name = "N")]
    num_fetch_threads: Option<u32>,
    /// Accepted for compatibility
    #[arg(long, hide = true, value_name = "N")]
    threads: Option<u32>,
    /// Accepted for compatibility
    #[arg(long, hide = true)]
    print_metrics: bool,
}

/// Runs the verb.
///
/// # Errors
/// See [`VerbError`].
pub(crate) fn run(options: &ConsumerPerfOptions) -> Result<(), VerbError> {
    let mut properties = options.connect.properties(&[])?;
    properties.set_default("max.partition.fetch.bytes", options.fetch_size.to_string());
    properties.set_default("check.crcs", "false");
    let of_properties = properties.take("group.id");
    let client = ClientSettings::take(&mut properties, "perf-consumer-client")?;
    let reset = if options.from_latest { "latest" } else { "earliest" };
    let fetch = FetchSettings::take(&mut properties, reset)?;
    let group = options.group.clone().or(of_properties);
    let group = group.map(|group| ConsumerSettings::take(&mut properties, group, fetch.clone(), true));
    let group = group.transpose()?;
    properties.warn_rest();
    let servers = options.connect.servers()?;
    block_on(async {
        let end = asked_to_end()?;
        let mut report = Report::start(options)?;
        match group {
            Some(group) => {
                let subscription = Subscription::Names([options.topic.clone()].into());
                let mut consumer = Consumer::open(servers, client, subscription, group).await?;
                in_group(&mut consumer, &mut report, &end).await?;
                consumer.close().await?;
            }
            None => {
                let cluster = Cluster::connect(servers, client).await?;
                let mut fetcher = open(cluster, &options.topic, fetch, options.from_latest).await?;
                while !report.is_done(&end) {
                    report.records(&fetcher.next().await?)?;
                }
            }
        }
        report.end()
    })
}

async fn in_group(
    consumer: &mut Consumer,
    report: &mut Report<'_>,
    end: &watch::Receiver<bool>,
) -> Result<(), VerbError> {
    let mut joining = Instant::now();
    while !report.is_done(end) {
        match consumer.next().await? {
            Event::Records(records) => report.records(&records)?,
            Event::Assigned(_) => report.joined(joining.elapsed()),
            Event::Revoked(_) => joining = Instant::now(),
        }
    }
    Ok(())
}

async fn open(
    mut cluster: Cluster,
    topic: &str,
    fetch: FetchSettings,
    from_latest: bool,
) -> Result<Fetcher, ClusterError> {
    let metadata = cluster.metadata(Topics::Named { name: topic, create: false }).await?;
    let found = metadata.topics.first();
    let code = found.map_or(0, |topic| topic.error_code);
    if code != 0 {
        return Err(ClusterError::refused(format!("topic {topic}"), code, None));
    }
    let partitions: Vec<i32> =
        found.into_iter().flat_map(|topic| &topic.partitions).map(|it| it.partition_index).collect();
    let place = if from_latest { Place::Latest } else { Place::Earliest };
    let offsets = cluster.offsets(topic, &partitions, place, fetch.isolation).await?;
    let positions: BTreeMap<_, _> =
        offsets.into_iter().map(|(index, offset)| (TopicPartition::new(topic, index), offset)).collect();
    Ok(Fetcher::new(cluster, fetch, positions))
}

/// Records and bytes that were read, and the time that joining took of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Read {
    records: u64,
    bytes: u64,
    joining: Duration,
}

struct Report<'a> {
    options: &'a ConsumerPerfOptions,
    start: Instant,
    start_text: String,
    all: Read,
    last_record: Instant,
    interval: Read,
    interval_start: Instant,
    timed_out: bool,
}

impl<'a> Report<'a> {
    fn start(options: &'a ConsumerPerfOptions) -> Result<Self, VerbError> {
        let now = Instant::now();
        if options.format.output == StreamFormat::Kafka && !options.hide_header {
            let first = if options.show_detailed_stats { "time, threadId" } else { "start.time, end.time" };
            let mut out = stdout();
            writeln!(out, "{first}, {COLUMNS}")?;
            out.flush()?;
        }
        Ok(Self {
            options,
            start: now,
            start_text: time_text(&options.date_format, &ZonedDateTime::now()),
            all: Read::default(),
            last_record: now,
            interval: Read::default(),
            interval_start: now,
            timed_out: false,
        })
    }

    fn is_done(&mut self, end: &watch::Receiver<bool>) -> bool {
        let patience = Duration::from_millis(u64::from(self.options.timeout));
        self.timed_out = self.last_record.elapsed() >= patience;
        self.all.records >= self.options.messages || self.timed_out || *end.borrow()
    }

    fn joined(&mut self, joining: Duration) {
        self.all.joining += joining;
        self.interval.joining += joining;
        self.last_record = Instant::now();
    }

    fn records(&mut self, records: &[Fetched]) -> Result<(), VerbError> {
        let missing = self.options.messages.saturating_sub(self.all.records);
        let missing = usize::try_from(missing).unwrap_or(usize::MAX);
        for it in records.iter().take(missing) {
            let length = |bytes: &Option<bytes::Bytes>| bytes.as_ref().map_or(0, bytes::Bytes::len);
            let bytes = u64::try_from(length(&it.record.key) + length(&it.record.value)).unwrap_or(0);
            for read in [&mut self.all, &mut self.interval] {
                read.records += 1;
                read.bytes += bytes;
            }
        }
        if !records.is_empty() {
            self.last_record = Instant::now();
        }
        let elapsed = self.interval_start.elapsed();
        let interval = Duration::from_millis(u64::from(self.options.reporting_interval));
        if self.options.show_detailed_stats && elapsed >= interval {
            let time = time_text(&self.options.date_format, &ZonedDateTime::now());
            self.print(&format!("{time}, 0"), self.interval, elapsed)?;
            self.interval = Read::default();
            self.interval_start = Instant::now();
        }
        Ok(())
    }

    fn end(&self) -> Result<(), VerbError> {
        if self.timed_out {
            eprintln!(
                "WARNING: Exiting before consuming the expected number of messages: timeout ({} ms) exceeded. You can \
                 use the --timeout option to increase the timeout.",
                self.options.timeout
            );
        }
        if self.options.show_detailed_stats {
            return Ok(());
        }
        let time = time_text(&self.options.date_format, &ZonedDateTime::now());
        self.print(&format!("{}, {time}", self.start_text), self.all, self.start.elapsed())
    }

    /// Prints what was read in all, at the rates of `read`.
    fn print(&self, first: &str, read: Read, elapsed: Duration) -> Result<(), VerbError> {
        let mut out = stdout();
        match self.options.format.output {
            StreamFormat::Kafka => writeln!(out, "{first}, {}", columns(self.all, read, elapsed))?,
            StreamFormat::Json => {
                let seconds = elapsed.as_secs_f64().max(1e-9);
                write_json(
                    &mut out,
                    &json!({
                        "records": self.all.records,
                        "bytes": self.all.bytes,
                        "seconds": seconds,
                        "recordsPerSecond": read.records as f64 / seconds,
                        "mebibytesPerSecond": read.bytes as f64 / seconds / MIB,
                        "rebalanceMs": read.joining.as_secs_f64() * 1000.0,
                    }),
                )?;
            }
        }
        Ok(out.flush()?)
    }
}

/// The columns behind the times.
fn columns(all: Read, read: Read, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64().max(1e-9);
    let fetching = elapsed.saturating_sub(read.joining);
    let fetch_seconds = fetching.as_secs_f64().max(1e-9);
    let (mib, records) = (read.bytes as f64 / MIB, read.records as f64);
    format!(
        "{:.4}, {:.4}, {}, {:.4}, {}, {}, {:.4}, {:.4}",
        all.bytes as f64 / MIB,
        mib / seconds,
        all.records,
        records / seconds,
        read.joining.as_millis(),
        fetching.as_millis(),
        mib / fetch_seconds,
        records / fetch_seconds
    )
}

/// A time in a format of Java's SimpleDateFormat, as far as digits go.
fn time_text(format: &str, time: &ZonedDateTime) -> String {
    let millis = i32::from(time.millisecond());
    format
        .replace("yyyy", &format!("{:04}", time.year()))
        .replace("MM", &format!("{:02}", time.month()))
        .replace("dd", &format!("{:02}", time.day()))
        .replace("HH", &format!("{:02}", time.hour()))
        .replace("mm", &format!("{:02}", time.minute()))
        .replace("SSS", &format!("{millis:03}"))
        .replace("ss", &format!("{:02}", time.second()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_are_those_that_scripts_expect() {
        let all = Read { records: 1000, bytes: 2 << 20, joining: Duration::from_millis(500) };
        let line = columns(all, all, Duration::from_millis(2500));
        assert_eq!(line, "2.0000, 0.8000, 1000, 400.0000, 500, 2000, 1.0000, 500.0000");
        assert_eq!(line.split(", ").count(), COLUMNS.split(", ").count());
    }

    #[test]
    fn a_time_is_written_as_its_format_says() {
        let time: ZonedDateTime = "2026-01-02T03:04:05.006[UTC]".parse().unwrap();
        assert_eq!(time_text("yyyy-MM-dd HH:mm:ss:SSS", &time), "2026-01-02 03:04:05:006");
    }
}
