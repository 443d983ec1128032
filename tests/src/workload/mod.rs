//! Idempotent producers and readers that live through everything that happens to a cluster, and note what they saw
//! for the checker.
//!
//! Each works on one partition, asks any broker that answers who leads it, and tries again until it is told to
//! stop. A writer sends up to five batches ahead and sends all of them again, in order, after any trouble: so
//! nothing that it does can change their order, and what the log makes of it is the cluster's doing.

mod leader;
mod reader;
mod writer;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};

use crate::checker::{History, Partition, Read};
use crate::wait;

use leader::Leader;

/// How long a broker may take to answer before another is asked.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
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
}

/// What the threads of a load share with whoever disturbs them.
#[derive(Debug, Default)]
pub struct Progress {
    acknowledged: AtomicU64,
    stop: AtomicBool,
}

impl Progress {
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

    /// When a thread of the load has failed, all stop.
    fn unless_failed<T>(&self, result: Result<T>) -> Result<T> {
        if result.is_err() {
            self.stop();
        }
        result
    }
}

/// Runs a load while `disturb` does what it likes to the cluster, then lets every producer finish what it has
/// begun, and reads each partition as a whole.
///
/// # Errors
/// When a producer or reader meets what it must not, or `disturb` fails.
pub fn run(load: &Load, disturb: impl FnOnce(&Progress) -> Result<()>) -> Result<History> {
    let progress = &Progress::default();
    let mut history = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (partition, number) in load.partitions.iter().zip(0..) {
            for producer in 0..load.producers {
                let producer = number * load.producers + producer;
                threads.push(scope.spawn(move || {
                    progress.unless_failed(writer::write(load, partition, producer, progress))
                }));
            }
            for reader in 0..load.readers {
                threads.push(scope.spawn(move || {
                    progress.unless_failed(reader::follow(load, partition, reader, progress))
                }));
            }
        }
        let disturbed = disturb(progress);
        progress.stop();
        let noted = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(anyhow!("a thread of the load has panicked")))
        });
        // Why the load failed says more than that it did not get on.
        let noted = noted.collect::<Vec<_>>().into_iter().collect::<Result<Vec<_>>>()?;
        disturbed?;
        let mut history = History::default();
        noted.into_iter().for_each(|part| history.merge(part));
        anyhow::Ok(history)
    })?;
    for partition in &load.partitions {
        let records = reader::read_all(load, partition)?;
        let read = Read { reader: "the last reader".to_owned(), records, is_final: true };
        history.partition(partition).reads.push(read);
    }
    Ok(history)
}
