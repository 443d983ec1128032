//! The world: three brokers, the tree, the network between them, clients, and time. One event happens after the other, in
//! one thread; the same plan gives the same events.

mod faults;
mod life;
pub(crate) mod node;
mod storm;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use metadata::store::{Request, Response, SessionId, StoreError};
use tracing::Level;
use wire::types::{BrokerId, Now};

use crate::chance::Chance;
use crate::check::Findings;
use crate::check::log::LogJudge;
use crate::check::tree::{TreeJudge, Written};
use crate::clock;
use crate::incarnation::Incarnation;
use crate::journal;
use crate::network::Network;
use crate::plan::Plan;
use crate::schedule::Schedule;
use crate::trace::Trace;
use crate::tree::Tree;

pub(crate) use faults::Faults;
pub use faults::{Fault, KINDS};
pub(crate) use life::Death;
pub(crate) use node::{Life, Node};

/// The brokers' ids.
pub(crate) const BROKERS: [BrokerId; 3] = [BrokerId(1), BrokerId(2), BrokerId(3)];

/// The streams of random numbers.
pub(crate) struct Chances {
    pub(crate) network: Chance,
    pub(crate) tree: Chance,
    pub(crate) jobs: Chance,
    pub(crate) disks: Chance,
    pub(crate) faults: Chance,
    pub(crate) clients: Chance,
    pub(crate) brokers: Chance,
}

/// See the module's text. Nothing here is locked while a broker is called.
pub(crate) struct World {
    me: Weak<World>,
    pub(crate) plan: Plan,
    pub(crate) schedule: Schedule,
    pub(crate) chances: Chances,
    pub(crate) trace: Trace,
    pub(crate) tree: Tree,
    pub(crate) network: Network,
    pub(crate) faults: Faults,
    pub(crate) findings: Findings,
    tree_judge: TreeJudge,
    pub(crate) log_judge: LogJudge,
    nodes: Vec<Node>,
    ends_us: Mutex<u64>,
}

impl World {
    /// A world in which nothing has happened yet.
    pub(crate) fn new(plan: Plan) -> Arc<Self> {
        // Names of deleted directories and the jitter of segments are drawn from the thread's own stream.
        fastrand::seed(plan.seed);
        let chance = |purpose| Chance::of(plan.seed, purpose);
        Arc::new_cyclic(|me: &Weak<World>| Self {
            me: me.clone(),
            plan,
            schedule: Schedule::default(),
            chances: Chances {
                network: chance("network"),
                tree: chance("tree"),
                jobs: chance("jobs"),
                disks: chance("disks"),
                faults: chance("faults"),
                clients: chance("clients"),
                brokers: chance("brokers"),
            },
            trace: Trace::new(plan.is_loud),
            tree: Tree::new(me.clone()),
            network: Network::default(),
            faults: Faults::default(),
            findings: Findings::default(),
            tree_judge: TreeJudge::default(),
            log_judge: LogJudge::default(),
            nodes: BROKERS.map(Node::new).into(),
            ends_us: Mutex::new(u64::MAX),
        })
    }

    /// The present instant.
    pub(crate) fn now(&self) -> Now {
        clock::instant(self.schedule.now_us())
    }

    /// Itself, for those who keep it beyond a call.
    pub(crate) fn weak(&self) -> Weak<World> {
        self.me.clone()
    }

    /// A broker.
    pub(crate) fn node(&self, id: BrokerId) -> &Node {
        let at = BROKERS.iter().position(|it| *it == id).unwrap_or(0);
        &self.nodes[at]
    }

    /// All brokers.
    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// A line of the trace.
    pub(crate) fn note(&self, line: fmt::Arguments<'_>) {
        self.trace.add(self.schedule.now_us(), false, line);
    }

    /// A line of the trace that explains findings.
    pub(crate) fn matters(&self, line: fmt::Arguments<'_>) {
        self.trace.add(self.schedule.now_us(), true, line);
    }

    /// The tree has answered a request of `owner` in the name of the session `writer`.
    pub(crate) fn tree_answered(
        &self,
        owner: &Incarnation,
        writer: Option<SessionId>,
        request: &Request,
        answer: &Result<Response, StoreError>,
    ) {
        self.note(format_args!("tree: {} {request:?} -> {answer:?}", owner.broker));
        if let Ok(response) = answer {
            let written = Written { writer, broker: owner.broker, request, response };
            self.tree_judge.written(self, &written);
        }
    }

    /// A broker has logged something.
    pub(crate) fn logged(&self, level: Level, is_state_change: bool, message: &str, fields: &str) {
        let line = format_args!("{} logs {level}: {message}{fields}", journal::actor());
        self.trace.add(self.schedule.now_us(), true, line);
        self.log_judge.logged(self, level, is_state_change, message, fields);
    }

    /// A broker does something, and is looked at when it has.
    pub(crate) fn act<R>(&self, owner: &Incarnation, act: impl FnOnce() -> R) -> R {
        let result = journal::acting(owner.broker, act);
        let node = self.node(owner.broker);
        if let Some(broker) = node.broker().filter(|_| owner.is_alive()) {
            broker.check();
        }
        result
    }

    /// Lets things happen while `goes_on` says so, and something is left to happen before the end of the world.
    pub(crate) fn run_while(self: &Arc<Self>, goes_on: impl Fn() -> bool) {
        while goes_on() && !self.is_over() {
            let Some(due) = self.schedule.next() else { return };
            (due.action)(self);
        }
    }

    /// The end: what still waits is forgotten.
    pub(crate) fn end(self: &Arc<Self>) {
        for id in BROKERS {
            self.bury_present(id);
            self.network.broker_died(self, id, Death::Kill);
        }
        // Starts that wait find that their life is over.
        self.schedule.clear_but("goes on", self);
    }

    /// What is in memory after the end although nobody owns it: of brokers, and the world itself, if others hold it.
    pub(crate) fn in_memory(self: &Arc<Self>) -> Vec<String> {
        let lives = self.nodes.iter().flat_map(|node| {
            node.lives_in_memory().into_iter().map(|life| format!("of life {life} of broker {}", node.id))
        });
        let world = (Arc::strong_count(self) > 1).then(|| "the world".to_owned());
        lives.chain(world).collect()
    }

    /// The world ends `ms` from now, whatever happens.
    pub(crate) fn ends_in(&self, ms: u64) {
        let ends_us = self.schedule.now_us() + ms * 1000;
        *self.ends_us.lock().unwrap_or_else(PoisonError::into_inner) = ends_us;
    }

    /// Whether the world has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.schedule.now_us() >= *self.ends_us.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
