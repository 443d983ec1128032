//! Which neighbouring segments become one when they are compacted: as many as fit into a segment by the size of the
//! log, of each index, and by the range of offsets.

use std::ops::Range;

use wire::types::Offset;

/// What the grouping needs to know of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// The base offset.
    pub(crate) base: Offset,
    /// The base offset of the segment after it.
    pub(crate) next_base: Offset,
    /// The size of its log in bytes.
    pub(crate) size: u64,
    /// The size of its offset index in bytes.
    pub(crate) offset_index: u64,
    /// The size of its time index in bytes.
    pub(crate) time_index: u64,
}

/// What a segment may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// `segment.bytes`.
    pub(crate) log: u64,
    /// `segment.index.bytes`.
    pub(crate) index: u64,
}

/// The groups, as ranges of `sources`, in order. A segment that is too large already is a group of its own.
pub(crate) fn groups(sources: &[Source], room: Room) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    let (mut log, mut offset_index, mut time_index) = (0u64, 0u64, 0u64);
    for (at, source) in sources.iter().enumerate() {
        let first = groups.last().and_then(|group| sources.get(group.start));
        let fits = first.is_some_and(|first| {
            log.saturating_add(source.size) <= room.log
                && offset_index.saturating_add(source.offset_index) <= room.index
                && time_index.saturating_add(source.time_index) <= room.index
                && (source.size == 0 || reaches(first.base, source.next_base))
        });
        match groups.last_mut() {
            Some(group) if fits => group.end = at.saturating_add(1),
            _ => {
                groups.push(at..at.saturating_add(1));
                (log, offset_index, time_index) = (0, 0, 0);
            }
        }
        log = log.saturating_add(source.size);
        offset_index = offset_index.saturating_add(source.offset_index);
        time_index = time_index.saturating_add(source.time_index);
    }
    groups
}

/// Whether a segment at `base` can hold every offset below `end`. Of an empty segment nobody asks: it holds none
/// (KAFKA-12889).
fn reaches(base: Offset, end: Offset) -> bool {
    end.0.checked_sub(1).and_then(|last| last.checked_sub(base.0)).is_some_and(|by| by <= i64::from(i32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room { log: 300, index: 60 };

    fn sources(sizes: &[(i64, u64)]) -> Vec<Source> {
        let next = sizes.iter().skip(1).map(|(base, _)| *base).chain([sizes.last().unwrap().0 + 10]);
        let source = |((base, size), next): (&(i64, u64), i64)| Source {
            base: Offset(*base),
            next_base: Offset(next),
            size: *size,
            offset_index: 10,
            time_index: 10,
        };
        sizes.iter().zip(next).map(source).collect()
    }

    #[test]
    fn segments_join_as_long_as_their_logs_fit_into_one() {
        let all = sources(&[(0, 100), (10, 200), (20, 1), (30, 299), (40, 1)]);
        assert_eq!(groups(&all, ROOM), [0..2, 2..4, 4..5]);
        assert_eq!(groups(&[], ROOM), []);
    }

    #[test]
    fn a_segment_that_is_too_large_stays_alone() {
        let all = sources(&[(0, 500), (10, 100), (20, 100)]);
        assert_eq!(groups(&all, ROOM), [0..1, 1..3]);
    }

    #[test]
    fn each_index_must_fit_too() {
        let mut all = sources(&[(0, 1), (10, 1), (20, 1)]);
        all[1].offset_index = 51;
        assert_eq!(groups(&all, ROOM), [0..1, 1..2, 2..3]);
        all[1].offset_index = 50;
        assert_eq!(groups(&all, ROOM), [0..2, 2..3]);
        let mut all = sources(&[(0, 1), (10, 1), (20, 1)]);
        all[2].time_index = 41;
        assert_eq!(groups(&all, ROOM), [0..2, 2..3]);
    }

    #[test]
    fn a_group_spans_no_more_offsets_than_an_index_can_tell() {
        let far = i64::from(i32::MAX);
        let mut all = sources(&[(5, 1), (100, 1), (200, 300)]);
        all[1].next_base = Offset(far + 6);
        assert_eq!(groups(&all, ROOM), [0..2, 2..3]);
        all[1].next_base = Offset(far + 7);
        assert_eq!(groups(&all, ROOM), [0..1, 1..2, 2..3]);
    }

    /// KAFKA-12889.
    #[test]
    fn empty_segments_join_however_far_they_lie_apart() {
        let far = i64::from(i32::MAX) + 1;
        let all = sources(&[(0, 10), (far, 0), (2 * far, 0), (3 * far, 10)]);
        assert_eq!(groups(&all, ROOM), [0..3, 3..4]);
    }
}
