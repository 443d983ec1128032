//! Does what the machine of a session says: connects, reads, writes, calls back. It runs on a thread of its own, on which
//! answers and events are delivered in the order in which they came.

use super::KeepSession;
use super::credentials::SessionCredentials;
use super::machine::{Input, Machine, Output};
use super::shared::Shared;
use crate::store::{Done, EventSink, Request, Response, StoreError, StoreEvent, guarded};
use bytes::{Buf, BytesMut};
use std::future::pending;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::UnboundedReceiver;

/// The largest frame that is read, in bytes: the list of some two million children.
const MAX_FRAME_BYTES: usize = 64 * 1024 * 1024;
/// How much is read at once, in bytes.
const READ_BYTES: usize = 64 * 1024;
/// How many commands are taken before sockets are looked at again.
const COMMANDS_AT_ONCE: usize = 256;

/// What the handle of a store asks of its thread.
pub(super) enum Command {
    /// To take a request in.
    Submit(Request, Done),
    /// To begin a new session.
    Renew,
    /// To end the session.
    Close,
}

impl From<Command> for Input {
    fn from(command: Command) -> Self {
        match command {
            Command::Submit(request, done) => Self::Submit(request, done),
            Command::Renew => Self::Renew,
            Command::Close => Self::Close,
        }
    }
}

type Dialing = Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>>;

/// One connection.
struct Wire {
    reader: OwnedReadHalf,
    inbox: BytesMut,
}

struct Outbox {
    writer: OwnedWriteHalf,
    bytes: BytesMut,
}

/// See the module's text.
pub(super) struct Driver {
    machine: Machine,
    commands: UnboundedReceiver<Command>,
    shared: Arc<Shared>,
    sink: EventSink,
    keep: Option<KeepSession>,
    servers: Vec<(String, u16)>,
    server: usize,
    dialing: Option<Dialing>,
    wire: Option<Wire>,
    outbox: Option<Outbox>,
    /// Whether a connection is missing and it was said so.
    in_trouble: bool,
    finished: bool,
}

impl Driver {
    pub(super) fn new(
        machine: Machine,
        commands: UnboundedReceiver<Command>,
        shared: Arc<Shared>,
        sink: EventSink,
        keep: Option<KeepSession>,
        servers: Vec<(String, u16)>,
    ) -> Self {
        Self {
            machine,
            commands,
            shared,
            sink,
            keep,
            servers,
            server: 0,
            dialing: None,
            wire: None,
            outbox: None,
            in_trouble: false,
            finished: false,
        }
    }

    /// Works until the session is closed or the handle of the store is gone.
    pub(super) async fn run(mut self) {
        self.step(Input::Tick);
        while !self.finished {
            let deadline = self.machine.deadline();
            tokio::select! {
                command = self.commands.recv() => match command {
                    Some(command) => self.take(command),
                    None => self.abandon(),
                },
                connected = dialed(&mut self.dialing) => self.dialed(connected),
                read = read(&mut self.wire) => self.read(read),
                written = write(&mut self.outbox) => self.written(written),
                () = until(deadline) => self.step(Input::Tick),
            }
        }
        self.shared.finish();
        self.commands.close();
        while let Ok(command) = self.commands.try_recv() {
            if let Command::Submit(_, done) = command {
                self.answer(done, Err(StoreError::Closed));
            }
        }
    }

    fn take(&mut self, first: Command) {
        self.step(first.into());
        for _ in 1..COMMANDS_AT_ONCE {
            let Ok(command) = self.commands.try_recv() else { break };
            self.step(command.into());
        }
    }

    /// Nobody holds the store any more: as with a process that died, the session is left to its timeout.
    fn abandon(&mut self) {
        let mut out = Vec::new();
        self.machine.finish(&mut out);
        self.act(out);
    }

    fn step(&mut self, input: Input) {
        let mut out = Vec::new();
        self.machine.step(Instant::now(), input, &mut out);
        self.shared.set_session(self.machine.session_id());
        if let Some(timeout) = self.machine.session_timeout() {
            self.shared.stats.heard(timeout, self.machine.longest_silence());
        }
        self.act(out);
    }

    fn act(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Dial(server) => self.dial(server),
                Output::Send(frame) => {
                    if let Some(outbox) = &mut self.outbox {
                        outbox.bytes.extend_from_slice(&frame);
                    }
                }
                Output::HangUp => self.hang_up(),
                Output::Keep(credentials) => self.keep(&credentials),
                Output::Tell(event) => self.tell(event),
                Output::Answer(done, answer) => self.answer(done, answer),
                Output::Took(duration) => self.shared.stats.note_latency(duration),
                Output::Trouble(reason) => self.trouble(&reason),
                Output::Finished => self.finished = true,
            }
        }
    }

    fn dial(&mut self, server: usize) {
        self.hang_up();
        self.server = server;
        if let Some((host, port)) = self.servers.get(server).cloned() {
            self.dialing = Some(Box::pin(async move {
                let stream = TcpStream::connect((host.as_str(), port)).await?;
                stream.set_nodelay(true)?;
                Ok(stream)
            }));
        }
    }

    fn hang_up(&mut self) {
        self.dialing = None;
        self.wire = None;
        self.outbox = None;
    }

    fn dialed(&mut self, connected: io::Result<TcpStream>) {
        self.dialing = None;
        match connected {
            Ok(stream) => {
                let (reader, writer) = stream.into_split();
                self.wire = Some(Wire { reader, inbox: BytesMut::new() });
                self.outbox = Some(Outbox { writer, bytes: BytesMut::new() });
                self.step(Input::Connected);
            }
            Err(error) => self.lost(error.to_string()),
        }
    }

    fn lost(&mut self, reason: String) {
        self.hang_up();
        self.step(Input::Lost(reason));
    }

    fn read(&mut self, read: io::Result<usize>) {
        match read {
            Ok(0) => return self.lost("the server has closed the connection".to_owned()),
            Ok(_) => {}
            Err(error) => return self.lost(error.to_string()),
        }
        // A step may end the connection.
        while let Some(wire) = &mut self.wire {
            let Some(head) = wire.inbox.first_chunk::<4>() else { break };
            let length = usize::try_from(i32::from_be_bytes(*head)).unwrap_or(usize::MAX);
            if length > MAX_FRAME_BYTES {
                return self.step(Input::Oversized(length));
            }
            if wire.inbox.len() < 4 + length {
                break;
            }
            wire.inbox.advance(4);
            let frame = wire.inbox.split_to(length).freeze();
            self.step(Input::Frame(frame));
        }
    }

    fn written(&mut self, written: io::Result<()>) {
        if let Err(error) = written {
            self.lost(error.to_string());
        }
    }

    fn keep(&mut self, credentials: &SessionCredentials) {
        if let Some(keep) = &self.keep {
            guarded(|| keep(credentials));
        }
    }

    fn tell(&mut self, event: StoreEvent) {
        match &event {
            StoreEvent::Connected { session_id } => {
                self.in_trouble = false;
                self.shared.stats.connected();
                tracing::info!(server = self.server_name(), session = ?session_id, "connected to ZooKeeper");
            }
            StoreEvent::Disconnected => self.shared.stats.disconnected(),
            StoreEvent::SessionExpired => self.shared.stats.expired(),
            _ => {}
        }
        guarded(|| (self.sink)(event));
    }

    fn answer(&self, done: Done, answer: Result<Response, StoreError>) {
        self.shared.answered();
        guarded(|| done(answer));
    }

    /// Says once that there is no connection.
    fn trouble(&mut self, reason: &str) {
        let server = self.server_name();
        self.shared.set_trouble(format!("{server}: {reason}"));
        if std::mem::replace(&mut self.in_trouble, true) {
            tracing::debug!(server, reason, "no connection to ZooKeeper");
        } else {
            tracing::warn!(server, reason, "no connection to ZooKeeper; trying until there is one");
        }
    }

    fn server_name(&self) -> String {
        self.servers.get(self.server).map(|(host, port)| format!("{host}:{port}")).unwrap_or_default()
    }
}

async fn dialed(dialing: &mut Option<Dialing>) -> io::Result<TcpStream> {
    match dialing {
        Some(dialing) => dialing.await,
        None => pending().await,
    }
}

/// Reads what is there. Nothing is lost if it is dropped before it is ready.
async fn read(wire: &mut Option<Wire>) -> io::Result<usize> {
    match wire {
        Some(wire) => {
            wire.inbox.reserve(READ_BYTES);
            wire.reader.read_buf(&mut wire.inbox).await
        }
        None => pending().await,
    }
}

/// Writes what goes. Nothing is lost if it is dropped before it is ready.
async fn write(outbox: &mut Option<Outbox>) -> io::Result<()> {
    match outbox {
        Some(outbox) if !outbox.bytes.is_empty() => {
            let written = outbox.writer.write_buf(&mut outbox.bytes).await?;
            if written == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(()) }
        }
        _ => pending().await,
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => pending().await,
    }
}
