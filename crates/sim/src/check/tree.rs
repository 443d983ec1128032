//! The tree: only the controller of the present term writes what controllers write, epochs grow, and no partition has a
//! state that must not be.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use metadata::store::{Op, OpResult, Request, Response, SessionId};
use metadata::znode::partition_state::PartitionState;
use wire::types::{BrokerId, LeaderEpoch};

use crate::plan::Protocol;
use crate::world::World;

/// What was written to the tree in the name of a session, and done.
pub(crate) struct Written<'a> {
    pub(crate) writer: Option<SessionId>,
    pub(crate) broker: BrokerId,
    pub(crate) request: &'a Request,
    pub(crate) response: &'a Response,
}

/// See the module's text.
#[derive(Default)]
pub(crate) struct TreeJudge(Mutex<State>);

#[derive(Default)]
struct State {
    /// The session that won the present term, and the version of `/controller_epoch` since.
    term: Option<(SessionId, i32)>,
    states: BTreeMap<String, PartitionState>,
}

impl TreeJudge {
    /// Something was written.
    pub(crate) fn written(&self, world: &World, written: &Written<'_>) {
        let ops: Vec<&Op> = match written.request {
            Request::Write(op) => vec![op],
            Request::Multi(ops) => ops.iter().collect(),
            _ => return,
        };
        let results: Vec<&OpResult> = match written.response {
            Response::Written(result) => vec![result],
            Response::Multi(results) => results.iter().collect(),
            _ => return,
        };
        let mut findings = Vec::new();
        {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let fence = ops.iter().find_map(|op| match op {
                Op::Check { path, version } if path == "/controller_epoch" => *version,
                _ => None,
            });
            if let (Some(fence), Some((winner, version))) = (fence, state.term)
                && (written.writer != Some(winner) || fence != version)
            {
                findings.push(format!("broker {} writes as controller in a term of another", written.broker));
            }
            for (op, result) in ops.iter().zip(&results) {
                match (op, result) {
                    (Op::SetData { path, .. }, OpResult::Set { stat }) if path == "/controller_epoch" => {
                        state.term = written.writer.map(|writer| (writer, stat.version));
                    }
                    (Op::Create { path, data, .. } | Op::SetData { path, data, .. }, _)
                        if is_partition_state(path) =>
                    {
                        let is_new = matches!(op, Op::Create { .. });
                        match PartitionState::decode(data.as_deref()) {
                            Ok(next) => {
                                let last = state.states.get(path.as_str()).filter(|_| !is_new);
                                findings.extend(judge(world, written, path, last, &next, fence.is_some()));
                                state.states.insert(path.clone(), next);
                            }
                            Err(error) => findings.push(format!("{path} is written unreadable: {error}")),
                        }
                    }
                    (Op::Delete { path, .. }, _) => drop(state.states.remove(path.as_str())),
                    _ => {}
                }
            }
        }
        for finding in findings {
            world.findings.add(world, finding);
        }
    }
}

fn is_partition_state(path: &str) -> bool {
    path.starts_with("/brokers/topics/") && path.ends_with("/state")
}

fn judge(
    world: &World,
    written: &Written<'_>,
    path: &str,
    last: Option<&PartitionState>,
    next: &PartitionState,
    is_fenced: bool,
) -> Vec<String> {
    let mut findings = Vec::new();
    let mut must = |holds: bool, what: &str| {
        if !holds {
            findings.push(format!("{path} by broker {}: {what}: {last:?} -> {next:?}", written.broker));
        }
    };
    must(!next.isr.is_empty(), "the isr is empty");
    must(next.leader.0 < 0 || next.isr.contains(&next.leader), "the leader is not in the isr");
    let mut members = next.isr.clone();
    members.sort_unstable();
    members.dedup();
    must(members.len() == next.isr.len(), "a replica stands in the isr twice");
    let before = last.map_or(LeaderEpoch(-1), |last| last.leader_epoch);
    must(next.leader_epoch >= before, "the leader epoch falls");
    if let Some(last) = last {
        must(next.controller_epoch >= last.controller_epoch, "the controller epoch falls");
        must(
            last.leader == next.leader || last.leader_epoch < next.leader_epoch,
            "another leader in the same epoch",
        );
    }
    if !is_fenced {
        must(world.plan.protocol == Protocol::V2_6, "a state is written outside of a controller's term");
        let is_leaders_own =
            last.is_some_and(|last| last.leader == written.broker && last.leader_epoch == next.leader_epoch);
        must(is_leaders_own, "a state is written by one who is neither controller nor leader");
    }
    findings
}
