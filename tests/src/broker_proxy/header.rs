//! The beginning of a request: what it is, and whose.
//!
//! API key, version and correlation id lie at the same place in every header version, and the client id behind
//! them is never a compact string. Only version 0 of the header, which ControlledShutdown version 0 has, ends
//! before the client id.

const CONTROLLED_SHUTDOWN: i16 = 7;

/// What a request's header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHeader {
    /// Which request it is.
    pub api_key: i16,
    /// In which version.
    pub version: i16,
    /// The number that the answer repeats.
    pub correlation_id: i32,
    /// Who asks; brokers name themselves here: `1` as a controller, `broker-1-fetcher-0` as a replica fetcher.
    pub client_id: Option<String>,
}

impl RequestHeader {
    /// Reads the header of a frame (without its size); none when the frame is too short for one.
    #[must_use]
    pub fn read(frame: &[u8]) -> Option<Self> {
        let api_key = i16_at(frame, 0)?;
        let version = i16_at(frame, 2)?;
        let correlation_id = correlation_id(frame.get(4..)?)?;
        let client_id = if (api_key, version) == (CONTROLLED_SHUTDOWN, 0) {
            None
        } else {
            match usize::try_from(i16_at(frame, 8)?) {
                Err(_) => None,
                Ok(length) => Some(String::from_utf8_lossy(frame.get(10..)?.get(..length)?).into_owned()),
            }
        };
        Some(Self { api_key, version, correlation_id, client_id })
    }

    /// Whether the broker of this id asks, as a controller, as a replica fetcher or otherwise.
    #[must_use]
    pub fn is_of_broker(&self, id: i32) -> bool {
        let client = self.client_id.as_deref().unwrap_or_default();
        client == id.to_string() || client.starts_with(&format!("broker-{id}-"))
    }
}

/// The correlation id with which a response begins.
#[must_use]
pub fn correlation_id(frame: &[u8]) -> Option<i32> {
    frame.first_chunk().copied().map(i32::from_be_bytes)
}

fn i16_at(frame: &[u8], at: usize) -> Option<i16> {
    frame.get(at..)?.first_chunk().copied().map(i16::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw;
    use kafka_protocol::messages::{ApiVersionsRequest, ControlledShutdownRequest, MetadataRequest};

    #[test]
    fn headers_of_every_version_are_read() {
        let plain = raw::frame(1, 77, &MetadataRequest::default()).unwrap();
        let flexible = raw::frame(12, 78, &MetadataRequest::default()).unwrap();
        let versions = raw::frame(3, 79, &ApiVersionsRequest::default()).unwrap();
        for (frame, api_key, version, correlation_id) in
            [(plain, 3, 1, 77), (flexible, 3, 12, 78), (versions, 18, 3, 79)]
        {
            let client_id = Some("interop".to_owned());
            let expected = RequestHeader { api_key, version, correlation_id, client_id };
            assert_eq!(RequestHeader::read(&frame), Some(expected));
        }
    }

    #[test]
    fn a_broker_is_known_by_the_names_of_its_clients() {
        let of = |client: &str| {
            let client_id = Some(client.to_owned());
            RequestHeader { api_key: 1, version: 1, correlation_id: 1, client_id }.is_of_broker(1)
        };
        assert!(of("1") && of("broker-1-fetcher-0") && of("broker-1-txn-marker-sender"));
        assert!(!of("11") && !of("broker-11-fetcher-0") && !of("consumer-1") && !of(""));
    }

    #[test]
    fn a_header_without_a_client_is_read_and_a_short_one_is_not() {
        let nobody = [0, 3, 0, 1, 0, 0, 0, 9, 0xff, 0xff];
        assert_eq!(RequestHeader::read(&nobody).unwrap().client_id, None);
        let shutdown = raw::frame(0, 5, &ControlledShutdownRequest::default());
        let oldest = [0, 7, 0, 0, 0, 0, 0, 5, 0, 0, 0, 1];
        assert_eq!(RequestHeader::read(&oldest).unwrap().client_id, None, "{shutdown:?}");
        for length in 0..nobody.len() {
            assert_eq!(RequestHeader::read(&nobody[..length]), None, "{length} bytes");
        }
        assert_eq!(RequestHeader::read(&[0, 3, 0, 1, 0, 0, 0, 9, 0, 5, b'a']), None, "a cut client id");
    }
}
