//! A disk that dies at every single operation of a story, and what the next process finds.
//!
//! Whatever was confirmed survives the death of the process; whatever was flushed survives a lost power; nothing
//! else than what was written ever appears; and a log always opens.

use std::collections::BTreeMap;

use super::*;

/// What a story has done so far.
struct Told {
    bench: Bench,
    log: Arc<PartitionLog>,
    /// Bytes behind the offset and epoch of each batch that was ever written at an offset, with its epoch.
    written: BTreeMap<i64, Vec<(i32, Bytes)>>,
    /// Offsets of confirmed batches, in order.
    confirmed: Vec<(i64, i64)>,
    /// Below this, batches were flushed and not cut since.
    flushed: i64,
    epoch: i32,
}

/// Any error ends the story: the disk is dead.
struct Died;

type Step = Result<(), Died>;

impl Told {
    fn begin() -> Self {
        let bench =
            Bench::with(LogConfig { segment_bytes: 700, index_interval_bytes: 150, ..small_segments() });
        let log = bench.create();
        Self { bench, log, written: BTreeMap::new(), confirmed: Vec::new(), flushed: 0, epoch: 0 }
    }

    fn lead(&mut self, epoch: i32) -> Step {
        self.epoch = epoch;
        self.log.become_leader(LeaderEpoch(epoch)).map(drop).map_err(|_| Died)
    }

    fn put(&mut self, records: Bytes, origin: AppendOrigin) -> Step {
        let base = self.log.end();
        self.written.entry(base).or_default().push((self.epoch, records.slice(16..)));
        let info =
            self.log.append_as_leader(records, origin, LeaderEpoch(self.epoch), now()).map_err(|_| Died)?;
        self.confirmed.push((info.base_offset.0, info.last_offset.0));
        Ok(())
    }

    fn write(&mut self, times: usize) -> Step {
        (0..times).try_for_each(|at| self.put(records(1 + at % 3, 90), AppendOrigin::Client))
    }

    fn flush(&mut self) -> Step {
        self.log.flush().map_err(|_| Died)?;
        self.note_flushed();
        Ok(())
    }

    fn run_jobs(&mut self) -> Step {
        self.bench.run_jobs();
        self.note_flushed();
        if self.bench.health.is_online() { Ok(()) } else { Err(Died) }
    }

    fn note_flushed(&mut self) {
        self.flushed = self.flushed.max(self.log.positions().recovery_point.0);
    }

    fn truncate(&mut self, to: i64) -> Step {
        // From here on anything at or above may be gone.
        self.confirmed.retain(|batch| batch.1 < to);
        self.flushed = self.flushed.min(to);
        self.log.truncate_to(Offset(to), now(), EXPIRATION).map_err(|_| Died)?;
        self.bench.recovery_point = self.bench.recovery_point.min(self.log.positions().recovery_point);
        Ok(())
    }

    fn raise_log_start(&mut self, to: i64) -> Step {
        self.log.replicate();
        self.log.increment_log_start(Offset(to)).map_err(|_| Died)?;
        self.bench.log_start = Offset(to);
        self.confirmed.retain(|batch| batch.1 >= to);
        self.log.delete_old_segments(self.bench.now).map_err(|_| Died)?;
        Ok(())
    }

    fn checkpoint(&mut self) {
        let log = self.log.clone();
        self.bench.checkpoint(&log);
    }

    /// Every kind of change that a log goes through.
    fn tell(&mut self) -> Step {
        self.lead(0)?;
        self.write(5)?;
        self.put(produced(9, 0, 0, 2), AppendOrigin::Client)?;
        self.run_jobs()?;
        self.checkpoint();
        self.put(transactional(8, 0, 0, 2), AppendOrigin::Client)?;
        self.put(produced(9, 0, 2, 1), AppendOrigin::Client)?;
        self.put(marker(8, 0, true), AppendOrigin::Coordinator)?;
        self.flush()?;
        self.checkpoint();
        self.lead(2)?;
        self.write(6)?;
        self.run_jobs()?;
        self.lead(3)?;
        self.write(3)?;
        let to = self.confirmed[self.confirmed.len() - 7].0;
        self.truncate(to)?;
        self.lead(5)?;
        self.put(produced(9, 0, 3, 1), AppendOrigin::Client)?;
        self.write(7)?;
        self.run_jobs()?;
        self.raise_log_start(self.confirmed[4].0)?;
        self.checkpoint();
        self.write(2)?;
        self.log.close().map_err(|_| Died)?;
        self.note_flushed();
        self.checkpoint();
        Ok(())
    }
}

/// What the next process must find.
fn check(told: &Told, mode: CrashMode) {
    let bench = told.bench.after(mode);
    if !bench.disk.exists(Path::new(DIR)).unwrap() {
        assert_eq!(told.flushed, 0, "the directory is gone");
        return;
    }
    let log = bench.try_open(false).unwrap_or_else(|error| panic!("{mode:?}: {error}"));
    check_content(told, mode, &log);
    check_state(&log, mode);
    // It goes on, and a second crash changes nothing.
    let appended = log.append_as_leader(records(1, 5), AppendOrigin::Client, LeaderEpoch(9), now());
    let base = appended.unwrap().base_offset;
    let before = (offsets(&log.all()), log.end(), epochs(&log));
    assert_eq!(before.0.last(), Some(&(base.0, base.0)));
    let log = bench.after(CrashMode::ProcessKill).open(false);
    assert_eq!((offsets(&log.all()), log.end(), epochs(&log)), before, "{mode:?}");
}

fn check_content(told: &Told, mode: CrashMode, log: &Arc<PartitionLog>) {
    assert!(log.positions().is_consistent());
    let all = log.all();
    let found = offsets(&all);
    for pair in found.windows(2) {
        assert!(pair[0].1 < pair[1].0, "{mode:?}: {found:?}");
    }
    for batch in &all {
        let at = &batch.header;
        let known = told.written.get(&at.base_offset.0).into_iter().flatten();
        let same = known
            .filter(|(epoch, rest)| *epoch == at.partition_leader_epoch.0 && rest[..] == batch.bytes[16..]);
        assert_eq!(same.count(), 1, "{mode:?}: batch at {} was never written so", at.base_offset);
    }
    let needed = |batch: &&(i64, i64)| mode == CrashMode::ProcessKill || batch.1 < told.flushed;
    let lost: Vec<_> = told.confirmed.iter().filter(needed).filter(|batch| !found.contains(batch)).collect();
    assert!(lost.is_empty(), "{mode:?}: {lost:?} lost, found {found:?}, flushed to {}", told.flushed);
}

/// Epochs and producers say what the batches say.
fn check_state(log: &Arc<PartitionLog>, mode: CrashMode) {
    let all = log.all();
    let writer = lock(&log.writer);
    let history = read_lock(&log.epochs).clone();
    let log_start = log.positions().log_start;
    for batch in &all {
        let epoch = history.epoch_of(batch.header.base_offset.max(log_start));
        assert_eq!(epoch, Some(batch.header.partition_leader_epoch), "{mode:?}: {history:?}");
    }
    let mut last = BTreeMap::new();
    for batch in all.iter().filter(|batch| batch.header.has_producer_id() && !batch.header.is_control()) {
        last.insert(batch.header.producer_id, batch.header.last_sequence());
    }
    for (producer, sequence) in last {
        let known = writer.producers.get(producer).map(|entry| entry.last_sequence());
        assert_eq!(known, Some(sequence), "{mode:?}: producer {producer}");
    }
    let ended = all.iter().any(|batch| batch.header.is_control());
    let begun = all.iter().any(|batch| batch.header.is_transactional());
    if begun && !ended {
        assert!(writer.producers.first_unstable_offset().is_some(), "{mode:?}");
    }
    let aborted: usize = log.segments().iter().map(|it| it.txn_index().all().unwrap().len()).sum();
    assert_eq!(aborted > 0, ended, "{mode:?}");
}

fn changes_of_the_story() -> u64 {
    let mut told = Told::begin();
    let before = told.bench.disk.changes();
    assert!(told.tell().is_ok());
    told.bench.disk.changes() - before
}

fn at_every_operation(mode: impl Fn(u64) -> Vec<CrashMode>) {
    for at in 0..=changes_of_the_story() {
        for mode in mode(at) {
            let mut told = Told::begin();
            told.bench.disk.crash_at(at);
            let _ = told.tell();
            check(&told, mode);
        }
    }
}

#[test]
fn a_killed_process_loses_nothing_that_was_confirmed() {
    at_every_operation(|_| vec![CrashMode::ProcessKill]);
}

#[test]
fn a_lost_power_loses_nothing_that_was_flushed() {
    at_every_operation(|_| vec![CrashMode::LoseUnsynced]);
}

/// apache/kafka#9621, apache/kafka#10680.
#[test]
fn a_lost_power_that_tears_and_reorders_loses_nothing_that_was_flushed() {
    at_every_operation(|at| (0..6).map(|seed| CrashMode::PowerLoss { seed: at * 31 + seed }).collect());
}
