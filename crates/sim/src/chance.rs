//! Everything random comes from the seed: one stream for each purpose, so that one more draw here changes nothing there.

use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A stream of random numbers.
#[derive(Debug)]
pub(crate) struct Chance(Mutex<fastrand::Rng>);

impl Chance {
    /// The stream of `seed` for a purpose.
    pub(crate) fn of(seed: u64, purpose: &str) -> Self {
        let mut mixed = crate::trace::Digest::default();
        mixed.add(&seed.to_be_bytes());
        mixed.add(purpose.as_bytes());
        Self(Mutex::new(fastrand::Rng::with_seed(mixed.value())))
    }

    /// A number of the range.
    pub(crate) fn within(&self, range: RangeInclusive<u64>) -> u64 {
        self.lock().u64(range)
    }

    /// An index below `bound`; 0 if that is 0.
    pub(crate) fn below(&self, bound: usize) -> usize {
        self.lock().usize(0..bound.max(1))
    }

    /// Whether something happens that happens `times` in a thousand.
    pub(crate) fn per_mille(&self, times: u64) -> bool {
        self.lock().u64(0..1000) < times
    }

    /// One of `items`.
    pub(crate) fn pick<'a, T>(&self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }

    /// Any number.
    pub(crate) fn number(&self) -> u64 {
        self.lock().u64(..)
    }

    fn lock(&self) -> MutexGuard<'_, fastrand::Rng> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
