//! The broker as a synchronous library: it decides nothing that `kernel` can decide, and reaches the world
//! through a disk, a store, a clock and an executor. Threads, sockets and timers are the server's.

mod api;
mod append;
pub mod broker;
pub mod call;
mod check;
pub mod clock;
pub mod config;
mod control;
mod delayed;
mod departed;
mod drive;
mod end;
mod explain;
pub mod jobs;
pub mod loggers;
mod metrics;
mod one_by_one;
mod partition;
mod partitions;
pub mod peers;
mod reconfigured;
mod refusal;

pub use append::lanes::AppendThreads;
pub use drive::session::StoreEvents;
pub use drive::start::{Membership, StartError, start};
/// What is known of the machine's past, for [`Membership::Member`].
pub use storage::boot::Boot;
/// The machine's disk, for [`Environment::disk`](broker::Environment::disk).
pub use storage::disk::RealDisk;
