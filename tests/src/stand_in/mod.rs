//! A test in the place of the controller: it holds the office before any broker asks for it, says who leads, tells
//! whom it wants to, and grants changes of the in-sync replicas.
//!
//! With it a test can do what a real controller would not, in an order that a real one would not keep: leave a dead
//! broker in the in-sync replicas, or let a broker lead in an epoch of which another has never heard. States are
//! written to ZooKeeper as a controller writes them, so leaders that change the ISR there find what they expect.

mod office;
mod requests;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context, Result, ensure};
use kafka_protocol::messages::{LeaderAndIsrRequest, UpdateMetadataRequest};

use crate::ports;
use crate::raw::Connection;

use office::Office;

/// The stand-in's broker id.
pub const ID: i32 = 99;
/// Its epoch.
pub const EPOCH: i32 = 1;

/// How a broker is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// `host:port` for the stand-in.
    pub address: String,
    /// The port on 127.0.0.1 that others are told.
    pub advertised_port: u16,
}

/// Versions of control requests, by `inter.broker.protocol.version`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    /// LeaderAndIsr.
    pub leader_and_isr: i16,
    /// UpdateMetadata.
    pub update_metadata: i16,
}

/// What the stand-in wants of its one partition, of index 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leadership {
    /// The leader.
    pub leader: i32,
    /// Its epoch.
    pub leader_epoch: i32,
    /// The in-sync replicas.
    pub isr: Vec<i32>,
    /// The version of the state's node.
    pub partition_epoch: i32,
}

/// See the module.
#[derive(Debug)]
pub struct StandIn {
    office: Arc<Office>,
    places: BTreeMap<i32, Place>,
    versions: Versions,
    port: u16,
    stopping: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl StandIn {
    /// Takes the office in a new tree below `chroot` (such as `/c`) of the ZooKeeper at `host:port`, and creates a topic
    /// with one partition on all brokers of `places`, without a leader yet.
    ///
    /// # Errors
    /// When the tree cannot be written, or there is no port to be had.
    pub fn begin(
        zookeeper: &str,
        chroot: &str,
        topic: &str,
        places: BTreeMap<i32, Place>,
        versions: Versions,
    ) -> Result<Self> {
        let replicas: Vec<i32> = places.keys().copied().collect();
        let office = Arc::new(Office::begin(zookeeper, chroot, topic, &replicas)?);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, ports::free()?)).context("no port")?;
        let port = listener.local_addr()?.port();
        let stopping = Arc::new(AtomicBool::new(false));
        let (served, stop) = (Arc::clone(&office), Arc::clone(&stopping));
        let acceptor = std::thread::Builder::new().name("stand-in".to_owned()).spawn(move || {
            for client in listener.incoming() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let (Ok(client), office) = (client, Arc::clone(&served)) else { continue };
                // It ends with its connection, and that with the broker.
                std::thread::spawn(move || requests::serve(&client, &office));
            }
        })?;
        Ok(Self { office, places, versions, port, stopping, acceptor: Some(acceptor) })
    }

    /// Decides who leads from now on, and writes it down. Nobody is told.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn decide(&self, leader: i32, leader_epoch: i32, isr: &[i32]) -> Result<()> {
        self.office.decide(leader, leader_epoch, isr)
    }

    /// The partition's state as ZooKeeper holds it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn leadership(&self) -> Result<Leadership> {
        self.office.leadership()
    }

    /// Tells a broker who lives and who leads.
    ///
    /// # Errors
    /// When it does not take it.
    pub fn tell(&self, id: i32) -> Result<()> {
        self.tell_of(id, &self.leadership()?)
    }

    /// Tells a broker of another leadership than the present one.
    ///
    /// # Errors
    /// When it does not take it.
    pub fn tell_of(&self, id: i32, leadership: &Leadership) -> Result<()> {
        let place = self.places.get(&id).context("no such broker")?;
        let broker_epoch = self.office.broker_epoch(id)?;
        let mut connection = Connection::open(&place.address)?;
        let request: UpdateMetadataRequest =
            requests::update_metadata(&self.office, leadership, &self.places, self.port, broker_epoch);
        let answer = connection.call(self.versions.update_metadata, &request)?;
        ensure!(answer.error_code == 0, "UpdateMetadata: {answer:?}");
        let request: LeaderAndIsrRequest =
            requests::leader_and_isr(&self.office, leadership, &self.places, broker_epoch);
        let answer = connection.call(self.versions.leader_and_isr, &request)?;
        let errors = answer.topics.iter().flat_map(|topic| &topic.partition_errors);
        let refused = errors.chain(&answer.partition_errors).find(|partition| partition.error_code != 0);
        ensure!(answer.error_code == 0 && refused.is_none(), "LeaderAndIsr: {answer:?}");
        Ok(())
    }

    /// Whether changes of the in-sync replicas are granted; they are at first. Those that are refused are asked again.
    pub fn grant_isr_changes(&self, granted: bool) {
        self.office.granting.store(granted, Ordering::SeqCst);
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        // Wakes the acceptor.
        let _woken = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        if let Some(acceptor) = self.acceptor.take() {
            let _ended = acceptor.join();
        }
    }
}
