//! The znodes by which topics are deleted, leaders asked for, producer ids handed out and notifications left, in the model
//! and in the words of a story.

use std::collections::{BTreeMap, BTreeSet};

use wire::error_code::ErrorCode;
use wire::types::{BrokerId, TopicName, TopicPartition};

use super::parse::{self, partition, topic};
use super::print;
use super::story::Story;
use super::world::{Watch, World};
use crate::controller::command::ApiAnswer;
use crate::controller::elect_leaders::{ElectLeadersRequest, ElectionType};
use crate::controller::event::{ApiRequest, Change, Event};
use crate::controller::features::FeatureUpdate;
use crate::controller::store::{FeatureNode, NotificationKind, StoreOp, StoreReply};
use crate::controller::values::{ControlResponse, ReplicaAssignment};

/// The znodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Administration {
    pub(super) deletions: BTreeSet<TopicName>,
    pub(super) features: Option<FeatureNode>,
    preferred_election: Option<BTreeSet<TopicPartition>>,
    producer_ids: (Option<i64>, i32),
    log_dir_events: BTreeMap<String, Option<BrokerId>>,
    isr_changes: BTreeMap<String, BTreeSet<TopicPartition>>,
    notifications: u32,
}

impl Administration {
    fn next_name(&mut self, prefix: &str) -> String {
        self.notifications += 1;
        format!("{prefix}_{:010}", self.notifications)
    }
}

impl World {
    /// Somebody wants a topic deleted.
    pub(super) fn ask_for_deletion(&mut self, name: &str) {
        self.admin.deletions.insert(topic(name));
        self.fire(&Watch::Change(Change::Deletions));
    }

    /// A controller works on these znodes.
    pub(super) fn administer(&mut self, by: BrokerId, op: &StoreOp) -> StoreReply {
        match op {
            StoreOp::ReadFeatures => StoreReply::Features(self.admin.features.clone()),
            StoreOp::WriteFeatures { node, .. } => {
                self.admin.features = Some(node.clone());
                StoreReply::Done
            }
            StoreOp::ReadDeletions => {
                self.arm(by, Watch::Change(Change::Deletions));
                StoreReply::TopicList(self.admin.deletions.clone())
            }
            StoreOp::DropDeletions { topics, .. } => {
                self.admin.deletions.retain(|topic| !topics.contains(topic));
                self.fire(&Watch::Change(Change::Deletions));
                StoreReply::Done
            }
            StoreOp::DeleteTopic { topic, .. } => {
                let log = self.logs.iter().find(|(_, partition)| partition.topic == *topic);
                assert!(log.is_none(), "{topic} is deleted although a log of it is left: {log:?}");
                if self.topics.contains_key(topic) {
                    assert!(self.admin.deletions.contains(topic), "nobody wanted {topic} deleted");
                    self.drop_topic(topic);
                }
                if self.admin.deletions.remove(topic) {
                    self.fire(&Watch::Change(Change::Deletions));
                }
                StoreReply::Done
            }
            StoreOp::ReadPreferredElection => {
                self.arm(by, Watch::Change(Change::PreferredElection));
                StoreReply::PreferredElection(self.admin.preferred_election.clone())
            }
            StoreOp::DropPreferredElection { .. } => {
                self.admin.preferred_election = None;
                StoreReply::Done
            }
            StoreOp::ReadProducerIds => {
                let (last, version) = self.admin.producer_ids;
                StoreReply::ProducerIds { last, version }
            }
            StoreOp::WriteProducerIds { block, version, .. } => {
                let (last, present) = self.admin.producer_ids;
                if *version != present {
                    return StoreReply::BadVersion;
                }
                assert!(last.is_none_or(|last| last < block.first), "ids are handed out twice: {block:?}");
                self.admin.producer_ids = (Some(block.last), present + 1);
                StoreReply::Done
            }
            _ => self.notify(by, op),
        }
    }

    fn notify(&mut self, by: BrokerId, op: &StoreOp) -> StoreReply {
        match op {
            StoreOp::DropNotifications { kind: NotificationKind::LogDirEvent, .. } => {
                self.arm(by, Watch::Change(Change::LogDirEvents));
                self.admin.log_dir_events.clear();
                StoreReply::Done
            }
            StoreOp::DropNotifications { kind: NotificationKind::IsrChange, .. } => {
                self.arm(by, Watch::Change(Change::IsrChanges));
                self.admin.isr_changes.clear();
                StoreReply::Done
            }
            StoreOp::ReadLogDirEvents => {
                self.arm(by, Watch::Change(Change::LogDirEvents));
                StoreReply::LogDirEvents(self.admin.log_dir_events.clone())
            }
            StoreOp::ReadIsrChanges => {
                self.arm(by, Watch::Change(Change::IsrChanges));
                StoreReply::IsrChanges(self.admin.isr_changes.clone())
            }
            StoreOp::DropNotificationsRead { kind, names, .. } => {
                let change = match kind {
                    NotificationKind::LogDirEvent => Change::LogDirEvents,
                    NotificationKind::IsrChange => Change::IsrChanges,
                };
                self.admin.log_dir_events.retain(|name, _| !names.contains(name));
                self.admin.isr_changes.retain(|name, _| !names.contains(name));
                self.fire(&Watch::Change(change));
                StoreReply::Done
            }
            other => panic!("not an operation of the model: {other:?}"),
        }
    }
}

impl Story {
    /// A line about these znodes, or what brokers answer; whether it was one.
    pub(super) fn administer(&mut self, verb: &str, rest: &str, words: &[&str]) -> bool {
        match verb {
            "delete" => self.world.ask_for_deletion(words[0]),
            "request-deletion-unseen" => {
                self.world.admin.deletions.insert(topic(words[0]));
            }
            "reassigning" => {
                let (name, replicas) = (partition(words[0]), parse::list(words[1]));
                let assignment =
                    ReplicaAssignment { replicas, adding: parse::list(words[3]), removing: vec![] };
                let mut changed = self.world.topics[&name.topic].clone();
                changed.partitions.insert(name.partition, assignment);
                self.world.set_topic(&name.topic, changed);
            }
            "deleted" | "not-deleted" | "led" | "not-led" => self.answer_for_replicas(verb, words),
            "elect" => self.request(ApiRequest::ElectLeaders(elect(words))),
            "wants-preferred" => {
                let partitions = words.iter().map(|name| partition(name)).collect();
                self.world.admin.preferred_election = Some(partitions);
                self.world.fire(&Watch::Change(Change::PreferredElection));
            }
            "log-dir-event" => {
                let name = self.world.admin.next_name("log_dir_event");
                self.world.admin.log_dir_events.insert(name, words[0].parse().ok().map(BrokerId));
                self.world.fire(&Watch::Change(Change::LogDirEvents));
            }
            "isr-change" => {
                let name = self.world.admin.next_name("isr_change");
                let partitions = words.iter().map(|name| partition(name)).collect();
                self.world.admin.isr_changes.insert(name, partitions);
                self.world.fire(&Watch::Change(Change::IsrChanges));
            }
            "producer-ids" => {
                let broker = parse::id(words[0]);
                let broker_epoch = self.broker_epoch(broker, words);
                self.request(ApiRequest::AllocateProducerIds { broker, broker_epoch });
            }
            "producer-ids-end" => {
                let (_, version) = self.world.admin.producer_ids;
                self.world.admin.producer_ids = (words[0].parse().ok(), version + 1);
            }
            "update-feature" => {
                let update = FeatureUpdate {
                    feature: if words[0] == "nameless" { String::new() } else { words[0].to_owned() },
                    max_version_level: words[1].parse().unwrap(),
                    allows_downgrade: words.contains(&"downgrade"),
                };
                self.request(ApiRequest::UpdateFeatures(vec![update]));
            }
            "features" => {
                let features = rest.split(' ').skip(2).map(|name| (name.to_owned(), 1)).collect();
                let (format, is_enabled) = (words[0].parse().unwrap(), words[1] == "enabled");
                self.world.admin.features = Some(FeatureNode { format, is_enabled, features });
            }
            _ => return false,
        }
        true
    }

    /// `deleted 1 t-0 t-1`, `not-deleted 1 KAFKA_STORAGE_ERROR t-0`, and the same for `led`; a partition `all` stands for an
    /// error of the whole request.
    fn answer_for_replicas(&mut self, verb: &str, words: &[&str]) {
        let broker = parse::id(words[0]);
        let (error, partitions) = if verb.starts_with("not-") {
            (named_error(words[1]), &words[2..])
        } else {
            (ErrorCode::None, &words[1..])
        };
        let is_whole = partitions.first() == Some(&"all");
        let whole = if is_whole { error } else { ErrorCode::None };
        let partitions = partitions.iter().skip(usize::from(is_whole));
        let outcomes =
            partitions.map(|name| (partition(name), if is_whole { ErrorCode::None } else { error }));
        let response = if verb.ends_with("deleted") {
            ControlResponse::StopReplica { error: whole, deleted: outcomes.collect() }
        } else {
            ControlResponse::LeaderAndIsr { error: whole, partitions: outcomes.collect() }
        };
        self.tell_active(Event::Responded { broker, response });
    }
}

fn named_error(name: &str) -> ErrorCode {
    *ErrorCode::ALL.iter().find(|error| error.name() == name).unwrap_or_else(|| panic!("{name}?"))
}

/// `preferred t-0 t-1`, `unclean all`.
fn elect(words: &[&str]) -> ElectLeadersRequest {
    let kind = match words[0] {
        "preferred" => ElectionType::Preferred,
        "unclean" => ElectionType::Unclean,
        other => panic!("{other}?"),
    };
    let partitions = (words[1] != "all").then(|| words[1..].iter().map(|name| partition(name)).collect());
    ElectLeadersRequest { kind, partitions }
}

/// An operation on these znodes, as a story tells of it.
pub(super) fn operation(op: &StoreOp) -> Option<String> {
    let topics = |topics: &BTreeSet<TopicName>| print::topics(topics);
    Some(match op {
        StoreOp::ReadDeletions => "read deletions".to_owned(),
        StoreOp::DropDeletions { topics: of, .. } => format!("drop deletions {}", topics(of)),
        StoreOp::DeleteTopic { topic, .. } => format!("delete topic {topic}"),
        StoreOp::ReadPreferredElection => "read preferred election".to_owned(),
        StoreOp::DropPreferredElection { .. } => "drop preferred election".to_owned(),
        StoreOp::ReadProducerIds => "read producer ids".to_owned(),
        StoreOp::WriteProducerIds { block, version, .. } => {
            format!("write producer ids {}-{} of {} over v{version}", block.first, block.last, block.broker)
        }
        StoreOp::ReadLogDirEvents => "read log dir events".to_owned(),
        StoreOp::ReadIsrChanges => "read isr changes".to_owned(),
        StoreOp::DropNotificationsRead { kind, names, .. } => {
            format!("drop {} of {kind:?}", names.len())
        }
        StoreOp::WriteFeatures { node, .. } => {
            let status = if node.is_enabled { "enabled" } else { "disabled" };
            let features: String = node.features.keys().map(|name| format!(", {name}")).collect();
            format!("write /feature {status} in format {}{features}", node.format)
        }
        _ => return None,
    })
}

/// What these operations found.
pub(super) fn reply_end(reply: &StoreReply) -> Option<String> {
    Some(match reply {
        StoreReply::PreferredElection(None) => ": none".to_owned(),
        StoreReply::PreferredElection(Some(partitions)) => format!(": {}", print::names(partitions)),
        StoreReply::ProducerIds { last: None, version } => format!(": none v{version}"),
        StoreReply::ProducerIds { last: Some(last), version } => format!(": {last} v{version}"),
        StoreReply::BadVersion => ": bad version".to_owned(),
        StoreReply::LogDirEvents(events) => {
            let brokers =
                events.values().map(|broker| broker.map_or("unreadable".to_owned(), |id| id.to_string()));
            format!(": {}", brokers.collect::<Vec<_>>().join(","))
        }
        StoreReply::IsrChanges(changes) => format!(": {}", print::names(changes.values().flatten())),
        _ => return None,
    })
}

/// An answer to these requests.
pub(super) fn answer_lines(id: u64, answer: &ApiAnswer) -> Vec<String> {
    match answer {
        ApiAnswer::ElectLeaders(results) => {
            let mut lines = vec![format!("answer #{id}")];
            lines.extend(results.iter().map(|(partition, result)| match result {
                Ok(leader) => format!("    {partition} leader {leader}"),
                Err(error) => format!("    {partition} {error}"),
            }));
            lines
        }
        ApiAnswer::AllocateProducerIds(block) => {
            vec![format!("answer #{id}: producer ids {}-{}", block.first, block.last)]
        }
        ApiAnswer::UpdateFeatures(refused) => {
            let mut lines = vec![format!("answer #{id}")];
            lines.extend(refused.iter().map(|(feature, why)| format!("    {feature}: {why}")));
            lines
        }
        _ => Vec::new(),
    }
}
