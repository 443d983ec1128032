//! Raw connections: frames in and out, and single calls with the messages of the crate `kafka-protocol`.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{RequestHeader, ResponseHeader};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};

const ANSWER_LIMIT: Duration = Duration::from_secs(150);

/// A connection to a broker.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    last_correlation_id: i32,
}

/// What came back for a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A response frame, without its size.
    Frame(Bytes),
    /// The broker closed the connection.
    Closed,
    /// Nothing within the limit.
    Silence,
}

impl Connection {
    /// Connects to `host:port`.
    ///
    /// # Errors
    /// When nobody listens there.
    pub fn open(address: &str) -> Result<Self> {
        Self::over(TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?)
    }

    /// Speaks over a socket that is connected, whoever connected it.
    ///
    /// # Errors
    /// When the socket refuses its options.
    pub fn over(stream: TcpStream) -> Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_LIMIT))?;
        stream.set_write_timeout(Some(ANSWER_LIMIT))?;
        Ok(Self { stream, last_correlation_id: 0 })
    }

    /// The socket below.
    #[must_use]
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// How long [`Connection::receive`] waits.
    ///
    /// # Errors
    /// When the socket refuses.
    pub fn set_answer_limit(&self, limit: Duration) -> Result<()> {
        Ok(self.stream.set_read_timeout(Some(limit))?)
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.stream.write_all(bytes)?)
    }

    /// Sends one frame: a size, then `payload`.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn send(&mut self, payload: &[u8]) -> Result<()> {
        let mut frame = Vec::with_capacity(payload.len() + 4);
        frame.put_i32(i32::try_from(payload.len())?);
        frame.extend_from_slice(payload);
        self.send_bytes(&frame)
    }

    /// Waits for one frame.
    ///
    /// # Errors
    /// When a frame breaks off, or its size is negative.
    pub fn receive(&mut self) -> Result<Answer> {
        let mut size = [0; 4];
        match self.stream.read_exact(&mut size) {
            Ok(()) => {}
            Err(e) => {
                return match e.kind() {
                    ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
                        Ok(Answer::Closed)
                    }
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => Ok(Answer::Silence),
                    _ => Err(e.into()),
                };
            }
        }
        let mut body = vec![0; usize::try_from(i32::from_be_bytes(size))?];
        self.stream.read_exact(&mut body).context("a frame that breaks off")?;
        Ok(Answer::Frame(Bytes::from(body)))
    }

    /// Sends a request and waits for its response.
    ///
    /// # Errors
    /// When it cannot be encoded in `version`, or no well-formed answer comes.
    pub fn call<R: Request>(&mut self, version: i16, request: &R) -> Result<R::Response> {
        self.ask(version, request)?;
        self.answer::<R>(version)
    }

    /// Sends a request, whose response is waited for later, with [`Connection::answer`].
    ///
    /// # Errors
    /// When it cannot be encoded in `version`, or the connection has ended.
    pub fn ask<R: Request>(&mut self, version: i16, request: &R) -> Result<()> {
        self.last_correlation_id += 1;
        self.send(&frame(version, self.last_correlation_id, request)?)
    }

    /// Waits for the response to the request that was asked last.
    ///
    /// # Errors
    /// When no well-formed answer comes, or one to another request.
    pub fn answer<R: Request>(&mut self, version: i16) -> Result<R::Response> {
        match self.receive()? {
            Answer::Frame(mut bytes) => {
                let header_version = R::Response::header_version(version);
                let header = ResponseHeader::decode(&mut bytes, header_version)?;
                if header.correlation_id != self.last_correlation_id {
                    bail!("answer {} to request {}", header.correlation_id, self.last_correlation_id);
                }
                R::Response::decode(&mut bytes, version)
            }
            other => bail!("{other:?} instead of an answer to key {} version {version}", R::KEY),
        }
    }
}

/// Header and body of a request, without the frame's size.
///
/// # Errors
/// When the request cannot be expressed in `version`.
pub fn frame<R: Request>(version: i16, correlation_id: i32, request: &R) -> Result<Bytes> {
    let mut bytes = BytesMut::new();
    let header = RequestHeader::default()
        .with_request_api_key(R::KEY)
        .with_request_api_version(version)
        .with_correlation_id(correlation_id)
        .with_client_id(Some(StrBytes::from_static_str("interop")));
    header.encode(&mut bytes, R::header_version(version))?;
    request.encode(&mut bytes, version)?;
    Ok(bytes.freeze())
}
