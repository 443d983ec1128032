//! From a key to its latest offset, in memory that is bounded whatever the keys are: 24 bytes for each.
//!
//! Not the key is kept but its hash of 128 bits. Two keys with the same one would be taken for one, and the older record
//! lost; with n keys that happens with a probability of about n²/2^129, for a thousand million keys 10^-21. Kafka takes
//! MD5. Nobody gains by making such keys on purpose: who may write a key may also overwrite it. So speed decides, and
//! XXH3 of a well-kept library that is part of every build (the codec LZ4 needs it) is about ten times as fast. The seed
//! differs from pass to pass.

use twox_hash::xxhash3_128::Hasher;
use wire::types::Offset;

/// The bytes of an entry: a hash and an offset.
pub(crate) const ENTRY_BYTES: u64 = 24;

/// A slot: the two halves of the hash, and one more than the offset; a free slot has 0 there.
type Slot = [u64; 3];

/// The map; see the module's text.
#[derive(Debug)]
pub(crate) struct OffsetMap {
    slots: Vec<Slot>,
    seed: u64,
    len: usize,
    most: usize,
    latest: Offset,
}

impl OffsetMap {
    /// An empty map of `slots` slots (at least two) that takes entries until `load_factor` of them are in use. One slot
    /// always stays free, so that a search ends. Memory is used when slots are.
    pub(crate) fn new(slots: usize, load_factor: f64) -> Self {
        let slots = slots.max(2);
        let most = (slots as f64 * load_factor) as usize;
        let most = most.clamp(1, slots.saturating_sub(1));
        // Zeroed by the system, page by page when they are touched.
        Self { slots: vec![[0; 3]; slots], seed: fastrand::u64(..), len: 0, most, latest: Offset(-1) }
    }

    /// Notes `offset` as the latest of `key`, and as covered. Returns false, and notes nothing, if the key is new and
    /// the map full.
    pub(crate) fn put(&mut self, key: &[u8], offset: Offset) -> bool {
        let hash = self.hash(key);
        let (at, known) = self.find(hash);
        if known.is_none() && self.len >= self.most {
            return false;
        }
        if let (Some(slot), Ok(one)) = (self.slots.get_mut(at), u64::try_from(offset.0)) {
            let [high, low] = hash;
            *slot = [high, low, one.saturating_add(1)];
        }
        self.len += usize::from(known.is_none());
        self.cover(offset);
        true
    }

    /// The latest offset of `key`, if the map has it.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Offset> {
        self.find(self.hash(key)).1
    }

    /// Says that the map knows all keys up to `offset` (inclusive).
    pub(crate) fn cover(&mut self, offset: Offset) {
        self.latest = self.latest.max(offset);
    }

    /// The last offset up to which the map knows all keys (inclusive); -1 if nothing is covered.
    pub(crate) fn latest(&self) -> Offset {
        self.latest
    }

    /// The number of keys.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn hash(&self, key: &[u8]) -> [u64; 2] {
        let hash = Hasher::oneshot_with_seed(self.seed, key);
        [(hash >> 64) as u64, hash as u64]
    }

    /// The slot of a hash, or the free one where it belongs, and the offset that it has.
    fn find(&self, [high, low]: [u64; 2]) -> (usize, Option<Offset>) {
        let count = self.slots.len();
        // The high half times the number of slots, divided by 2^64: evenly spread without a division.
        let mut at = ((u128::from(high) * count as u128) >> 64) as usize;
        loop {
            match self.slots.get(at) {
                Some([_, _, 0]) => return (at, None),
                Some([h, l, offset]) if (*h, *l) == (high, low) => {
                    return (at, i64::try_from(offset.saturating_sub(1)).ok().map(Offset));
                }
                Some(_) => at += 1,
                None => at = 0,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_map_takes_entries_up_to_its_load_and_then_only_known_keys() {
        let mut map = OffsetMap::new(10, 0.5);
        for key in 0..5u8 {
            assert!(map.put(&[key], Offset(i64::from(key))));
        }
        assert!(!map.put(b"new", Offset(9)));
        assert_eq!((map.get(b"new"), map.latest()), (None, Offset(4)));
        assert!(map.put(&[0], Offset(10)));
        assert_eq!((map.get(&[0]), map.latest()), (Some(Offset(10)), Offset(10)));
        assert_eq!(map.len(), 5);
    }

    #[test]
    fn a_slot_stays_free_whatever_the_load_factor() {
        for factor in [1.0, 5.0, f64::INFINITY] {
            let mut map = OffsetMap::new(4, factor);
            let taken = (0..10u8).filter(|key| map.put(&[*key], Offset(1))).count();
            assert_eq!(taken, 3);
            assert_eq!(map.get(b"unknown"), None);
        }
        for factor in [0.0, -1.0, f64::NAN] {
            let mut map = OffsetMap::new(4, factor);
            assert!(map.put(b"a", Offset(1)) && !map.put(b"b", Offset(2)));
        }
    }

    #[test]
    fn an_empty_key_and_offset_zero_are_entries_like_others() {
        let mut map = OffsetMap::new(10, 0.9);
        assert_eq!((map.get(b""), map.latest()), (None, Offset(-1)));
        assert!(map.put(b"", Offset(0)));
        assert_eq!((map.get(b""), map.latest()), (Some(Offset(0)), Offset(0)));
    }

    proptest! {
        #[test]
        fn it_is_a_map(entries in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..3), 0i64..1000), 0..300)) {
            let (mut map, mut model) = (OffsetMap::new(310, 1.0), BTreeMap::new());
            for (key, offset) in entries {
                prop_assert!(map.put(&key, Offset(offset)));
                model.insert(key, offset);
            }
            for key in (0..=255u8).map(|byte| vec![byte]).chain(model.keys().cloned()) {
                prop_assert_eq!(map.get(&key).map(|offset| offset.0), model.get(&key).copied());
            }
        }
    }
}
