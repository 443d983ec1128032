//! The first look at the records of a Produce request: what its version allows.

use bytes::Bytes;

use super::super::{BatchError, CompressionType, batches};
use super::ValidationError;

/// The first version whose partitions carry one batch of format 2 (KIP-98).
const FIRST_OF_FORMAT_2: i16 = 3;
/// The first version that may carry zstd (KIP-110).
const FIRST_WITH_ZSTD: i16 = 7;

/// Checks the records of one partition of a Produce request of `version`. Older versions than 3 are not
/// checked here.
///
/// # Errors
/// [`ValidationError::NotOneBatch`], [`ValidationError::FormatNotInRequest`],
/// [`ValidationError::ZstdNotInRequest`], or the fault of a batch that cannot be split off.
pub fn check_request(records: Option<&Bytes>, version: i16) -> Result<(), ValidationError> {
    if version < FIRST_OF_FORMAT_2 {
        return Ok(());
    }
    let mut batches = batches(records.cloned().unwrap_or_default());
    let first = match batches.next() {
        None => return Err(ValidationError::NotOneBatch),
        Some(Err(BatchError::OldFormat(magic))) => return Err(ValidationError::FormatNotInRequest(magic)),
        Some(first) => first?,
    };
    if version < FIRST_WITH_ZSTD && first.header.compression() == Ok(CompressionType::Zstd) {
        return Err(ValidationError::ZstdNotInRequest);
    }
    match batches.next() {
        None => Ok(()),
        Some(Err(error)) if error.is_corrupt() => Err(error.into()),
        Some(_) => Err(ValidationError::NotOneBatch),
    }
}
