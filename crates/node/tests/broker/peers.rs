//! Other brokers, played by the test: what is sent to them waits until the test answers it.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};
use std::time::Instant;

use bytes::Bytes;
use node::peers::{Channel, PeerDone, PeerError, PeerRequest, Peers};
use wire::api::ApiKey;
use wire::header::{decode_request_header, encode_response_header};
use wire::messages::{Message, Request};
use wire::{Decoder, Encoder};

use crate::harness::PATIENCE;

/// The way to brokers that do not exist.
#[derive(Default)]
pub(crate) struct TestPeers {
    sent: Mutex<VecDeque<(PeerRequest, PeerDone)>>,
    came: Condvar,
    closed: Mutex<Vec<Channel>>,
}

impl Peers for TestPeers {
    fn send(&self, request: PeerRequest, done: PeerDone) {
        self.sent.lock().unwrap().push_back((request, done));
        self.came.notify_all();
    }

    fn close(&self, channel: Channel) {
        self.closed.lock().unwrap().push(channel);
    }
}

/// A request that was sent to a peer, to be answered once.
pub(crate) struct Sent<R: Request> {
    pub(crate) channel: Channel,
    pub(crate) address: String,
    pub(crate) client_id: String,
    pub(crate) version: i16,
    pub(crate) request: R,
    correlation_id: i32,
    done: PeerDone,
}

impl<R: Request> Sent<R> {
    /// Answers it.
    pub(crate) fn answer(self, response: &R::Response) {
        let mut encoder = Encoder::new();
        let key = ApiKey::from_code(R::API_KEY).unwrap();
        encode_response_header(&mut encoder, self.correlation_id, key.response_header_version(self.version));
        response.encode(&mut encoder, self.version).unwrap();
        (self.done)(Ok(encoder.into_bytes()));
    }

    /// The connection breaks instead.
    pub(crate) fn fail(self) {
        (self.done)(Err(PeerError::Disconnected("by the test".to_owned())));
    }
}

impl TestPeers {
    /// The next request of this kind, whatever else was sent before it.
    pub(crate) fn take<R: Request>(&self) -> Sent<R> {
        let end = Instant::now() + PATIENCE;
        let mut sent = self.sent.lock().unwrap();
        loop {
            if let Some(at) = sent.iter().position(|(request, _)| key_of(&request.frame) == R::API_KEY) {
                let (request, done) = sent.remove(at).unwrap();
                return read(request, done);
            }
            let left = end.checked_duration_since(Instant::now());
            let left = left.unwrap_or_else(|| panic!("no {} was sent", R::NAME));
            sent = self.came.wait_timeout(sent, left).unwrap().0;
        }
    }

    /// How many requests of this kind wait for an answer.
    pub(crate) fn count<R: Request>(&self) -> usize {
        self.sent.lock().unwrap().iter().filter(|(request, _)| key_of(&request.frame) == R::API_KEY).count()
    }

    /// The channels that were closed so far.
    pub(crate) fn closed(&self) -> Vec<Channel> {
        self.closed.lock().unwrap().clone()
    }
}

fn key_of(frame: &Bytes) -> i16 {
    i16::from_be_bytes([frame[0], frame[1]])
}

fn read<R: Request>(request: PeerRequest, done: PeerDone) -> Sent<R> {
    let mut decoder = Decoder::new(request.frame);
    let header = decode_request_header(&mut decoder).unwrap();
    let body = R::decode(&mut decoder, header.api_version).unwrap();
    assert_eq!(decoder.remaining(), 0);
    Sent {
        channel: request.channel,
        address: format!("{}:{}", request.address.host, request.address.port),
        client_id: header.client_id.unwrap().to_string(),
        version: header.api_version,
        request: body,
        correlation_id: header.correlation_id,
        done,
    }
}
