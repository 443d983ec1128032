//! Faults that happen to a cluster for a time, chosen from a seed, up to two at once; each kind comes once before any
//! comes again.
//!
//! A broker has one fault at a time, and of the ZooKeeper servers one is down at most. A broker that ends without
//! having been asked to fails the run.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use fastrand::Rng;
use interop::broker_proxy::Direction;
use interop::cluster::{Cluster, LIMIT, Parting};
use interop::tcp_proxy;
use interop::wait;

use crate::fault::Fault;
use crate::tally::Tally;
use crate::{PARTITIONS, TOPIC};

/// Faults at once.
const AT_ONCE: usize = 2;
/// Between two looks at the cluster.
const TICK: Duration = Duration::from_millis(10);
/// The longest pause before the next fault, in milliseconds.
const PAUSE_MS: u64 = 1200;
/// How much longer a run goes on while a kind of fault has not happened.
const OVERTIME: Duration = Duration::from_secs(60);
/// How long a broker may take to stop after SIGTERM: three tries of a controlled shutdown, and more.
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// What a fault has done and is to be undone.
#[derive(Debug)]
enum Damage {
    Nothing,
    Down(i32),
    Stopping(i32),
    Frozen(i32),
    Parted(Parting),
    Held(i32),
    OffZooKeeper(i32),
    CutOff(i32),
    ServerDown(usize),
}

/// A fault that is happening.
#[derive(Debug)]
struct Flame {
    fault: Fault,
    victims: Vec<i32>,
    damage: Damage,
    since: Instant,
    until: Instant,
}

/// See the module.
pub(crate) struct Blaze<'a> {
    cluster: &'a mut Cluster,
    random: Rng,
    deck: VecDeque<Fault>,
    flames: Vec<Flame>,
    next: Instant,
    tally: Tally,
}

impl<'a> Blaze<'a> {
    /// Lets faults happen for `time`, and a little longer if a kind is missing then; at the end all is healed and all
    /// brokers are running.
    ///
    /// # Errors
    /// When a broker ends by itself, or does not stop when it is asked to.
    pub(crate) fn burn(cluster: &'a mut Cluster, seed: u64, time: Duration) -> Result<Tally> {
        let (random, start) = (Rng::with_seed(seed), Instant::now());
        let (deck, flames, tally) = (VecDeque::new(), Vec::new(), Tally::default());
        let mut blaze = Self { cluster, random, deck, flames, next: start, tally };
        loop {
            let over = start.elapsed();
            if over > time && (blaze.tally.missing().is_empty() || over > time + OVERTIME) {
                break;
            }
            blaze.tend()?;
            if Instant::now() >= blaze.next && blaze.flames.len() < AT_ONCE {
                blaze.kindle(over > time)?;
            }
            wait::pause(TICK);
        }
        while !blaze.flames.is_empty() {
            blaze.tend()?;
            wait::pause(TICK);
        }
        Ok(blaze.tally)
    }

    /// Undoes what has lasted long enough, and looks after the brokers.
    fn tend(&mut self) -> Result<()> {
        for flame in std::mem::take(&mut self.flames) {
            if Instant::now() < flame.until || !self.is_ready(&flame)? {
                self.flames.push(flame);
                continue;
            }
            let has_happened = self.has_happened(&flame);
            self.heal(flame.damage).with_context(|| format!("after: {}", flame.fault))?;
            if has_happened {
                self.tally.count(flame.fault);
            }
        }
        for id in self.whole() {
            let process = self.cluster.broker(id)?.process()?;
            ensure!(process.is_running()?, "broker {id} ended by itself:\n{}", process.log_tail(40));
        }
        Ok(())
    }

    /// A broker that is stopping must have stopped before it can be started again.
    fn is_ready(&mut self, flame: &Flame) -> Result<bool> {
        let Damage::Stopping(id) = flame.damage else { return Ok(true) };
        let broker = self.cluster.broker(id)?;
        if broker.has_stopped()? {
            return Ok(true);
        }
        let tail = broker.process()?.log_tail(40);
        ensure!(flame.since.elapsed() < STOP_LIMIT, "broker {id} does not stop:\n{tail}");
        Ok(false)
    }

    /// Whether the fault has had an effect, as far as that can be seen.
    fn has_happened(&self, flame: &Flame) -> bool {
        match &flame.damage {
            Damage::Parted(parting) => parting.count() > 0,
            Damage::Frozen(id) | Damage::OffZooKeeper(id) | Damage::CutOff(id)
                if flame.fault.outlasts_session() =>
            {
                let registered = self.cluster.tree().and_then(|mut tree| tree.brokers());
                registered.is_ok_and(|registered| !registered.contains(id))
            }
            _ => true,
        }
    }

    fn heal(&mut self, damage: Damage) -> Result<()> {
        match damage {
            Damage::Nothing => {}
            Damage::Down(id) | Damage::Stopping(id) => {
                let broker = self.cluster.broker(id)?;
                let process = broker.spawn()?;
                broker.adopt(process);
            }
            Damage::Frozen(id) => self.cluster.broker(id)?.thaw()?,
            Damage::Parted(parting) => parting.heal(),
            Damage::Held(id) => self.cluster.proxy(id)?.heal(),
            Damage::OffZooKeeper(id) => self.heal_way_to_zookeeper(id)?,
            Damage::CutOff(id) => {
                self.heal_way_to_zookeeper(id)?;
                self.cluster.proxy(id)?.heal();
            }
            Damage::ServerDown(place) => self.cluster.ensemble().server(place)?.start_again()?,
        }
        Ok(())
    }

    fn heal_way_to_zookeeper(&self, id: i32) -> Result<()> {
        self.cluster.zookeeper_proxies(id)?.iter().for_each(tcp_proxy::TcpProxy::heal);
        Ok(())
    }

    /// The brokers that run and to which nothing is happening.
    fn whole(&self) -> BTreeSet<i32> {
        let burning = |id: &i32| self.flames.iter().any(|flame| flame.victims.contains(id));
        self.cluster.running().into_iter().filter(|id| !burning(id)).collect()
    }

    /// Begins the next fault, or puts it off if it cannot be now.
    fn kindle(&mut self, only_missing: bool) -> Result<()> {
        if only_missing {
            let missing = self.tally.missing();
            self.deck.retain(|fault| missing.contains(fault));
            if self.deck.is_empty() {
                self.deck.extend(missing);
            }
        }
        if self.deck.is_empty() {
            let mut all = Fault::ALL;
            self.random.shuffle(&mut all);
            self.deck.extend(all);
        }
        let Some(fault) = self.deck.pop_front() else { return Ok(()) };
        self.next = Instant::now() + Duration::from_millis(self.random.u64(0..PAUSE_MS));
        let begun = self.begin(fault).with_context(|| format!("beginning: {fault}"))?;
        match begun {
            None => self.deck.push_back(fault),
            Some((victims, damage)) => {
                let since = Instant::now();
                let until = since + fault.duration(&mut self.random);
                self.flames.push(Flame { fault, victims, damage, since, until });
            }
        }
        Ok(())
    }

    /// Does it, and tells to whom; none if there is nobody to whom it could be done.
    fn begin(&mut self, fault: Fault) -> Result<Option<(Vec<i32>, Damage)>> {
        if fault.is_of_zookeeper() {
            return Ok(self.kill_server(fault)?.map(|place| (Vec::new(), Damage::ServerDown(place))));
        }
        let Some(victim) = self.victim(fault) else { return Ok(None) };
        let damage = match fault {
            Fault::KillLeader | Fault::KillController => {
                self.cluster.broker(victim)?.kill()?;
                Damage::Down(victim)
            }
            Fault::StopLeader | Fault::StopController => {
                let process = self.cluster.broker(victim)?.process()?;
                if !process.handles_sigterm()? {
                    return Ok(None);
                }
                process.ask_to_end()?;
                Damage::Stopping(victim)
            }
            Fault::FreezeBriefly | Fault::FreezeLeader | Fault::FreezeController => {
                self.cluster.broker(victim)?.freeze()?;
                Damage::Frozen(victim)
            }
            Fault::Part | Fault::Deafen => return self.part(fault, victim),
            Fault::Depose => {
                // The server that is asked may have been cut off from its leader just now.
                let deposed = self.cluster.tree().and_then(|mut tree| tree.depose_controller());
                return Ok(deposed.is_ok_and(|deposed| deposed).then(|| (Vec::new(), Damage::Nothing)));
            }
            _ => self.cut(fault, victim)?,
        };
        Ok(Some((vec![victim], damage)))
    }

    /// Faults of the ways to one broker.
    fn cut(&self, fault: Fault, victim: i32) -> Result<Damage> {
        let (proxy, zookeeper) = (self.cluster.proxy(victim)?, self.cluster.zookeeper_proxies(victim)?);
        let hold = |direction| zookeeper.iter().for_each(|proxy| proxy.hold(direction));
        match fault {
            Fault::HoldRequests => proxy.cut(Direction::Request),
            Fault::HoldAnswers => proxy.cut(Direction::Response),
            Fault::Sever => {
                proxy.sever();
                return Ok(Damage::Nothing);
            }
            Fault::LoseZooKeeper => zookeeper.iter().for_each(tcp_proxy::TcpProxy::cut),
            Fault::MuteToZooKeeper => hold(tcp_proxy::Direction::Requests),
            Fault::DeafToZooKeeper => hold(tcp_proxy::Direction::Answers),
            Fault::CutOff => {
                zookeeper.iter().for_each(tcp_proxy::TcpProxy::cut);
                proxy.cut(Direction::Request);
                proxy.cut(Direction::Response);
                return Ok(Damage::CutOff(victim));
            }
            other => bail!("{other} is no matter of ways"),
        }
        Ok(match fault {
            Fault::HoldRequests | Fault::HoldAnswers => Damage::Held(victim),
            _ => Damage::OffZooKeeper(victim),
        })
    }

    /// Parts a leader from another broker, which may have any fault but be down.
    fn part(&mut self, fault: Fault, leader: i32) -> Result<Option<(Vec<i32>, Damage)>> {
        let others: Vec<_> = self.whole().into_iter().filter(|id| *id != leader).collect();
        let Some(other) = self.random.choice(others) else { return Ok(None) };
        let parting = match fault {
            Fault::Part => self.cluster.part(leader, other)?,
            _ if self.random.bool() => self.cluster.deafen(leader, other)?,
            _ => self.cluster.deafen(other, leader)?,
        };
        Ok(Some((vec![leader, other], Damage::Parted(parting))))
    }

    /// Kills the leader of the ZooKeeper servers or another one; none while one is down, or they have no leader.
    fn kill_server(&mut self, fault: Fault) -> Result<Option<usize>> {
        if self.flames.iter().any(|flame| flame.fault.is_of_zookeeper()) {
            return Ok(None);
        }
        let ensemble = self.cluster.ensemble();
        let Some(leader) = ensemble.leader() else { return Ok(None) };
        if !ensemble.are_all_serving() {
            return Ok(None);
        }
        let others: Vec<_> = (0..ensemble.addresses().len()).filter(|place| *place != leader).collect();
        let place = match fault {
            Fault::KillZooKeeperLeader => Some(leader),
            _ => self.random.choice(others),
        };
        let Some(place) = place else { return Ok(None) };
        self.cluster.ensemble().server(place)?.kill()?;
        Ok(Some(place))
    }

    /// Whom a fault befalls: somebody to whom nothing happens yet. What ZooKeeper does not tell now is asked later.
    fn victim(&mut self, fault: Fault) -> Option<i32> {
        let whole = self.whole();
        let mut tree = self.cluster.tree().ok()?;
        let chosen = match fault {
            Fault::KillController | Fault::StopController | Fault::FreezeController | Fault::Depose => {
                tree.controller().ok()?
            }
            Fault::KillLeader | Fault::StopLeader | Fault::FreezeLeader | Fault::Part | Fault::Deafen => {
                let partition = self.random.i32(0..PARTITIONS);
                tree.state(TOPIC, partition).ok()?.map(|state| state.leader)
            }
            _ => self.random.choice(whole.iter().copied()),
        };
        chosen.filter(|id| whole.contains(id))
    }
}

/// Waits until all is well again: all brokers know of each other, and all replicas are in sync.
///
/// # Errors
/// When that does not happen in time.
pub(crate) fn until_well(cluster: &mut Cluster) -> Result<()> {
    wait::until("all ZooKeeper servers", LIMIT, || Ok(cluster.ensemble().are_all_serving().then_some(())))?;
    cluster.until_all_known()?;
    cluster.until_in_sync(TOPIC)?;
    cluster.until_agreed(TOPIC, PARTITIONS)
}
