//! Pure decisions of the broker.

pub mod assignment;
pub mod fetch;
pub mod metadata_image;
pub mod topic_name;
