//! Where a group goes on: `--reset-offsets` with all its ways (KIP-122). What would be set is worked out first, shown,
//! and committed only with `--execute`. A group with members is left alone, since they would go on where they are.

mod file;
mod target;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use serde_json::json;
use wire::types::{Offset, TopicPartition};

use super::ConsumerGroupsOptions;
use super::print::write;
use crate::cluster::offsets::{Isolation, Place};
use crate::cluster::{Cluster, ClusterError, Topics};
use crate::error::VerbError;
use crate::group::{Committer, Coordinator};
use crate::output::{Format, write_json};
pub(super) use target::Target;
use target::{Bounds, Reset};

/// What is to be set, by group.
type Plans = BTreeMap<String, BTreeMap<TopicPartition, Offset>>;

/// Resets groups.
///
/// # Errors
/// If a group has members or does not take the offsets; the others are reset.
pub(super) async fn reset(
    mut cluster: Cluster,
    groups: &[String],
    target: &Target,
    options: &ConsumerGroupsOptions,
    out: &mut dyn Write,
) -> Result<(), VerbError> {
    if !options.execute && !options.dry_run {
        eprintln!("WARN: No action will be performed as the --execute option is missing.");
    }
    let (mut plans, mut failed) = (Plans::new(), 0);
    for name in groups {
        let mut coordinator = Coordinator::new(cluster, name);
        match reset_group(&mut coordinator, target, options).await {
            Ok(plan) => {
                plans.insert(name.clone(), plan);
            }
            Err(error) => {
                eprintln!("Error: {error}");
                failed += 1;
            }
        }
        cluster = coordinator.into_cluster();
    }
    print(&plans, groups.len(), options, out)?;
    out.flush()?;
    match failed {
        0 => Ok(()),
        failed => Err(VerbError::Failed(format!("{failed} of {} groups were not reset", groups.len()))),
    }
}

async fn reset_group(
    coordinator: &mut Coordinator,
    target: &Target,
    options: &ConsumerGroupsOptions,
) -> Result<BTreeMap<TopicPartition, Offset>, VerbError> {
    let group = super::group::describe(coordinator).await?;
    if !group.is_inactive() {
        return Err(VerbError::Failed(format!(
            "Assignments can only be reset if the group '{}' is inactive, but the current state is {}.",
            group.name, group.state
        )));
    }
    let committed = coordinator.committed(None).await?;
    let committed = committed.into_iter().map(|(at, committed)| (at, committed.offset)).collect();
    let partitions = match target.named(&group.name) {
        Some(named) => named?,
        None if options.all_topics => BTreeMap::keys(&committed).cloned().collect(),
        None => scope(coordinator.cluster(), &options.topic).await?,
    };
    if partitions.is_empty() {
        return Err(VerbError::Failed(format!(
            "group '{}' has no partitions to reset: it has committed no offsets; name topics by --topic",
            group.name
        )));
    }
    let plan = plan(coordinator, &group.name, target, &partitions, committed).await?;
    if options.execute {
        for (at, code) in coordinator.commit(&Committer::tool(), &plan).await? {
            if code != 0 {
                return Err(ClusterError::refused(format!("offset of {at}"), code, None).into());
            }
        }
    }
    Ok(plan)
}

/// Works out the offsets.
async fn plan(
    coordinator: &mut Coordinator,
    group: &str,
    target: &Target,
    partitions: &[TopicPartition],
    committed: BTreeMap<TopicPartition, Offset>,
) -> Result<BTreeMap<TopicPartition, Offset>, VerbError> {
    let cluster = coordinator.cluster();
    let starts = offsets(cluster, partitions, Place::Earliest).await?;
    let ends = offsets(cluster, partitions, Place::Latest).await?;
    let times = match target.time() {
        Some(time) => offsets(cluster, partitions, Place::Time(time)).await?,
        None => BTreeMap::new(),
    };
    let mut plan = BTreeMap::new();
    for at in partitions {
        let (Some(start), Some(end)) = (starts.get(at), ends.get(at)) else { continue };
        let bounds = Bounds { start: *start, end: *end };
        let found = target.find(group, at, bounds, committed.get(at).copied(), times.get(at).copied())?;
        match found {
            Reset::To(offset) => {
                plan.insert(at.clone(), offset);
            }
            Reset::Instead(offset, remark) => {
                eprintln!("WARN: {remark}");
                plan.insert(at.clone(), offset);
            }
        }
    }
    Ok(plan)
}

async fn offsets(
    cluster: &mut Cluster,
    partitions: &[TopicPartition],
    place: Place,
) -> Result<BTreeMap<TopicPartition, Offset>, ClusterError> {
    let mut offsets = BTreeMap::new();
    let listed = cluster.list_offsets(partitions.iter().cloned(), place, Isolation::ReadUncommitted).await?;
    for (at, offset) in listed {
        if let Some(offset) = offset? {
            offsets.insert(at, offset);
        }
    }
    Ok(offsets)
}

/// The partitions that `t` and `t:0,1` name.
///
/// # Errors
/// If one cannot be read, or a topic does not exist.
pub(super) async fn scope(
    cluster: &mut Cluster,
    topics: &[String],
) -> Result<Vec<TopicPartition>, VerbError> {
    let mut partitions = BTreeSet::new();
    for text in topics {
        let (topic, indexes) = parse_scope(text)?;
        if let Some(indexes) = indexes {
            partitions.extend(indexes.into_iter().map(|index| TopicPartition::new(topic, index)));
            continue;
        }
        let metadata = cluster.metadata(Topics::Several(&[topic])).await?;
        for described in &metadata.topics {
            if described.error_code != 0 {
                let what = format!("topic {topic}");
                return Err(ClusterError::refused(what, described.error_code, None).into());
            }
            let all = described.partitions.iter().map(|partition| partition.partition_index);
            partitions.extend(all.map(|index| TopicPartition::new(topic, index)));
        }
    }
    Ok(partitions.into_iter().collect())
}

fn parse_scope(text: &str) -> Result<(&str, Option<Vec<i32>>), VerbError> {
    let Some((topic, list)) = text.split_once(':') else { return Ok((text, None)) };
    let numbers: Result<Vec<i32>, _> = list.split(',').map(|number| number.trim().parse()).collect();
    match numbers {
        Ok(numbers) if !topic.is_empty() => Ok((topic, Some(numbers))),
        _ => Err(VerbError::Usage(format!("--topic {text}: TOPIC or TOPIC:N,N is expected"))),
    }
}

fn print(
    plans: &Plans,
    groups: usize,
    options: &ConsumerGroupsOptions,
    out: &mut dyn Write,
) -> Result<(), VerbError> {
    let rows =
        || plans.iter().flat_map(|(group, plan)| plan.iter().map(move |(at, offset)| (group, at, offset)));
    if options.export {
        for (group, at, offset) in rows() {
            let prefix = if groups > 1 { format!("{group},") } else { String::new() };
            writeln!(out, "{prefix}{},{},{offset}", at.topic, at.partition)?;
        }
        return Ok(());
    }
    if options.format.get() == Format::Json {
        let row = |(group, at, offset): (&String, &TopicPartition, &Offset)| {
            json!({
                "group": group,
                "topic": at.topic.as_str(),
                "partition": at.partition,
                "newOffset": offset.0,
                "executed": options.execute,
            })
        };
        return Ok(write_json(out, &rows().map(row).collect::<Vec<_>>())?);
    }
    let row = |(group, at, offset): (&String, &TopicPartition, &Offset)| {
        [group.clone(), at.topic.to_string(), at.partition.to_string(), offset.to_string()]
    };
    let rows: Vec<_> = rows().map(row).collect();
    Ok(write(out, [("GROUP", 30), ("TOPIC", 30), ("PARTITION", 10), ("NEW-OFFSET", 15)], &rows)?)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::tests::parse;
    use super::*;

    fn text(line: &str, groups: &[&str]) -> String {
        let options = parse(line).unwrap();
        let plan = BTreeMap::from([(TopicPartition::new("t", 0), Offset(5))]);
        let plans: Plans = groups.iter().map(|group| ((*group).to_owned(), plan.clone())).collect();
        let mut out = Vec::new();
        print(&plans, groups.len(), &options, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_is_set_is_told_as_a_table_as_lines_for_a_file_or_as_json() {
        let line = "--reset-offsets --group g --topic t --to-latest";
        expect![[r#"

            GROUP                          TOPIC                          PARTITION  NEW-OFFSET
            g                              t                              0          5
        "#]]
        .assert_eq(&text(&format!("{line} --output kafka"), &["g"]));
        assert_eq!(text(&format!("{line} --export"), &["g"]), "t,0,5\n");
        assert_eq!(text(&format!("{line} --export"), &["g", "h"]), "g,t,0,5\nh,t,0,5\n");
        let json = text(&format!("{line} --output json --execute"), &["g"]);
        assert_eq!(
            json,
            "[{\"group\":\"g\",\"topic\":\"t\",\"partition\":0,\"newOffset\":5,\"executed\":true}]\n"
        );
    }

    #[test]
    fn a_scope_is_a_topic_or_some_of_its_partitions() {
        assert_eq!(parse_scope("t").unwrap(), ("t", None));
        assert_eq!(parse_scope("t:0, 2").unwrap(), ("t", Some(vec![0, 2])));
        for wrong in ["t:", "t:x", ":1"] {
            assert!(parse_scope(wrong).is_err(), "{wrong}");
        }
    }
}
