//! What this broker is for each partition of `__consumer_offsets`, and the groups of those that it leads.
//!
//! An order counts if its epoch is not below the highest that was heard for the partition (KAFKA-10614). A load belongs to
//! the epoch it was begun in: its end means nothing once the partition has been let go, or is being loaded again.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use kernel::group::gate::Ownership;
use wire::Str;
use wire::types::LeaderEpoch;

use super::slot::Slot;

/// All partitions that were ever heard of.
#[derive(Default)]
pub(super) struct Registry(RwLock<BTreeMap<i32, Place>>);

/// One partition.
struct Place {
    epoch: LeaderEpoch,
    standing: Standing,
    groups: Groups,
}

/// The groups of one partition.
type Groups = BTreeMap<Str, Arc<Slot>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Another broker is the coordinator.
    Elsewhere,
    /// The records are being read, since this epoch.
    Loading(LeaderEpoch),
    /// The records cannot be read.
    Failed,
    /// This broker is the coordinator, since this epoch.
    Owned(LeaderEpoch),
}

impl Standing {
    const fn ownership(self) -> Ownership {
        match self {
            Self::Elsewhere => Ownership::Elsewhere,
            // A partition that cannot be read wholly is not served: what is missing would be taken for never committed.
            Self::Loading(_) | Self::Failed => Ownership::Loading,
            Self::Owned(_) => Ownership::Owned,
        }
    }
}

impl Registry {
    /// What this broker is for the partition, and the group if it is there.
    pub(super) fn find(&self, index: i32, group_id: &str) -> (Ownership, Option<Arc<Slot>>) {
        let places = self.read();
        let Some(place) = places.get(&index) else { return (Ownership::Elsewhere, None) };
        (place.standing.ownership(), place.groups.get(group_id).cloned())
    }

    /// The group, made by `make` with the epoch of the partition's load if it is not there.
    ///
    /// # Errors
    /// What this broker is for the partition, if it is not the coordinator.
    pub(super) fn find_or_make(
        &self,
        index: i32,
        group_id: &str,
        make: impl FnOnce(LeaderEpoch) -> Arc<Slot>,
    ) -> Result<Arc<Slot>, Ownership> {
        let mut places = self.write();
        let place = places.get_mut(&index).ok_or(Ownership::Elsewhere)?;
        let Standing::Owned(led_since) = place.standing else { return Err(place.standing.ownership()) };
        if let Some(slot) = place.groups.get(group_id) {
            return Ok(slot.clone());
        }
        let slot = make(led_since);
        place.groups.insert(slot.group_id().clone(), slot.clone());
        Ok(slot)
    }

    /// The group is gone; another of its name may be there already.
    pub(super) fn forget(&self, slot: &Arc<Slot>) {
        let mut places = self.write();
        let Some(place) = places.get_mut(&slot.index()) else { return };
        if place.groups.get(slot.group_id()).is_some_and(|it| Arc::ptr_eq(it, slot)) {
            place.groups.remove(slot.group_id());
        }
    }

    /// This broker leads the partition in `epoch`. Whether it must be loaded: not if it has led it before, and goes on.
    pub(super) fn elected(&self, index: i32, epoch: LeaderEpoch) -> bool {
        let mut places = self.write();
        let place = places.entry(index).or_insert(Place {
            epoch,
            standing: Standing::Elsewhere,
            groups: Groups::new(),
        });
        if epoch < place.epoch {
            return false;
        }
        place.epoch = epoch;
        if matches!(place.standing, Standing::Loading(_) | Standing::Owned(_)) {
            return false;
        }
        place.standing = Standing::Loading(epoch);
        true
    }

    /// This broker does not lead the partition any more, by a decision of `epoch` if that is known. Returns the groups
    /// that are to end.
    pub(super) fn resigned(&self, index: i32, epoch: Option<LeaderEpoch>) -> Vec<Arc<Slot>> {
        let mut places = self.write();
        let Some(place) = places.get_mut(&index) else { return Vec::new() };
        let epoch = epoch.unwrap_or(place.epoch);
        if epoch < place.epoch {
            return Vec::new();
        }
        place.epoch = epoch;
        place.standing = Standing::Elsewhere;
        std::mem::take(&mut place.groups).into_values().collect()
    }

    /// Whether the partition is still to be loaded for the leadership of `epoch`.
    pub(super) fn is_loading(&self, index: i32, epoch: LeaderEpoch) -> bool {
        self.read().get(&index).is_some_and(|place| place.standing == Standing::Loading(epoch))
    }

    /// The partition is loaded; it is served from now on.
    ///
    /// # Errors
    /// The groups, if nobody waits for this load any more.
    pub(super) fn loaded(
        &self,
        index: i32,
        epoch: LeaderEpoch,
        slots: Vec<Arc<Slot>>,
    ) -> Result<(), Vec<Arc<Slot>>> {
        let mut places = self.write();
        let place = places.get_mut(&index).filter(|place| place.standing == Standing::Loading(epoch));
        let Some(place) = place else { return Err(slots) };
        place.standing = Standing::Owned(epoch);
        place.groups = slots.into_iter().map(|slot| (slot.group_id().clone(), slot)).collect();
        Ok(())
    }

    /// The partition cannot be loaded.
    pub(super) fn failed(&self, index: i32, epoch: LeaderEpoch) {
        let mut places = self.write();
        if let Some(place) = places.get_mut(&index).filter(|place| place.standing == Standing::Loading(epoch))
        {
            place.standing = Standing::Failed;
        }
    }

    /// All groups.
    pub(super) fn slots(&self) -> Vec<Arc<Slot>> {
        self.read().values().flat_map(|place| place.groups.values().cloned()).collect()
    }

    /// Whether there is no group.
    pub(super) fn is_empty(&self) -> bool {
        self.read().values().all(|place| place.groups.is_empty())
    }

    /// Whether a partition is being loaded, or could not be.
    pub(super) fn is_any_loading(&self) -> bool {
        self.read().values().any(|place| place.standing.ownership() == Ownership::Loading)
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<i32, Place>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<i32, Place>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
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

    #[test]
    fn a_partition_is_loaded_when_it_is_led_anew_and_not_with_every_epoch() {
        let registry = Registry::default();
        assert!(registry.elected(P, epoch(1)));
        assert!(!registry.elected(P, epoch(2)));
        assert!(registry.is_loading(P, epoch(1)) && owned(&registry) == Ownership::Loading);
        registry.loaded(P, epoch(1), Vec::new()).unwrap();
        assert!(!registry.elected(P, epoch(3)));
        assert_eq!(owned(&registry), Ownership::Owned);
        registry.resigned(P, Some(epoch(4)));
        assert_eq!(owned(&registry), Ownership::Elsewhere);
        assert!(registry.elected(P, epoch(5)));
    }

    // KAFKA-10614
    #[test]
    fn orders_of_earlier_epochs_come_too_late() {
        let registry = Registry::default();
        registry.elected(P, epoch(5));
        registry.loaded(P, epoch(5), Vec::new()).unwrap();
        registry.resigned(P, Some(epoch(4)));
        assert_eq!(owned(&registry), Ownership::Owned);
        registry.resigned(P, Some(epoch(6)));
        assert!(!registry.elected(P, epoch(5)));
        assert_eq!(owned(&registry), Ownership::Elsewhere);
    }

    #[test]
    fn the_end_of_a_load_counts_only_for_the_leadership_it_was_begun_for() {
        let registry = Registry::default();
        registry.elected(P, epoch(1));
        registry.resigned(P, None);
        registry.elected(P, epoch(2));
        assert!(registry.loaded(P, epoch(1), Vec::new()).is_err());
        registry.failed(P, epoch(1));
        assert!(registry.is_loading(P, epoch(2)));
        registry.loaded(P, epoch(2), Vec::new()).unwrap();
        assert_eq!(owned(&registry), Ownership::Owned);
    }

    #[test]
    fn a_partition_that_cannot_be_read_stays_loading_until_it_is_led_again() {
        let registry = Registry::default();
        registry.elected(P, epoch(1));
        registry.failed(P, epoch(1));
        assert_eq!(owned(&registry), Ownership::Loading);
        assert!(registry.is_any_loading());
        assert!(registry.elected(P, epoch(2)));
        registry.loaded(P, epoch(2), Vec::new()).unwrap();
        assert!(!registry.is_any_loading());
    }
}
