//! What the controller asks of the store, carried out: typed operations become requests for znodes, pipelined, and the
//! answers become typed replies. Nothing here waits.

mod asked;
mod deletion;
mod election;
mod fenced;
mod lists;
mod states;
mod topics;

use std::sync::Arc;

use kernel::controller::store::{StoreFailure, StoreOp, StoreReply};
use kernel::planted::Fault;
use metadata::store::StoreError;
use metadata::znode::DecodeError;

use crate::broker::Broker;

/// To ZooKeeper a check of this version is none.
const ANY_VERSION: i32 = -1;

/// How an operation ends.
type Ended = Result<StoreReply, StoreFailure>;

/// Takes the end of an operation, once.
type Done = Box<dyn FnOnce(Ended) + Send>;

/// Begins `op`; `done` learns how it ended, later or within this call.
pub(super) fn begin(broker: &Arc<Broker>, op: StoreOp, done: impl FnOnce(Ended) + Send + 'static) {
    let done: Done = Box::new(done);
    match op {
        StoreOp::ReadController => election::read_controller(broker, done),
        StoreOp::ReadControllerEpoch => election::read_epoch(broker, done),
        StoreOp::CreateControllerEpoch => election::create_epoch(broker, done),
        StoreOp::Elect { epoch, expected_version } => {
            election::elect(broker, epoch, expected_version, done);
        }
        StoreOp::DeleteController { epoch_version } => {
            election::delete_controller(broker, epoch_version, done);
        }
        StoreOp::ReadFeatures => election::read_features(broker, done),
        StoreOp::WriteFeatures { node, epoch_version } => {
            election::write_features(broker, node, epoch_version, done);
        }
        StoreOp::DropNotifications { kind, epoch_version } => {
            lists::drop_notifications(broker, kind, epoch_version, done);
        }
        StoreOp::ReadBrokers => lists::read_brokers(broker, done),
        StoreOp::ReadBroker(id) => lists::read_broker(broker, id, done),
        StoreOp::ReadTopicList => lists::read_topic_list(broker, done),
        StoreOp::ReadTopics(names) => topics::read(broker, names, done),
        StoreOp::AssignTopicIds { topics, epoch_version } => {
            topics::assign_ids(broker, topics, epoch_version, done);
        }
        StoreOp::WriteTopics { topics, epoch_version } => {
            topics::write(broker, topics, epoch_version, done);
        }
        StoreOp::ReadPartitionList(topic) => lists::read_partition_list(broker, &topic, done),
        StoreOp::ReadPartitionStates(partitions) => states::read(broker, partitions, done),
        StoreOp::CreatePartitionStates { states, epoch_version } => {
            states::create(broker, states, epoch_version, done);
        }
        StoreOp::WritePartitionStates { states, epoch_version } => {
            states::write(broker, states, fence(broker, epoch_version), done);
        }
        StoreOp::ReadUncleanElection(topics) => topics::read_unclean_election(broker, topics, done),
        StoreOp::ReadDeletions => deletion::read(broker, done),
        StoreOp::DropDeletions { topics, epoch_version } => {
            deletion::drop_requests(broker, &topics, epoch_version, done);
        }
        StoreOp::DeleteTopic { topic, epoch_version } => {
            deletion::delete_topic(broker, &topic, epoch_version, done);
        }
        StoreOp::ReadPreferredElection => asked::read_preferred_election(broker, done),
        StoreOp::DropPreferredElection { epoch_version } => {
            asked::drop_preferred_election(broker, epoch_version, done);
        }
        StoreOp::ReadProducerIds => asked::read_producer_ids(broker, done),
        StoreOp::WriteProducerIds { block, version, epoch_version } => {
            asked::write_producer_ids(broker, block, version, epoch_version, done);
        }
        StoreOp::ReadLogDirEvents => asked::read_log_dir_events(broker, done),
        StoreOp::ReadIsrChanges => asked::read_isr_changes(broker, done),
        StoreOp::DropNotificationsRead { kind, names, epoch_version } => {
            asked::drop_notifications_read(broker, kind, &names, epoch_version, done);
        }
    }
}

/// The version of `/controller_epoch` that writes of partition states must find; a test build may plant that any will do.
fn fence(broker: &Broker, epoch_version: i32) -> i32 {
    if broker.config().planted_faults.has(Fault::ControllerWritesUnfenced) {
        ANY_VERSION
    } else {
        epoch_version
    }
}

/// What a request that failed means for the operation.
fn failure(error: StoreError) -> StoreFailure {
    match error {
        StoreError::SessionExpired | StoreError::Closed => StoreFailure::SessionLost,
        other => StoreFailure::Unexpected(other.to_string()),
    }
}

/// A znode that cannot be understood where the controller cannot do without it.
fn unreadable(path: &str, error: &DecodeError) -> StoreFailure {
    StoreFailure::Unexpected(format!("{path}: {error}"))
}

/// An answer of another kind than that of the request.
fn mismatch() -> StoreFailure {
    StoreFailure::Unexpected("the store answered what was not asked".to_owned())
}
