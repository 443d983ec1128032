//! Sockets, threads and HTTP around the node.
//!
//! The node is a synchronous library behind the trait [`Node`]; this crate lends it what it needs to live: a
//! runtime that serves its listeners, a thread that tells it the time, another for its disks, a page for
//! those who watch it, and an orderly end when the process is asked to stop.

pub mod elastic;
pub mod http;
pub mod metrics;
pub mod node_trait;
pub mod peers;
pub mod pool;
pub mod run;
pub mod serve;
pub mod settings;
pub mod ticker;

mod start_block;
mod store;

pub use node_trait::{Node, Readiness};
pub use run::{RunError, run};
pub use serve::serve;
pub use settings::{HttpSettings, ServerSettings};
