//! What messages refuse, and what they let pass.

use bytes::Bytes;
use wire::api::ApiKey;
use wire::messages::fetch_request::ReplicaState;
use wire::messages::metadata_request::MetadataRequestTopic;
use wire::messages::*;
use wire::random::Rng;
use wire::types::TopicId;
use wire::{DecodeError, Decoder, EncodeError, Encoder, Str};

fn encode<M: Message>(message: &M, version: i16) -> Result<Bytes, EncodeError> {
    let mut dst = Encoder::new();
    message.encode(&mut dst, version)?;
    Ok(dst.into_bytes())
}

fn decode<M: Message>(bytes: &[u8], version: i16) -> Result<M, DecodeError> {
    M::decode(&mut Decoder::new(bytes.to_vec()), version)
}

#[test]
fn a_value_that_the_version_cannot_carry_is_refused_unless_ignorable() {
    let request =
        FetchRequest { replica_id: 3, rack_id: "r".into(), max_bytes: 9, ..FetchRequest::default() };
    assert!(encode(&request, 2).is_ok(), "rack id and max bytes are ignorable");
    let refusal =
        EncodeError::UnsupportedField { structure: "FetchRequest", field: "ReplicaId", version: 15 };
    assert_eq!(encode(&request, 15), Err(refusal));

    let state = ReplicaState { replica_id: 3, replica_epoch: 4 };
    let request = FetchRequest { replica_state: state, ..FetchRequest::default() };
    assert!(encode(&request, 15).is_ok());
    let refusal =
        EncodeError::UnsupportedField { structure: "FetchRequest", field: "ReplicaState", version: 14 };
    assert_eq!(encode(&request, 14), Err(refusal), "tagged fields as well");
    let refusal =
        EncodeError::UnsupportedField { structure: "FetchRequest", field: "ReplicaState", version: 0 };
    assert_eq!(encode(&request, 0), Err(refusal));
}

#[test]
fn null_is_written_and_read_only_where_the_version_allows_it() {
    let all = MetadataRequest { topics: None, ..MetadataRequest::default() };
    let refusal = EncodeError::UnexpectedNull { structure: "MetadataRequest", field: "Topics", version: 0 };
    assert_eq!(encode(&all, 0), Err(refusal));
    assert_eq!(decode::<MetadataRequest>(&[0xff; 4], 0), Err(DecodeError::UnexpectedNull));
    assert_eq!(decode::<MetadataRequest>(&[0xff; 4], 1), Ok(all));

    let nameless = MetadataRequestTopic { topic_id: TopicId([1; 16]), name: None };
    let by_id = MetadataRequest { topics: Some(vec![nameless]), ..MetadataRequest::default() };
    assert_eq!(decode(&encode(&by_id, 12).unwrap(), 12), Ok(by_id.clone()));
    let refusal =
        EncodeError::UnexpectedNull { structure: "MetadataRequestTopic", field: "Name", version: 9 };
    assert_eq!(encode(&by_id, 9), Err(refusal));
    assert_eq!(decode::<MetadataRequest>(&[2, 0, 0], 9), Err(DecodeError::UnexpectedNull));
}

#[test]
fn elements_of_the_smallest_size_fit_their_count() {
    for key in ApiKey::ALL.iter().filter(|key| key.is_served()) {
        for version in key.versions() {
            for (kind, seed) in (0..30).flat_map(|seed| [(Kind::Request, seed), (Kind::Response, seed)]) {
                let message = random_any(key.code(), version, kind, &mut Rng::small(seed)).unwrap();
                let mut dst = Encoder::new();
                message.encode(&mut dst, version).unwrap();
                let mut src = Decoder::new(dst.into_bytes());
                let read = decode_any(key.code(), version, kind, &mut src);
                assert_eq!(format!("{:?}", read.unwrap()), format!("{message:?}"), "v{version}");
            }
        }
    }
}

#[test]
fn a_count_is_refused_when_its_smallest_elements_do_not_fit() {
    // A topic takes at least 6 bytes in version 8 (name, partitions), in version 9 at least 3.
    let head = [0xff, 0xff, 0, 1, 0, 0, 0, 0];
    let classic = |count: u8, left: usize| [&head[..], &[0, 0, 0, count], &vec![0; left]].concat();
    let refused = |count, left| Err(DecodeError::CountTooLarge { count, left });
    assert_eq!(decode::<ProduceRequest>(&classic(3, 17), 8), refused(3, 17));
    assert_eq!(decode::<ProduceRequest>(&classic(3, 18), 8).unwrap().topic_data.len(), 3);
    let compact = |count: u8, left: usize| [&[0, 0, 1, 0, 0, 0, 0, count + 1], &vec![1; left][..]].concat();
    assert_eq!(decode::<ProduceRequest>(&compact(3, 8), 9), refused(3, 8));
    assert_ne!(decode::<ProduceRequest>(&compact(3, 9), 9), refused(3, 9));
}

#[test]
fn a_length_below_minus_one_is_refused() {
    let too_low = 0xffff_fffe_u32.to_be_bytes();
    assert_eq!(decode::<MetadataRequest>(&too_low, 1), Err(DecodeError::NegativeLength(-2)));
    assert_eq!(decode::<SaslHandshakeRequest>(&[0xff, 0xfe], 1), Err(DecodeError::NegativeLength(-2)));
}

#[test]
fn versions_that_do_not_exist_are_refused() {
    for version in [-1, 18, i16::MAX, i16::MIN] {
        let message = "FetchRequest";
        let unsupported = DecodeError::UnsupportedVersion { message, version };
        assert_eq!(decode::<FetchRequest>(&[0; 64], version), Err(unsupported));
        let unsupported = EncodeError::UnsupportedVersion { message, version };
        assert_eq!(encode(&FetchRequest::default(), version), Err(unsupported));
        assert!(decode_any(1, version, Kind::Request, &mut Decoder::new(vec![0; 64])).is_err());
    }
}

#[test]
fn bytes_behind_the_message_are_left() {
    let mut src = Decoder::new(vec![0, 0, 0, 0, 1, 2, 3]);
    assert!(MetadataRequest::decode(&mut src, 1).is_ok());
    assert_eq!(src.rest(), &[1, 2, 3][..]);
}

#[test]
fn unknown_tagged_fields_are_skipped_by_their_size() {
    // Three fields: tag 9 with two bytes, tag 0 (the cluster id "c"), tag 5 with none.
    let mut bytes = encode(&FetchRequest::default(), 12).unwrap().to_vec();
    assert_eq!(bytes.pop(), Some(0));
    bytes.extend([3, 9, 2, 0xaa, 0xbb, 0, 2, 2, b'c', 5, 0]);
    let expected = FetchRequest { cluster_id: Some("c".into()), ..FetchRequest::default() };
    assert_eq!(decode(&bytes, 12), Ok(expected));
}

#[test]
fn a_tagged_field_may_not_be_longer_than_its_size() {
    let mut bytes = encode(&FetchRequest::default(), 12).unwrap().to_vec();
    assert_eq!(bytes.pop(), Some(0));
    bytes.extend([1, 0, 1, 2, b'c', 0, 0]);
    assert_eq!(decode::<FetchRequest>(&bytes, 12), Err(DecodeError::TaggedFieldTooLong { tag: 0, size: 1 }));
}

#[test]
fn a_tag_is_unknown_in_versions_before_it() {
    // Tag 1 is the replica state from version 15 on; before, its content may be anything.
    let mut bytes = encode(&FetchRequest::default(), 12).unwrap().to_vec();
    assert_eq!(bytes.pop(), Some(0));
    bytes.extend([1, 1, 3, 0xff, 0xff, 0xff]);
    assert_eq!(decode(&bytes, 12), Ok(FetchRequest::default()));
}

#[test]
fn strings_end_at_32767_bytes() {
    let handshake = |len| SaslHandshakeRequest { mechanism: "x".repeat(len).into() };
    let longest = encode(&handshake(32767), 1).unwrap();
    assert_eq!(decode(&longest, 1), Ok(handshake(32767)));
    assert_eq!(encode(&handshake(32768), 1), Err(EncodeError::StringTooLong(32768)));

    let mut dst = Encoder::new();
    dst.put_uvarint(32768 + 1);
    dst.put_slice(&vec![b'x'; 40_000]);
    assert_eq!(decode::<ApiVersionsRequest>(&dst.into_bytes(), 3), Err(DecodeError::StringTooLong(32768)));
}

#[test]
fn variable_length_integers_end_after_five_bytes() {
    for (value, bytes) in [
        (0, &[0][..]),
        (127, &[0x7f]),
        (128, &[0x80, 1]),
        (0x3fff, &[0xff, 0x7f]),
        (0x4000, &[0x80, 0x80, 1]),
        (u32::MAX, &[0xff, 0xff, 0xff, 0xff, 0x0f]),
    ] {
        let mut dst = Encoder::new();
        dst.put_uvarint(value);
        assert_eq!(dst.into_bytes(), bytes);
        assert_eq!(Decoder::new(bytes.to_vec()).uvarint(), Ok(value));
    }
    assert_eq!(Decoder::new(vec![0x80; 6]).uvarint(), Err(DecodeError::VarintTooLong));
    let short = DecodeError::UnexpectedEnd { needed: 1, left: 0 };
    assert_eq!(Decoder::new(vec![0x80]).uvarint(), Err(short));
}

#[test]
fn strings_and_records_are_slices_of_the_frame() {
    let mut request = ProduceRequest::default();
    let partition =
        produce_request::PartitionProduceData { index: 0, records: Some(Bytes::from_static(b"batch")) };
    request
        .topic_data
        .push(produce_request::TopicProduceData { name: "t".into(), partition_data: vec![partition] });
    for version in ProduceRequest::VERSIONS {
        let frame = encode(&request, version).unwrap();
        let within = frame.as_ptr_range();
        let read = ProduceRequest::decode(&mut Decoder::new(frame.clone()), version).unwrap();
        let topic = &read.topic_data[0];
        assert!(within.contains(&topic.name.as_ptr()));
        assert!(within.contains(&topic.partition_data[0].records.as_ref().unwrap().as_ptr()));
    }
}

#[test]
fn a_message_read_by_key_is_the_message_of_that_key() {
    let request = SaslHandshakeRequest { mechanism: Str::from_static("PLAIN") };
    let bytes = encode(&request, 1).unwrap();
    let read = decode_any(17, 1, Kind::Request, &mut Decoder::new(bytes.clone())).unwrap();
    assert_eq!(read.as_any().downcast_ref(), Some(&request));
    assert_eq!(read.name(), "SaslHandshakeRequest");
    let mut dst = Encoder::new();
    read.encode(&mut dst, 1).unwrap();
    assert_eq!(dst.into_bytes(), bytes);
    let unknown = decode_any(99, 0, Kind::Request, &mut Decoder::new(bytes));
    assert_eq!(unknown.err(), Some(DecodeError::UnknownApiKey(99)));
}
