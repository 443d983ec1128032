//! What the watches of the controller tell it.

use kernel::controller::event::{Change, Event};
use metadata::store::NodeEventKind;
use metadata::znode::{
    broker, controller, delete_topics, isr_change, log_dir_event, preferred_replica_election, topic,
};
use wire::types::{BrokerId, TopicName};

/// The event that a change of the znode at `path` is to the controller; none if it watches no such change.
pub(super) fn event(path: &str, kind: NodeEventKind) -> Option<Event> {
    if path == controller::PATH {
        return Some(Event::ControllerNodeChanged);
    }
    let change = match (path, kind) {
        (broker::ROOT, NodeEventKind::ChildrenChanged) => Change::Brokers,
        (topic::ROOT, NodeEventKind::ChildrenChanged) => Change::Topics,
        (delete_topics::ROOT, NodeEventKind::ChildrenChanged) => Change::Deletions,
        (log_dir_event::ROOT, NodeEventKind::ChildrenChanged) => Change::LogDirEvents,
        (isr_change::ROOT, NodeEventKind::ChildrenChanged) => Change::IsrChanges,
        (preferred_replica_election::PATH, NodeEventKind::Created) => Change::PreferredElection,
        (path, NodeEventKind::DataChanged) => data_change(path)?,
        _ => return None,
    };
    Some(Event::Changed(change))
}

fn data_change(path: &str) -> Option<Change> {
    let (parent, name) = path.rsplit_once('/')?;
    match parent {
        broker::ROOT => Some(Change::Broker(BrokerId(name.parse().ok()?))),
        topic::ROOT => Some(Change::Topic(TopicName::from(name))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_registrations_and_topics_are_told_apart() {
        let change = |path, kind| match event(path, kind) {
            Some(Event::Changed(change)) => Some(change),
            _ => None,
        };
        assert_eq!(change("/brokers/ids", NodeEventKind::ChildrenChanged), Some(Change::Brokers));
        assert_eq!(change("/brokers/ids/7", NodeEventKind::DataChanged), Some(Change::Broker(BrokerId(7))));
        assert_eq!(change("/brokers/topics", NodeEventKind::ChildrenChanged), Some(Change::Topics));
        assert_eq!(change("/admin/delete_topics", NodeEventKind::ChildrenChanged), Some(Change::Deletions));
        let notified = |path| change(path, NodeEventKind::ChildrenChanged);
        assert_eq!(notified("/log_dir_event_notification"), Some(Change::LogDirEvents));
        assert_eq!(notified("/isr_change_notification"), Some(Change::IsrChanges));
        let topic = Change::Topic(TopicName::from("a.b"));
        assert_eq!(change("/brokers/topics/a.b", NodeEventKind::DataChanged), Some(topic));
    }

    #[test]
    fn a_registration_that_vanishes_is_told_by_the_list_alone() {
        assert_eq!(event("/brokers/ids/7", NodeEventKind::Deleted), None);
        assert_eq!(event("/brokers/topics/a", NodeEventKind::Deleted), None);
    }

    #[test]
    fn preferred_leaders_are_asked_for_by_making_the_znode() {
        let path = "/admin/preferred_replica_election";
        let asked = Some(Event::Changed(Change::PreferredElection));
        assert_eq!(event(path, NodeEventKind::Created), asked);
        assert_eq!(event(path, NodeEventKind::Deleted), None);
    }

    #[test]
    fn every_change_of_the_controllers_znode_counts() {
        for kind in [NodeEventKind::Created, NodeEventKind::DataChanged, NodeEventKind::Deleted] {
            assert_eq!(event("/controller", kind), Some(Event::ControllerNodeChanged));
        }
    }
}
