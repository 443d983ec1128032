//! What a run has come to.

use std::collections::BTreeMap;

use crate::plan::Plan;
use crate::world::Fault;

/// What a run has come to.
#[derive(Clone, Debug)]
pub struct Report {
    /// The run.
    pub plan: Plan,
    /// The digest of all that happened, and how many lines that were.
    pub digest: (u64, u64),
    /// How often each kind of fault happened.
    pub faults: BTreeMap<Fault, u64>,
    /// How often each state of the controller's two machines was entered.
    pub states: BTreeMap<String, u64>,
    /// How often clients had what they wanted, by what that was.
    pub done: BTreeMap<&'static str, u64>,
    /// What must not be.
    pub findings: Vec<String>,
    /// The last lines of the trace that explain findings.
    pub last_lines: Vec<String>,
}
