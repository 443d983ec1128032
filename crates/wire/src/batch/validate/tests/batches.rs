//! Faults of a batch as a whole.

use super::*;
use crate::batch::BatchError;
use crate::types::{LeaderEpoch, Offset};

#[test]
fn a_good_batch_is_kept_as_it_is_and_stamped_outside_its_checksum() {
    for codec in CompressionType::ALL {
        let batch = three(codec);
        let mut validated = append(batch.bytes.clone(), &rules()).unwrap();
        assert_eq!(validated.change, Change::InPlace);
        assert_eq!(validated.log_append_time, None);
        assert_eq!(validated.max_timestamp(), NOW);
        // The body is the request's own memory.
        assert_eq!(validated.body.as_ptr(), batch.body().as_ptr());

        validated.stamp(Offset(41), LeaderEpoch(6));
        assert_eq!(validated.last_offset(), Offset(43));
        assert_eq!(validated.shallow_offset_of_max_timestamp(), Offset(43));
        let stored = written(&validated);
        assert_eq!(stored.header.partition_leader_epoch, LeaderEpoch(6));
        assert_eq!(stored.bytes[21..], batch.bytes[21..]);
    }
}

#[test]
fn the_producers_leader_epoch_is_ignored() {
    let bytes = forge(&three(CompressionType::None), |h| h.partition_leader_epoch = LeaderEpoch(99));
    assert_eq!(append(bytes, &rules()).unwrap().change, Change::InPlace);
}

#[test]
fn counts_that_do_not_fit_the_offsets_are_invalid() {
    for codec in [CompressionType::None, CompressionType::Gzip] {
        let batch = three(codec);
        let mutants: [fn(&mut BatchHeader); 5] = [
            |h| h.last_offset_delta = 5,
            |h| h.last_offset_delta = -1,
            |h| h.records_count = 0,
            |h| h.records_count = -1,
            |h| (h.last_offset_delta, h.records_count) = (i32::MIN, i32::MAX),
        ];
        for mutant in mutants {
            assert_eq!(refusal(forge(&batch, mutant), &rules()), Rejection::InvalidRecord);
        }
    }
}

#[test]
fn fields_that_only_brokers_set_are_invalid_from_clients() {
    let batch = three(CompressionType::None);
    let error = append(forge(&batch, |h| h.base_offset = Offset(42)), &rules()).unwrap_err();
    assert_eq!(error, ValidationError::BaseOffset(42));
    assert_eq!(error.rejection(), Rejection::InvalidRecord);

    let error = append(forge(&batch, |h| h.set_control(true)), &rules()).unwrap_err();
    assert_eq!(error, ValidationError::ControlByClient);
    assert_eq!(error.rejection(), Rejection::InvalidRecord);
}

#[test]
fn a_coordinator_may_write_control_records_and_they_are_not_compressed() {
    let rules = ProduceRules {
        origin: AppendOrigin::Coordinator,
        compression: TopicCompression::Fixed(Compression::Snappy),
        ..rules()
    };
    let batch = forge(&three(CompressionType::None), |h| h.set_control(true));
    assert_eq!(append(batch.clone(), &rules).unwrap().body, batch.slice(61..));
}

#[test]
fn an_idempotent_batch_needs_a_sequence() {
    let batch = three(CompressionType::None);
    let with = |producer_id, sequence| {
        forge(&batch, |h| (h.producer_id, h.producer_epoch, h.base_sequence) = (producer_id, 0, sequence))
    };
    assert_eq!(refusal(with(9, -1), &rules()), Rejection::InvalidRecord);
    assert_eq!(refusal(with(9, i32::MIN), &rules()), Rejection::InvalidRecord);
    assert!(append(with(9, 0), &rules()).is_ok());
    assert!(append(with(-1, -1), &rules()).is_ok());
}

#[test]
fn two_batches_for_one_partition_are_invalid() {
    let batch = three(CompressionType::None).bytes;
    let two = Bytes::from([&batch[..], &batch].concat());
    assert_eq!(append(two.clone(), &rules()), Err(ValidationError::SeveralBatches(2)));
    assert_eq!(ValidationError::SeveralBatches(2).rejection(), Rejection::InvalidRecord);
    assert_eq!(check_request(Some(&two), 9), Err(ValidationError::NotOneBatch));
}

#[test]
fn a_damaged_batch_is_corrupt_but_its_leader_epoch_may_be_anything() {
    let batch = three(CompressionType::None).bytes;
    let flip = |at: usize| {
        let mut bytes = batch.to_vec();
        bytes[at] ^= 1;
        Bytes::from(bytes)
    };
    assert_eq!(refusal(flip(batch.len() - 2), &rules()), Rejection::CorruptMessage);
    assert_eq!(refusal(flip(18), &rules()), Rejection::CorruptMessage);
    assert_eq!(refusal(flip(30), &rules()), Rejection::CorruptMessage);
    assert!(append(flip(14), &rules()).is_ok());
}

#[test]
fn impossible_sizes_and_formats_are_corrupt() {
    let batch = three(CompressionType::None).bytes;
    let with = |at: usize, value: &[u8]| {
        let mut bytes = batch.to_vec();
        bytes[at..at + value.len()].copy_from_slice(value);
        Bytes::from(bytes)
    };
    for bytes in [
        with(8, &13i32.to_be_bytes()),
        with(8, &(-1i32).to_be_bytes()),
        with(8, &48i32.to_be_bytes()),
        with(16, &[3]),
        with(16, &[0xff]),
    ] {
        assert_eq!(refusal(bytes, &rules()), Rejection::CorruptMessage);
    }
}

#[test]
fn message_sets_of_old_formats_are_told_apart() {
    let v0 =
        [&[0u8; 8][..], &[0, 0, 0, 16, 0x1f, 0xec, 0xd7, 0x0a, 0, 0, 0, 0, 0, 1, b'k', 0, 0, 0, 1, b'v']]
            .concat();
    let v0 = Bytes::from(v0);
    assert_eq!(append(v0.clone(), &rules()), Err(BatchError::OldFormat(0).into()));
    assert_eq!(refusal(v0.clone(), &rules()), Rejection::UnsupportedForMessageFormat);
    assert_eq!(check_request(Some(&v0), 2), Ok(()));
    let error = check_request(Some(&v0), 3).unwrap_err();
    assert_eq!(error, ValidationError::FormatNotInRequest(0));
    assert_eq!(error.rejection(), Rejection::InvalidRecord);
}

#[test]
fn the_size_limit_is_for_the_batch_as_it_arrived() {
    let sized = |size: usize| {
        let mut builder = BatchBuilder::new(Compression::None);
        builder.append(NOW, None, Some(&vec![7; size - 61 - 9]));
        let bytes = builder.build().unwrap().bytes;
        assert_eq!(bytes.len(), size);
        bytes
    };
    let rules = ProduceRules { max_message_bytes: 1000, ..rules() };
    assert!(append(sized(999), &rules).is_ok());
    assert!(append(sized(1000), &rules).is_ok());
    let error = append(sized(1001), &rules).unwrap_err();
    assert_eq!(error, ValidationError::TooLarge { size: 1001, limit: 1000 });
    assert_eq!(error.rejection(), Rejection::MessageTooLarge);

    // How far it expands does not matter, unless the broker has to store it so.
    let mut builder = BatchBuilder::new(Compression::Gzip { level: 9 });
    builder.append(NOW, None, Some(&vec![0; 500_000]));
    let small = builder.build().unwrap().bytes;
    assert!(small.len() < 1000);
    assert!(append(small.clone(), &rules).is_ok());
    let stored_plain = ProduceRules { compression: TopicCompression::Fixed(Compression::None), ..rules };
    assert_eq!(refusal(small, &stored_plain), Rejection::MessageTooLarge);
}

#[test]
fn followers_take_what_the_leader_has_whatever_its_size_and_offsets() {
    let at = |offset: i64, timestamp: i64| {
        let mut builder =
            BatchBuilder::new(Compression::Snappy).base_offset(Offset(offset)).leader_epoch(LeaderEpoch(4));
        builder.append(Millis(timestamp), None, None).append(Millis(timestamp), None, None);
        builder.build().unwrap().bytes
    };
    let (first, second, third) = (at(100, 5), at(102, 9), at(104, 9));
    let partial = &first[..70];
    let run = Bytes::from([&first[..], &second, &third, partial].concat());
    let rules = AnalyzeRules { origin: AppendOrigin::Replication, max_message_bytes: 1 };
    let analysis = analyze(run, &rules).unwrap().unwrap();
    assert_eq!((analysis.first_offset(), analysis.last_offset), (Offset(100), Offset(105)));
    assert_eq!(analysis.first.header.last_offset(), Offset(101));
    assert_eq!(analysis.max_timestamp, Millis(9));
    assert_eq!(analysis.shallow_offset_of_max_timestamp, Offset(103));
    assert_eq!(analysis.batch_count, 3);
    assert_eq!(analysis.valid_bytes, first.len() + second.len() + third.len());
    assert_eq!(analysis.last_leader_epoch, LeaderEpoch(4));
    assert_eq!(analysis.source_compression, CompressionType::Snappy);
    assert!(analysis.offsets_monotonic);

    let backwards = Bytes::from([&second[..], &first].concat());
    assert!(!analyze(backwards, &rules).unwrap().unwrap().offsets_monotonic);
    let twice = Bytes::from([&second[..], &second].concat());
    assert!(!analyze(twice, &rules).unwrap().unwrap().offsets_monotonic);
}

#[test]
fn no_whole_batch_is_nothing_to_append() {
    let rules = AnalyzeRules { origin: AppendOrigin::Client, max_message_bytes: 1000 };
    let batch = three(CompressionType::None).bytes;
    for len in [0, 1, 16, 17, 60, 61, batch.len() - 1] {
        assert_eq!(analyze(batch.slice(..len), &rules), Ok(None), "{len} bytes");
        assert_eq!(check_request(Some(&batch.slice(..len)), 3), Err(ValidationError::NotOneBatch));
    }
    assert_eq!(check_request(None, 3), Err(ValidationError::NotOneBatch));
    assert_eq!(check_request(Some(&batch), 3), Ok(()));
}

#[test]
fn a_transactional_batch_keeps_its_producer_when_it_is_rebuilt() {
    let mut builder = BatchBuilder::new(Compression::None).producer(77, 3, i32::MAX - 1).transactional(true);
    builder.append(NOW, Some(b"a"), None).append(NOW, Some(b"b"), None).append(NOW, Some(b"c"), None);
    let rules =
        ProduceRules { compression: TopicCompression::Fixed(Compression::Lz4 { level: 9 }), ..rules() };
    let stored = written(&append(builder.build().unwrap().bytes, &rules).unwrap());
    assert!(stored.header.is_transactional());
    assert_eq!((stored.header.producer_id, stored.header.producer_epoch), (77, 3));
    assert_eq!((stored.header.base_sequence, stored.header.last_sequence()), (i32::MAX - 1, 0));
    let sequences: Vec<i32> = records_of(&stored).iter().map(|record| record.sequence).collect();
    assert_eq!(sequences, [i32::MAX - 1, i32::MAX, 0]);
}
