//! Messages whose bytes are known.

use bytes::Bytes;
use wire::api::ApiKey;
use wire::error_code::ErrorCode;
use wire::header::{RequestHeader, decode_request_header, encode_request_header};
use wire::messages::api_versions_response::ApiVersion;
use wire::messages::*;
use wire::{Decoder, Encoder, Str, response};

/// Bytes written as hexadecimal digits, with spaces anywhere.
fn hex(text: &str) -> Bytes {
    let digits: Vec<_> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

/// Checks that `frame` is the size, header and body of this request, both ways.
fn check_request<M: Message>(
    frame: &str,
    version: i16,
    correlation_id: i32,
    client_id: Option<&str>,
    body: M,
) {
    let frame = hex(frame);
    let mut src = Decoder::new(frame.clone());
    assert_eq!(src.i32(), Ok(frame.len() as i32 - 4));
    let client_id = client_id.map(Str::from);
    let header = RequestHeader { api_key: M::API_KEY, api_version: version, correlation_id, client_id };
    assert_eq!(decode_request_header(&mut src).as_ref(), Ok(&header));
    assert_eq!(M::decode(&mut src, version).as_ref(), Ok(&body));
    assert_eq!(src.remaining(), 0);

    let mut dst = Encoder::new();
    encode_request_header(&mut dst, &header).unwrap();
    body.encode(&mut dst, version).unwrap();
    assert_eq!(dst.into_bytes(), frame.slice(4..));
}

#[test]
fn api_versions_request_v3() {
    let body = ApiVersionsRequest { client_software_name: "x".into(), client_software_version: "1".into() };
    let frame = "00000011 0012 0003 00000007 0001 63 00 02 78 02 31 00";
    check_request(frame, 3, 7, Some("c"), body);
}

#[test]
fn the_header_of_an_unknown_api_versions_version_is_read_and_answered_in_v0() {
    let mut src = Decoder::new(hex("0012 0009 00000007 ffff 00 deadbeef"));
    let header = decode_request_header(&mut src).unwrap();
    assert_eq!((header.api_key, header.api_version, header.correlation_id), (18, 9, 7));
    let entry = ApiVersion { api_key: ApiKey::ApiVersions.code(), min_version: 0, max_version: 4 };
    let answer = ApiVersionsResponse {
        error_code: ErrorCode::UnsupportedVersion.code(),
        api_keys: vec![entry],
        ..ApiVersionsResponse::default()
    };
    assert_eq!(response::encode(&answer, 0, 7).unwrap(), hex("00000007 0023 00000001 0012 0000 0004"));
}

#[test]
fn sasl_handshake_v1() {
    let body = SaslHandshakeRequest { mechanism: "PLAIN".into() };
    check_request("00000011 0011 0001 00000001 ffff 0005 504c41494e", 1, 1, None, body);
    let answer = SaslHandshakeResponse { error_code: 0, mechanisms: vec!["PLAIN".into()] };
    assert_eq!(response::encode(&answer, 1, 1).unwrap(), hex("00000001 0000 00000001 0005 504c41494e"));
}

#[test]
fn metadata_requests() {
    let none = MetadataRequest { allow_auto_topic_creation: false, ..MetadataRequest::default() };
    check_request("0000000f 0003 000c 00000002 0000 00 01 00 00 00", 12, 2, Some(""), none);
    let all = MetadataRequest { topics: None, ..MetadataRequest::default() };
    check_request("0000000e 0003 0001 00000003 0000 ffffffff", 1, 3, Some(""), all);
}
