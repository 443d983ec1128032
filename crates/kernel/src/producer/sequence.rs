//! Sequence numbers of a producer: 0 to 2147483647, then 0 again (KAFKA-7692).

/// The sequence `by` records before `sequence`.
pub fn decrement_sequence(sequence: i32, by: i32) -> i32 {
    let difference = i64::from(sequence) - i64::from(by);
    let wrapped = if difference < 0 { difference + (1 << 31) } else { difference };
    i32::try_from(wrapped).unwrap_or(i32::MAX)
}

/// Whether `next` follows directly on `last`.
pub(super) fn follows(last: i32, next: i32) -> bool {
    i64::from(next) == i64::from(last) + 1 || (next == 0 && last == i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_wrap_from_the_largest_to_zero_and_back() {
        assert_eq!(decrement_sequence(2, 5), i32::MAX - 2);
        assert_eq!(decrement_sequence(10, 3), 7);
        assert!(follows(i32::MAX, 0) && follows(-1, 0) && follows(4, 5));
        assert!(!follows(i32::MAX, 1) && !follows(4, 4) && !follows(4, 0));
    }
}
