//! Faults of single records, and bytes that are no records.

use super::*;
use crate::batch::BatchError;

fn keyed(keys: &[Option<&[u8]>], timestamps: &[i64], codec: CompressionType) -> Bytes {
    let mut builder = BatchBuilder::new(codec.into());
    for (key, timestamp) in keys.iter().zip(timestamps) {
        builder.append(Millis(*timestamp), *key, Some(b"v"));
    }
    builder.build().unwrap().bytes
}

#[test]
fn every_record_without_a_key_is_named_on_a_compacted_topic() {
    let rules = ProduceRules { compacted: true, timestamp_before_max_ms: 1000, ..rules() };
    let key = Some(b"".as_slice());
    for codec in CompressionType::ALL {
        let bytes = keyed(&[key, None, key, None, key], &[NOW.0; 5], codec);
        assert_eq!(refused_records(bytes, &rules), (Rejection::InvalidRecord, vec![1, 3]));
        // A fault of a timestamp decides; a record without a key is not looked at further.
        let bytes = keyed(&[key, None, key], &[NOW.0, 0, 0], codec);
        assert_eq!(refused_records(bytes.clone(), &rules), (Rejection::InvalidTimestamp, vec![1, 2]));
        let error = append(bytes, &rules).unwrap_err();
        assert_eq!(error.record_errors()[0].fault, RecordFault::KeyMissing);
        assert!(append(keyed(&[key, key], &[NOW.0; 2], codec), &rules).is_ok());
    }
}

#[test]
fn refused_records_are_listed_up_to_a_bound_and_all_counted() {
    let rules = ProduceRules { compacted: true, ..rules() };
    let count = RecordErrors::MAX_LISTED + 1;
    let bytes = keyed(&vec![None; count], &vec![NOW.0; count], CompressionType::Lz4);
    let Err(ValidationError::Records(errors)) = append(bytes, &rules) else {
        panic!("accepted");
    };
    assert_eq!(errors.count(), count);
    assert_eq!(errors.listed().len(), RecordErrors::MAX_LISTED);
}

/// Batches whose only record is `body`, as it is and compressed.
fn lone(body: &[u8]) -> [Bytes; 2] {
    let fields = |h: &mut BatchHeader| (h.records_count, h.last_offset_delta) = (1, 0);
    let plain = forge_body(&three(CompressionType::None), fields, body);
    let packed = crate::batch::compress::compress(Compression::Gzip { level: 1 }, body).unwrap();
    [plain, forge_body(&three(CompressionType::Gzip), fields, &packed)]
}

#[test]
fn malformed_records_are_invalid_whatever_carries_them() {
    // length, attributes, timestamp delta, offset delta, key length, value length, header count
    let good = [12, 0, 0, 0, 1, 1, 0];
    for bytes in lone(&good) {
        assert!(append(bytes, &rules()).is_ok());
    }
    let malformed: [(&str, &[u8]); 14] = [
        ("empty", &[]),
        ("negative length", &[1]),
        ("longer than the batch", &[14, 0, 0, 0, 1, 1, 0]),
        ("shorter than its fields", &[10, 0, 0, 0, 1, 1, 0]),
        ("ends inside", &[12, 0, 0]),
        ("bytes behind it", &[12, 0, 0, 0, 1, 1, 0, 0]),
        ("bytes left inside", &[14, 0, 0, 0, 1, 1, 0, 0]),
        ("key longer than the record", &[12, 0, 0, 0, 8, 1, 0]),
        ("value longer than the record", &[12, 0, 0, 0, 1, 8, 0]),
        ("header count negative", &[12, 0, 0, 0, 1, 1, 1]),
        ("header count too large", &[12, 0, 0, 0, 1, 1, 20]),
        ("header without a key", &[16, 0, 0, 0, 1, 1, 2, 1, 1]),
        ("endless integer", &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80]),
        ("huge length", &[0xfe, 0xff, 0xff, 0xff, 0x0f, 0]),
    ];
    for (what, body) in malformed {
        for bytes in lone(body) {
            assert_eq!(refusal(bytes, &rules()), Rejection::InvalidRecord, "{what}");
        }
    }
}

#[test]
fn more_or_fewer_records_than_declared_are_invalid() {
    for codec in CompressionType::ALL {
        let batch = three(codec);
        let more = forge(&batch, |h| (h.records_count, h.last_offset_delta) = (2, 1));
        assert_eq!(append(more, &rules()), Err(BatchError::TrailingBytes.into()), "{codec:?}");
        let fewer = forge(&batch, |h| (h.records_count, h.last_offset_delta) = (4, 3));
        assert_eq!(append(fewer, &rules()), Err(BatchError::RecordsEndEarly.into()), "{codec:?}");
        let far_fewer = forge(&batch, |h| (h.records_count, h.last_offset_delta) = (i32::MAX, i32::MAX - 1));
        assert_eq!(refusal(far_fewer, &rules()), Rejection::InvalidRecord);
    }
}

#[test]
fn records_that_are_not_numbered_in_order_are_numbered_anew() {
    for codec in CompressionType::ALL {
        let mut builder = BatchBuilder::new(codec.into());
        for (delta, value) in [(5, b"a"), (5, b"b"), (0, b"c")] {
            builder.skip_to(delta).append_with_headers(NOW, None, Some(value), &[(b"h", None)]);
        }
        let bytes = forge(&builder.build().unwrap(), |h| h.last_offset_delta = 2);
        let validated = append(bytes, &rules()).unwrap();
        assert_eq!(validated.change, Change::Rebuilt, "{codec:?}");
        let stored = written(&validated);
        assert_eq!(stored.header.compression(), Ok(codec));
        let records = records_of(&stored);
        assert_eq!(records.iter().map(|r| r.offset_delta).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(records[1].value.as_deref(), Some(b"b".as_slice()));
        assert_eq!(&records[2].headers[0].key[..], b"h");
    }
}
