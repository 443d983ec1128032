//! A small cluster for one partition: brokers with logs in memory, the machines of leader and follower, and a
//! controller that does as it is told. What happens is told in lines.
//!
//! One exchange between a follower and its leader is one step, so that a story can put a crash between any two.

mod follower_side;
mod leader_side;

use std::collections::{BTreeMap, BTreeSet};

use wire::types::{BrokerEpoch, BrokerId, ControllerEpoch, Millis};

use super::memory::MemoryBatch;
use super::*;
use crate::fetch::session::Session as LeaderSession;
use crate::replica::leader;

pub(super) const LAG_MS: i64 = 30_000;

/// What a broker is to the partition.
#[derive(Clone, Debug)]
enum Role {
    /// It has not heard of the partition since it was started.
    None,
    Leader(Box<leader::Leader>),
    Follower {
        leader: i32,
        leader_epoch: i32,
    },
}

/// One broker.
#[derive(Clone, Debug)]
struct Broker {
    up: bool,
    logs: MemoryLogs,
    role: Role,
    fetcher: Fetcher,
    /// What the fetcher has sent, until somebody lets it arrive.
    request: Option<Command>,
    /// The fetch sessions of followers, each with its number.
    sessions: BTreeMap<i32, (i32, LeaderSession)>,
    failed: bool,
}

/// The partition's state, as the controller keeps it.
#[derive(Clone, Debug)]
struct State {
    leader: Option<i32>,
    leader_epoch: i32,
    partition_epoch: i32,
    isr: Vec<i32>,
}

/// The cluster.
#[derive(Clone, Debug)]
pub(super) struct World {
    settings: super::Settings,
    mono_ms: i64,
    state: State,
    brokers: BTreeMap<i32, Broker>,
    next_session: i32,
    /// The most batches in one answer.
    pub(super) most_batches: usize,
    /// What a high watermark of a leader has passed, by base offset and epoch.
    pub(super) confirmed: BTreeMap<(i64, i32), MemoryBatch>,
    /// Whether a log has lost what was not synced: a leader in sync may lack what was confirmed.
    power_lost: bool,
    /// Confirmed batches that a truncation took from a member of the ISR.
    pub(super) confirmed_but_cut: Vec<MemoryBatch>,
    /// What has happened and was not read yet.
    pub(super) lines: Vec<String>,
}

impl World {
    /// Brokers with empty logs, without a leader.
    pub(super) fn new(protocol: MetadataVersion, brokers: &[i32]) -> Self {
        Self::with_faults(protocol, brokers, Faults::default())
    }

    /// The same with faults planted in all of them.
    pub(super) fn with_faults(protocol: MetadataVersion, brokers: &[i32], faults: Faults) -> Self {
        let settings = super::Settings { faults, ..settings(protocol) };
        let broker = |id: &i32| {
            let mut logs = MemoryLogs::default();
            logs.logs.insert(tp(0), MemoryLog::empty_at(0));
            let broker = Broker {
                up: true,
                logs,
                role: Role::None,
                fetcher: Fetcher::new(settings),
                request: None,
                sessions: BTreeMap::new(),
                failed: false,
            };
            (*id, broker)
        };
        Self {
            settings,
            mono_ms: 0,
            state: State { leader: None, leader_epoch: -1, partition_epoch: 0, isr: brokers.to_vec() },
            brokers: brokers.iter().map(broker).collect(),
            next_session: 1,
            most_batches: usize::MAX,
            confirmed: BTreeMap::new(),
            power_lost: false,
            confirmed_but_cut: Vec::new(),
            lines: Vec::new(),
        }
    }

    /// The controller makes `leader` lead in the next epoch and tells all who are up and not in `unaware`. Without an
    /// `isr`, those members stay that are up. A leader from outside the ISR is an unclean election.
    pub(super) fn elect(&mut self, leader: i32, isr: Option<Vec<i32>>, unaware: &[i32]) {
        let clean = self.state.isr.contains(&leader);
        let live: Vec<i32> = self.state.isr.iter().copied().filter(|id| self.is_up(*id)).collect();
        self.state.isr = isr.unwrap_or(if clean { live } else { vec![leader] });
        self.state.leader = Some(leader);
        self.state.leader_epoch += 1;
        self.state.partition_epoch += 1;
        let (epoch, isr) = (self.state.leader_epoch, names(&self.state.isr));
        let how = if clean { "" } else { ", though it is not in sync" };
        self.tell(format!("controller: {leader} leads in epoch {epoch}, isr {isr}{how}"));
        if !clean || self.power_lost {
            // Whoever allows this gives up what the new leader lacks.
            let log = self.log(leader).clone();
            self.confirmed.retain(|_, batch| log.batches.contains(batch));
        }
        for id in self.ids() {
            if !unaware.contains(&id) {
                self.inform(id);
            }
        }
    }

    /// Tells broker `id` the state of the partition.
    pub(super) fn inform(&mut self, id: i32) {
        let Some(leader) = self.state.leader.filter(|_| self.is_up(id)) else { return };
        if leader == id {
            self.become_leader(id);
        } else if self.is_up(leader) {
            self.become_follower(id, leader);
        }
        // A follower of a leader that is down keeps what it is (KAFKA-1647).
    }

    /// Crashes a broker. What it has written stays; its high watermark stays as in the checkpoint.
    pub(super) fn crash(&mut self, id: i32, checkpoint: Option<i64>) {
        let settings = self.settings;
        let broker = self.broker(id);
        broker.up = false;
        broker.role = Role::None;
        broker.fetcher = Fetcher::new(settings);
        broker.request = None;
        broker.sessions.clear();
        broker.failed = false;
        if let Some(checkpoint) = checkpoint {
            broker.log().set_high_watermark(checkpoint);
        }
        self.live_brokers_changed();
    }

    /// The log of a broker that is down loses what was not synced, from `offset` on.
    pub(super) fn lose(&mut self, id: i32, offset: i64) {
        let log = self.broker(id).log();
        // What is left ends with a whole batch.
        let cut = log.batches.iter().find(|batch| batch.last() >= offset).map(|batch| batch.base);
        log.truncate_to(cut.unwrap_or(offset));
        self.power_lost = true;
    }

    /// The controller is in this epoch.
    pub(super) fn set_epoch(&mut self, leader_epoch: i32) {
        self.state.leader_epoch = leader_epoch;
    }

    /// Starts a broker that was down. It hears of the partition at once, unless it is to lead: a leader that was away
    /// leads only after an election.
    pub(super) fn start(&mut self, id: i32) {
        self.broker(id).up = true;
        self.live_brokers_changed();
        if self.state.leader != Some(id) {
            self.inform(id);
        }
    }

    /// Lets time pass.
    pub(super) fn wait(&mut self, ms: i64) {
        self.mono_ms += ms;
        for id in self.ids() {
            self.lead(id, leader::Event::Tick);
            if matches!(self.broker(id).role, Role::Follower { .. }) {
                self.follow(id, Event::Tick, &[]);
            }
        }
    }

    /// Lets all followers fetch until nothing changes any more.
    pub(super) fn settle(&mut self) {
        const ENOUGH: usize = 10_000;
        let mut quiet = 0;
        for _ in 0..ENOUGH {
            let before: Vec<_> = self.ids().iter().map(|id| self.log(*id).clone()).collect();
            let waited = self.ids().iter().filter(|id| self.exchange(**id, false)).count() == 0;
            if waited {
                self.wait(BACKOFF_MS);
            }
            let after: Vec<_> = self.ids().iter().map(|id| self.log(*id).clone()).collect();
            quiet = if before == after { quiet + 1 } else { 0 };
            // A follower may be asking for epochs or offsets for some rounds before its log changes.
            if quiet > 8 {
                return;
            }
        }
        panic!("the followers do not come to rest");
    }

    /// What a judge says in the end: whether the logs agree, and whether all that was confirmed is there.
    pub(super) fn judge(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let logs: Vec<_> =
            self.brokers.iter().map(|(id, broker)| (*id, broker.logs.logs[&tp(0)].clone())).collect();
        let from = logs.iter().map(|(_, log)| log.log_start).max().unwrap_or(0);
        let seen = |log: &MemoryLog| {
            (
                log.batches.iter().filter(|batch| batch.last() >= from).cloned().collect::<Vec<_>>(),
                log.log_end,
            )
        };
        let equal = logs.windows(2).all(|pair| seen(&pair[0].1) == seen(&pair[1].1));
        lines.push(format!("the logs {}", if equal { "are equal" } else { "differ" }));
        for (id, log) in &logs {
            for batch in self.confirmed.values().filter(|batch| batch.last() >= log.log_start) {
                if !log.batches.contains(batch) {
                    lines.push(format!("{batch} was confirmed, but {id} does not have it"));
                }
            }
        }
        for (id, broker) in &self.brokers {
            if broker.failed {
                lines.push(format!("{id} has given up"));
            }
        }
        lines
    }

    /// Whether a judge would find nothing wrong.
    pub(super) fn is_sound(&self) -> bool {
        self.judge() == ["the logs are equal"]
    }

    pub(super) fn ids(&self) -> Vec<i32> {
        self.brokers.keys().copied().collect()
    }

    pub(super) fn is_up(&self, id: i32) -> bool {
        self.brokers.get(&id).is_some_and(|broker| broker.up)
    }

    pub(super) fn isr(&self) -> &[i32] {
        &self.state.isr
    }

    /// The newest leader that believes it leads.
    pub(super) fn leading(&self) -> Option<i32> {
        let epoch = |role: &Role| match role {
            Role::Leader(leader) => Some(leader.leader_epoch()),
            _ => None,
        };
        let leaders = self.brokers.iter().filter_map(|(id, broker)| Some((epoch(&broker.role)?, *id)));
        leaders.max().map(|(_, id)| id)
    }

    /// Tells broker `id` the state of the partition, if it has heard only of an older one.
    pub(super) fn inform_if_overtaken(&mut self, id: i32) {
        let known = match &self.brokers[&id].role {
            Role::None => return,
            Role::Leader(leader) => leader.leader_epoch().0,
            Role::Follower { leader_epoch, .. } => *leader_epoch,
        };
        if known < self.state.leader_epoch {
            self.inform(id);
        }
    }

    pub(super) fn log(&self, id: i32) -> &MemoryLog {
        &self.brokers[&id].logs.logs[&tp(0)]
    }

    /// The log of a broker, to be made as a story needs it.
    pub(super) fn log_mut(&mut self, id: i32) -> &mut MemoryLog {
        self.broker(id).log()
    }

    pub(super) fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    fn become_leader(&mut self, id: i32) {
        let now = self.now();
        let start = leader::Start {
            broker: BrokerId(id),
            leadership: self.leadership(),
            high_watermark: Offset(self.log(id).high_watermark),
            log_end: Offset(self.log(id).log_end),
            settings: leader::Settings { replica_lag_time_max: Millis(LAG_MS), min_insync_replicas: 1 },
            live: self.live(),
        };
        let epoch = self.state.leader_epoch;
        let settings = self.settings;
        let broker = self.broker(id);
        let previous = match std::mem::replace(&mut broker.role, Role::None) {
            Role::Leader(leader) => Some(leader),
            _ => None,
        };
        broker.fetcher = Fetcher::new(settings);
        (broker.request, broker.failed) = (None, false);
        broker.log().begin_epoch(epoch);
        let mut out = Vec::new();
        let leader = leader::Leader::begin(start, previous.as_deref(), now, &mut out);
        broker.role = Role::Leader(Box::new(leader));
        self.obey_leader(id, out);
    }

    fn become_follower(&mut self, id: i32, leader: i32) {
        let leader_epoch = self.state.leader_epoch;
        let settings = self.settings;
        let broker = self.broker(id);
        let same_leader = matches!(broker.role, Role::Follower { leader: old, .. } if old == leader);
        if !same_leader {
            // The fetcher of another leader, or none.
            broker.fetcher = Fetcher::new(settings);
            broker.request = None;
        }
        broker.role = Role::Follower { leader, leader_epoch };
        broker.failed = false;
        let log = broker.log();
        let by_fetch = settings.protocol.truncation_on_fetch_supported() && !log.epochs.is_empty();
        let offset = if by_fetch { log.log_end } else { log.high_watermark };
        let addition = Addition {
            partition: tp(0),
            topic_id: None,
            leader_epoch: LeaderEpoch(leader_epoch),
            offset: Offset(offset),
        };
        self.follow(id, Event::Add(vec![addition]), &[]);
    }

    fn leadership(&self) -> leader::Leadership {
        leader::Leadership {
            leader_epoch: LeaderEpoch(self.state.leader_epoch),
            partition_epoch: self.state.partition_epoch,
            controller_epoch: ControllerEpoch(1),
            replicas: self.ids().into_iter().map(BrokerId).collect(),
            adding: Vec::new(),
            removing: Vec::new(),
            isr: self.state.isr.iter().copied().map(BrokerId).collect(),
        }
    }

    fn live(&self) -> BTreeSet<BrokerId> {
        self.ids().into_iter().filter(|id| self.is_up(*id)).map(BrokerId).collect()
    }

    fn live_brokers_changed(&mut self) {
        let live = self.live();
        for id in self.ids() {
            self.lead(id, leader::Event::LiveBrokers(live.clone()));
        }
    }

    fn broker(&mut self, id: i32) -> &mut Broker {
        self.brokers.get_mut(&id).unwrap()
    }

    fn now(&self) -> Now {
        Now { mono_ms: self.mono_ms, wall_ms: 0 }
    }

    fn tell(&mut self, line: String) {
        self.lines.push(line);
    }
}

impl Broker {
    fn log(&mut self) -> &mut MemoryLog {
        self.logs.logs.get_mut(&tp(0)).unwrap()
    }
}

fn names(ids: &[i32]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn list(batches: &[MemoryBatch]) -> String {
    batches.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}
