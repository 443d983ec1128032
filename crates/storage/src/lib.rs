//! Partition logs on disk.

pub mod disk;
mod sync;
