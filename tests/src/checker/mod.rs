//! Judges what a cluster did with records: nothing here does IO or knows a broker.
//!
//! A run records a [`History`]: every batch that idempotent producers tried to write with acks=all and what was
//! answered, and everything that was read, at the end the whole of each partition. [`judge`] tells what a log
//! may never do: lose what was acknowledged, write something twice or in another order, change or take back
//! what was read, or tell an end that lies below one that was told before. [`compare_replicas`] compares the logs
//! of all replicas batch by batch.

mod dump;
mod finding;
mod history;
mod judge;
mod payload;
mod replicas;

pub use dump::{Batch, Dump, dump_directory};
pub use finding::{Finding, Findings};
pub use history::{
    Attempt, History, Latest, Outcome, Partition, PartitionHistory, Read, ReadRecord, RecordId,
};
pub use judge::judge;
pub use payload::{digest, payload, record_id};
pub use replicas::{Divergence, compare_replicas};
