//! The office of controller in the store: `/controller`, `/controller_epoch`, `/feature`.

use std::sync::Arc;

use kernel::controller::store::{ControllerNode, FeatureNode, StoreFailure, StoreReply};
use metadata::store::{CreateMode, Op, OpError, OpResult, Request, Response, StoreError};
use metadata::znode::controller::{self, Controller};
use metadata::znode::feature::{self, Features, Format, Levels};
use metadata::znode::{DecodeError, controller_epoch};
use wire::types::{ControllerEpoch, Millis};

use super::fenced::{self, Outcome};
use super::{Done, Ended, failure, mismatch, unreadable};
use crate::broker::Broker;
use crate::drive::pipeline::{one, pipeline};

/// The lowest level of a feature, where the format of its znode keeps it.
const LOWEST_LEVEL: i16 = 1;

/// The watch is set by the first request, which also stands when the znode is missing; the second reads it.
pub(super) fn read_controller(broker: &Arc<Broker>, done: Done) {
    let requests = vec![Request::exists(controller::PATH).watched(), Request::get(controller::PATH)];
    pipeline(broker.store(), requests, move |mut answers| {
        let data = answers.pop().unwrap_or(Err(StoreError::Closed));
        let watch = answers.pop().unwrap_or(Err(StoreError::Closed));
        done(watch.map_err(failure).and_then(|_| controller_node(data)));
    });
}

fn controller_node(answer: Result<Response, StoreError>) -> Ended {
    match answer {
        Ok(Response::Data { data, stat }) => {
            let node = Controller::decode(data.as_deref()).map_err(|e| unreadable(controller::PATH, &e))?;
            let owner = stat.ephemeral_owner.0;
            Ok(StoreReply::Controller(Some(ControllerNode { broker_id: node.broker_id, owner })))
        }
        Ok(_) => Err(mismatch()),
        Err(error) if error.is_no_node() => Ok(StoreReply::Controller(None)),
        Err(error) => Err(failure(error)),
    }
}

pub(super) fn read_epoch(broker: &Arc<Broker>, done: Done) {
    one(broker.store(), Request::get(controller_epoch::PATH), move |answer| {
        done(match answer {
            Ok(Response::Data { data, stat }) => controller_epoch::decode(data.as_deref())
                .map(|epoch| StoreReply::ControllerEpoch(Some((epoch, stat.version))))
                .map_err(|error| unreadable(controller_epoch::PATH, &error)),
            Ok(_) => Err(mismatch()),
            Err(error) if error.is_no_node() => Ok(StoreReply::ControllerEpoch(None)),
            Err(error) => Err(failure(error)),
        });
    });
}

pub(super) fn create_epoch(broker: &Arc<Broker>, done: Done) {
    let data = controller_epoch::encode(controller_epoch::INITIAL);
    let create = Request::create(controller_epoch::PATH, data, CreateMode::Persistent);
    one(broker.store(), create, move |answer| {
        done(match answer {
            Err(error) if !error.is_node_exists() => Err(failure(error)),
            _ => Ok(StoreReply::Done),
        });
    });
}

pub(super) fn elect(broker: &Arc<Broker>, epoch: ControllerEpoch, expected_version: i32, done: Done) {
    let me = Controller {
        broker_id: broker.id(),
        timestamp_ms: Millis(broker.now().wall_ms),
        kraft_controller_epoch: Some(-1),
    };
    let ops = vec![
        Op::create(controller::PATH, me.encode(), CreateMode::Ephemeral),
        Op::set(controller_epoch::PATH, controller_epoch::encode(epoch), Some(expected_version)),
    ];
    one(broker.store(), Request::Multi(ops), move |answer| done(elected(answer)));
}

fn elected(answer: Result<Response, StoreError>) -> Ended {
    match answer {
        Ok(Response::Multi(results)) => match results.as_slice() {
            [_, OpResult::Set { stat }] => Ok(StoreReply::Elected { epoch_version: stat.version }),
            _ => Err(mismatch()),
        },
        Ok(_) => Err(mismatch()),
        Err(error) if matches!(error.op_error(), Some(OpError::NodeExists | OpError::BadVersion)) => {
            Ok(StoreReply::NotElected)
        }
        Err(error) => Err(failure(error)),
    }
}

pub(super) fn delete_controller(broker: &Arc<Broker>, epoch_version: i32, done: Done) {
    let ops = vec![Op::delete(controller::PATH, None)];
    fenced::write_all(broker.store(), vec![ops], epoch_version, move |outcomes| {
        // A node that is gone already is what was wanted.
        done(outcomes.map(|_| StoreReply::Done));
    });
}

pub(super) fn read_features(broker: &Arc<Broker>, done: Done) {
    one(broker.store(), Request::get(feature::PATH), move |answer| {
        done(match answer {
            Ok(Response::Data { data, .. }) => feature_node(data.as_deref())
                .map(|node| StoreReply::Features(Some(node)))
                .map_err(|error| unreadable(feature::PATH, &error)),
            Ok(_) => Err(mismatch()),
            Err(error) if error.is_no_node() => Ok(StoreReply::Features(None)),
            Err(error) => Err(failure(error)),
        });
    });
}

fn feature_node(data: Option<&[u8]>) -> Result<FeatureNode, DecodeError> {
    let features = Features::decode(data)?;
    let format = match features.format {
        Format::V1 => 1,
        Format::V2 => 2,
    };
    let levels = features.features.into_iter().map(|(name, levels)| (name, levels.max));
    Ok(FeatureNode { format, is_enabled: features.is_enabled, features: levels.collect() })
}

pub(super) fn write_features(broker: &Arc<Broker>, node: FeatureNode, epoch_version: i32, done: Done) {
    let format = if node.format >= 2 { Format::V2 } else { Format::V1 };
    let levels = |max| Levels { min: Some(LOWEST_LEVEL), max };
    let features = node.features.into_iter().map(|(name, max)| (name, levels(max))).collect();
    let value = Features { format, is_enabled: node.is_enabled, features }.encode();
    let store = broker.store().clone();
    let set = vec![Op::set(feature::PATH, value.clone(), None)];
    fenced::write_all(broker.store(), vec![set], epoch_version, move |outcomes| match one_of(outcomes) {
        Ok(Err((_, OpError::NoNode))) => {
            let create = vec![Op::create(feature::PATH, value, CreateMode::Persistent)];
            fenced::write_all(&store, vec![create], epoch_version, move |outcomes| {
                done(one_of(outcomes).and_then(written));
            });
        }
        outcome => done(outcome.and_then(written)),
    });
}

fn one_of(outcomes: Result<Vec<Outcome>, StoreFailure>) -> Result<Outcome, StoreFailure> {
    outcomes?.pop().ok_or_else(mismatch)
}

fn written(outcome: Outcome) -> Ended {
    match outcome {
        Ok(_) => Ok(StoreReply::Done),
        Err((_, error)) => Err(StoreFailure::Unexpected(error.to_string())),
    }
}
