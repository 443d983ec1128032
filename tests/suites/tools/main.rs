//! The verbs of the command line beside Kafka's own tools: the same command to the same broker, the same output.
//!
//! What Kafka leaves open is not compared: the order of lines that come from a hash table, and the padding at the end
//! of lines.

#![allow(unreachable_pub, reason = "modules of one test share what they need")]
#![allow(clippy::indexing_slicing, reason = "a test that panics has failed")]

mod admin;
mod compare;
mod groups;
mod load;
