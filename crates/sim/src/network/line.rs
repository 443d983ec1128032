//! Lines: ordered ways to a broker, one request under way at a time. A request whose time is over closes its connection;
//! what it was about may still reach the broker.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::{Bytes, BytesMut};
use node::call::{Connection, FileRange, Outcome, Reply};
use node::peers::{PeerDone, PeerError};
use wire::response::Part;
use wire::types::BrokerId;

use super::{Network, Place};
use crate::incarnation::Incarnation;
use crate::trace::Digest;
use crate::world::node::Node;
use crate::world::{Death, World};

/// How many requests wait behind the one under way.
const MAX_WAITING: usize = 64;
/// How long a closed connection takes to fail what was under way, in microseconds.
const FAILS_AFTER_US: u64 = 300;
/// Between two looks whether a broker that is about to serve does, in microseconds.
const LOOKS_AFTER_US: u64 = 2_000;

/// Why two requests to the same broker take different lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Lane {
    Control,
    ToController,
    Fetcher(u32),
    Client,
}

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) from: Place,
    pub(crate) to: BrokerId,
    pub(crate) lane: Lane,
}

/// All lines.
#[derive(Default)]
pub(super) struct Lines(Mutex<State>);

#[derive(Default)]
struct State {
    last_number: u64,
    lines: BTreeMap<Key, Line>,
}

#[derive(Default)]
struct Line {
    /// The number of its connection; 0 when there is none.
    connection: u64,
    /// What has arrived last over the newest connection from which anything has.
    arrived: Option<Sent>,
    under_way: Option<(u64, PeerDone)>,
    waiting: VecDeque<Waiting>,
}

/// The numbers of a request and of the connection over which it was sent.
#[derive(Clone, Copy)]
struct Sent {
    number: u64,
    connection: u64,
}

struct Waiting {
    frame: Bytes,
    ends_us: u64,
    origin: Option<Incarnation>,
    done: PeerDone,
}

impl Lines {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A broker has died: what it wanted is forgotten, and what others want of it fails, at once if the machine is up to
    /// say so.
    pub(super) fn broker_died(&self, world: &Arc<World>, id: BrokerId, death: Death) {
        let (forgotten, failed) = {
            let mut state = self.lock();
            let (its, others): (BTreeMap<_, _>, BTreeMap<_, _>) = std::mem::take(&mut state.lines)
                .into_iter()
                .partition(|(key, _)| key.from == Place::Broker(id));
            state.lines = others;
            let to_it = state.lines.iter().filter(|(key, _)| key.to == id && death == Death::Kill);
            let failed: Vec<_> = to_it
                .filter_map(|(key, line)| line.under_way.as_ref().map(|(number, _)| (*key, *number)))
                .collect();
            (its, failed)
        };
        for (key, number) in failed {
            world.schedule.after(FAILS_AFTER_US, "reset", move |world| {
                let error = PeerError::Disconnected("connection reset".to_owned());
                world.network.ended(world, key, number, Err(error));
            });
        }
        drop(forgotten);
    }
}

/// Requests.
impl Network {
    /// Hands in a request; `done` gets the answer, or an error after `timeout_us` at the latest.
    pub(crate) fn request(
        &self,
        world: &Arc<World>,
        key: Key,
        origin: Option<Incarnation>,
        frame: Bytes,
        timeout_us: u64,
        done: PeerDone,
    ) {
        let refused = {
            let mut state = self.lines.lock();
            let line = state.lines.entry(key).or_default();
            if line.waiting.len() >= MAX_WAITING {
                Some(done)
            } else {
                let ends_us = world.schedule.now_us().saturating_add(timeout_us);
                line.waiting.push_back(Waiting { frame, ends_us, origin, done });
                None
            }
        };
        match refused {
            Some(done) => done(Err(PeerError::Refused)),
            None => self.go_on(world, key),
        }
    }

    /// Sends the next request of a line, if none is under way.
    fn go_on(&self, world: &Arc<World>, key: Key) {
        let next = {
            let mut state = self.lines.lock();
            state.last_number += 1;
            let number = state.last_number;
            let Some(line) = state.lines.get_mut(&key).filter(|line| line.under_way.is_none()) else {
                return;
            };
            line.waiting.pop_front().map(|Waiting { frame, ends_us, origin, done }| {
                line.under_way = Some((number, done));
                if line.connection == 0 {
                    line.connection = number;
                }
                (Sent { number, connection: line.connection }, frame, ends_us, origin)
            })
        };
        let Some((sent, frame, ends_us, origin)) = next else { return };
        let number = sent.number;
        world.note(format_args!(
            "{} asks {} ({:?}): api {} {:016x}",
            key.from,
            key.to,
            key.lane,
            frame.get(1).copied().unwrap_or(0),
            Digest::of(&frame)
        ));
        world.schedule.at(ends_us, "time is over", move |world| {
            world.network.ended(world, key, number, Err(PeerError::TimedOut));
        });
        let parcel = move |world: &Arc<World>| world.network.arrive(world, key, sent, &origin, frame.clone());
        self.carry(world, key.from, Place::Broker(key.to), true, Arc::new(parcel));
    }

    /// A request reaches its broker.
    fn arrive(&self, world: &Arc<World>, key: Key, sent: Sent, origin: &Option<Incarnation>, frame: Bytes) {
        let number = sent.number;
        if origin.as_ref().is_some_and(Incarnation::is_silent) {
            return;
        }
        let node = world.node(key.to);
        let (Some(broker), Some(life)) = (node.broker(), node.incarnation()) else {
            if is_about_to_serve(world, node, key.to) {
                let (origin, frame) = (origin.clone(), frame.clone());
                let again = move |world: &Arc<World>| world.network.arrive(world, key, sent, &origin, frame);
                return world.schedule.after(LOOKS_AFTER_US, "waits for a start", again);
            }
            let error = PeerError::Connect("connection refused".to_owned());
            return self.answer(world, key, number, Err(error));
        };
        if key.lane == Lane::Control && self.is_behind(key, sent) {
            return world.note(format_args!("a copy of number {number} comes too late to be one"));
        }
        world.note(format_args!("{} is asked by {} ({:?}), number {number}", key.to, key.from, key.lane));
        let connection = Arc::new(Connection {
            listener: "PLAINTEXT".to_owned(),
            client_address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            id: format!("{}-{}", key.from, key.to),
            number: sent.connection,
            principal: "User:ANONYMOUS".to_owned(),
            client_software: OnceLock::new(),
        });
        let then = world.weak();
        let owner = life.clone();
        let reply = move |outcome| {
            let Some(world) = then.upgrade().filter(|_| life.is_alive()) else { return };
            world.network.answer(&world, key, number, bytes_of(outcome));
        };
        world.act(&owner, || broker.handle(&connection, frame, Reply::new(reply)));
    }

    /// Whether a later request has arrived over the same connection: a copy is not brought behind it. Only what was sent
    /// over one that is broken comes late, and a controller's requests rely on that.
    fn is_behind(&self, key: Key, sent: Sent) -> bool {
        let mut state = self.lines.lock();
        let Some(line) = state.lines.get_mut(&key) else { return false };
        let behind = |last: Sent| last.connection == sent.connection && sent.number < last.number;
        if line.arrived.is_some_and(behind) {
            return true;
        }
        if line.arrived.is_none_or(|last| last.connection <= sent.connection) {
            line.arrived = Some(sent);
        }
        false
    }

    /// The answer sets out on its way back.
    fn answer(&self, world: &Arc<World>, key: Key, number: u64, answer: Result<Bytes, PeerError>) {
        let parcel = move |world: &Arc<World>| world.network.ended(world, key, number, answer.clone());
        self.carry(world, Place::Broker(key.to), key.from, false, Arc::new(parcel));
    }

    /// A request ends, if it is still under way.
    fn ended(&self, world: &Arc<World>, key: Key, number: u64, answer: Result<Bytes, PeerError>) {
        let done = {
            let mut state = self.lines.lock();
            state.lines.get_mut(&key).and_then(|line| {
                let ended = line.under_way.take_if(|(under_way, _)| *under_way == number)?;
                // A request without an answer takes its connection with it.
                line.connection = if answer.is_ok() { line.connection } else { 0 };
                Some(ended)
            })
        };
        let Some((_, done)) = done else { return };
        match &answer {
            Ok(bytes) => {
                world.note(format_args!("{} answers {}: {:016x}", key.to, key.from, Digest::of(bytes)))
            }
            Err(error) => world.note(format_args!("{} has no answer of {}: {error}", key.from, key.to)),
        }
        self.go_on(world, key);
        done(answer);
    }

    /// Ends the connection of a line; what waits there fails.
    pub(super) fn close(&self, world: &Arc<World>, key: Key) {
        let Some(line) = self.lines.lock().lines.remove(&key) else { return };
        let waiting = line.waiting.into_iter().map(|waiting| waiting.done);
        let failed: Vec<PeerDone> = line.under_way.into_iter().map(|(_, done)| done).chain(waiting).collect();
        world.schedule.after(FAILS_AFTER_US, "closed", move |_| {
            for done in failed {
                done(Err(PeerError::Disconnected("closed".to_owned())));
            }
        });
    }
}

/// Whether a broker is registered and does not serve yet. Its sockets are open by then: who asks is not refused, but waits.
fn is_about_to_serve(world: &World, node: &Node, id: BrokerId) -> bool {
    node.is_starting() && world.tree.value(&format!("/brokers/ids/{id}")).is_some()
}

fn bytes_of(outcome: Outcome) -> Result<Bytes, PeerError> {
    match outcome {
        Outcome::Respond(parts) => joined(&parts),
        Outcome::NoResponse => Ok(Bytes::new()),
        Outcome::Close(reason) => Err(PeerError::Disconnected(reason)),
    }
}

/// The bytes of an answer, file ranges read.
fn joined(parts: &[Part<FileRange>]) -> Result<Bytes, PeerError> {
    let mut bytes = BytesMut::new();
    for part in parts {
        match part {
            Part::Bytes(part) => bytes.extend_from_slice(part),
            Part::Range(range) => match range.to_vec() {
                Ok(read) => bytes.extend_from_slice(&read),
                Err(error) => return Err(PeerError::Disconnected(error.to_string())),
            },
        }
    }
    Ok(bytes.freeze())
}
