//! Fills an output before a call, so that elements the kernel did not write are detected.

use super::lanes::{StreamKey, StreamLanes};
use super::{Draw, element, fill_part, repeat};
use crate::tensor::Dtype;

/// The part of a stream that is reserved for poison; no part of a draw has this number.
const PART: u32 = 3;

/// What an output is poisoned with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Poison<'a> {
    /// NaN; a pattern for integers, which have no NaN.
    Nan,
    /// Plausible but wrong values: a kernel cannot tell that they are poison.
    Plausible {
        /// What they are drawn from.
        of: &'a Draw,
    },
    /// Bytes that look random and depend on the seed.
    Pattern,
}

/// Poisons an output; a pure function of its arguments.
pub fn poison(kind: Poison<'_>, seed: u64, dtype: Dtype, out: &mut [u8]) {
    let key = StreamKey { seed, stream: 0, part: PART };
    match kind {
        Poison::Nan if dtype.is_float() => repeat(&element(dtype, f64::NAN), out),
        Poison::Plausible { of } => fill_part(of, dtype, key, out),
        Poison::Nan | Poison::Pattern => {
            StreamLanes::of(key).bytes(out);
        }
    }
}
