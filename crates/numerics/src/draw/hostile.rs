//! Values that break kernels, within the range of the element type.

use super::by_block;
use super::lanes::{BLOCK, StreamKey, StreamLanes};
use crate::tensor::{Dtype, power_of_two};

/// By how much large numbers stay below the root of the largest: sums of 4096 products are finite.
const HEADROOM: f64 = 64.0;

/// The magnitudes that a type has.
pub(super) struct Magnitudes {
    /// The smallest above zero.
    pub(super) smallest: f64,
    /// The largest subnormal number as a multiple of the smallest.
    pub(super) n_subnormal: f64,
    pub(super) exponent_min: i32,
    pub(super) largest: f64,
    /// Up to here sums of products are finite.
    pub(super) root: f64,
    pub(super) epsilon: f64,
    pub(super) signed: bool,
}

pub(super) fn magnitudes(dtype: Dtype) -> Magnitudes {
    if let Some(range) = dtype.float_range() {
        // Eight-bit kernels return their results in a wider type.
        let room = if dtype.bytes() == 1 { 2.0 } else { HEADROOM };
        return Magnitudes {
            smallest: range.smallest(),
            n_subnormal: power_of_two(range.fraction_bits) - 1.0,
            exponent_min: range.exponent_min,
            largest: range.largest,
            root: range.largest.sqrt() / room,
            epsilon: dtype.epsilon(),
            signed: true,
        };
    }
    let (low, high) = dtype.integer_range().unwrap_or((0, 1));
    let largest = high as f64;
    Magnitudes {
        smallest: 1.0,
        n_subnormal: 1.0,
        exponent_min: 0,
        largest,
        root: (largest.sqrt() / HEADROOM).max(1.0),
        epsilon: 1.0 / largest,
        signed: low < 0,
    }
}

/// Blocks of uniform numbers from 0 to 1, and of signs.
fn with_signs(
    dtype: Dtype,
    key: StreamKey,
    out: &mut [u8],
    mut make: impl FnMut(&Magnitudes, &mut [f64; BLOCK], &[f64; BLOCK]),
) {
    let magnitudes = magnitudes(dtype);
    let mut lanes = StreamLanes::of(key);
    let mut signs = [1.0; BLOCK];
    by_block(dtype, out, |block| {
        if magnitudes.signed {
            lanes.uniform_f64(&mut signs);
            signs.iter_mut().for_each(|s| *s = if *s < 0.5 { -1.0 } else { 1.0 });
        }
        lanes.uniform_f64(block);
        make(&magnitudes, block, &signs);
    });
}

/// Subnormal numbers; for integers ones.
pub(super) fn denormals(dtype: Dtype, key: StreamKey, out: &mut [u8]) {
    with_signs(dtype, key, out, |m, block, signs| {
        for (v, sign) in block.iter_mut().zip(signs) {
            *v = sign * m.smallest * (1.0 + (*v * m.n_subnormal).floor());
        }
    });
}

/// Numbers near the largest, or near its root with some room.
pub(super) fn large(full: bool, dtype: Dtype, key: StreamKey, out: &mut [u8]) {
    with_signs(dtype, key, out, |m, block, signs| {
        let most = if full { m.largest } else { m.root };
        for (v, sign) in block.iter_mut().zip(signs) {
            *v = sign * most * (0.5 + 0.5 * *v);
        }
    });
}

/// Magnitudes whose logarithms are evenly spread.
pub(super) fn mixed(dtype: Dtype, key: StreamKey, out: &mut [u8]) {
    with_signs(dtype, key, out, |m, block, signs| {
        let top = m.root.log2().floor() as i32;
        let n_exponents = f64::from(top - m.exponent_min);
        for (v, sign) in block.iter_mut().zip(signs) {
            let place = *v * n_exponents;
            // The fractional part is as random as the integer part.
            let fraction = 1.0 + place.fract();
            *v = sign * fraction * power_of_two(m.exponent_min + place as i32);
        }
    });
}

/// Pairs of neighbors that nearly cancel each other; for unsigned types they are nearly equal.
pub(super) fn cancelling(dtype: Dtype, key: StreamKey, out: &mut [u8]) {
    with_signs(dtype, key, out, |m, block, signs| {
        let (scale, other) = (m.root.min(1.0).max(m.smallest), if m.signed { -1.0 } else { 1.0 });
        let scale = if dtype.is_float() { scale } else { m.largest / 2.0 };
        for (pair, signs) in block.as_chunks_mut::<2>().0.iter_mut().zip(signs.as_chunks::<2>().0) {
            let value = signs[0] * scale * (0.5 + 0.5 * pair[0]);
            let apart = 1.0 + m.epsilon * (4.0 * pair[1] + 0.5);
            *pair = [value, other * value * apart];
        }
    });
}
