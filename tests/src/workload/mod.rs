//! Idempotent producers, readers, and who asks for the latest offset: they live through everything that happens to a
//! cluster, and note what they saw for the checker.
//!
//! Each works on one partition, asks any broker that answers who leads it, and tries again until it is told to
//! stop. A writer sends up to five batches ahead and sends all of them again, in order, after any trouble: so
//! nothing that it does can change their order, and what the log makes of it is the cluster's doing.

mod asker;
mod leader;
mod reader;
mod writer;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};

use crate::checker::{History, Latest, Partition, Read};
use crate::wait;

use leader::Leader;

/// How long a producer or reader may be without a leader.
const PATIENCE: Duration = Duration::from_secs(120);

/// What is written and read.
#[derive(Debug, Clone)]
pub struct Load {
    /// `host:port` of all brokers, running or not.
    pub addresses: Vec<String>,
    /// The partitions that are written to.
    pub partitions: Vec<Partition>,
    /// Producers for each partition.
    pub producers: u32,
    /// Readers for each partition.
    pub readers: u32,
    /// Bytes of a record's value.
    pub record_bytes: usize,
    /// How long a producer waits between two batches; none: not at all.
    pub pause: Duration,
    /// How long a broker may take to answer before another is asked.
    pub answer_limit: Duration,
}

/// What the threads of a load share with whoever disturbs them.
#[derive(Debug)]
pub struct Progress {
    acknowledged: AtomicU64,
    stop: AtomicBool,
    failed: AtomicBool,
    /// What failed first, and ended all the others.
    failure: Mutex<Option<anyhow::Error>>,
    silence: Mutex<Silence>,
}

/// How long nothing was acknowledged.
#[derive(Debug)]
struct Silence {
    since: Instant,
    longest: Duration,
}

impl Progress {
    fn new() -> Self {
        let silence = Mutex::new(Silence { since: Instant::now(), longest: Duration::ZERO });
        let (stop, failed) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { acknowledged: AtomicU64::new(0), stop, failed, failure: Mutex::default(), silence }
    }

    fn acknowledge(&self) {
        self.acknowledged.fetch_add(1, Ordering::SeqCst);
        let mut silence = self.silence.lock().unwrap_or_else(PoisonError::into_inner);
        silence.longest = silence.longest.max(silence.since.elapsed());
        silence.since = Instant::now();
    }

    /// The longest time between two acknowledgements of any producers.
    #[must_use]
    pub fn longest_silence(&self) -> Duration {
        let silence = self.silence.lock().unwrap_or_else(PoisonError::into_inner);
        silence.longest.max(silence.since.elapsed())
    }

    /// How many batches have been acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::SeqCst)
    }

    /// Waits until `batches` more have been acknowledged.
    ///
    /// # Errors
    /// When that does not happen within `limit`, or the load has ended.
    pub fn until_more(&self, batches: u64, limit: Duration) -> Result<()> {
        let goal = self.acknowledged() + batches;
        wait::until("more acknowledgements", limit, || {
            ensure!(!self.is_stopping(), "the load has ended");
            Ok((self.acknowledged() >= goal).then_some(()))
        })
    }

    fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// When something has failed, all stop, and nobody tries any longer to finish what he has begun.
    fn unless_failed<T>(&self, result: Result<T>) -> Option<T> {
        let error = match result {
            Ok(value) => return Some(value),
            Err(error) => error,
        };
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(error);
        self.failed.store(true, Ordering::SeqCst);
        self.stop();
        None
    }

    fn into_result(self) -> Result<()> {
        self.failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    fn has_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }
}

/// Runs a load while `disturb` does what it likes to the cluster, then lets every producer finish what it has
/// begun, and reads each partition as a whole.
///
/// # Errors
/// When a producer or reader meets what it must not, or `disturb` fails.
pub fn run(load: &Load, disturb: impl FnOnce(&Progress) -> Result<()>) -> Result<History> {
    let owned = Progress::new();
    let progress = &owned;
    let mut history = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (partition, number) in load.partitions.iter().zip(0..) {
            for producer in 0..load.producers {
                let producer = number * load.producers + producer;
                threads.push(scope.spawn(move || {
                    progress.unless_failed(writer::write(load, partition, producer, progress))
                }));
            }
            threads.push(scope.spawn(move || progress.unless_failed(asker::ask(load, partition, progress))));
            for reader in 0..load.readers {
                threads.push(scope.spawn(move || {
                    progress.unless_failed(reader::follow(load, partition, reader, progress))
                }));
            }
        }
        progress.unless_failed(disturb(progress));
        progress.stop();
        let mut history = History::default();
        for thread in threads {
            let panicked = |_| progress.unless_failed(Err(anyhow!("a thread of the load has panicked")));
            if let Some(part) = thread.join().unwrap_or_else(panicked) {
                history.merge(part);
            }
        }
        history
    });
    owned.into_result()?;
    for partition in &load.partitions {
        let asked = Latest { asker: "who asks last".to_owned(), offsets: vec![latest(load, partition)?] };
        let noted = history.partition(partition);
        noted.latest.push(asked);
        noted.reads.push(read_all(load, partition)?);
    }
    Ok(history)
}

/// The latest offset of a partition, as its leader tells it.
///
/// # Errors
/// When there is no leader, or it answers with an error that does not pass.
pub fn latest(load: &Load, partition: &Partition) -> Result<i64> {
    asker::ask_once(load, partition)
}

/// Reads the whole of a partition to which nobody writes any more.
///
/// # Errors
/// When the reader meets what it must not, or finds no leader.
pub fn read_all(load: &Load, partition: &Partition) -> Result<Read> {
    let records = reader::read_all(load, partition)?;
    Ok(Read { reader: "the last reader".to_owned(), records, is_final: true })
}
