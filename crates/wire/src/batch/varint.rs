//! Variable-length integers: zig-zag, then seven bits a byte, least significant first; the high bit of a byte
//! says that more follow. At most 5 bytes for 32 bits and 10 for 64.

use super::BatchError;
use super::input::Input;

const MORE: u8 = 0x80;
const LOW: u8 = 0x7f;

/// Appends `value`, zig-zag encoded.
pub(super) fn put_varint(out: &mut Vec<u8>, value: i32) {
    put_varlong(out, i64::from(value));
}

/// Appends `value`, zig-zag encoded.
pub(super) fn put_varlong(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= u64::from(MORE) {
        out.push(rest as u8 | MORE);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// The bytes that [`put_varlong`] (or [`put_varint`], whose values encode the same) writes for `value`.
pub(super) fn varint_len(value: i64) -> usize {
    let zigzag = ((value << 1) ^ (value >> 63)) as u64;
    let bits = 64 - (zigzag | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// Reads a 32-bit integer.
///
/// # Errors
/// [`BatchError::Varint`] after a fifth byte that says more follow; whatever `input` reports at its end.
#[inline]
pub(super) fn read_varint<I: Input>(input: &mut I) -> Result<i32, BatchError> {
    let first = input.byte()?;
    if first & MORE == 0 {
        return Ok(unzigzag(u64::from(first)) as i32);
    }
    let second = input.byte()?;
    let low = u64::from(first & LOW) | u64::from(second & LOW) << 7;
    if second & MORE == 0 {
        return Ok(unzigzag(low) as i32);
    }
    // Bits beyond the 32nd are dropped.
    Ok(unzigzag(read_rest(input, low, 5)? & u64::from(u32::MAX)) as i32)
}

/// Reads a 64-bit integer.
///
/// # Errors
/// [`BatchError::Varint`] after a tenth byte that says more follow; whatever `input` reports at its end.
#[inline]
pub(super) fn read_varlong<I: Input>(input: &mut I) -> Result<i64, BatchError> {
    let first = input.byte()?;
    if first & MORE == 0 {
        return Ok(unzigzag(u64::from(first)));
    }
    let second = input.byte()?;
    let low = u64::from(first & LOW) | u64::from(second & LOW) << 7;
    if second & MORE == 0 {
        return Ok(unzigzag(low));
    }
    Ok(unzigzag(read_rest(input, low, 10)?))
}

/// Reads the third and later bytes of an integer of at most `most` bytes.
fn read_rest<I: Input>(input: &mut I, low: u64, most: u32) -> Result<u64, BatchError> {
    let mut value = low;
    for at in 2..most {
        let byte = input.byte()?;
        value |= u64::from(byte & LOW) << (7 * at);
        if byte & MORE == 0 {
            return Ok(value);
        }
    }
    Err(BatchError::Varint)
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::super::input::SliceInput;
    use super::*;

    const VECTORS: [(i32, &[u8]); 9] = [
        (0, &[0x00]),
        (-1, &[0x01]),
        (1, &[0x02]),
        (63, &[0x7e]),
        (64, &[0x80, 0x01]),
        (-64, &[0x7f]),
        (-65, &[0x81, 0x01]),
        (i32::MAX, &[0xfe, 0xff, 0xff, 0xff, 0x0f]),
        (i32::MIN, &[0xff, 0xff, 0xff, 0xff, 0x0f]),
    ];

    #[test]
    fn integers_are_written_and_read_as_the_format_says() {
        for (value, bytes) in VECTORS {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!(out, bytes);
            assert_eq!(varint_len(i64::from(value)), bytes.len());
            assert_eq!(read_varint(&mut SliceInput::new(bytes)), Ok(value));
            assert_eq!(read_varlong(&mut SliceInput::new(bytes)), Ok(i64::from(value)));
        }
    }

    #[test]
    fn the_largest_64_bit_integers_take_ten_bytes() {
        for value in [i64::MIN, i64::MAX] {
            let mut out = Vec::new();
            put_varlong(&mut out, value);
            assert_eq!(out.len(), 10);
            assert_eq!(varint_len(value), 10);
            assert_eq!(read_varlong(&mut SliceInput::new(&out)), Ok(value));
        }
    }

    #[test]
    fn too_many_bytes_and_too_few_are_refused() {
        assert_eq!(read_varint(&mut SliceInput::new(&[0x80; 5])), Err(BatchError::Varint));
        assert_eq!(read_varlong(&mut SliceInput::new(&[0x80; 10])), Err(BatchError::Varint));
        assert_eq!(read_varint(&mut SliceInput::new(&[0x80; 4])), Err(BatchError::RecordsEndEarly));
    }
}
