//! Log compaction (`cleanup.policy=compact`, KIP-58, KIP-354, KIP-534): of the records of a key the latest stays.
//!
//! What is decided is apart from what is done: `choice` says which log is due and how far, `grouping` which segments
//! become one, `transactions` and `verdict` what becomes of a batch and a record. `pass` does it with an `offset_map` of
//! bounded size: it reads the dirty part for the latest offsets of its keys, and then writes all segments up to there
//! anew, group by group. Offsets never change, and neither do log start, log end and the state of producers.
//!
//! Only format 2 is compacted, as a log holds nothing else; a log in which anything cannot be read is left alone.

mod batch_reader;
pub(crate) mod choice;
mod grouping;
mod offset_map;
mod pass;
mod throttle;
mod transactions;
pub(crate) mod verdict;

use wire::types::{Offset, TopicPartition};

pub(crate) use pass::compact;
pub use throttle::Throttle;

/// What one thread that compacts may use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CleanerSettings {
    /// The memory for latest offsets, in bytes: `log.cleaner.dedupe.buffer.size` divided by the threads.
    pub dedupe_buffer_bytes: u64,
    /// `log.cleaner.io.buffer.load.factor`: how full that memory may become, from 0 to 1.
    pub load_factor: f64,
    /// The size of a read and of a write in bytes: `log.cleaner.io.buffer.size` divided by the threads and by two. A batch
    /// that is larger is read in one piece all the same.
    pub io_buffer_bytes: usize,
}

/// Holds a pass back, and ends it.
pub trait Pace: Sync {
    /// `bytes` were read or written; may wait. Returns whether the pass may go on.
    fn spend(&self, bytes: u64) -> bool;
}

/// What a pass over a log came to.
#[derive(Clone, Debug, PartialEq)]
pub struct PassReport {
    /// The log.
    pub partition: TopicPartition,
    /// Where the dirty part began (inclusive).
    pub first_dirty: Offset,
    /// Where the clean part ends now (exclusive).
    pub clean_end: Offset,
    /// Bytes that were read to find the latest offsets.
    pub indexed_bytes: u64,
    /// Bytes that were read to be written anew.
    pub read_bytes: u64,
    /// Bytes of them that were kept.
    pub kept_bytes: u64,
    /// Records of a compacted log without a key, which were dropped.
    pub keyless_records: u64,
    /// How much of the memory for latest offsets was in use, from 0 to 1 of what the thread may use.
    pub buffer_utilization: f64,
}

/// How a round ended that looked for a log to compact.
#[derive(Clone, Debug, PartialEq)]
pub enum CleanOutcome {
    /// No log is due.
    Idle,
    /// A pass is done.
    Cleaned(PassReport),
    /// A pass ended early, since the log changed or the broker stops.
    Aborted(TopicPartition),
    /// A pass failed: the log is left alone for some time, or its directory has gone offline.
    Failed(TopicPartition),
}
