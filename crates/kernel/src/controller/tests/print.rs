//! How a story tells of operations, requests, answers and notes.

use std::collections::BTreeMap;

use wire::types::{BrokerId, TopicName, TopicPartition};

use super::administration;
use crate::controller::command::{ApiAnswer, Command};
use crate::controller::note::{Level, What};
use crate::controller::store::{StateCreated, StateRead, StateWritten, StoreFailure, StoreOp, StoreReply};
use crate::controller::values::{
    ControlRequest, LeaderAndIsr, LeaderAndIsrPartition, LeaderRecoveryState, ReplicaAssignment,
    StopReplicaPartition, UpdateMetadataPartition,
};

/// Ids, separated by commas.
pub(super) fn ids(brokers: &[BrokerId]) -> String {
    if brokers.is_empty() {
        return "none".to_owned();
    }
    brokers.iter().map(BrokerId::to_string).collect::<Vec<_>>().join(",")
}

/// A state as stories write it.
pub(super) fn state(state: &LeaderAndIsr) -> String {
    let LeaderAndIsr { leader, leader_epoch, isr, recovery_state, controller_epoch, partition_epoch } = state;
    let recovering = if *recovery_state == LeaderRecoveryState::Recovering { " recovering" } else { "" };
    let isr = ids(isr);
    format!(
        "leader {leader} epoch {leader_epoch} isr {isr} by {controller_epoch} v{partition_epoch}{recovering}"
    )
}

/// An assignment as stories write it.
pub(super) fn assignment(assignment: &ReplicaAssignment) -> String {
    let mut text = ids(&assignment.replicas);
    if assignment.is_being_reassigned() {
        text += &format!(" adding {} removing {}", ids(&assignment.adding), ids(&assignment.removing));
    }
    text
}

pub(super) fn names<'a>(partitions: impl IntoIterator<Item = &'a TopicPartition>) -> String {
    partitions.into_iter().map(TopicPartition::to_string).collect::<Vec<_>>().join(" ")
}

pub(super) fn topics<'a>(topics: impl IntoIterator<Item = &'a TopicName>) -> String {
    topics.into_iter().map(TopicName::to_string).collect::<Vec<_>>().join(" ")
}

/// An operation of the store and how it ended; one line, or one for each partition.
pub(super) fn operation(op: &StoreOp, result: &Result<StoreReply, StoreFailure>) -> Vec<String> {
    let end = match result {
        Err(StoreFailure::ControllerMoved) => ": refused, the controller has moved".to_owned(),
        Err(StoreFailure::SessionLost) => ": the session is over".to_owned(),
        Err(StoreFailure::Unexpected(reason)) => format!(": {reason}"),
        Ok(reply) => reply_end(reply),
    };
    let line = match op {
        StoreOp::ReadController => "read /controller".to_owned(),
        StoreOp::ReadControllerEpoch => "read /controller_epoch".to_owned(),
        StoreOp::CreateControllerEpoch => "create /controller_epoch".to_owned(),
        StoreOp::Elect { epoch, expected_version } => {
            format!("elect for epoch {epoch} over v{expected_version}")
        }
        StoreOp::DeleteController { .. } => "delete /controller".to_owned(),
        StoreOp::ReadFeatures => "read /feature".to_owned(),
        StoreOp::DropNotifications { kind, .. } => format!("drop notifications {kind:?}"),
        StoreOp::ReadBrokers => "read brokers".to_owned(),
        StoreOp::ReadBroker(id) => format!("read broker {id}"),
        StoreOp::ReadTopicList => "read topic list".to_owned(),
        StoreOp::ReadTopics(names) => format!("read topics {}", topics(names)),
        StoreOp::AssignTopicIds { topics: of, .. } => format!("assign topic ids {}", topics(of.keys())),
        StoreOp::WriteTopics { topics, .. } => {
            let of = topics.iter().map(|(name, topic)| {
                let id = if topic.topic_id.is_some() { "" } else { " without id" };
                let partitions = topic.partitions.iter().map(|(p, of)| format!(" {p}:{}", assignment(of)));
                format!(" {name}{id}{}", partitions.collect::<String>())
            });
            format!("write topic{}", of.collect::<String>())
        }
        StoreOp::ReadPartitionList(topic) => format!("read partition list of {topic}"),
        StoreOp::ReadPartitionStates(partitions) => format!("read states {}", names(partitions)),
        StoreOp::ReadUncleanElection(of) => format!("read unclean.leader.election.enable of {}", topics(of)),
        StoreOp::CreatePartitionStates { states, .. } | StoreOp::WritePartitionStates { states, .. } => {
            return states.iter().map(|(name, state)| write(op, name, state, result, &end)).collect();
        }
        other => administration::operation(other).unwrap_or_else(|| panic!("not told: {other:?}")),
    };
    vec![line + &end]
}

fn reply_end(reply: &StoreReply) -> String {
    match reply {
        StoreReply::Controller(None) => ": nobody".to_owned(),
        StoreReply::Controller(Some(node)) => {
            format!(": broker {} in session {}", node.broker_id, node.owner)
        }
        StoreReply::ControllerEpoch(None) => ": none".to_owned(),
        StoreReply::ControllerEpoch(Some((epoch, version))) => format!(": {epoch} v{version}"),
        StoreReply::Elected { epoch_version } => format!(": elected, v{epoch_version}"),
        StoreReply::NotElected => ": not elected".to_owned(),
        StoreReply::Brokers(brokers) => format!(": {}", ids(&brokers.keys().copied().collect::<Vec<_>>())),
        StoreReply::States(states) => {
            let bad = states.iter().filter_map(|(name, read)| match read {
                StateRead::State(_) => None,
                StateRead::Missing => Some(format!(" {name} missing")),
                StateRead::Unreadable(_) => Some(format!(" {name} unreadable")),
            });
            let bad = bad.collect::<String>();
            if bad.is_empty() { bad } else { format!(":{bad}") }
        }
        other => administration::reply_end(other).unwrap_or_default(),
    }
}

fn write(
    op: &StoreOp,
    name: &TopicPartition,
    after: &LeaderAndIsr,
    result: &Result<StoreReply, StoreFailure>,
    end: &str,
) -> String {
    let verb = if matches!(op, StoreOp::CreatePartitionStates { .. }) { "create" } else { "write" };
    let end = match result {
        Ok(StoreReply::Created(outcomes)) => match &outcomes[name] {
            StateCreated::Created => String::new(),
            StateCreated::Exists => ": exists".to_owned(),
            StateCreated::Refused(reason) => format!(": refused, {reason}"),
        },
        Ok(StoreReply::Written(outcomes)) => match &outcomes[name] {
            StateWritten::Written { partition_epoch } => format!(" -> v{partition_epoch}"),
            StateWritten::BadVersion => ": bad version".to_owned(),
            StateWritten::Refused(reason) => format!(": refused, {reason}"),
        },
        _ => end.to_owned(),
    };
    format!("{verb} {name} {}{end}", state(after))
}

/// A command that is neither an operation of the store nor a request; nothing for a note that says what others say.
pub(super) fn command(command: &Command) -> Vec<String> {
    match command {
        Command::Store { .. } | Command::Send { .. } => Vec::new(),
        Command::OpenChannel { broker, registration } => {
            let port = registration.endpoints[0].port;
            vec![format!("open channel to {broker} at port {port}")]
        }
        Command::CloseChannel { broker } => vec![format!("close channel to {broker}")],
        Command::Answer { id, answer: Err(error) } => vec![format!("answer #{}: {error}", id.0)],
        Command::Answer { id, answer: Ok(answer) } => answer_lines(id.0, answer),
        Command::TookOffice { epoch } => vec![format!("in office, epoch {epoch}")],
        Command::LeftOffice => vec!["out of office".to_owned()],
        Command::CountUncleanElection => vec!["count an unclean election".to_owned()],
        Command::Note(note) => match &note.what {
            // Told by the commands themselves, and by the write.
            What::TookOffice | What::Leadership { .. } => Vec::new(),
            what => {
                let level = match what.level() {
                    Level::Trace => "",
                    Level::Info => "INFO ",
                    Level::Warn => "WARN ",
                    Level::Error => "ERROR ",
                };
                vec![format!("{level}{what}")]
            }
        },
    }
}

/// A request, with a line for each partition.
pub(super) fn send(receiver: &str, request: &ControlRequest) -> Vec<String> {
    let (mut lines, partitions): (Vec<String>, BTreeMap<_, _>) = match request {
        ControlRequest::LeaderAndIsr(request) => {
            let partitions = request.partitions.iter().map(|(name, partition)| {
                let no_id =
                    if request.topic_ids.contains_key(&name.topic) { "" } else { " without topic id" };
                (name, leader_and_isr(partition) + no_id)
            });
            (vec![format!("LeaderAndIsr to {receiver}")], partitions.collect())
        }
        ControlRequest::UpdateMetadata(request) => {
            let live = ids(&request.body.live_brokers.keys().copied().collect::<Vec<_>>());
            let partitions = request.body.partitions.iter();
            let line = format!("UpdateMetadata to {receiver}, alive {live}");
            (vec![line], partitions.map(|(name, p)| (name, update_metadata(p))).collect())
        }
        ControlRequest::StopReplica(request) => {
            let partitions = request.partitions.iter().map(|(name, p)| (name, stop_replica(*p)));
            (vec![format!("StopReplica to {receiver}")], partitions.collect())
        }
    };
    lines.extend(partitions.iter().map(|(name, partition)| format!("    {name} {partition}")));
    lines
}

fn leader_and_isr(partition: &LeaderAndIsrPartition) -> String {
    let new = if partition.is_new { " new" } else { "" };
    format!("{} of {}{new}", state(&partition.state), assignment(&partition.assignment))
}

fn update_metadata(partition: &UpdateMetadataPartition) -> String {
    let offline = ids(&partition.offline_replicas);
    format!("{} of {} offline {offline}", state(&partition.state), ids(&partition.replicas))
}

fn stop_replica(partition: StopReplicaPartition) -> String {
    let delete = if partition.delete { " delete" } else { "" };
    format!("epoch {}{delete}", partition.leader_epoch)
}

fn answer_lines(id: u64, answer: &ApiAnswer) -> Vec<String> {
    match answer {
        ApiAnswer::ControlledShutdown(remaining) => {
            let remaining = if remaining.is_empty() { "none".to_owned() } else { names(remaining) };
            vec![format!("answer #{id}: remaining {remaining}")]
        }
        ApiAnswer::AlterPartition(partitions) => {
            let mut lines = vec![format!("answer #{id}")];
            lines.extend(partitions.iter().map(|altered| {
                let topic = match &altered.topic {
                    crate::fetch::session::TopicRef::Name(name) => name.to_string(),
                    crate::fetch::session::TopicRef::Id(id) => format!("id {}", id.0[0]),
                };
                let result = match &altered.result {
                    Ok(now) => state(now),
                    Err(error) => error.to_string(),
                };
                format!("    {topic}-{} {result}", altered.partition)
            }));
            lines
        }
        other => administration::answer_lines(id, other),
    }
}
