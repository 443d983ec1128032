//! Fetch: positions, limits, epochs, isolation, topic ids, sessions (KIP-227).

use anyhow::{Context, Result};
use interop::batch::Draft;
use wire::messages::fetch_request::{FetchPartition, ForgottenTopic, ReplicaState};
use wire::messages::{FetchRequest, ProduceRequest};
use wire::types::TopicId;

use super::all;
use crate::lab::{Lab, Side};
use crate::requests::{THEN, fetch, fetch_topic, produce};

pub fn run(lab: &mut Lab) -> Result<()> {
    fill(lab)?;
    positions(lab)?;
    limits(lab)?;
    epochs(lab)?;
    topics(lab)?;
    replicas(lab)?;
    sessions(lab)
}

fn fill(lab: &mut Lab) -> Result<()> {
    lab.create_topic("read", 2, &[("segment.bytes", "1000")])?;
    for round in 0..6_u8 {
        let values: Vec<Vec<u8>> = (0..3).map(|i| vec![round * 3 + i; 100]).collect();
        let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
        let records = Draft::of_values(THEN + i64::from(round) * 1000, &values).build();
        lab.once::<ProduceRequest>("setup: records to read", 9, |_| {
            produce("read", 0, -1, Some(records.clone()))
        })?;
    }
    Ok(())
}

fn positions(lab: &mut Lab) -> Result<()> {
    for offset in [0, 1, 2, 3, 10, 17, 18, 19, 1_000, -1, -2, i64::MAX, i64::MIN] {
        lab.ask(&format!("offset {offset}"), all::<FetchRequest>(), |side, v| {
            fetch(side, v, "read", 0, offset)
        })?;
    }
    lab.ask("an empty partition", all::<FetchRequest>(), |side, v| fetch(side, v, "read", 1, 0))?;
    lab.ask("beyond an empty partition", all::<FetchRequest>(), |side, v| fetch(side, v, "read", 1, 1))?;
    for level in [0, 1, 2, -1] {
        lab.ask(&format!("isolation {level}"), 4..=17, |side, v| FetchRequest {
            isolation_level: level,
            ..fetch(side, v, "read", 0, 0)
        })?;
    }
    lab.ask("compressed records to old clients", 1..=17, |side, v| fetch(side, v, "zipped", 0, 0))
}

fn limits(lab: &mut Lab) -> Result<()> {
    for bytes in [0, 1, 60, 400, 401, 800, 2_000, -1, i32::MAX] {
        lab.ask(&format!("partition limit {bytes}"), all::<FetchRequest>(), |side, v| {
            let mut request = fetch(side, v, "read", 0, 0);
            request.topics[0].partitions[0].partition_max_bytes = bytes;
            request
        })?;
        lab.ask(&format!("request limit {bytes}"), 3..=17, |side, v| FetchRequest {
            max_bytes: bytes,
            ..fetch(side, v, "read", 0, 0)
        })?;
    }
    lab.ask("several partitions under a limit", 4..=17, |side, v| {
        let at =
            |partition| FetchPartition { partition, partition_max_bytes: 500, ..FetchPartition::default() };
        let mut request = fetch(side, v, "read", 0, 0);
        request.topics.push(fetch_topic(side, v, "three", vec![at(0), at(1), at(2)]));
        FetchRequest { max_bytes: 900, ..request }
    })?;
    for (case, wait, least) in
        [("wait for nothing", 20, 1), ("negative wait", -1, 1), ("negative least", 0, -5)]
    {
        lab.ask(case, all::<FetchRequest>(), |side, v| FetchRequest {
            max_wait_ms: wait,
            min_bytes: least,
            ..fetch(side, v, "read", 0, 18)
        })?;
    }
    lab.ask("wait for more than there is", all::<FetchRequest>(), |side, v| FetchRequest {
        max_wait_ms: 20,
        min_bytes: 1 << 20,
        ..fetch(side, v, "read", 0, 15)
    })
}

fn epochs(lab: &mut Lab) -> Result<()> {
    for epoch in [0, 1, -2, i32::MAX] {
        lab.ask(&format!("current epoch {epoch}"), 9..=17, |side, v| {
            let mut request = fetch(side, v, "read", 0, 0);
            request.topics[0].partitions[0].current_leader_epoch = epoch;
            request
        })?;
    }
    for (epoch, offset) in [(0, 5), (0, 18), (0, 19), (1, 5), (7, 18), (-2, 0), (0, 50)] {
        lab.ask(&format!("last fetched epoch {epoch} at {offset}"), 12..=17, |side, v| {
            let mut request = fetch(side, v, "read", 0, offset);
            request.topics[0].partitions[0].last_fetched_epoch = epoch;
            request
        })?;
    }
    Ok(())
}

fn topics(lab: &mut Lab) -> Result<()> {
    lab.ask("unknown topic", 0..=12, |side, v| fetch(side, v, "nobody", 0, 0))?;
    lab.ask("illegal topic", 0..=12, |side, v| fetch(side, v, "a b", 0, 0))?;
    for partition in [2, -1, i32::MAX] {
        lab.ask(&format!("unknown partition {partition}"), all::<FetchRequest>(), |side, v| {
            fetch(side, v, "read", partition, 0)
        })?;
    }
    for (case, id) in [("unknown id", TopicId([9; 16])), ("absent id", TopicId::default())] {
        lab.ask(case, 13..=17, |side, v| {
            let mut request = fetch(side, v, "read", 0, 0);
            request.topics[0].topic_id = id;
            request
        })?;
        lab.ask(&format!("{case} and a known one"), 13..=17, |side, v| {
            let mut request = fetch(side, v, "read", 0, 0);
            let mut other = request.topics[0].clone();
            other.topic_id = id;
            request.topics.push(other);
            request
        })?;
    }
    lab.ask("a partition twice", all::<FetchRequest>(), |side, v| {
        let mut request = fetch(side, v, "read", 0, 0);
        let mut again = request.topics[0].partitions[0].clone();
        again.fetch_offset = 3;
        request.topics[0].partitions.push(again);
        request
    })?;
    lab.ask("no topics", all::<FetchRequest>(), |_, _| FetchRequest {
        max_wait_ms: 0,
        ..FetchRequest::default()
    })
}

fn replicas(lab: &mut Lab) -> Result<()> {
    for replica in [-2, 0, 1, 99] {
        lab.ask(&format!("as replica {replica}"), all::<FetchRequest>(), |side, v| {
            let mut request = fetch(side, v, "read", 0, 0);
            if v >= 15 {
                request.replica_state = ReplicaState { replica_id: replica, replica_epoch: -1 };
            } else {
                request.replica_id = replica;
            }
            request
        })?;
    }
    Ok(())
}

/// The steps of one session: its epoch, the offset asked at (none: no topics), the partition to forget.
type Step = (&'static str, i32, Option<i64>, Option<i32>);

fn sessions(lab: &mut Lab) -> Result<()> {
    let steps: [Step; 10] = [
        ("full", 0, Some(0), None),
        ("nothing changed", 1, None, None),
        ("another offset", 2, Some(15), None),
        ("an old epoch", 1, None, None),
        ("an epoch too far", 9, None, None),
        ("at the end", 3, Some(18), None),
        ("still at the end", 4, None, None),
        ("forgotten", 5, None, Some(0)),
        ("unknown to forget", 6, None, Some(7)),
        ("closed", -1, None, None),
    ];
    for version in 7..=17 {
        for (case, epoch, offset, forget) in steps {
            let answers = lab.once::<FetchRequest>(&format!("session: {case}"), version, |side| {
                step(side, version, (epoch, offset, forget))
            })?;
            if epoch == 0 {
                for (side, answer) in [&mut lab.kafka, &mut lab.blumfeld].into_iter().zip(answers) {
                    side.remember("session", i64::from(answer.context("no session")?.session_id));
                }
            }
        }
        lab.once::<FetchRequest>("session: gone", version, |side| step(side, version, (7, None, None)))?;
        lab.once::<FetchRequest>("session: never there", version, |side| FetchRequest {
            session_id: 123,
            session_epoch: 1,
            ..fetch(side, version, "read", 0, 0)
        })?;
        lab.once::<FetchRequest>("session: without id but an epoch", version, |side| FetchRequest {
            session_id: 0,
            session_epoch: 5,
            ..fetch(side, version, "read", 0, 0)
        })?;
    }
    Ok(())
}

fn step(side: &Side, version: i16, step: (i32, Option<i64>, Option<i32>)) -> FetchRequest {
    let (epoch, offset, forget) = step;
    let mut request = fetch(side, version, "read", 0, offset.unwrap_or(0));
    request.topics[0].partitions[0].partition_max_bytes = 450;
    if offset.is_none() {
        request.topics.clear();
    }
    if let Some(partition) = forget {
        let like = fetch_topic(side, version, "read", Vec::new());
        request.forgotten_topics_data =
            vec![ForgottenTopic { topic: like.topic, topic_id: like.topic_id, partitions: vec![partition] }];
    }
    request.session_id = if epoch == 0 { 0 } else { i32::try_from(side.number("session")).unwrap_or(0) };
    request.session_epoch = epoch;
    request
}
