//! The way to the other brokers over TCP: a link for each channel, made with its first request.
//!
//! The map of links is locked only to find one; handing in and telling the end happen outside of it, so that
//! whoever is told may send and close. Links to brokers that are long gone cost a sleeping task each: at
//! [`MAX_CHANNELS`] those that are idle are closed to make room.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use net::peer_link::{
    Dialer, LinkCounters, LinkDone, LinkError, LinkRequest, LinkSettings, PeerHost, PeerLink,
};
use node::config::KafkaConfig;
use node::peers::{Channel, PeerDone, PeerError, PeerRequest, Peers, Purpose};
use tokio::runtime::Handle;
use tokio::time::{Duration, Instant};

pub mod metrics;

/// Channels that may be in use: some hundred brokers with some replica fetchers each.
pub const MAX_CHANNELS: usize = 4096;
/// The largest answer, in bytes: whatever `replica.fetch.response.max.bytes` says, a single batch may be larger.
const MAX_ANSWER_BYTES: usize = 1024 * 1024 * 1024;
/// A time limit beyond which nobody waits, so that no sum of times overflows.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// See the module.
#[derive(Debug)]
pub struct TcpPeers {
    runtime: Handle,
    settings: PeerSettings,
    max_channels: usize,
    dialer: Dialer,
    links: Mutex<BTreeMap<Channel, Arc<PeerLink>>>,
    counters: Arc<LinkCounters>,
}

/// What the configuration says of connections to other brokers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerSettings {
    /// SO_RCVBUF of replica fetchers in bytes (`replica.socket.receive.buffer.bytes`); none: the system's choice.
    pub fetcher_receive_buffer: Option<usize>,
}

impl PeerSettings {
    /// As with listeners, a size is set only if it is asked for: Kafka's default of 64 KiB would switch off the
    /// kernel's own sizing.
    pub fn from_config(config: &KafkaConfig) -> Self {
        let given = config.values().is_given("replica.socket.receive.buffer.bytes");
        let bytes = usize::try_from(config.replica_socket_receive_buffer_bytes).ok();
        Self { fetcher_receive_buffer: bytes.filter(|_| given) }
    }
}

impl TcpPeers {
    /// Without any connection yet; they will live on `runtime`.
    pub fn new(runtime: Handle, settings: PeerSettings) -> Self {
        Self {
            runtime,
            settings,
            max_channels: MAX_CHANNELS,
            dialer: Dialer::default(),
            links: Mutex::default(),
            counters: Arc::default(),
        }
    }

    /// What all links count together.
    pub fn counters(&self) -> Arc<LinkCounters> {
        Arc::clone(&self.counters)
    }

    /// The link of a channel, a new one if there is none; none if there are too many channels.
    fn link(&self, channel: Channel) -> Option<Arc<PeerLink>> {
        let mut links = self.lock();
        if links.len() >= self.max_channels && !links.contains_key(&channel) {
            links.retain(|_, link| !link.is_idle());
        }
        let is_full = links.len() >= self.max_channels;
        match links.entry(channel) {
            Entry::Vacant(_) if is_full => None,
            Entry::Vacant(place) => Some(Arc::clone(place.insert(self.start_link(channel)))),
            Entry::Occupied(mut place) => {
                if place.get().is_closed() {
                    // Its task has panicked: what was under way is told, and the next request begins anew.
                    place.insert(self.start_link(channel));
                }
                Some(Arc::clone(place.get()))
            }
        }
    }

    fn start_link(&self, channel: Channel) -> Arc<PeerLink> {
        let receive_buffer = match channel.purpose {
            Purpose::Fetcher(_) => self.settings.fetcher_receive_buffer,
            Purpose::Control | Purpose::ToController => None,
        };
        let settings = LinkSettings { receive_buffer, max_answer_bytes: MAX_ANSWER_BYTES };
        Arc::new(PeerLink::start(&self.runtime, settings, self.dialer.clone(), self.counters()))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Channel, Arc<PeerLink>>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Peers for TcpPeers {
    fn send(&self, request: PeerRequest, done: PeerDone) {
        let Some(link) = self.link(request.channel) else {
            self.counters.refused.add(1);
            return done(Err(PeerError::Refused));
        };
        let address = PeerHost { host: request.address.host, port: request.address.port };
        let deadline = Instant::now() + request.timeout.min(LONGEST);
        link.send(LinkRequest { address, frame: request.frame, deadline, done: outward(done) });
    }

    fn close(&self, channel: Channel) {
        let link = self.lock().remove(&channel);
        if let Some(link) = link {
            link.close();
        }
    }
}

fn outward(done: PeerDone) -> LinkDone {
    Box::new(|end: Result<Bytes, LinkError>| done(end.map_err(peer_error)))
}

/// What the two kinds of errors say is put together only once.
fn peer_error(error: LinkError) -> PeerError {
    match error {
        LinkError::Connect { address, error } => PeerError::Connect(format!("{address}: {error}")),
        LinkError::Io(error) => PeerError::Disconnected(error.to_string()),
        LinkError::TimedOut => PeerError::TimedOut,
        LinkError::Refused => PeerError::Refused,
        _ => PeerError::Disconnected(error.to_string()),
    }
}

#[cfg(test)]
mod tests;
