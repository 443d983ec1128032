//! The checker finds what it is there for: losses, duplicates, another order, changes and divergence that were planted in
//! the segment files of a broker.
//!
//! What was planted is served by the broker like anything else that its log holds.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::BytesMut;
use interop::batch::seal;
use interop::broker::{Broker, Kind, Options};
use interop::calls;
use interop::checker::{Finding, History, Partition, compare_replicas, dump_directory, judge};
use interop::cluster::LIMIT;
use interop::workload::{self, Load, read_all};

use crate::LOSS;

const TOPIC: &str = "planted";
const LEADER_EPOCH_AT: usize = 12;
const LAST_OFFSET_DELTA_AT: usize = 23;

/// A broker that has stopped, what was written to it, and its only partition as it was then.
struct Lab {
    broker: Broker,
    load: Load,
    history: History,
    sound: tempfile::TempDir,
}

type Batches = Vec<BytesMut>;

impl Lab {
    fn new() -> Result<Self> {
        let mut broker = Broker::start(Kind::Blumfeld, Options::default())?;
        calls::create_topic(&broker.bootstrap(), TOPIC, 1, &[])?;
        let load = Load {
            addresses: vec![broker.bootstrap()],
            partitions: vec![Partition::new(TOPIC, 0)],
            producers: 1,
            readers: 1,
            record_bytes: 50,
            pause: Duration::ZERO,
            answer_limit: LIMIT,
        };
        let history = workload::run(&load, |progress| progress.until_more(40, LIMIT))?;
        judge(&history).into_result()?;
        broker.stop()?;
        let lab = Self { broker, load, history, sound: tempfile::tempdir()? };
        std::fs::copy(lab.segment(), lab.sound.path().join(SEGMENT))?;
        Ok(lab)
    }

    fn folder(&self) -> PathBuf {
        self.broker.data().join(format!("{TOPIC}-0"))
    }

    fn segment(&self) -> PathBuf {
        self.folder().join(SEGMENT)
    }

    /// Plants a change into the sound batches, and leaves nothing of what the broker knew of them.
    fn plant(&self, change: impl FnOnce(&mut Batches)) -> Result<()> {
        let sound = bytes::Bytes::from(std::fs::read(self.sound.path().join(SEGMENT))?);
        let mut batches: Batches = calls::whole_batches(sound).into_iter().map(BytesMut::from).collect();
        ensure!(batches.len() >= 40, "only {} batches", batches.len());
        change(&mut batches);
        let mut next = 0_i64;
        for batch in &mut batches {
            batch.get_mut(..8).context("a short batch")?.copy_from_slice(&next.to_be_bytes());
            let delta = batch.get(LAST_OFFSET_DELTA_AT..).and_then(|rest| rest.first_chunk());
            next += i64::from(delta.copied().map_or(0, i32::from_be_bytes)) + 1;
        }
        for file in self.folder().read_dir()? {
            let path = file?.path();
            if path
                .extension()
                .is_some_and(|it| ["index", "timeindex", "snapshot"].iter().any(|name| it == *name))
            {
                std::fs::remove_file(path)?;
            }
        }
        // The next start reads the log as after a crash.
        for file in [".kafka_cleanshutdown", "recovery-point-offset-checkpoint"] {
            std::fs::remove_file(self.broker.data().join(file))?;
        }
        Ok(std::fs::write(self.segment(), batches.concat())?)
    }

    /// What the checker finds when the broker serves its log again.
    fn found(&mut self) -> Result<Vec<Finding>> {
        self.broker.resume()?;
        let partition = Partition::new(TOPIC, 0);
        let latest = workload::latest(&self.load, &partition)?;
        let read = read_all(&self.load, &partition)?;
        self.broker.stop()?;
        let mut history = self.history.clone();
        let noted = history.partition(&partition);
        noted.reads.retain(|read| !read.is_final);
        noted.reads.push(read);
        noted.latest.iter_mut().for_each(|told| told.offsets.push(latest));
        Ok(judge(&history).0.into_iter().map(|(_, finding)| finding).collect())
    }

    /// How a replica with the planted log differs from a sound one.
    fn differs(&self) -> Result<bool> {
        let (sound, planted) = (dump_directory(self.sound.path())?, dump_directory(&self.folder())?);
        let end = sound.end().max(planted.end());
        Ok(!compare_replicas(&[("sound".to_owned(), sound), ("planted".to_owned(), planted)], end).is_empty())
    }
}

const SEGMENT: &str = "00000000000000000000.log";

/// Plants, and wants a finding of that kind, and replicas that differ.
fn is_found(change: impl FnOnce(&mut Batches), is_it: impl Fn(&Finding) -> bool) -> Result<()> {
    let mut lab = Lab::new()?;
    lab.plant(change)?;
    ensure!(lab.differs()?, "the replicas seem to be equal");
    let found = lab.found()?;
    ensure!(found.iter().any(is_it), "{found:?}");
    Ok(())
}

/// Flips a bit of the last record's value, before the count of its headers.
fn damage(batch: &mut BytesMut) {
    let at = batch.len().saturating_sub(2);
    if let Some(byte) = batch.get_mut(at) {
        *byte ^= 1;
    }
    seal(batch);
}

#[test]
fn a_log_in_which_nothing_was_planted_is_sound() -> Result<()> {
    let mut lab = Lab::new()?;
    lab.plant(|_| {})?;
    ensure!(!lab.differs()?);
    let found = lab.found()?;
    ensure!(found.is_empty(), "{found:?}");
    Ok(())
}

#[test]
fn a_planted_loss_is_found() -> Result<()> {
    is_found(|batches| drop(batches.remove(20)), |finding| matches!(finding, Finding::Lost { .. }))?;
    is_found(|batches| batches.truncate(30), |finding| matches!(finding, Finding::Lost { .. }))
}

/// Whoever asks for the latest offset is told less than before.
#[test]
fn a_planted_fall_of_the_latest_offset_is_found() -> Result<()> {
    is_found(|batches| batches.truncate(30), |finding| matches!(finding, Finding::Fallen { .. }))
}

#[test]
fn a_broker_whose_log_lost_its_end_tells_so_and_a_sound_one_does_not() -> Result<()> {
    let mut lab = Lab::new()?;
    lab.plant(|_| {})?;
    lab.found()?;
    ensure!(!lab.broker.log()?.contains(LOSS), "{}", lab.broker.log()?);
    lab.plant(|batches| batches.truncate(30))?;
    lab.found()?;
    let log = lab.broker.log()?;
    ensure!(log.lines().any(|line| line.contains(LOSS) && line.contains(TOPIC)), "{log}");
    Ok(())
}

#[test]
fn a_planted_duplicate_is_found() -> Result<()> {
    let again = |batches: &mut Batches| batches.insert(25, batches[20].clone());
    is_found(again, |finding| matches!(finding, Finding::Duplicated { .. }))
}

#[test]
fn a_planted_reorder_is_found() -> Result<()> {
    is_found(|batches| batches.swap(20, 21), |finding| matches!(finding, Finding::Reordered { .. }))
}

#[test]
fn a_planted_change_is_found() -> Result<()> {
    is_found(|batches| damage(&mut batches[20]), |finding| matches!(finding, Finding::Changed { .. }))
}

#[test]
fn a_planted_divergence_of_replicas_is_found() -> Result<()> {
    let lab = Lab::new()?;
    // The leader epoch lies outside the checksum, and no reader sees it.
    lab.plant(|batches| batches[20][LEADER_EPOCH_AT + 3] ^= 1)?;
    ensure!(lab.differs()?);
    ensure!(
        dump_directory(Path::new(&lab.folder()))?.batches.len()
            == dump_directory(lab.sound.path())?.batches.len()
    );
    Ok(())
}
