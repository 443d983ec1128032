//! UpdateFeatures (key 57): finalized features are changed (KIP-584). No feature exists in ZooKeeper mode, so every update
//! is refused, each for its own reason.

use std::sync::Arc;

use kernel::controller::command::ApiAnswer;
use kernel::controller::event::ApiRequest;
use kernel::controller::features::FeatureUpdate;
use wire::Str;
use wire::error_code::ErrorCode;
use wire::messages::update_features_response::UpdatableFeatureResult;
use wire::messages::{UpdateFeaturesRequest, UpdateFeaturesResponse};

use super::Answer;
use crate::broker::Broker;
use crate::drive::controller;

/// The `UpgradeType` that only raises levels.
const UPGRADE: i8 = 1;

/// Hands an UpdateFeatures request to the controller of this broker.
pub(crate) fn handle(broker: &Arc<Broker>, answer: Answer, request: UpdateFeaturesRequest) {
    let updates = request.feature_updates.iter().map(|update| FeatureUpdate {
        feature: update.feature.to_string(),
        max_version_level: update.max_version_level,
        allows_downgrade: update.allow_downgrade || update.upgrade_type != UPGRADE,
    });
    let updates = updates.collect();
    controller::ask(
        broker,
        ApiRequest::UpdateFeatures(updates),
        Box::new(move |outcome| {
            let mut response = UpdateFeaturesResponse::default();
            match outcome {
                Ok(ApiAnswer::UpdateFeatures(refused)) => {
                    let result = |(feature, reason): (String, &'static str)| UpdatableFeatureResult {
                        feature: Str::from(feature),
                        error_code: ErrorCode::InvalidRequest.code(),
                        error_message: Some(Str::from(reason)),
                    };
                    response.results = refused.into_iter().map(result).collect();
                }
                Ok(_) => response.error_code = ErrorCode::UnknownServerError.code(),
                Err(error) => {
                    response.error_code = error.code();
                    response.error_message = Some(Str::from(error.message()));
                }
            }
            answer.send(&response);
        }),
    );
}
