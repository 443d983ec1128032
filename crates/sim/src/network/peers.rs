//! The way of a broker to the others.

use std::sync::Weak;

use node::peers::{Channel, PeerDone, PeerError, PeerRequest, Peers, Purpose};

use super::{Key, Lane, Place, broker_at};
use crate::incarnation::Incarnation;
use crate::world::World;

/// The peers of one life of a broker.
pub(crate) struct SimPeers {
    world: Weak<World>,
    owner: Incarnation,
}

impl SimPeers {
    pub(crate) fn new(world: Weak<World>, owner: Incarnation) -> Self {
        Self { world, owner }
    }

    fn key(&self, channel: Channel) -> Key {
        let lane = match channel.purpose {
            Purpose::Control => Lane::Control,
            Purpose::ToController => Lane::ToController,
            Purpose::Fetcher(number) => Lane::Fetcher(number),
        };
        Key { from: Place::Broker(self.owner.broker), to: channel.broker, lane }
    }
}

impl Peers for SimPeers {
    fn send(&self, request: PeerRequest, done: PeerDone) {
        let Some(world) = self.world.upgrade().filter(|_| self.owner.is_alive()) else {
            return done(Err(PeerError::Refused));
        };
        let key = Key { to: broker_at(request.address.port), ..self.key(request.channel) };
        let timeout_us = u64::try_from(request.timeout.as_micros()).unwrap_or(u64::MAX);
        let owner = self.owner.clone();
        let then = self.world.clone();
        let done = move |answer| {
            if let Some(world) = then.upgrade().filter(|_| owner.is_alive()) {
                world.act(&owner, || done(answer));
            }
        };
        let origin = Some(self.owner.clone());
        world.network.request(&world, key, origin, request.frame, timeout_us, Box::new(done));
    }

    fn close(&self, channel: Channel) {
        if let Some(world) = self.world.upgrade() {
            world.network.close(&world, self.key(channel));
        }
    }
}
