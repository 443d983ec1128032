//! Responses as the writer of a connection takes them: header and body, without the size before them, in
//! [`Part`]s of which some may still lie in files.

use bytes::Bytes;

use crate::api::ApiKey;
use crate::header::encode_response_header;
use crate::messages::Message;
use crate::{EncodeError, Encoder};

/// A piece of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part<R> {
    /// Bytes in memory.
    Bytes(Bytes),
    /// A range of a file, sent as it lies there.
    Range(R),
}

impl<R> Part<R> {
    /// A part of no bytes.
    pub const EMPTY: Self = Self::Bytes(Bytes::new());
}

/// A response that has its header and awaits its body.
#[must_use]
pub fn begin(api_key: ApiKey, version: i16, correlation_id: i32, capacity: usize) -> Encoder {
    let mut dst = Encoder::with_capacity(capacity);
    encode_response_header(&mut dst, correlation_id, api_key.response_header_version(version));
    dst
}

/// Header and body of the response `message` in `version`.
///
/// # Errors
/// What the version cannot carry.
pub fn encode<M: Message>(message: &M, version: i16, correlation_id: i32) -> Result<Bytes, EncodeError> {
    /// Most responses are smaller, and a larger one grows.
    const CAPACITY: usize = 256;
    let unsupported = EncodeError::UnsupportedVersion { message: M::NAME, version };
    let api_key = ApiKey::from_code(M::API_KEY).ok_or(unsupported)?;
    let mut dst = begin(api_key, version, correlation_id, CAPACITY);
    message.encode(&mut dst, version)?;
    Ok(dst.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::{ApiVersionsResponse, HeartbeatResponse};

    #[test]
    fn the_header_fits_the_version_and_the_body_follows() {
        let message = HeartbeatResponse { throttle_time_ms: 1, error_code: 2 };
        assert_eq!(encode(&message, 0, 7).unwrap(), &[0, 0, 0, 7, 0, 2][..]);
        assert_eq!(encode(&message, 4, 7).unwrap(), &[0, 0, 0, 7, 0, 0, 0, 0, 1, 0, 2, 0][..]);
    }

    #[test]
    fn api_versions_has_a_plain_header_in_flexible_versions_too() {
        let message = ApiVersionsResponse::default();
        assert_eq!(encode(&message, 3, 7).unwrap(), &[0, 0, 0, 7, 0, 0, 1, 0, 0, 0, 0, 0][..]);
    }

    #[test]
    fn a_version_that_does_not_exist_is_refused() {
        let refused = encode(&HeartbeatResponse::default(), 5, 7);
        assert_eq!(
            refused,
            Err(EncodeError::UnsupportedVersion { message: "HeartbeatResponse", version: 5 })
        );
    }
}
