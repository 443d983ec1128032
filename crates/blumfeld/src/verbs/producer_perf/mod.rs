//! `blumfeld producer-perf`: how fast records can be produced, and how long each takes, as kafka-producer-perf-test
//! measures it.
//!
//! A record's time runs from when it is made until its batch is acknowledged. Batches to a leader go out one behind the
//! other with up to five under way. What a broker refuses is not sent again: it is counted, and the verb fails.

mod lane;
mod payload;
mod stats;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use wire::batch::BatchBuilder;
use wire::types::Millis;

use super::pace::Pace;
use super::{asked_to_end, block_on, now_ms};
use crate::cluster::producer::{ProducerSettings, Route};
use crate::cluster::settings::{ClientProperties, ClientSettings, ConnectOptions};
use crate::cluster::{Cluster, ClusterError, error_name};
use crate::error::VerbError;
use crate::output::StreamFormatOption;
use lane::{Lane, LaneSettings, Report, Sealed};
use payload::{Payload, Random};
use stats::Stats;

/// What a record takes in a batch beside its value, about.
const RECORD_OVERHEAD: usize = 12;
/// So many records are made before lanes get their turn.
const TURN: u64 = 64;

/// The options of the verb.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("payload").required(true).args(["record_size", "payload_file", "payload_monotonic"]))]
pub(crate) struct ProducerPerfOptions {
    #[command(flatten)]
    connect: ConnectOptions,
    #[command(flatten)]
    format: StreamFormatOption,
    /// The topic
    #[arg(long)]
    topic: String,
    /// How many records
    #[arg(long, value_name = "N")]
    num_records: u64,
    /// Records a second, about; -1: as fast as can be
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    throughput: f64,
    /// Bytes of each value
    #[arg(long, value_name = "BYTES")]
    record_size: Option<usize>,
    /// A file of values, of which one is taken at random for each record
    #[arg(long, value_name = "FILE")]
    payload_file: Option<PathBuf>,
    /// What parts the values in the file
    #[arg(long, value_name = "TEXT", default_value = "\\n")]
    payload_delimiter: String,
    /// Numbers that count up
    #[arg(long)]
    payload_monotonic: bool,
    /// Properties of the producer, such as bootstrap.servers=localhost:9092 acks=1
    #[arg(long, value_name = "KEY=VALUE", num_args = 1..)]
    producer_props: Vec<String>,
    /// Print figures of the client at the end
    #[arg(long)]
    print_metrics: bool,
    /// Accepted for compatibility
    #[arg(long, hide = true)]
    transactional_id: Option<String>,
    /// Not supported: how long each transaction lasts
    #[arg(long, hide = true, value_name = "MS", default_value_t = 0)]
    transaction_duration_ms: u64,
}

/// How records are produced.
struct Settings {
    servers: Vec<String>,
    client: ClientSettings,
    producer: ProducerSettings,
    linger: Duration,
    max_block: Duration,
}

impl Settings {
    fn read(options: &ProducerPerfOptions) -> Result<Self, VerbError> {
        if options.transaction_duration_ms > 0 {
            let text = "--transaction-duration-ms: this tool does not produce in transactions yet";
            return Err(VerbError::Usage(text.to_owned()));
        }
        let mut properties: ClientProperties = options.connect.properties(&options.producer_props)?;
        let mut connect = options.connect.clone();
        if let Some(servers) = properties.take("bootstrap.servers") {
            connect.bootstrap_server = servers;
        }
        let client = ClientSettings::take(&mut properties, "perf-producer-client")?;
        let settings = Self {
            servers: connect.servers()?,
            client,
            producer: ProducerSettings::take(&mut properties)?,
            linger: properties.take_millis("linger.ms", Duration::ZERO)?,
            max_block: properties.take_millis("max.block.ms", Duration::from_secs(60))?,
        };
        properties.warn_rest();
        Ok(settings)
    }
}

/// Runs the verb.
///
/// # Errors
/// See [`VerbError`].
pub(crate) fn run(options: &ProducerPerfOptions) -> Result<(), VerbError> {
    let settings = Settings::read(options)?;
    let payload = match (&options.payload_file, options.record_size) {
        (Some(path), _) => Payload::of_file(path, &options.payload_delimiter)?,
        (None, Some(size)) => Payload::Random(size),
        (None, None) => Payload::Monotonic,
    };
    block_on(async {
        let end = asked_to_end()?;
        let cluster = Cluster::connect(settings.servers.clone(), settings.client.clone()).await?;
        let producer = settings.producer.clone();
        let route = Route::find(cluster, &options.topic, &producer, settings.max_block).await?;
        let (lanes, reports) = open_lanes(route.cluster, &options.topic, &route.leaders, &settings).await?;
        let mut run = Run {
            lanes,
            reports,
            leaders: route.leaders.into_iter().collect(),
            identity: route.identity,
            settings: &settings,
            sequences: BTreeMap::new(),
            open: None,
            turn: 0,
            under_way: 0,
            last_code: 0,
            stats: Stats::start(options.format.output),
        };
        let pace = Pace::start(options.throughput);
        let mut random = Random::new();
        let mut value = Vec::new();
        let mut number = 0;
        while number < options.num_records && !*end.borrow() {
            run.wait(&pace, number).await?;
            payload.write(number, &mut random, &mut value);
            run.add(&value).await?;
            number += 1;
            if number.is_multiple_of(TURN) {
                tokio::task::yield_now().await;
                run.take_reports()?;
            }
        }
        run.finish().await?;
        run.stats.end(options.print_metrics)?;
        match run.stats.failed() {
            0 => Ok(()),
            failed => {
                let reason = error_name(run.last_code);
                Err(VerbError::Failed(format!("{failed} of {number} records were not accepted ({reason})")))
            }
        }
    })
}

/// One lane for each leader.
async fn open_lanes(
    mut cluster: Cluster,
    topic: &str,
    leaders: &BTreeMap<i32, i32>,
    settings: &Settings,
) -> Result<(BTreeMap<i32, Lane>, mpsc::Receiver<Report>), VerbError> {
    let leaders_at_most = leaders.len().max(1);
    let (sender, reports) = mpsc::channel(lane::REPORTS.saturating_mul(leaders_at_most));
    let mut lanes = BTreeMap::new();
    for leader in leaders.values() {
        if lanes.contains_key(leader) {
            continue;
        }
        let address = cluster.brokers().get(leader).cloned().ok_or(ClusterError::NoSuchBroker(*leader))?;
        let client = cluster.take_connection(&address).await;
        let client = client.map_err(|error| ClusterError::Client { address, error })?;
        let timeout = settings.client.request_timeout.as_millis();
        let of_lane = LaneSettings {
            topic: topic.to_owned(),
            acks: settings.producer.acks,
            timeout_ms: i32::try_from(timeout).unwrap_or(i32::MAX),
        };
        lanes.insert(*leader, Lane::open(client, of_lane, sender.clone()));
    }
    Ok((lanes, reports))
}

/// The batch that is being filled.
struct Open {
    partition: i32,
    leader: i32,
    builder: BatchBuilder,
    bytes: usize,
    value_bytes: u64,
    made: Vec<Instant>,
    since: Instant,
}

struct Run<'a> {
    lanes: BTreeMap<i32, Lane>,
    reports: mpsc::Receiver<Report>,
    /// Partitions with their leaders.
    leaders: Vec<(i32, i32)>,
    identity: Option<(i64, i16)>,
    settings: &'a Settings,
    sequences: BTreeMap<i32, i32>,
    open: Option<Open>,
    /// Whose turn it is: records without keys stay in one partition for a batch.
    turn: usize,
    under_way: usize,
    last_code: i16,
    stats: Stats,
}

impl Run<'_> {
    /// Waits until record `number` is due; what was gathered does not wait longer than `linger.ms`.
    async fn wait(&mut self, pace: &Pace, number: u64) -> Result<(), VerbError> {
        while pace.is_early(number) {
            let flush_at = self.open.as_ref().map(|open| open.since + self.settings.linger);
            if flush_at.is_some_and(|at| at <= Instant::now()) {
                self.seal().await?;
                continue;
            }
            tokio::select! {
                () = pace.wait(number) => {}
                report = self.reports.recv(), if self.under_way > 0 => self.take(report)?,
                () = until(flush_at) => {}
            }
        }
        Ok(())
    }

    async fn add(&mut self, value: &[u8]) -> Result<(), VerbError> {
        let size = value.len() + RECORD_OVERHEAD;
        let batch_size = self.settings.producer.batch_size;
        if self.open.as_ref().is_some_and(|open| open.bytes + size > batch_size) {
            self.seal().await?;
        }
        let now = Instant::now();
        if self.open.is_none() {
            self.open = self.next_batch(now);
        }
        let linger = self.settings.linger;
        let Some(open) = &mut self.open else { return Ok(()) };
        open.builder.append(Millis(now_ms()), None, Some(value));
        open.bytes += size;
        open.value_bytes += u64::try_from(value.len()).unwrap_or(u64::MAX);
        open.made.push(now);
        let due = now.duration_since(open.since) >= linger;
        let free = self.lanes.get(&open.leader).is_some_and(Lane::is_free);
        if open.bytes >= batch_size || (due && free) {
            self.seal().await?;
        }
        Ok(())
    }

    fn next_batch(&mut self, now: Instant) -> Option<Open> {
        let (partition, leader) = *self.leaders.get(self.turn.checked_rem(self.leaders.len())?)?;
        self.turn = self.turn.wrapping_add(1);
        let builder = BatchBuilder::new(self.settings.producer.compression);
        let bytes = wire::batch::HEADER_LEN;
        Some(Open { partition, leader, builder, bytes, value_bytes: 0, made: Vec::new(), since: now })
    }

    /// Sends what was gathered.
    async fn seal(&mut self) -> Result<(), VerbError> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let mut builder = open.builder;
        let count = builder.count();
        if let Some((id, epoch)) = self.identity {
            let sequence = self.sequences.entry(open.partition).or_default();
            builder = builder.producer(id, epoch, *sequence);
            *sequence = wire::batch::sequence_after(*sequence, count);
        }
        let what = format!("partition {}", open.partition);
        let batch = builder.build().map_err(|error| ClusterError::Batch { what, error })?;
        let sealed = Sealed {
            partition: open.partition,
            bytes: batch.bytes,
            made: open.made,
            value_bytes: open.value_bytes,
        };
        self.under_way += 1;
        let sent = match self.lanes.get(&open.leader) {
            Some(lane) => lane.send(sealed).await,
            None => false,
        };
        // Why a lane has ended lies in the reports.
        if sent { self.take_reports() } else { self.finish().await }
    }

    /// Takes the reports that lie there.
    fn take_reports(&mut self) -> Result<(), VerbError> {
        while let Ok(report) = self.reports.try_recv() {
            self.take(Some(report))?;
        }
        Ok(())
    }

    fn take(&mut self, report: Option<Report>) -> Result<(), VerbError> {
        let ended = || VerbError::Failed("a connection to a leader has ended".to_owned());
        let done = report.ok_or_else(ended)?;
        let done = done.map_err(|error| VerbError::Failed(format!("a leader does not answer: {error}")))?;
        self.under_way = self.under_way.saturating_sub(1);
        if done.code != 0 {
            self.last_code = done.code;
        }
        self.stats.done(&done)
    }

    /// Sends what is left and waits for all answers.
    async fn finish(&mut self) -> Result<(), VerbError> {
        if self.open.is_some() {
            Box::pin(self.seal()).await?;
        }
        while self.under_way > 0 {
            let report = self.reports.recv().await;
            self.take(report)?;
        }
        Ok(())
    }
}

/// Waits until then; forever if there is no such time.
async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: ProducerPerfOptions,
    }

    fn parse(line: &str) -> Result<ProducerPerfOptions, String> {
        let words = ["perf", "--topic", "t"].into_iter().chain(line.split_whitespace());
        Line::try_parse_from(words).map(|line| line.options).map_err(|error| error.to_string())
    }

    #[test]
    fn properties_name_the_cluster_and_how_it_is_produced_to() {
        let line = "--num-records 5 --throughput -1 --record-size 10 --producer-props bootstrap.servers=h:1 acks=1 \
                    linger.ms=7";
        let settings = Settings::read(&parse(line).unwrap()).unwrap();
        assert_eq!(settings.servers, ["h:1"]);
        assert_eq!((settings.producer.acks, settings.linger.as_millis()), (1, 7));
    }

    #[test]
    fn there_is_exactly_one_payload() {
        for wrong in [
            "--num-records 5 --throughput -1",
            "--num-records 5 --throughput -1 --record-size 1 --payload-monotonic",
            "--num-records 5 --record-size 1",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        let line = "--num-records 5 --throughput -1 --payload-monotonic --transaction-duration-ms 5";
        assert!(Settings::read(&parse(line).unwrap()).is_err());
    }
}
