//! The znodes of a Kafka 3.9 cluster in ZooKeeper mode: one file for each kind, with its path, its value and its bytes.
//!
//! Encoders write Kafka's own bytes: compact JSON with the fields in Kafka's order. The order of fields carries no
//! meaning to any reader; within maps of names or partition numbers it is ascending here and that of a hash table in
//! Kafka. Decoders accept what older releases wrote and ignore fields that they do not know.

pub mod broker;
pub mod broker_seqid;
pub mod cluster_id;
pub mod config;
pub mod config_change;
pub mod consumer_offset;
pub mod controller;
pub mod controller_epoch;
pub mod delete_topics;
pub mod feature;
pub mod isr_change;
mod json;
pub mod log_dir_event;
mod partition_list;
pub mod partition_state;
pub mod persistent_paths;
pub mod preferred_replica_election;
pub mod producer_id_block;
pub mod reassign_partitions;
pub mod sanitize;
pub mod topic;

#[cfg(test)]
mod tests;

pub use persistent_paths::ensure_persistent_paths;

/// Why the value of a znode cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the value of a {kind} znode is malformed: {reason}")]
pub struct DecodeError {
    /// The kind of znode.
    pub kind: &'static str,
    /// What is wrong with it.
    pub reason: String,
}

impl DecodeError {
    pub(crate) fn new(kind: &'static str, reason: impl ToString) -> Self {
        Self { kind, reason: reason.to_string() }
    }
}
