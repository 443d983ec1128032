//! `blumfeld get-offsets`: where partitions begin and end, or where a time lies in them, as kafka-get-offsets tells.
//!
//! A partition that has no such offset is left out, as Kafka does; one whose offset cannot be had is told on stderr.

mod filter;

use std::io::Write;

use serde_json::json;
use wire::types::{Millis, Offset, TopicPartition};

use super::{block_on, connect};
use crate::cluster::offsets::{Isolation, Place};
use crate::cluster::settings::ConnectOptions;
use crate::cluster::{Cluster, Topics};
use crate::error::VerbError;
use crate::output::{Format, FormatOption, Table, stdout, write_json};
use filter::Filter;

/// The options of the verb.
#[derive(Debug, clap::Args)]
pub(crate) struct GetOffsetsOptions {
    #[command(flatten)]
    connect: ConnectOptions,
    #[command(flatten)]
    format: FormatOption,
    /// The topics, by a regular expression; all without it
    #[arg(long, value_name = "REGEX")]
    topic: Option<String>,
    /// Partitions of topics, such as topic1:1,topic2:0-3,topic3,topic4:5-,topic5:-3; upper bounds are exclusive
    #[arg(long, value_name = "REGEX:N-M,...")]
    topic_partitions: Option<String>,
    /// The partitions of each topic; all without it
    #[arg(long, value_name = "N,...")]
    partitions: Option<String>,
    /// Which offset: latest (-1), earliest (-2), max-timestamp (-3), earliest-local (-4), latest-tiered (-5), or the
    /// first one that is not older than a time in milliseconds since 1970
    #[arg(long, value_name = "TIME", default_value = "latest", allow_hyphen_values = true)]
    time: String,
    /// Leave out internal topics
    #[arg(long)]
    exclude_internal_topics: bool,
}

/// Runs the verb.
///
/// # Errors
/// See [`VerbError`].
pub(crate) fn run(options: &GetOffsetsOptions) -> Result<(), VerbError> {
    let place = parse_time(&options.time)?;
    let filter = Filter::read(
        options.topic.as_deref(),
        options.partitions.as_deref(),
        options.topic_partitions.as_deref(),
    )?;
    block_on(async {
        let mut cluster = connect(&options.connect, "blumfeld-get-offsets").await?;
        let partitions = matching(&mut cluster, &filter, options.exclude_internal_topics).await?;
        let mut found = Vec::new();
        for (partition, offset) in cluster.list_offsets(partitions, place, Isolation::ReadUncommitted).await?
        {
            match offset {
                Ok(Some(offset)) => found.push((partition, offset)),
                Ok(None) => {}
                Err(error) => {
                    eprintln!("Skip getting offsets for topic-partition {partition} due to error: {error}")
                }
            }
        }
        let mut out = stdout();
        print(&found, options.format.get(), &mut out)?;
        Ok(out.flush()?)
    })
}

fn parse_time(text: &str) -> Result<Place, VerbError> {
    Ok(match text {
        "latest" | "-1" => Place::Latest,
        "earliest" | "-2" => Place::Earliest,
        "max-timestamp" | "-3" => Place::MaxTimestamp,
        "earliest-local" | "-4" => Place::EarliestLocal,
        "latest-tiered" | "-5" => Place::LatestTiered,
        text => match text.parse::<i64>() {
            Ok(time) if time >= 0 => Place::Time(Millis(time)),
            _ => {
                return Err(VerbError::Usage(format!(
                    "Malformed time argument {text}. Please use -1 or latest / -2 or earliest / -3 or max-timestamp \
                     / -4 or earliest-local / -5 or latest-tiered, or a specified long format timestamp"
                )));
            }
        },
    })
}

/// The partitions of the cluster that the filter chooses.
async fn matching(
    cluster: &mut Cluster,
    filter: &Filter,
    exclude_internal: bool,
) -> Result<Vec<TopicPartition>, VerbError> {
    let metadata = cluster.metadata(Topics::All).await?;
    let mut chosen = Vec::new();
    for topic in metadata.topics.iter().filter(|topic| !(exclude_internal && topic.is_internal)) {
        let name = topic.name.as_deref().unwrap_or_default();
        let partitions = topic.partitions.iter().map(|partition| partition.partition_index);
        let partitions = partitions.filter(|partition| filter.holds(name, *partition));
        chosen.extend(partitions.map(|partition| TopicPartition::new(name, partition)));
    }
    if chosen.is_empty() {
        let text = "Could not match any topic-partitions with the specified filters";
        return Err(VerbError::Failed(text.to_owned()));
    }
    Ok(chosen)
}

fn print(found: &[(TopicPartition, Offset)], format: Format, out: &mut dyn Write) -> Result<(), VerbError> {
    match format {
        Format::Kafka => {
            for (TopicPartition { topic, partition }, offset) in found {
                writeln!(out, "{topic}:{partition}:{offset}")?;
            }
        }
        Format::Table => {
            let mut table = Table::new(["TOPIC", "PARTITION", "OFFSET"]);
            for (TopicPartition { topic, partition }, offset) in found {
                table.push([topic.to_string(), partition.to_string(), offset.to_string()]);
            }
            table.write(out)?;
        }
        Format::Json => {
            let row = |(at, offset): &(TopicPartition, Offset)| json!({ "topic": at.topic.as_str(), "partition": at.partition, "offset": offset.0 });
            write_json(out, &found.iter().map(row).collect::<Vec<_>>())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_time_is_a_name_a_number_of_a_name_or_milliseconds() {
        for (text, timestamp) in [
            ("latest", -1),
            ("-2", -2),
            ("max-timestamp", -3),
            ("earliest-local", -4),
            ("-5", -5),
            ("1700000000000", 1_700_000_000_000),
        ] {
            assert_eq!(parse_time(text).unwrap().timestamp(), timestamp, "{text}");
        }
        for wrong in ["soon", "", "-6", "1.5"] {
            assert!(matches!(parse_time(wrong), Err(VerbError::Usage(_))), "{wrong}");
        }
    }

    #[test]
    fn offsets_in_three_forms() {
        let found =
            [(TopicPartition::new("a", 0), Offset(12)), (TopicPartition::new("long-name", 1), Offset(0))];
        let print = |format| {
            let mut out = Vec::new();
            print(&found, format, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        expect![[r#"
            a:0:12
            long-name:1:0
        "#]]
        .assert_eq(&print(Format::Kafka));
        expect![[r#"
            TOPIC      PARTITION  OFFSET
            a          0          12
            long-name  1          0
        "#]]
        .assert_eq(&print(Format::Table));
        expect![[r#"
            [{"topic":"a","partition":0,"offset":12},{"topic":"long-name","partition":1,"offset":0}]
        "#]]
        .assert_eq(&print(Format::Json));
    }
}
