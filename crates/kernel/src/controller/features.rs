//! `/feature`: the finalized features of the cluster (KIP-584).
//!
//! From 2.7 on the node is kept enabled, in the format of the release; what it holds stays, unless the feature system was
//! off. Below 2.7 it is disabled and empty. Brokers in ZooKeeper mode know no feature, so that every update is refused.

use wire::error_code::ErrorCode;

use std::collections::BTreeMap;

use super::command::ApiAnswer;
use super::program::{Flow, Step, Turn};
use super::store::{FeatureNode, StoreOp, StoreReply};

/// An update of one feature (UpdateFeatures).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FeatureUpdate {
    /// The name.
    pub feature: String,
    /// The new level; below 1, the feature is to be deleted.
    pub max_version_level: i16,
    /// Whether the level may become lower, or the feature go.
    pub allows_downgrade: bool,
}

/// Brings the node to what the release wants.
pub(super) fn enable(turn: &mut Turn<'_>, reply: Option<StoreReply>) -> Flow {
    match reply {
        None => Flow::ask(StoreOp::ReadFeatures, Step::EnableFeatures),
        Some(StoreReply::Features(known)) => {
            let wanted = wanted(turn, known.as_ref());
            if known.as_ref() == Some(&wanted) {
                return Flow::Done;
            }
            let epoch_version = turn.epoch_version();
            Flow::ask(StoreOp::WriteFeatures { node: wanted, epoch_version }, Step::EnableFeatures)
        }
        Some(StoreReply::Done) => Flow::Done,
        Some(_) => Flow::confused(),
    }
}

fn wanted(turn: &Turn<'_>, known: Option<&FeatureNode>) -> FeatureNode {
    let release = turn.settings.release;
    let is_enabled = release.feature_versioning_supported();
    let kept = known.filter(|known| is_enabled && known.is_enabled);
    FeatureNode {
        format: release.feature_node_version(),
        is_enabled,
        features: kept.map(|known| known.features.clone()).unwrap_or_default(),
    }
}

/// Answers updates: each is refused, with the reason.
pub(super) fn update(turn: &mut Turn<'_>, updates: Vec<FeatureUpdate>) -> Flow {
    if !turn.settings.release.feature_versioning_supported() {
        turn.answer(Err(ErrorCode::InvalidRequest));
        return Flow::Done;
    }
    let refused: BTreeMap<String, &'static str> = updates
        .into_iter()
        .map(|update| {
            let why = reason(&update);
            (update.feature, why)
        })
        .collect();
    turn.answer(Ok(ApiAnswer::UpdateFeatures(refused)));
    Flow::Done
}

fn reason(update: &FeatureUpdate) -> &'static str {
    if update.feature.is_empty() {
        "A feature must have a name."
    } else if update.max_version_level >= 1 {
        "No broker of the cluster supports the feature."
    } else if update.allows_downgrade {
        "The feature is not finalized, so it cannot be deleted."
    } else {
        "A feature is only deleted if its level may become lower."
    }
}
