//! What the controller wants done.

use std::collections::BTreeMap;
use std::sync::Arc;

use wire::error_code::ErrorCode;
use wire::types::{BrokerId, ControllerEpoch, TopicPartition};

use super::elect_leaders::ElectedLeaders;
use super::event::RequestId;
use super::note::Note;
use super::producer_ids::ProducerIdBlock;
use super::store::{OpId, StoreOp};
use super::values::{BrokerRegistration, ControlRequest, LeaderAndIsr};
use crate::fetch::session::TopicRef;

/// A command. Commands are carried out in the order in which they were given, sends to one broker in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Do this in the store and report its end by [`Event::StoreDone`](super::event::Event::StoreDone).
    Store {
        /// Names the operation.
        id: OpId,
        /// What to do.
        op: StoreOp,
    },
    /// Put a request into the queue of a broker.
    Send {
        /// The broker; a channel to it is open.
        broker: BrokerId,
        /// The request.
        request: ControlRequest,
    },
    /// Open a channel to a broker, or move an open one to its new addresses without losing what waits in it.
    OpenChannel {
        /// The broker.
        broker: BrokerId,
        /// Where it is reached.
        registration: Arc<BrokerRegistration>,
    },
    /// Close the channel to a broker and drop what waits in it.
    CloseChannel {
        /// The broker.
        broker: BrokerId,
    },
    /// Answer a request; each is answered once. An error is that of the whole request.
    Answer {
        /// The request.
        id: RequestId,
        /// The answer.
        answer: Result<ApiAnswer, ErrorCode>,
    },
    /// This broker is controller from now on.
    TookOffice {
        /// The epoch of the term.
        epoch: ControllerEpoch,
    },
    /// This broker is no longer controller: close every channel, and drop what waits in it.
    LeftOffice,
    /// A leader was elected that was not in sync: to be counted.
    CountUncleanElection,
    /// To be logged and kept for a while.
    Note(Note),
}

/// An answer to a request that was heard.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ApiAnswer {
    /// To AlterPartition: for each partition of the request, in its order.
    AlterPartition(Vec<AlteredPartition>),
    /// To ControlledShutdown: what the broker still leads although it has other replicas.
    ControlledShutdown(Vec<TopicPartition>),
    /// To ElectLeaders. The caller waits until its own picture of the cluster shows these leaders.
    ElectLeaders(ElectedLeaders),
    /// To AllocateProducerIds.
    AllocateProducerIds(ProducerIdBlock),
    /// To UpdateFeatures: for each feature, why it was not changed (INVALID_REQUEST).
    UpdateFeatures(BTreeMap<String, &'static str>),
}

/// The outcome of an AlterPartition for one partition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AlteredPartition {
    /// The topic as the request named it.
    pub topic: TopicRef,
    /// The index of the partition.
    pub partition: i32,
    /// The state as it is now, or why it was not changed.
    pub result: Result<LeaderAndIsr, ErrorCode>,
}
