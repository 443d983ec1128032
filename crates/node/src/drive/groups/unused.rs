//! The groups that hold nothing: no member, nobody about to join, no offset.
//!
//! A JoinGroup that is refused leaves one, a member that does not come back with its id, a commit that fails. They are
//! listed as Empty, and end when offsets expire next (KIP-211); whoever may name a group could fill the memory with them
//! until then. So there is a limit, and when it is passed the oldest of them ends at once. Groups that were loaded count
//! only when something happens to them: there are as many of those as the log has records.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::slot::Slot;

/// So many bytes of memory such groups of a broker may take together: sixteen thousand of them, if their names are short.
pub(super) const MOST_BYTES: usize = 16 << 20;

/// What one takes without its name, about, in bytes.
const GROUP_BYTES: usize = 1 << 10;

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Unused(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    /// By their numbers, the oldest first.
    groups: BTreeMap<u64, Arc<Slot>>,
    next: u64,
    bytes: usize,
}

impl Unused {
    /// A group holds nothing any more. Returns its number, and the oldest ones that are too many now: these are to end,
    /// and do not count any more.
    pub(super) fn add(&self, slot: &Arc<Slot>) -> (u64, Vec<Arc<Slot>>) {
        let mut queue = self.lock();
        let number = queue.next;
        queue.next = number.wrapping_add(1);
        queue.groups.insert(number, slot.clone());
        queue.bytes = queue.bytes.saturating_add(bytes(slot));
        let mut too_many = Vec::new();
        while queue.bytes > MOST_BYTES
            && let Some((_, oldest)) = queue.groups.pop_first()
        {
            queue.bytes = queue.bytes.saturating_sub(bytes(&oldest));
            too_many.push(oldest);
        }
        (number, too_many)
    }

    /// The group of this number holds something, or has ended.
    pub(super) fn remove(&self, number: u64) {
        let mut queue = self.lock();
        if let Some(slot) = queue.groups.remove(&number) {
            queue.bytes = queue.bytes.saturating_sub(bytes(&slot));
        }
    }

    /// Forgets everything.
    pub(super) fn let_go(&self) {
        let groups = std::mem::take(&mut *self.lock());
        drop(groups);
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bytes(slot: &Slot) -> usize {
    slot.group_id().len().saturating_add(GROUP_BYTES)
}

#[cfg(test)]
mod tests {
    use super::super::tests::named;
    use super::*;

    /// A name of so many bytes makes a group a sixteenth of what all may take.
    const NAME_BYTES: usize = MOST_BYTES / 16 - GROUP_BYTES;

    fn large() -> Arc<Slot> {
        named(&"g".repeat(NAME_BYTES), false)
    }

    #[test]
    fn the_oldest_end_when_there_are_too_many() {
        let unused = Unused::default();
        let slots = [(); 17].map(|()| large());
        for slot in &slots[..16] {
            assert!(unused.add(slot).1.is_empty(), "there is room for all");
        }
        let (_, too_many) = unused.add(&slots[16]);
        assert!(too_many.len() == 1 && Arc::ptr_eq(&too_many[0], &slots[0]));
    }

    #[test]
    fn those_that_hold_something_again_make_room() {
        let unused = Unused::default();
        let (first, _) = unused.add(&large());
        for _ in 1..16 {
            unused.add(&large());
        }
        unused.remove(first);
        unused.remove(first);
        assert!(unused.add(&large()).1.is_empty());
        assert_eq!(unused.add(&large()).1.len(), 1);
        unused.let_go();
        assert_eq!(unused.lock().bytes, 0);
        assert!(unused.lock().groups.is_empty());
    }

    #[test]
    fn a_long_name_takes_the_place_of_several() {
        let unused = Unused::default();
        let quarter = || named(&"g".repeat(MOST_BYTES / 64 - GROUP_BYTES), false);
        for _ in 0..4 {
            assert!(unused.add(&quarter()).1.is_empty());
        }
        for _ in 1..16 {
            assert!(unused.add(&large()).1.is_empty());
        }
        assert_eq!(unused.add(&large()).1.len(), 4);
    }
}
