//! Unclean elections are allowed while the broker runs: partitions that waited for an in-sync replica may be led by
//! another one now, without a failover (KAFKA-6526, KAFKA-6835).

use wire::types::TopicName;

use super::program::Step;

/// The steps for one topic, or for all when the default changed.
pub(super) fn enabled(topic: Option<TopicName>) -> Vec<Step> {
    vec![Step::TriggerOnline(topic)]
}
