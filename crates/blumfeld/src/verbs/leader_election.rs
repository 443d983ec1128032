//! `blumfeld leader-election`: asks the controller to elect leaders, as kafka-leader-election does (KIP-183, KIP-460).
//!
//! A leader that is already the right one is no failure; a partition that cannot get one is.

use std::io::Write;
use std::path::PathBuf;

use serde_json::json;
use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::elect_leaders_request::TopicPartitions;
use wire::messages::{ElectLeadersRequest, ElectLeadersResponse};
use wire::types::TopicPartition;

use super::{block_on, connect, partition_list};
use crate::cluster::leaders::by_topic;
use crate::cluster::settings::ConnectOptions;
use crate::cluster::{ClusterError, error_name, java_text};
use crate::error::VerbError;
use crate::output::{Format, FormatOption, Table, stdout, write_json};

/// The options of the verb.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["topic", "path_to_json_file", "all_topic_partitions"]))]
pub(crate) struct LeaderElectionOptions {
    #[command(flatten)]
    connect: ConnectOptions,
    #[command(flatten)]
    format: FormatOption,
    /// preferred: the first replica, if another one leads; unclean: any replica, if none leads
    #[arg(long, value_enum, ignore_case = true, value_name = "TYPE")]
    election_type: ElectionType,
    /// The topic of the partition
    #[arg(long, requires = "partition")]
    topic: Option<String>,
    /// The partition
    #[arg(long, value_name = "N", requires = "topic", conflicts_with_all = ["path_to_json_file", "all_topic_partitions"])]
    partition: Option<i32>,
    /// A file of partitions: {"partitions": [{"topic": "t", "partition": 0}]}
    #[arg(long, value_name = "FILE")]
    path_to_json_file: Option<PathBuf>,
    /// All partitions that such an election concerns
    #[arg(long)]
    all_topic_partitions: bool,
}

/// Who may be elected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ElectionType {
    Preferred,
    Unclean,
}

impl ElectionType {
    fn id(self) -> i8 {
        match self {
            Self::Preferred => 0,
            Self::Unclean => 1,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Preferred => "PREFERRED",
            Self::Unclean => "UNCLEAN",
        }
    }
}

/// What became of a partition: an error code and the controller's text.
#[derive(Debug)]
struct Elected {
    partition: TopicPartition,
    code: i16,
    message: Option<String>,
}

/// Runs the verb.
///
/// # Errors
/// See [`VerbError`].
pub(crate) fn run(options: &LeaderElectionOptions) -> Result<(), VerbError> {
    let partitions = partitions(options)?;
    let election = options.election_type;
    block_on(async {
        let mut cluster = connect(&options.connect, "blumfeld-leader-election").await?;
        let timeout = cluster.settings().request_timeout.as_millis();
        let request = ElectLeadersRequest {
            election_type: election.id(),
            topic_partitions: partitions.as_deref().map(to_request),
            timeout_ms: i32::try_from(timeout).unwrap_or(i32::MAX),
        };
        let code = |response: &ElectLeadersResponse| response.error_code;
        let response = cluster.call_controller(&request, code).await?;
        if response.error_code != 0 {
            return Err(ClusterError::refused("leader election", response.error_code, None).into());
        }
        let mut out = stdout();
        let elected = read(response);
        print(&elected, election, options.format.get(), &mut out)?;
        out.flush()?;
        match elected.iter().filter(|it| it.failed()).count() {
            0 => Ok(()),
            failed => Err(VerbError::Failed(format!("{failed} replica(s) could not be elected"))),
        }
    })
}

/// The partitions that are named; `None` if all are meant.
fn partitions(options: &LeaderElectionOptions) -> Result<Option<Vec<TopicPartition>>, VerbError> {
    if let Some(path) = &options.path_to_json_file {
        return Ok(Some(partition_list::read(path, None)?.into_keys().collect()));
    }
    let named = options.topic.as_deref().zip(options.partition);
    Ok(named.map(|(topic, partition)| vec![TopicPartition::new(topic, partition)]))
}

fn to_request(partitions: &[TopicPartition]) -> Vec<TopicPartitions> {
    let topics = by_topic(partitions).into_iter();
    topics.map(|(topic, partitions)| TopicPartitions { topic: Str::from(topic), partitions }).collect()
}

fn read(response: ElectLeadersResponse) -> Vec<Elected> {
    let mut elected = Vec::new();
    for topic in response.replica_election_results {
        for result in topic.partition_result {
            elected.push(Elected {
                partition: TopicPartition::new(topic.topic.as_str(), result.partition_id),
                code: result.error_code,
                message: result.error_message.map(|text| text.as_str().to_owned()),
            });
        }
    }
    elected.sort_by(|a, b| a.partition.cmp(&b.partition));
    elected
}

impl Elected {
    fn not_needed(&self) -> bool {
        self.code == ErrorCode::ElectionNotNeeded.code()
    }

    fn failed(&self) -> bool {
        self.code != 0 && !self.not_needed()
    }

    fn outcome(&self) -> &'static str {
        match self.code {
            0 => "elected",
            _ if self.not_needed() => "not needed",
            _ => "failed",
        }
    }
}

fn print(
    elected: &[Elected],
    election: ElectionType,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), VerbError> {
    let name = election.name();
    match format {
        Format::Kafka => {
            let list = |of: &dyn Fn(&&Elected) -> bool| {
                elected.iter().filter(of).map(|it| it.partition.to_string()).collect::<Vec<_>>().join(", ")
            };
            let (new, kept) = (list(&|it| it.code == 0), list(&|it| it.not_needed()));
            if !new.is_empty() {
                writeln!(out, "Successfully completed leader election ({name}) for partitions {new}")?;
            }
            if !kept.is_empty() {
                writeln!(out, "Valid replica already elected for partitions {kept}")?;
            }
            for it in elected.iter().filter(|it| it.failed()) {
                let (partition, text) = (&it.partition, java_text(it.code, it.message.as_deref()));
                writeln!(
                    out,
                    "Error completing leader election ({name}) for partition: {partition}: {text}"
                )?;
            }
        }
        Format::Table => {
            let mut table = Table::new(["TOPIC", "PARTITION", "ELECTION", "ERROR"]);
            for it in elected {
                let error = if it.failed() { error_name(it.code) } else { String::new() };
                let TopicPartition { topic, partition } = &it.partition;
                table.push([topic.to_string(), partition.to_string(), it.outcome().to_owned(), error]);
            }
            table.write(out)?;
        }
        Format::Json => {
            let row = |it: &Elected| {
                json!({
                    "topic": it.partition.topic.as_str(),
                    "partition": it.partition.partition,
                    "election": it.outcome(),
                    "error": it.failed().then(|| error_name(it.code)),
                    "message": it.message,
                })
            };
            write_json(out, &elected.iter().map(row).collect::<Vec<_>>())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use expect_test::expect;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: LeaderElectionOptions,
    }

    fn parse(line: &str) -> Result<LeaderElectionOptions, clap::Error> {
        let words = std::iter::once("leader-election").chain(line.split(' '));
        Line::try_parse_from(words).map(|line| line.options)
    }

    #[test]
    fn partitions_are_named_in_one_way() {
        let one = parse("--election-type PREFERRED --topic t --partition 3").unwrap();
        assert_eq!(partitions(&one).unwrap(), Some(vec![TopicPartition::new("t", 3)]));
        let all = parse("--election-type unclean --all-topic-partitions").unwrap();
        assert_eq!((partitions(&all).unwrap(), all.election_type), (None, ElectionType::Unclean));
        for wrong in [
            "--election-type preferred",
            "--election-type preferred --topic t",
            "--election-type preferred --all-topic-partitions --partition 1",
            "--election-type preferred --all-topic-partitions --topic t --partition 1",
            "--election-type odd --all-topic-partitions",
            "--all-topic-partitions",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_was_elected_what_was_right_already_and_what_failed() {
        let of = |index, code: ErrorCode| Elected {
            partition: TopicPartition::new("t", index),
            code: code.code(),
            message: (code == ErrorCode::PreferredLeaderNotAvailable)
                .then(|| "It is not in the ISR.".to_owned()),
        };
        let elected = [
            of(0, ErrorCode::None),
            of(1, ErrorCode::ElectionNotNeeded),
            of(2, ErrorCode::PreferredLeaderNotAvailable),
            of(3, ErrorCode::None),
        ];
        let print = |format| {
            let mut out = Vec::new();
            print(&elected, ElectionType::Preferred, format, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        expect![[r#"
            Successfully completed leader election (PREFERRED) for partitions t-0, t-3
            Valid replica already elected for partitions t-1
            Error completing leader election (PREFERRED) for partition: t-2: org.apache.kafka.common.errors.PreferredLeaderNotAvailableException: It is not in the ISR.
        "#]]
        .assert_eq(&print(Format::Kafka));
        expect![[r#"
            TOPIC  PARTITION  ELECTION    ERROR
            t      0          elected
            t      1          not needed
            t      2          failed      PREFERRED_LEADER_NOT_AVAILABLE
            t      3          elected
        "#]]
        .assert_eq(&print(Format::Table));
    }
}
