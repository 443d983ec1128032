//! The controller: the one broker that moves replicas and partitions through their states.

pub mod values;
