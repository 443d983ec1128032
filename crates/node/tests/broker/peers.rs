//! Other brokers, played by the test: what is sent to them waits until the test answers it.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, OnceLock};
use std::time::Instant;

use bytes::Bytes;
use node::peers::{Channel, PeerDone, PeerError, PeerRequest, Peers, Purpose};
use wire::api::ApiKey;
use wire::header::{decode_request_header, encode_response_header};
use wire::messages::{Message, Request};
use wire::{Decoder, Encoder};

use crate::harness::PATIENCE;
use crate::pair::Link;

/// The way to brokers that do not exist.
#[derive(Default)]
pub(crate) struct TestPeers {
    sent: Mutex<VecDeque<(PeerRequest, PeerDone)>>,
    came: Condvar,
    closed: Mutex<Vec<Channel>>,
    /// Where fetches go, if there are other brokers.
    link: OnceLock<Link>,
}

impl Peers for TestPeers {
    fn send(&self, request: PeerRequest, done: PeerDone) {
        if let (Some(link), Purpose::Fetcher(_)) = (self.link.get(), request.channel.purpose) {
            return link.deliver(request, done);
        }
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
        let version = self.version;
        self.answer_as(version, response);
    }

    /// Answers it in a version that may not be the one it was asked in.
    pub(crate) fn answer_as(self, version: i16, response: &R::Response) {
        let mut encoder = Encoder::new();
        let key = ApiKey::from_code(R::API_KEY).unwrap();
        encode_response_header(&mut encoder, self.correlation_id, key.response_header_version(version));
        response.encode(&mut encoder, version).unwrap();
        (self.done)(Ok(encoder.into_bytes()));
    }

    /// The connection breaks instead.
    pub(crate) fn fail(self) {
        (self.done)(Err(PeerError::Disconnected("by the test".to_owned())));
    }
}

impl TestPeers {
    /// From now on the fetches of this broker go to other brokers of the test.
    pub(crate) fn link(&self, link: Link) {
        assert!(self.link.set(link).is_ok());
    }

    /// The broker is gone: what it has sent is answered no more.
    pub(crate) fn forget(&self) {
        self.sent.lock().unwrap().clear();
    }

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
