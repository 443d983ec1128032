//! The network: messages take time, and some are lost, late or arrive twice. A way can be cut in one direction.

mod line;
mod peers;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wire::types::BrokerId;

use crate::world::{Death, Fault, World};

pub(crate) use line::{Key, Lane};
pub(crate) use peers::SimPeers;

use line::Lines;

/// How long a message takes, in microseconds.
const WAY_US: RangeInclusive<u64> = 50..=1_500;
/// How much longer a late message takes, in microseconds.
const LATE_US: RangeInclusive<u64> = 5_000..=4_000_000;

/// The port of broker 0; others follow.
const FIRST_PORT: u16 = 9_000;

/// Where a broker listens.
pub(crate) fn port_of(id: BrokerId) -> u16 {
    FIRST_PORT + u16::try_from(id.0).unwrap_or(0)
}

/// The broker that listens there.
pub(crate) fn broker_at(port: u16) -> BrokerId {
    BrokerId(i32::from(port.saturating_sub(FIRST_PORT)))
}

/// Where messages come from and go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Place {
    /// A broker.
    Broker(BrokerId),
    /// A client.
    Client(u32),
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Broker(id) => write!(f, "broker {id}"),
            Self::Client(number) => write!(f, "client {number}"),
        }
    }
}

/// How often messages suffer, in a thousand.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Noise {
    pub(crate) lost: u64,
    pub(crate) late: u64,
    pub(crate) repeated: u64,
}

/// What happens at the other end; more than once if the message is repeated.
type Parcel = Arc<dyn Fn(&Arc<World>) + Send + Sync>;

/// See the module's text.
#[derive(Default)]
pub(crate) struct Network {
    state: Mutex<State>,
    lines: Lines,
}

#[derive(Default)]
struct State {
    noise: Noise,
    cuts: BTreeSet<(Place, Place)>,
    /// What waits at a cut.
    held: Vec<(Place, Place, Parcel)>,
}

impl Network {
    /// Messages suffer so often from now on.
    pub(crate) fn set_noise(&self, noise: Noise) {
        self.lock().noise = noise;
    }

    /// Nothing gets from one place to the other any more.
    pub(crate) fn cut(&self, from: Place, to: Place) {
        self.lock().cuts.insert((from, to));
    }

    /// Messages get through again; some of those that waited too.
    pub(crate) fn mend(&self, world: &Arc<World>, from: Place, to: Place) {
        let freed = {
            let mut state = self.lock();
            state.cuts.remove(&(from, to));
            let (freed, held): (Vec<_>, _) =
                std::mem::take(&mut state.held).into_iter().partition(|it| (it.0, it.1) == (from, to));
            state.held = held;
            freed
        };
        for (_, _, parcel) in freed {
            self.deliver_in(world, world.chances.network.within(WAY_US), parcel);
        }
    }

    /// Whether a way is cut.
    pub(crate) fn is_cut(&self, from: Place, to: Place) -> bool {
        self.lock().cuts.contains(&(from, to))
    }

    /// The ways that are cut.
    pub(crate) fn cuts(&self) -> Vec<(Place, Place)> {
        self.lock().cuts.iter().copied().collect()
    }

    /// Carries a message. One that `may_repeat` is one that a network may deliver twice without breaking a connection.
    fn carry(&self, world: &Arc<World>, from: Place, to: Place, may_repeat: bool, parcel: Parcel) {
        let chance = &world.chances.network;
        let noise = {
            let mut state = self.lock();
            if state.cuts.contains(&(from, to)) {
                world.faults.count(Fault::Cut);
                if chance.per_mille(500) {
                    state.held.push((from, to, parcel));
                }
                return;
            }
            state.noise
        };
        if chance.per_mille(noise.lost) {
            world.faults.count(Fault::Lost);
            world.note(format_args!("lost: {from} to {to}"));
            return;
        }
        let mut way_us = chance.within(WAY_US);
        if chance.per_mille(noise.late) {
            world.faults.count(Fault::Late);
            way_us += chance.within(LATE_US);
            world.note(format_args!("late: {from} to {to}"));
        }
        if may_repeat && chance.per_mille(noise.repeated) {
            world.faults.count(Fault::Repeated);
            let again_us = way_us + chance.within(LATE_US);
            world.note(format_args!("repeated: {from} to {to}"));
            self.deliver_in(world, again_us, parcel.clone());
        }
        self.deliver_in(world, way_us, parcel);
    }

    fn deliver_in(&self, world: &Arc<World>, way_us: u64, parcel: Parcel) {
        world.schedule.after(way_us, "message", move |world| parcel(world));
    }

    /// A broker has died.
    pub(crate) fn broker_died(&self, world: &Arc<World>, id: BrokerId, death: Death) {
        self.lines.broker_died(world, id, death);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
