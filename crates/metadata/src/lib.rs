//! The cluster store: ZooKeeper's tree behind one trait.
//!
//! All cluster state (registrations, topics, partition states, configs) lives in a tree of znodes at Kafka's paths in
//! Kafka's JSON. [`store`] is the trait by which the broker reaches that tree, [`tree`] its semantics as pure data,
//! [`embedded`] the store of a single process, [`zookeeper`] that of a cluster, [`znode`] the paths and values,
//! [`transfer`] the way from one store to another. Every store passes the suite in `contract`.

#[cfg(any(test, feature = "contract"))]
pub mod contract;
pub mod embedded;
pub mod path;
pub mod store;
pub mod transfer;
pub mod tree;
pub mod znode;
pub mod zookeeper;

/// The name of the embedded store's file, under the data directory. A plain file there is not taken for a log by Kafka.
pub const DEFAULT_STORE_FILE: &str = "blumfeld-metadata.redb";
