//! Helpers for the end-to-end suites: brokers of both kinds, real clients, raw connections.
//!
//! A suite starts what it needs in folders of its own on loopback ports of its own, waits for conditions with
//! a deadline, and ends only the processes that it started. What a suite needs from outside is installed by
//! `cargo xtask setup`.

pub mod admin;
pub mod batch;
pub mod broker;
pub mod broker_proxy;
pub mod cache;
pub mod calls;
pub mod checker;
pub mod clients;
pub mod cluster;
pub mod depth;
pub mod ensemble;
pub mod folders;
pub mod groups;
pub mod java;
pub mod ports;
pub mod process;
pub mod raw;
pub mod score;
pub mod stand_in;
pub mod tcp_proxy;
pub mod wait;
pub mod workload;
pub mod zookeeper;
