//! Codecs: re-compression, foreign framings, damaged streams, streams that expand without end.

use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
use std::io::Write;

use super::*;
use crate::batch::BatchError;
use crate::batch::compress::compress;

/// About 200 KiB of records that compress somewhat.
fn large(codec: CompressionType) -> Batch {
    let mut builder = BatchBuilder::new(codec.into());
    let mut noise: u32 = 1;
    for at in 0..200i64 {
        let value: Vec<u8> = (0..1000u32)
            .map(|i| {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if i % 3 == 0 { (noise >> 24) as u8 } else { b'x' }
            })
            .collect();
        builder.append(Millis(NOW.0 - at), Some(&at.to_be_bytes()), Some(&value));
    }
    builder.build().unwrap()
}

/// `large`, its records carried by `body` and named `codec`.
fn carried(codec: CompressionType, body: &[u8]) -> Bytes {
    forge_body(&large(CompressionType::None), |h| h.set_compression(codec), body)
}

fn plain() -> Vec<u8> {
    large(CompressionType::None).body().to_vec()
}

fn assert_same_records(validated: &Validated) {
    assert_eq!(records_of(&written(validated)), records_of(&large(CompressionType::None)));
}

#[test]
fn a_topics_own_codec_is_used_whatever_the_producer_used() {
    for source in CompressionType::ALL {
        for target in CompressionType::ALL {
            let rules = ProduceRules { compression: TopicCompression::Fixed(target.into()), ..rules() };
            let validated = append(large(source).bytes, &rules).unwrap();
            let expected = if source == target { Change::InPlace } else { Change::Rebuilt };
            assert_eq!(validated.change, expected);
            assert_eq!(written(&validated).header.compression(), Ok(target));
            assert_same_records(&validated);
        }
    }
}

#[test]
fn levels_are_obeyed_where_the_codec_has_them() {
    let size = |compression| {
        let rules = ProduceRules { compression: TopicCompression::Fixed(compression), ..rules() };
        let validated = append(large(CompressionType::None).bytes, &rules).unwrap();
        assert_same_records(&validated);
        validated.size_in_bytes()
    };
    assert!(size(Compression::Gzip { level: 9 }) < size(Compression::Gzip { level: 1 }));
    assert!(size(Compression::Zstd { level: 19 }) < size(Compression::Zstd { level: -20 }));
    for level in [-131_072, 20] {
        assert!(size(Compression::Zstd { level }) < 220_000);
    }
    size(Compression::Gzip { level: -1 });
    size(Compression::Lz4 { level: 17 });
}

#[test]
fn zstd_needs_a_cluster_and_a_request_that_know_it() {
    let old = ProduceRules { zstd_allowed: false, ..rules() };
    let zstd = large(CompressionType::Zstd).bytes;
    assert_eq!(refusal(zstd.clone(), &old), Rejection::UnsupportedCompressionType);
    let fixed = TopicCompression::Fixed(Compression::Zstd { level: 3 });
    let old = ProduceRules { compression: fixed, ..old };
    assert_eq!(refusal(large(CompressionType::None).bytes, &old), Rejection::UnsupportedCompressionType);

    let error = check_request(Some(&zstd), 6).unwrap_err();
    assert_eq!(error.rejection(), Rejection::UnsupportedCompressionType);
    assert_eq!(check_request(Some(&zstd), 7), Ok(()));
    assert_eq!(check_request(Some(&large(CompressionType::Lz4).bytes), 6), Ok(()));
}

#[test]
fn unknown_codecs_are_refused() {
    for id in 5..=7 {
        let bytes = forge(&three(CompressionType::None), |h| h.attributes |= id);
        assert_eq!(refusal(bytes, &rules()), Rejection::UnsupportedCompressionType);
    }
}

#[test]
fn snappy_is_read_with_and_without_framing() {
    let bare = snap::raw::Encoder::new().compress_vec(&plain()).unwrap();
    let mut two_streams = compress(Compression::Snappy, &plain()[..70_000]).unwrap();
    two_streams.extend_from_slice(&compress(Compression::Snappy, &plain()[70_000..]).unwrap());
    for body in [bare, two_streams] {
        let validated = append(carried(CompressionType::Snappy, &body), &rules()).unwrap();
        assert_eq!(validated.change, Change::InPlace);
        assert_same_records(&validated);
    }
}

#[test]
fn gzip_members_are_read_one_after_the_other() {
    let gzip = Compression::Gzip { level: 6 };
    let mut body = compress(gzip, &plain()[..1]).unwrap();
    body.extend_from_slice(&compress(gzip, b"").unwrap());
    body.extend_from_slice(&compress(gzip, &plain()[1..]).unwrap());
    assert_same_records(&append(carried(CompressionType::Gzip, &body), &rules()).unwrap());
}

#[test]
fn zstd_frames_are_read_one_after_the_other() {
    let zstd = Compression::Zstd { level: 1 };
    let mut body = compress(zstd, &plain()[..100_000]).unwrap();
    body.extend_from_slice(&compress(zstd, b"").unwrap());
    body.extend_from_slice(&compress(zstd, &plain()[100_000..]).unwrap());
    assert_same_records(&append(carried(CompressionType::Zstd, &body), &rules()).unwrap());
}

fn lz4_frame(info: FrameInfo, data: &[u8]) -> Vec<u8> {
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

/// apache/kafka#22162.
#[test]
fn lz4_options_that_kafkas_writer_never_uses_are_read() {
    let info = FrameInfo::new;
    let size = plain().len() as u64;
    let options = [
        info(),
        info().content_checksum(true),
        info().block_checksums(true),
        info().content_size(Some(size)),
        info()
            .block_size(BlockSize::Max4MB)
            .content_checksum(true)
            .block_checksums(true)
            .content_size(Some(size)),
        info().block_size(BlockSize::Max256KB),
    ];
    for options in options {
        let body = lz4_frame(options.block_mode(BlockMode::Independent), &plain());
        let validated = append(carried(CompressionType::Lz4, &body), &rules()).unwrap();
        assert_eq!(validated.change, Change::InPlace);
        assert_same_records(&validated);
    }
}

/// apache/kafka#22162 and, for the checksum of the frame header, KIP-57, dpkp/kafka-python#522.
#[test]
fn a_wrong_content_checksum_of_lz4_is_not_noticed_but_others_are() {
    let info = FrameInfo::new().block_mode(BlockMode::Independent);
    let mut body = lz4_frame(info.clone().content_checksum(true), &plain());
    *body.last_mut().unwrap() ^= 1;
    assert!(append(carried(CompressionType::Lz4, &body), &rules()).is_ok());

    let mut body = lz4_frame(info.clone().block_checksums(true), &plain());
    let at = body.len() - 5;
    body[at] ^= 1;
    assert_eq!(refusal(carried(CompressionType::Lz4, &body), &rules()), Rejection::InvalidRecord);

    let mut body = lz4_frame(info, &plain());
    body[6] ^= 1;
    assert_eq!(refusal(carried(CompressionType::Lz4, &body), &rules()), Rejection::InvalidRecord);
}

/// apache/kafka#22162.
#[test]
fn lz4_frames_of_dependent_blocks_are_refused_as_no_java_consumer_reads_them() {
    let body = lz4_frame(FrameInfo::new().block_mode(BlockMode::Linked), &plain());
    let error = append(carried(CompressionType::Lz4, &body), &rules()).unwrap_err();
    assert_eq!(error.rejection(), Rejection::InvalidRecord);
    assert_eq!(error.to_string(), "compressed records cannot be read: lz4: blocks depend on each other");
}

/// eapache/go-xerial-snappy#2.
#[test]
fn a_snappy_block_that_points_past_the_end_is_refused() {
    let body = compress(Compression::Snappy, &plain()).unwrap();
    for cut in [1, 5, body.len() - 17] {
        let bytes = carried(CompressionType::Snappy, &body[..body.len() - cut]);
        assert_eq!(refusal(bytes, &rules()), Rejection::InvalidRecord);
    }
}

#[test]
fn cut_streams_are_refused() {
    for codec in CompressionType::ALL.into_iter().skip(1) {
        let body = compress(codec.into(), &plain()).unwrap();
        for len in [0, 1, 7, 20, body.len() / 2, body.len() - 9] {
            let refused = refusal(carried(codec, &body[..len]), &rules());
            assert_eq!(refused, Rejection::InvalidRecord, "{codec:?} cut at {len}");
        }
    }
}

#[test]
fn a_batch_that_expands_beyond_the_limit_is_too_large() {
    let limits = Limits { max_decompressed_bytes: 100_000 };
    for codec in CompressionType::ALL.into_iter().skip(1) {
        for compression in [TopicCompression::Producer, TopicCompression::Fixed(Compression::None)] {
            let rules = ProduceRules { limits, compression, ..rules() };
            let error = append(large(codec).bytes, &rules).unwrap_err();
            assert_eq!(error, BatchError::ExpandsTooFar { limit: 100_000 }.into(), "{codec:?}");
            assert_eq!(error.rejection(), Rejection::MessageTooLarge);
        }
        let enough = Limits { max_decompressed_bytes: plain().len() };
        assert!(append(large(codec).bytes, &ProduceRules { limits: enough, ..rules() }).is_ok());
    }
}

#[test]
fn a_snappy_block_that_claims_more_than_it_can_hold_is_refused_before_memory_is_taken() {
    let body = [0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0];
    assert_eq!(refusal(carried(CompressionType::Snappy, &body), &rules()), Rejection::InvalidRecord);
}
