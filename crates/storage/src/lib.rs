//! Partition logs on disk.

pub mod boot;
mod checkpoint_text;
pub mod checkpoints;
pub mod clean_shutdown;
pub mod cleaner;
pub mod dir_health;
pub mod disk;
pub mod epoch_checkpoint;
mod index_file;
pub mod lock;
pub mod log_config;
pub mod log_dirs;
pub mod meta_properties;
pub mod names;
pub mod offset_index;
pub mod partition_log;
pub mod partition_metadata;
pub mod segment;
pub mod snapshot;
mod sync;
pub mod time_index;
pub mod txn_index;
