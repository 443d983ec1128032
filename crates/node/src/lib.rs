//! The broker as a synchronous library.

pub mod config;
