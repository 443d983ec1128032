//! All connections of the process: how many there are, of which listener and from where, and whether one more
//! may come (`max.connections` and its kin).
//!
//! A [`Seat`] stands for one served connection. Dropping it, on whatever path, gives everything back exactly
//! once. A connection over a total waits for a seat, and its listener accepts no other meanwhile; one over the
//! limit of its address is closed at once. The protected listener (the inter-broker one, if there are several)
//! does not wait for the broker's total: the least recently used connection of another listener makes room.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use thiserror::Error;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::close_reason::CloseReason;
use crate::counters::ListenerCounters;
use crate::exchange::Exchange;

/// How many connections there may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// On all listeners together (`max.connections`).
    pub total: usize,
    /// On one listener (`listener.name.x.max.connections`), by the listener's name; absent: no limit.
    pub per_listener: HashMap<Arc<str>, usize>,
    /// From one address (`max.connections.per.ip`).
    pub per_ip: usize,
    /// The limits of single addresses (`max.connections.per.ip.overrides`).
    pub per_ip_overrides: HashMap<IpAddr, usize>,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        let most = i32::MAX as usize;
        Self { total: most, per_listener: HashMap::new(), per_ip: most, per_ip_overrides: HashMap::new() }
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
}

/// What the table must know of a listener.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The listener's name.
    pub listener: Arc<str>,
    /// Whether connections of this listener are never refused for `max.connections`.
    pub protected: bool,
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
    entries: HashMap<u64, Arc<Entry>>,
}

struct Entry {
    origin: Origin,
    address: IpAddr,
    exchange: Arc<Exchange>,
    /// Microseconds from the table's start to the last traffic.
    touched_us: AtomicU64,
}

impl ConnectionTable {
    /// An empty table.
    pub fn new(limits: ConnectionLimits) -> Arc<Self> {
        let state = State {
            limits,
            next_index: 0,
            per_listener: HashMap::new(),
            per_ip: HashMap::new(),
            entries: HashMap::new(),
        };
        Arc::new(Self { started: Instant::now(), state: Mutex::new(state), freed: Notify::new() })
    }

    /// Replaces the limits. Connections that are there already stay, except that one of them goes for each
    /// new one of a protected listener while the total is exceeded.
    pub fn set_limits(&self, limits: ConnectionLimits) {
        self.lock().limits = limits;
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

    /// A seat for a connection from `address`; waits while the totals leave no room.
    ///
    /// # Errors
    /// If the address holds too many connections.
    pub async fn enter(self: &Arc<Self>, origin: &Origin, address: IpAddr) -> Result<Seat, Refused> {
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            freed.as_mut().enable();
            if let Some(result) = self.try_enter(origin, address.to_canonical()) {
                return result;
            }
            freed.await;
        }
    }

    /// `None`: there is no room now.
    fn try_enter(self: &Arc<Self>, origin: &Origin, address: IpAddr) -> Option<Result<Seat, Refused>> {
        let mut state = self.lock();
        let of_listener = state.per_listener.get(&origin.listener).copied().unwrap_or(0);
        let listener_limit = state.limits.per_listener.get(&origin.listener).copied().unwrap_or(usize::MAX);
        let is_full = !origin.protected && state.entries.len() >= state.limits.total;
        if is_full || of_listener >= listener_limit {
            return None;
        }
        let limits = &state.limits;
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
        });
        state.entries.insert(index, Arc::clone(&entry));
        origin.counters.connections_opened.add(1);
        let evicted =
            if state.entries.len() > state.limits.total { state.least_recently_used() } else { None };
        drop(state);
        if let Some(entry) = evicted {
            entry.exchange.end(CloseReason::Evicted);
        }
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
    /// The connection of an unprotected listener that has been silent for the longest time.
    fn least_recently_used(&self) -> Option<Arc<Entry>> {
        let open = self.entries.values().filter(|entry| !entry.origin.protected);
        open.min_by_key(|entry| entry.touched_us.load(Ordering::Relaxed)).cloned()
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
