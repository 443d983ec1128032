//! How many member ids are on their way: given out to new members, and not come back with a JoinGroup request (KIP-394).
//!
//! Each is kept up to the session timeout that its member asked for, half an hour perhaps, and makes a group if there is
//! none. Anybody may ask for as many as he likes, in as many groups; so there is a limit for all groups together.

use std::sync::atomic::{AtomicUsize, Ordering};

/// So many ids may be on their way, of all groups of this broker. Members that have their wits about them come back at
/// once.
pub(super) const MOST_GIVEN_OUT: usize = 20_000;

/// The ids that are on their way.
#[derive(Debug, Default)]
pub(super) struct GivenOut(AtomicUsize);

impl GivenOut {
    /// Whether there may be one more. Those who ask at the same time may all be told so.
    pub(super) fn has_room(&self) -> bool {
        self.0.load(Ordering::Relaxed) < MOST_GIVEN_OUT
    }

    /// A group that had `before` of them has `after` now.
    pub(super) fn changed(&self, before: usize, after: usize) {
        if after > before {
            self.0.fetch_add(after.saturating_sub(before), Ordering::Relaxed);
        } else if after < before {
            self.0.fetch_sub(before.saturating_sub(after), Ordering::Relaxed);
        }
    }
}
