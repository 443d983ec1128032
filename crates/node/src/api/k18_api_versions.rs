//! ApiVersions (key 18): which requests are served, in which versions (KIP-35, KIP-511, KIP-584).
//!
//! It is the one request that is answered whatever its version: a client newer than the broker learns from the
//! oldest form of the answer which version to use.

use std::sync::Arc;

use wire::api::ApiKey;
use wire::error_code::ErrorCode;
use wire::messages::api_versions_response::ApiVersion;
use wire::messages::{ApiVersionsRequest, ApiVersionsResponse};

use super::{Answer, SERVED};
use crate::broker::Broker;
use crate::call::{Call, Outcome, inline};

/// Answers an ApiVersions request of a known version.
pub(crate) fn handle(broker: &Arc<Broker>, call: &Call, request: ApiVersionsRequest) -> ApiVersionsResponse {
    if call.version() >= 3 {
        let (name, version) = (&request.client_software_name, &request.client_software_version);
        if !is_software_word(name) || !is_software_word(version) {
            return ApiVersionsResponse {
                error_code: ErrorCode::InvalidRequest.code(),
                ..ApiVersionsResponse::default()
            };
        }
        // A second announcement on the same connection changes nothing.
        let _ = call.connection.client_software.set((name.to_string(), version.to_string()));
    }
    ApiVersionsResponse {
        api_keys: SERVED.iter().map(|key| entry(*key)).collect(),
        finalized_features_epoch: broker.features().epoch(),
        ..ApiVersionsResponse::default()
    }
}

/// Answers a version that is not known, in the form of version 0.
pub(crate) fn answer_unsupported(answer: Answer) {
    let response = ApiVersionsResponse {
        error_code: ErrorCode::UnsupportedVersion.code(),
        api_keys: vec![entry(ApiKey::ApiVersions)],
        ..ApiVersionsResponse::default()
    };
    let outcome = match wire::response::encode(&response, 0, answer.call().header.correlation_id) {
        Ok(bytes) => inline(bytes),
        Err(error) => Outcome::Close(format!("the answer cannot be encoded: {error}")),
    };
    answer.end(outcome);
}

fn entry(key: ApiKey) -> ApiVersion {
    let versions = key.versions();
    ApiVersion { api_key: key.code(), min_version: *versions.start(), max_version: *versions.end() }
}

/// `[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?`
fn is_software_word(word: &str) -> bool {
    let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = word.as_bytes();
    edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_software_word_begins_and_ends_with_a_letter_or_digit() {
        for word in ["a", "apache-kafka-java", "3.9.2", "x-1"] {
            assert!(is_software_word(word), "{word}");
        }
        for word in ["", "-a", "a.", "a b", "ä", "a_b"] {
            assert!(!is_software_word(word), "{word}");
        }
    }

    #[test]
    fn the_served_keys_are_told_in_ascending_order() {
        assert!(SERVED.windows(2).all(|pair| pair[0].code() < pair[1].code()));
    }
}
