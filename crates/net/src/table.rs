//! All connections of the process: how many there are, of which listener and from where, and whether one more
//! may come (`max.connections` and its kin).
//!
//! A [`Seat`] stands for one served connection. Dropping it, on whatever path, gives everything back exactly
//! once. A connection over a total waits for a seat, and its listener accepts no other meanwhile; one over the
//! limit of its address is closed at once, one that comes from its address too fast a little later. The protected listener (the inter-broker one, if there are several)
//! does not wait for the broker's total (KIP-402): the least recently used connections of other listeners make room, as
//! they do when the total is lowered. Connections that come faster than they may are accepted more slowly (KIP-612), a
//! protected listener's only for its own rate.

mod addresses;
mod arrivals;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use thiserror::Error;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::close_reason::CloseReason;
use crate::counters::ListenerCounters;
use crate::exchange::Exchange;

pub use self::addresses::AddressRates;
pub use self::arrivals::RateWindows;

use self::addresses::AddressArrivals;
use self::arrivals::Arrivals;

/// How many connections there may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// On all listeners together (`max.connections`).
    pub total: usize,
    /// The listener that does not wait for the total: the inter-broker one, if there are others.
    pub protected: Option<Arc<str>>,
    /// On one listener (`listener.name.x.max.connections`), by the listener's name; absent: no limit.
    pub per_listener: HashMap<Arc<str>, usize>,
    /// New ones a second on all listeners that are not protected (`max.connection.creation.rate`).
    pub rate: usize,
    /// New ones a second on one listener (`listener.name.x.max.connection.creation.rate`), by the listener's name; absent:
    /// no limit.
    pub rate_per_listener: HashMap<Arc<str>, usize>,
    /// New ones a second from one address (`connection_creation_rate` of IPs).
    pub address_rates: AddressRates,
    /// How rates are measured.
    pub rate_windows: RateWindows,
    /// From one address (`max.connections.per.ip`).
    pub per_ip: usize,
    /// The limits of single addresses (`max.connections.per.ip.overrides`).
    pub per_ip_overrides: HashMap<IpAddr, usize>,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        let most = i32::MAX as usize;
        Self {
            total: most,
            protected: None,
            per_listener: HashMap::new(),
            rate: most,
            rate_per_listener: HashMap::new(),
            address_rates: AddressRates::default(),
            rate_windows: RateWindows::default(),
            per_ip: most,
            per_ip_overrides: HashMap::new(),
        }
    }
}

impl ConnectionLimits {
    fn protects(&self, listener: &Arc<str>) -> bool {
        self.protected.as_ref() == Some(listener)
    }
}

/// Why a connection gets no seat.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Refused {
    /// The address holds as many as it may.
    #[error("too many connections from {address} (maximum is {limit})")]
    Address {
        /// The address.
        address: IpAddr,
        /// Its limit.
        limit: usize,
    },
    /// The address connects faster than it may.
    #[error("connections from {address} come too fast (maximum is {rate} a second)")]
    Rate {
        /// The address.
        address: IpAddr,
        /// Its connections a second.
        rate: usize,
        /// How much too early it came, at most [`RateWindows::length`]: until then the socket stays open, so that a client
        /// that connects again at once is slowed down.
        early: Duration,
    },
}

/// What the table must know of a listener.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The listener's name.
    pub listener: Arc<str>,
    /// Where its connections count.
    pub counters: Arc<ListenerCounters>,
}

/// See the module.
pub struct ConnectionTable {
    started: Instant,
    state: Mutex<State>,
    freed: Notify,
}

struct State {
    limits: ConnectionLimits,
    next_index: u64,
    per_listener: HashMap<Arc<str>, usize>,
    per_ip: HashMap<IpAddr, usize>,
    arrivals: Arrivals,
    arrivals_per_listener: HashMap<Arc<str>, Arrivals>,
    arrivals_per_address: AddressArrivals,
    entries: HashMap<u64, Arc<Entry>>,
}

struct Entry {
    origin: Origin,
    address: IpAddr,
    exchange: Arc<Exchange>,
    /// Microseconds from the table's start to the last traffic.
    touched_us: AtomicU64,
    /// Whether it was told to make room; changed under the lock of the table.
    evicted: AtomicBool,
}

impl ConnectionTable {
    /// An empty table.
    pub fn new(limits: ConnectionLimits) -> Arc<Self> {
        let state = State {
            limits,
            next_index: 0,
            per_listener: HashMap::new(),
            per_ip: HashMap::new(),
            arrivals: Arrivals::default(),
            arrivals_per_listener: HashMap::new(),
            arrivals_per_address: AddressArrivals::default(),
            entries: HashMap::new(),
        };
        Arc::new(Self { started: Instant::now(), state: Mutex::new(state), freed: Notify::new() })
    }

    /// Replaces the limits. Where there are more connections than the total now, those of unprotected listeners go, the
    /// least recently used first; other limits hold for new connections only.
    pub fn set_limits(&self, limits: ConnectionLimits) {
        let mut state = self.lock();
        state.arrivals_per_listener.retain(|name, _| limits.rate_per_listener.contains_key(name));
        state.arrivals_per_address.retain(&limits.address_rates);
        state.limits = limits;
        let evicted = state.evict();
        drop(state);
        end_evicted(&evicted);
        self.freed.notify_waiters();
    }

    /// Connections being served.
    pub fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// Whether none is served.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A seat for a connection from `address`; waits while connections come too fast, and while the totals leave no room.
    ///
    /// # Errors
    /// If the address holds too many connections, or connects too fast.
    pub async fn enter(self: &Arc<Self>, origin: &Origin, address: IpAddr) -> Result<Seat, Refused> {
        let pause = self.arrived(origin);
        if !pause.is_zero() {
            origin.counters.accept_throttle_ms.add(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX));
            tokio::time::sleep(pause).await;
        }
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            freed.as_mut().enable();
            if let Some(result) = self.try_enter(origin, address.to_canonical()) {
                return result;
            }
            freed.await;
        }
    }

    /// Counts a connection that comes, and tells how long it must wait for the rates.
    fn arrived(&self, origin: &Origin) -> Duration {
        let now = self.started.elapsed();
        let mut guard = self.lock();
        let state = &mut *guard;
        let limits = &state.limits;
        let mut pause = Duration::ZERO;
        if !limits.protects(&origin.listener) {
            pause = state.arrivals.arrived(now, limits.rate, limits.rate_windows);
        }
        if let Some(rate) = limits.rate_per_listener.get(&origin.listener) {
            let own = state.arrivals_per_listener.entry(Arc::clone(&origin.listener)).or_default();
            pause = pause.max(own.arrived(now, *rate, limits.rate_windows));
        }
        pause
    }

    /// `None`: there is no room now.
    fn try_enter(self: &Arc<Self>, origin: &Origin, address: IpAddr) -> Option<Result<Seat, Refused>> {
        let mut guard = self.lock();
        let state = &mut *guard;
        let of_listener = state.per_listener.get(&origin.listener).copied().unwrap_or(0);
        let listener_limit = state.limits.per_listener.get(&origin.listener).copied().unwrap_or(usize::MAX);
        let is_full = !state.limits.protects(&origin.listener) && state.entries.len() >= state.limits.total;
        if is_full || of_listener >= listener_limit {
            return None;
        }
        let limits = &state.limits;
        if let Some(rate) = limits.address_rates.of(address) {
            let now = self.started.elapsed();
            let early = state.arrivals_per_address.arrived(now, address, rate, limits.rate_windows);
            if !early.is_zero() {
                origin.counters.connections_throttled.add(1);
                return Some(Err(Refused::Rate { address, rate, early }));
            }
        }
        let limit = limits.per_ip_overrides.get(&address).copied().unwrap_or(limits.per_ip);
        let of_address = state.per_ip.get(&address).copied().unwrap_or(0);
        if of_address >= limit {
            origin.counters.connections_refused.add(1);
            return Some(Err(Refused::Address { address, limit }));
        }
        let index = state.next_index;
        state.next_index += 1;
        state.per_listener.insert(Arc::clone(&origin.listener), of_listener + 1);
        state.per_ip.insert(address, of_address + 1);
        let entry = Arc::new(Entry {
            origin: origin.clone(),
            address,
            exchange: Arc::new(Exchange::new()),
            touched_us: AtomicU64::new(self.now_us()),
            evicted: AtomicBool::new(false),
        });
        state.entries.insert(index, Arc::clone(&entry));
        origin.counters.connections_opened.add(1);
        let evicted = state.evict();
        drop(guard);
        end_evicted(&evicted);
        Some(Ok(Seat { table: Arc::clone(self), index, entry }))
    }

    /// Lets every connection end when the requests in service are answered; no other request starts.
    pub fn drain(&self) {
        for entry in self.entries() {
            entry.exchange.drain();
        }
    }

    /// Ends every connection now.
    pub fn end_all(&self) {
        for entry in self.entries() {
            entry.exchange.end(CloseReason::Shutdown);
        }
    }

    /// Ends every connection of a listener that is no more.
    pub fn end_listener(&self, name: &str) {
        for entry in self.entries().iter().filter(|entry| *entry.origin.listener == *name) {
            entry.exchange.end(CloseReason::ListenerRemoved);
        }
    }

    /// Waits until no connection is served.
    pub async fn emptied(&self) {
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            freed.as_mut().enable();
            if self.is_empty() {
                return;
            }
            freed.await;
        }
    }

    fn entries(&self) -> Vec<Arc<Entry>> {
        self.lock().entries.values().cloned().collect()
    }

    fn leave(&self, index: u64) {
        let mut state = self.lock();
        if let Some(entry) = state.entries.remove(&index) {
            decrement(&mut state.per_listener, &entry.origin.listener);
            decrement(&mut state.per_ip, &entry.address);
            entry.origin.counters.connections_closed.add(1);
        }
        drop(state);
        self.freed.notify_waiters();
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Chooses connections of unprotected listeners, the least recently used first, until the rest is within the total.
    /// Each is chosen once, however long it takes to go.
    fn evict(&self) -> Vec<Arc<Entry>> {
        if self.entries.len() <= self.limits.total {
            return Vec::new();
        }
        let stays = |entry: &&Arc<Entry>| !entry.evicted.load(Ordering::Relaxed);
        let staying = self.entries.values().filter(stays).count();
        let unprotected = |entry: &&Arc<Entry>| stays(entry) && !self.limits.protects(&entry.origin.listener);
        let mut evicted: Vec<_> = self.entries.values().filter(unprotected).cloned().collect();
        evicted.sort_by_cached_key(|entry| entry.touched_us.load(Ordering::Relaxed));
        evicted.truncate(staying.saturating_sub(self.limits.total));
        for entry in &evicted {
            entry.evicted.store(true, Ordering::Relaxed);
        }
        evicted
    }
}

fn end_evicted(entries: &[Arc<Entry>]) {
    for entry in entries {
        entry.exchange.end(CloseReason::Evicted);
    }
}

fn decrement<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            counts.remove(key);
        }
    }
}

/// The place of one connection in the table.
pub struct Seat {
    table: Arc<ConnectionTable>,
    index: u64,
    entry: Arc<Entry>,
}

impl Seat {
    /// The running number of the connection.
    pub fn index(&self) -> u64 {
        self.index
    }

    pub(crate) fn exchange(&self) -> &Arc<Exchange> {
        &self.entry.exchange
    }

    pub(crate) fn counters(&self) -> &Arc<ListenerCounters> {
        &self.entry.origin.counters
    }

    /// Notes that there is traffic now.
    pub(crate) fn touch(&self) {
        self.entry.touched_us.store(self.table.now_us(), Ordering::Relaxed);
    }

    /// When there was traffic last.
    pub(crate) fn touched(&self) -> Instant {
        self.table.started + Duration::from_micros(self.entry.touched_us.load(Ordering::Relaxed))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.table.leave(self.index);
    }
}

#[cfg(test)]
mod tests;
