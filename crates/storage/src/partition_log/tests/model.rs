//! Random operations on a log, compared after each with a plain list of batches.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Action {
    Append { count: usize, size: usize },
    Group { counts: Vec<usize> },
    Produce { producer: i64, count: usize },
    Replicate { back: i64 },
    NewEpoch,
    Truncate { back: i64 },
    StartAt { ahead: i64 },
    RaiseLogStart { back: i64 },
    Retention,
    Flush,
    RunJobs,
    CleanRestart,
    Kill { checkpointed: bool },
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        10 => (1..5usize, 1..200usize).prop_map(|(count, size)| Action::Append { count, size }),
        3 => prop::collection::vec(1..4usize, 1..6).prop_map(|counts| Action::Group { counts }),
        4 => (1..3i64, 1..4usize).prop_map(|(producer, count)| Action::Produce { producer, count }),
        4 => (0..5i64).prop_map(|back| Action::Replicate { back }),
        2 => Just(Action::NewEpoch),
        2 => (0..12i64).prop_map(|back| Action::Truncate { back }),
        1 => (-10..10i64).prop_map(|ahead| Action::StartAt { ahead }),
        2 => (0..8i64).prop_map(|back| Action::RaiseLogStart { back }),
        2 => Just(Action::Retention),
        2 => Just(Action::Flush),
        2 => Just(Action::RunJobs),
        2 => Just(Action::CleanRestart),
        3 => any::<bool>().prop_map(|checkpointed| Action::Kill { checkpointed }),
    ]
}

/// What the log must be.
#[derive(Default)]
struct Model {
    /// First and last offset, epoch and producer of each batch.
    batches: Vec<(i64, i64, i32, i64)>,
    log_start: i64,
    high_watermark: i64,
    log_end: i64,
    epoch: i32,
    /// Next sequence of each producer.
    sequences: std::collections::BTreeMap<i64, i32>,
}

impl Model {
    fn append(&mut self, count: usize, producer: i64) {
        let last = self.log_end + count as i64 - 1;
        self.batches.push((self.log_end, last, self.epoch, producer));
        self.log_end = last + 1;
        if producer >= 0 {
            *self.sequences.entry(producer).or_default() += count as i32;
        }
    }

    fn truncate(&mut self, offset: i64) {
        self.batches.retain(|batch| batch.1 < offset);
        self.log_end = offset;
        self.log_start = self.log_start.min(offset);
        self.high_watermark = self.high_watermark.min(offset);
    }

    /// Batches that a reader from the log start sees.
    fn visible(&self) -> Vec<(i64, i64)> {
        let visible = self.batches.iter().filter(|batch| batch.1 >= self.log_start);
        visible.map(|batch| (batch.0, batch.1)).collect()
    }
}

struct Run {
    bench: Bench,
    log: Arc<PartitionLog>,
    model: Model,
}

impl Run {
    fn new() -> Self {
        let bench = Bench::with(LogConfig {
            retention_bytes: 3000,
            retention_ms: Millis(-1),
            segment_bytes: 1500,
            ..small_segments()
        });
        let log = bench.create();
        let run = Self { bench, log, model: Model::default() };
        run.log.become_leader(LeaderEpoch(0)).unwrap();
        run
    }

    fn put(&self, records: Bytes) -> AppendInfo {
        let epoch = LeaderEpoch(self.model.epoch);
        self.log.append_as_leader(records, AppendOrigin::Client, epoch, self.bench.now).unwrap()
    }

    fn apply(&mut self, action: &Action) {
        match action {
            Action::Append { count, size } => {
                let info = self.put(records(*count, *size));
                assert_eq!(info.base_offset.0, self.model.log_end);
                self.model.append(*count, -1);
            }
            Action::Group { counts } => {
                let requests = counts.iter().map(|count| LeaderAppend {
                    records: records(*count, 100),
                    origin: AppendOrigin::Client,
                });
                let epoch = LeaderEpoch(self.model.epoch);
                for (count, info) in counts.iter().zip(self.log.append_many_as_leader(
                    requests.collect(),
                    epoch,
                    self.bench.now,
                )) {
                    assert_eq!(info.unwrap().base_offset.0, self.model.log_end);
                    self.model.append(*count, -1);
                }
            }
            Action::Produce { producer, count } => self.produce(*producer, *count),
            Action::Replicate { back } => {
                let to = self.model.log_end - back;
                self.log.advance_high_watermark(Offset(to));
                self.model.high_watermark = self.model.high_watermark.max(to);
            }
            Action::NewEpoch => {
                self.model.epoch += 1;
                self.log.become_leader(LeaderEpoch(self.model.epoch)).unwrap();
            }
            Action::Truncate { back } => self.truncate((self.model.log_end - back).max(0)),
            Action::StartAt { ahead } => self.start_at((self.model.log_end + ahead).max(0)),
            Action::RaiseLogStart { back } => {
                let to = self.model.high_watermark - back;
                self.log.increment_log_start(Offset(to)).unwrap();
                self.model.log_start = self.model.log_start.max(to);
            }
            Action::Retention => {
                self.log.delete_old_segments(self.bench.now).unwrap();
                let start = self.log.positions().log_start.0;
                assert!(start >= self.model.log_start && start <= self.model.high_watermark);
                self.model.log_start = start;
            }
            Action::Flush => {
                self.log.flush().unwrap();
                assert_eq!(self.log.positions().recovery_point.0, self.model.log_end);
            }
            Action::RunJobs => self.bench.run_jobs(),
            Action::CleanRestart => {
                self.end_at_last_batch();
                self.log = self.bench.reopen_clean(self.log.clone());
            }
            Action::Kill { checkpointed } => {
                self.end_at_last_batch();
                if *checkpointed {
                    self.bench.checkpoint(&self.log);
                }
                // The log start is the one offset that a kill may take back; the test keeps it.
                self.bench.log_start = Offset(self.model.log_start);
                self.bench.high_watermark = Offset(self.model.high_watermark);
                self.bench = self.bench.after(CrashMode::ProcessKill);
                self.log = self.bench.open(false);
                self.recall_lost_sequences();
            }
        }
    }

    /// After a restart the log ends where its last batch does, even if it was cut inside of a batch before.
    fn end_at_last_batch(&mut self) {
        let base = *segment_bases(&self.log).last().unwrap();
        let model = &mut self.model;
        model.log_end = model.batches.last().map_or(0, |batch| batch.1 + 1).max(base);
        model.high_watermark = model.high_watermark.min(model.log_end);
        if model.log_end < model.log_start {
            // What is left lies below the log start: it goes, and the log begins anew there.
            model.batches.clear();
            model.sequences.clear();
            model.log_end = model.log_start;
            model.high_watermark = model.log_start;
        }
    }

    fn produce(&mut self, producer: i64, count: usize) {
        let next = self.model.sequences.get(&producer).copied().unwrap_or(0);
        let known = lock(&self.log.writer).producers.get(producer).is_some();
        if known {
            let gap = produced(producer, 0, next + 1, count);
            let refused =
                self.log.append_as_leader(gap, AppendOrigin::Client, LeaderEpoch(self.model.epoch), now());
            assert!(matches!(refused, Err(AppendError::Producer { .. })), "{refused:?}");
        }
        let info = self.put(produced(producer, 0, next, count));
        assert_eq!((info.base_offset.0, info.duplicate), (self.model.log_end, false));
        self.model.append(count, producer);
        let repeated = self.put(produced(producer, 0, next, count));
        assert_eq!((repeated.base_offset, repeated.duplicate), (info.base_offset, true));
    }

    fn truncate(&mut self, to: i64) {
        if to < self.log.first_segment_base().0 {
            return self.start_at(to);
        }
        let cut = self.log.truncate_to(Offset(to), self.bench.now, EXPIRATION).unwrap();
        assert_eq!(cut, to < self.model.log_end);
        if cut {
            self.model.truncate(to);
            self.forget_lost_sequences();
        }
        // As the caller does before it appends again.
        self.bench.recovery_point = self.bench.recovery_point.min(Offset(to));
    }

    fn start_at(&mut self, to: i64) {
        self.log.truncate_fully_and_start_at(Offset(to), self.bench.now).unwrap();
        let epoch = self.model.epoch;
        self.model = Model { log_start: to, high_watermark: to, log_end: to, epoch, ..Model::default() };
        self.bench.recovery_point = self.bench.recovery_point.min(Offset(to));
    }

    /// A producer's sequence is that of its last batch that is left; if none is, any sequence will do, and the
    /// test goes on with the log's own.
    fn forget_lost_sequences(&mut self) {
        let writer = lock(&self.log.writer);
        for (producer, next) in &mut self.model.sequences {
            *next = writer.producers.get(*producer).map_or(0, |entry| entry.last_sequence() + 1);
        }
    }

    /// Recovery reads whole segments, and may find a producer again whose batches lie below the log start.
    fn recall_lost_sequences(&mut self) {
        let writer = lock(&self.log.writer);
        for (producer, next) in self.model.sequences.iter_mut().filter(|(_, next)| **next == 0) {
            *next = writer.producers.get(*producer).map_or(0, |entry| entry.last_sequence() + 1);
        }
    }

    fn check(&self) {
        let positions = self.log.positions();
        let model = &self.model;
        assert!(positions.is_consistent(), "{positions:?}");
        let offsets_of = (positions.log_start.0, positions.high_watermark.0, positions.log_end.0);
        assert_eq!(offsets_of, (model.log_start, model.high_watermark, model.log_end));
        assert_eq!(positions.last_stable, positions.high_watermark, "there are no transactions");
        let all = self.log.all();
        assert_eq!(offsets(&all), model.visible());
        let epochs_of = |batch: &Batch| batch.header.partition_leader_epoch.0;
        let expected = model.batches.iter().filter(|batch| batch.1 >= model.log_start).map(|batch| batch.2);
        assert_eq!(all.iter().map(epochs_of).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        self.check_epochs(&all);
        for at in model.log_start..model.log_end {
            let expected = model.visible().into_iter().find(|batch| batch.1 >= at);
            assert_eq!(offsets(&self.log.read_from(at, 1, ReadBound::LogEnd)).first().copied(), expected);
        }
        for pair in segment_bases(&self.log).windows(2) {
            assert!(pair[0] < pair[1]);
        }
    }

    /// The history names the epoch of every batch, and rises.
    fn check_epochs(&self, all: &[Batch]) {
        let history = read_lock(&self.log.epochs).clone();
        for batch in all {
            let at = batch.header.base_offset.max(Offset(self.model.log_start));
            assert_eq!(
                history.epoch_of(at),
                Some(batch.header.partition_leader_epoch),
                "{history:?} at {at}"
            );
        }
        assert!(history.latest().is_none_or(|latest| latest.start <= Offset(self.model.log_end)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn any_operations_leave_what_a_list_of_batches_would_hold(actions in prop::collection::vec(action(), 1..40)) {
        let mut run = Run::new();
        run.check();
        for action in &actions {
            run.apply(action);
            run.check();
        }
    }
}
