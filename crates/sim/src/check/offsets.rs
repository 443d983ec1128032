//! The end of a partition, as clients are told it, never falls: whoever asks after an answer hears at least as much from
//! the same leader or a later one (KIP-207).

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::world::World;

/// An answer to the question for the latest offset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    /// The epoch that the client named; the leader led in it.
    pub(crate) epoch: i32,
    pub(crate) offset: i64,
    /// When it was asked, in microseconds of virtual time; it is answered now.
    pub(crate) asked_us: u64,
}

/// The highest offset told in an epoch: first at which time.
#[derive(Clone, Copy, Debug)]
struct Seen {
    offset: i64,
    at_us: u64,
}

/// See the module's text.
#[derive(Default)]
pub(crate) struct Offsets(Mutex<BTreeMap<(String, i32), ByEpoch>>);

/// What was told in each epoch, rising.
type ByEpoch = BTreeMap<i32, Vec<Seen>>;

/// How many of the answers of one epoch are kept: each higher than the one before.
const KEPT: usize = 64;

impl Offsets {
    /// A client is told the end of a partition of which nothing may be lost.
    pub(crate) fn told(&self, world: &World, topic: &str, partition: i32, told: Told) {
        let fallen = {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let epochs = all.entry((topic.to_owned(), partition)).or_default();
            let earlier =
                epochs.range(..=told.epoch).flat_map(|(epoch, seen)| seen.iter().map(|it| (*epoch, *it)));
            let fallen = earlier
                .filter(|(_, seen)| seen.at_us < told.asked_us && seen.offset > told.offset)
                .max_by_key(|(_, seen)| seen.offset);
            let of_epoch = epochs.entry(told.epoch).or_default();
            if of_epoch.last().is_none_or(|last| last.offset < told.offset) {
                if of_epoch.len() >= KEPT {
                    of_epoch.remove(0);
                }
                of_epoch.push(Seen { offset: told.offset, at_us: world.schedule.now_us() });
            }
            fallen
        };
        if let Some((epoch, seen)) = fallen {
            let finding = format!(
                "{topic}-{partition}: its end falls from {} in epoch {epoch} to {} in epoch {}",
                seen.offset, told.offset, told.epoch
            );
            world.findings.add(world, finding);
        }
    }
}
