//! `/admin/delete_topics/<topic>`: the request to delete a topic. It has no data.

use crate::path;
use wire::types::TopicName;

/// The parent of all requests.
pub const ROOT: &str = "/admin/delete_topics";

/// The path of the request for a topic.
pub fn path(topic: &TopicName) -> String {
    path::child(ROOT, topic.as_str())
}
