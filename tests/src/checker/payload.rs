//! Records that tell which they are: the value begins with the record's name, and the rest is noise that follows
//! from it, so that compression finds little and a changed byte is noticed.

use bytes::{BufMut, Bytes, BytesMut};

use super::history::RecordId;

/// Bytes of the name.
const NAME: usize = 12;

/// The value of a record, of `size` bytes or as many as its name takes.
#[must_use]
pub fn payload(id: RecordId, size: usize) -> Bytes {
    let mut value = BytesMut::with_capacity(size.max(NAME));
    value.put_u32(id.producer);
    value.put_u64(id.number);
    let mut noise = u64::from(id.producer) << 32 ^ id.number ^ 0x9e37_79b9_7f4a_7c15;
    while value.len() < size {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        value.put_u8(noise.to_be_bytes()[0]);
    }
    value.freeze()
}

/// Which record has this value; none when it is too short to be one.
#[must_use]
pub fn record_id(value: &[u8]) -> Option<RecordId> {
    let (producer, rest) = value.split_first_chunk()?;
    let number = rest.first_chunk()?;
    Some(RecordId { producer: u32::from_be_bytes(*producer), number: u64::from_be_bytes(*number) })
}

/// What a value consists of, in short.
#[must_use]
pub fn digest(value: &[u8]) -> u32 {
    crc32c::crc32c(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_tells_its_record_and_no_two_are_alike() {
        let id = RecordId { producer: 7, number: 1 << 40 };
        for size in [0, NAME, 100] {
            let value = payload(id, size);
            assert_eq!(value.len(), size.max(NAME));
            assert_eq!(record_id(&value), Some(id));
        }
        assert_eq!(record_id(&[0; NAME - 1]), None);
        let next = RecordId { number: id.number + 1, ..id };
        assert_ne!(digest(&payload(id, 100)), digest(&payload(next, 100)));
        assert_ne!(payload(id, 100)[NAME..], payload(next, 100)[NAME..]);
    }
}
