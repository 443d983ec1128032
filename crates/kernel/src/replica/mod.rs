//! One partition on one broker, as leader or follower: who is in sync, how far the high watermark may go, where a
//! replica that comes back truncates.

pub mod alter_partition;
pub mod control;
pub mod divergence;
pub mod fetcher;
pub mod isr_notifications;
pub mod leader;
pub mod log_view;
