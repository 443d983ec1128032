//! Partition logs on disk.
