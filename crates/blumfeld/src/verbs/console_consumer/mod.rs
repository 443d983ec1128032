//! `blumfeld console-consumer`: prints the records of a topic as kafka-console-consumer does, without a group:
//! it reads all partitions, or the one that is named.

mod print;
mod settings;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use tokio::time::{Instant, timeout};
use wire::types::Offset;

use super::block_on;
use crate::cluster::fetcher::Fetcher;
use crate::cluster::offsets::{Place, leaders};
use crate::cluster::settings::ConnectOptions;
use crate::cluster::{Cluster, Topics};
use crate::error::VerbError;
use crate::output::{StreamFormatOption, stdout};
use print::Printer;
use settings::{Settings, Start};

/// The options of the verb.
#[derive(Debug, clap::Args)]
pub(crate) struct ConsoleConsumerOptions {
    #[command(flatten)]
    connect: ConnectOptions,
    #[command(flatten)]
    format: StreamFormatOption,
    /// The topic to read
    #[arg(long)]
    topic: String,
    /// Read only this partition
    #[arg(long, value_name = "N")]
    partition: Option<i32>,
    /// Where to begin in the partition: a number, earliest or latest
    #[arg(long, value_name = "OFFSET", requires = "partition")]
    offset: Option<String>,
    /// Begin with the first record there is rather than with the next one to come
    #[arg(long)]
    from_beginning: bool,
    /// End after this many records
    #[arg(long, value_name = "N")]
    max_messages: Option<u64>,
    /// End when no record has come for this many milliseconds
    #[arg(long, value_name = "MS")]
    timeout_ms: Option<u64>,
    /// `read_uncommitted` or `read_committed`
    #[arg(long, value_name = "LEVEL")]
    isolation_level: Option<String>,
    /// A property of the consumer, such as fetch.max.bytes=1048576
    #[arg(long, value_name = "KEY=VALUE")]
    consumer_property: Vec<String>,
    /// How records are printed: print.timestamp, print.key, print.offset, print.partition, print.headers,
    /// print.value, key.separator, line.separator, headers.separator, null.literal
    #[arg(long, value_name = "KEY=VALUE")]
    property: Vec<String>,
    /// A file of such properties
    #[arg(long, value_name = "FILE")]
    formatter_config: Option<PathBuf>,
    /// Print the number of records even if an error ends the verb
    #[arg(long)]
    enable_systest_events: bool,
    /// Consumer groups are not served yet
    #[arg(long, value_name = "ID")]
    group: Option<String>,
}

/// Runs the verb.
///
/// # Errors
/// See [`VerbError`].
pub(crate) fn run(options: &ConsoleConsumerOptions) -> Result<(), VerbError> {
    let settings = Settings::read(options)?;
    let servers = options.connect.servers()?;
    block_on(async {
        let mut cluster = Cluster::connect(servers, settings.client.clone()).await?;
        let positions = positions(&mut cluster, options, &settings).await?;
        let fetcher = Fetcher::new(cluster, &options.topic, settings.fetch.clone(), positions);
        consume(fetcher, options, &settings).await
    })
}

/// The first offset of each partition to read.
async fn positions(
    cluster: &mut Cluster,
    options: &ConsoleConsumerOptions,
    settings: &Settings,
) -> Result<BTreeMap<i32, Offset>, VerbError> {
    let metadata = cluster.metadata(Topics::Named { name: &options.topic, create: false }).await?;
    let known = metadata.topics.first().map(leaders).unwrap_or_default();
    if known.is_empty() {
        return Err(VerbError::Failed(format!("topic {} does not exist", options.topic)));
    }
    let partitions: Vec<i32> = match options.partition {
        None => known.keys().copied().collect(),
        Some(partition) if known.contains_key(&partition) => vec![partition],
        Some(partition) => {
            return Err(VerbError::Failed(format!("topic {} has no partition {partition}", options.topic)));
        }
    };
    let place = match settings.start {
        Start::At(offset) => {
            return Ok(partitions.into_iter().map(|partition| (partition, offset)).collect());
        }
        Start::FromEnd(back) => {
            let ends = cluster.offsets(&options.topic, &partitions, Place::Latest, settings.fetch.isolation);
            let ends = ends.await?;
            return Ok(ends
                .into_iter()
                .map(|(p, end)| (p, Offset(end.0.saturating_sub(back).max(0))))
                .collect());
        }
        Start::Place(place) => place,
    };
    Ok(cluster.offsets(&options.topic, &partitions, place, settings.fetch.isolation).await?)
}

async fn consume(
    mut fetcher: Fetcher,
    options: &ConsoleConsumerOptions,
    settings: &Settings,
) -> Result<(), VerbError> {
    let mut out = stdout();
    let printer = Printer::new(options.topic.clone(), options.format.output, &settings.print);
    let most = options.max_messages.unwrap_or(u64::MAX);
    let mut count = 0_u64;
    let mut last = Instant::now();
    while count < most {
        let records = match settings.patience {
            None => fetcher.next().await?,
            Some(patience) => {
                let rest = patience.saturating_sub(last.elapsed());
                match timeout(rest, fetcher.next()).await {
                    Ok(records) => records?,
                    Err(_) => break,
                }
            }
        };
        if !records.is_empty() {
            last = Instant::now();
        }
        for fetched in records {
            if count >= most {
                break;
            }
            printer.print(&mut out, &fetched)?;
            count += 1;
        }
        out.flush()?;
    }
    out.flush()?;
    eprintln!("Processed a total of {count} messages");
    Ok(())
}
