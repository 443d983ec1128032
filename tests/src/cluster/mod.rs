//! A cluster on loopback ports: real ZooKeeper servers and brokers of either kind, each a process with a folder of its
//! own.
//!
//! Every broker reaches ZooKeeper through a proxy of its own, so that its session can be cut, and may stand behind
//! a proxy that knows frames, which is the address that others are told. Waiting is for conditions, each with a
//! deadline. Dropping a cluster kills its processes and no others.

mod parting;
mod tree;
mod view;

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use kafka_protocol::messages::CreateTopicsRequest;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use tempfile::TempDir;

use crate::broker::{Broker, Kind, Member, Options};
use crate::broker_proxy::BrokerProxy;
use crate::calls;
use crate::checker::{Dump, dump_directory};
use crate::ensemble::Ensemble;
use crate::folders;
use crate::ports;
use crate::raw::Connection;
use crate::tcp_proxy::TcpProxy;
use crate::wait;

pub use parting::Parting;
pub use tree::{PartitionState, Tree};
pub use view::{PartitionView, cluster_view, told_addresses, topic_view};

/// How long a condition of a cluster may take.
pub const LIMIT: Duration = Duration::from_secs(90);
/// How long after its last word ZooKeeper counts a broker as gone, in milliseconds.
const SESSION_TIMEOUT_MS: u32 = 10_000;

/// What a cluster consists of.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The brokers: the first has id 1, and so on.
    pub kinds: Vec<Kind>,
    /// Options of all of them.
    pub options: Options,
    /// Whether each is reached through a proxy that knows frames.
    pub proxied: bool,
    /// Whether each is in a rack of its own, `rack-1` for broker 1 and so on.
    pub racks: bool,
    /// Listeners that each has beside `PLAINTEXT`, without encryption as that one, on any port.
    pub more_listeners: &'static [&'static str],
    /// How many ZooKeeper servers there are.
    pub zookeepers: usize,
    /// `zookeeper.session.timeout.ms`, at least two seconds.
    pub session_timeout_ms: u32,
}

impl Plan {
    /// So many brokers of one kind, without proxies.
    #[must_use]
    pub fn of(kind: Kind, brokers: usize) -> Self {
        Self {
            kinds: vec![kind; brokers],
            options: Options::default(),
            proxied: false,
            racks: false,
            more_listeners: &[],
            zookeepers: 1,
            session_timeout_ms: SESSION_TIMEOUT_MS,
        }
    }

    /// The same, each broker behind a proxy.
    #[must_use]
    pub fn proxied(mut self) -> Self {
        self.proxied = true;
        self
    }

    /// The same, each broker in a rack of its own.
    #[must_use]
    pub fn in_racks(mut self) -> Self {
        self.racks = true;
        self
    }

    /// The same, each broker with these listeners beside `PLAINTEXT`.
    #[must_use]
    pub fn listening(mut self, more: &'static [&'static str]) -> Self {
        self.more_listeners = more;
        self
    }

    /// The same over an ensemble of so many ZooKeeper servers.
    #[must_use]
    pub fn over(mut self, zookeepers: usize) -> Self {
        self.zookeepers = zookeepers;
        self
    }

    /// The same with these properties for all brokers, instead of the harness's own or beside them.
    #[must_use]
    pub fn with(mut self, properties: &[(&str, &str)]) -> Self {
        let properties = properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        self.options.properties.extend(properties);
        self
    }

    /// The options of broker `id` at `port`.
    fn options(&self, id: i32, port: u16) -> Options {
        let copies = self.kinds.len().min(3).to_string();
        let session_timeout = self.session_timeout_ms.to_string();
        let mut properties: Vec<(String, String)> = [
            ("default.replication.factor", copies.as_str()),
            ("offsets.topic.replication.factor", &copies),
            ("transaction.state.log.replication.factor", &copies),
            ("zookeeper.session.timeout.ms", &session_timeout),
            ("auto.create.topics.enable", "false"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .to_vec();
        if self.racks {
            properties.push(("broker.rack".to_owned(), format!("rack-{id}")));
        }
        if !self.more_listeners.is_empty() {
            let (mut listeners, mut map) =
                (format!("PLAINTEXT://127.0.0.1:{port}"), "PLAINTEXT:PLAINTEXT".to_owned());
            for name in self.more_listeners {
                listeners.push_str(&format!(",{name}://127.0.0.1:0"));
                map.push_str(&format!(",{name}:PLAINTEXT"));
            }
            properties.push(("listeners".to_owned(), listeners));
            properties.push(("listener.security.protocol.map".to_owned(), map));
        }
        properties.extend(self.options.properties.iter().cloned());
        Options { properties, ..self.options.clone() }
    }
}

/// A broker of a cluster with the proxies around it.
#[derive(Debug)]
struct Seat {
    broker: Broker,
    proxy: Option<BrokerProxy>,
    /// One for each server.
    to_zookeeper: Vec<TcpProxy>,
}

/// See the module.
#[derive(Debug)]
pub struct Cluster {
    // Declared first: brokers end before ZooKeeper, and that before its folder goes.
    seats: Vec<Seat>,
    ensemble: Ensemble,
    _folder: TempDir,
}

impl Cluster {
    /// Starts ZooKeeper and all brokers, and waits until a controller knows all of them.
    ///
    /// # Errors
    /// When one of them does not start.
    pub fn start(plan: &Plan) -> Result<Self> {
        let mut cluster = Self::prepare(plan)?;
        let ids = cluster.ids();
        cluster.start_brokers(&ids)?;
        Ok(cluster)
    }

    /// Starts ZooKeeper, and no broker yet.
    ///
    /// # Errors
    /// When ZooKeeper does not start, or there are no ports and folders.
    pub fn prepare(plan: &Plan) -> Result<Self> {
        let folder = folders::temporary("blumfeld-cluster-")?;
        // A session lasts two ticks at least.
        let tick = (plan.session_timeout_ms / 4).max(200);
        let ensemble = Ensemble::start(folder.path(), plan.zookeepers, tick)?;
        let seats = (1..)
            .zip(&plan.kinds)
            .map(|(id, kind)| Seat::new(id, *kind, plan, &ensemble))
            .collect::<Result<Vec<_>>>()?;
        Ok(Self { seats, ensemble, _folder: folder })
    }

    /// Starts the brokers of these ids at the same time, and waits until a controller knows them.
    ///
    /// # Errors
    /// When one of them does not start.
    pub fn start_brokers(&mut self, ids: &[i32]) -> Result<()> {
        let brokers = self.seats.iter_mut().map(|seat| &mut seat.broker);
        std::thread::scope(|scope| {
            let starts: Vec<_> = brokers
                .filter(|broker| ids.contains(&broker.id()))
                .map(|broker| scope.spawn(|| broker.resume()))
                .collect();
            starts
                .into_iter()
                .try_for_each(|start| start.join().map_err(|_| anyhow!("a start has panicked"))?)
        })?;
        self.until_all_known()
    }

    /// The ids of all brokers, running or not.
    #[must_use]
    pub fn ids(&self) -> Vec<i32> {
        self.seats.iter().map(|seat| seat.broker.id()).collect()
    }

    /// The brokers that run and are not frozen.
    #[must_use]
    pub fn running(&self) -> BTreeSet<i32> {
        self.running_seats().map(|seat| seat.broker.id()).collect()
    }

    fn running_seats(&self) -> impl Iterator<Item = &Seat> {
        self.seats.iter().filter(|seat| seat.broker.is_running())
    }

    /// A broker, to be stopped, killed, frozen or started.
    ///
    /// # Errors
    /// When there is none of this id.
    pub fn broker(&mut self, id: i32) -> Result<&mut Broker> {
        let seat = self.seats.iter_mut().find(|seat| seat.broker.id() == id);
        seat.map(|seat| &mut seat.broker).with_context(|| format!("no broker {id}"))
    }

    fn seat(&self, id: i32) -> Result<&Seat> {
        self.seats.iter().find(|seat| seat.broker.id() == id).with_context(|| format!("no broker {id}"))
    }

    /// The proxy that others reach a broker through.
    ///
    /// # Errors
    /// When there is none.
    pub fn proxy(&self, id: i32) -> Result<&BrokerProxy> {
        self.seat(id)?.proxy.as_ref().context("the cluster has no proxies")
    }

    /// The proxies that a broker reaches the ZooKeeper servers through, in their order.
    ///
    /// # Errors
    /// When there is no such broker.
    pub fn zookeeper_proxies(&self, id: i32) -> Result<&[TcpProxy]> {
        Ok(&self.seat(id)?.to_zookeeper)
    }

    /// `host:port` of all brokers, running or not; directly, not through their proxies.
    #[must_use]
    pub fn addresses(&self) -> Vec<String> {
        self.seats.iter().map(|seat| seat.broker.bootstrap()).collect()
    }

    /// A session with a ZooKeeper server that runs, past all proxies.
    ///
    /// # Errors
    /// When none can be reached.
    pub fn tree(&self) -> Result<Tree> {
        Tree::open(&self.ensemble.addresses())
    }

    /// The ZooKeeper servers.
    pub fn ensemble(&mut self) -> &mut Ensemble {
        &mut self.ensemble
    }

    /// Kills the first ZooKeeper server and starts it again on the same data; `while_down` runs in between.
    ///
    /// # Errors
    /// When it does not start again.
    pub fn restart_zookeeper(&mut self, while_down: impl FnOnce()) -> Result<()> {
        self.ensemble.restart(0, while_down)
    }

    /// Parts two brokers from each other: what one sends to the other, and its answers, are held until the
    /// returned parting is healed. Both stay in touch with everybody else.
    ///
    /// # Errors
    /// When the cluster has no proxies.
    pub fn part(&self, one: i32, other: i32) -> Result<Parting> {
        let mut parting = self.deafen(one, other)?;
        parting.add(self.deafen(other, one)?);
        Ok(parting)
    }

    /// Holds what `speaker` sends to `listener`, requests and answers, until the returned parting is healed. What
    /// `listener` sends arrives.
    ///
    /// # Errors
    /// When the cluster has no proxies.
    pub fn deafen(&self, listener: i32, speaker: i32) -> Result<Parting> {
        Ok(Parting::between(self.proxy(listener)?, listener, self.proxy(speaker)?, speaker))
    }

    /// Creates a topic at the controller and waits until every broker that runs knows its leaders.
    ///
    /// # Errors
    /// When the controller refuses.
    pub fn create_topic(&self, topic: &str, partitions: i32, replicas: i16) -> Result<()> {
        let controller = self.until_controller()?;
        let creatable = CreatableTopic::default()
            .with_name(calls::topic_name(topic))
            .with_num_partitions(partitions)
            .with_replication_factor(replicas);
        let request = CreateTopicsRequest::default().with_topics(vec![creatable]).with_timeout_ms(60_000);
        let response = Connection::open(&self.seat(controller)?.broker.bootstrap())?.call(4, &request)?;
        let answer = response.topics.first().context("no topic in the answer")?;
        ensure!(answer.error_code == 0, "CreateTopics: {answer:?}");
        self.until_agreed(topic, partitions)
    }

    /// Waits until ZooKeeper names a controller that runs.
    ///
    /// # Errors
    /// When that does not happen in time.
    pub fn until_controller(&self) -> Result<i32> {
        let mut tree = self.tree()?;
        let running = self.running();
        wait::until("a controller", LIMIT, || {
            Ok(tree.controller()?.filter(|controller| running.contains(controller)))
        })
    }

    /// Waits until all brokers that run are registered and no others, and each of them knows of all and of the
    /// controller.
    ///
    /// # Errors
    /// When that does not happen in time.
    pub fn until_all_known(&self) -> Result<()> {
        let mut tree = self.tree()?;
        let running = self.running();
        wait::until("brokers that know of each other", LIMIT, || {
            let controller = tree.controller()?;
            if controller.is_none() || tree.brokers()? != running {
                return Ok(None);
            }
            let told = self.running_seats().map(|seat| cluster_view(&seat.broker.bootstrap()).ok());
            let expected = Some((controller, running.clone()));
            Ok(told.into_iter().all(|told| told == expected).then_some(()))
        })
    }

    /// Waits until every partition of a topic has a leader, and every broker that runs tells the same of
    /// them as ZooKeeper.
    ///
    /// # Errors
    /// When that does not happen in time.
    pub fn until_agreed(&self, topic: &str, partitions: i32) -> Result<()> {
        let mut tree = self.tree()?;
        wait::until(&format!("brokers that agree on {topic}"), LIMIT, || {
            for partition in 0..partitions {
                let Some(state) = tree.state(topic, partition)? else { return Ok(None) };
                if state.leader < 0 || !self.agree(topic, partition, &state) {
                    return Ok(None);
                }
            }
            Ok(Some(()))
        })
    }

    fn agree(&self, topic: &str, partition: i32, state: &PartitionState) -> bool {
        let mut isr = state.isr.clone();
        isr.sort_unstable();
        self.running_seats().all(|seat| {
            let views = topic_view(&seat.broker.bootstrap(), topic).unwrap_or_default();
            views.get(&partition).is_some_and(|view| {
                (view.leader, view.leader_epoch, &view.isr) == (state.leader, state.leader_epoch, &isr)
            })
        })
    }

    /// Waits until the state of a partition in ZooKeeper is as `condition` has it.
    ///
    /// # Errors
    /// When that does not happen in time; the message holds the last state.
    pub fn until_state(
        &self,
        topic: &str,
        partition: i32,
        what: &str,
        condition: impl Fn(&PartitionState) -> bool,
    ) -> Result<PartitionState> {
        let mut tree = self.tree()?;
        let mut last = None;
        let reached = wait::until(&format!("{topic}-{partition}: {what}"), LIMIT, || {
            last = tree.state(topic, partition)?;
            Ok(last.clone().filter(|state| condition(state)))
        });
        reached.with_context(|| format!("the last state is {last:?}"))
    }

    /// Waits until all partitions of a topic have all their replicas in sync.
    ///
    /// # Errors
    /// When that does not happen in time.
    pub fn until_in_sync(&self, topic: &str) -> Result<()> {
        for (partition, replicas) in self.tree()?.assignment(topic)? {
            self.until_state(topic, partition, "all in sync", |state| {
                state.leader >= 0 && state.isr.len() == replicas.len()
            })?;
        }
        Ok(())
    }

    /// The logs of a partition's replicas, each with its broker's id, as they lie on disk.
    ///
    /// # Errors
    /// When a replica's folder cannot be read.
    pub fn replicas(&self, topic: &str, partition: i32) -> Result<Vec<(String, Dump)>> {
        let assignment = self.tree()?.assignment(topic)?;
        let replicas = assignment.get(&partition).with_context(|| format!("no partition {partition}"))?;
        let dump = |id: &i32| {
            let folder = self.seat(*id)?.broker.data().join(format!("{topic}-{partition}"));
            Ok((format!("broker {id}"), dump_directory(&folder)?))
        };
        replicas.iter().map(dump).collect()
    }
}

impl Seat {
    fn new(id: i32, kind: Kind, plan: &Plan, ensemble: &Ensemble) -> Result<Self> {
        let port = ports::free()?;
        let target = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let proxy = if plan.proxied { Some(BrokerProxy::start(target)?) } else { None };
        let to_zookeeper =
            ensemble.addresses().iter().map(|it| TcpProxy::start(it)).collect::<Result<Vec<_>>>()?;
        let connect = to_zookeeper.iter().map(TcpProxy::address).collect::<Vec<_>>().join(",");
        let advertised_port = proxy.as_ref().map(BrokerProxy::port);
        let member = Member { id, connect, advertised_port };
        let broker = Broker::prepare_member(kind, plan.options(id, port), port, member)?;
        Ok(Self { broker, proxy, to_zookeeper })
    }
}
