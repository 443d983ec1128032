//! `blumfeld topics`: what kafka-topics does, with its options and its lines.

mod create;
mod describe;

use std::io::Write;

use serde_json::json;
use wire::Str;
use wire::messages::delete_topics_request::DeleteTopicState;
use wire::messages::metadata_response::MetadataResponseTopic;
use wire::messages::{DeleteTopicsRequest, DeleteTopicsResponse};

use super::select::Selection;
use super::{block_on, connect};
use crate::cluster::settings::ConnectOptions;
use crate::cluster::{Cluster, ClusterError, Topics};
use crate::error::VerbError;
use crate::output::{Format, FormatOption, Table, stdout, write_json};

/// The options of the verb.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("action").required(true).args(["list", "create", "delete", "describe", "alter"]))]
pub(crate) struct TopicsOptions {
    #[command(flatten)]
    connect: ConnectOptions,
    #[command(flatten)]
    format: FormatOption,
    /// List topics
    #[arg(long)]
    list: bool,
    /// Create a topic
    #[arg(long)]
    create: bool,
    /// Delete topics
    #[arg(long)]
    delete: bool,
    /// Describe topics
    #[arg(long)]
    describe: bool,
    /// Add partitions to topics
    #[arg(long)]
    alter: bool,
    /// The topic; a regular expression, except to create one
    #[arg(long)]
    topic: Option<String>,
    /// The id of a topic to describe
    #[arg(long)]
    topic_id: Option<String>,
    /// The number of partitions
    #[arg(long, value_name = "N")]
    partitions: Option<i32>,
    /// The number of replicas of each partition
    #[arg(long, value_name = "N")]
    replication_factor: Option<i16>,
    /// Which brokers get replicas, partition by partition, such as 1:2,2:3
    #[arg(long, value_name = "ID:ID,...")]
    replica_assignment: Option<String>,
    /// A config of the topic to create; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    config: Vec<String>,
    /// Not an error if the topic is not there
    #[arg(long)]
    if_exists: bool,
    /// Not an error if the topic is there
    #[arg(long)]
    if_not_exists: bool,
    /// Leave out internal topics
    #[arg(long)]
    exclude_internal: bool,
    /// Only partitions with fewer in-sync replicas than replicas
    #[arg(long)]
    under_replicated_partitions: bool,
    /// Only partitions whose leader is not available
    #[arg(long)]
    unavailable_partitions: bool,
    /// Only partitions with fewer in-sync replicas than min.insync.replicas
    #[arg(long)]
    under_min_isr_partitions: bool,
    /// Only partitions with exactly min.insync.replicas in-sync replicas
    #[arg(long)]
    at_min_isr_partitions: bool,
    /// Only topics with configs that are not the defaults of the release
    #[arg(long)]
    topics_with_overrides: bool,
    /// Accepted for compatibility: descriptions are asked for in one piece
    #[arg(long, hide = true, value_name = "N")]
    partition_size_limit_per_response: Option<u32>,
}

/// Runs the verb.
///
/// # Errors
/// See [`VerbError`].
pub(crate) fn run(options: &TopicsOptions) -> Result<(), VerbError> {
    check(options)?;
    block_on(async {
        let mut cluster = connect(&options.connect, "blumfeld-topics").await?;
        let mut out = stdout();
        if options.list {
            list(&mut cluster, options, &mut out).await?;
        } else if options.create {
            create::create(&mut cluster, options, &mut out).await?;
        } else if options.alter {
            create::alter(&mut cluster, options, &mut out).await?;
        } else if options.delete {
            delete(&mut cluster, options, &mut out).await?;
        } else {
            describe::describe(&mut cluster, options, &mut out).await?;
        }
        Ok(out.flush()?)
    })
}

/// Options that do not go together.
fn check(options: &TopicsOptions) -> Result<(), VerbError> {
    let refuse = |text: &str| Err(VerbError::Usage(text.to_owned()));
    if options.topic.is_none() && (options.create || options.delete || options.alter) {
        return refuse("--topic is needed to create, delete or alter a topic");
    }
    if options.alter && !options.config.is_empty() {
        return refuse(
            "configs of topics are altered by: blumfeld configs --alter --topic T --add-config ...",
        );
    }
    if options.alter && options.partitions.is_none() {
        return refuse("--alter needs --partitions, the new number of partitions");
    }
    if !(options.create || options.alter) && options.partitions.is_some() {
        return refuse("--partitions goes with --create and --alter only");
    }
    if !options.create && options.replication_factor.is_some() {
        return refuse("--replication-factor goes with --create only");
    }
    let counts = options.partitions.is_some() || options.replication_factor.is_some();
    if options.create && options.replica_assignment.is_some() && counts {
        return refuse("--replica-assignment stands in place of --partitions and --replication-factor");
    }
    if options.topic_id.is_some() && !options.describe {
        return refuse("--topic-id goes with --describe only");
    }
    if options.if_not_exists && !options.create {
        return refuse("--if-not-exists goes with --create only");
    }
    Ok(())
}

/// The topics that `--topic`, `--topic-id` and `--exclude-internal` select, by name.
async fn selected(
    cluster: &mut Cluster,
    options: &TopicsOptions,
) -> Result<Vec<MetadataResponseTopic>, VerbError> {
    let selection = Selection::parse(options.topic.as_deref(), options.topic_id.as_deref())?;
    let metadata = cluster.metadata(Topics::All).await?;
    let mut topics: Vec<_> = metadata.topics.into_iter().filter(|topic| selection.holds(topic)).collect();
    topics.retain(|topic| !(options.exclude_internal && topic.is_internal));
    topics.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    let wanted = options.topic.as_ref().or(options.topic_id.as_ref());
    match wanted {
        Some(wanted) if topics.is_empty() && !options.if_exists && !options.list => {
            Err(VerbError::Failed(format!("Topic '{wanted}' does not exist as expected")))
        }
        _ => Ok(topics),
    }
}

fn name(topic: &MetadataResponseTopic) -> &str {
    topic.name.as_deref().unwrap_or_default()
}

async fn list(cluster: &mut Cluster, options: &TopicsOptions, out: &mut dyn Write) -> Result<(), VerbError> {
    let topics = selected(cluster, options).await?;
    print_list(&topics, options.format.get(), out)
}

fn print_list(
    topics: &[MetadataResponseTopic],
    format: Format,
    out: &mut dyn Write,
) -> Result<(), VerbError> {
    match format {
        Format::Kafka => {
            for topic in topics {
                writeln!(out, "{}", name(topic))?;
            }
        }
        Format::Table => {
            let mut table = Table::new(["TOPIC", "PARTITIONS", "REPLICAS", "ID"]);
            for topic in topics {
                let replicas = topic.partitions.first().map_or(0, |partition| partition.replica_nodes.len());
                let (count, id) = (topic.partitions.len(), topic.topic_id);
                table.push([name(topic).to_owned(), count.to_string(), replicas.to_string(), id.to_string()]);
            }
            table.write(out)?;
        }
        Format::Json => write_json(out, &topics.iter().map(name).collect::<Vec<_>>())?,
    }
    Ok(())
}

async fn delete(
    cluster: &mut Cluster,
    options: &TopicsOptions,
    out: &mut dyn Write,
) -> Result<(), VerbError> {
    let topics = selected(cluster, options).await?;
    let timeout_ms = i32::try_from(cluster.settings().request_timeout.as_millis()).unwrap_or(i32::MAX);
    let names = || topics.iter().filter_map(|topic| topic.name.clone());
    let state = |name: Str| DeleteTopicState { name: Some(name), ..Default::default() };
    let request = DeleteTopicsRequest {
        topics: names().map(state).collect(),
        topic_names: names().collect(),
        timeout_ms,
    };
    if topics.is_empty() {
        return Ok(());
    }
    let code = |response: &DeleteTopicsResponse| first_code(response.responses.iter().map(|r| r.error_code));
    let response = cluster.call_controller(&request, code).await?;
    for result in &response.responses {
        let topic = result.name.as_deref().unwrap_or_default();
        if result.error_code != 0 {
            let message = result.error_message.as_deref();
            return Err(ClusterError::refused(format!("topic {topic}"), result.error_code, message).into());
        }
        match options.format.get() {
            Format::Json => write_json(out, &json!({ "topic": topic, "deleted": true }))?,
            Format::Table => writeln!(out, "Deleted topic {topic}.")?,
            Format::Kafka => {}
        }
    }
    Ok(())
}

/// The first code that is an error, else 0.
fn first_code(codes: impl IntoIterator<Item = i16>) -> i16 {
    codes.into_iter().find(|code| *code != 0).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use expect_test::expect;
    use wire::messages::metadata_response::MetadataResponsePartition;
    use wire::types::TopicId;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: TopicsOptions,
    }

    fn options(line: &str) -> TopicsOptions {
        Line::try_parse_from(std::iter::once("topics").chain(line.split(' '))).unwrap().options
    }

    #[test]
    fn options_that_do_not_go_together_are_named() {
        for line in [
            "--create",
            "--delete",
            "--alter --topic t",
            "--alter --topic t --partitions 2 --config a=b",
            "--list --partitions 3",
            "--describe --replication-factor 3",
            "--create --topic t --partitions 1 --replica-assignment 1",
            "--list --topic-id x",
            "--delete --topic t --if-not-exists",
        ] {
            assert!(matches!(check(&options(line)), Err(VerbError::Usage(_))), "{line}");
        }
        for line in ["--create --topic t", "--list", "--describe", "--alter --topic t --partitions 2"] {
            check(&options(line)).unwrap();
        }
    }

    #[test]
    fn a_list_in_three_forms() {
        let partition = MetadataResponsePartition { replica_nodes: vec![1, 2], ..Default::default() };
        let topic = |name: &str, partitions| MetadataResponseTopic {
            name: Some(name.into()),
            topic_id: TopicId([1; 16]),
            partitions: vec![partition.clone(); partitions],
            ..Default::default()
        };
        let topics = [topic("alpha", 3), topic("b", 1)];
        let print = |format| {
            let mut out = Vec::new();
            print_list(&topics, format, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        expect![[r#"
            alpha
            b
        "#]]
        .assert_eq(&print(Format::Kafka));
        expect![[r#"
            TOPIC  PARTITIONS  REPLICAS  ID
            alpha  3           2         AQEBAQEBAQEBAQEBAQEBAQ
            b      1           2         AQEBAQEBAQEBAQEBAQEBAQ
        "#]]
        .assert_eq(&print(Format::Table));
        expect![[r#"
            ["alpha","b"]
        "#]]
        .assert_eq(&print(Format::Json));
    }
}
