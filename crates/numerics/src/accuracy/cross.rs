//! A fast check of one output against another, for every timed call.
//!
//! The reference is too slow to run on every call, but candidate and incumbent run on the same
//! inputs. Their outputs differ by no more than the sum of their errors.

use super::{ErrorStats, OutputInfo};
use crate::tensor::{self, Dtype};
use serde::{Deserialize, Serialize};

/// Fresh inputs of the same kind may be worse than those on which the errors were measured.
const MARGIN: f64 = 3.0;

/// Two outputs that were rounded from nearly the same value differ by at most one ULP: an epsilon
/// of the element, and somewhat more next to a power of two.
const ROUNDED_TWICE: f64 = 1.5;

/// Elements of a chunk whose squares are summed in float32.
const CHUNK: usize = 1_024;

/// Below this a sum of squares in float32 has lost digits.
const SQUARES_MIN: f64 = 1e-25;

/// Sums side by side.
const LANES: usize = 16;

/// By how much two outputs on the same inputs may differ.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CrossBound {
    /// The root mean square of the outputs on which the bound was found. A call whose outputs are
    /// larger than that may have errors that are.
    pub scale: f64,
    /// The part of the bound on each element that is relative to the scale.
    pub scaled: f64,
    /// The part that is relative to the incumbent's element.
    pub relative: f64,
    /// The root mean square of the differences, relative to the scale.
    pub rms_max: f64,
    /// The distance of the smallest numbers of the type.
    pub smallest: f64,
}

impl CrossBound {
    /// From the errors of both that were measured against a reference, on inputs that were drawn
    /// in the same way.
    pub fn from(
        candidate: &ErrorStats,
        incumbent: &ErrorStats,
        output: impl Into<OutputInfo>,
    ) -> CrossBound {
        let output = output.into();
        let Some(range) = output.dtype.float_range() else {
            return CrossBound {
                scale: 0.0,
                scaled: 0.0,
                relative: 0.0,
                rms_max: 0.0,
                smallest: 0.0,
            };
        };
        let floor = output.floor(incumbent);
        let scale = incumbent.scale.max(range.smallest());
        let rms = candidate.rms.hypot(incumbent.rms) + floor.sums_rms;
        // Rounding has a bound of its own, which needs no margin.
        let most = candidate.max_excess + incumbent.max_excess + floor.sums_max;
        CrossBound {
            scale,
            scaled: (MARGIN * (most / scale)).min(f64::MAX),
            relative: ROUNDED_TWICE * output.dtype.epsilon(),
            rms_max: (MARGIN * (rms / scale)).min(f64::MAX),
            smallest: range.smallest(),
        }
    }

    /// The wider of two bounds in every respect, where errors were measured more than once.
    pub fn or(self, other: CrossBound) -> CrossBound {
        CrossBound {
            scale: self.scale.max(other.scale),
            scaled: self.scaled.max(other.scaled),
            relative: self.relative.max(other.relative),
            rms_max: self.rms_max.max(other.rms_max),
            smallest: self.smallest.max(other.smallest),
        }
    }
}

/// The bound for the elements of one call.
struct ElementLimits {
    absolute: f64,
    relative: f64,
}

/// What a check of one output against another has found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CrossCheckResult {
    /// Elements compared.
    pub n: usize,
    /// Elements beyond the bound, including NaN and infinities that the other does not have.
    pub beyond: usize,
    /// The first of them.
    pub first: Option<usize>,
    /// The root mean square of the differences relative to that of the second output.
    pub rms: f64,
    /// Whether that is within the bound, and no element is beyond.
    pub agrees: bool,
}

/// Whether output `a` is output `b` within the bound; integers must be the same.
pub fn agree(a: &[u8], b: &[u8], dtype: Dtype, bound: &CrossBound) -> CrossCheckResult {
    let n = a.len().max(b.len()) / dtype.bytes();
    if a == b {
        return CrossCheckResult { n, agrees: true, ..CrossCheckResult::default() };
    }
    if !dtype.is_float() {
        return differing(a, b, dtype);
    }
    let scale = rms_of(b, dtype).max(bound.scale);
    let limits = ElementLimits {
        absolute: (bound.scaled * scale + bound.smallest).min(f64::MAX),
        relative: bound.relative,
    };
    let sums = if dtype == Dtype::F32 {
        agree_f32(a, b, &limits)
    } else {
        agree_wide(a, b, dtype, &limits)
    };
    let beyond = sums.beyond + a.len().abs_diff(b.len()).div_ceil(dtype.bytes());
    let mean = sums.differences / n.max(1) as f64;
    // If squares overflow, the bound on each element must suffice.
    let rms = if mean.is_finite() { mean.sqrt() / scale } else { 0.0 };
    CrossCheckResult {
        n,
        beyond,
        first: sums.first,
        rms,
        agrees: beyond == 0 && rms <= bound.rms_max,
    }
}

/// The root mean square of the finite elements.
fn rms_of(bytes: &[u8], dtype: Dtype) -> f64 {
    let (mut sum, mut values) = (0.0, Vec::with_capacity(CHUNK));
    for chunk in bytes.chunks(CHUNK * dtype.bytes()) {
        let mut squares = f64::NAN;
        if dtype == Dtype::F32 {
            squares = squares_f32(chunk.as_chunks::<4>().0);
        }
        // Squares of large numbers are beyond float32, and those of small ones below it.
        if !(squares.is_finite() && squares > SQUARES_MIN) {
            tensor::to_f64(dtype, chunk, &mut values);
            squares = squares_f64(&values);
            if !squares.is_finite() {
                let finite = values.iter().filter(|v| v.is_finite());
                squares = finite.map(|v| v * v).sum();
            }
        }
        sum += squares;
    }
    let n = bytes.len() / dtype.bytes();
    (sum.min(f64::MAX) / n.max(1) as f64).sqrt()
}

fn squares_f64(values: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    let (lanes, rest) = values.as_chunks::<LANES>();
    for lane in lanes {
        for (sum, v) in sums.iter_mut().zip(lane) {
            *sum += v * v;
        }
    }
    sums.iter().sum::<f64>() + rest.iter().map(|v| v * v).sum::<f64>()
}

fn squares_f32(values: &[[u8; 4]]) -> f64 {
    let mut sums = [0.0_f32; LANES];
    let (lanes, rest) = values.as_chunks::<LANES>();
    for lane in lanes {
        for (sum, v) in sums.iter_mut().zip(lane) {
            let v = f32::from_ne_bytes(*v);
            *sum += v * v;
        }
    }
    let rest = rest.iter().map(|v| f64::from(f32::from_ne_bytes(*v)).powi(2));
    sums.iter().map(|v| f64::from(*v)).sum::<f64>() + rest.sum::<f64>()
}

fn differing(a: &[u8], b: &[u8], dtype: Dtype) -> CrossCheckResult {
    let stats = super::measure_bytes(a, b, dtype);
    CrossCheckResult {
        n: stats.n,
        beyond: stats.mismatched,
        first: stats.first_bad,
        rms: 0.0,
        agrees: stats.mismatched == 0,
    }
}

/// Sums over one chunk, or over all.
#[derive(Default)]
struct DifferenceSums {
    beyond: usize,
    first: Option<usize>,
    differences: f64,
}

impl DifferenceSums {
    fn add(&mut self, start: usize, chunk: DifferenceSums) {
        self.beyond += chunk.beyond;
        self.first = self.first.or(chunk.first.map(|at| at + start));
        self.differences += chunk.differences;
    }
}

fn agree_f32(a: &[u8], b: &[u8], limits: &ElementLimits) -> DifferenceSums {
    // A bound below the smallest number of the type stays above zero, and a large one stays finite.
    let narrow = |v: f64| (v as f32).clamp(f32::from_bits(1), f32::MAX);
    let (absolute, relative) = (narrow(limits.absolute), narrow(limits.relative));
    let mut sums = DifferenceSums::default();
    let chunks = a.chunks(CHUNK * 4).zip(b.chunks(CHUNK * 4));
    for (start, (a, b)) in chunks.enumerate() {
        let (a, b) = (a.as_chunks::<4>().0, b.as_chunks::<4>().0);
        let (all_within, differences) = chunk_f32(a, b, absolute, relative);
        let summed = differences.is_finite() && differences > SQUARES_MIN || differences == 0.0;
        let chunk = if all_within && summed {
            DifferenceSums { differences, ..DifferenceSums::default() }
        } else {
            let wide = |x: &[[u8; 4]]| x.iter().map(|x| f32::from_ne_bytes(*x).into()).collect();
            let (a, b): (Vec<f64>, Vec<f64>) = (wide(a), wide(b));
            chunk_f64(&a, &b, limits)
        };
        sums.add(start * CHUNK, chunk);
    }
    sums
}

/// One chunk in float32: whether all elements are within the bound, and the sum of the squares of
/// the differences.
fn chunk_f32(a: &[[u8; 4]], b: &[[u8; 4]], absolute: f32, relative: f32) -> (bool, f64) {
    let mut n_within = [0_u32; LANES];
    let mut differences = [0.0_f32; LANES];
    let (a_lanes, a_rest) = a.as_chunks::<LANES>();
    let (b_lanes, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a_lanes.iter().zip(b_lanes) {
        for i in 0..LANES {
            let (a, b) = (f32::from_ne_bytes(a[i]), f32::from_ne_bytes(b[i]));
            let difference = (a - b).abs();
            // Also false for NaN and for infinities.
            let within = difference <= absolute + relative * b.abs() && difference <= f32::MAX;
            n_within[i] += u32::from(within);
            differences[i] += difference * difference;
        }
    }
    let mut all = n_within.iter().sum::<u32>() as usize == a.len().min(b.len()) / LANES * LANES;
    for (a, b) in a_rest.iter().zip(b_rest) {
        let (a, b) = (f32::from_ne_bytes(*a), f32::from_ne_bytes(*b));
        let difference = (a - b).abs();
        all &= difference <= absolute + relative * b.abs() && difference <= f32::MAX;
        differences[0] += difference * difference;
    }
    (all, differences.iter().map(|v| f64::from(*v)).sum())
}

fn agree_wide(a: &[u8], b: &[u8], dtype: Dtype, limits: &ElementLimits) -> DifferenceSums {
    let (mut wide_a, mut wide_b) = (Vec::with_capacity(CHUNK), Vec::with_capacity(CHUNK));
    let mut sums = DifferenceSums::default();
    let width = CHUNK * dtype.bytes();
    for (start, (a, b)) in a.chunks(width).zip(b.chunks(width)).enumerate() {
        tensor::to_f64(dtype, a, &mut wide_a);
        tensor::to_f64(dtype, b, &mut wide_b);
        sums.add(start * CHUNK, chunk_f64(&wide_a, &wide_b, limits));
    }
    sums
}

/// One chunk in float64, including infinities and NaN.
fn chunk_f64(a: &[f64], b: &[f64], limits: &ElementLimits) -> DifferenceSums {
    if let Some(differences) = all_within(a, b, limits) {
        return DifferenceSums { differences, ..DifferenceSums::default() };
    }
    let mut sums = DifferenceSums::default();
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        let difference = (a - b).abs();
        let within = difference <= limits.absolute + limits.relative * b.abs();
        if within && difference.is_finite() {
            sums.differences += difference * difference;
        } else if a != b && !(a.is_nan() && b.is_nan()) {
            sums.beyond += 1;
            sums.first = sums.first.or(Some(i));
        }
    }
    sums
}

/// The sum of the squares of the differences, if all elements are within the bound.
fn all_within(a: &[f64], b: &[f64], limits: &ElementLimits) -> Option<f64> {
    let mut beyond = [0_u64; LANES];
    let mut differences = [0.0; LANES];
    let (a_lanes, a_rest) = a.as_chunks::<LANES>();
    let (b_lanes, b_rest) = b.as_chunks::<LANES>();
    if !(a_rest.is_empty() && b_rest.is_empty()) {
        return None;
    }
    for (a, b) in a_lanes.iter().zip(b_lanes) {
        for i in 0..LANES {
            let difference = (a[i] - b[i]).abs();
            let within = difference <= limits.absolute + limits.relative * b[i].abs();
            beyond[i] += u64::from(!within);
            differences[i] += difference * difference;
        }
    }
    let sum: f64 = differences.iter().sum();
    // An infinity makes the sum infinite or NaN.
    (beyond.iter().sum::<u64>() == 0 && sum.is_finite()).then_some(sum)
}
