//! One case: which broker is controller, how the others go, in which order the replicas stand; and the way to state
//! S, in which both replicas of every topic are gone one after the other.

use std::fmt;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use interop::admin;
use interop::batch::{Draft, now_ms};
use interop::broker::{Kind, Options};
use interop::calls;
use interop::checker::compare_replicas;
use interop::cluster::{Cluster, LIMIT, Plan, topic_view};
use interop::raw::Connection;
use interop::wait;
use interop::zookeeper::Znode;
use kafka_protocol::messages::BrokerId;

use super::table::{Row, Table, name};

/// The brokers: A and B hold the replicas, C holds none.
pub(crate) const A: i32 = 1;
pub(crate) const B: i32 = 2;
pub(crate) const C: i32 = 3;

/// Records that both replicas have, and one more that only B has.
const COMMON: i64 = 100;
/// How the names begin of topics that are created only to see that they are.
const BARRIER: &str = "barrier-";
const NOT_CONTROLLER: i16 = 41;
/// What a client tries again after.
const RETRIABLE: [i16; 3] = [3, 5, 6];

/// How a broker goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// SIGTERM: a controlled shutdown.
    Stop,
    /// SIGKILL: its session has to end.
    Kill,
}

/// One case.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    pub(crate) kind: Kind,
    /// C in case 1, B in case 2.
    pub(crate) controller: i32,
    pub(crate) end: End,
    pub(crate) replicas: [i32; 2],
    /// `auto.leader.rebalance.enable`.
    pub(crate) rebalance: bool,
    pub(crate) planted_faults: Option<&'static str>,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, controller, end, replicas, rebalance, .. } = self;
        let [first, second] = replicas.map(name);
        let balance = if *rebalance { ", leaders balanced" } else { "" };
        write!(f, "{kind}, controller {}, {end:?}, replicas {first} {second}{balance}", name(*controller))
    }
}

/// A cluster in a case, and the table that is made of it.
pub(crate) struct Scene {
    pub(crate) case: Case,
    pub(crate) cluster: Cluster,
    pub(crate) table: Table,
    topics: &'static [&'static str],
    /// How many topics have been created only to see that they are.
    barriers: usize,
    /// `/controller_epoch` when the topics were created.
    term: i32,
}

impl Scene {
    /// Starts the brokers, the wanted controller first, and creates the topics.
    pub(crate) fn begin(case: Case, topics: &'static [&'static str]) -> Result<Self> {
        let mut cluster = Cluster::prepare(&plan(case))?;
        cluster.start_brokers(&[case.controller])?;
        let others: Vec<i32> = [A, B, C].into_iter().filter(|id| *id != case.controller).collect();
        cluster.start_brokers(&others)?;
        ensure!(cluster.until_controller()? == case.controller, "another broker is controller");
        let term = cluster.tree()?.controller_epoch()?;
        let scene = Self { case, cluster, table: Table::default(), topics, barriers: 0, term };
        for topic in topics {
            let code = admin::create_assigned(&scene.address(case.controller)?, topic, &[&case.replicas])?;
            ensure!(code == 0, "CreateTopics of {topic}: error {code}");
            scene.cluster.until_agreed(topic, 1)?;
            scene.cluster.until_in_sync(topic)?;
            scene.produce(case.replicas[0], topic, COMMON)?;
        }
        Ok(scene)
    }

    /// A goes, B gets one more record of each topic, and B goes: state S.
    pub(crate) fn reach_s(&mut self) -> Result<()> {
        self.go(A)?;
        for topic in self.topics {
            self.cluster
                .until_state(topic, 0, "B leads alone", |state| state.leader == B && state.isr == [B])?;
            self.until_told(B, topic)?;
            self.produce(B, topic, 1)?;
        }
        self.note("A has gone", self.topics)?;
        let before = self.subtree()?;
        self.go(B)?;
        let mut tree = self.cluster.tree()?;
        wait::until("C in office", LIMIT, || Ok((tree.controller()? == Some(C)).then_some(())))?;
        self.note_after_all("S", C)?;
        self.look_at_s()?;
        self.count_offline()?;
        ensure!(self.subtree()? == before, "more than the states has changed: {:?}", self.subtree()?);
        Ok(())
    }

    /// What C tells clients of state S.
    fn look_at_s(&self) -> Result<()> {
        let mut connection = Connection::open(&self.address(C)?)?;
        for topic in self.topics {
            let told = calls::describe_topic(&mut connection, topic)?;
            let told = told.partitions.first().context("no partition")?;
            let state = self.cluster.tree()?.state(topic, 0)?.context("no state")?;
            let ids = |ids: &[BrokerId]| ids.iter().map(|id| id.0).collect::<Vec<_>>();
            let (error, leader, epoch) = (told.error_code, told.leader_id.0, told.leader_epoch);
            ensure!((error, leader, epoch) == (5, -1, state.leader_epoch), "C tells {told:?}");
            let mut offline = ids(&told.offline_replicas);
            offline.sort_unstable();
            ensure!(ids(&told.replica_nodes) == self.case.replicas, "C tells {told:?}");
            ensure!((ids(&told.isr_nodes), offline) == (vec![B], vec![A, B]), "C tells {told:?}");
            let batch = Draft::of_values(now_ms(), &[b"nobody takes it"]).build();
            let answer = calls::produce(&mut connection, topic, 0, batch)?;
            ensure!(RETRIABLE.contains(&answer.error_code), "C answers a produce with {answer:?}");
        }
        Ok(())
    }

    /// How many partitions have no leader, as C counts them; a real Kafka tells that elsewhere.
    fn count_offline(&mut self) -> Result<()> {
        if self.case.kind == Kind::Kafka {
            return Ok(());
        }
        let count =
            self.cluster.broker(C)?.metric("kafka_controller_kafkacontroller_offlinepartitionscount")?;
        let topics = f64::from(u32::try_from(self.topics.len())?);
        ensure!((count - topics).abs() < 0.5, "{count} partitions without a leader instead of {topics}");
        Ok(())
    }

    /// Everything below the topics but the states.
    fn subtree(&self) -> Result<Vec<Znode>> {
        let mut nodes = self.cluster.tree()?.client().tree("/brokers/topics")?;
        nodes.retain(|node| !node.path.ends_with("/state") && !node.path.contains(BARRIER));
        Ok(nodes)
    }

    /// Ends a broker as the case says, and waits until its registration is gone.
    pub(crate) fn go(&mut self, id: i32) -> Result<()> {
        match self.case.end {
            End::Stop => self.cluster.broker(id)?.stop()?,
            End::Kill => self.cluster.broker(id)?.kill()?,
        }
        self.until_unregistered(id)
    }

    /// Stops a broker in good order, and waits until its registration is gone.
    pub(crate) fn stop(&mut self, id: i32) -> Result<()> {
        self.cluster.broker(id)?.stop()?;
        self.until_unregistered(id)
    }

    fn until_unregistered(&self, id: i32) -> Result<()> {
        let mut tree = self.cluster.tree()?;
        let what = format!("the end of the registration of {}", name(id));
        wait::until(&what, LIMIT, || Ok((!tree.brokers()?.contains(&id)).then_some(())))
    }

    /// Notes the states of all topics under a label, when the controller has done all that it has begun: it does one
    /// thing at a time, and a topic on broker `id` is created after that.
    pub(crate) fn note_after_all(&mut self, label: &str, id: i32) -> Result<()> {
        self.barriers += 1;
        let (topic, controller) = (format!("{BARRIER}{}", self.barriers), self.cluster.until_controller()?);
        let address = self.address(controller)?;
        wait::until("a controller that creates topics", LIMIT, || {
            let code = admin::create_assigned(&address, &topic, &[&[id]])?;
            ensure!([0, NOT_CONTROLLER].contains(&code), "CreateTopics of {topic}: error {code}");
            Ok((code == 0).then_some(()))
        })?;
        self.cluster.until_agreed(&topic, 1)?;
        for topic in self.topics {
            self.until_told(id, topic)?;
        }
        self.note(label, self.topics)
    }

    /// Notes the states of topics under a label.
    pub(crate) fn note(&mut self, label: &str, topics: &[&str]) -> Result<()> {
        let mut tree = self.cluster.tree()?;
        for topic in topics {
            let state = tree.state(topic, 0)?.with_context(|| format!("{topic} has no state"))?;
            self.table.push(Row::new(label, topic, &state, self.term));
        }
        Ok(())
    }

    /// Waits until a broker tells of a topic what ZooKeeper holds, and no more changes are under way.
    fn until_told(&self, id: i32, topic: &str) -> Result<()> {
        let (address, mut tree) = (self.address(id)?, self.cluster.tree()?);
        let what = format!("{} that tells what ZooKeeper holds of {topic}", name(id));
        let mut last = None;
        let told = wait::until(&what, LIMIT, || {
            let state = tree.state(topic, 0)?.context("no state")?;
            let view = topic_view(&address, topic)?.remove(&0);
            let equal = view.as_ref().is_some_and(|view| {
                // A dead leader is told as none.
                let known = view.leader == state.leader || view.leader == -1;
                known && view.leader_epoch == state.leader_epoch && same(&view.isr, &state.isr)
            });
            last = Some((state, view));
            Ok(equal.then_some(()))
        });
        told.with_context(|| format!("ZooKeeper and the broker tell {last:?}"))
    }

    /// `host:port` of a broker.
    pub(crate) fn address(&self, id: i32) -> Result<String> {
        let place = usize::try_from(id - 1)?;
        self.cluster.addresses().get(place).cloned().context("no such broker")
    }

    /// Appends so many records, each a batch, with acks -1.
    fn produce(&self, leader: i32, topic: &str, count: i64) -> Result<()> {
        let mut connection = Connection::open(&self.address(leader)?)?;
        for number in 0..count {
            let value = format!("{topic} {number} of {count}");
            let batch = Draft::of_values(now_ms(), &[value.as_bytes()]).build();
            let answer = wait::until("a leader that takes records", LIMIT, || {
                let answer = calls::produce(&mut connection, topic, 0, Bytes::clone(&batch))?;
                Ok((!RETRIABLE.contains(&answer.error_code)).then_some(answer))
            })?;
            ensure!(answer.error_code == 0, "{topic}: {answer:?}");
        }
        Ok(())
    }

    /// Whether both replicas hold the same batches up to `end`, and a reader at the leader sees them.
    pub(crate) fn look_at_records(&self, topic: &str, leader: i32, end: i64) -> Result<()> {
        let address = self.address(leader)?;
        wait::until(&format!("{end} records of {topic} for readers"), LIMIT, || {
            Ok((calls::end_offset(&address, topic, 0)? == end).then_some(()))
        })?;
        let read = calls::fetch_all(&address, topic, 0, 0)?;
        ensure!(i64::try_from(read.len())? == end, "{} batches of {topic} are read", read.len());
        let replicas = self.cluster.replicas(topic, 0)?;
        for (replica, dump) in &replicas {
            ensure!(dump.end() == end, "{topic} of {replica} ends at {}", dump.end());
        }
        let different = compare_replicas(&replicas, end);
        ensure!(different.is_empty(), "{topic}: {different:?}");
        Ok(())
    }

    /// The log end of what A and B held together, and of what B has alone.
    pub(crate) fn ends(&self) -> (i64, i64) {
        (COMMON, COMMON + 1)
    }

    /// What was seen, in the case of an error too.
    pub(crate) fn tell(&self) -> String {
        format!("{}\n{}", self.case, self.table)
    }
}

fn same(one: &[i32], other: &[i32]) -> bool {
    let sorted = |ids: &[i32]| {
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        ids
    };
    sorted(one) == sorted(other)
}

fn plan(case: Case) -> Plan {
    let mut plan = Plan::of(case.kind, 3).with(&[
        ("unclean.leader.election.enable", "false"),
        ("auto.leader.rebalance.enable", if case.rebalance { "true" } else { "false" }),
        ("leader.imbalance.check.interval.seconds", "2"),
        ("controlled.shutdown.retry.backoff.ms", "200"),
        ("min.insync.replicas", "1"),
        // Nobody leaves the in-sync replicas because a machine is slow.
        ("replica.lag.time.max.ms", "60000"),
    ]);
    plan.session_timeout_ms =
        if case.kind == Kind::Kafka { KAFKA_SESSION_TIMEOUT_MS } else { SESSION_TIMEOUT_MS };
    plan.options = Options { planted_faults: case.planted_faults, ..plan.options };
    plan
}

/// Long enough for a busy machine, short enough for a test that kills.
const SESSION_TIMEOUT_MS: u32 = 4_000;
/// A virtual machine that starts on a busy one is slower.
const KAFKA_SESSION_TIMEOUT_MS: u32 = 10_000;
