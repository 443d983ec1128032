//! Partition logs on disk.

mod checkpoint_text;
pub mod checkpoints;
pub mod dir_health;
pub mod disk;
pub mod epoch_checkpoint;
pub mod log_config;
pub mod names;
mod index_file;
pub mod offset_index;
mod sync;
pub mod time_index;
pub mod txn_index;
