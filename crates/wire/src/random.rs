//! [`Rng`]: reproducible values for tests of messages; the same seed gives the same values.

use bytes::Bytes;

use crate::Str;
use crate::types::TopicId;

/// A splitmix64 generator.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
    small: bool,
}

impl Rng {
    /// The generator of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed, small: false }
    }

    /// The generator of this seed whose texts and bytes are empty and whose arrays have at most two elements,
    /// so that values take as few bytes as they can.
    #[must_use]
    pub fn small(seed: u64) -> Self {
        Self { state: seed, small: true }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `end`, not included; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % (end.max(1) as u64)) as usize
    }

    /// Either.
    pub fn bool(&mut self) -> bool {
        self.next() & 1 == 1
    }

    /// Any, small values and -1 more often.
    pub fn i64(&mut self) -> i64 {
        let value = self.next().cast_signed();
        match self.below(4) {
            0 => value % 128,
            1 => -1,
            _ => value,
        }
    }

    /// As [`i64`](Self::i64).
    pub fn i32(&mut self) -> i32 {
        self.i64() as i32
    }

    /// As [`i64`](Self::i64).
    pub fn i16(&mut self) -> i16 {
        self.i64() as i16
    }

    /// As [`i64`](Self::i64).
    pub fn u16(&mut self) -> u16 {
        self.i64() as u16
    }

    /// As [`i64`](Self::i64).
    pub fn i8(&mut self) -> i8 {
        self.i64() as i8
    }

    /// A number without NaN, so that equal is equal.
    pub fn f64(&mut self) -> f64 {
        self.i64() as f64 / 8.0
    }

    /// Any but the absent id.
    pub fn uuid(&mut self) -> TopicId {
        TopicId((u128::from(self.next()) << 64 | u128::from(self.next() | 1)).to_be_bytes())
    }

    /// Mostly short; sometimes long enough for a length of two bytes.
    fn length(&mut self) -> usize {
        if self.small {
            return 0;
        }
        if self.below(16) == 0 { 126 + self.below(200) } else { self.below(9) }
    }

    /// Text of letters with and without accents.
    pub fn string(&mut self) -> Str {
        let length = self.length();
        Str::from((0..length).map(|_| if self.below(8) == 0 { 'é' } else { 'k' }).collect::<String>())
    }

    /// Any bytes.
    pub fn bytes(&mut self) -> Bytes {
        (0..self.length()).map(|_| self.next() as u8).collect()
    }

    /// Any bytes; not a valid batch.
    pub fn records(&mut self) -> Bytes {
        self.bytes()
    }

    /// Up to three elements, rarely more than 127.
    pub fn array<T>(&mut self, mut element: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = match self.below(256) {
            count if self.small => count % 3,
            0 => 128,
            count => count % 4,
        };
        (0..count).map(|_| element(self)).collect()
    }
}
