//! One who asks the leader of a partition for its latest offset, again and again, and notes what he is told.

use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::leader::Tries;
use super::{Leader, Load, Progress};
use crate::calls::{LATEST, list_offsets_request};
use crate::checker::{History, Latest, Partition};
use crate::raw::Connection;
use crate::wait;

/// The first version that says so if the latest offset is not known yet (KIP-207).
const LIST_OFFSETS: i16 = 5;
/// The shortest pause between two questions.
const PAUSE: Duration = Duration::from_millis(5);
/// Errors after which the leader is looked for again. A leader that does not know yet what is committed is one of them.
const RETRIABLE: [i16; 8] = [3, 5, 6, 7, 56, 74, 75, 78];

/// Asks until told to stop.
pub(super) fn ask(load: &Load, partition: &Partition, progress: &Progress) -> Result<History> {
    let mut offsets = Vec::new();
    let told = repeat(load, partition, progress, |offset| {
        if offsets.last() != Some(&offset) {
            offsets.push(offset);
        }
        wait::pause(load.pause.max(PAUSE));
        progress.is_stopping()
    });
    told.with_context(|| format!("who asks for the end of {partition}"))?;
    let mut history = History::default();
    history.partition(partition).latest.push(Latest { asker: "the asker".to_owned(), offsets });
    Ok(history)
}

/// The latest offset, as soon as a leader tells it.
pub(super) fn ask_once(load: &Load, partition: &Partition) -> Result<i64> {
    let mut latest = 0;
    repeat(load, partition, &Progress::new(), |offset| {
        latest = offset;
        true
    })?;
    Ok(latest)
}

/// Tells `told` each answer until it has enough.
fn repeat(
    load: &Load,
    partition: &Partition,
    progress: &Progress,
    mut told: impl FnMut(i64) -> bool,
) -> Result<()> {
    let mut leader = Leader::of(load, partition);
    let mut tries = Tries::new();
    let mut connection = leader.connect(progress)?;
    loop {
        match latest(&mut connection, partition, leader.epoch())? {
            Ok(offset) => {
                tries.succeeded();
                if told(offset) {
                    return Ok(());
                }
            }
            Err(why) => {
                tries.failed(&why)?;
                connection = leader.connect(progress)?;
            }
        }
    }
}

/// What a leader of that epoch tells, or why it is to be looked for again.
fn latest(connection: &mut Connection, partition: &Partition, epoch: i32) -> Result<Result<i64, String>> {
    let request = list_offsets_request(&partition.topic, partition.index, LATEST, epoch);
    let response = match connection.call(LIST_OFFSETS, &request) {
        Ok(response) => response,
        Err(error) => return Ok(Err(format!("{error:#}"))),
    };
    let topic = response.topics.first().context("no topic in the answer")?;
    let answer = topic.partitions.first().context("no partition in the answer")?;
    match answer.error_code {
        0 => Ok(Ok(answer.offset)),
        code if RETRIABLE.contains(&code) => Ok(Err(format!("error {code}"))),
        code => bail!("error {code}: {answer:?}"),
    }
}
