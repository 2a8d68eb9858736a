//! What the inputs of a call are drawn from: bytes as a pure function of a seed and a stream.
//!
//! Every call has a stream of its own, so calls can be drawn in any order, and again later for a
//! check. The start of a stream is made from the secret seed by a one-way function: a kernel that
//! sees the inputs of one call cannot compute those of another. Hostile draws are values that
//! break kernels: subnormal, large, of mixed magnitude, nearly canceling, NaN.

mod checksum;
mod elements;
mod ends;
mod groups;
mod hostile;
mod lanes;
mod patterns;
mod poison;

pub use checksum::hash64;
pub use elements::{ElementDraw, ElementLayer, ElementRequest, ElementSource, dtype_number};
pub use groups::Skew;
pub use patterns::{InputPattern, PatternTarget, apply};
pub use poison::{Poison, poison};

use crate::tensor::{self, Dtype};
use lanes::{BLOCK, StreamKey, StreamLanes};
use serde::{Deserialize, Serialize};

/// The part of a stream that is reserved for nudges; no part of a draw has this number.
const NUDGE_PART: u32 = 12;

/// How the elements of one input are drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Draw {
    /// Evenly between two numbers.
    Uniform {
        /// The lower end.
        low: f64,
        /// The upper end.
        high: f64,
    },
    /// From the normal distribution.
    Normal {
        /// Its mean.
        mean: f64,
        /// Its standard deviation.
        sd: f64,
    },
    /// Integers, both ends included.
    Integers {
        /// The smallest.
        low: i64,
        /// The largest.
        high: i64,
    },
    /// The integers from 0 to n-1 in any order.
    Permutation,
    /// Zero except for a share of the elements.
    Sparse {
        /// The share that is not zeroed, 0 to 1.
        density: f64,
        /// What the others are drawn from.
        of: Box<Draw>,
    },
    /// One size for each element: group sizes, as in grouped products and routed experts.
    Groups {
        /// What the sizes add up to.
        total: u64,
        /// How unequal they are.
        skew: Skew,
        /// Whether real sizes are never more unequal than that; otherwise a kernel must also handle
        /// harsher ones.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        only: bool,
    },
    /// The same number everywhere.
    Constant {
        /// That number.
        value: f64,
    },
    /// In ascending order.
    Sorted {
        /// What is put in order.
        of: Box<Draw>,
    },
    /// Subnormal numbers of either sign.
    Denormals,
    /// Large numbers of either sign.
    Large {
        /// Near the largest number; otherwise sums of a few thousand products stay finite.
        #[serde(default)]
        full: bool,
    },
    /// Magnitudes from the smallest normal number to where products are still finite.
    Mixed,
    /// Neighbors of opposite sign and nearly equal magnitude.
    Cancelling,
    /// With a share of NaN; integer types have no NaN.
    Nans {
        /// The share that is NaN, 0 to 1.
        share: f64,
        /// What the others are drawn from.
        of: Box<Draw>,
    },
    /// Zero everywhere.
    Zeros,
    /// From its own seeds, whatever the call's seed is: a tensor that was written in pieces at
    /// different times. For karve's own use only; not available in files.
    #[serde(skip)]
    Pieces {
        /// What every piece is drawn from.
        of: Box<Draw>,
        /// The pieces, each written over those before it. The first covers everything.
        pieces: Vec<DrawSegment>,
    },
}

/// Elements that were drawn at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrawSegment {
    /// From this seed.
    pub seed: u64,
    /// The first element.
    pub from: u64,
    /// One past the last element.
    pub to: u64,
}

impl Draw {
    /// What is wrong with the parameters of this draw for elements of that type, if anything.
    pub fn complaint(&self, dtype: Dtype) -> Option<String> {
        let share = |name: &str, value: f64| {
            let good = (0.0..=1.0).contains(&value);
            (!good).then(|| format!("{name} is {value}, but must be between 0 and 1"))
        };
        match self {
            Draw::Uniform { low, high } => {
                let good = low.is_finite() && high.is_finite() && low <= high;
                (!good).then(|| format!("low is {low} and high is {high}: not a range"))
            }
            Draw::Normal { mean, sd } => {
                let good = mean.is_finite() && sd.is_finite() && *sd >= 0.0;
                (!good).then(|| format!("mean is {mean} and sd is {sd}: not a distribution"))
            }
            Draw::Integers { low, high } => {
                (low > high).then(|| format!("low is {low} and high is {high}: not a range"))
            }
            Draw::Sparse { density, of } => {
                share("density", *density).or_else(|| of.complaint(dtype))
            }
            Draw::Nans { share: of_nans, of } => share("share", *of_nans).or_else(|| {
                let integer = (!dtype.is_float()).then(|| format!("{} has no NaN", dtype.name()));
                integer.or_else(|| of.complaint(dtype))
            }),
            Draw::Sorted { of } | Draw::Pieces { of, .. } => of.complaint(dtype),
            Draw::Groups { total, .. } => {
                let good = *total <= i64::MAX as u64;
                (!good).then(|| format!("total is {total}, which is more than 2^63 - 1"))
            }
            Draw::Constant { .. } | Draw::Permutation | Draw::Denormals | Draw::Large { .. } => {
                None
            }
            Draw::Mixed | Draw::Cancelling | Draw::Zeros => None,
        }
    }

    /// Whether some elements may be redrawn while the others stay.
    pub fn is_by_element(&self) -> bool {
        match self {
            Draw::Uniform { .. } | Draw::Normal { .. } | Draw::Integers { .. } => true,
            Draw::Denormals | Draw::Large { .. } | Draw::Mixed => true,
            Draw::Sparse { of, .. } | Draw::Nans { of, .. } => of.is_by_element(),
            Draw::Permutation | Draw::Groups { .. } | Draw::Sorted { .. } => false,
            Draw::Constant { .. } | Draw::Cancelling | Draw::Zeros | Draw::Pieces { .. } => false,
        }
    }

    /// Whether it gives subnormal numbers, or products that are: arithmetic on them may be slow.
    pub fn is_subnormal(&self) -> bool {
        match self {
            Draw::Denormals | Draw::Mixed => true,
            Draw::Sparse { of, .. } | Draw::Nans { of, .. } => of.is_subnormal(),
            Draw::Sorted { of } | Draw::Pieces { of, .. } => of.is_subnormal(),
            Draw::Uniform { .. } | Draw::Normal { .. } | Draw::Integers { .. } => false,
            Draw::Permutation | Draw::Groups { .. } | Draw::Constant { .. } => false,
            Draw::Large { .. } | Draw::Cancelling | Draw::Zeros => false,
        }
    }

    /// Harsher variants of these group sizes, each with a description.
    pub fn harsher(&self) -> Vec<(Self, &'static str)> {
        let Draw::Groups { total, skew, only: false } = *self else {
            return Vec::new();
        };
        let harsher = |skew: &Skew| {
            let (skew, only) = (*skew, true);
            (Draw::Groups { total, skew, only }, skew.describe())
        };
        skew.harsher().iter().map(harsher).collect()
    }

    /// Whether another seed gives other bytes.
    pub fn varies(&self) -> bool {
        match self {
            Draw::Constant { .. } | Draw::Zeros | Draw::Pieces { .. } => false,
            Draw::Sparse { of, .. } | Draw::Nans { of, .. } | Draw::Sorted { of } => of.varies(),
            Draw::Uniform { .. } | Draw::Normal { .. } | Draw::Integers { .. } => true,
            Draw::Permutation | Draw::Groups { .. } | Draw::Denormals => true,
            Draw::Large { .. } | Draw::Mixed | Draw::Cancelling => true,
        }
    }
}

/// Fills `out` with elements: a pure function of its arguments.
///
/// Except for constants, two streams give different bytes, and so do two seeds.
pub fn fill(draw: &Draw, dtype: Dtype, seed: u64, stream: u64, out: &mut [u8]) {
    let key = StreamKey { seed, stream, part: 0 };
    fill_part(draw, dtype, key, out);
}

fn fill_part(draw: &Draw, dtype: Dtype, key: StreamKey, out: &mut [u8]) {
    let count = out.len() / dtype.bytes();
    match draw {
        Draw::Uniform { low, high } => uniform((*low, *high), dtype, key, out),
        Draw::Normal { mean, sd } => normal((*mean, *sd), dtype, key, out),
        Draw::Integers { low, high } => integers((*low, *high), dtype, key, out),
        Draw::Permutation => tensor::from_i64(dtype, &permutation(count, key), out),
        Draw::Groups { total, skew, .. } => {
            let sizes = groups::sizes(*total, *skew, count, &mut StreamLanes::of(key));
            tensor::from_i64(dtype, &sizes, out);
        }
        Draw::Sparse { density, of } => {
            fill_part(of, dtype, key.inner(), out);
            replace_share(1.0 - density, dtype, 0.0, key, out);
        }
        Draw::Nans { share, of } => {
            fill_part(of, dtype, key.inner(), out);
            if dtype.is_float() {
                replace_share(*share, dtype, f64::NAN, key, out);
            }
        }
        Draw::Constant { value } => repeat(&element(dtype, *value), out),
        Draw::Zeros => out.fill(0),
        Draw::Sorted { of } => {
            fill_part(of, dtype, key.inner(), out);
            sort(dtype, out);
        }
        Draw::Denormals => hostile::denormals(dtype, key, out),
        Draw::Large { full } => hostile::large(*full, dtype, key, out),
        Draw::Mixed => hostile::mixed(dtype, key, out),
        Draw::Cancelling => hostile::cancelling(dtype, key, out),
        Draw::Pieces { of, pieces } => {
            let mut drawn = vec![0; out.len()];
            for piece in pieces {
                let seed = piece.seed;
                fill_part(of, dtype, StreamKey { seed, ..key }, &mut drawn);
                let at = |element: u64| (element as usize).min(count) * dtype.bytes();
                let (from, to) = (at(piece.from), at(piece.to.max(piece.from)));
                out[from..to].copy_from_slice(&drawn[from..to]);
            }
        }
    }
}

/// Changes every element by about one ULP, up or down: its type's epsilon, relative to the
/// element. Integers stay unchanged.
///
/// How much a reference changes then shows how large an error honest arithmetic may make.
pub fn nudge(dtype: Dtype, seed: u64, stream: u64, bytes: &mut [u8]) {
    let part = NUDGE_PART;
    let mut lanes = StreamLanes::of(StreamKey { seed, stream, part });
    let (mut tosses, mut values) = ([0.0; BLOCK], Vec::with_capacity(BLOCK));
    if !dtype.is_float() {
        return;
    }
    for chunk in bytes.chunks_mut(BLOCK * dtype.bytes()) {
        lanes.uniform_f64(&mut tosses);
        tensor::to_f64(dtype, chunk, &mut values);
        for (v, toss) in values.iter_mut().zip(&tosses) {
            *v += *v * dtype.epsilon() * if *toss < 0.5 { -1.0 } else { 1.0 };
        }
        tensor::from_f64(dtype, &values, chunk);
    }
}

/// Whether float32 holds every value of a type, so that the faster arithmetic is enough.
fn fits_f32(dtype: Dtype) -> bool {
    dtype.is_float() && dtype != Dtype::F64
}

fn uniform((low, high): (f64, f64), dtype: Dtype, key: StreamKey, out: &mut [u8]) {
    let mut lanes = StreamLanes::of(key);
    let width = high - low;
    if !fits_f32(dtype) {
        return by_block(dtype, out, |block| {
            lanes.uniform_f64(block);
            block.iter_mut().for_each(|v| *v = (low + *v * width).min(high));
        });
    }
    let ends = (low as f32, high as f32);
    if dtype == Dtype::F32 {
        let out = out.as_chunks_mut::<4>().0;
        return lanes.uniform_f32(ends, out, f32::to_ne_bytes);
    }
    let mut block = [0.0_f32; BLOCK];
    for chunk in out.chunks_mut(BLOCK * dtype.bytes()) {
        lanes.uniform_f32(ends, &mut block, |v| v);
        tensor::from_f32(dtype, &block, chunk);
    }
}

fn normal((mean, sd): (f64, f64), dtype: Dtype, key: StreamKey, out: &mut [u8]) {
    let mut lanes = StreamLanes::of(key);
    if !fits_f32(dtype) {
        return by_block(dtype, out, |block| {
            lanes.normal_f64(block);
            block.iter_mut().for_each(|v| *v = mean + *v * sd);
        });
    }
    let (mean, sd) = (mean as f32, sd as f32);
    let mut block = [0.0_f32; BLOCK];
    for chunk in out.chunks_mut(BLOCK * dtype.bytes()) {
        lanes.normal_f32(&mut block);
        block.iter_mut().for_each(|v| *v = mean + *v * sd);
        tensor::from_f32(dtype, &block, chunk);
    }
}

fn integers((low, high): (i64, i64), dtype: Dtype, key: StreamKey, out: &mut [u8]) {
    let mut lanes = StreamLanes::of(key);
    let steps = high.wrapping_sub(low) as u64;
    let mut block = [0_i64; BLOCK];
    for chunk in out.chunks_mut(BLOCK * dtype.bytes()) {
        lanes.integers(steps, &mut block);
        block.iter_mut().for_each(|v| *v = low.wrapping_add(*v));
        tensor::from_i64(dtype, &block, chunk);
    }
}

fn permutation(count: usize, key: StreamKey) -> Vec<i64> {
    let mut lanes = StreamLanes::of(key);
    let mut order: Vec<i64> = (0..count as i64).collect();
    for last in (1..count).rev() {
        order.swap(last, lanes.below(last as u64 + 1) as usize);
    }
    order
}

/// Fills block by block with numbers that `make` gives.
fn by_block(dtype: Dtype, out: &mut [u8], mut make: impl FnMut(&mut [f64; BLOCK])) {
    let mut block = [0.0; BLOCK];
    for chunk in out.chunks_mut(BLOCK * dtype.bytes()) {
        make(&mut block);
        tensor::from_f64(dtype, &block, chunk);
    }
}

/// The bytes of one element.
fn element(dtype: Dtype, value: f64) -> Vec<u8> {
    let mut bytes = vec![0; dtype.bytes()];
    tensor::from_f64(dtype, &[value], &mut bytes);
    bytes
}

/// Bytes copied at a time; a multiple of every element size, and small enough for the cache.
const REPEAT_BYTES: usize = 4_096;

/// Fills `out`, a whole number of elements, by copying what is there already.
fn repeat(element: &[u8], out: &mut [u8]) {
    let mut done = element.len().min(out.len());
    out[..done].copy_from_slice(&element[..done]);
    while done < out.len() {
        let more = done.min(out.len() - done).min(REPEAT_BYTES);
        out.copy_within(..more, done);
        done += more;
    }
}

/// Replaces a share of the elements by `value`, each by its own coin toss.
fn replace_share(share: f64, dtype: Dtype, value: f64, key: StreamKey, out: &mut [u8]) {
    let bytes = element(dtype, value);
    match dtype.bytes() {
        1 => replace_some::<1>(share, &bytes, key, out),
        2 => replace_some::<2>(share, &bytes, key, out),
        4 => replace_some::<4>(share, &bytes, key, out),
        _ => replace_some::<8>(share, &bytes, key, out),
    }
}

fn replace_some<const N: usize>(share: f64, element: &[u8], key: StreamKey, out: &mut [u8]) {
    let Some(element) = element.first_chunk::<N>() else {
        return;
    };
    let mut lanes = StreamLanes::of(key.mask());
    let mut tosses = [0.0; BLOCK];
    for block in out.chunks_mut(BLOCK * N) {
        lanes.uniform_f64(&mut tosses);
        for (chunk, toss) in block.as_chunks_mut::<N>().0.iter_mut().zip(&tosses) {
            *chunk = if *toss < share { *element } else { *chunk };
        }
    }
}

/// Sorts elements in ascending order; NaN comes last.
fn sort(dtype: Dtype, out: &mut [u8]) {
    if let Some(mut values) = tensor::to_integers(dtype, out) {
        values.sort_unstable();
        let bytes = values.iter().map(|v| v.to_le_bytes());
        for (chunk, bytes) in out.chunks_exact_mut(dtype.bytes()).zip(bytes) {
            chunk.copy_from_slice(&bytes[..dtype.bytes()]);
        }
        return;
    }
    let mut values = Vec::new();
    tensor::to_f64(dtype, out, &mut values);
    values.sort_unstable_by(f64::total_cmp);
    tensor::from_f64(dtype, &values, out);
}

#[cfg(test)]
mod tests;
