//! CreateTopics, CreatePartitions, DeleteTopics.

use anyhow::Result;
use wire::Str;
use wire::messages::create_partitions_request::{CreatePartitionsAssignment, CreatePartitionsTopic};
use wire::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use wire::messages::delete_topics_request::DeleteTopicState;
use wire::messages::{CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest};
use wire::types::TopicId;

use super::all;
use crate::lab::Lab;
use crate::requests::{creatable, create_topics};

pub fn run(lab: &mut Lab) -> Result<()> {
    creation(lab)?;
    refused_creation(lab)?;
    refused_assignments(lab)?;
    growth(lab)?;
    deletion(lab)
}

fn creation(lab: &mut Lab) -> Result<()> {
    for version in all::<CreateTopicsRequest>() {
        let name = |what: &str| format!("new-{what}-{version}");
        let topics = vec![
            creatable(&name("plain"), 1, 1, &[]),
            creatable(&name("several"), 3, 1, &[]),
            creatable(&name("defaults"), -1, -1, &[]),
            creatable(
                &name("configured"),
                1,
                1,
                &[("retention.ms", "1000"), ("cleanup.policy", "compact,delete")],
            ),
            CreatableTopic {
                assignments: vec![assigned(0, &[0]), assigned(1, &[0])],
                ..creatable(&name("assigned"), -1, -1, &[])
            },
        ];
        lab.once("several topics", version, |_| create_topics(topics.clone()))?;
        lab.once("the same again", version, |_| create_topics(topics.clone()))?;
        if version >= 1 {
            lab.once("validated only", version, |_| CreateTopicsRequest {
                validate_only: true,
                ..create_topics(vec![creatable(&name("dry"), 2, 1, &[("retention.ms", "5")])])
            })?;
        }
        lab.once("no patience", version, |_| CreateTopicsRequest {
            timeout_ms: 0,
            ..create_topics(vec![creatable(&name("hasty"), 1, 1, &[])])
        })?;
        lab.once("negative patience", version, |_| CreateTopicsRequest {
            timeout_ms: -1,
            ..create_topics(vec![creatable(&name("hastier"), 1, 1, &[])])
        })?;
    }
    lab.learn_ids()
}

fn assigned(partition_index: i32, broker_ids: &[i32]) -> CreatableReplicaAssignment {
    CreatableReplicaAssignment { partition_index, broker_ids: broker_ids.to_vec() }
}

fn refuse(lab: &mut Lab, case: &str, topics: Vec<CreatableTopic>) -> Result<()> {
    lab.ask(&format!("refused: {case}"), all::<CreateTopicsRequest>(), |_, _| create_topics(topics.clone()))?;
    lab.ask(&format!("refused dry: {case}"), 1..=7, |_, _| CreateTopicsRequest {
        validate_only: true,
        ..create_topics(topics.clone())
    })
}

fn refused_creation(lab: &mut Lab) -> Result<()> {
    let long = "n".repeat(250);
    for name in ["", ".", "..", "a b", "a/b", "ä", "a\0b", "a:b", long.as_str(), "__cluster_metadata"] {
        refuse(lab, &format!("name {name:?}"), vec![creatable(name, 1, 1, &[])])?;
    }
    for name in ["one", "new.plain.1", "new_plain_1", "__consumer_offsets."] {
        if name != "__consumer_offsets." {
            refuse(lab, &format!("name {name:?}, taken"), vec![creatable(name, 1, 1, &[])])?;
        }
    }
    for (partitions, replicas) in [(0, 1), (-2, 1), (1, 0), (1, 2), (1, -2), (i32::MIN, i16::MIN), (0, 0)] {
        let case = format!("{partitions} partitions of {replicas} replicas");
        refuse(lab, &case, vec![creatable("refused", partitions, replicas, &[])])?;
    }
    for (key, value) in [
        ("no.such.key", "1"),
        ("", "1"),
        ("retention.ms", "soon"),
        ("retention.ms", ""),
        ("retention.ms", "-2"),
        ("segment.bytes", "13"),
        ("cleanup.policy", "shred"),
        ("compression.type", "zip"),
        ("min.insync.replicas", "0"),
        ("min.compaction.lag.ms", "-1"),
        ("unclean.leader.election.enable", "maybe"),
        ("remote.storage.enable", "true"),
        ("message.format.version", "9.9"),
        ("message.timestamp.type", "Both"),
        ("leader.replication.throttled.replicas", "x"),
    ] {
        refuse(lab, &format!("{key}={value}"), vec![creatable("refused", 1, 1, &[(key, value)])])?;
    }
    let lags = [("min.compaction.lag.ms", "10"), ("max.compaction.lag.ms", "5")];
    refuse(lab, "lags crossed", vec![creatable("refused", 1, 1, &lags)])?;
    let null = CreatableTopicConfig { name: Str::from("retention.ms"), value: None };
    refuse(
        lab,
        "null value",
        vec![CreatableTopic { configs: vec![null], ..creatable("refused", 1, 1, &[]) }],
    )?;
    let twice = [("retention.ms", "1"), ("retention.ms", "x")];
    refuse(lab, "key twice, the last one bad", vec![creatable("refused", 1, 1, &twice)])?;
    refuse(lab, "name twice", vec![creatable("refused", 1, 1, &[]), creatable("refused", 1, 1, &[])])?;
    refuse(lab, "no topics", Vec::new())?;
    refuse(lab, "bad name and bad counts", vec![creatable("a b", 0, 9, &[("x", "y")])])
}

fn refused_assignments(lab: &mut Lab) -> Result<()> {
    let cases: [(&str, Vec<CreatableReplicaAssignment>, i32, i16); 9] = [
        ("with a count", vec![assigned(0, &[0])], 1, -1),
        ("with replicas", vec![assigned(0, &[0])], -1, 1),
        ("not from 0", vec![assigned(1, &[0])], -1, -1),
        ("a gap", vec![assigned(0, &[0]), assigned(2, &[0])], -1, -1),
        ("a partition twice", vec![assigned(0, &[0]), assigned(0, &[0])], -1, -1),
        ("a broker twice", vec![assigned(0, &[0, 0])], -1, -1),
        ("unequal sizes", vec![assigned(0, &[0]), assigned(1, &[0, 1])], -1, -1),
        ("a negative index", vec![assigned(-1, &[0])], -1, -1),
        ("one empty list", vec![assigned(0, &[0]), assigned(1, &[])], -1, -1),
    ];
    for (case, assignments, partitions, replicas) in cases {
        let topic = CreatableTopic { assignments, ..creatable("refused", partitions, replicas, &[]) };
        refuse(lab, &format!("assignment {case}"), vec![topic])?;
    }
    Ok(())
}

fn grow(topic: &str, count: i32, lists: Option<&[&[i32]]>) -> CreatePartitionsRequest {
    let assignments = lists.map(|lists| {
        lists.iter().map(|ids| CreatePartitionsAssignment { broker_ids: ids.to_vec() }).collect()
    });
    CreatePartitionsRequest {
        topics: vec![CreatePartitionsTopic { name: Str::from(topic), count, assignments }],
        timeout_ms: 60_000,
        validate_only: false,
    }
}

fn growth(lab: &mut Lab) -> Result<()> {
    let versions = all::<CreatePartitionsRequest>();
    for version in versions.clone() {
        let topic = format!("new-plain-{version}");
        lab.once("grown dry", version, |_| CreatePartitionsRequest {
            validate_only: true,
            ..grow(&topic, 4, None)
        })?;
        lab.once("grown", version, |_| grow(&topic, 2, None))?;
        lab.once("grown as said", version, |_| grow(&topic, 4, Some(&[&[0], &[0]])))?;
        lab.once("grown without patience", version, |_| CreatePartitionsRequest {
            timeout_ms: 0,
            ..grow(&topic, 5, None)
        })?;
    }
    let cases: [(&str, &str, i32, Option<&[&[i32]]>); 15] = [
        ("as many", "three", 3, None),
        ("fewer", "three", 1, None),
        ("none", "three", 0, None),
        ("negative", "three", -1, None),
        ("unknown topic", "nobody", 3, None),
        ("illegal topic", "a b", 3, None),
        ("no topic", "", 3, None),
        ("unknown broker", "three", 4, Some(&[&[7]])),
        ("too few lists", "three", 5, Some(&[&[0]])),
        ("too many lists", "three", 4, Some(&[&[0], &[0]])),
        ("an empty list", "three", 4, Some(&[&[]])),
        ("no lists", "three", 4, Some(&[])),
        ("a broker twice", "three", 4, Some(&[&[0, 0]])),
        ("more replicas", "three", 4, Some(&[&[0, 1]])),
        ("negative broker", "three", 4, Some(&[&[-1]])),
    ];
    for (case, topic, count, lists) in cases {
        lab.ask(&format!("growth: {case}"), versions.clone(), |_, _| grow(topic, count, lists))?;
        lab.ask(&format!("dry growth: {case}"), versions.clone(), |_, _| CreatePartitionsRequest {
            validate_only: true,
            ..grow(topic, count, lists)
        })?;
    }
    lab.ask("growth: twice", versions.clone(), |_, _| {
        let mut request = grow("three", 4, None);
        request.topics.push(request.topics[0].clone());
        request
    })?;
    lab.ask("growth: no topics", versions, |_, _| CreatePartitionsRequest {
        topics: Vec::new(),
        ..grow("", 0, None)
    })
}

fn deletion(lab: &mut Lab) -> Result<()> {
    for version in all::<DeleteTopicsRequest>() {
        let name = |what: &str| format!("new-{what}-{version}");
        let delete = |names: &[String]| {
            let mut request = DeleteTopicsRequest { timeout_ms: 60_000, ..DeleteTopicsRequest::default() };
            if version >= 6 {
                request.topics = names
                    .iter()
                    .map(|name| DeleteTopicState {
                        name: Some(Str::from(name.as_str())),
                        ..Default::default()
                    })
                    .collect();
            } else {
                request.topic_names = names.iter().map(|name| Str::from(name.as_str())).collect();
            }
            request
        };
        lab.once("deleted", version, |_| delete(&[name("plain"), name("several")]))?;
        lab.once("deleted again", version, |_| delete(&[name("plain")]))?;
        lab.once("a known and an unknown one", version, |_| {
            delete(&[name("defaults"), "nobody".to_owned()])
        })?;
        for unknown in ["", "a b", ".", "nobody"] {
            lab.once(&format!("delete {unknown:?}"), version, |_| delete(&[unknown.to_owned()]))?;
        }
        lab.once("delete nothing", version, |_| delete(&[]))?;
        lab.once("delete without patience", version, |_| DeleteTopicsRequest {
            timeout_ms: 0,
            ..delete(&[name("assigned")])
        })?;
    }
    deletion_by_id(lab)
}

fn deletion_by_id(lab: &mut Lab) -> Result<()> {
    let request = |states: Vec<(Option<&str>, TopicId)>| DeleteTopicsRequest {
        topics: states
            .into_iter()
            .map(|(name, topic_id)| DeleteTopicState { name: name.map(Str::from), topic_id })
            .collect(),
        timeout_ms: 60_000,
        ..DeleteTopicsRequest::default()
    };
    lab.once("by an unknown id", 6, |_| request(vec![(None, TopicId([9; 16]))]))?;
    lab.once("by neither id nor name", 6, |_| request(vec![(None, TopicId::default())]))?;
    lab.once("by id and name", 6, |side| {
        request(vec![(Some("new-configured-6"), side.id("new-configured-6"))])
    })?;
    lab.once("twice", 6, |_| {
        request(vec![
            (Some("new-configured-5"), TopicId::default()),
            (Some("new-configured-5"), TopicId::default()),
        ])
    })?;
    lab.once("by id", 6, |side| request(vec![(None, side.id("new-configured-7"))]))?;
    lab.once("by id and by name, the same", 6, |side| {
        request(vec![(None, side.id("new-configured-6")), (Some("new-configured-6"), TopicId::default())])
    })?;
    Ok(())
}
