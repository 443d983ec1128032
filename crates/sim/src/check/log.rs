//! The log: what an operator is told must have a reason, and states that a cluster goes through are counted where the
//! controller tells of them, as is what happens to logs.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tracing::Level;

use crate::journal;
use crate::workload::Kind;
use crate::world::World;

/// What may be told as an error while things go wrong: a part of the line, and why it is right to say it.
const REASONS: [(&str, &str); 5] = [
    ("the leader is not alive", "the partition has no leader, or it died before the others were told"),
    ("no replica may become leader", "no in-sync replica is alive, and the election is clean"),
    ("a controller of the later epoch", "a controller that was deposed, and does not know, is fenced"),
    ("the store is closed", "what was asked for in the middle of a stop is refused"),
    ("the session has expired", "what was asked for in the middle of a session's end is refused"),
];

/// How they begin to tell of it that lack what their high watermark had passed (R8).
const GONE: &str = "records that had been replicated are gone";
/// How they begin to tell that a log lacks even what lay above the records that were deleted.
const BELOW_START: &str = "the log ends below its start";

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct LogJudge(Mutex<BTreeMap<String, u64>>);

impl LogJudge {
    /// Something was logged. State changes of the controller are those that `is_state_change`.
    pub(crate) fn logged(
        &self,
        world: &World,
        level: Level,
        is_state_change: bool,
        message: &str,
        fields: &str,
    ) {
        if is_state_change && level == Level::TRACE {
            self.count_state(message);
        }
        if let Some(what) = happened(message, fields) {
            self.count(what.to_owned());
        }
        let must_not = if world.plan.with_faults { Level::ERROR } else { Level::WARN };
        if message.starts_with(GONE) || message.starts_with(BELOW_START) {
            return self.lost(world, message, fields);
        }
        let has_reason = |(part, _): &(&str, &str)| message.contains(part) || fields.contains(part);
        if level <= must_not && !(world.plan.with_faults && REASONS.iter().any(has_reason)) {
            world.findings.add(world, format!("{level} is logged without a reason: {message}"));
        }
    }

    /// A broker tells that it lacks what its high watermark has passed. A start may do so when the machine lost its power, a
    /// follower where elections are unclean.
    fn lost(&self, world: &World, message: &str, fields: &str) {
        let is_start = !message.contains("truncated from");
        let lost_power = || !world.node(journal::actor()).lock().is_same_boot;
        let is_unclean = || fields.contains(&format!("partition={}", Kind::Unclean.name()));
        let has_reason = if is_start { lost_power() } else { is_unclean() };
        if !has_reason {
            world.findings.add(world, format!("{}:{fields}: {message}", journal::actor()));
        }
    }

    /// `replica 1 of topic-0: Online -> Offline`, or `partition topic-0: New -> Online`.
    fn count_state(&self, message: &str) {
        let kind = message.split(' ').next().unwrap_or_default();
        if let Some((_, to)) = message.rsplit_once(" -> ") {
            self.count(format!("{kind} {to}"));
        }
    }

    fn count(&self, what: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(what).or_default() += 1;
    }

    /// How often each state was entered, and what happened to logs.
    pub(crate) fn counts(&self) -> BTreeMap<String, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What is told to have happened to a log, if it is something that is counted.
fn happened(message: &str, fields: &str) -> Option<&'static str> {
    if message == "log was compacted" {
        return Some("logs compacted");
    }
    if !message.starts_with("truncated from") {
        return None;
    }
    let is_compacted = fields.contains(&format!("partition={}", Kind::Compacted.name()));
    if message.contains("the leader's log starts") {
        Some("logs cut to the start of their leaders'")
    } else {
        is_compacted.then_some("compacted logs truncated")
    }
}
