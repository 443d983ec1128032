//! The generated messages: against the crate `kafka-protocol`, against known bytes, and at their borders.

mod api_versions;
mod borders;
mod error_codes;
mod fetch_body;
mod oracle;
mod vectors;
