//! Connections over real sockets on the loopback, with a handler that each test plays itself.

mod common;
mod framing;
mod lifetime;
mod order;
