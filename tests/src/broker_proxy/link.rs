//! One proxied connection: a thread for each direction, which reads a frame, asks what becomes of it, and writes
//! it or does not.

use std::collections::HashMap;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use super::gate::Gate;
use super::header::{RequestHeader, correlation_id};
use super::{Action, Direction, Shared, lock};

/// Bytes of a size prefix.
const PREFIX: usize = 4;
/// The largest frame that is passed on, in bytes; a connection with a larger one is closed.
const MAX_FRAME: usize = 256 * 1024 * 1024;
/// How long connecting to the broker may take; one that is stopped takes connections only until its backlog is full.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// A connection that was accepted, and the one to the broker behind it.
#[derive(Debug)]
pub(super) struct Link {
    number: u64,
    client: TcpStream,
    broker: OnceLock<TcpStream>,
    /// The requests whose answers have not come yet, by their correlation ids.
    asked: Mutex<HashMap<i32, RequestHeader>>,
    closed: AtomicBool,
}

impl Link {
    /// Takes an accepted connection.
    pub(super) fn new(number: u64, client: TcpStream) -> Result<Self> {
        client.set_nodelay(true)?;
        Ok(Self {
            number,
            client,
            broker: OnceLock::new(),
            asked: Mutex::default(),
            closed: AtomicBool::new(false),
        })
    }

    /// Closes both ends.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        for stream in [Some(&self.client), self.broker.get()].into_iter().flatten() {
            // The other side may have closed it already.
            let _ended = stream.shutdown(Shutdown::Both);
        }
    }

    /// Serves the connection until it ends.
    pub(super) fn serve(&self, shared: &Shared) {
        if let Ok(broker) = self.connect(shared) {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let ended = self.pump(shared, Direction::Request, &self.client, broker);
                    if ended.is_err() {
                        self.close();
                    }
                });
                // A broker that has nothing more to say has left.
                let _why = self.pump(shared, Direction::Response, broker, &self.client);
                self.close();
            });
        }
        self.close();
    }

    fn connect(&self, shared: &Shared) -> Result<&TcpStream> {
        shared.requests.pass(None, || self.goes_on(shared));
        let target: SocketAddr = *lock(&shared.target);
        let broker = TcpStream::connect_timeout(&target, CONNECT_LIMIT)?;
        broker.set_nodelay(true)?;
        let broker = self.broker.get_or_init(|| broker);
        // Who closed it meanwhile did not see the second half.
        if self.goes_on(shared) { Ok(broker) } else { Err(ErrorKind::ConnectionAborted.into()) }
    }

    fn goes_on(&self, shared: &Shared) -> bool {
        !self.closed.load(Ordering::SeqCst) && !shared.stopping.load(Ordering::SeqCst)
    }

    /// Passes frames on until the end of `from`, which it passes on too.
    fn pump(
        &self,
        shared: &Shared,
        direction: Direction,
        from: &TcpStream,
        mut to: &TcpStream,
    ) -> Result<()> {
        while let Some(bytes) = read_frame(from)? {
            let frame = bytes.get(PREFIX..).unwrap_or_default();
            let header = self.header(direction, frame)?;
            let passes = match shared.judge(self.number, direction, &header, frame) {
                Action::Pass => true,
                Action::Drop => false,
                Action::Close => return Err(ErrorKind::ConnectionAborted.into()),
                Action::Delay(time) => {
                    let until = Instant::now() + time;
                    Gate::new(false).pass(Some(until), || self.goes_on(shared));
                    true
                }
                Action::Hold(gate) => gate.pass(None, || self.goes_on(shared)),
            };
            self.wait_for_direction(shared, direction)?;
            if passes {
                to.write_all(&bytes)?;
            }
        }
        self.wait_for_direction(shared, direction)?;
        to.shutdown(Shutdown::Write)
    }

    /// Waits while the direction is cut.
    fn wait_for_direction(&self, shared: &Shared, direction: Direction) -> Result<()> {
        if shared.gate(direction).pass(None, || self.goes_on(shared)) {
            Ok(())
        } else {
            Err(ErrorKind::ConnectionAborted.into())
        }
    }

    /// The header of a request, or of the request that a response answers.
    fn header(&self, direction: Direction, frame: &[u8]) -> Result<RequestHeader> {
        let mut asked = lock(&self.asked);
        let header = match direction {
            Direction::Request => RequestHeader::read(frame).inspect(|header| {
                asked.insert(header.correlation_id, header.clone());
            }),
            Direction::Response => correlation_id(frame).and_then(|id| asked.remove(&id)),
        };
        header.ok_or_else(|| Error::new(ErrorKind::InvalidData, "no frame of Kafka"))
    }
}

/// The next frame with its size; none at the end.
fn read_frame(mut from: &TcpStream) -> Result<Option<Vec<u8>>> {
    let mut bytes = vec![0; PREFIX];
    let mut have = 0;
    while have < bytes.len() {
        match from.read(bytes.get_mut(have..).unwrap_or_default()) {
            Ok(0) if have == 0 => return Ok(None),
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => have += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if have == PREFIX && bytes.len() == PREFIX {
            let size = bytes.first_chunk().copied().map_or(-1, i32::from_be_bytes);
            let size = usize::try_from(size).ok().filter(|size| *size <= MAX_FRAME);
            let size = size.ok_or_else(|| Error::new(ErrorKind::InvalidData, "an impossible size"))?;
            bytes.resize(PREFIX + size, 0);
        }
    }
    Ok(Some(bytes))
}
