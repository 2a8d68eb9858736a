//! What an output holds before a call, so that what a kernel did not write is seen.

use super::lanes::{Key, Lanes};
use super::{Draw, element, fill_part, repeat};
use crate::tensor::Dtype;

/// The part of a stream that is kept for poison; no part of a draw has this number.
const PART: u32 = 3;

/// With what an output is poisoned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Poison<'a> {
    /// What is not a number; a pattern for integers, which have no such value.
    Nan,
    /// Values as an output might have, but wrong ones: a kernel cannot tell that they are poison.
    Plausible {
        /// What they are drawn from.
        of: &'a Draw,
    },
    /// Bytes that look like chance and depend on the seed.
    Pattern,
}

/// Poisons an output; a pure function of what it is given.
pub fn poison(kind: Poison<'_>, seed: u64, dtype: Dtype, out: &mut [u8]) {
    let key = Key {
        seed,
        stream: 0,
        part: PART,
    };
    match kind {
        Poison::Nan if dtype.is_float() => repeat(&element(dtype, f64::NAN), out),
        Poison::Plausible { of } => fill_part(of, dtype, key, out),
        Poison::Nan | Poison::Pattern => {
            Lanes::of(key).bytes(out);
        }
    }
}
