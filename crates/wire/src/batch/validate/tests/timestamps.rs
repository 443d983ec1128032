//! Timestamps: who sets them, how far they may be off, and what the header tells of them.

use super::*;

fn stamped(timestamps: &[i64], codec: CompressionType) -> Batch {
    let mut builder = BatchBuilder::new(codec.into());
    for timestamp in timestamps {
        builder.append(Millis(*timestamp), Some(b"k"), None);
    }
    builder.build().unwrap()
}

#[test]
fn a_wrong_maximum_is_corrected_and_the_checksum_with_it() {
    for codec in CompressionType::ALL {
        for claimed in [0, NOW.0 + 10 * HOUR_MS, -1] {
            let bytes = forge(&three(codec), |h| h.max_timestamp = Millis(claimed));
            let validated = append(bytes, &rules()).unwrap();
            assert_eq!(validated.change, Change::Header);
            assert_eq!(written(&validated).header, three(codec).header);
        }
    }
}

#[test]
fn log_append_time_stamps_the_header_and_leaves_the_records_alone() {
    let rules = ProduceRules { timestamp_type: TimestampType::LogAppendTime, ..rules() };
    for codec in CompressionType::ALL {
        // Ten years ahead is of no interest here.
        let ahead = NOW.0 + 87_600 * HOUR_MS;
        let batch = stamped(&[ahead, ahead + 5], codec);
        let validated = append(batch.bytes.clone(), &rules).unwrap();
        assert_eq!(validated.change, Change::Header);
        assert_eq!(validated.log_append_time, Some(NOW));
        let stored = written(&validated);
        assert_eq!(stored.header.timestamp_type(), TimestampType::LogAppendTime);
        assert_eq!(stored.header.max_timestamp, NOW);
        assert_eq!(stored.body(), batch.body());
        assert!(records_of(&stored).iter().all(|record| record.timestamp == NOW));
    }
}

#[test]
fn a_rebuilt_batch_is_stamped_with_log_append_time_too() {
    let rules = ProduceRules {
        timestamp_type: TimestampType::LogAppendTime,
        compression: TopicCompression::Fixed(Compression::Zstd { level: 3 }),
        ..rules()
    };
    let validated = append(stamped(&[1, 2], CompressionType::None).bytes, &rules).unwrap();
    assert_eq!((validated.change, validated.log_append_time), (Change::Rebuilt, Some(NOW)));
    let stored = written(&validated);
    assert_eq!(stored.header.max_timestamp, NOW);
    assert_eq!(stored.header.timestamp_type(), TimestampType::LogAppendTime);
    assert_eq!(stored.header.base_timestamp, Millis(1));
}

#[test]
fn producers_must_not_claim_log_append_time() {
    let rules_append = ProduceRules { timestamp_type: TimestampType::LogAppendTime, ..rules() };
    let claim = |batch: &Batch| forge(batch, |h| h.set_timestamp_type(TimestampType::LogAppendTime));
    let refused = (Rejection::InvalidTimestamp, vec![0, 1, 2]);
    assert_eq!(refused_records(claim(&three(CompressionType::None)), &rules_append), refused);
    assert_eq!(refused_records(claim(&three(CompressionType::Lz4)), &rules_append), refused);
    // On a CreateTime topic only if there is no time to fall back on.
    let timeless = stamped(&[-1, -1, -1], CompressionType::None);
    assert_eq!(refused_records(claim(&timeless), &rules()), refused);
    let kept = append(claim(&three(CompressionType::None)), &rules()).unwrap();
    assert_eq!(kept.header, three(CompressionType::None).header);
}

#[test]
fn timestamps_out_of_range_are_refused_record_by_record() {
    let rules = ProduceRules { timestamp_before_max_ms: 1000, timestamp_after_max_ms: 10, ..rules() };
    for codec in [CompressionType::None, CompressionType::Zstd] {
        let ok = [NOW.0 - 1000, NOW.0, NOW.0 + 10, -1];
        assert!(append(stamped(&ok, codec).bytes, &rules).is_ok());
        let bad = [NOW.0 - 1001, NOW.0, -1, -2, NOW.0 + 11, NOW.0 + 10];
        let refused = refused_records(stamped(&bad, codec).bytes, &rules);
        assert_eq!(refused, (Rejection::InvalidTimestamp, vec![0, 3, 4]));
    }
    let error = append(stamped(&[NOW.0 + 11], CompressionType::None).bytes, &rules).unwrap_err();
    assert_eq!(
        error.to_string(),
        "1 of the records are refused, and the batch with them: record 0: timestamp 1700000000011 is out of \
         range, allowed is 1699999999000 to 1700000000010"
    );
}

#[test]
fn extreme_timestamps_do_not_wrap() {
    let bytes = stamped(&[NOW.0, 0, i64::MIN, -1], CompressionType::None).bytes;
    assert_eq!(append(bytes, &rules()).unwrap().max_timestamp(), NOW);
    let ahead = stamped(&[i64::MAX], CompressionType::None).bytes;
    assert_eq!(refused_records(ahead.clone(), &rules()), (Rejection::InvalidTimestamp, vec![0]));
    let open = ProduceRules { timestamp_after_max_ms: i64::MAX, ..rules() };
    assert_eq!(append(ahead, &open).unwrap().max_timestamp(), Millis(i64::MAX));
}

#[test]
fn records_without_a_timestamp_leave_the_batch_without_one() {
    let validated = append(stamped(&[-1, -1], CompressionType::Gzip).bytes, &rules()).unwrap();
    assert_eq!((validated.change, validated.max_timestamp()), (Change::InPlace, Millis(-1)));
    let below = append(stamped(&[-7], CompressionType::None).bytes, &rules()).unwrap();
    assert_eq!(below.max_timestamp(), Millis(-1));
}
