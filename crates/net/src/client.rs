//! A client of one broker: it connects, learns the broker's versions, and sends one request after the other.
//!
//! For the command line and for tests, not for speed. Each request goes out in the highest version that both
//! sides know. A request that got no whole answer in time leaves the connection unusable, since nobody can
//! tell any more where an answer begins.

use std::collections::BTreeMap;
use std::io;
use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use wire::api::ApiKey;
use wire::error_code::ErrorCode;
use wire::header::{RequestHeader, decode_response_header, encode_request_header};
use wire::messages::{ApiVersionsRequest, ApiVersionsResponse, Message, Request};
use wire::{DecodeError, Decoder, EncodeError, Encoder, Str};

/// How long a connection and each request may take, unless said otherwise (`request.timeout.ms`).
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes by which the buffer of an answer grows, at least.
const READ_STEP: usize = 64 * 1024;

/// Why a request has no answer.
#[derive(Debug, Error)]
pub enum ClientError {
    /// No connection can be had.
    #[error("cannot connect to {address}: {error}")]
    Connect {
        /// Host and port as given.
        address: String,
        /// What the system says.
        error: io::Error,
    },
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
    /// The broker closed the connection instead of answering.
    #[error("the broker closed the connection")]
    Closed,
    /// No answer came in time.
    #[error("no answer within {} ms", .0.as_millis())]
    Timeout(Duration),
    /// An earlier request was not answered as a whole.
    #[error("the connection is unusable since an earlier request failed")]
    Unusable,
    /// No version of the request is known to both sides.
    #[error("the broker does not support {name} {ours:?} (it has {theirs:?})")]
    Unsupported {
        /// The request.
        name: &'static str,
        /// The versions we know.
        ours: RangeInclusive<i16>,
        /// The versions the broker knows; none: it does not know the request at all.
        theirs: Option<RangeInclusive<i16>>,
    },
    /// The broker refused to tell its versions.
    #[error("the broker refused ApiVersions with error code {0}")]
    Versions(i16),
    /// The request cannot be written in the chosen version.
    #[error("the request cannot be written: {0}")]
    Encode(#[from] EncodeError),
    /// The answer cannot be read.
    #[error("the answer cannot be read: {0}")]
    Decode(#[from] DecodeError),
    /// The answer has a size that no frame may have.
    #[error("the answer has the impossible size {0}")]
    Size(i32),
    /// The answer belongs to another request.
    #[error("the answer belongs to request {received}, not to {expected}")]
    Correlation {
        /// The correlation id that was sent.
        expected: i32,
        /// The one that came back.
        received: i32,
    },
}

/// A request that was posted, whose answer is still to be collected.
#[derive(Debug)]
pub struct Pending<R> {
    correlation_id: i32,
    version: i16,
    request: PhantomData<fn() -> R>,
}

/// See the module.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    client_id: Str,
    next_correlation_id: i32,
    versions: BTreeMap<i16, RangeInclusive<i16>>,
    timeout: Duration,
    usable: bool,
}

impl Client {
    /// Connects to `address` (`host:port`) and asks for the broker's versions.
    ///
    /// # Errors
    /// If there is no connection, or the other side is no Kafka broker.
    pub async fn connect(address: &str, client_id: &str) -> Result<Self, ClientError> {
        let mut client = Self::connect_raw(address, client_id).await?;
        client.negotiate().await?;
        Ok(client)
    }

    /// Connects without saying anything: until [`negotiate`](Self::negotiate) only frames and requests of a
    /// given version can be sent.
    ///
    /// # Errors
    /// If there is no connection.
    pub async fn connect_raw(address: &str, client_id: &str) -> Result<Self, ClientError> {
        let failed = |error| ClientError::Connect { address: String::from(address), error };
        let connect = tokio::time::timeout(DEFAULT_TIMEOUT, TcpStream::connect(address));
        let stream = connect.await.map_err(|_| ClientError::Timeout(DEFAULT_TIMEOUT))?.map_err(failed)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            client_id: Str::from(client_id),
            next_correlation_id: 1,
            versions: BTreeMap::new(),
            timeout: DEFAULT_TIMEOUT,
            usable: true,
        })
    }

    /// Lets each later request take this long.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Asks for the broker's versions, in an older version if the broker does not know ours (KIP-511).
    ///
    /// # Errors
    /// If the broker refuses.
    pub async fn negotiate(&mut self) -> Result<(), ClientError> {
        let request = ApiVersionsRequest {
            client_software_name: Str::from("blumfeld"),
            client_software_version: Str::from(env!("CARGO_PKG_VERSION")),
        };
        let newest = *ApiVersionsRequest::VERSIONS.end();
        let mut response = self.ask_versions(&request, newest).await?;
        if response.error_code == ErrorCode::UnsupportedVersion.code() {
            let known = response.api_keys.iter().find(|api| api.api_key == ApiVersionsRequest::API_KEY);
            let version = known.map_or(0, |api| api.max_version.min(newest));
            response = self.ask_versions(&request, version).await?;
        }
        if response.error_code != 0 {
            return Err(ClientError::Versions(response.error_code));
        }
        let versions = response.api_keys.iter().map(|api| (api.api_key, api.min_version..=api.max_version));
        self.versions = versions.collect();
        Ok(())
    }

    /// A broker that does not know the version answers in version 0.
    async fn ask_versions(
        &mut self,
        request: &ApiVersionsRequest,
        version: i16,
    ) -> Result<ApiVersionsResponse, ClientError> {
        let mut body = self.exchange(request, version).await?;
        let unsupported = ErrorCode::UnsupportedVersion.code().to_be_bytes();
        let version = if body.rest().starts_with(&unsupported) { 0 } else { version };
        Ok(ApiVersionsResponse::decode(&mut body, version)?)
    }

    /// The versions in which the broker serves an api, after [`negotiate`](Self::negotiate).
    pub fn versions(&self, api_key: ApiKey) -> Option<RangeInclusive<i16>> {
        self.versions.get(&api_key.code()).cloned()
    }

    /// All keys that the broker serves and their versions, after [`negotiate`](Self::negotiate).
    pub fn all_versions(&self) -> &BTreeMap<i16, RangeInclusive<i16>> {
        &self.versions
    }

    /// The highest version that both sides know.
    ///
    /// # Errors
    /// If there is none.
    pub fn common_version<R: Request>(&self) -> Result<i16, ClientError> {
        let (ours, theirs) = (R::VERSIONS, self.versions.get(&R::API_KEY));
        let common = theirs.map(|theirs| (*ours.start().max(theirs.start()), *ours.end().min(theirs.end())));
        match common {
            Some((least, most)) if least <= most => Ok(most),
            _ => Err(ClientError::Unsupported { name: R::NAME, ours, theirs: theirs.cloned() }),
        }
    }

    /// Sends a request in the highest common version, and waits for its answer.
    ///
    /// # Errors
    /// See [`ClientError`]. What the answer itself says is left to the caller.
    pub async fn send<R: Request>(&mut self, request: &R) -> Result<R::Response, ClientError> {
        let version = self.common_version::<R>()?;
        self.send_version(request, version).await
    }

    /// Sends a request in `version`, and waits for its answer.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn send_version<R: Request>(
        &mut self,
        request: &R,
        version: i16,
    ) -> Result<R::Response, ClientError> {
        let mut body = self.exchange(request, version).await?;
        Ok(R::Response::decode(&mut body, version)?)
    }

    /// Sends a request that is not answered (Produce with acks 0).
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn send_unanswered<R: Request>(&mut self, request: &R) -> Result<(), ClientError> {
        let version = self.common_version::<R>()?;
        let (_, frame) = self.frame(request, version)?;
        self.send_frame(&frame).await
    }

    async fn exchange<R: Request>(&mut self, request: &R, version: i16) -> Result<Decoder, ClientError> {
        let (expected, frame) = self.frame(request, version)?;
        self.send_frame(&frame).await?;
        self.receive_answer::<R>(expected, version).await
    }

    /// Sends a request in the highest common version, and leaves its answer for [`collect`](Self::collect), so that
    /// several may be under way. Their answers come in the order of the requests.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn post<R: Request>(&mut self, request: &R) -> Result<Pending<R>, ClientError> {
        let version = self.common_version::<R>()?;
        let (correlation_id, frame) = self.frame(request, version)?;
        self.send_frame(&frame).await?;
        Ok(Pending { correlation_id, version, request: PhantomData })
    }

    /// Waits for the answer to the oldest request that was posted.
    ///
    /// # Errors
    /// As [`send`](Self::send); also if the request is not the oldest one.
    pub async fn collect<R: Request>(&mut self, pending: Pending<R>) -> Result<R::Response, ClientError> {
        let mut body = self.receive_answer::<R>(pending.correlation_id, pending.version).await?;
        Ok(R::Response::decode(&mut body, pending.version)?)
    }

    async fn receive_answer<R: Request>(
        &mut self,
        expected: i32,
        version: i16,
    ) -> Result<Decoder, ClientError> {
        let mut body = Decoder::new(self.receive_frame().await?);
        let header_version =
            ApiKey::from_code(R::API_KEY).map_or(0, |key| key.response_header_version(version));
        let received = decode_response_header(&mut body, header_version)?;
        if received != expected {
            self.usable = false;
            return Err(ClientError::Correlation { expected, received });
        }
        Ok(body)
    }

    /// A new correlation id, and the request under it.
    fn frame<R: Request>(&mut self, request: &R, version: i16) -> Result<(i32, Bytes), ClientError> {
        let correlation_id = self.next_correlation_id;
        self.next_correlation_id = correlation_id.wrapping_add(1);
        let header = RequestHeader {
            api_key: R::API_KEY,
            api_version: version,
            correlation_id,
            client_id: Some(self.client_id.clone()),
        };
        let mut frame = Encoder::new();
        encode_request_header(&mut frame, &header)?;
        request.encode(&mut frame, version)?;
        Ok((correlation_id, frame.into_bytes()))
    }

    /// Sends `frame` behind its size, whatever it says.
    ///
    /// # Errors
    /// If the connection fails, or an earlier request has.
    pub async fn send_frame(&mut self, frame: &[u8]) -> Result<(), ClientError> {
        let size = i32::try_from(frame.len()).map_err(|_| ClientError::Size(i32::MAX))?;
        let mut bytes = BytesMut::with_capacity(frame.len().saturating_add(4));
        bytes.extend_from_slice(&size.to_be_bytes());
        bytes.extend_from_slice(frame);
        self.send_bytes(&bytes).await
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// As [`send_frame`](Self::send_frame).
    pub async fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        self.begin()?;
        let timeout = self.timeout;
        let write = tokio::time::timeout(timeout, self.stream.write_all(bytes));
        write.await.map_err(|_| ClientError::Timeout(timeout))?.map_err(closed)?;
        self.usable = true;
        Ok(())
    }

    /// Receives the next frame, without its size.
    ///
    /// # Errors
    /// If the connection ends or fails, or nothing comes in time.
    pub async fn receive_frame(&mut self) -> Result<Bytes, ClientError> {
        self.begin()?;
        let timeout = self.timeout;
        let read = tokio::time::timeout(timeout, read_frame(&mut self.stream));
        let frame = read.await.map_err(|_| ClientError::Timeout(timeout))??;
        self.usable = true;
        Ok(frame)
    }

    /// What is begun and not finished, for whatever reason, leaves the connection unusable.
    fn begin(&mut self) -> Result<(), ClientError> {
        if std::mem::take(&mut self.usable) { Ok(()) } else { Err(ClientError::Unusable) }
    }
}

async fn read_frame(stream: &mut TcpStream) -> Result<Bytes, ClientError> {
    let told = stream.read_i32().await.map_err(closed)?;
    let size = usize::try_from(told).map_err(|_| ClientError::Size(told))?;
    let mut frame = BytesMut::with_capacity(size.min(READ_STEP));
    while frame.len() < size {
        frame.reserve(size.saturating_sub(frame.len()).min(frame.len().max(READ_STEP)));
        let missing = (size.saturating_sub(frame.len())) as u64;
        if (&mut *stream).take(missing).read_buf(&mut frame).await.map_err(closed)? == 0 {
            return Err(ClientError::Closed);
        }
    }
    Ok(frame.freeze())
}

/// The ways in which a peer's leaving shows are one.
fn closed(error: io::Error) -> ClientError {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    match error.kind() {
        BrokenPipe | ConnectionReset | UnexpectedEof => ClientError::Closed,
        _ => ClientError::Io(error),
    }
}
