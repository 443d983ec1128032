//! The generated messages: against the crate `kafka-protocol`, against known bytes, and at their borders.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that panics has failed"
)]

mod api_versions;
mod borders;
mod error_codes;
mod fetch_body;
mod oracle;
mod vectors;
