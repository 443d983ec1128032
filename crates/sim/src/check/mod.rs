//! The judges. They see what clients saw, what the tree holds and what lies on the disks; they know nothing of how the
//! brokers work.

pub(crate) mod compacted;
pub(crate) mod latest;
pub(crate) mod log;
pub(crate) mod offsets;
pub(crate) mod records;
pub(crate) mod replicas;
pub(crate) mod rest;
pub(crate) mod starts;
pub(crate) mod tree;

use std::sync::{Mutex, PoisonError};

use crate::world::World;

/// How many findings of one run are kept: the first ones tell most.
const KEPT: usize = 20;

/// What the judges have found.
#[derive(Debug, Default)]
pub(crate) struct Findings(Mutex<Vec<String>>);

impl Findings {
    /// Something that must not be.
    pub(crate) fn add(&self, world: &World, finding: String) {
        let mut findings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if findings.len() < KEPT && !findings.contains(&finding) {
            world.matters(format_args!("FINDING {finding}"));
            findings.push(finding);
        }
    }

    /// All findings so far.
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
