//! Brokers that act on control requests: they keep logs and answer, as far as the deletion of topics goes.

use std::collections::{BTreeMap, BTreeSet};

use wire::error_code::ErrorCode;
use wire::types::{BrokerEpoch, BrokerId, ControllerEpoch};

use super::world::World;
use crate::controller::values::{ControlRequest, ControlResponse, ControlSender};

/// What brokers remember, each in its present run.
#[derive(Default)]
pub(super) struct Receivers {
    /// The latest controller that each run of a broker has heard of.
    controllers: BTreeMap<(BrokerId, BrokerEpoch), ControllerEpoch>,
    /// The brokers whose next deletion fails.
    pub(super) clumsy: BTreeSet<BrokerId>,
}

impl Receivers {
    /// A request reaches a broker; the answer, unless the broker is gone.
    pub(super) fn receive(
        &mut self,
        world: &mut World,
        broker: BrokerId,
        request: &ControlRequest,
    ) -> Option<ControlResponse> {
        let run = world.brokers.get(&broker)?.epoch;
        let error = self.judge(broker, run, sender_of(request));
        match request {
            ControlRequest::UpdateMetadata(_) => None,
            ControlRequest::LeaderAndIsr(request) => {
                let partitions = request.partitions.keys().map(|name| (name.clone(), error)).collect();
                if !error.is_error() {
                    world.logs.extend(request.partitions.keys().map(|name| (broker, name.clone())));
                }
                Some(ControlResponse::LeaderAndIsr { error, partitions })
            }
            ControlRequest::StopReplica(request) => {
                let mut deleted = BTreeMap::new();
                for (name, _) in
                    request.partitions.iter().filter(|(_, stop)| stop.delete && !error.is_error())
                {
                    let is_clumsy = self.clumsy.remove(&broker);
                    let outcome = if is_clumsy { ErrorCode::KafkaStorageError } else { ErrorCode::None };
                    if !is_clumsy {
                        world.logs.remove(&(broker, name.clone()));
                    }
                    deleted.insert(name.clone(), outcome);
                }
                Some(ControlResponse::StopReplica { error, deleted })
            }
        }
    }

    fn judge(&mut self, broker: BrokerId, run: BrokerEpoch, sender: ControlSender) -> ErrorCode {
        if sender.broker_epoch < run {
            return ErrorCode::StaleBrokerEpoch;
        }
        let latest = self.controllers.entry((broker, run)).or_default();
        if sender.controller_epoch < *latest {
            return ErrorCode::StaleControllerEpoch;
        }
        *latest = sender.controller_epoch;
        ErrorCode::None
    }
}

fn sender_of(request: &ControlRequest) -> ControlSender {
    match request {
        ControlRequest::LeaderAndIsr(request) => request.sender,
        ControlRequest::UpdateMetadata(request) => request.sender,
        ControlRequest::StopReplica(request) => request.sender,
    }
}
