//! `blumfeld log-dirs`: what lies in the log directories of brokers, as kafka-log-dirs tells (KIP-113, KIP-827).

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;

use serde_json::{Value, json};
use wire::error_code::ErrorCode;
use wire::messages::describe_log_dirs_response::DescribeLogDirsResult;
use wire::messages::{DescribeLogDirsRequest, DescribeLogDirsResponse};

use super::{block_on, connect};
use crate::cluster::settings::ConnectOptions;
use crate::cluster::{Cluster, ClusterError, error_name, java_class};
use crate::error::VerbError;
use crate::output::{Format, FormatOption, Table, join_ids, stdout, write_json};

/// The options of the verb.
#[derive(Debug, clap::Args)]
pub(crate) struct LogDirsOptions {
    /// Brokers to ask first, separated by commas
    #[arg(long, value_name = "HOST:PORT,...", default_value = "localhost:9092")]
    bootstrap_server: String,
    /// A file of client properties
    #[arg(long, value_name = "FILE")]
    command_config: Option<PathBuf>,
    #[command(flatten)]
    format: FormatOption,
    /// Describe the directories
    #[arg(long, required = true)]
    describe: bool,
    /// The brokers to ask; all without it
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    broker_list: Vec<String>,
    /// The topics to tell of; all without it
    #[arg(long, value_name = "TOPIC,...", value_delimiter = ',')]
    topic_list: Vec<String>,
}

/// What a broker said.
type Described = Vec<(i32, Vec<DescribeLogDirsResult>)>;

/// Runs the verb.
///
/// # Errors
/// See [`VerbError`].
pub(crate) fn run(options: &LogDirsOptions) -> Result<(), VerbError> {
    block_on(async {
        // Not the common options: `--broker-list` means something else here.
        let options_of_client = ConnectOptions {
            bootstrap_server: options.bootstrap_server.clone(),
            command_config: options.command_config.clone(),
        };
        let mut cluster = connect(&options_of_client, "blumfeld-log-dirs").await?;
        let brokers = brokers(&cluster, &options.broker_list)?;
        let format = options.format.get();
        let mut out = stdout();
        if format == Format::Kafka {
            writeln!(out, "Querying brokers for log directories information")?;
            out.flush()?;
        }
        let described = describe(&mut cluster, &brokers, &topics(&options.topic_list)).await?;
        print(&described, format, &mut out)?;
        Ok(out.flush()?)
    })
}

/// The topics that are named; none if all are meant.
fn topics(list: &[String]) -> BTreeSet<&str> {
    list.iter().map(|topic| topic.trim()).filter(|topic| !topic.is_empty()).collect()
}

fn brokers(cluster: &Cluster, list: &[String]) -> Result<Vec<i32>, VerbError> {
    let named: Vec<&str> = list.iter().map(|id| id.trim()).filter(|id| !id.is_empty()).collect();
    if named.is_empty() {
        return Ok(cluster.brokers().keys().copied().collect());
    }
    let mut ids = BTreeSet::new();
    for id in named {
        let wrong = |_| VerbError::Usage(format!("--broker-list: {id} is no broker's number"));
        ids.insert(id.parse::<i32>().map_err(wrong)?);
    }
    let missing: Vec<i32> = ids.iter().copied().filter(|id| !cluster.brokers().contains_key(id)).collect();
    if !missing.is_empty() {
        let all: Vec<i32> = cluster.brokers().keys().copied().collect();
        return Err(VerbError::Usage(format!(
            "The given brokers do not exist from --broker-list: {}. Current existent brokers: {}",
            join_ids(&missing),
            join_ids(&all)
        )));
    }
    Ok(ids.into_iter().collect())
}

/// Asks each broker. A broker is asked for all topics, and tells those that are meant.
async fn describe(
    cluster: &mut Cluster,
    brokers: &[i32],
    topics: &BTreeSet<&str>,
) -> Result<Described, VerbError> {
    let mut described = Vec::new();
    for broker in brokers {
        let response: DescribeLogDirsResponse =
            cluster.call_broker(*broker, &DescribeLogDirsRequest { topics: None }).await?;
        if response.error_code != 0 {
            let what = format!("log directories of broker {broker}");
            return Err(ClusterError::refused(what, response.error_code, None).into());
        }
        let mut results = response.results;
        results.sort_unstable_by(|a, b| a.log_dir.cmp(&b.log_dir));
        for dir in &mut results {
            dir.topics.retain(|topic| topics.is_empty() || topics.contains(topic.name.as_str()));
            dir.topics.sort_unstable_by(|a, b| a.name.cmp(&b.name));
            for topic in &mut dir.topics {
                topic.partitions.sort_unstable_by_key(|partition| partition.partition_index);
            }
        }
        described.push((*broker, results));
    }
    Ok(described)
}

fn print(described: &Described, format: Format, out: &mut dyn Write) -> Result<(), VerbError> {
    match format {
        Format::Kafka => {
            let ids: Vec<i32> = described.iter().map(|(broker, _)| *broker).collect();
            writeln!(out, "Received log directory information from brokers {}", join_ids(&ids))?;
            write_json(out, &to_json(described))?;
        }
        Format::Json => write_json(out, &to_json(described))?,
        Format::Table => print_tables(described, out)?,
    }
    Ok(())
}

fn print_tables(described: &Described, out: &mut dyn Write) -> Result<(), VerbError> {
    let known = |bytes: i64| if bytes < 0 { "-".to_owned() } else { bytes.to_string() };
    let mut dirs =
        Table::new(["BROKER", "DIRECTORY", "PARTITIONS", "BYTES", "DISK BYTES", "FREE BYTES", "ERROR"]);
    let mut logs = Table::new(["BROKER", "DIRECTORY", "PARTITION", "BYTES", "LAG", "FUTURE"]);
    for (broker, results) in described {
        for dir in results {
            let partitions = || dir.topics.iter().flat_map(|topic| &topic.partitions);
            let bytes = partitions().map(|partition| partition.partition_size).fold(0, i64::saturating_add);
            let error = if dir.error_code == 0 { String::new() } else { error_name(dir.error_code) };
            dirs.push([
                broker.to_string(),
                dir.log_dir.to_string(),
                partitions().count().to_string(),
                bytes.to_string(),
                known(dir.total_bytes),
                known(dir.usable_bytes),
                error,
            ]);
            for topic in &dir.topics {
                for partition in &topic.partitions {
                    logs.push([
                        broker.to_string(),
                        dir.log_dir.to_string(),
                        format!("{}-{}", topic.name, partition.partition_index),
                        partition.partition_size.to_string(),
                        partition.offset_lag.to_string(),
                        if partition.is_future_key { "yes".to_owned() } else { String::new() },
                    ]);
                }
            }
        }
    }
    dirs.write(out)?;
    writeln!(out)?;
    Ok(logs.write(out)?)
}

/// As Kafka's tool writes it, members in its order.
fn to_json(described: &Described) -> Value {
    let directory = |dir: &DescribeLogDirsResult| {
        let mut partitions = Vec::new();
        for topic in &dir.topics {
            for partition in &topic.partitions {
                partitions.push(json!({
                    "partition": format!("{}-{}", topic.name, partition.partition_index),
                    "size": partition.partition_size,
                    "offsetLag": partition.offset_lag,
                    "isFuture": partition.is_future_key,
                }));
            }
        }
        let error = (dir.error_code != 0).then(|| {
            java_class(ErrorCode::from_code(dir.error_code).unwrap_or(ErrorCode::UnknownServerError))
        });
        json!({ "partitions": partitions, "error": error, "logDir": dir.log_dir.as_str() })
    };
    let broker = |(broker, results): &(i32, Vec<DescribeLogDirsResult>)| json!({ "broker": broker, "logDirs": results.iter().map(directory).collect::<Vec<_>>() });
    json!({ "brokers": described.iter().map(broker).collect::<Vec<_>>(), "version": 1 })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use wire::Str;
    use wire::messages::describe_log_dirs_response::{DescribeLogDirsPartition, DescribeLogDirsTopic};

    use super::*;

    #[test]
    fn directories_in_three_forms() {
        let partition = DescribeLogDirsPartition {
            partition_index: 2,
            partition_size: 322,
            offset_lag: 0,
            is_future_key: false,
        };
        let good = DescribeLogDirsResult {
            log_dir: Str::from("/d1"),
            topics: vec![DescribeLogDirsTopic { name: Str::from("t"), partitions: vec![partition] }],
            total_bytes: 1000,
            usable_bytes: 500,
            ..Default::default()
        };
        let bad = DescribeLogDirsResult {
            error_code: ErrorCode::KafkaStorageError.code(),
            log_dir: Str::from("/d2"),
            total_bytes: -1,
            usable_bytes: -1,
            ..Default::default()
        };
        let described = vec![(0, vec![good, bad])];
        let print = |format| {
            let mut out = Vec::new();
            print(&described, format, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        expect![[r#"
            Received log directory information from brokers 0
            {"brokers":[{"broker":0,"logDirs":[{"partitions":[{"partition":"t-2","size":322,"offsetLag":0,"isFuture":false}],"error":null,"logDir":"/d1"},{"partitions":[],"error":"org.apache.kafka.common.errors.KafkaStorageException","logDir":"/d2"}]}],"version":1}
        "#]]
        .assert_eq(&print(Format::Kafka));
        expect![[r#"
            BROKER  DIRECTORY  PARTITIONS  BYTES  DISK BYTES  FREE BYTES  ERROR
            0       /d1        1           322    1000        500
            0       /d2        0           0      -           -           KAFKA_STORAGE_ERROR

            BROKER  DIRECTORY  PARTITION  BYTES  LAG  FUTURE
            0       /d1        t-2        322    0
        "#]]
        .assert_eq(&print(Format::Table));
    }

    #[test]
    fn an_empty_list_means_all_topics() {
        assert!(topics(&[String::new()]).is_empty());
        assert_eq!(topics(&["a ".to_owned(), "b".to_owned()]), BTreeSet::from(["a", "b"]));
    }
}
