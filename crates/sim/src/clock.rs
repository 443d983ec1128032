//! A broker's clock: the time of the world. Whoever sleeps lets the world go on.

use std::sync::Weak;
use std::time::Duration;

use node::clock::Clock;
use wire::types::Now;

use crate::fiber;
use crate::incarnation::Incarnation;
use crate::world::World;

/// The wall clock at the beginning of the world, in milliseconds since the Unix epoch.
const BEGINNING_MS: i64 = 1_700_000_000_000;

/// The instant `now_us` after the beginning of the world. Monotonic time begins at one: zero means "never".
pub(crate) fn instant(now_us: u64) -> Now {
    let ms = i64::try_from(now_us / 1000).unwrap_or(i64::MAX);
    Now { mono_ms: ms.saturating_add(1), wall_ms: BEGINNING_MS.saturating_add(ms) }
}

/// When `mono_ms` is, in microseconds from the beginning of the world.
pub(crate) fn micros_of(mono_ms: i64) -> u64 {
    u64::try_from(mono_ms.saturating_sub(1)).unwrap_or(0).saturating_mul(1000)
}

/// The clock of one life of a broker.
pub(crate) struct SimClock {
    world: Weak<World>,
    owner: Incarnation,
}

impl SimClock {
    pub(crate) fn new(world: Weak<World>, owner: Incarnation) -> Self {
        Self { world, owner }
    }
}

impl Clock for SimClock {
    fn now(&self) -> Now {
        instant(self.world.upgrade().map_or(0, |world| world.schedule.now_us()))
    }

    fn sleep(&self, duration: Duration) {
        let Some(world) = self.world.upgrade() else { return };
        let until_us = world.schedule.now_us() + u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let is_over = || world.schedule.now_us() >= until_us;
        fiber::wait(&world, &self.owner, |alarm| alarm.ring_at(until_us), is_over);
    }
}
