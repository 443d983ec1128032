//! Describing groups: offsets, members or state, in Kafka's columns.

use std::collections::BTreeSet;
use std::io::Write;

use serde_json::{Value, json};
use wire::types::TopicPartition;

use super::ConsumerGroupsOptions;
use super::group::{Group, MemberOfGroup, Progress};
use super::print::{or_dash, write};
use crate::cluster::offsets::{Isolation, Place};
use crate::cluster::{Cluster, ClusterError};
use crate::error::VerbError;
use crate::group::Coordinator;
use crate::output::{Format, write_json};

/// Describes the groups.
///
/// # Errors
/// If a coordinator refuses, or a group does not exist; then the others are described first.
pub(super) async fn describe(
    mut cluster: Cluster,
    groups: &[String],
    options: &ConsumerGroupsOptions,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), VerbError> {
    let mut missing = Vec::new();
    let mut all = Vec::new();
    for name in groups {
        let mut coordinator = Coordinator::new(cluster, name);
        let group = super::group::describe(&mut coordinator).await?;
        let wants_offsets = !options.members && options.state.is_none();
        let progress =
            if wants_offsets { progress(&mut coordinator, &group).await? } else { Progress::default() };
        cluster = coordinator.into_cluster();
        if group.is_missing() && progress.committed.is_empty() {
            missing.push(format!("'{name}'"));
            continue;
        }
        if format == Format::Json {
            all.push(to_json(&group, &progress, wants_offsets));
            continue;
        }
        if let Some(remark) = group.remark() {
            out.flush()?;
            eprintln!("\n{remark}");
        }
        if options.members {
            print_members(&group, options.verbose, out)?;
        } else if options.state.is_some() {
            print_state(&group, out)?;
        } else {
            print_offsets(&group, &progress, out)?;
        }
    }
    if format == Format::Json {
        write_json(out, &all)?;
    }
    out.flush()?;
    match missing.len() {
        0 => Ok(()),
        1 => Err(VerbError::Failed(format!("Consumer group {} does not exist.", missing.join("")))),
        _ => Err(VerbError::Failed(format!("Consumer groups {} do not exist.", missing.join(", ")))),
    }
}

/// Where the group is, and where it could be.
async fn progress(coordinator: &mut Coordinator, group: &Group) -> Result<Progress, ClusterError> {
    let committed = coordinator.committed(None).await?;
    let committed: std::collections::BTreeMap<_, _> =
        committed.into_iter().map(|(at, committed)| (at, committed.offset)).collect();
    let assigned = group.members.iter().flat_map(|member| &member.assigned);
    let all: BTreeSet<TopicPartition> = assigned.chain(committed.keys()).cloned().collect();
    let ends = coordinator.cluster().list_offsets(all, Place::Latest, Isolation::ReadUncommitted).await?;
    let ends = ends.into_iter().filter_map(|(at, end)| Some((at, end.ok().flatten()?)));
    Ok(Progress { committed, ends: ends.collect() })
}

/// A partition, and the member that reads it.
type Row<'a> = (TopicPartition, Option<&'a MemberOfGroup>);

/// First what members read, those with the most partitions first; then what nobody reads.
fn rows<'a>(group: &'a Group, progress: &Progress) -> Vec<Row<'a>> {
    let mut readers: Vec<&MemberOfGroup> = group.members.iter().collect();
    readers.sort_by_key(|member| std::cmp::Reverse(member.assigned.len()));
    let read = readers.into_iter().flat_map(|it| it.assigned.iter().map(move |at| (at.clone(), Some(it))));
    let mut rows: Vec<Row<'_>> = read.collect();
    let known: BTreeSet<TopicPartition> = rows.iter().map(|(at, _)| at.clone()).collect();
    let unread = progress.committed.keys().filter(|at| !known.contains(*at));
    rows.extend(unread.map(|at| (at.clone(), None)));
    rows
}

fn print_offsets(group: &Group, progress: &Progress, out: &mut dyn Write) -> Result<(), VerbError> {
    let row = |(at, member): &Row<'_>| {
        let of_member = |of: &dyn Fn(&MemberOfGroup) -> String| member.map_or_else(|| "-".to_owned(), of);
        [
            group.name.clone(),
            at.topic.to_string(),
            at.partition.to_string(),
            or_dash(progress.committed.get(at).map(|offset| offset.0)),
            or_dash(progress.ends.get(at).map(|offset| offset.0)),
            or_dash(progress.lag(at)),
            of_member(&|it| it.id.clone()),
            of_member(&|it| it.host.clone()),
            of_member(&|it| it.client.clone()),
        ]
    };
    let rows: Vec<_> = rows(group, progress).iter().map(row).collect();
    let columns = [
        ("GROUP", 15),
        ("TOPIC", 15),
        ("PARTITION", 10),
        ("CURRENT-OFFSET", 15),
        ("LOG-END-OFFSET", 15),
        ("LAG", 15),
        ("CONSUMER-ID", 15),
        ("HOST", 15),
        ("CLIENT-ID", 0),
    ];
    Ok(write(out, columns, &rows)?)
}

/// `t(0,1), u(3)`
fn assignment(member: &MemberOfGroup) -> String {
    let topics = crate::cluster::leaders::by_topic(&member.assigned).into_iter();
    let topics = topics.map(|(topic, indexes)| format!("{topic}({})", crate::output::join_ids(&indexes)));
    let text = topics.collect::<Vec<_>>().join(", ");
    if text.is_empty() { "-".to_owned() } else { text }
}

fn print_members(group: &Group, verbose: bool, out: &mut dyn Write) -> Result<(), VerbError> {
    let with_instance = group.members.iter().any(|member| member.instance.is_some());
    let row = |member: &MemberOfGroup| {
        [
            group.name.clone(),
            member.id.clone(),
            member.instance.clone().unwrap_or_default(),
            member.host.clone(),
            member.client.clone(),
            member.assigned.len().to_string(),
            if verbose { assignment(member) } else { String::new() },
        ]
    };
    let rows: Vec<_> = group.members.iter().map(row).collect();
    let columns = [
        ("GROUP", 15),
        ("CONSUMER-ID", 15),
        ("GROUP-INSTANCE-ID", 17),
        ("HOST", 15),
        ("CLIENT-ID", 15),
        ("#PARTITIONS", 15),
        (if verbose { "ASSIGNMENT" } else { "" }, 0),
    ];
    if with_instance {
        return Ok(write(out, columns, &rows)?);
    }
    let [group_column, id_column, _, host, client, partitions, last] = columns;
    let without = |[group, id, _, host, client, count, assignment]: [String; 7]| {
        [group, id, host, client, count, assignment]
    };
    let rows: Vec<_> = rows.into_iter().map(without).collect();
    Ok(write(out, [group_column, id_column, host, client, partitions, last], &rows)?)
}

fn print_state(group: &Group, out: &mut dyn Write) -> Result<(), VerbError> {
    let (id, address) = &group.coordinator;
    let row = [
        group.name.clone(),
        format!("{address}  ({id})"),
        group.strategy.clone(),
        group.state.clone(),
        group.members.len().to_string(),
    ];
    let columns = [
        ("GROUP", 25),
        ("COORDINATOR (ID)", 25),
        ("ASSIGNMENT-STRATEGY", 20),
        ("STATE", 15),
        ("#MEMBERS", 0),
    ];
    Ok(write(out, columns, &[row])?)
}

fn to_json(group: &Group, progress: &Progress, with_offsets: bool) -> Value {
    let partition = |(at, member): &Row<'_>| {
        json!({
            "topic": at.topic.as_str(),
            "partition": at.partition,
            "currentOffset": progress.committed.get(at).map(|offset| offset.0),
            "logEndOffset": progress.ends.get(at).map(|offset| offset.0),
            "lag": progress.lag(at),
            "consumerId": member.map(|it| &it.id),
        })
    };
    let member = |it: &MemberOfGroup| {
        let assigned = it.assigned.iter();
        let assigned = assigned.map(|at| json!({ "topic": at.topic.as_str(), "partition": at.partition }));
        json!({
            "consumerId": it.id,
            "groupInstanceId": it.instance,
            "host": it.host,
            "clientId": it.client,
            "assignment": assigned.collect::<Vec<_>>(),
        })
    };
    let offsets = with_offsets.then(|| rows(group, progress).iter().map(partition).collect::<Vec<_>>());
    json!({
        "group": group.name,
        "state": group.state,
        "assignmentStrategy": group.strategy,
        "coordinator": { "broker": group.coordinator.0, "address": group.coordinator.1 },
        "members": group.members.iter().map(member).collect::<Vec<_>>(),
        "offsets": offsets,
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use wire::types::Offset;

    use super::*;

    fn group() -> (Group, Progress) {
        let at = |index| TopicPartition::new("t", index);
        let member = |id: &str, assigned: Vec<TopicPartition>| MemberOfGroup {
            id: id.to_owned(),
            client: "c".to_owned(),
            host: "/127.0.0.1".to_owned(),
            assigned,
            ..Default::default()
        };
        let members =
            vec![member("m-1", vec![at(0)]), member("m-2", vec![at(1), at(2)]), member("m-3", vec![])];
        let group = Group {
            name: "g".into(),
            state: "Stable".into(),
            strategy: "range".into(),
            coordinator: (1, "h:9092".into()),
            members,
        };
        let offsets =
            |all: &[(i32, i64)]| all.iter().map(|(index, offset)| (at(*index), Offset(*offset))).collect();
        (group, Progress { committed: offsets(&[(0, 5), (3, 7)]), ends: offsets(&[(0, 9), (1, 2), (3, 7)]) })
    }

    fn text(print: impl Fn(&Group, &Progress, &mut Vec<u8>)) -> String {
        let (group, progress) = group();
        let mut out = Vec::new();
        print(&group, &progress, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn offsets_are_told_by_member_and_then_what_nobody_reads() {
        expect![[r#"

            GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             CONSUMER-ID     HOST            CLIENT-ID
            g               t               1          -               2               -               m-2             /127.0.0.1      c
            g               t               2          -               -               -               m-2             /127.0.0.1      c
            g               t               0          5               9               4               m-1             /127.0.0.1      c
            g               t               3          7               7               0               -               -               -
        "#]]
        .assert_eq(&text(|group, progress, out| print_offsets(group, progress, out).unwrap()));
    }

    #[test]
    fn members_are_told_with_what_they_read() {
        expect![[r#"

            GROUP           CONSUMER-ID     HOST            CLIENT-ID       #PARTITIONS
            g               m-1             /127.0.0.1      c               1
            g               m-2             /127.0.0.1      c               2
            g               m-3             /127.0.0.1      c               0
        "#]]
        .assert_eq(&text(|group, _, out| print_members(group, false, out).unwrap()));
        expect![[r#"

            GROUP           CONSUMER-ID     GROUP-INSTANCE-ID HOST            CLIENT-ID       #PARTITIONS     ASSIGNMENT
            g               m-1             i                 /127.0.0.1      c               1               t(0)
            g               m-2                               /127.0.0.1      c               2               t(1,2)
            g               m-3                               /127.0.0.1      c               0               -
        "#]]
        .assert_eq(&text(|group, _, out| {
            let mut group = group.clone();
            group.members[0].instance = Some("i".into());
            print_members(&group, true, out).unwrap();
        }));
    }

    #[test]
    fn the_state_is_told_with_the_coordinator() {
        expect![[r#"

            GROUP                     COORDINATOR (ID)          ASSIGNMENT-STRATEGY  STATE           #MEMBERS
            g                         h:9092  (1)               range                Stable          3
        "#]]
        .assert_eq(&text(|group, _, out| print_state(group, out).unwrap()));
    }

    #[test]
    fn programs_get_all_of_it() {
        let (group, progress) = group();
        let json = to_json(&group, &progress, true);
        assert_eq!(json["offsets"][2]["lag"], 4);
        assert_eq!(json["offsets"][0]["currentOffset"], Value::Null);
        assert_eq!(json["members"][1]["assignment"][1]["partition"], 2);
        assert_eq!(to_json(&group, &progress, false)["offsets"], Value::Null);
    }
}
