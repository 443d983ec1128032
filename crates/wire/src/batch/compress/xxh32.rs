//! xxHash, 32 bits, seed 0: the checksum inside LZ4 frames.

const P1: u32 = 0x9e37_79b1;
const P2: u32 = 0x85eb_ca77;
const P3: u32 = 0xc2b2_ae3d;
const P4: u32 = 0x27d4_eb2f;
const P5: u32 = 0x1656_67b1;

/// The hash of `data`.
pub(super) fn xxh32(data: &[u8]) -> u32 {
    let mut stripes = data.chunks_exact(16);
    let mut hash = if data.len() >= 16 {
        let mut lanes = [P1.wrapping_add(P2), P2, 0, 0u32.wrapping_sub(P1)];
        for stripe in &mut stripes {
            for (lane, word) in lanes.iter_mut().zip(stripe.chunks_exact(4)) {
                *lane = lane.wrapping_add(le_word(word).wrapping_mul(P2)).rotate_left(13).wrapping_mul(P1);
            }
        }
        let [a, b, c, d] = lanes;
        a.rotate_left(1)
            .wrapping_add(b.rotate_left(7))
            .wrapping_add(c.rotate_left(12))
            .wrapping_add(d.rotate_left(18))
    } else {
        P5
    };
    hash = hash.wrapping_add(data.len() as u32);
    let mut words = stripes.remainder().chunks_exact(4);
    for word in &mut words {
        hash = hash.wrapping_add(le_word(word).wrapping_mul(P3)).rotate_left(17).wrapping_mul(P4);
    }
    for byte in words.remainder() {
        hash = hash.wrapping_add(u32::from(*byte).wrapping_mul(P5)).rotate_left(11).wrapping_mul(P1);
    }
    hash = (hash ^ (hash >> 15)).wrapping_mul(P2);
    hash = (hash ^ (hash >> 13)).wrapping_mul(P3);
    hash ^ (hash >> 16)
}

fn le_word(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |word| u32::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_hashes_are_found() {
        assert_eq!(xxh32(b""), 0x02cc_5d05);
        assert_eq!(xxh32(b"a"), 0x550d_7456);
        assert_eq!(xxh32(b"Nobody inspects the spammish repetition"), 0xe229_3b2f);
    }
}
