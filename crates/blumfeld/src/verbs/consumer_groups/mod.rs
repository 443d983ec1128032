//! `blumfeld consumer-groups`: what kafka-consumer-groups does, with its options and its lines.
//!
//! Unlike Kafka's tool the verb ends with 1 when a group is missing or an action fails, so that scripts notice.

mod delete;
mod describe;
mod group;
mod list;
mod print;
mod reset;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use super::{block_on, connect};
use crate::cluster::settings::ConnectOptions;
use crate::cluster::{Cluster, ClusterError};
use crate::error::VerbError;
use crate::output::{FormatOption, stdout};

/// The options of the verb.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("action").required(true).args(["list", "describe", "delete", "reset_offsets", "delete_offsets"]))]
#[command(group = clap::ArgGroup::new("target").args([
    "to_earliest", "to_latest", "to_current", "to_offset", "shift_by", "to_datetime", "by_duration", "from_file",
]))]
pub(crate) struct ConsumerGroupsOptions {
    #[command(flatten)]
    connect: ConnectOptions,
    #[command(flatten)]
    format: FormatOption,
    /// List groups
    #[arg(long)]
    list: bool,
    /// Describe groups: how far they came, their members, their state
    #[arg(long)]
    describe: bool,
    /// Delete groups that have no members
    #[arg(long)]
    delete: bool,
    /// Set where a group without members goes on
    #[arg(long)]
    reset_offsets: bool,
    /// Delete what a group has committed for topics
    #[arg(long)]
    delete_offsets: bool,
    /// The group; may be given several times
    #[arg(long)]
    group: Vec<String>,
    /// All groups
    #[arg(long, conflicts_with = "group")]
    all_groups: bool,
    /// A topic, or some of its partitions, such as t:0,1; may be given several times
    #[arg(long)]
    topic: Vec<String>,
    /// All topics for which the group has committed offsets
    #[arg(long, conflicts_with = "topic")]
    all_topics: bool,
    /// With --describe, the members
    #[arg(long, requires = "describe")]
    members: bool,
    /// With --describe, the offsets; this is what is described if nothing else is said
    #[arg(long, requires = "describe")]
    offsets: bool,
    /// With --describe, the state; with --list, show the states, or list the groups in one of these only
    #[arg(long, value_name = "STATE,...", num_args = 0..=1, default_missing_value = "")]
    state: Option<String>,
    /// With --list, show the types, or list the groups of one of these only
    #[arg(long, value_name = "TYPE,...", num_args = 0..=1, default_missing_value = "", requires = "list")]
    r#type: Option<String>,
    /// Show what each member is assigned
    #[arg(long)]
    verbose: bool,
    /// To the first offset
    #[arg(long)]
    to_earliest: bool,
    /// To the end
    #[arg(long)]
    to_latest: bool,
    /// To where the group is, or to the end where it has been nowhere
    #[arg(long)]
    to_current: bool,
    /// To this offset
    #[arg(long, value_name = "OFFSET", allow_hyphen_values = true)]
    to_offset: Option<i64>,
    /// Forward or, if negative, back by so many offsets
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    shift_by: Option<i64>,
    /// To the first record that is not older, such as 2026-01-31T12:00:00.000; UTC unless an offset follows
    #[arg(long, value_name = "TIME")]
    to_datetime: Option<String>,
    /// To the first record that is not older than so long ago, such as P1DT2H30M
    #[arg(long, value_name = "DURATION")]
    by_duration: Option<String>,
    /// To the offsets of a file with lines of topic,partition,offset, or of group,topic,partition,offset
    #[arg(long, value_name = "FILE")]
    from_file: Option<PathBuf>,
    /// Only show what would be set; this is what happens without --execute
    #[arg(long)]
    dry_run: bool,
    /// Set the offsets
    #[arg(long, conflicts_with = "dry_run")]
    execute: bool,
    /// Print lines that --from-file understands
    #[arg(long)]
    export: bool,
    /// Milliseconds for which a coordinator is asked again
    #[arg(long, value_name = "MS")]
    timeout: Option<u32>,
}

/// Runs the verb.
///
/// # Errors
/// See [`VerbError`].
pub(crate) fn run(options: &ConsumerGroupsOptions) -> Result<(), VerbError> {
    check(options)?;
    let listed = list::Filter::read(options.state.as_deref(), options.r#type.as_deref(), options.list)?;
    block_on(async {
        let format = options.format.get();
        let target = if options.reset_offsets { Some(reset::Target::read(options)?) } else { None };
        let mut cluster = connect(&options.connect, "blumfeld-consumer-groups").await?;
        if let Some(millis) = options.timeout {
            cluster.set_patience(Duration::from_millis(u64::from(millis)));
        }
        let mut out = stdout();
        if options.list {
            list::list(&mut cluster, &listed, format, &mut out).await?;
        } else if options.describe {
            let groups = groups(&mut cluster, options).await?;
            describe::describe(cluster, &groups, options, format, &mut out).await?;
        } else if options.delete {
            let groups = groups(&mut cluster, options).await?;
            delete::groups(cluster, &groups, format, &mut out).await?;
        } else if let Some(target) = target {
            let groups = groups(&mut cluster, options).await?;
            reset::reset(cluster, &groups, &target, options, &mut out).await?;
        } else {
            let groups = groups(&mut cluster, options).await?;
            delete::offsets(cluster, &groups, &options.topic, format, &mut out).await?;
        }
        Ok(out.flush()?)
    })
}

/// Options that do not go together.
fn check(options: &ConsumerGroupsOptions) -> Result<(), VerbError> {
    let refuse = |text: &str| Err(VerbError::Usage(text.to_owned()));
    if !options.list && options.group.is_empty() && !options.all_groups {
        return refuse("which groups? --group G, which may be given several times, or --all-groups");
    }
    if options.delete_offsets && (options.topic.is_empty() || options.group.len() != 1) {
        return refuse("--delete-offsets needs one --group and --topic, which may be given several times");
    }
    if options.delete && !options.topic.is_empty() {
        return refuse("--delete deletes whole groups; for some topics there is --delete-offsets");
    }
    let has_target = [
        options.to_earliest,
        options.to_latest,
        options.to_current,
        options.to_offset.is_some(),
        options.shift_by.is_some(),
        options.to_datetime.is_some(),
        options.by_duration.is_some(),
        options.from_file.is_some(),
    ]
    .contains(&true);
    // Not left to `requires`: it says nothing when another action is there.
    let of_reset = has_target || options.execute || options.dry_run || options.export;
    if of_reset && !options.reset_offsets {
        return refuse("where a group goes on is set by --reset-offsets only");
    }
    if options.reset_offsets {
        if !has_target {
            return refuse(
                "where to? --to-earliest, --to-latest, --to-current, --to-offset, --shift-by, --to-datetime, \
                 --by-duration or --from-file",
            );
        }
        if options.topic.is_empty() && !options.all_topics && options.from_file.is_none() {
            return refuse("One of the reset scopes should be defined: --all-topics, --topic.");
        }
    }
    let kinds = [options.members, options.offsets, options.describe && options.state.is_some()];
    if kinds.into_iter().filter(|kind| *kind).count() > 1 {
        return refuse("--members, --offsets and --state exclude each other");
    }
    Ok(())
}

/// The groups that are meant, by name.
async fn groups(cluster: &mut Cluster, options: &ConsumerGroupsOptions) -> Result<Vec<String>, ClusterError> {
    if options.all_groups {
        return Ok(list::all(cluster).await?.into_iter().map(|group| group.name).collect());
    }
    let unique: BTreeSet<&String> = options.group.iter().collect();
    Ok(unique.into_iter().cloned().collect())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: ConsumerGroupsOptions,
    }

    pub(super) fn parse(line: &str) -> Result<ConsumerGroupsOptions, String> {
        let words = std::iter::once("consumer-groups").chain(line.split(' '));
        let options = Line::try_parse_from(words).map_err(|error| error.to_string())?.options;
        check(&options).map_err(|error| error.to_string())?;
        Ok(options)
    }

    #[test]
    fn command_lines_of_kafkas_documentation_are_understood() {
        for line in [
            "--list",
            "--list --state",
            "--list --state stable,empty --type classic",
            "--describe --group g",
            "--describe --group g --members --verbose",
            "--describe --all-groups --state",
            "--delete --group g --group h",
            "--reset-offsets --group g --topic t --to-latest",
            "--reset-offsets --group g --topic t:0,1 --topic u --shift-by -5 --execute",
            "--reset-offsets --all-groups --all-topics --by-duration PT1H --dry-run",
            "--reset-offsets --group g --from-file f --execute --export",
            "--delete-offsets --group g --topic t --timeout 5000",
        ] {
            parse(line).unwrap();
        }
    }

    #[test]
    fn what_is_missing_or_contradicts_itself_is_named() {
        for (line, expected) in [
            ("--list --describe --group g", "--list"),
            ("--describe", "--group G"),
            ("--describe --group g --members --offsets", "exclude each other"),
            ("--delete --group g --topic t", "--delete-offsets"),
            ("--delete-offsets --group g", "--topic"),
            ("--reset-offsets --group g --topic t", "where to?"),
            ("--reset-offsets --group g --to-latest", "--all-topics"),
            ("--reset-offsets --group g --topic t --to-latest --to-earliest", "--to-earliest"),
            ("--reset-offsets --group g --topic t --to-latest --execute --dry-run", "--dry-run"),
            ("--describe --group g --to-latest", "--reset-offsets"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
