//! `blumfeld delete-records`: moves the log start offset of partitions forward, as kafka-delete-records does (KIP-107).

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use serde_json::json;
use wire::Str;
use wire::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use wire::messages::{DeleteRecordsRequest, DeleteRecordsResponse};
use wire::types::{Offset, TopicPartition};

use super::{block_on, connect, partition_list};
use crate::cluster::leaders::{ByPartition, LeaderQuestion, OfLeader, by_topic};
use crate::cluster::settings::ConnectOptions;
use crate::error::VerbError;
use crate::output::{Format, FormatOption, Table, stdout, write_json};

/// The options of the verb.
#[derive(Debug, clap::Args)]
pub(crate) struct DeleteRecordsOptions {
    #[command(flatten)]
    connect: ConnectOptions,
    #[command(flatten)]
    format: FormatOption,
    /// A file with the first offset to keep of each partition; -1 keeps none:
    /// {"partitions": [{"topic": "t", "partition": 0, "offset": 1}], "version": 1}
    #[arg(long, value_name = "FILE")]
    offset_json_file: PathBuf,
}

/// Runs the verb.
///
/// # Errors
/// See [`VerbError`].
pub(crate) fn run(options: &DeleteRecordsOptions) -> Result<(), VerbError> {
    let offsets = partition_list::read(&options.offset_json_file, Some("offset"))?;
    block_on(async {
        let mut out = stdout();
        let format = options.format.get();
        let mut cluster = connect(&options.connect, "blumfeld-delete-records").await?;
        if format == Format::Kafka {
            writeln!(out, "Executing records delete operation")?;
            out.flush()?;
        }
        let timeout = cluster.settings().request_timeout.as_millis();
        let timeout_ms = i32::try_from(timeout).unwrap_or(i32::MAX);
        let partitions: Vec<TopicPartition> = offsets.keys().cloned().collect();
        let deleted = cluster.ask_leaders(&Deletion { offsets, timeout_ms }, partitions).await?;
        print(&deleted, format, &mut out)?;
        Ok(out.flush()?)
    })
}

/// The request to delete records below an offset; a leader tells the new low watermark.
struct Deletion {
    offsets: BTreeMap<TopicPartition, i64>,
    timeout_ms: i32,
}

impl LeaderQuestion for Deletion {
    type Request = DeleteRecordsRequest;
    type Told = Offset;

    fn least_version(&self) -> i16 {
        0
    }

    fn subject(&self) -> &'static str {
        "deletion of records"
    }

    fn request(&self, partitions: &[TopicPartition]) -> DeleteRecordsRequest {
        let topics = by_topic(partitions).into_iter().map(|(name, indexes)| {
            let partition = |partition_index| DeleteRecordsPartition {
                partition_index,
                offset: self
                    .offsets
                    .get(&TopicPartition::new(name, partition_index))
                    .copied()
                    .unwrap_or_default(),
            };
            DeleteRecordsTopic {
                name: Str::from(name),
                partitions: indexes.into_iter().map(partition).collect(),
            }
        });
        DeleteRecordsRequest { topics: topics.collect(), timeout_ms: self.timeout_ms }
    }

    fn answers(&self, response: DeleteRecordsResponse) -> Vec<OfLeader<Offset>> {
        let topics = response.topics.into_iter();
        let answers = topics.flat_map(|topic| {
            let name = topic.name;
            topic.partitions.into_iter().map(move |answer| OfLeader {
                partition: TopicPartition::new(name.as_str(), answer.partition_index),
                code: answer.error_code,
                told: Offset(answer.low_watermark),
            })
        });
        answers.collect()
    }
}

fn print(deleted: &ByPartition<Offset>, format: Format, out: &mut dyn Write) -> Result<(), VerbError> {
    match format {
        Format::Kafka => {
            writeln!(out, "Records delete operation completed:")?;
            for (partition, result) in deleted {
                match result {
                    Ok(offset) => writeln!(out, "partition: {partition}\tlow_watermark: {offset}")?,
                    Err(error) => writeln!(out, "partition: {partition}\terror: {}", error.java_text())?,
                }
            }
        }
        Format::Table => {
            let mut table = Table::new(["TOPIC", "PARTITION", "LOG START", "ERROR"]);
            for (TopicPartition { topic, partition }, result) in deleted {
                let (offset, error) = match result {
                    Ok(offset) => (offset.to_string(), String::new()),
                    Err(error) => ("-".to_owned(), error.to_string()),
                };
                table.push([topic.to_string(), partition.to_string(), offset, error]);
            }
            table.write(out)?;
        }
        Format::Json => {
            let row = |(at, result): (&TopicPartition, &Result<Offset, _>)| {
                json!({
                    "topic": at.topic.as_str(),
                    "partition": at.partition,
                    "lowWatermark": result.as_ref().ok().map(|offset| offset.0),
                    "error": result.as_ref().err().map(ToString::to_string),
                })
            };
            write_json(out, &deleted.iter().map(row).collect::<Vec<_>>())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use wire::error_code::ErrorCode;

    use super::*;
    use crate::cluster::ClusterError;

    #[test]
    fn each_partition_is_told_with_its_low_watermark_or_its_error() {
        let refused = ClusterError::refused("t-1", ErrorCode::OffsetOutOfRange.code(), None);
        let deleted = ByPartition::from([
            (TopicPartition::new("t", 0), Ok(Offset(30))),
            (TopicPartition::new("t", 1), Err(refused)),
        ]);
        let print = |format| {
            let mut out = Vec::new();
            print(&deleted, format, &mut out).unwrap();
            String::from_utf8(out).unwrap().replace('\t', "⇥")
        };
        expect![[r#"
            Records delete operation completed:
            partition: t-0⇥low_watermark: 30
            partition: t-1⇥error: org.apache.kafka.common.errors.OffsetOutOfRangeException: The offset lies outside the log of this partition.
        "#]]
        .assert_eq(&print(Format::Kafka));
        expect![[r#"
            TOPIC  PARTITION  LOG START  ERROR
            t      0          30
            t      1          -          t-1: The offset lies outside the log of this partition (OFFSET_OUT_OF_RANGE)
        "#]]
        .assert_eq(&print(Format::Table));
        expect![[r#"
            [{"topic":"t","partition":0,"lowWatermark":30,"error":null},{"topic":"t","partition":1,"lowWatermark":null,"error":"t-1: The offset lies outside the log of this partition (OFFSET_OUT_OF_RANGE)"}]
        "#]]
        .assert_eq(&print(Format::Json));
    }

    #[test]
    fn the_request_carries_the_offset_of_each_partition() {
        let partitions = [TopicPartition::new("t", 0), TopicPartition::new("t", 3)];
        let offsets = partitions.iter().cloned().zip([7, -1]).collect();
        let request = Deletion { offsets, timeout_ms: 5 }.request(&partitions);
        let told: Vec<(i32, i64)> = request
            .topics
            .iter()
            .flat_map(|t| &t.partitions)
            .map(|p| (p.partition_index, p.offset))
            .collect();
        assert_eq!((told, request.timeout_ms), (vec![(0, 7), (3, -1)], 5));
    }
}
