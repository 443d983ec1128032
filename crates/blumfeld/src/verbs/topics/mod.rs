//! `blumfeld topics`: lists, creates, alters, deletes and describes topics, with the options of Kafka's tool.

mod alter;
mod create;
mod describe;
mod pattern;

use std::io::{self, Write};
use std::path::PathBuf;

use clap::ArgGroup;
use wire::messages::metadata_response::MetadataResponseTopic;

use crate::client::{ClientSettings, Cluster, ConnectArgs};
use crate::failure::Failure;
use crate::output::{Format, print_json};
use pattern::TopicPattern;

/// List, create, alter, delete and describe topics
#[derive(Clone, Debug, clap::Args)]
#[command(group = ArgGroup::new("action").required(true).args(["list", "create", "alter", "delete", "describe"]))]
pub(crate) struct Args {
    #[command(flatten)]
    connect: ConnectArgs,
    /// A properties file with client configs
    #[arg(long, value_name = "FILE")]
    command_config: Option<PathBuf>,
    /// The form of the output
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    output: Format,

    /// List the names of topics
    #[arg(long, help_heading = "Actions")]
    list: bool,
    /// Create a topic
    #[arg(long, help_heading = "Actions", requires = "topic")]
    create: bool,
    /// Give a topic more partitions
    #[arg(long, help_heading = "Actions", requires_all = ["topic", "partitions"])]
    alter: bool,
    /// Delete topics
    #[arg(long, help_heading = "Actions", requires = "topic")]
    delete: bool,
    /// Describe topics and their partitions
    #[arg(long, help_heading = "Actions")]
    describe: bool,

    /// The topic; except with --create a regular expression, or several separated by commas
    #[arg(long, value_name = "TOPIC")]
    topic: Option<String>,
    /// The id of the topic, with --describe
    #[arg(long, value_name = "ID", conflicts_with_all = ["topic", "list", "create", "alter", "delete"])]
    topic_id: Option<String>,
    /// The number of partitions; the broker's num.partitions if absent
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(i32).range(1..))]
    partitions: Option<i32>,
    /// The replicas of each partition; the broker's default.replication.factor if absent
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(i16).range(1..))]
    replication_factor: Option<i16>,
    /// Brokers by hand: `1:2,2:3` puts partition 0 on brokers 1 and 2, partition 1 on 2 and 3
    #[arg(long, value_name = "BROKERS", conflicts_with = "replication_factor")]
    replica_assignment: Option<String>,
    /// A topic config for --create, as key=value; may be repeated
    #[arg(long, value_name = "KEY=VALUE", conflicts_with_all = ["list", "alter", "delete", "describe"])]
    config: Vec<String>,
    /// Do nothing if no topic matches, with --alter, --delete and --describe
    #[arg(long)]
    if_exists: bool,
    /// Do nothing if the topic exists, with --create
    #[arg(long, conflicts_with_all = ["list", "alter", "delete", "describe"])]
    if_not_exists: bool,
    /// Leave out internal topics
    #[arg(long)]
    exclude_internal: bool,
    /// Show only partitions that miss in-sync replicas
    #[arg(long, help_heading = "Filters of --describe", conflicts_with_all = ["list", "create", "alter", "delete"])]
    under_replicated_partitions: bool,
    /// Show only partitions whose leader is not available
    #[arg(long, help_heading = "Filters of --describe", conflicts_with_all = ["list", "create", "alter", "delete"])]
    unavailable_partitions: bool,
    /// Show only partitions with fewer in-sync replicas than min.insync.replicas
    #[arg(long, help_heading = "Filters of --describe", conflicts_with_all = ["list", "create", "alter", "delete"])]
    under_min_isr_partitions: bool,
    /// Show only partitions with just as many in-sync replicas as min.insync.replicas
    #[arg(long, help_heading = "Filters of --describe", conflicts_with_all = ["list", "create", "alter", "delete"])]
    at_min_isr_partitions: bool,
    /// Show only topics that have configs of their own, without partitions
    #[arg(long, help_heading = "Filters of --describe", conflicts_with_all = ["list", "create", "alter", "delete"])]
    topics_with_overrides: bool,
    /// Accepted for Kafka's sake; all partitions come in one response
    #[arg(long, value_name = "COUNT", hide = true)]
    partition_size_limit_per_response: Option<u32>,
}

/// Runs the verb.
pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let settings =
        ClientSettings::read(&args.connect, "blumfeld-topics", args.command_config.as_deref(), &[])?;
    let wanted = create::wanted(args)?;
    let mut cluster = Cluster::connect(settings).await?;
    if let Some(wanted) = wanted {
        return create::run(args, &mut cluster, wanted).await;
    }
    let topics = matching(args, &mut cluster).await?;
    if topics.is_empty() && !args.if_exists && (args.topic.is_some() || args.topic_id.is_some()) && !args.list
    {
        let sought = args.topic.as_deref().or(args.topic_id.as_deref()).unwrap_or_default();
        let hint = "`blumfeld topics --list` shows those that exist; --if-exists makes this no error.";
        return Err(Failure::new(format!("There is no topic '{sought}'")).hint(hint));
    }
    match args {
        Args { list: true, .. } => list(args.output, &topics),
        Args { alter: true, .. } => alter::add_partitions(args, &mut cluster, &topics).await,
        Args { delete: true, .. } => alter::delete(args, &mut cluster, &topics).await,
        _ => describe::run(args, &mut cluster, &topics).await,
    }
}

/// The topics that the options name, by name.
async fn matching(args: &Args, cluster: &mut Cluster) -> Result<Vec<MetadataResponseTopic>, Failure> {
    let pattern = args.topic.as_deref().map(TopicPattern::parse).transpose()?;
    let mut topics = cluster.metadata(None).await?.topics;
    topics.retain(|topic| {
        let name = topic.name.as_deref().unwrap_or_default();
        let is_named = pattern.as_ref().is_none_or(|pattern| pattern.matches(name));
        let has_id = args.topic_id.as_ref().is_none_or(|id| topic.topic_id.to_string() == *id);
        is_named && has_id && !(args.exclude_internal && topic.is_internal)
    });
    topics.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(topics)
}

fn list(format: Format, topics: &[MetadataResponseTopic]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let names = topics.iter().filter_map(|topic| topic.name.as_deref());
    if format == Format::Json {
        let names: Vec<&str> = names.collect();
        return Ok(print_json(&mut out, &serde_json::json!(names))?);
    }
    for name in names {
        writeln!(out, "{name}")?;
    }
    Ok(())
}
