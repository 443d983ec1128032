//! `blumfeld end-to-end-latency`: how long a record takes from the producer to a reader, one after the other, as
//! kafka-e2e-latency measures it.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use wire::types::TopicPartition;

use super::latencies::Latencies;
use super::{block_on, now_ms};
use crate::cluster::fetcher::{FetchSettings, Fetcher};
use crate::cluster::offsets::Place;
use crate::cluster::producer::{NewRecord, Producer, ProducerSettings};
use crate::cluster::settings::{ClientSettings, ConnectOptions};
use crate::cluster::{Cluster, Topics};
use crate::error::VerbError;
use crate::output::{StreamFormat, StreamFormatOption, stdout, write_json};

/// How long a record may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often a record's time is printed.
const EVERY: u64 = 1000;

/// The options of the verb.
#[derive(Debug, clap::Args)]
pub(crate) struct EndToEndLatencyOptions {
    /// Brokers to ask first, separated by commas
    broker_list: String,
    /// The topic; it is created if it is missing and the brokers create topics
    topic: String,
    /// How many records
    num_messages: u64,
    /// 1 or all
    #[arg(value_parser = ["1", "all", "-1", "0"], allow_hyphen_values = true)]
    producer_acks: String,
    /// Bytes of each record
    message_size_bytes: usize,
    /// A file of client properties
    properties_file: Option<PathBuf>,
    #[command(flatten)]
    format: StreamFormatOption,
}

/// Runs the verb.
///
/// # Errors
/// See [`VerbError`].
pub(crate) fn run(options: &EndToEndLatencyOptions) -> Result<(), VerbError> {
    if options.producer_acks == "0" {
        let text = "Latency testing requires synchronous acknowledgement. Please use 1 or all";
        return Err(VerbError::Usage(text.to_owned()));
    }
    let connect = ConnectOptions {
        bootstrap_server: options.broker_list.clone(),
        command_config: options.properties_file.clone(),
    };
    let mut properties = connect.properties(&[])?;
    properties.take("acks");
    properties.set_default("acks", options.producer_acks.as_str());
    let client = ClientSettings::take(&mut properties, "end-to-end-latency")?;
    let producer = ProducerSettings::take(&mut properties)?;
    let fetch = FetchSettings::take(&mut properties, "latest")?;
    properties.warn_rest();
    let servers = connect.servers()?;
    block_on(async {
        let cluster = Cluster::connect(servers.clone(), client.clone()).await?;
        let producer = Producer::open(cluster, &options.topic, producer, PATIENCE).await?;
        let cluster = Cluster::connect(servers, client).await?;
        let fetcher = open(cluster, &options.topic, fetch).await?;
        measure(options, producer, fetcher).await
    })
}

async fn open(mut cluster: Cluster, topic: &str, fetch: FetchSettings) -> Result<Fetcher, VerbError> {
    let metadata = cluster.metadata(Topics::Named { name: topic, create: false }).await?;
    let described = metadata.topics.iter().flat_map(|topic| &topic.partitions);
    let partitions: Vec<i32> = described.map(|partition| partition.partition_index).collect();
    let ends = cluster.offsets(topic, &partitions, Place::Latest, fetch.isolation).await?;
    let positions: BTreeMap<_, _> =
        ends.into_iter().map(|(index, end)| (TopicPartition::new(topic, index), end)).collect();
    Ok(Fetcher::new(cluster, fetch, positions))
}

async fn measure(
    options: &EndToEndLatencyOptions,
    mut producer: Producer,
    mut fetcher: Fetcher,
) -> Result<(), VerbError> {
    let mut latencies = Latencies::default();
    let kafka = options.format.output == StreamFormat::Kafka;
    for number in 0..options.num_messages {
        let mut value = number.to_string().into_bytes();
        value.resize(options.message_size_bytes, b'x');
        let record = NewRecord { key: None, value: Some(value.clone()), headers: Vec::new() };
        let start = Instant::now();
        producer.add(&record, now_ms())?;
        for sent in producer.flush().await? {
            sent.result?;
        }
        read_back(&mut fetcher, &value, &options.topic).await?;
        let time = start.elapsed();
        latencies.add(time);
        if kafka && number.is_multiple_of(EVERY) {
            let mut out = stdout();
            writeln!(out, "{number}\t{}", time.as_secs_f64() * 1000.0)?;
            out.flush()?;
        }
    }
    let mut out = stdout();
    let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|share| latencies.percentile_ms(share));
    if kafka {
        writeln!(out, "Avg latency: {:.4} ms", latencies.mean_ms())?;
        let [p50, p99, p999] = [p50, p99, p999].map(|millis| millis as u64);
        writeln!(out, "Percentiles: 50th = {p50}, 99th = {p99}, 99.9th = {p999}")?;
    } else {
        let mean = latencies.mean_ms();
        let latency =
            json!({ "mean": mean, "p50": p50, "p99": p99, "p999": p999, "max": latencies.max_ms() });
        write_json(&mut out, &json!({ "records": latencies.count(), "latencyMs": latency }))?;
    }
    Ok(out.flush()?)
}

/// Waits for the record, which must be the only one.
async fn read_back(fetcher: &mut Fetcher, value: &[u8], topic: &str) -> Result<(), VerbError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let records = fetcher.next().await?;
        match records.as_slice() {
            [] if Instant::now() >= deadline => {
                let seconds = PATIENCE.as_secs();
                return Err(VerbError::Failed(format!("a record did not come back within {seconds} s")));
            }
            [] => {}
            [one] if one.record.value.as_deref() == Some(value) => return Ok(()),
            _ => {
                return Err(VerbError::Failed(format!(
                    "other records came than the one that was produced: does somebody else produce to {topic}?"
                )));
            }
        }
    }
}
