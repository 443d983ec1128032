//! Which partition of an internal topic keeps an id: Java's hash of a string, modulo the number of partitions.

/// The partition, of `partitions` many, that keeps the group or transactional id `id`; 0 if there are none.
///
/// The hash runs over UTF-16 code units. The one value that has no absolute value counts as 0.
#[must_use]
pub fn partition_of(id: &str, partitions: i32) -> i32 {
    let hash =
        id.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    hash.checked_abs().unwrap_or(0).checked_rem(partitions).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_lies_where_java_puts_it() {
        for (id, partition) in [
            ("", 0),
            ("g", 3),
            ("test-group", 12),
            ("console-consumer-12345", 6),
            ("my-txn", 45),
            ("polygenelubricants", 0),
            ("grüppe😀", 13),
        ] {
            assert_eq!(partition_of(id, 50), partition, "{id}");
        }
    }

    #[test]
    fn no_partitions_are_no_accident() {
        assert_eq!(partition_of("g", 0), 0);
        assert_eq!(partition_of("g", 1), 0);
    }
}
