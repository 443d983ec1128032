//! Pure decisions of the broker.

pub mod assignment;
pub mod controller;
pub mod epochs;
pub mod fetch;
pub mod group;
pub mod metadata_image;
pub mod metadata_version;
pub mod planted;
pub mod producer;
pub mod replica;
#[cfg(test)]
mod story_tests;
pub mod topic_name;
