//! Births and deaths of brokers.

use std::sync::Arc;
use std::time::Duration;

use node::broker::{Broker, Environment};
use node::config::KafkaConfig;
use node::{Boot, Membership, StartError, StoreEvents};
use storage::disk::crash::{CrashDisk, CrashMode};
use wire::types::BrokerId;

use super::{Life, World};
use crate::clock::{self, SimClock};
use crate::executor::Jobs;
use crate::fiber::Fiber;
use crate::incarnation::Incarnation;
use crate::journal;
use crate::network::{self, SimPeers};
use crate::tree::SESSION_TIMEOUT_MS;

/// How a broker ends that nobody stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    /// The process dies; the machine keeps what was written.
    Kill,
    /// The machine goes down; what was not synced is gone, in part or all of it.
    PowerLoss,
}

impl World {
    /// Starts a broker that is down and not to stay away.
    pub(crate) fn start(self: &Arc<Self>, id: BrokerId) {
        if self.faults.missing() == Some(id) {
            return;
        }
        let node = self.node(id);
        let incarnation = {
            let mut state = node.lock();
            if !matches!(state.life, Life::Down) {
                return;
            }
            state.life = Life::Starting;
            state.lives += 1;
            let incarnation = Incarnation::new(id, state.lives);
            state.incarnation = Some(incarnation.clone());
            state.polled_at_us = None;
            state.disk.set_now(self.now().wall_ms);
            incarnation
        };
        self.matters(format_args!("broker {id} starts, life {}", incarnation.number));
        let store_events = Arc::new(StoreEvents::default());
        let session = self.tree.session(self.weak(), incarnation.clone(), store_events.sink());
        let (disk, is_same_boot) = {
            let mut state = node.lock();
            state.session = Some(session.clone());
            let disk = Arc::new(state.disk.clone());
            state.in_hands.push((incarnation.number, Arc::downgrade(&disk)));
            (disk, state.is_same_boot)
        };
        let config = config(self, id);
        let environment = Environment {
            store: session,
            store_events,
            clock: Arc::new(SimClock::new(self.weak(), incarnation.clone())),
            disk,
            executor: Arc::new(Jobs::new(self.weak(), incarnation.clone())),
            group_loads: Arc::new(Jobs::new(self.weak(), incarnation.clone())),
            endpoints: Box::new(|config| config.listeners.advertised.clone()),
            seed: self.chances.brokers.number(),
            membership: Membership::Member {
                session_timeout: Duration::from_millis(SESSION_TIMEOUT_MS),
                boot: if is_same_boot { Boot::Same } else { Boot::Another },
            },
            peers: Arc::new(SimPeers::new(self.weak(), incarnation.clone())),
        };
        // Names of deleted directories and the jitter of segments are drawn from a stream of the thread's own.
        let seed = self.chances.brokers.number();
        let world = self.weak();
        let fiber = Fiber::new(move || {
            fastrand::seed(seed);
            let started = journal::acting(id, || node::start(config, environment));
            if let Some(world) = world.upgrade().filter(|_| incarnation.is_alive()) {
                world.started(&incarnation, started);
            } else if let Ok(broker) = started {
                broker.abandon();
            }
        });
        node.lock().start = Some(fiber.clone());
        if fiber.resume() {
            node.lock().start = None;
        }
    }

    fn started(self: &Arc<Self>, incarnation: &Incarnation, started: Result<Arc<Broker>, StartError>) {
        let id = incarnation.broker;
        match started {
            Ok(broker) => self.serves(incarnation, broker),
            Err(error) => {
                self.matters(format_args!("broker {id} does not start: {error}"));
                self.findings.add(self, format!("broker {id} does not start: {error}"));
                self.bury(incarnation);
            }
        }
    }

    fn serves(self: &Arc<Self>, incarnation: &Incarnation, broker: Arc<Broker>) {
        self.matters(format_args!("broker {} serves", broker.id()));
        let node = self.node(broker.id());
        {
            let mut state = node.lock();
            state.life = Life::Serving(broker.clone());
            state.is_same_boot = true;
        }
        let (world, owner) = (self.weak(), incarnation.clone());
        broker.on_earlier_deadline(move |mono_ms| {
            if let Some(world) = world.upgrade() {
                world.poll_at(&owner, clock::micros_of(mono_ms));
            }
        });
        self.poll_at(incarnation, self.schedule.now_us());
        self.housekeep_at(incarnation.clone(), self.schedule.now_us());
        self.clean_at(incarnation.clone(), self.schedule.now_us());
    }

    /// Polls a broker at `at_us`, unless it is polled earlier.
    fn poll_at(self: &Arc<Self>, owner: &Incarnation, at_us: u64) {
        let at_us = at_us.max(self.schedule.now_us());
        {
            let mut state = self.node(owner.broker).lock();
            let is_present = state.incarnation.as_ref() == Some(owner);
            if !is_present || state.polled_at_us.is_some_and(|polled_us| polled_us <= at_us) {
                return;
            }
            state.polled_at_us = Some(at_us);
        }
        let owner = owner.clone();
        self.schedule.at(at_us, "poll", move |world| {
            let broker = {
                let mut state = world.node(owner.broker).lock();
                // Another poll came before, or another life.
                if !owner.is_alive() || state.polled_at_us != Some(at_us) {
                    return;
                }
                state.polled_at_us = None;
                match &state.life {
                    Life::Serving(broker) | Life::Leaving(broker) => broker.clone(),
                    Life::Down | Life::Starting => return,
                }
            };
            world.note(format_args!("poll {}", owner.broker));
            if let Some(mono_ms) = world.act(&owner, || broker.poll()) {
                world.poll_at(&owner, clock::micros_of(mono_ms).max(world.schedule.now_us() + 1));
            }
        });
    }

    fn housekeep_at(self: &Arc<Self>, owner: Incarnation, at_us: u64) {
        self.schedule.at(at_us, "housekeeping", move |world| {
            let Some(broker) = world.node(owner.broker).broker().filter(|_| owner.is_alive()) else { return };
            world.note(format_args!("housekeeping {}", owner.broker));
            let next_ms = world.act(&owner, || broker.housekeep());
            world.housekeep_at(owner, clock::micros_of(next_ms));
        });
    }

    /// A round of the cleaner, and then the next, until the broker leaves.
    fn clean_at(self: &Arc<Self>, owner: Incarnation, at_us: u64) {
        self.schedule.at(at_us, "cleaner", move |world| {
            let Some(broker) = world.node(owner.broker).broker().filter(|_| owner.is_alive()) else { return };
            world.note(format_args!("cleaner {}", owner.broker));
            let next_ms = world.act(&owner, || broker.clean());
            if next_ms < i64::MAX {
                world.clean_at(owner, clock::micros_of(next_ms));
            }
        });
    }

    /// A broker dies. What it had is gone, but for its disk.
    pub(crate) fn kill(self: &Arc<Self>, id: BrokerId, death: Death) {
        let Some(incarnation) = self.node(id).incarnation() else { return };
        self.matters(format_args!("broker {id} dies: {death:?}"));
        let mode = match death {
            Death::Kill => CrashMode::ProcessKill,
            Death::PowerLoss if self.chances.disks.per_mille(300) => CrashMode::LoseUnsynced,
            Death::PowerLoss => CrashMode::PowerLoss { seed: self.chances.disks.number() },
        };
        {
            let mut state = self.node(id).lock();
            state.disk = state.disk.crash(mode);
            state.is_same_boot &= death == Death::Kill;
        }
        if death == Death::PowerLoss {
            incarnation.end_silently();
        }
        self.bury(&incarnation);
        self.network.broker_died(self, id, death);
    }

    /// The end of a life.
    fn bury(self: &Arc<Self>, incarnation: &Incarnation) {
        incarnation.end();
        let (life, session, start) = {
            let mut state = self.node(incarnation.broker).lock();
            state.incarnation = None;
            state.polled_at_us = None;
            (std::mem::replace(&mut state.life, Life::Down), state.session.take(), state.start.take())
        };
        if let Some(session) = session {
            session.orphan(self);
        }
        if let Some(start) = start {
            // It ends as soon as it sees that its life is over.
            self.schedule.after(0, "goes on", move |_| {
                start.resume();
            });
        }
        if let Life::Serving(broker) | Life::Leaving(broker) = life {
            broker.abandon();
        }
    }

    /// The end of the present life of a broker, if it has one.
    pub(super) fn bury_present(self: &Arc<Self>, id: BrokerId) {
        if let Some(incarnation) = self.node(id).incarnation() {
            self.bury(&incarnation);
        }
    }

    /// Stops a broker in order; it is down when that is done.
    pub(crate) fn stop(self: &Arc<Self>, id: BrokerId) {
        let node = self.node(id);
        let (broker, incarnation) = {
            let mut state = node.lock();
            let Life::Serving(broker) = state.life.clone() else { return };
            state.life = Life::Leaving(broker.clone());
            (broker, state.incarnation.clone())
        };
        let Some(incarnation) = incarnation else { return };
        self.matters(format_args!("broker {id} is told to stop"));
        let world = self.weak();
        let of = broker.clone();
        let owner = incarnation.clone();
        let has_left = move || {
            let Some(world) = world.upgrade() else { return };
            world.schedule.after(1_000, "stop", move |world| world.close(&incarnation, &of));
        };
        self.act(&owner, || broker.begin_to_leave(has_left));
    }

    /// A broker that has handed over what it led closes its logs, and its process ends.
    fn close(self: &Arc<Self>, incarnation: &Incarnation, broker: &Arc<Broker>) {
        if !incarnation.is_alive() {
            return;
        }
        self.matters(format_args!("broker {} closes its logs", incarnation.broker));
        journal::acting(incarnation.broker, || broker.shut_down());
        self.bury(incarnation);
        self.network.broker_died(self, incarnation.broker, Death::Kill);
        self.release_locks(incarnation.broker);
    }

    /// The locks of a process that has ended are free, whoever still holds its memory.
    fn release_locks(&self, id: BrokerId) {
        let mut state = self.node(id).lock();
        let after: CrashDisk = state.disk.crash(CrashMode::ProcessKill);
        state.disk = after;
    }
}

/// Settings that make much happen in little time.
fn config(world: &World, id: BrokerId) -> KafkaConfig {
    let port = network::port_of(id);
    let settings = [
        ("broker.id", id.0.to_string()),
        ("log.dirs", "/data".to_owned()),
        ("listeners", format!("PLAINTEXT://broker{id}:{port}")),
        ("inter.broker.protocol.version", world.plan.protocol.name().to_owned()),
        ("auto.create.topics.enable", "false".to_owned()),
        ("controlled.shutdown.retry.backoff.ms", "500".to_owned()),
        ("controller.socket.timeout.ms", "3000".to_owned()),
        ("leader.imbalance.check.interval.seconds", "7".to_owned()),
        ("log.cleaner.backoff.ms", "700".to_owned()),
        ("log.cleaner.dedupe.buffer.size", "1048577".to_owned()),
        ("log.cleaner.io.buffer.size", "4096".to_owned()),
        ("log.flush.offset.checkpoint.interval.ms", "3000".to_owned()),
        ("log.flush.start.offset.checkpoint.interval.ms", "3000".to_owned()),
        ("log.index.interval.bytes", "512".to_owned()),
        ("log.initial.task.delay.ms", "1000".to_owned()),
        ("log.retention.check.interval.ms", "3000".to_owned()),
        ("log.segment.delete.delay.ms", "1000".to_owned()),
        ("log.segment.bytes", "8192".to_owned()),
        // With several, chance would decide which log is loaded first.
        ("num.recovery.threads.per.data.dir", "1".to_owned()),
        ("replica.fetch.backoff.ms", "200".to_owned()),
        ("replica.fetch.wait.max.ms", "500".to_owned()),
        ("replica.high.watermark.checkpoint.interval.ms", "1000".to_owned()),
        ("replica.lag.time.max.ms", "3000".to_owned()),
        ("replica.socket.timeout.ms", "2000".to_owned()),
    ];
    let planted = world.plan.planted.map(|fault| ("blumfeld.planted.faults", fault.name().to_owned()));
    let settings = settings.into_iter().chain(planted);
    let settings: Vec<_> = settings.map(|(key, value)| (key.to_owned(), value)).collect();
    match KafkaConfig::without_file(&settings) {
        Ok((config, _)) => config,
        Err(error) => panic!("the settings of the simulation are refused: {error}"),
    }
}
