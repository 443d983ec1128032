//! A TCP proxy on loopback that can cut, hold, delay and heal what goes through it.
//!
//! It knows nothing of what it carries. Faults concern all its connections, so a client that is to have faults of its
//! own gets a proxy of its own.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

/// Pieces that may be under way in one direction of a connection.
const QUEUE: usize = 1024;
/// The size of a piece in bytes.
const PIECE: usize = 64 * 1024;

/// A direction through a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From who connected to who is served.
    Requests,
    /// Back.
    Answers,
}

#[derive(Debug, Default)]
struct State {
    is_cut: bool,
    is_stopped: bool,
    requests_held: bool,
    answers_held: bool,
    delay: Duration,
    connections: Vec<(TcpStream, TcpStream)>,
    accepted: usize,
}

impl State {
    fn is_held(&self, direction: Direction) -> bool {
        match direction {
            Direction::Requests => self.requests_held,
            Direction::Answers => self.answers_held,
        }
    }

    fn end_connections(&mut self) {
        for (near, far) in self.connections.drain(..) {
            for stream in [near, far] {
                // It may have ended by itself.
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
    }
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }
}

/// A proxy; its connections end when it is dropped.
#[derive(Debug)]
pub struct TcpProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl TcpProxy {
    /// A proxy to `target` (`host:port`) on a free port.
    ///
    /// # Errors
    /// When no port can be had.
    pub fn start(target: &str) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let (target, accepting) = (target.to_owned(), shared.clone());
        thread::spawn(move || accept(&listener, &target, &accepting));
        Ok(Self { address, shared })
    }

    /// `host:port` for clients.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// How many connections came so far, those that were refused included.
    #[must_use]
    pub fn accepted(&self) -> usize {
        self.shared.lock().accepted
    }

    /// Ends all connections and, until [`TcpProxy::heal`], each new one at once.
    pub fn cut(&self) {
        self.shared.change(|state| {
            state.is_cut = true;
            state.end_connections();
        });
    }

    /// Ends all connections; new ones are carried.
    pub fn reset(&self) {
        self.shared.change(State::end_connections);
    }

    /// Keeps back what goes in a direction, while connections stay.
    pub fn hold(&self, direction: Direction) {
        self.shared.change(|state| match direction {
            Direction::Requests => state.requests_held = true,
            Direction::Answers => state.answers_held = true,
        });
    }

    /// Passes everything on so much later, in both directions, in order.
    pub fn delay(&self, delay: Duration) {
        self.shared.change(|state| state.delay = delay);
    }

    /// No fault any more: what was held goes on, new connections are carried, nothing is late.
    pub fn heal(&self) {
        self.shared.change(|state| {
            state.is_cut = false;
            state.requests_held = false;
            state.answers_held = false;
            state.delay = Duration::ZERO;
        });
    }
}

impl Drop for TcpProxy {
    fn drop(&mut self) {
        self.shared.change(|state| {
            state.is_stopped = true;
            state.end_connections();
        });
        // The acceptor waits for a connection; nobody minds if it has ended already.
        drop(TcpStream::connect(self.address));
    }
}

fn accept(listener: &TcpListener, target: &str, shared: &Arc<Shared>) {
    for near in listener.incoming() {
        let mut state = shared.lock();
        if state.is_stopped {
            return;
        }
        state.accepted += 1;
        // A connection that cannot be carried is closed, as by a server that is not there.
        let Ok(near) = near else { continue };
        if state.is_cut {
            continue;
        }
        drop(state);
        let Ok(far) = TcpStream::connect(target) else { continue };
        if let Err(error) = carry(near, far, shared) {
            eprintln!("tcp proxy: {error}");
        }
    }
}

fn carry(near: TcpStream, far: TcpStream, shared: &Arc<Shared>) -> std::io::Result<()> {
    for stream in [&near, &far] {
        stream.set_nodelay(true)?;
    }
    let mut state = shared.lock();
    if state.is_cut || state.is_stopped {
        return Ok(());
    }
    state.connections.push((near.try_clone()?, far.try_clone()?));
    drop(state);
    pump(near.try_clone()?, far.try_clone()?, Direction::Requests, shared);
    pump(far, near, Direction::Answers, shared);
    Ok(())
}

/// Carries one direction with a thread that reads and one that writes, so that a delay does not add up.
fn pump(mut from: TcpStream, to: TcpStream, direction: Direction, shared: &Arc<Shared>) {
    let (pieces, queue) = sync_channel(QUEUE);
    thread::spawn(move || read(&mut from, &pieces));
    let shared = shared.clone();
    thread::spawn(move || write(to, &queue, direction, &shared));
}

fn read(from: &mut TcpStream, pieces: &SyncSender<(Instant, Vec<u8>)>) {
    let mut piece = vec![0; PIECE];
    while let Ok(length) = from.read(&mut piece) {
        let bytes = piece.get(..length).unwrap_or_default().to_vec();
        if length == 0 || pieces.send((Instant::now(), bytes)).is_err() {
            return;
        }
    }
}

fn write(
    mut to: TcpStream,
    queue: &Receiver<(Instant, Vec<u8>)>,
    direction: Direction,
    shared: &Arc<Shared>,
) {
    for (arrived, bytes) in queue {
        let mut state = shared.lock();
        loop {
            let due = arrived + state.delay;
            let rest = due.saturating_duration_since(Instant::now());
            state = match state.is_held(direction) && !state.is_stopped {
                true => shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                false if rest.is_zero() => break,
                false => shared.changed.wait_timeout(state, rest).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
        drop(state);
        if to.write_all(&bytes).is_err() {
            return;
        }
    }
    // The other side has said its last word.
    let _ = to.shutdown(Shutdown::Write);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that sends back what it reads.
    fn echo() -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                thread::spawn(move || {
                    let mut back = stream.try_clone().unwrap();
                    let _ = std::io::copy(&mut &stream, &mut back);
                });
            }
        });
        address
    }

    fn connect(proxy: &TcpProxy) -> TcpStream {
        let stream = TcpStream::connect(proxy.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    fn round_trip(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
        stream.write_all(bytes)?;
        let mut back = vec![0; bytes.len()];
        stream.read_exact(&mut back)?;
        Ok(back)
    }

    #[test]
    fn bytes_go_through_and_a_cut_ends_connections_until_it_is_healed() {
        let proxy = TcpProxy::start(&echo().to_string()).unwrap();
        let mut stream = connect(&proxy);
        assert_eq!(round_trip(&mut stream, b"hello").unwrap(), b"hello");
        proxy.cut();
        assert!(round_trip(&mut stream, b"x").is_err());
        assert!(round_trip(&mut connect(&proxy), b"x").is_err());
        proxy.heal();
        assert_eq!(round_trip(&mut connect(&proxy), b"again").unwrap(), b"again");
        assert_eq!(proxy.accepted(), 3);
    }

    #[test]
    fn what_was_held_comes_after_all_and_what_is_late_keeps_its_order() {
        let proxy = TcpProxy::start(&echo().to_string()).unwrap();
        let mut stream = connect(&proxy);
        proxy.hold(Direction::Answers);
        stream.write_all(b"held").unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let mut back = [0; 4];
        assert!(stream.read_exact(&mut back).is_err());
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        proxy.heal();
        stream.read_exact(&mut back).unwrap();
        assert_eq!(&back, b"held");
        proxy.delay(Duration::from_millis(40));
        let start = Instant::now();
        assert_eq!(round_trip(&mut stream, b"late").unwrap(), b"late");
        assert!(start.elapsed() >= Duration::from_millis(80));
    }
}
