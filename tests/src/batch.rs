//! Record batches of format v2 made by hand, so that a test can break exactly one thing in them.
//!
//! Nothing here is shared with the broker: the layout is written down a second time on purpose.

use bytes::{BufMut, Bytes, BytesMut};

/// Bytes before the records of a batch.
pub const HEADER: usize = 61;
const CRC_AT: usize = 17;
const CRC_FROM: usize = 21;

/// What a batch says of itself; [`Draft::build`] computes sizes and checksum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// Offset of the first record; a leader overwrites it.
    pub base_offset: i64,
    /// Leader epoch; a leader overwrites it.
    pub leader_epoch: i32,
    /// The format's number.
    pub magic: i8,
    /// Codec in bits 0 to 2, timestamp type in bit 3, transactional in bit 4, control in bit 5.
    pub attributes: i16,
    /// Overrides the offset of the last record relative to the first.
    pub last_offset_delta: Option<i32>,
    /// Timestamp of the first record, in milliseconds.
    pub base_timestamp: i64,
    /// Overrides the largest timestamp.
    pub max_timestamp: Option<i64>,
    /// Producer id, or -1.
    pub producer_id: i64,
    /// Producer epoch, or -1.
    pub producer_epoch: i16,
    /// Sequence of the first record, or -1.
    pub base_sequence: i32,
    /// Overrides the number of records.
    pub count: Option<i32>,
    /// The records' keys and values.
    pub records: Vec<(Option<Bytes>, Option<Bytes>)>,
    /// The headers of every record.
    pub headers: Vec<(String, Option<Bytes>)>,
    /// Bytes in place of the encoded records, for compressed or broken ones.
    pub body: Option<Bytes>,
}

impl Draft {
    /// A plain batch of records with these values, no keys, at `timestamp`.
    #[must_use]
    pub fn of_values(timestamp: i64, values: &[&[u8]]) -> Self {
        Self {
            base_offset: 0,
            leader_epoch: -1,
            magic: 2,
            attributes: 0,
            last_offset_delta: None,
            base_timestamp: timestamp,
            max_timestamp: None,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            count: None,
            records: values.iter().map(|value| (None, Some(Bytes::copy_from_slice(value)))).collect(),
            headers: Vec::new(),
            body: None,
        }
    }

    /// The same with these headers on every record.
    #[must_use]
    pub fn with_headers(mut self, headers: &[(&str, Option<&[u8]>)]) -> Self {
        let owned =
            |(key, value): &(&str, Option<&[u8]>)| ((*key).to_owned(), value.map(Bytes::copy_from_slice));
        self.headers = headers.iter().map(owned).collect();
        self
    }

    /// The same from an idempotent producer.
    #[must_use]
    pub fn from_producer(mut self, id: i64, epoch: i16, sequence: i32) -> Self {
        (self.producer_id, self.producer_epoch, self.base_sequence) = (id, epoch, sequence);
        self
    }

    /// The encoded records, uncompressed.
    #[must_use]
    pub fn encode_records(&self) -> Bytes {
        let mut body = BytesMut::new();
        for (delta, (key, value)) in self.records.iter().enumerate() {
            let mut record = BytesMut::new();
            record.put_i8(0);
            put_varint(&mut record, 0);
            put_varint(&mut record, i64::try_from(delta).unwrap_or(i64::MAX));
            for part in [key, value] {
                put_nullable(&mut record, part.as_deref());
            }
            put_varint(&mut record, i64::try_from(self.headers.len()).unwrap_or(i64::MAX));
            for (key, value) in &self.headers {
                put_nullable(&mut record, Some(key.as_bytes()));
                put_nullable(&mut record, value.as_deref());
            }
            put_varint(&mut body, i64::try_from(record.len()).unwrap_or(i64::MAX));
            body.put_slice(&record);
        }
        body.freeze()
    }

    /// The batch's bytes with a right size and checksum.
    #[must_use]
    pub fn build(&self) -> Bytes {
        let body = self.body.clone().unwrap_or_else(|| self.encode_records());
        let count = i32::try_from(self.records.len()).unwrap_or(i32::MAX);
        let mut batch = BytesMut::with_capacity(HEADER + body.len());
        batch.put_i64(self.base_offset);
        batch.put_i32(i32::try_from(HEADER - 12 + body.len()).unwrap_or(i32::MAX));
        batch.put_i32(self.leader_epoch);
        batch.put_i8(self.magic);
        batch.put_u32(0);
        batch.put_i16(self.attributes);
        batch.put_i32(self.last_offset_delta.unwrap_or(count - 1));
        batch.put_i64(self.base_timestamp);
        batch.put_i64(self.max_timestamp.unwrap_or(self.base_timestamp));
        batch.put_i64(self.producer_id);
        batch.put_i16(self.producer_epoch);
        batch.put_i32(self.base_sequence);
        batch.put_i32(self.count.unwrap_or(count));
        batch.put_slice(&body);
        seal(&mut batch);
        batch.freeze()
    }
}

/// Writes the right checksum into a batch whose bytes were changed.
pub fn seal(batch: &mut BytesMut) {
    let crc = crc32c::crc32c(batch.get(CRC_FROM..).unwrap_or_default());
    if let Some(place) = batch.get_mut(CRC_AT..CRC_FROM) {
        place.copy_from_slice(&crc.to_be_bytes());
    }
}

fn put_nullable(to: &mut BytesMut, bytes: Option<&[u8]>) {
    match bytes {
        None => put_varint(to, -1),
        Some(bytes) => {
            put_varint(to, i64::try_from(bytes.len()).unwrap_or(i64::MAX));
            to.put_slice(bytes);
        }
    }
}

fn put_varint(to: &mut BytesMut, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while rest >= 0x80 {
        to.put_u8(u8::try_from(rest & 0x7f).unwrap_or(0) | 0x80);
        rest >>= 7;
    }
    to.put_u8(u8::try_from(rest).unwrap_or(0));
}

/// The milliseconds since 1970.
#[must_use]
pub fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_protocol::protocol::StrBytes;
    use kafka_protocol::records::RecordBatchDecoder;

    #[test]
    fn a_batch_made_here_is_read_by_others() {
        let values: [&[u8]; 3] = [b"a", b"", &[7; 300]];
        // That crate cannot read a header without a value.
        let headers = [("a", Some(&b"1"[..])), ("b", Some(b""))];
        let draft = Draft::of_values(1_000, &values).from_producer(5, 1, 70).with_headers(&headers);
        let mut bytes = draft.build();
        assert_eq!(bytes.len(), HEADER + draft.encode_records().len());
        let read = RecordBatchDecoder::decode(&mut bytes).unwrap();
        let got: Vec<&[u8]> = read.records.iter().map(|r| r.value.as_deref().unwrap()).collect();
        assert_eq!(got, values);
        let last = &read.records[2];
        assert_eq!((last.producer_id, last.producer_epoch, last.sequence, last.offset), (5, 1, 72, 2));
        assert_eq!(last.timestamp, 1_000);
        let header =
            |name: &'static str| last.headers.get(&StrBytes::from_static_str(name)).unwrap().as_deref();
        assert_eq!((header("a"), header("b")), (Some(&b"1"[..]), Some(&b""[..])));
    }
}
