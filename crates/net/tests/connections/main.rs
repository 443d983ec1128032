//! Connections over real sockets on the loopback, with a handler that each test plays itself.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail so")]

mod addresses;
mod client;
mod common;
mod framing;
mod lifetime;
mod limits;
mod order;
mod ranges;
