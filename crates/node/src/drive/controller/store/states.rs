//! Partition states: read at once, written a hundred in one transaction, one by one where a transaction fails.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kernel::controller::store::{
    MAX_WRITES_PER_MULTI, StateCreated, StateRead, StateWritten, StoreFailure, StoreReply,
};
use kernel::controller::values::{LeaderAndIsr, LeaderRecoveryState};
use metadata::store::{CreateMode, Op, OpError, OpResult, Request, Response, StoreError, Value};
use metadata::znode::partition_state::{self, PartitionState};
use wire::types::TopicPartition;

use super::fenced::{self, Outcome};
use super::{Done, failure, mismatch};
use crate::broker::Broker;
use crate::drive::pipeline::pipeline;

/// A partition and its state.
type State = (TopicPartition, LeaderAndIsr);

pub(super) fn read(broker: &Arc<Broker>, partitions: Vec<TopicPartition>, done: Done) {
    let reads = partitions.iter().map(|it| Request::get(partition_state::path(it))).collect();
    pipeline(broker.store(), reads, move |answers| {
        let states: Result<BTreeMap<_, _>, _> = partitions
            .into_iter()
            .zip(answers)
            .map(|(partition, answer)| read_one(answer).map(|it| (partition, it)))
            .collect();
        done(states.map(StoreReply::States));
    });
}

fn read_one(answer: Result<Response, StoreError>) -> Result<StateRead, StoreFailure> {
    match answer {
        Ok(Response::Data { data, stat }) => Ok(match PartitionState::decode(data.as_deref()) {
            Ok(state) => StateRead::State(from_znode(state, stat.version)),
            Err(error) => StateRead::Unreadable(error.to_string()),
        }),
        Ok(_) => Err(mismatch()),
        Err(error) if error.is_no_node() => Ok(StateRead::Missing),
        Err(error) => Err(failure(error)),
    }
}

fn from_znode(state: PartitionState, partition_epoch: i32) -> LeaderAndIsr {
    LeaderAndIsr {
        leader: state.leader,
        leader_epoch: state.leader_epoch,
        isr: state.isr,
        recovery_state: if state.is_recovering {
            LeaderRecoveryState::Recovering
        } else {
            LeaderRecoveryState::Recovered
        },
        controller_epoch: state.controller_epoch,
        partition_epoch,
    }
}

fn encode(state: &LeaderAndIsr) -> Vec<u8> {
    PartitionState {
        leader: state.leader,
        leader_epoch: state.leader_epoch,
        isr: state.isr.clone(),
        controller_epoch: state.controller_epoch,
        is_recovering: state.recovery_state == LeaderRecoveryState::Recovering,
    }
    .encode()
}

fn in_groups(states: BTreeMap<TopicPartition, LeaderAndIsr>) -> Vec<Vec<State>> {
    let states: Vec<_> = states.into_iter().collect();
    states.chunks(MAX_WRITES_PER_MULTI).map(<[State]>::to_vec).collect()
}

/// Writes each state over the partition epoch that it carries.
pub(super) fn write(
    broker: &Arc<Broker>,
    states: BTreeMap<TopicPartition, LeaderAndIsr>,
    epoch_version: i32,
    done: Done,
) {
    let groups = in_groups(states);
    let transactions = groups.iter().map(|group| group.iter().map(set).collect()).collect();
    let store = broker.store().clone();
    fenced::write_all(broker.store(), transactions, epoch_version, move |outcomes| {
        let outcomes = match outcomes {
            Ok(outcomes) => outcomes,
            Err(failure) => return done(Err(failure)),
        };
        let mut written = BTreeMap::new();
        let mut single = Vec::new();
        for (group, outcome) in groups.into_iter().zip(outcomes) {
            match outcome {
                Ok(results) => {
                    written.extend(group.into_iter().zip(results).map(|((p, _), it)| (p, set_result(it))))
                }
                Err((_, error)) if group.len() == 1 => {
                    written.extend(group.into_iter().map(|(p, _)| (p, refused_write(error))));
                }
                Err(_) => single.extend(group),
            }
        }
        let transactions = single.iter().map(|it| vec![set(it)]).collect();
        fenced::write_all(&store, transactions, epoch_version, move |outcomes| {
            done(outcomes.map(|outcomes| {
                written.extend(
                    single.into_iter().zip(outcomes).map(|((p, _), outcome)| (p, one_write(outcome))),
                );
                StoreReply::Written(written)
            }));
        });
    });
}

fn set((partition, state): &State) -> Op {
    Op::set(partition_state::path(partition), encode(state), Some(state.partition_epoch))
}

fn one_write(outcome: Outcome) -> StateWritten {
    match outcome {
        Ok(results) => results.into_iter().next().map_or_else(no_result, set_result),
        Err((_, error)) => refused_write(error),
    }
}

fn no_result() -> StateWritten {
    StateWritten::Refused("the store told no result".to_owned())
}

fn set_result(result: OpResult) -> StateWritten {
    match result {
        OpResult::Set { stat } => StateWritten::Written { partition_epoch: stat.version },
        _ => no_result(),
    }
}

fn refused_write(error: OpError) -> StateWritten {
    match error {
        OpError::BadVersion => StateWritten::BadVersion,
        error => StateWritten::Refused(error.to_string()),
    }
}

/// Creates each state and the znodes above it.
///
/// The znodes above may be there, left by a creation that was cut short; then the transaction of a group fails, and
/// its partitions are created one by one, each znode on its own.
pub(super) fn create(
    broker: &Arc<Broker>,
    states: BTreeMap<TopicPartition, LeaderAndIsr>,
    epoch_version: i32,
    done: Done,
) {
    let groups = in_groups(states);
    let mut topics = BTreeSet::new();
    let transactions = groups.iter().map(|group| creations(group, &mut topics)).collect();
    let broker = broker.clone();
    fenced::write_all(&broker.store().clone(), transactions, epoch_version, move |outcomes| {
        let outcomes = match outcomes {
            Ok(outcomes) => outcomes,
            Err(failure) => return done(Err(failure)),
        };
        let mut created = BTreeMap::new();
        let mut single = Vec::new();
        for (group, outcome) in groups.into_iter().zip(outcomes) {
            match outcome {
                Ok(_) => created.extend(group.into_iter().map(|(p, _)| (p, StateCreated::Created))),
                Err(_) => single.extend(group),
            }
        }
        create_one_by_one(&broker, single, created, epoch_version, done);
    });
}

/// The creations of a group: the parent of all partitions with the first of a topic, then each partition's own two.
fn creations(group: &[State], topics: &mut BTreeSet<wire::types::TopicName>) -> Vec<Op> {
    let mut ops = Vec::with_capacity(group.len() * 2 + 1);
    for (partition, state) in group {
        // A topic that has partitions has their parent.
        if partition.partition == 0 && topics.insert(partition.topic.clone()) {
            ops.push(parent_of_all(partition));
        }
        ops.push(parent(partition));
        ops.push(Op::create(partition_state::path(partition), encode(state), CreateMode::Persistent));
    }
    ops
}

fn parent_of_all(partition: &TopicPartition) -> Op {
    Op::create(partition_state::partitions_path(&partition.topic), Value::NULL, CreateMode::Persistent)
}

fn parent(partition: &TopicPartition) -> Op {
    Op::create(partition_state::partition_path(partition), Value::NULL, CreateMode::Persistent)
}

fn create_one_by_one(
    broker: &Arc<Broker>,
    states: Vec<State>,
    mut created: BTreeMap<TopicPartition, StateCreated>,
    epoch_version: i32,
    done: Done,
) {
    // The store does them in this order, so a state comes after the znodes above it.
    let transactions = states.iter().flat_map(|(partition, state)| {
        let state = Op::create(partition_state::path(partition), encode(state), CreateMode::Persistent);
        [vec![parent_of_all(partition)], vec![parent(partition)], vec![state]]
    });
    fenced::write_all(broker.store(), transactions.collect(), epoch_version, move |outcomes| {
        done(outcomes.map(|outcomes| {
            let mut of_states = outcomes.into_iter().skip(2).step_by(3);
            created.extend(states.into_iter().map(|(partition, _)| {
                let outcome = of_states.next().map_or_else(
                    || StateCreated::Refused("the store told no result".to_owned()),
                    |outcome| match outcome {
                        Ok(_) => StateCreated::Created,
                        Err((_, OpError::NodeExists)) => StateCreated::Exists,
                        Err((_, error)) => StateCreated::Refused(error.to_string()),
                    },
                );
                (partition, outcome)
            }));
            StoreReply::Created(created)
        }));
    });
}
