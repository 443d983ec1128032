//! Keys: in a log that is compacted the last record of each key stays, and where that is a tombstone, it or nothing of the
//! key. What was overwritten may be there still, below; nothing comes back, and nothing is there that nobody wrote.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use super::records::Confirmed;
use crate::world::World;

/// How many faults of one log are told.
const TOLD: usize = 5;

/// See the module's text. Of each key one producer writes, one batch after the other.
#[derive(Default)]
pub(crate) struct Latest(Mutex<BTreeMap<(String, i32), Keys>>);

#[derive(Default)]
struct Keys {
    /// The last record of each key that was confirmed.
    last: BTreeMap<String, String>,
    /// All that were.
    confirmed: BTreeSet<String>,
}

impl Latest {
    /// A producer was told that a batch is written by all.
    pub(crate) fn confirmed(&self, confirmed: &Confirmed) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let keys = all.entry((confirmed.topic.clone(), confirmed.partition)).or_default();
        for record in &confirmed.records {
            if let Some((key, _)) = record.split_once('=') {
                keys.last.insert(key.to_owned(), record.clone());
                keys.confirmed.insert(record.clone());
            }
        }
    }

    /// At rest these are all records of a partition, in order, `by` whom they are told.
    pub(crate) fn judge(
        &self,
        world: &World,
        (topic, partition): (&str, i32),
        by: &str,
        whole: &[(i64, String)],
    ) {
        let wrong = {
            let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            all.get(&(topic.to_owned(), partition)).map_or(Vec::new(), |keys| keys.wrong(whole))
        };
        for wrong in wrong {
            world.findings.add(world, format!("{topic}-{partition}, as {by} has it: {wrong}"));
        }
    }
}

impl Keys {
    /// What is wrong with a log.
    fn wrong(&self, whole: &[(i64, String)]) -> Vec<String> {
        let (mut at, mut present): (BTreeMap<&str, i64>, BTreeMap<&str, &str>) = Default::default();
        let mut wrong = Vec::new();
        for (offset, record) in whole {
            let Some((key, value)) = record.split_once('=').filter(|_| self.confirmed.contains(record))
            else {
                wrong.push(format!("{record} at {offset} was never confirmed"));
                continue;
            };
            present.insert(key, record);
            // Tombstones of a key are all alike.
            if let Some(before) = at.insert(record, *offset).filter(|_| !value.is_empty()) {
                wrong.push(format!("{record} stands at {before} and at {offset}"));
            }
        }
        for (key, last) in &self.last {
            match present.get(key.as_str()) {
                Some(record) if record == last => {}
                None if last.ends_with('=') => {}
                other => wrong.push(format!("the last record of {key} is {other:?}, and was {last}")),
            }
        }
        wrong.truncate(TOLD);
        wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(confirmed: &[&str], whole: &[&str]) -> usize {
        let latest = Latest::default();
        let records = confirmed.iter().map(ToString::to_string).collect();
        latest.confirmed(&Confirmed { topic: "t".to_owned(), partition: 0, offset: None, records });
        let whole: Vec<_> = (0..).zip(whole.iter().map(ToString::to_string)).collect();
        let keys = latest.0.into_inner().unwrap().remove(&("t".to_owned(), 0)).unwrap();
        keys.wrong(&whole).len()
    }

    #[test]
    fn what_was_overwritten_may_stay_and_the_last_of_each_key_must() {
        let confirmed = ["a=1", "b=1", "a=2"];
        assert_eq!(wrong(&confirmed, &["a=1", "b=1", "a=2"]), 0);
        assert_eq!(wrong(&confirmed, &["b=1", "a=2"]), 0);
        assert_eq!(wrong(&confirmed, &["a=1", "b=1"]), 1);
        assert_eq!(wrong(&confirmed, &["b=1"]), 1);
        assert_eq!(wrong(&confirmed, &["b=1", "a=2", "a=1"]), 1);
    }

    #[test]
    fn of_a_key_with_a_tombstone_nothing_stays_but_the_tombstone() {
        let confirmed = ["a=1", "a=", "a=2", "a="];
        assert_eq!(wrong(&confirmed, &[]), 0);
        assert_eq!(wrong(&confirmed, &["a=", "a=2", "a="]), 0);
        assert_eq!(wrong(&confirmed, &["a=", "a=2"]), 1);
    }

    #[test]
    fn nothing_stands_twice_or_was_never_written() {
        assert_eq!(wrong(&["a=1"], &["a=1", "a=1"]), 1);
        assert_eq!(wrong(&["a=1"], &["a=0", "a=1"]), 1);
    }
}
