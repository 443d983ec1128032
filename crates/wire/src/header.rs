//! The headers before requests and responses. Which version a header has follows from key and version of the
//! request, so these two are read first. A client id keeps its two-byte length even in flexible headers.

use crate::api::ApiKey;
use crate::{DecodeError, Decoder, EncodeError, Encoder, Str};

/// What stands before every request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestHeader {
    /// The key of the request, as it came.
    pub api_key: i16,
    /// The version of the request, as it came.
    pub api_version: i16,
    /// Chosen by the client, given back in the response.
    pub correlation_id: i32,
    /// Null is legal and means the same as empty (KAFKA-13385).
    pub client_id: Option<Str>,
}

/// Reads the header of a request; the body is what remains. A version outside the served ones is no error
/// here: ApiVersions is answered whatever its version.
///
/// # Errors
/// `UnknownApiKey` if Kafka defines no such key; else what is wrong with the bytes.
pub fn decode_request_header(src: &mut Decoder) -> Result<RequestHeader, DecodeError> {
    let code = src.i16()?;
    let api_version = src.i16()?;
    let api_key = ApiKey::from_code(code).ok_or(DecodeError::UnknownApiKey(code))?;
    let version = api_key.request_header_version(api_version);
    let correlation_id = src.i32()?;
    let client_id = if version >= 1 { src.nullable_string(false)? } else { None };
    if version >= 2 {
        src.skip_tagged_fields()?;
    }
    Ok(RequestHeader { api_key: code, api_version, correlation_id, client_id })
}

/// Writes the header of a request in the header version its key and version ask for; of an unknown key, as
/// of a version that is not flexible.
///
/// # Errors
/// `StringTooLong` if the client id is.
pub fn encode_request_header(dst: &mut Encoder, header: &RequestHeader) -> Result<(), EncodeError> {
    let version =
        ApiKey::from_code(header.api_key).map_or(1, |key| key.request_header_version(header.api_version));
    dst.put_i16(header.api_key);
    dst.put_i16(header.api_version);
    dst.put_i32(header.correlation_id);
    if version >= 1 {
        dst.put_nullable_string(header.client_id.as_ref(), false)?;
    }
    if version >= 2 {
        dst.put_uvarint(0);
    }
    Ok(())
}

/// Writes the header of a response.
pub fn encode_response_header(dst: &mut Encoder, correlation_id: i32, header_version: i16) {
    dst.put_i32(correlation_id);
    if header_version >= 1 {
        dst.put_uvarint(0);
    }
}

/// Reads the header of a response and gives its correlation id.
///
/// # Errors
/// What is wrong with the bytes.
pub fn decode_response_header(src: &mut Decoder, header_version: i16) -> Result<i32, DecodeError> {
    let correlation_id = src.i32()?;
    if header_version >= 1 {
        src.skip_tagged_fields()?;
    }
    Ok(correlation_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(api_key: ApiKey, api_version: i16, client_id: Option<&str>) -> RequestHeader {
        let client_id = client_id.map(Str::from);
        RequestHeader { api_key: api_key.code(), api_version, correlation_id: 7, client_id }
    }

    #[test]
    fn a_request_header_is_read_as_it_was_written() {
        for (header, len) in [
            (header(ApiKey::ControlledShutdown, 0, None), 8),
            (header(ApiKey::ControlledShutdown, 1, None), 10),
            (header(ApiKey::ControlledShutdown, 3, Some("")), 11),
            (header(ApiKey::Fetch, 11, Some("client")), 16),
            (header(ApiKey::Fetch, 12, Some("client")), 17),
            (header(ApiKey::SaslHandshake, 1, Some("client")), 16),
            (header(ApiKey::ApiVersions, 99, None), 11),
        ] {
            let mut dst = Encoder::new();
            encode_request_header(&mut dst, &header).unwrap();
            dst.put_i8(42);
            assert_eq!(dst.len(), len + 1, "{header:?}");
            let mut src = Decoder::new(dst.into_bytes());
            assert_eq!(decode_request_header(&mut src), Ok(header));
            assert_eq!(src.i8(), Ok(42), "the body begins behind the header");
        }
    }

    #[test]
    fn tagged_fields_of_a_request_header_are_skipped() {
        let bytes = [0, 3, 0, 12, 0, 0, 0, 7, 0xff, 0xff, 1, 5, 3, 1, 2, 3, 42];
        let mut src = Decoder::new(bytes.to_vec());
        assert_eq!(decode_request_header(&mut src), Ok(header(ApiKey::Metadata, 12, None)));
        assert_eq!(src.i8(), Ok(42));
    }

    #[test]
    fn a_key_that_kafka_does_not_define_is_refused() {
        for code in [-1, 88, i16::MAX] {
            let mut dst = Encoder::new();
            dst.put_i16(code);
            dst.put_i16(0);
            dst.put_i32(1);
            dst.put_i16(-1);
            let read = decode_request_header(&mut Decoder::new(dst.into_bytes()));
            assert_eq!(read, Err(DecodeError::UnknownApiKey(code)));
        }
    }

    #[test]
    fn a_header_that_ends_early_is_refused() {
        for len in 0..10 {
            let bytes = [0, 1, 0, 11, 0, 0, 0, 7, 0, 0];
            let read = decode_request_header(&mut Decoder::new(bytes[..len].to_vec()));
            assert!(matches!(read, Err(DecodeError::UnexpectedEnd { .. })), "{len} bytes: {read:?}");
        }
    }

    #[test]
    fn a_response_header_is_read_as_it_was_written() {
        for (version, len) in [(0, 4), (1, 5)] {
            let mut dst = Encoder::new();
            encode_response_header(&mut dst, -7, version);
            assert_eq!(dst.len(), len);
            assert_eq!(decode_response_header(&mut Decoder::new(dst.into_bytes()), version), Ok(-7));
        }
    }
}
