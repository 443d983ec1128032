//! Carries out what was decided: writes the store, makes and removes logs, publishes the new picture.

mod advertise;
pub(crate) mod alter_partition;
pub(crate) mod auto_create;
pub(crate) mod broker_configs;
pub(crate) mod cleaner;
pub(crate) mod config_changes;
pub(crate) mod controlled_shutdown;
pub(crate) mod controller;
pub(crate) mod features;
pub(crate) mod fetchers;
pub(crate) mod gather;
pub(crate) mod groups;
pub(crate) mod housekeeping;
pub(crate) mod image_waits;
pub(crate) mod isr_shrink;
pub(crate) mod log_dir_failure;
pub(crate) mod old_offsets;
mod pipeline;
pub(crate) mod producer_ids;
pub(crate) mod session;
pub(crate) mod start;
pub(crate) mod to_broker;
pub(crate) mod topic_configs;
pub(crate) mod topics;
