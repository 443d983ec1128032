//! What a fetch needs besides the log: sessions that remember partitions between requests (KIP-227), and the
//! places where a fetch waits for data.

pub mod session;
pub mod waiters;
