//! A disk that dies at every single operation of two compactions, and what the next process finds: the latest value of
//! every key, no value that was deleted, nothing torn. A log is as before a group of segments was replaced, or as after.

use std::collections::BTreeMap;

use super::compact::{Free, SETTINGS, compacted, contents, keyed, pass, roll};
use super::*;

/// When the tombstones' time has come.
const LATER: Now = Now { mono_ms: 50_000, wall_ms: 9_000_000 };

/// A log with values that are overwritten, keys that are deleted, and a producer, all of it flushed.
fn written() -> (Bench, Arc<PartitionLog>) {
    let mut bench = Bench::with(LogConfig { segment_bytes: 700, ..compacted() });
    let log = bench.create();
    for round in 0..12 {
        let (a, own) = (format!("{round}"), format!("k{round}"));
        log.put(keyed(1000, &[("a", Some(&a)), (&own, Some("1")), ("gone", Some("1"))]));
        if round % 3 == 0 {
            log.put(keyed(1000, &[(&own, Some("2")), ("b", Some(&a))]));
        }
    }
    log.put(producer_batch(0));
    log.put(producer_batch(1));
    log.put(keyed(1000, &[("gone", None), ("k4", None), ("p", Some("other"))]));
    roll(&log);
    log.flush().unwrap();
    bench.checkpoint(&log);
    (bench, log)
}

fn producer_batch(sequence: i32) -> Bytes {
    let mut builder = BatchBuilder::new(Compression::None).producer(9, 0, sequence);
    builder.append(Millis(1000), Some(b"p"), Some(b"value")).build().unwrap().bytes
}

/// Two passes: the second one drops the tombstones that the first one kept.
fn compact_twice(bench: &Bench, log: &Arc<PartitionLog>) -> Option<()> {
    pass(log, &SETTINGS, &Free, bench.now).ok()?;
    log.try_put(keyed(1000, &[("a", Some("13")), ("filler", Some(&"f".repeat(400)))])).ok()?;
    log.try_put(keyed(1000, &[("b", Some("13")), ("filler", Some(&"f".repeat(400)))])).ok()?;
    log.replicate();
    log.flush().ok()?;
    pass(log, &SETTINGS, &Free, LATER).ok()?;
    log.close().ok()
}

/// The latest value of each key that was not deleted.
fn state(log: &Arc<PartitionLog>) -> BTreeMap<String, String> {
    let mut state = BTreeMap::new();
    for (_, key, value) in contents(log) {
        match value {
            Some(value) => state.insert(key, value),
            None => state.remove(&key),
        };
    }
    state
}

fn expected(log: &Arc<PartitionLog>) -> BTreeMap<String, String> {
    let pairs = (0..12).filter(|round| *round != 4).map(|round| {
        let value = if round % 3 == 0 { "2" } else { "1" };
        (format!("k{round}"), value.to_owned())
    });
    let mut state: BTreeMap<String, String> = pairs.collect();
    state.insert("p".into(), "other".into());
    for (key, flushed) in [("a", "11"), ("b", "9")] {
        // The last value was not flushed at every moment.
        let last =
            contents(log).iter().any(|(_, found, value)| found == key && value.as_deref() == Some("13"));
        state.insert(key.into(), if last { "13" } else { flushed }.into());
    }
    state
}

fn check(bench: &Bench, mode: CrashMode, end: i64, at: u64) {
    let mut after = bench.after(mode);
    let log = after.try_open(false).unwrap_or_else(|error| panic!("{mode:?} at {at}: {error}"));
    assert!(log.end() >= end, "{mode:?} at {at}");
    let found = offsets(&log.all());
    assert!(found.windows(2).all(|pair| pair[0].1 < pair[1].0), "{mode:?} at {at}: {found:?}");
    assert_eq!(state(&log), expected(&log), "{mode:?} at {at}");
    {
        let writer = lock(&log.writer);
        let last = writer.producers.get(9).map(|entry| entry.last_sequence());
        assert_eq!(last, Some(1), "{mode:?} at {at}");
    }
    // Compaction goes on from there, once the tombstones' time has come for good, and a clean stop changes nothing.
    log.replicate();
    after.now = LATER;
    for _ in 0..2 {
        pass(&log, &SETTINGS, &Free, LATER).unwrap_or_else(|error| panic!("{mode:?} at {at}: {error}"));
    }
    assert_eq!(state(&log), expected(&log), "{mode:?} at {at}, compacted again");
    let before = (contents(&log), log.end());
    let log = after.reopen_clean(log);
    assert_eq!((contents(&log), log.end()), before, "{mode:?} at {at}, opened again");
    let left = after.files();
    assert!(left.iter().all(|name| !name.ends_with(".swap") && !name.ends_with(".cleaned")), "{left:?}");
}

fn changes() -> u64 {
    let (bench, log) = written();
    let before = bench.disk.changes();
    assert!(compact_twice(&bench, &log).is_some());
    assert!(log.segment_count() < 12);
    bench.disk.changes() - before
}

fn at_every_operation(mode: impl Fn(u64) -> Vec<CrashMode>) {
    let changes = changes();
    assert!(changes > 60, "{changes}");
    for at in 0..=changes {
        for mode in mode(at) {
            let (bench, log) = written();
            let end = log.end();
            bench.disk.crash_at(at);
            let _ = compact_twice(&bench, &log);
            check(&bench, mode, end, at);
        }
    }
}

#[test]
fn a_killed_process_leaves_every_latest_value() {
    at_every_operation(|_| vec![CrashMode::ProcessKill]);
}

#[test]
fn a_lost_power_leaves_every_latest_value() {
    at_every_operation(|_| vec![CrashMode::LoseUnsynced]);
}

#[test]
fn a_lost_power_that_tears_and_reorders_leaves_every_latest_value() {
    at_every_operation(|at| (0..4).map(|seed| CrashMode::PowerLoss { seed: at * 17 + seed }).collect());
}
