//! Test suites of other projects that take minutes: what passes on a real Kafka passes on Blumfeld.
//!
//! Tests of what is not built yet are left out by name, each with its reason, in the file of its project.

mod kafka_python;
mod librdkafka;
mod rskafka;
mod streams;
