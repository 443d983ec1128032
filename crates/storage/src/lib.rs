//! Partition logs on disk.

pub mod dir_health;
pub mod disk;
pub mod log_config;
mod sync;
