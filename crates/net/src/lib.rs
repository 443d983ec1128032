//! Frames, listeners, connections, the ways to other brokers, and a client.
//!
//! One task serves one connection: it reads frames, hands them to a [`FrameHandler`] in the order of their
//! arrival, and writes the answers in the same order, whichever thread gives them and whenever. Nothing here
//! knows what a request says, except whether it is a Produce. Idle connections hold no buffers, a lying size
//! costs no memory, and a peer that does not read its answers stops being read from.

pub mod client;
pub mod connection;
pub mod counters;
pub mod handler;
pub mod listener;
pub mod peer_link;
pub mod range;
pub mod table;

mod close_reason;
mod exchange;
mod frame_reader;
mod part_writer;

pub use connection::ConnectionSettings;
pub use frame_reader::{FrameError, split_frames};
pub use handler::{ConnectionInfo, FrameHandler, Outcome, Reply};
pub use part_writer::RangeMode;
pub use range::{Part, Range, RangeSource};
