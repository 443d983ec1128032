//! The logs of all replicas of a partition are the same, batch by batch, below the high watermark.

use std::fmt;

use super::dump::{Batch, Dump};

/// Where two replicas, or a replica and the rules, disagree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Divergence {
    /// The replicas hold different batches.
    Different {
        /// The replica that is compared with.
        reference: String,
        /// Its batch; none: it has no more.
        expected: Option<Batch>,
        /// The other replica.
        replica: String,
        /// Its batch.
        found: Option<Batch>,
    },
    /// A replica ends too early.
    Short {
        /// The replica.
        replica: String,
        /// Its log end offset.
        end: i64,
        /// What it should reach.
        until: i64,
    },
    /// A replica's batch does not follow the one before: a gap, a step back, or an older leader epoch.
    Broken {
        /// The replica.
        replica: String,
        /// The batch before.
        before: Batch,
        /// The batch.
        batch: Batch,
    },
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = |batch: &Option<Batch>| batch.as_ref().map_or("nothing".to_owned(), ToString::to_string);
        match self {
            Self::Different { reference, expected, replica, found } => {
                write!(f, "{reference} has {}, {replica} has {}", told(expected), told(found))
            }
            Self::Short { replica, end, until } => write!(f, "{replica} ends at {end}, before {until}"),
            Self::Broken { replica, before, batch } => write!(f, "{replica} has {batch} after {before}"),
        }
    }
}

/// Compares the logs of all replicas, each with its name, from the largest of their starts up to `until`
/// (exclusive): the first difference of each replica from the first one, and each break within a log.
#[must_use]
pub fn compare_replicas(replicas: &[(String, Dump)], until: i64) -> Vec<Divergence> {
    let mut found = Vec::new();
    for (replica, dump) in replicas {
        find_breaks(replica, dump, &mut found);
        if dump.end() < until {
            found.push(Divergence::Short { replica: replica.clone(), end: dump.end(), until });
        }
    }
    let Some(((reference, first), others)) = replicas.split_first() else { return found };
    for (replica, dump) in others {
        let from = first.start().max(dump.start()).unwrap_or(0);
        let (mut expected, mut actual) = (within(first, from, until), within(dump, from, until));
        loop {
            match (expected.next(), actual.next()) {
                (None, None) => break,
                (one, other) if one == other => {}
                (one, other) => {
                    found.push(Divergence::Different {
                        reference: reference.clone(),
                        expected: one.cloned(),
                        replica: replica.clone(),
                        found: other.cloned(),
                    });
                    break;
                }
            }
        }
    }
    found
}

/// The batches that hold an offset between `from` (inclusive) and `until` (exclusive).
fn within(dump: &Dump, from: i64, until: i64) -> impl Iterator<Item = &Batch> {
    dump.batches.iter().filter(move |batch| batch.last_offset >= from && batch.base_offset < until)
}

fn find_breaks(replica: &str, dump: &Dump, found: &mut Vec<Divergence>) {
    for (before, batch) in dump.batches.iter().zip(dump.batches.iter().skip(1)) {
        if batch.base_offset != before.last_offset + 1 || batch.leader_epoch < before.leader_epoch {
            let (before, batch) = (before.clone(), batch.clone());
            found.push(Divergence::Broken { replica: replica.to_owned(), before, batch });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Draft;

    fn log(batches: &[Draft]) -> Dump {
        let mut dump = Dump::default();
        for batch in batches {
            dump.add_segment(&batch.build()).unwrap();
        }
        dump
    }

    fn batch(base_offset: i64, leader_epoch: i32, values: &[&[u8]]) -> Draft {
        Draft { base_offset, leader_epoch, ..Draft::of_values(7, values) }
    }

    fn sound() -> Vec<Draft> {
        vec![batch(0, 0, &[b"a", b"b"]), batch(2, 0, &[b"c"]), batch(3, 2, &[b"d"])]
    }

    fn compared(other: &[Draft], until: i64) -> Vec<Divergence> {
        let replicas = [("one".to_owned(), log(&sound())), ("two".to_owned(), log(other))];
        compare_replicas(&replicas, until)
    }

    #[test]
    fn equal_logs_do_not_diverge_and_what_lies_beyond_does_not_count() {
        assert_eq!(compared(&sound(), 4), []);
        let mut longer = sound();
        longer.push(batch(4, 2, &[b"not yet replicated"]));
        assert_eq!(compared(&longer, 4), []);
        let mut other_tail = sound();
        other_tail[2] = batch(3, 1, &[b"will be truncated"]);
        assert_eq!(compared(&other_tail, 3), []);
        assert_eq!(compare_replicas(&[], 0), []);
    }

    #[test]
    fn a_log_that_begins_later_is_compared_from_there() {
        assert_eq!(compared(&sound()[1..], 4), []);
        let changed = [batch(2, 0, &[b"x"]), batch(3, 2, &[b"d"])];
        assert_eq!(compared(&changed, 4).len(), 1);
    }

    #[test]
    fn another_content_epoch_or_cut_is_found_at_its_first_batch() {
        let contents = vec![batch(0, 0, &[b"a", b"b"]), batch(2, 0, &[b"C"]), batch(3, 2, &[b"D"])];
        let epochs = vec![batch(0, 0, &[b"a", b"b"]), batch(2, 1, &[b"c"]), batch(3, 2, &[b"d"])];
        let cuts = vec![batch(0, 0, &[b"a", b"b"]), batch(2, 0, &[b"c", b"d"])];
        for other in [contents, epochs, cuts] {
            let found = compared(&other, 4);
            let [Divergence::Different { expected: Some(expected), found: Some(found), .. }] = &found[..]
            else {
                panic!("{found:?}");
            };
            assert_eq!((expected.base_offset, found.base_offset), (2, 2));
        }
    }

    #[test]
    fn a_log_that_ends_too_early_is_found() {
        let found = compared(&sound()[..2], 4);
        assert_eq!(found[0], Divergence::Short { replica: "two".into(), end: 3, until: 4 });
        assert!(matches!(&found[1], Divergence::Different { expected: Some(_), found: None, .. }));
        assert_eq!(compared(&sound()[..2], 3), []);
    }

    #[test]
    fn a_gap_a_step_back_and_an_older_epoch_are_found_within_one_log() {
        let gap = vec![batch(0, 0, &[b"a"]), batch(2, 0, &[b"c"])];
        let back = vec![batch(0, 0, &[b"a", b"b"]), batch(1, 0, &[b"b"])];
        let older = vec![batch(0, 3, &[b"a"]), batch(1, 2, &[b"b"])];
        for broken in [gap, back, older] {
            let found = compare_replicas(&[("one".to_owned(), log(&broken))], 2);
            assert!(matches!(&found[..], [Divergence::Broken { .. }]), "{found:?}");
            assert!(found[0].to_string().starts_with("one has batch "), "{}", found[0]);
        }
    }
}
