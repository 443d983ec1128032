//! The value of a znode's row in the file: checksum, format, fixed fields, data. Integers are big-endian.
//!
//! `crc32c: u32` over the path and all that follows · `format: u8` = 1 · `has_data: u8` (0 null, 1 data) · `czxid,
//! mzxid, pzxid, ctime_ms, mtime_ms: i64` · `version, created_children: i32` · the data to the end. Only persistent
//! znodes have a row.

use crate::store::SessionId;
use crate::tree::Record;
use bytes::Bytes;

const FORMAT: u8 = 1;
const CHECKED_FROM: usize = 4;
const DATA_AT: usize = 4 + 2 + 5 * 8 + 2 * 4;

pub(super) fn encode(path: &str, record: &Record, row: &mut Vec<u8>) {
    row.clear();
    row.extend_from_slice(&[0; CHECKED_FROM]);
    row.extend_from_slice(&[FORMAT, u8::from(record.data.is_some())]);
    for field in [record.czxid, record.mzxid, record.pzxid, record.ctime_ms, record.mtime_ms] {
        row.extend_from_slice(&field.to_be_bytes());
    }
    row.extend_from_slice(&record.version.to_be_bytes());
    row.extend_from_slice(&record.created_children.to_be_bytes());
    row.extend_from_slice(record.data.as_deref().unwrap_or_default());
    let crc = checksum(path, row.get(CHECKED_FROM..).unwrap_or_default());
    if let Some(field) = row.get_mut(..CHECKED_FROM) {
        field.copy_from_slice(&crc.to_be_bytes());
    }
}

/// The record of a row; `None` if the row is damaged or of an unknown format.
pub(super) fn decode(path: &str, row: &[u8]) -> Option<Record> {
    let (head, data) = row.split_at_checked(DATA_AT)?;
    let (crc, fields) = head.split_first_chunk::<4>()?;
    if checksum(path, row.get(CHECKED_FROM..)?) != u32::from_be_bytes(*crc) {
        return None;
    }
    let ([format, has_data], fields) = fields.split_first_chunk::<2>()?;
    if *format != FORMAT {
        return None;
    }
    let (czxid, fields) = long(fields)?;
    let (mzxid, fields) = long(fields)?;
    let (pzxid, fields) = long(fields)?;
    let (ctime_ms, fields) = long(fields)?;
    let (mtime_ms, fields) = long(fields)?;
    let (version, fields) = fields.split_first_chunk()?;
    let (created_children, _) = fields.split_first_chunk()?;
    Some(Record {
        data: (*has_data == 1).then(|| Bytes::copy_from_slice(data)),
        czxid,
        mzxid,
        pzxid,
        ctime_ms,
        mtime_ms,
        version: i32::from_be_bytes(*version),
        created_children: i32::from_be_bytes(*created_children),
        owner: SessionId::NONE,
    })
}

/// The checksum that a row carries.
pub(super) fn checksum_of(row: &[u8]) -> i64 {
    row.first_chunk().map_or(0, |crc| i64::from(u32::from_be_bytes(*crc)))
}

fn long(fields: &[u8]) -> Option<(i64, &[u8])> {
    let (field, rest) = fields.split_first_chunk()?;
    Some((i64::from_be_bytes(*field), rest))
}

fn checksum(path: &str, rest: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(path.as_bytes()), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(data: Option<&str>) -> Record {
        Record {
            data: data.map(|text| Bytes::copy_from_slice(text.as_bytes())),
            czxid: 1,
            mzxid: 2,
            pzxid: 3,
            ctime_ms: 4,
            mtime_ms: 5,
            version: 6,
            created_children: 7,
            owner: SessionId::NONE,
        }
    }

    #[test]
    fn a_row_gives_its_record_back_and_tells_null_from_empty() {
        let mut row = Vec::new();
        for data in [None, Some(""), Some("{}")] {
            encode("/a", &sample(data), &mut row);
            assert_eq!(decode("/a", &row), Some(sample(data)));
        }
    }

    #[test]
    fn any_flipped_bit_and_any_cut_of_a_row_is_noticed() {
        let mut row = Vec::new();
        encode("/a", &sample(Some("value")), &mut row);
        assert_eq!(decode("/b", &row), None);
        for bit in 0..row.len() * 8 {
            let mut bad = row.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode("/a", &bad), None, "bit {bit}");
        }
        for len in 0..row.len() {
            assert_eq!(decode("/a", &row[..len]), None, "length {len}");
        }
    }
}
