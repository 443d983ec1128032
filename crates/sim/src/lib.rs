//! Three brokers and a tree of znodes in one thread, from one seed: the unchanged crate `node` on virtual time, a virtual
//! network and disks that forget, under clients whose every answer is judged.
//!
//! The same plan gives the same run, event by event, so a finding is a seed. Judges ([`check`]) stand apart from the
//! workload and from the faults: they know what clients were told, what the tree holds and what lies on the disks.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a simulation fails by panicking; it is no part of the product"
)]

mod chance;
mod check;
mod clock;
mod executor;
mod fiber;
mod incarnation;
mod journal;
mod network;
mod plan;
mod report;
mod run;
mod schedule;
mod total;
mod trace;
mod tree;
mod workload;
mod world;

pub use plan::{Plan, Protocol, USUAL_MS};
pub use report::Report;
pub use run::run;
pub use total::{Total, run_all};
pub use world::{Fault, KINDS};
