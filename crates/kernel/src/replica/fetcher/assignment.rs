//! Which of the fetchers of one leader a partition belongs to: the same one on every broker and after every restart.

use wire::types::TopicPartition;

/// The number of the fetcher for a partition, from 0 to below `fetchers` (`num.replica.fetchers`).
pub fn fetcher_of(partition: &TopicPartition, fetchers: u32) -> u32 {
    // The hash of a Java string, over UTF-16 units.
    let hash = partition
        .topic
        .as_str()
        .encode_utf16()
        .fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    let mixed = hash.wrapping_mul(31).wrapping_add(partition.partition);
    // The smallest number has no positive counterpart and counts as 0.
    let positive = mixed.checked_abs().unwrap_or(0).unsigned_abs();
    positive.checked_rem(fetchers).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(topic: &str, partition: i32, fetchers: u32) -> u32 {
        fetcher_of(&TopicPartition::new(topic, partition), fetchers)
    }

    #[test]
    fn partitions_are_spread_by_the_hash_of_their_topic_and_their_index() {
        // "a" hashes to 97; 31 * 97 = 3007.
        assert_eq!([of("a", 0, 4), of("a", 1, 4), of("a", 2, 4)], [3, 0, 1]);
        assert_eq!(of("a", 0, 1000), 7);
        // "topic" hashes to 110546223; 31 times that wraps to -868034383, and the amount counts.
        assert_eq!(of("topic", 0, 1_000_000_000), 868_034_383);
        assert_eq!(of("topic", 3, 1_000_000_000), 868_034_380);
    }

    #[test]
    fn the_smallest_number_counts_as_zero() {
        // "polygenelubricants" hashes to -2147483648, and so does 31 times that.
        assert_eq!(of("polygenelubricants", 0, 7), 0);
        assert_eq!(of("polygenelubricants", 1, 1000), 647);
    }

    #[test]
    fn a_single_fetcher_has_all_partitions() {
        for partition in 0..50 {
            assert_eq!(of("some-topic", partition, 1), 0);
        }
        assert_eq!(of("some-topic", 0, 0), 0, "no number of fetchers makes it fail");
    }
}
