//! Which partition a record goes to: by a hash of its key, as every Kafka client of the Java family does, so
//! that records of one key meet in one partition whoever produces them.

/// The partition of `key` among `count`; 0 if there is none.
pub(crate) fn partition_of_key(key: &[u8], count: usize) -> i32 {
    let positive = murmur2(key) & 0x7fff_ffff;
    let count = u32::try_from(count).unwrap_or(u32::MAX).max(1);
    (positive % count).cast_signed()
}

/// MurmurHash2 of 32 bits (Austin Appleby, public domain) with the seed of Kafka's clients.
fn murmur2(bytes: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    const SEED: u32 = 0x9747_b28c;
    let length = u32::try_from(bytes.len() & 0xffff_ffff).unwrap_or_default();
    let mut hash = SEED ^ length;
    let (words, tail) = bytes.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k = (k ^ (k >> 24)).wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ k;
    }
    if !tail.is_empty() {
        for (at, byte) in tail.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * at);
        }
        hash = hash.wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(M);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the Java client.
    #[test]
    fn the_hash_is_that_of_the_java_client() {
        for (key, hash) in [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ] {
            assert_eq!(murmur2(key.as_bytes()).cast_signed(), hash, "{key}");
        }
    }

    #[test]
    fn the_partition_lies_in_range() {
        for count in [1, 2, 3, 50] {
            for key in ["", "a", "foobar", "21"] {
                let partition = partition_of_key(key.as_bytes(), count);
                assert!((0..i32::try_from(count).unwrap()).contains(&partition));
            }
        }
        assert_eq!(partition_of_key(b"x", 0), 0);
    }
}
