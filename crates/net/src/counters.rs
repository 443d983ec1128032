//! What a listener counts: plain numbers, read whenever somebody asks.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The counters of one listener; all only rise.
        #[derive(Debug, Default)]
        pub struct ListenerCounters {
            $($(#[$doc])* pub $name: Counter,)*
        }
    };
}

counters! {
    /// Connections that were accepted and are served or were served.
    connections_opened,
    /// Connections that are served no longer, for whatever reason.
    connections_closed,
    /// Connections closed at once since their address holds too many.
    connections_refused,
    /// Connections closed since their address connects faster than it may.
    connections_throttled,
    /// Milliseconds for which accepting rested since connections came too fast.
    accept_throttle_ms,
    /// Connections closed since nothing was said for too long.
    connections_expired,
    /// Requests given to the handler.
    requests,
    /// Bytes of these requests, size prefixes included.
    request_bytes,
    /// Answers queued for sending.
    responses,
    /// Bytes read from sockets.
    bytes_in,
    /// Bytes written to sockets.
    bytes_out,
    /// Frames with a size that no frame may have.
    invalid_frames,
    /// Ranges that had to be read from disk by another thread before they were sent.
    cold_ranges,
}

/// A number that only rises.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// The sum so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl ListenerCounters {
    /// Connections that are served now.
    pub fn connections(&self) -> u64 {
        let closed = self.connections_closed.get();
        self.connections_opened.get().saturating_sub(closed)
    }
}
