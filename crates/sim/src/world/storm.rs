//! When what goes wrong: one fault after the other, drawn from the seed, each mended after a while.
//!
//! A disk that lost its tail is the one fault that the cluster survives only if the others stand: until the broker has
//! caught up nothing else happens but to messages.

use std::ops::RangeInclusive;
use std::sync::Arc;

use metadata::store::Request;
use wire::types::BrokerId;

use super::{BROKERS, Death, Fault, Life, World};
use crate::check::rest;
use crate::network::{Noise, Place};

/// When the first fault comes: brokers have started and topics are made, in microseconds.
const FIRST_US: RangeInclusive<u64> = 1_500_000..=4_000_000;
/// The time from one fault to the next, in microseconds.
const PAUSE_US: RangeInclusive<u64> = 300_000..=5_000_000;
/// How long a broker stays down, in microseconds.
const DOWN_US: RangeInclusive<u64> = 100_000..=9_000_000;
/// How long a way is cut, in microseconds.
const CUT_US: RangeInclusive<u64> = 50_000..=9_000_000;
/// How long a disk is slow, and by how much, in microseconds.
const SLOW_US: RangeInclusive<u64> = 500_000..=5_000_000;
const STALL_US: RangeInclusive<u64> = 20_000..=800_000;

impl World {
    /// Things go wrong from now on.
    pub(crate) fn begin_faults(self: &Arc<Self>) {
        let chance = &self.chances.faults;
        let noise = Noise {
            lost: chance.within(0..=6),
            late: chance.within(0..=15),
            repeated: chance.within(0..=10),
        };
        self.network.set_noise(noise);
        let first_us = chance.within(FIRST_US);
        self.schedule.after(first_us, "fault", World::next_fault);
    }

    /// Nothing goes wrong any more, and what is broken is mended, but for one broker that stays away for a while: one whose
    /// process dies now, and mostly the controller, so that the next one finds out by itself what is missing.
    pub(crate) fn mend_all(self: &Arc<Self>) {
        if self.plan.with_faults && self.chances.faults.per_mille(500) {
            let controller = rest::controller(self).filter(|_| self.chances.faults.per_mille(700));
            let id = controller.or_else(|| self.chances.faults.pick(&BROKERS).copied());
            if let Some(id) = id.filter(|_| self.faults.lost_tail().is_none()) {
                self.faults.set_missing(Some(id));
                self.faults.count(Fault::Missing);
                self.kill(id, Death::Kill);
            }
        }
        self.faults.calm();
        self.network.set_noise(Noise::default());
        for (from, to) in self.network.cuts() {
            self.network.mend(self, from, to);
        }
        for node in self.nodes() {
            node.set_stall_us(0);
            if let Some(session) = node.session() {
                session.mend(self);
            }
            let id = node.id;
            // One that is about to stop is started again when it has.
            self.schedule.after(1_000, "start", move |world| world.keep_up(id));
        }
    }

    /// Starts a broker whenever it is found down.
    fn keep_up(self: &Arc<Self>, id: BrokerId) {
        if matches!(self.node(id).life(), Life::Down) {
            self.start(id);
        }
        self.schedule.after(1_000_000, "keep up", move |world| world.keep_up(id));
    }

    fn next_fault(self: &Arc<Self>) {
        if self.faults.is_calm() {
            return;
        }
        self.look_after_lost_tail();
        self.one_fault();
        let pause_us = self.chances.faults.within(PAUSE_US);
        self.schedule.after(pause_us, "fault", World::next_fault);
    }

    fn one_fault(self: &Arc<Self>) {
        let chance = &self.chances.faults;
        let id = *chance.pick(&BROKERS).unwrap_or(&BROKERS[0]);
        let kind = chance.within(0..=99);
        if self.faults.lost_tail().is_some() {
            return;
        }
        match kind {
            0..=17 => self.crash(id, Fault::CrashTailKept, Death::Kill),
            18..=32 if self.may_lose_tail(id) => self.crash(id, Fault::CrashTailLost, Death::PowerLoss),
            33..=44 => self.shut_down(id),
            45..=62 => self.cut_a_way(id),
            63..=72 => self.expire(id),
            73..=84 => self.take_tree_away(id),
            85..=92 => self.depose(),
            _ => self.slow_down(id),
        }
    }

    fn crash(self: &Arc<Self>, id: BrokerId, fault: Fault, death: Death) {
        if matches!(self.node(id).life(), Life::Down) {
            return;
        }
        self.faults.count(fault);
        if death == Death::PowerLoss {
            self.faults.set_lost_tail(Some(id));
        }
        self.kill(id, death);
        let down_us = self.chances.faults.within(DOWN_US);
        self.schedule.after(down_us, "start", move |world| world.start(id));
    }

    fn shut_down(self: &Arc<Self>, id: BrokerId) {
        if !matches!(self.node(id).life(), Life::Serving(_)) {
            return;
        }
        self.faults.count(Fault::ControlledShutdown);
        self.stop(id);
        let down_us = self.chances.faults.within(DOWN_US) + 2_000_000;
        self.schedule.after(down_us, "start", move |world| world.start_when_down(id));
    }

    fn start_when_down(self: &Arc<Self>, id: BrokerId) {
        if matches!(self.node(id).life(), Life::Leaving(_)) {
            return self.schedule.after(500_000, "start", move |world| world.start_when_down(id));
        }
        self.start(id);
    }

    fn cut_a_way(self: &Arc<Self>, id: BrokerId) {
        let others: Vec<BrokerId> = BROKERS.into_iter().filter(|other| *other != id).collect();
        let other = *self.chances.faults.pick(&others).unwrap_or(&id);
        let (from, to) = (Place::Broker(id), Place::Broker(other));
        if self.network.is_cut(from, to) {
            return;
        }
        self.matters(format_args!("cut: {from} to {to}"));
        self.network.cut(from, to);
        let cut_us = self.chances.faults.within(CUT_US);
        self.schedule.after(cut_us, "mend", move |world| {
            world.matters(format_args!("mended: {from} to {to}"));
            world.network.mend(world, from, to);
        });
    }

    fn expire(self: &Arc<Self>, id: BrokerId) {
        let Some(session) = self.node(id).session() else { return };
        let (true, Some(in_tree)) = (self.node(id).broker().is_some(), session.id_in_tree()) else { return };
        self.faults.count(Fault::SessionExpiry);
        self.matters(format_args!("the session of {id} is expired"));
        // Half of the owners learn of it late.
        if self.chances.faults.per_mille(500) {
            session.cut(self);
            let away_us = self.chances.faults.within(CUT_US) / 3;
            self.schedule.after(away_us, "mend", move |world| session.mend(world));
        }
        self.tree.expire(in_tree);
    }

    fn take_tree_away(self: &Arc<Self>, id: BrokerId) {
        let Some(session) = self.node(id).session().filter(|session| session.is_connected()) else { return };
        self.faults.count(Fault::TreeAway);
        self.matters(format_args!("the tree is away for {id}"));
        session.cut(self);
        let away_us = self.chances.faults.within(CUT_US);
        self.schedule.after(away_us, "mend", move |world| session.mend(world));
    }

    fn depose(self: &Arc<Self>) {
        if self.tree.write(Request::delete("/controller", None)).is_ok() {
            self.faults.count(Fault::ControllerMove);
            self.matters(format_args!("the controller is deposed"));
        }
    }

    fn slow_down(self: &Arc<Self>, id: BrokerId) {
        self.faults.count(Fault::SlowDisk);
        self.node(id).set_stall_us(self.chances.faults.within(STALL_US));
        let slow_us = self.chances.faults.within(SLOW_US);
        self.schedule.after(slow_us, "mend", move |world| world.node(id).set_stall_us(0));
    }

    /// Whether every partition that counts a broker as in sync has another in-sync replica that stands.
    fn may_lose_tail(&self, id: BrokerId) -> bool {
        let stands = |other: &BrokerId| {
            let node = self.node(*other);
            let session = node.session();
            matches!(node.life(), Life::Serving(_))
                && session.is_some_and(|it| it.is_connected() && it.session_is_known())
                && self.tree.value(&format!("/brokers/ids/{other}")).is_some()
        };
        let others = BROKERS.iter().filter(|other| **other != id);
        others.clone().all(stands)
            && self.network.cuts().is_empty()
            && rest::partitions(self).iter().all(|(partition, _)| {
                rest::state(self, partition).is_none_or(|(state, _)| {
                    !state.isr.contains(&id) || state.isr.iter().any(|other| *other != id)
                })
            })
    }

    /// A broker that lost its tail has recovered once it is in sync wherever it has a replica.
    fn look_after_lost_tail(&self) {
        let Some(id) = self.faults.lost_tail() else { return };
        let is_in_sync = rest::partitions(self).iter().all(|(partition, replicas)| {
            let state = rest::state(self, partition);
            !replicas.contains(&id) || state.is_none_or(|(state, _)| state.isr.contains(&id))
        });
        if is_in_sync && matches!(self.node(id).life(), Life::Serving(_)) {
            self.faults.set_lost_tail(None);
        }
    }
}
