//! The Fetch response in parts against the same response with its records in place.

use bytes::{Bytes, BytesMut};
use wire::error_code::ErrorCode;
use wire::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use wire::messages::{FetchResponse, Message};
use wire::random::Rng;
use wire::response::Part;
use wire::{EncodeError, fetch_body, response};

/// A stand-in for a range of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Range(Bytes);

impl Range {
    fn len(&self) -> usize {
        self.0.len()
    }
}

fn partitions(response: &mut FetchResponse) -> impl Iterator<Item = &mut PartitionData> {
    response.responses.iter_mut().flat_map(|topic| &mut topic.partitions)
}

fn joined(parts: &[Part<Range>]) -> Bytes {
    let mut bytes = BytesMut::new();
    for part in parts {
        match part {
            Part::Bytes(part) | Part::Range(Range(part)) => bytes.extend_from_slice(part),
        }
    }
    bytes.freeze()
}

#[test]
fn parts_are_the_bytes_of_the_whole_response_in_every_version() {
    for version in FetchResponse::VERSIONS {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let mut response = FetchResponse::random(&mut rng, version);
            let mut records = Vec::new();
            for partition in partitions(&mut response) {
                let bytes = partition.records.take().unwrap_or_default();
                records.push(if rng.bool() { Part::Range(Range(bytes)) } else { Part::Bytes(bytes) });
            }
            let parts = fetch_body::encode(&response, version, 7, records.clone(), Range::len).unwrap();
            assert!(
                parts.iter().all(|part| *part != Part::EMPTY && *part != Part::Range(Range(Bytes::new())))
            );

            let mut inline = records.into_iter();
            for partition in partitions(&mut response) {
                let Some(Part::Bytes(bytes) | Part::Range(Range(bytes))) = inline.next() else { panic!() };
                partition.records = Some(bytes);
            }
            assert_eq!(
                joined(&parts),
                response::encode(&response, version, 7).unwrap(),
                "v{version}, seed {seed}"
            );
        }
    }
}

fn two_partitions() -> FetchResponse {
    let partition = |index, records: Option<Bytes>| PartitionData {
        partition_index: index,
        error_code: ErrorCode::None.code(),
        records,
        ..PartitionData::default()
    };
    let partitions = vec![partition(0, None), partition(1, None)];
    let topic = FetchableTopicResponse { topic: "t".into(), partitions, ..FetchableTopicResponse::default() };
    FetchResponse { responses: vec![topic], ..FetchResponse::default() }
}

#[test]
fn records_are_neither_copied_nor_null() {
    let range = Range(Bytes::from_static(b"records"));
    let records = vec![Part::EMPTY, Part::Range(range.clone())];
    let parts = fetch_body::encode(&two_partitions(), 11, 7, records, Range::len).unwrap();
    let [Part::Bytes(before), Part::Range(sent)] = parts.as_slice() else { panic!("{parts:?}") };
    assert_eq!(sent.0.as_ptr(), range.0.as_ptr());
    assert!(before.ends_with(&7i32.to_be_bytes()), "the length of the records stands before them");

    let read = FetchResponse::decode(&mut wire::Decoder::new(joined(&parts).slice(4..)), 11).unwrap();
    let records: Vec<_> =
        read.responses[0].partitions.iter().map(|partition| partition.records.clone()).collect();
    assert_eq!(records, [Some(Bytes::new()), Some(range.0)]);
}

#[test]
fn records_that_do_not_match_the_partitions_are_refused() {
    for count in [0, 1, 3] {
        let records = vec![Part::<Range>::EMPTY; count];
        let refused = fetch_body::encode(&two_partitions(), 11, 7, records, Range::len);
        assert_eq!(refused, Err(EncodeError::RecordsMismatch), "{count} records for two partitions");
    }
}

#[test]
fn records_longer_than_a_length_can_tell_are_refused() {
    let records = vec![Part::EMPTY, Part::Range(Range(Bytes::new()))];
    let refused = fetch_body::encode(&two_partitions(), 11, 7, records, |_| 1 << 31);
    assert_eq!(refused, Err(EncodeError::TooLong(1 << 31)));
}
