//! Random histories of a compacted log, judged by a simple model: whoever reads committed data finds for every key the
//! value that was written last, whatever was compacted in between. Offsets, log end and producers never change.

use std::collections::BTreeMap;

use proptest::prelude::*;
use wire::batch::{AbortedTransactions, CompressionType, Limits, Record};

use super::compact::{Free, SETTINGS, compacted, pass};
use super::*;
use crate::cleaner::CleanerSettings;

/// What happens to the log.
#[derive(Clone, Debug)]
enum Step {
    /// A batch of these keys; a value of none deletes.
    Plain { records: Vec<(u8, Option<u8>)>, codec: usize },
    /// A batch of an idempotent producer.
    Idempotent { producer: i64, records: Vec<(u8, Option<u8>)>, codec: usize },
    /// A batch in a transaction.
    Transactional { producer: i64, records: Vec<(u8, Option<u8>)>, codec: usize },
    /// The end of the producer's transaction, if one is open.
    End { producer: i64, aborted: bool },
    /// A pass, with room for this many keys.
    Compact { keys: u64 },
    /// Time goes by.
    Wait { ms: i64 },
    /// The log is closed and opened again, perhaps without its snapshots.
    Reopen { snapshots: bool },
    /// The process dies.
    Kill,
}

fn records() -> impl Strategy<Value = Vec<(u8, Option<u8>)>> {
    prop::collection::vec((0u8..6, prop::option::weighted(0.8, any::<u8>())), 1..5)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (records(), 0usize..5).prop_map(|(records, codec)| Step::Plain { records, codec }),
        4 => (0i64..3, records(), 0usize..5)
            .prop_map(|(producer, records, codec)| Step::Idempotent { producer, records, codec }),
        4 => (10i64..13, records(), 0usize..5)
            .prop_map(|(producer, records, codec)| Step::Transactional { producer, records, codec }),
        3 => (10i64..13, any::<bool>()).prop_map(|(producer, aborted)| Step::End { producer, aborted }),
        4 => (2u64..40).prop_map(|keys| Step::Compact { keys }),
        2 => (0i64..3_000).prop_map(|ms| Step::Wait { ms }),
        1 => any::<bool>().prop_map(|snapshots| Step::Reopen { snapshots }),
        1 => Just(Step::Kill),
    ];
    prop::collection::vec(step, 1..80)
}

type State = BTreeMap<Bytes, Option<Bytes>>;

/// The log, and all that was ever written to it.
struct Told {
    bench: Bench,
    log: Arc<PartitionLog>,
    sequences: BTreeMap<i64, i32>,
    /// Producers with an open transaction.
    open: BTreeMap<i64, Vec<Record>>,
    written: BTreeMap<i64, Record>,
    /// The latest committed record of each key.
    latest: BTreeMap<Bytes, Record>,
}

impl Told {
    fn begin() -> Self {
        let bench = Bench::with(LogConfig { segment_bytes: 400, ..compacted() });
        let log = bench.create();
        Self {
            bench,
            log,
            sequences: BTreeMap::new(),
            open: BTreeMap::new(),
            written: BTreeMap::new(),
            latest: BTreeMap::new(),
        }
    }

    fn put(
        &mut self,
        records: &[(u8, Option<u8>)],
        codec: usize,
        producer: Option<(i64, bool)>,
    ) -> Vec<Record> {
        let mut builder = BatchBuilder::new(CompressionType::ALL[codec].into());
        if let Some((id, transactional)) = producer {
            let sequence = self.sequences.entry(id).or_insert(0);
            builder = builder.producer(id, 0, *sequence).transactional(transactional);
            *sequence += records.len() as i32;
        }
        let wall_ms = self.bench.now.wall_ms;
        for (at, (key, value)) in records.iter().enumerate() {
            builder.append(
                Millis(wall_ms + at as i64),
                Some(&[*key]),
                value.as_ref().map(std::slice::from_ref),
            );
        }
        let info = self.log.put(builder.build().unwrap().bytes);
        let read = self.log.read_from(info.base_offset.0, 1, ReadBound::LogEnd);
        let records: Vec<Record> = read[0].records(Limits::default()).map(Result::unwrap).collect();
        self.written.extend(records.iter().map(|record| (record.offset.0, record.clone())));
        self.log.replicate();
        records
    }

    /// Readers find a record when it is decided; of a key the one with the larger offset counts.
    fn commit(&mut self, records: Vec<Record>) {
        for record in records {
            let key = record.key.clone().unwrap();
            if self.latest.get(&key).is_none_or(|known| known.offset < record.offset) {
                self.latest.insert(key, record);
            }
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Plain { records, codec } => {
                let records = self.put(records, *codec, None);
                self.commit(records);
            }
            Step::Idempotent { producer, records, codec } => {
                let records = self.put(records, *codec, Some((*producer, false)));
                self.commit(records);
            }
            Step::Transactional { producer, records, codec } => {
                let records = self.put(records, *codec, Some((*producer, true)));
                self.open.entry(*producer).or_default().extend(records);
            }
            Step::End { producer, aborted } => {
                let Some(records) = self.open.remove(producer) else { return };
                self.log.put_marker(marker(*producer, 0, *aborted));
                self.log.replicate();
                if !aborted {
                    self.commit(records);
                }
            }
            Step::Compact { keys } => {
                let settings = CleanerSettings { dedupe_buffer_bytes: 24 * keys, ..SETTINGS };
                let (end, before) = (self.log.end(), self.log.first_dirty_offset());
                pass(&self.log, &settings, &Free, self.bench.now).unwrap();
                assert_eq!(self.log.end(), end);
                assert!(self.log.first_dirty_offset() >= before);
            }
            Step::Wait { ms } => self.bench.now.wall_ms += ms,
            Step::Reopen { snapshots } => {
                let producers = self.producers();
                let dirty = self.log.first_dirty_offset();
                self.log.close().unwrap();
                let log = self.log.clone();
                self.bench.checkpoint(&log);
                if !snapshots {
                    for name in self.bench.files().iter().filter(|name| name.ends_with(".snapshot")) {
                        self.bench.disk.remove_file(&Path::new(DIR).join(name)).unwrap();
                    }
                }
                self.log = self.bench.open(*snapshots);
                self.restore(dirty, &producers);
            }
            Step::Kill => {
                let (producers, dirty) = (self.producers(), self.log.first_dirty_offset());
                self.bench.high_watermark = self.log.positions().high_watermark;
                self.bench = self.bench.after(CrashMode::ProcessKill);
                self.log = self.bench.open(false);
                self.restore(dirty, &producers);
            }
        }
    }

    fn restore(&mut self, dirty: Option<Offset>, producers: &[(i64, i32, Option<Offset>)]) {
        if let Some(dirty) = dirty {
            self.log.restore_first_dirty(dirty);
        }
        self.log.replicate();
        assert_eq!(self.producers(), producers, "producers after a start");
    }

    /// Of each producer the last sequence and the open transaction.
    fn producers(&self) -> Vec<(i64, i32, Option<Offset>)> {
        let writer = lock(&self.log.writer);
        let entries = writer.producers.entries();
        entries.map(|entry| (entry.producer_id, entry.last_sequence(), entry.open_txn_first_offset)).collect()
    }

    /// What a reader of committed data finds up to the last stable offset.
    fn check(&self) {
        let mut found: State = State::new();
        let end = self.log.positions().last_stable;
        let mut at = Offset(0);
        while at < end {
            let read = self.log.read(at, 300, true, ReadBound::LastStable).unwrap();
            let Some(range) = read.range else { break };
            let aborted = read.aborted.iter().map(|txn| (txn.producer_id, txn.first_offset));
            let mut aborted = AbortedTransactions::new(aborted);
            for batch in batches(range.to_vec().unwrap().into()) {
                let batch = batch.unwrap();
                batch.verify_crc().unwrap();
                assert!(batch.header.last_offset() >= at);
                at = batch.header.next_offset();
                if !aborted.admits(&batch).unwrap() {
                    continue;
                }
                for record in batch.records(Limits::default()).map(Result::unwrap) {
                    assert_eq!(
                        Some(&record.value),
                        self.written.get(&record.offset.0).map(|known| &known.value)
                    );
                    assert_eq!(record.timestamp, self.written[&record.offset.0].timestamp);
                    found.insert(record.key.unwrap(), record.value);
                }
            }
        }
        for (key, latest) in self.latest.iter().filter(|(_, latest)| latest.offset < end) {
            let value = found.get(key).cloned().flatten();
            assert_eq!(value, latest.value, "key {key:?}, last written at {}", latest.offset);
        }
        let deleted = |key: &Bytes| !self.latest.contains_key(key);
        assert!(!found.iter().any(|(key, value)| value.is_some() && deleted(key)), "{found:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn every_reader_finds_the_latest_value_of_every_key(steps in steps()) {
        let mut told = Told::begin();
        for step in &steps {
            told.step(step);
            told.check();
        }
    }
}
