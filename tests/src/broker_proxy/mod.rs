//! A proxy before a broker that knows Kafka's frames: it can drop, delay or hold exactly the request or response
//! that a test names, count requests by key, cut one direction, and close connections.
//!
//! A broker stands behind a proxy by advertising the proxy's address: then its peers and clients come through it.
//! Each connection has a thread for each direction. What is held holds up everything behind it in its direction,
//! the end of the connection included, as a network does that delivers late.

mod gate;
mod header;
mod link;
mod rules;

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::ports;

pub use gate::Gate;
pub use header::{RequestHeader, correlation_id};
pub use rules::{Action, Applied, Direction, Rule};

use link::Link;
use rules::Rules;

/// Frames that are remembered; older ones are only counted.
const REMEMBERED: usize = 100_000;

/// A frame that came by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// When it was read as a whole.
    pub at: Instant,
    /// The number of its connection, counted from 0 in the order of their acceptance.
    pub connection: u64,
    /// Which way it went.
    pub direction: Direction,
    /// The request's header, of the request that is answered in case of a response.
    pub header: RequestHeader,
    /// Bytes of the frame without its size.
    pub size: usize,
}

/// See the module. Dropping it closes all its connections.
#[derive(Debug)]
pub struct BrokerProxy {
    shared: Arc<Shared>,
    port: u16,
    acceptor: Option<JoinHandle<()>>,
}

/// What the threads of a proxy share.
#[derive(Debug)]
struct Shared {
    target: Mutex<SocketAddr>,
    rules: Mutex<Rules>,
    requests: Gate,
    responses: Gate,
    traffic: Mutex<Traffic>,
    links: Mutex<Vec<(Arc<Link>, JoinHandle<()>)>>,
    accepted: AtomicU64,
    stopping: AtomicBool,
}

#[derive(Debug, Default)]
struct Traffic {
    counts: BTreeMap<(Direction, i16), u64>,
    seen: VecDeque<Seen>,
}

impl BrokerProxy {
    /// Listens on a free loopback port and passes on to `target`, which need not listen yet.
    ///
    /// # Errors
    /// When there is no port to be had.
    pub fn start(target: SocketAddr) -> Result<Self> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, ports::free()?)).context("no port for a proxy")?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared {
            target: Mutex::new(target),
            rules: Mutex::default(),
            requests: Gate::new(true),
            responses: Gate::new(true),
            traffic: Mutex::default(),
            links: Mutex::default(),
            accepted: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        let acceptor = std::thread::Builder::new()
            .name("proxy".to_owned())
            .spawn(move || accepting.accept_all(&listener))?;
        Ok(Self { shared, port, acceptor: Some(acceptor) })
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `host:port` for whoever is to come through it.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// New connections go to `target` from now on.
    pub fn set_target(&self, target: SocketAddr) {
        *lock(&self.shared.target) = target;
    }

    /// Adds a rule behind those that are there.
    pub fn rule(&self, rule: Rule) -> Applied {
        lock(&self.shared.rules).add(rule)
    }

    /// Forgets all rules. What they hold stays held.
    pub fn clear_rules(&self) {
        lock(&self.shared.rules).clear();
    }

    /// Passes nothing on in one direction until [`BrokerProxy::heal`], not even the end of a connection.
    pub fn cut(&self, direction: Direction) {
        self.shared.gate(direction).shut();
    }

    /// Passes on again what was cut, beginning with what was held.
    pub fn heal(&self) {
        self.shared.requests.open();
        self.shared.responses.open();
    }

    /// Closes all connections, at once and also while the proxy is cut.
    pub fn sever(&self) {
        for (link, _) in lock(&self.shared.links).iter() {
            link.close();
        }
    }

    /// How many requests or responses of this key have arrived, whatever became of them.
    #[must_use]
    pub fn count(&self, direction: Direction, api_key: i16) -> u64 {
        lock(&self.shared.traffic).counts.get(&(direction, api_key)).copied().unwrap_or(0)
    }

    /// How many connections have been accepted.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// The last frames that came by, oldest first.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        lock(&self.shared.traffic).seen.iter().cloned().collect()
    }
}

impl Drop for BrokerProxy {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        // Wakes the acceptor, which may have ended for its own reasons.
        let _woken = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        if let Some(acceptor) = self.acceptor.take() {
            let _ended = acceptor.join();
        }
        let links = std::mem::take(&mut *lock(&self.shared.links));
        for (link, thread) in links {
            link.close();
            let _ended = thread.join();
        }
    }
}

impl Shared {
    fn accept_all(self: &Arc<Self>, listener: &TcpListener) {
        for client in listener.incoming() {
            if self.stopping.load(Ordering::SeqCst) {
                return;
            }
            let Ok(client) = client else { continue };
            let number = self.accepted.fetch_add(1, Ordering::SeqCst);
            let Ok(link) = Link::new(number, client) else { continue };
            let link = Arc::new(link);
            let (shared, served) = (Arc::clone(self), Arc::clone(&link));
            let spawned = std::thread::Builder::new()
                .name(format!("proxied-{number}"))
                .spawn(move || served.serve(&shared));
            let Ok(thread) = spawned else { continue };
            let mut links = lock(&self.links);
            links.retain(|(_, thread)| !thread.is_finished());
            links.push((link, thread));
        }
    }

    fn gate(&self, direction: Direction) -> &Gate {
        match direction {
            Direction::Request => &self.requests,
            Direction::Response => &self.responses,
        }
    }

    /// Notes a frame and decides what becomes of it.
    fn judge(&self, connection: u64, direction: Direction, header: &RequestHeader, frame: &[u8]) -> Action {
        let seen =
            Seen { at: Instant::now(), connection, direction, header: header.clone(), size: frame.len() };
        let action = lock(&self.rules).decide(direction, header, frame);
        let mut traffic = lock(&self.traffic);
        *traffic.counts.entry((direction, header.api_key)).or_default() += 1;
        if traffic.seen.len() == REMEMBERED {
            traffic.seen.pop_front();
        }
        traffic.seen.push_back(seen);
        action
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
