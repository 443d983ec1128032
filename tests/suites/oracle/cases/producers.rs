//! InitProducerId, and what an idempotent producer's sequences lead to.

use anyhow::{Context, Result};
use bytes::Bytes;
use interop::batch::Draft;
use wire::messages::{InitProducerIdRequest, ProduceRequest};

use super::all;
use crate::lab::{Lab, Side};
use crate::requests::{THEN, fetch, produce};

pub fn run(lab: &mut Lab) -> Result<()> {
    ids(lab)?;
    sequences(lab)?;
    lab.ask("what producers left", 4..=17, |side, v| fetch(side, v, "empty", 0, 0))
}

fn ids(lab: &mut Lab) -> Result<()> {
    let plain = InitProducerIdRequest {
        transactional_id: None,
        transaction_timeout_ms: 60_000,
        ..InitProducerIdRequest::default()
    };
    // The very first id may have to wait until the broker holds a block of ids.
    for side in [&mut lab.kafka, &mut lab.blumfeld] {
        side.settle_producer_ids(&plain)?;
    }
    lab.ask("a new id", all::<InitProducerIdRequest>(), |_, _| plain.clone())?;
    for timeout in [0, -1, i32::MAX] {
        lab.ask(&format!("timeout {timeout}"), all::<InitProducerIdRequest>(), |_, _| {
            InitProducerIdRequest { transaction_timeout_ms: timeout, ..plain.clone() }
        })?;
    }
    for (id, epoch) in [(5, -1), (-1, 5), (5, 5), (-2, -2), (0, 0)] {
        lab.ask(&format!("id {id} epoch {epoch}"), 3..=5, |_, _| InitProducerIdRequest {
            producer_id: id,
            producer_epoch: epoch,
            ..plain.clone()
        })?;
    }
    lab.ask("an empty transactional id", all::<InitProducerIdRequest>(), |_, _| InitProducerIdRequest {
        transactional_id: Some("".into()),
        ..plain.clone()
    })
}

/// Lets one producer write two batches into partition 0 of a topic.
pub fn write_some(lab: &mut Lab, topic: &str) -> Result<()> {
    learn(lab, "writer")?;
    for sequence in [0, 2] {
        lab.ask(&format!("written from {sequence}"), 9..=9, |side, _| {
            produce(topic, 0, 1, batch(side, "writer", 0, sequence, 2))
        })?;
    }
    Ok(())
}

fn learn(lab: &mut Lab, name: &str) -> Result<()> {
    let request = InitProducerIdRequest {
        transactional_id: None,
        transaction_timeout_ms: 60_000,
        ..InitProducerIdRequest::default()
    };
    let answers = lab.once("an id to write with", 4, |_| request.clone())?;
    for (side, answer) in [&mut lab.kafka, &mut lab.blumfeld].into_iter().zip(answers) {
        side.remember(name, answer.context("no id")?.producer_id);
    }
    Ok(())
}

fn batch(side: &Side, name: &str, epoch: i16, sequence: i32, count: usize) -> Option<Bytes> {
    let values = vec![&b"value"[..]; count];
    Some(Draft::of_values(THEN, &values).from_producer(side.number(name), epoch, sequence).build())
}

fn sequences(lab: &mut Lab) -> Result<()> {
    for version in 3..=11 {
        learn(lab, "writer")?;
        let steps: [(&str, i16, i32, usize); 22] = [
            ("the first batch not at 0", 0, 5, 2),
            ("the first batch", 0, 0, 2),
            ("the same again", 0, 0, 2),
            ("the same sequence, more records", 0, 0, 3),
            ("the next", 0, 2, 1),
            ("a gap", 0, 9, 1),
            ("the one after", 0, 3, 1),
            ("again", 0, 2, 1),
            ("four", 0, 4, 1),
            ("five", 0, 5, 1),
            ("six", 0, 6, 1),
            ("older than five batches", 0, 0, 2),
            ("a newer epoch not at 0", 1, 7, 1),
            ("a newer epoch", 1, 0, 1),
            ("the old epoch", 0, 7, 1),
            ("a duplicate of the new epoch", 1, 0, 1),
            ("much newer", 9, 0, 1),
            ("negative epoch", -1, 1, 1),
            ("negative sequence", 9, -1, 1),
            ("sequence -5", 9, -5, 1),
            ("largest sequence", 9, i32::MAX, 1),
            ("going on", 9, 1, 3),
        ];
        for (case, epoch, sequence, count) in steps {
            lab.once::<ProduceRequest>(&format!("idempotent: {case}"), version, |side| {
                produce("empty", 0, -1, batch(side, "writer", epoch, sequence, count))
            })?;
        }
    }
    wrap(lab)?;
    unknown_producer(lab)
}

fn wrap(lab: &mut Lab) -> Result<()> {
    learn(lab, "wrapping")?;
    for (case, sequence, count) in [("below the end", i32::MAX - 1, 1), ("at 0", 0, 1)] {
        lab.once::<ProduceRequest>(&format!("wrapping: {case}"), 9, |side| {
            produce("empty", 0, -1, batch(side, "wrapping", 0, sequence, count))
        })?;
    }
    Ok(())
}

fn unknown_producer(lab: &mut Lab) -> Result<()> {
    for (case, attributes) in [("transactional", 0x10), ("control and transactional", 0x30)] {
        lab.ask(&format!("{case}, of nobody"), 3..=11, |_, _| {
            let mut draft = Draft::of_values(THEN, &[b"x"]).from_producer(987_654, 3, 0);
            draft.attributes = attributes;
            produce("empty", 1, -1, Some(draft.build()))
        })?;
    }
    lab.ask("an id that nobody was given", 3..=11, |_, version| {
        let draft = Draft::of_values(THEN, &[b"x"]).from_producer(880_000 + i64::from(version), 3, 0);
        produce("empty", 1, -1, Some(draft.build()))
    })
}
