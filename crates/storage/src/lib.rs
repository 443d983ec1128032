//! Partition logs on disk.

mod checkpoint_text;
pub mod checkpoints;
pub mod disk;
pub mod epoch_checkpoint;
pub mod names;
mod sync;
