//! Several brokers in one process that copy from each other: what a fetcher sends goes straight to the other broker, and
//! its answer straight back, so everything has happened when a call returns. Time passes only when a test lets it. Who
//! leads is the test's to say; changes of the ISR are answered by the test as well.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use bytes::Bytes;
use node::broker::Broker;
use node::call::{Outcome, Reply};
use node::peers::{PeerDone, PeerError, PeerRequest};
use tempfile::TempDir;

use crate::control_tools::{Order, order};
use crate::harness::{Node, connection, joined};

/// What becomes of fetches to a broker, and of their answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Open,
    /// No request arrives, and no answer.
    Cut,
}

/// The ways between the brokers.
#[derive(Default)]
pub(crate) struct Links(Mutex<State>);

#[derive(Default)]
struct State {
    brokers: BTreeMap<i32, Weak<Broker>>,
    ways: BTreeMap<i32, Way>,
    open: Vec<Open>,
}

/// Who waits for an answer, and from whom.
struct Open {
    from: i32,
    to: i32,
    waiting: Arc<Waiting>,
}

type Waiting = Mutex<Option<PeerDone>>;

/// The way from one broker to all others.
pub(crate) struct Link {
    from: i32,
    links: Arc<Links>,
}

impl Link {
    /// Lets a request arrive.
    pub(crate) fn deliver(&self, request: PeerRequest, done: PeerDone) {
        self.links.deliver(self.from, request, done);
    }
}

impl Links {
    fn deliver(self: &Arc<Self>, from: i32, request: PeerRequest, done: PeerDone) {
        let to = request.channel.broker.0;
        let waiting: Arc<Waiting> = Arc::new(Mutex::new(Some(done)));
        let broker = {
            let mut state = self.0.lock().unwrap();
            let way = state.ways.get(&to).copied().unwrap_or(Way::Open);
            let broker = state.brokers.get(&to).and_then(Weak::upgrade).filter(|_| way != Way::Cut);
            if broker.is_some() {
                state.open.retain(|it| it.waiting.lock().unwrap().is_some());
                state.open.push(Open { from, to, waiting: waiting.clone() });
            }
            broker
        };
        let Some(broker) = broker else {
            return finish(&waiting, Err(PeerError::Connect("by the test".to_owned())));
        };
        let links = self.clone();
        let reply = Reply::new(move |outcome| links.answered(to, &waiting, outcome));
        broker.handle(&connection("PLAINTEXT", 0), request.frame, reply);
    }

    fn answered(&self, from: i32, waiting: &Waiting, outcome: Outcome) {
        let way = self.0.lock().unwrap().ways.get(&from).copied().unwrap_or(Way::Open);
        if way != Way::Open {
            return finish(waiting, Err(PeerError::Disconnected("the answer is lost".to_owned())));
        }
        match outcome {
            Outcome::Respond(parts) => finish(waiting, Ok(joined(&parts))),
            other => finish(waiting, Err(PeerError::Disconnected(format!("{other:?}")))),
        }
    }

    fn up(&self, id: i32, broker: &Arc<Broker>) {
        self.0.lock().unwrap().brokers.insert(id, Arc::downgrade(broker));
    }

    /// A broker is gone: who waits for its answer hears of it, and itself nothing more.
    fn down(&self, id: i32) {
        let gone: Vec<_> = {
            let mut state = self.0.lock().unwrap();
            state.brokers.remove(&id);
            let all = std::mem::take(&mut state.open).into_iter();
            let (gone, open) = all.partition(|it| it.from == id || it.to == id);
            state.open = open;
            gone
        };
        for Open { from, waiting, .. } in gone {
            if from == id {
                waiting.lock().unwrap().take();
            } else {
                finish(&waiting, Err(PeerError::Disconnected("the broker is gone".to_owned())));
            }
        }
    }

    fn set(&self, id: i32, way: Way) {
        self.0.lock().unwrap().ways.insert(id, way);
    }
}

fn finish(waiting: &Waiting, answer: Result<Bytes, PeerError>) {
    let done = waiting.lock().unwrap().take();
    if let Some(done) = done {
        done(answer);
    }
}

/// Brokers 0, 1 and so on.
pub(crate) struct Pair {
    links: Arc<Links>,
    nodes: BTreeMap<i32, Node>,
    down: BTreeMap<i32, TempDir>,
    settings: Vec<(String, String)>,
    /// The last order for each topic.
    orders: BTreeMap<String, Order>,
}

impl Pair {
    /// So many brokers on empty directories, with Kafka's defaults and these settings on top.
    pub(crate) fn start(brokers: i32, settings: &[(&str, &str)]) -> Self {
        let mut pair = Self {
            links: Arc::default(),
            nodes: BTreeMap::new(),
            down: BTreeMap::new(),
            settings: settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
            orders: BTreeMap::new(),
        };
        for id in 0..brokers {
            pair.up(id, TempDir::new().unwrap());
        }
        pair.tell();
        pair
    }

    /// A broker that is up.
    pub(crate) fn node(&self, id: i32) -> &Node {
        &self.nodes[&id]
    }

    /// `leader` leads partition 0 of `topic` in this epoch; `isr` are in sync, and all brokers have replicas.
    pub(crate) fn lead(&mut self, topic: &str, leader: i32, leader_epoch: i32, isr: &[i32]) {
        let mut ids: Vec<_> = self.nodes.keys().chain(self.down.keys()).copied().collect();
        ids.sort_unstable();
        let order = Order { isr: isr.to_vec(), ..order(topic, leader, leader_epoch, &ids) };
        self.lead_by(&order);
    }

    /// Obeys an order on all brokers that are up, the leader first.
    pub(crate) fn lead_by(&mut self, order: &Order) {
        self.orders.insert(order.topic.clone(), order.clone());
        self.tell();
        let followers = order.replicas.iter().filter(|id| **id != order.leader);
        for id in std::iter::once(&order.leader).chain(followers) {
            if let Some(node) = self.nodes.get(id) {
                node.obeys(order);
            }
        }
    }

    /// Lets time pass on all brokers, step by step.
    pub(crate) fn pass(&self, time: Duration) {
        const STEP: Duration = Duration::from_millis(100);
        let steps = time.as_millis().div_ceil(STEP.as_millis());
        for _ in 0..steps {
            for node in self.nodes.values() {
                node.advance(STEP);
            }
            for node in self.nodes.values() {
                node.broker.poll();
            }
        }
    }

    /// What becomes of fetches to a broker from now on.
    pub(crate) fn set_way(&self, to: i32, way: Way) {
        self.links.set(to, way);
    }

    /// As after `kill -9`; the high watermarks in the checkpoint are those of the last one that was written.
    pub(crate) fn kill(&mut self, id: i32) {
        self.links.down(id);
        self.down.insert(id, self.nodes.remove(&id).unwrap().killed());
        self.tell();
    }

    /// Changes the log directory of a broker that is down.
    pub(crate) fn edit(&self, id: i32, edit: impl FnOnce(&Path)) {
        edit(&self.down[&id].path().join("logs"));
    }

    /// Starts a broker again, and tells it its role in every topic, as the controller of a broker that comes up does.
    pub(crate) fn restart(&mut self, id: i32) {
        let dir = self.down.remove(&id).unwrap();
        self.up(id, dir);
        self.tell();
        for order in self.orders.values().filter(|order| order.leader != id) {
            self.nodes[&id].obeys(order);
        }
    }

    /// The files of a replica that its leader's must equal.
    pub(crate) fn log_bytes(&self, id: i32, topic: &str) -> Vec<u8> {
        let dir = self.log_dir(id, topic);
        let mut segments: Vec<_> = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().path()).collect();
        segments.retain(|path| path.extension().is_some_and(|it| it == "log"));
        segments.sort();
        segments.iter().flat_map(|path| std::fs::read(path).unwrap()).collect()
    }

    /// What `leader-epoch-checkpoint` says: epochs and their starts.
    pub(crate) fn epochs(&self, id: i32, topic: &str) -> Vec<(i32, i64)> {
        let text = std::fs::read_to_string(self.log_dir(id, topic).join("leader-epoch-checkpoint")).unwrap();
        let entry = |line: &str| {
            let (epoch, start) = line.split_once(' ').unwrap();
            (epoch.parse().unwrap(), start.parse().unwrap())
        };
        text.lines().skip(2).map(entry).collect()
    }

    /// Offsets of a replica: log start, high watermark, log end.
    pub(crate) fn offsets(&self, id: i32, topic: &str) -> (i64, i64, i64) {
        let told: serde_json::Value = serde_json::from_str(&self.node(id).explained(topic)).unwrap();
        let offset = |name: &str| told["log"][name].as_i64().unwrap();
        (offset("logStartOffset"), offset("highWatermark"), offset("logEndOffset"))
    }

    fn log_dir(&self, id: i32, topic: &str) -> PathBuf {
        self.node(id).logs().join(format!("{topic}-0"))
    }

    fn up(&mut self, id: i32, dir: TempDir) {
        let id_text = id.to_string();
        let mut settings: Vec<(&str, &str)> =
            self.settings.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        settings.push(("broker.id", &id_text));
        let node = Node::start_on(dir, &settings);
        node.peers.link(Link { from: id, links: self.links.clone() });
        self.links.up(id, &node.broker);
        self.nodes.insert(id, node);
    }

    /// All who are up hear who is up, and who leads what. The controller is a broker that does not exist.
    fn tell(&self) {
        let live: Vec<_> = self.nodes.keys().copied().collect();
        let orders: Vec<_> = self.orders.values().cloned().collect();
        for node in self.nodes.values() {
            node.tell(9, &live, &orders);
        }
    }
}
