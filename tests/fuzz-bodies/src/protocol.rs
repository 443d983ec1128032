//! Frames and requests as they come from a connection.

use bytes::Bytes;
use wire::api::ApiKey;
use wire::header::decode_request_header;
use wire::messages::{Kind, decode_any};
use wire::{Decoder, Encoder};

/// The largest frame that the reader is told to take.
const LIMIT: usize = 1 << 20;

/// The bytes of a connection, which arrive in pieces as long as the first byte says.
pub fn frames(input: &[u8]) {
    let Some((piece, stream)) = input.split_first() else { return };
    let (whole, failure) = net::split_frames(stream, 1 + usize::from(*piece), LIMIT);
    let taken: usize = whole.iter().map(|frame| frame.len() + 4).sum();
    assert!(taken <= stream.len(), "more frames than bytes");
    let (all_at_once, same_failure) = net::split_frames(stream, stream.len().max(1), LIMIT);
    assert_eq!(whole, all_at_once, "pieces change what is read");
    assert_eq!(failure.is_some(), same_failure.is_some(), "pieces change what is refused");
    for frame in whole {
        request(frame);
    }
}

/// One frame: header and body.
pub fn requests(input: &[u8]) {
    request(Bytes::copy_from_slice(input));
}

fn request(frame: Bytes) {
    let mut src = Decoder::new(frame);
    let Ok(header) = decode_request_header(&mut src) else { return };
    let Some(key) = ApiKey::from_code(header.api_key) else { return };
    if !key.supports(header.api_version) {
        return;
    }
    let Ok(message) = decode_any(header.api_key, header.api_version, Kind::Request, &mut src) else { return };
    // What was understood can be said again, and means the same.
    let mut first = Encoder::new();
    if message.encode(&mut first, header.api_version).is_err() {
        return;
    }
    let first = first.into_bytes();
    let again =
        decode_any(header.api_key, header.api_version, Kind::Request, &mut Decoder::new(first.clone()));
    let mut second = Encoder::new();
    let encoded = again.map(|again| again.encode(&mut second, header.api_version).is_ok());
    assert!(matches!(encoded, Ok(true)), "{} v{} is not read back", message.name(), header.api_version);
    assert_eq!(first, second.into_bytes(), "{} v{} changes", message.name(), header.api_version);
}
