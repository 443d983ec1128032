//! Partition logs on disk.

mod checkpoint_text;
pub mod checkpoints;
pub mod dir_health;
pub mod disk;
pub mod epoch_checkpoint;
mod index_file;
pub mod log_config;
pub mod names;
pub mod offset_index;
pub mod segment;
mod sync;
pub mod time_index;
pub mod txn_index;
