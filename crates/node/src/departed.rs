//! What had happened to replicas that are no longer here, for those who ask why.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use wire::types::TopicPartition;

use crate::partition::Happened;

/// How many replicas are remembered after their removal; the oldest make room.
const KEPT: usize = 256;

/// The histories of removed replicas, in the order of their removal.
#[derive(Debug, Default)]
pub(crate) struct Departed(Mutex<VecDeque<(TopicPartition, Vec<Happened>)>>);

impl Departed {
    /// A replica was removed.
    pub(crate) fn add(&self, name: &TopicPartition, history: Vec<Happened>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= KEPT {
            all.pop_front();
        }
        all.push_back((name.clone(), history));
    }

    /// What had happened to the replicas of this name, the oldest first.
    pub(crate) fn of(&self, name: &TopicPartition) -> Vec<Happened> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of = all.iter().filter(|(other, _)| other == name);
        of.flat_map(|(_, history)| history.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_replicas_are_remembered_and_no_more() {
        let departed = Departed::default();
        for number in 0..i32::try_from(KEPT).unwrap() + 10 {
            departed.add(&TopicPartition::new("t", number), Vec::new());
        }
        let first = departed.0.lock().unwrap().front().unwrap().0.partition;
        assert_eq!((departed.0.lock().unwrap().len(), first), (KEPT, 10));
    }
}
