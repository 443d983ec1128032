//! What this broker is for each partition of `__consumer_offsets`, and the groups of those that it leads.
//!
//! An order counts if its epoch is not below the highest that was heard for the partition (KAFKA-10614), until its log is
//! deleted: a topic that is made again begins with epoch 0. A load is known by its number: its end means nothing once the
//! partition has been let go, or is being loaded again. Whatever is long is done outside the lock, which every request
//! takes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use kernel::group::gate::Ownership;
use wire::Str;
use wire::types::{LeaderEpoch, TopicPartition};

use super::slot::{Home, Slot};

/// All partitions whose log is here and that were heard of.
#[derive(Default)]
pub(super) struct Registry(RwLock<Places>);

#[derive(Default)]
struct Places {
    all: BTreeMap<i32, Place>,
    /// How many loads were begun.
    loads: u64,
}

/// One reading of a partition's log, for one leadership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    /// The partition of `__consumer_offsets`.
    pub(super) index: i32,
    /// The leader epoch in which it was begun.
    pub(super) epoch: LeaderEpoch,
    /// How often it has failed before.
    pub(super) failures: u32,
    number: u64,
}

/// Why the groups of a load are not served yet.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotServed {
    /// Nobody waits for this load any more.
    Overtaken,
    /// These partitions were deleted while it ran: the groups are to hear of it before anybody asks them.
    Deleted(BTreeSet<TopicPartition>),
}

/// One partition.
struct Place {
    epoch: LeaderEpoch,
    standing: Standing,
    /// Where the records of its groups lie, as long as this broker is the coordinator.
    home: Home,
    groups: Groups,
    /// What was deleted since the load began: there is nobody yet whom it could be told.
    deleted: BTreeSet<TopicPartition>,
}

/// The groups of one partition, by name.
pub(super) type Groups = BTreeMap<Str, Arc<Slot>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Another broker is the coordinator.
    Elsewhere,
    /// The records are being read.
    Loading(Load),
    /// The records cannot be read, or could not be the last time.
    Failed(Load),
    /// This broker is the coordinator.
    Owned,
}

impl Standing {
    const fn ownership(self) -> Ownership {
        match self {
            Self::Elsewhere => Ownership::Elsewhere,
            // A partition that cannot be read wholly is not served: what is missing would be taken for never committed.
            Self::Loading(_) | Self::Failed(_) => Ownership::Loading,
            Self::Owned => Ownership::Owned,
        }
    }
}

impl Registry {
    /// What this broker is for the partition, and the group if it is there.
    pub(super) fn find(&self, index: i32, group_id: &str) -> (Ownership, Option<Arc<Slot>>) {
        let places = self.read();
        let Some(place) = places.all.get(&index) else { return (Ownership::Elsewhere, None) };
        (place.standing.ownership(), place.groups.get(group_id).cloned())
    }

    /// The group, made by `make` for where its records will lie if it is not there.
    ///
    /// # Errors
    /// What this broker is for the partition, if it is not the coordinator.
    pub(super) fn find_or_make(
        &self,
        index: i32,
        group_id: &str,
        make: impl FnOnce(Home) -> Arc<Slot>,
    ) -> Result<Arc<Slot>, Ownership> {
        let mut places = self.write();
        let place = places.all.get_mut(&index).ok_or(Ownership::Elsewhere)?;
        if place.standing != Standing::Owned {
            return Err(place.standing.ownership());
        }
        if let Some(slot) = place.groups.get(group_id) {
            return Ok(slot.clone());
        }
        let slot = make(place.home.clone());
        place.groups.insert(slot.group_id().clone(), slot.clone());
        Ok(slot)
    }

    /// The group is gone; another of its name may be there already.
    pub(super) fn forget(&self, slot: &Arc<Slot>) {
        let mut places = self.write();
        let Some(place) = places.all.get_mut(&slot.index()) else { return };
        if place.groups.get(slot.group_id()).is_some_and(|it| Arc::ptr_eq(it, slot)) {
            place.groups.remove(slot.group_id());
        }
    }

    /// This broker leads the partition in `epoch`. The load that must be done for it; none if this broker has led it
    /// before, and goes on.
    pub(super) fn elected(&self, index: i32, epoch: LeaderEpoch) -> Option<Load> {
        let mut places = self.write();
        let Places { all, loads } = &mut *places;
        let place = all.entry(index).or_insert(Place {
            epoch,
            standing: Standing::Elsewhere,
            home: Home::default(),
            groups: Groups::new(),
            deleted: BTreeSet::new(),
        });
        if epoch < place.epoch {
            return None;
        }
        place.epoch = epoch;
        if matches!(place.standing, Standing::Loading(_) | Standing::Owned) {
            return None;
        }
        *loads = loads.wrapping_add(1);
        let load = Load { index, epoch, failures: 0, number: *loads };
        place.standing = Standing::Loading(load);
        Some(load)
    }

    /// This broker does not lead the partition any more, by a decision of `epoch` if that is known. Returns the groups
    /// that are to end.
    pub(super) fn resigned(&self, index: i32, epoch: Option<LeaderEpoch>) -> Groups {
        let mut places = self.write();
        let Some(place) = places.all.get_mut(&index) else { return Groups::new() };
        let epoch = epoch.unwrap_or(place.epoch);
        if epoch < place.epoch {
            return Groups::new();
        }
        place.epoch = epoch;
        place.let_go()
    }

    /// The log of the partition is gone, and with it whatever was heard of it: the next one of its name begins anew.
    /// Returns the groups that are to end.
    pub(super) fn deleted(&self, index: i32) -> Groups {
        self.write().all.remove(&index).map(|place| place.groups).unwrap_or_default()
    }

    /// Forgets everything.
    pub(super) fn let_go(&self) {
        let places = std::mem::take(&mut self.write().all);
        drop(places);
    }

    /// Whether the load is still waited for.
    pub(super) fn is_loading(&self, load: Load) -> bool {
        self.read().all.get(&load.index).is_some_and(|place| place.standing == Standing::Loading(load))
    }

    /// The partition is loaded; it is served from now on, and what its groups write goes `home`.
    ///
    /// # Errors
    /// The groups, and why they are not served.
    pub(super) fn loaded(&self, load: Load, home: Home, groups: Groups) -> Result<(), (Groups, NotServed)> {
        let mut places = self.write();
        let Some(place) = places.waiting_for(load) else { return Err((groups, NotServed::Overtaken)) };
        if !place.deleted.is_empty() {
            return Err((groups, NotServed::Deleted(std::mem::take(&mut place.deleted))));
        }
        place.standing = Standing::Owned;
        place.home = home;
        place.groups = groups;
        Ok(())
    }

    /// The partition cannot be loaded.
    pub(super) fn failed(&self, load: Load) {
        if let Some(place) = self.write().waiting_for(load) {
            place.standing = Standing::Failed(load);
        }
    }

    /// A load that has failed is done again, if it is still the last one.
    pub(super) fn retried(&self, load: Load) -> Option<Load> {
        let mut places = self.write();
        let Places { all, loads } = &mut *places;
        let place = all.get_mut(&load.index).filter(|place| place.standing == Standing::Failed(load))?;
        *loads = loads.wrapping_add(1);
        let again = Load { failures: load.failures.saturating_add(1), number: *loads, ..load };
        place.standing = Standing::Loading(again);
        Some(again)
    }

    /// The partition is not loaded, since this broker cannot lead it.
    pub(super) fn given_up(&self, load: Load) {
        if let Some(place) = self.write().waiting_for(load) {
            place.let_go();
        }
    }

    /// Partitions are gone: groups that are being loaded, or are to be some day, will hear of it. Returns the groups that are to hear of it now.
    pub(super) fn partitions_deleted(&self, partitions: &BTreeSet<TopicPartition>) -> Vec<Arc<Slot>> {
        let mut places = self.write();
        let waiting = |place: &&mut Place| place.standing.ownership() == Ownership::Loading;
        for place in places.all.values_mut().filter(waiting) {
            place.deleted.extend(partitions.iter().cloned());
        }
        places.slots()
    }

    /// All groups.
    pub(super) fn slots(&self) -> Vec<Arc<Slot>> {
        self.read().slots()
    }

    /// Whether a partition is being loaded. Those that could not be do not count: nobody knows when they will be.
    pub(super) fn is_any_loading(&self) -> bool {
        self.read().all.values().any(|place| matches!(place.standing, Standing::Loading(_)))
    }

    fn read(&self) -> RwLockReadGuard<'_, Places> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Places> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Places {
    fn slots(&self) -> Vec<Arc<Slot>> {
        self.all.values().flat_map(|place| place.groups.values().cloned()).collect()
    }

    /// The partition that the load is done for, if it is still waited for.
    fn waiting_for(&mut self, load: Load) -> Option<&mut Place> {
        self.all.get_mut(&load.index).filter(|place| place.standing == Standing::Loading(load))
    }
}

impl Place {
    /// Another broker is the coordinator. Returns the groups that are to end.
    fn let_go(&mut self) -> Groups {
        self.standing = Standing::Elsewhere;
        self.home = Home::default();
        self.deleted.clear();
        std::mem::take(&mut self.groups)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: i32 = 3;

    fn epoch(n: i32) -> LeaderEpoch {
        LeaderEpoch(n)
    }

    fn owned(registry: &Registry) -> Ownership {
        registry.find(P, "g").0
    }

    fn load(registry: &Registry, n: i32) -> Load {
        registry.elected(P, epoch(n)).unwrap()
    }

    fn end(registry: &Registry, load: Load) -> Result<(), NotServed> {
        registry.loaded(load, Home::default(), Groups::new()).map_err(|(_, why)| why)
    }

    fn loaded(registry: &Registry, n: i32) {
        end(registry, load(registry, n)).unwrap();
    }

    #[test]
    fn a_partition_is_loaded_when_it_is_led_anew_and_not_with_every_epoch() {
        let registry = Registry::default();
        let load = load(&registry, 1);
        assert_eq!(registry.elected(P, epoch(2)), None);
        assert!(registry.is_loading(load) && owned(&registry) == Ownership::Loading);
        end(&registry, load).unwrap();
        assert_eq!(registry.elected(P, epoch(3)), None);
        assert_eq!(owned(&registry), Ownership::Owned);
        registry.resigned(P, Some(epoch(4)));
        assert_eq!(owned(&registry), Ownership::Elsewhere);
        assert!(registry.elected(P, epoch(5)).is_some());
    }

    // KAFKA-10614
    #[test]
    fn orders_of_earlier_epochs_come_too_late() {
        let registry = Registry::default();
        loaded(&registry, 5);
        registry.resigned(P, Some(epoch(4)));
        assert_eq!(owned(&registry), Ownership::Owned);
        registry.resigned(P, Some(epoch(6)));
        assert_eq!(registry.elected(P, epoch(5)), None);
        assert_eq!(owned(&registry), Ownership::Elsewhere);
    }

    #[test]
    fn a_partition_whose_log_is_gone_begins_anew_whatever_its_epoch_was() {
        let registry = Registry::default();
        let first = load(&registry, 3);
        registry.deleted(P);
        assert_eq!(owned(&registry), Ownership::Elsewhere);
        let second = load(&registry, 0);
        registry.deleted(P);
        let third = load(&registry, 0);
        // The logs that these have read are gone.
        for gone in [first, second] {
            assert_eq!(end(&registry, gone), Err(NotServed::Overtaken));
        }
        end(&registry, third).unwrap();
        assert_eq!(owned(&registry), Ownership::Owned);
    }

    #[test]
    fn the_end_of_a_load_counts_only_for_the_leadership_it_was_begun_for() {
        let registry = Registry::default();
        let first = load(&registry, 1);
        registry.resigned(P, None);
        let second = load(&registry, 2);
        assert_eq!(end(&registry, first), Err(NotServed::Overtaken));
        registry.failed(first);
        registry.given_up(first);
        assert!(registry.is_loading(second));
        end(&registry, second).unwrap();
        assert_eq!(owned(&registry), Ownership::Owned);
    }

    #[test]
    fn what_is_deleted_during_a_load_is_told_before_anybody_is_served() {
        let registry = Registry::default();
        let gone = BTreeSet::from([TopicPartition::new("t", 0)]);
        let load = load(&registry, 1);
        assert!(registry.partitions_deleted(&gone).is_empty());
        assert_eq!(end(&registry, load), Err(NotServed::Deleted(gone.clone())));
        assert_eq!(owned(&registry), Ownership::Loading);
        end(&registry, load).unwrap();
        assert_eq!(owned(&registry), Ownership::Owned);
        // The next load reads what was written about it.
        registry.partitions_deleted(&gone);
        registry.resigned(P, Some(epoch(2)));
        loaded(&registry, 3);
    }

    #[test]
    fn a_partition_that_cannot_be_read_stays_loading_until_it_is_led_again() {
        let registry = Registry::default();
        registry.failed(load(&registry, 1));
        assert_eq!(owned(&registry), Ownership::Loading);
        assert!(!registry.is_any_loading(), "others are listed without it");
        loaded(&registry, 2);
        assert_eq!(owned(&registry), Ownership::Owned);
    }

    #[test]
    fn a_load_that_has_failed_is_done_again_unless_something_else_was_heard_since() {
        let registry = Registry::default();
        let first = load(&registry, 1);
        assert_eq!(registry.retried(first), None, "it has not ended");
        registry.failed(first);
        let gone = BTreeSet::from([TopicPartition::new("t", 0)]);
        registry.partitions_deleted(&gone);
        let second = registry.retried(first).unwrap();
        assert_eq!((second.epoch, second.failures), (epoch(1), 1));
        assert_eq!(registry.retried(first), None, "only once");
        assert_eq!(end(&registry, second), Err(NotServed::Deleted(gone)));
        registry.failed(second);
        let third = load(&registry, 2);
        assert_eq!((registry.retried(second), third.failures), (None, 0));
    }

    #[test]
    fn a_load_that_is_given_up_leaves_the_partition_to_others() {
        let registry = Registry::default();
        registry.given_up(load(&registry, 1));
        assert_eq!(owned(&registry), Ownership::Elsewhere);
    }
}
