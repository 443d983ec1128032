//! Requests from this broker to a broker of the cluster, itself included: those to itself take no socket.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use wire::api::ApiKey;
use wire::header::{RequestHeader, decode_response_header, encode_request_header};
use wire::messages::{Message, Request};
use wire::response::Part;
use wire::types::BrokerId;
use wire::{Decoder, EncodeError, Encoder, Str};

use crate::broker::Broker;
use crate::call::{Connection, Outcome, Reply};
use crate::peers::{Channel, PeerAddress, PeerDone, PeerError, PeerRequest, Purpose};

/// Sends one request and reads the answer; `then` gets it, or why there is none.
pub(crate) fn call<M: Request>(
    broker: &Arc<Broker>,
    channel: Channel,
    address: PeerAddress,
    version: i16,
    request: &M,
    then: impl FnOnce(&Arc<Broker>, Result<M::Response, String>) + Send + 'static,
) {
    let correlation_id = broker.next_correlation_id();
    let header = header(broker.id(), M::API_KEY, version, correlation_id);
    let frame = match encode(&header, request) {
        Ok(frame) => frame,
        Err(error) => return then(broker, Err(format!("{} cannot be written: {error}", M::NAME))),
    };
    let request = PeerRequest { channel, address, frame, timeout: timeout(broker) };
    let caller = broker.clone();
    send(
        broker,
        request,
        Box::new(move |answer| {
            let answer = answer.map_err(|error| error.to_string());
            then(&caller, answer.and_then(|bytes| decode::<M::Response>(bytes, version, correlation_id)));
        }),
    );
}

/// The controller and where it listens: on the control plane, if there is one, else where brokers do.
pub(crate) fn controller(broker: &Broker) -> Option<(BrokerId, PeerAddress)> {
    let image = broker.image();
    let config = broker.config();
    let listener = config.listeners.of_control();
    let controller = image.controller()?;
    let endpoint = image.brokers().get(&controller)?.endpoint(listener)?;
    let port = u16::try_from(endpoint.port).ok()?;
    Some((controller, PeerAddress { host: endpoint.host.clone(), port }))
}

/// How long a request that is not a fetch may take (`controller.socket.timeout.ms`).
pub(crate) fn timeout(broker: &Broker) -> Duration {
    Duration::from_millis(u64::try_from(broker.config().controller_socket_timeout_ms).unwrap_or(0))
}

/// The header of a request of this broker's, whose id is the client id.
pub(crate) fn header(id: BrokerId, api_key: i16, api_version: i16, correlation_id: i32) -> RequestHeader {
    RequestHeader { api_key, api_version, correlation_id, client_id: Some(Str::from(id.to_string())) }
}

/// Header and body of a request, as [`PeerRequest::frame`] wants them.
///
/// # Errors
/// What the version cannot carry.
pub(crate) fn encode<M: Message>(header: &RequestHeader, request: &M) -> Result<Bytes, EncodeError> {
    let mut encoder = Encoder::new();
    encode_request_header(&mut encoder, header)?;
    request.encode(&mut encoder, header.api_version)?;
    Ok(encoder.into_bytes())
}

/// The answer of type `M` to the request of that correlation id.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn decode<M: Message>(bytes: Bytes, version: i16, correlation_id: i32) -> Result<M, String> {
    let mut decoder = Decoder::new(bytes);
    let unreadable = |error: wire::DecodeError| format!("{} cannot be read: {error}", M::NAME);
    let key = ApiKey::from_code(M::API_KEY).ok_or("unknown key")?;
    let header_version = key.response_header_version(version);
    let correlated = decode_response_header(&mut decoder, header_version).map_err(unreadable)?;
    if correlated != correlation_id {
        return Err(format!("the answer belongs to request {correlated}, not to {correlation_id}"));
    }
    M::decode(&mut decoder, version).map_err(unreadable)
}

/// Hands in a request; `done` gets the answer, later or within this call.
pub(crate) fn send(broker: &Arc<Broker>, request: PeerRequest, done: PeerDone) {
    if request.channel.broker == broker.id() {
        to_myself(broker, request, done);
    } else {
        broker.peers().send(request, done);
    }
}

/// Ends the connection to a broker; a broker has none to itself.
pub(crate) fn close(broker: &Broker, to: BrokerId, purpose: Purpose) {
    if to != broker.id() {
        broker.peers().close(Channel { broker: to, purpose });
    }
}

/// A request to this broker itself has the same patience as one over a socket: what serves it may wait for a store that is
/// gone.
fn to_myself(broker: &Arc<Broker>, request: PeerRequest, done: PeerDone) {
    let connection = Arc::new(Connection {
        listener: broker.config().listeners.inter_broker.clone(),
        client_address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        id: "self".to_owned(),
        number: 0,
        principal: "User:ANONYMOUS".to_owned(),
        client_software: OnceLock::new(),
    });
    let waiting = Arc::new(Mutex::new(Some(done)));
    let late = waiting.clone();
    let timeout_ms = i64::try_from(request.timeout.as_millis()).unwrap_or(i64::MAX);
    let at_ms = broker.now().mono_ms.saturating_add(timeout_ms);
    broker.timers().add_task(at_ms, move |_| end(&late, Err(PeerError::TimedOut)));
    broker.handle(&connection, request.frame, Reply::new(move |outcome| end(&waiting, answer(outcome))));
}

/// Ends a request unless it has ended.
fn end(waiting: &Mutex<Option<PeerDone>>, answer: Result<Bytes, PeerError>) {
    let done = waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(done) = done {
        done(answer);
    }
}

fn answer(outcome: Outcome) -> Result<Bytes, PeerError> {
    match outcome {
        Outcome::Respond(parts) => {
            let mut whole = BytesMut::new();
            for part in parts {
                match part {
                    Part::Bytes(bytes) => whole.extend_from_slice(&bytes),
                    Part::Range(_) => {
                        return Err(PeerError::Disconnected("the answer lies on disk".to_owned()));
                    }
                }
            }
            Ok(whole.freeze())
        }
        Outcome::NoResponse => Err(PeerError::Disconnected("there is no answer".to_owned())),
        Outcome::Close(reason) => Err(PeerError::Disconnected(reason)),
    }
}
