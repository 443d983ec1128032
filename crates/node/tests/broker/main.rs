//! The broker as its clients see it, without sockets: requests go in as bytes, answers come out as bytes.

mod configs;
mod harness;
mod records;
mod topics;
