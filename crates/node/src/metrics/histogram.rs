//! A histogram that many threads write at once without waiting for each other: one atomic counter for each range
//! of values. Ranges are exact up to 255 and then 128 to every doubling, so a value is told to within 1 %.
//!
//! Counters come in blocks that are made when their first value comes: a kind of request that takes between
//! 10 µs and 10 ms uses some 10 KiB.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters in a block; a power of two.
const BLOCK: usize = 128;
/// The bits of a value that tell its range within a doubling, and the leading one.
const KEPT_BITS: u32 = 8;
/// Two blocks for the exact values, one for each of the 56 doublings after them.
const BLOCKS: usize = 58;

type Block = Box<[AtomicU64; BLOCK]>;

/// The histogram; see the module's text.
#[derive(Debug)]
pub(super) struct Histogram {
    blocks: [OnceLock<Block>; BLOCKS],
}

impl Default for Histogram {
    fn default() -> Self {
        Self { blocks: [const { OnceLock::new() }; BLOCKS] }
    }
}

impl Histogram {
    /// Counts a value.
    pub(super) fn record(&self, value: u64) {
        let (block, slot) = place(value);
        let Some(block) = self.blocks.get(block) else { return };
        let counters = block.get_or_init(|| Box::new([const { AtomicU64::new(0) }; BLOCK]));
        if let Some(counter) = counters.get(slot) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The counts of this moment, each with the largest value of its range; only those above 0, rising.
    pub(super) fn counts(&self) -> Counts {
        let mut counts = Vec::new();
        for (at, block) in self.blocks.iter().enumerate() {
            let counters = block.get().into_iter().flat_map(|block| block.iter().enumerate());
            for (slot, counter) in counters {
                let count = counter.load(Ordering::Relaxed);
                if count > 0 {
                    counts.push((largest(at, slot), count));
                }
            }
        }
        Counts(counts)
    }
}

/// What a [`Histogram`] held at some moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Counts(Vec<(u64, u64)>);

impl Counts {
    /// How many values were counted.
    pub(super) fn total(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }

    /// The least value that at least `quantile` (above 0, up to 1) of all values do not exceed; 0 if there are
    /// none.
    pub(super) fn at_quantile(&self, quantile: f64) -> u64 {
        let total = self.total();
        #[expect(clippy::cast_precision_loss, reason = "a percentile is an estimate")]
        let wanted = quantile * total as f64;
        let mut passed = 0u64;
        let found = self.0.iter().find(|(_, count)| {
            passed = passed.saturating_add(*count);
            #[expect(clippy::cast_precision_loss, reason = "a percentile is an estimate")]
            let enough = passed as f64 >= wanted;
            enough
        });
        found.map_or(0, |(value, _)| *value)
    }
}

/// The block and the counter in it that count `value`.
fn place(value: u64) -> (usize, usize) {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(KEPT_BITS);
    let kept = usize::try_from(value >> shift).unwrap_or(usize::MAX);
    ((shift as usize).saturating_add(kept / BLOCK), kept % BLOCK)
}

/// The largest value that a counter counts.
fn largest(block: usize, slot: usize) -> u64 {
    let (shift, kept) = match block.checked_sub(1) {
        None => (0, slot),
        Some(shift) => (shift, slot.saturating_add(BLOCK)),
    };
    let next = (kept as u128).saturating_add(1) << shift;
    u64::try_from(next.saturating_sub(1)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_told_to_within_one_percent_and_small_ones_exactly() {
        let mut values: Vec<u64> = (0..2000).collect();
        values.extend((0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, (1 << bit) + 1]));
        values.push(u64::MAX);
        for value in values {
            let (block, slot) = place(value);
            let told = largest(block, slot);
            assert!(told >= value && told - value <= value / 128, "{value} is told as {told}");
            assert!(value > 255 || told == value);
            assert!(block < BLOCKS && slot < BLOCK);
        }
    }

    #[test]
    fn ranges_follow_each_other_without_gap() {
        let mut next = 0u64;
        for block in 0..BLOCKS {
            for slot in 0..BLOCK {
                assert_eq!(place(next), (block, slot));
                next = largest(block, slot).wrapping_add(1);
            }
        }
        assert_eq!(next, 0, "the last range ends with the largest number");
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_values() {
        let histogram = Histogram::default();
        assert_eq!((histogram.counts().total(), histogram.counts().at_quantile(0.5)), (0, 0));
        let mut values: Vec<u64> = (1..=1000).map(|n: u64| n * n % 7919).collect();
        values.iter().for_each(|value| histogram.record(*value));
        values.sort_unstable();
        let counts = histogram.counts();
        assert_eq!(counts.total(), 1000);
        for (quantile, rank) in [(0.001, 1), (0.5, 500), (0.75, 750), (0.99, 990), (0.999, 999), (1.0, 1000)]
        {
            let (block, slot) = place(values[rank - 1]);
            assert_eq!(counts.at_quantile(quantile), largest(block, slot), "{quantile}");
        }
    }

    #[test]
    fn nothing_is_lost_when_threads_count_at_once() {
        let histogram = Histogram::default();
        std::thread::scope(|scope| {
            for start in 0..4u64 {
                let histogram = &histogram;
                scope.spawn(move || (0..5000).for_each(|n| histogram.record(start * 1000 + n)));
            }
        });
        assert_eq!(histogram.counts().total(), 20_000);
    }
}
