//! The ways from this broker, while it is controller, to every broker: runs the kernel's machine for each and carries
//! its transmissions over the peers.
//!
//! Requests go out in the version that `inter.broker.protocol.version` names, without asking the receiver, over the
//! listener of the control plane (KIP-291), else the inter-broker listener, with the controller's id as client id.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use kernel::controller::channel::{Channel, Command, Event};
use kernel::controller::event::Event as ControllerEvent;
use kernel::controller::requests::{ControlMessage, ControlReply};
use kernel::controller::values::{BrokerRegistration, ControlRequest};
use wire::Encoder;
use wire::api::ApiKey;
use wire::header::encode_request_header;
use wire::types::{BrokerId, Millis};

use crate::broker::Broker;
use crate::delayed::{Delayed, Wake};
use crate::drive::to_broker;
use crate::peers::{self, PeerAddress, PeerRequest, Purpose};

/// The open channels.
#[derive(Default)]
pub(super) struct Channels(Mutex<BTreeMap<BrokerId, Line>>);

/// One channel and what it needs outside the machine.
struct Line {
    machine: Channel,
    address: PeerAddress,
    /// Tells this channel from an earlier one to the same broker.
    run: u64,
    /// Deadline and number in the timer.
    timer: Option<(i64, u64)>,
}

impl Channels {
    /// How many requests wait, in all and for each broker (`TotalQueueSize`, `QueueSize`).
    pub(super) fn queue_sizes(&self) -> BTreeMap<BrokerId, usize> {
        self.lock().iter().map(|(id, line)| (*id, line.machine.queue_size())).collect()
    }

    /// Whether nothing waits and nothing is under way.
    pub(super) fn are_idle(&self) -> bool {
        self.lock().values().all(|line| line.machine.deadline().is_none())
    }

    /// Panics if an invariant of a channel does not hold.
    pub(super) fn check(&self) {
        self.lock().values().for_each(|line| line.machine.check());
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<BrokerId, Line>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens a channel, or moves an open one to where the broker is reached now.
pub(super) fn open(broker: &Arc<Broker>, id: BrokerId, registration: &BrokerRegistration) {
    let config = broker.config();
    let listener = config.listeners.of_control();
    let Some(endpoint) = registration.endpoint(listener) else {
        tracing::error!(broker = id.0, %listener, "a broker does not listen where controllers talk to brokers; it is told nothing");
        return;
    };
    let address =
        PeerAddress { host: endpoint.host.clone(), port: u16::try_from(endpoint.port).unwrap_or_default() };
    let timeout = Millis(i64::from(config.controller_socket_timeout_ms));
    let run = broker.timers().next_id();
    let mut lines = broker.controller().channels.lock();
    lines.entry(id).and_modify(|line| line.address = address.clone()).or_insert_with(|| Line {
        machine: Channel::new(id, config.inter_broker_protocol_version, timeout),
        address,
        run,
        timer: None,
    });
}

/// Closes a channel; what waits in it is dropped.
pub(super) fn close(broker: &Arc<Broker>, id: BrokerId) {
    step(broker, id, None, Event::Removed);
    let closed = broker.controller().channels.lock().remove(&id);
    if let Some((at, number)) = closed.and_then(|line| line.timer) {
        broker.timers().remove(at, number);
    }
}

/// Closes all channels.
pub(super) fn close_all(broker: &Arc<Broker>) {
    let ids: Vec<_> = broker.controller().channels.lock().keys().copied().collect();
    for id in ids {
        close(broker, id);
    }
}

/// Puts a request into the queue of a broker.
pub(super) fn send(broker: &Arc<Broker>, id: BrokerId, request: ControlRequest) {
    step(broker, id, None, Event::Enqueue(request));
}

/// Tells a channel of an event and does what it wants. With `run`, only if it still is that channel.
fn step(broker: &Arc<Broker>, id: BrokerId, run: Option<u64>, event: Event) {
    let mut commands = Vec::new();
    let (address, run) = {
        let mut lines = broker.controller().channels.lock();
        let Some(line) = lines.get_mut(&id).filter(|line| run.is_none_or(|run| run == line.run)) else {
            return;
        };
        line.machine.step(broker.now(), event, &mut commands);
        arm(broker, id, line);
        (line.address.clone(), line.run)
    };
    for command in commands {
        match command {
            Command::Transmit { id: number, message, .. } => {
                transmit(broker, id, run, address.clone(), number, &message);
            }
            Command::Close => to_broker::close(broker, id, Purpose::Control),
            Command::Deliver(response) => {
                super::tell(broker, ControllerEvent::Responded { broker: id, response });
            }
        }
    }
}

/// Keeps the timer at the machine's deadline.
fn arm(broker: &Arc<Broker>, id: BrokerId, line: &mut Line) {
    let deadline = line.machine.deadline().map(|at| at.0);
    if line.timer.map(|(at, _)| at) == deadline {
        return;
    }
    if let Some((at, number)) = line.timer.take() {
        broker.timers().remove(at, number);
    }
    if let Some(at) = deadline {
        let number = broker.timers().next_id();
        line.timer = Some((at, number));
        broker.timers().add(at, number, Arc::new(Alarm { broker: id, run: line.run }));
    }
}

/// Wakes a channel at its deadline.
struct Alarm {
    broker: BrokerId,
    run: u64,
}

impl Delayed for Alarm {
    fn wake(self: Arc<Self>, broker: &Arc<Broker>, _why: Wake) {
        step(broker, self.broker, Some(self.run), Event::Tick);
    }
}

fn transmit(
    broker: &Arc<Broker>,
    id: BrokerId,
    run: u64,
    address: PeerAddress,
    number: u64,
    message: &ControlMessage,
) {
    let correlation_id = i32::try_from(number & 0x7fff_ffff).unwrap_or_default();
    let frame = match encode(broker.id(), correlation_id, message) {
        Ok(frame) => frame,
        Err(error) => {
            tracing::error!(broker = id.0, %error, "a control request cannot be encoded");
            return step(broker, id, Some(run), Event::Failed { id: number });
        }
    };
    let channel = peers::Channel { broker: id, purpose: Purpose::Control };
    let request = PeerRequest { channel, address, frame, timeout: to_broker::timeout(broker) };
    let (key, version) = (message.api_key(), message.version);
    let then = broker.clone();
    to_broker::send(
        broker,
        request,
        Box::new(move |answer| {
            let reply = answer.map_err(|error| error.to_string());
            let event = match reply.and_then(|bytes| decode(bytes, key, version, correlation_id)) {
                Ok(reply) => Event::Answered { id: number, reply },
                Err(error) => {
                    tracing::warn!(broker = id.0, key, %error, "a control request was not answered and is sent again");
                    Event::Failed { id: number }
                }
            };
            step(&then, id, Some(run), event);
        }),
    );
}

fn encode(
    controller: BrokerId,
    correlation_id: i32,
    message: &ControlMessage,
) -> Result<Bytes, wire::EncodeError> {
    let header = to_broker::header(controller, message.api_key(), message.version, correlation_id);
    let mut encoder = Encoder::new();
    encode_request_header(&mut encoder, &header)?;
    message.encode(&mut encoder)?;
    Ok(encoder.into_bytes())
}

/// The answer to a request of `key` in `version`.
fn decode(bytes: Bytes, key: i16, version: i16, correlation_id: i32) -> Result<ControlReply, String> {
    match ApiKey::from_code(key) {
        Some(ApiKey::LeaderAndIsr) => {
            to_broker::decode(bytes, version, correlation_id).map(ControlReply::LeaderAndIsr)
        }
        Some(ApiKey::UpdateMetadata) => {
            to_broker::decode(bytes, version, correlation_id).map(ControlReply::UpdateMetadata)
        }
        Some(ApiKey::StopReplica) => {
            to_broker::decode(bytes, version, correlation_id).map(ControlReply::StopReplica)
        }
        _ => Err("it is no control request".to_owned()),
    }
}
