//! A fast keyed checksum of bytes, for guard bands, inputs and outputs.

const LANES: usize = 4;
const CHUNK: usize = LANES * 16;

/// A checksum under a secret key: without the key, no one can change bytes and keep the sum.
///
/// It is fast and protects against accidents and programs that do not know the seed; it is not
/// a cryptographic hash.
pub fn hash64(seed: u64, bytes: &[u8]) -> u64 {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        scatter(state)
    };
    let mut lanes: [u64; LANES] = std::array::from_fn(|_| next());
    let keys: [u64; LANES] = std::array::from_fn(|_| next() | 1);
    let (chunks, rest) = bytes.as_chunks::<CHUNK>();
    for chunk in chunks {
        absorb(&mut lanes, &keys, chunk);
    }
    if !rest.is_empty() {
        let mut last = [0; CHUNK];
        last[..rest.len()].copy_from_slice(rest);
        absorb(&mut lanes, &keys, &last);
    }
    let mut sum = next() ^ bytes.len() as u64;
    for (lane, key) in lanes.into_iter().zip(keys) {
        sum = fold(sum ^ lane, key) ^ lane.rotate_left(29);
    }
    scatter(sum)
}

#[inline(always)]
fn absorb(lanes: &mut [u64; LANES], keys: &[u64; LANES], chunk: &[u8; CHUNK]) {
    let words = chunk.as_chunks::<8>().0;
    for i in 0..LANES {
        let (a, b) = (u64::from_ne_bytes(words[2 * i]), u64::from_ne_bytes(words[2 * i + 1]));
        // The sum keeps the previous state even if a factor happens to be zero.
        lanes[i] = fold(a ^ lanes[i], b ^ keys[i]).wrapping_add(lanes[i].rotate_left(23));
    }
}

/// A full product, its two halves combined.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Every bit of the result depends on every bit of the argument; no two arguments give the same.
fn scatter(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
