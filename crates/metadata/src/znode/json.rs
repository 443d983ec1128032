//! JSON in and out, and the conversions that all kinds share.

use super::DecodeError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use wire::types::BrokerId;

/// Compact JSON. The values of this module are structs and maps with text keys, which always can be written.
pub(super) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

pub(super) fn decode<T: DeserializeOwned>(kind: &'static str, data: Option<&[u8]>) -> Result<T, DecodeError> {
    match data {
        None | Some([]) => Err(DecodeError::new(kind, "it has no data")),
        Some(data) => serde_json::from_slice(data).map_err(|error| DecodeError::new(kind, error)),
    }
}

pub(super) fn ids_to_ints(ids: &[BrokerId]) -> Vec<i32> {
    ids.iter().map(|id| id.0).collect()
}

pub(super) fn ints_to_ids(ints: Vec<i32>) -> Vec<BrokerId> {
    ints.into_iter().map(BrokerId).collect()
}
