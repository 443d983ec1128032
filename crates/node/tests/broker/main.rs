//! The broker as its clients see it, without sockets: requests go in as bytes, answers come out as bytes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod administration;
mod broker_configs;
mod cases_admin;
mod cases_batches;
mod cases_fetch;
mod cases_metadata;
mod cases_offsets;
mod cases_protocol;
mod cases_storage;
mod cases_tools;
mod compaction;
mod configs;
mod control_followers;
mod control_isr;
mod control_leader_and_isr;
mod control_queue;
mod control_stop_replica;
mod control_tools;
mod control_update_metadata;
mod controller;
mod details;
mod fetchers;
mod follower_fetch;
mod gate;
mod group_loads;
mod group_tools;
mod groups;
mod groups_loading;
mod groups_offsets;
mod groups_partitions;
mod harness;
mod journal;
mod lost_answers;
mod pair;
mod peers;
mod producer_ids;
mod records;
mod regressions;
mod replication;
mod stalls;
mod told;
mod topics;
