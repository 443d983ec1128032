//! Test suites of other projects, from their published packages: what passes on a real Kafka passes on Blumfeld.
//!
//! Here are those that are quick enough for every run; `long.rs` has the others. Tests of what is not built yet are left out
//! by name, each with its reason, in the file of its project.

mod compatibility;
mod kgo;
