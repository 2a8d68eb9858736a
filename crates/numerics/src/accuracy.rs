//! How far an output is from a float64 reference, and whether that is accurate enough.
//!
//! Three rules decide. A named rule set requires what is usual for the element type. The error
//! may not be much larger than the incumbent's own on the same inputs, which a narrower internal
//! type, a truncated sum or a made-up output cannot achieve. And no rule requires more than
//! honest arithmetic can deliver, so sums may be reordered.

mod classes;
mod cross;
mod passes;
mod rules;

pub use classes::{PairedError, judge_nominal, judge_overall, judge_timed};
pub use cross::{CrossBound, CrossCheckResult, agree};
pub use passes::{
    AgreeRequest, CompareLimits, ComparePass, FIGURES, PassItem, RunPass, agree_on, measure_on,
    sensitivity_on,
};
pub use rules::{
    AccuracyRuleSet, ErrorFloor, Inaccuracy, OutputInfo, Sensitivity, judge, primus_snr_db_min,
};

use crate::tensor::{self, Dtype};
use serde::{Deserialize, Serialize};

/// The signal-to-noise ratio of an output without any error, in decibels: a log cannot store
/// infinity.
pub const SNR_DB_MAX: f64 = 400.0;

/// How far an element may be from its reference:
/// `absolute + relative · |reference| + scaled · rms of the reference`.
///
/// If all three are zero, an element must equal the reference rounded to its type.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Tolerance {
    /// In units of the output.
    pub absolute: f64,
    /// Relative to the element's reference.
    pub relative: f64,
    /// Relative to the reference's root mean square.
    pub scaled: f64,
    /// The type of the output: what it cannot represent is not an error.
    pub dtype: Dtype,
}

impl Tolerance {
    /// The rule in words.
    pub fn describe(&self) -> String {
        let parts = [
            (self.absolute, ""),
            (self.relative, " * |reference|"),
            (self.scaled, " * rms of the reference"),
        ];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(factor, _)| *factor > 0.0)
            .map(|(factor, of)| format!("{factor:e}{of}"))
            .collect();
        match parts.is_empty() {
            true => "equal to the reference".to_owned(),
            false => format!("off by at most {}", parts.join(" + ")),
        }
    }
}

/// An element that differs by more than this share of its reference is off.
pub const OFF_SHARE: f64 = 1.0 / 64.0;

/// The result of comparing an output with its reference.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorStats {
    /// Elements compared.
    pub n: usize,
    /// The largest difference.
    pub max_abs: f64,
    /// The largest difference relative to its reference; below the smallest normal number of the
    /// type, relative to that.
    pub max_rel: f64,
    /// The largest difference in ULPs (units in the last place) of the reference, in its type.
    pub max_ulp: f64,
    /// The largest difference beyond the half ULP that rounding may cost.
    pub max_excess: f64,
    /// The root mean square of the differences.
    pub rms: f64,
    /// The root mean square of the reference.
    pub scale: f64,
    /// The largest magnitude of the reference.
    pub peak: f64,
    /// The signal-to-noise ratio in decibels; `SNR_DB_MAX` without any error.
    pub snr_db: f64,
    /// The cosine of the angle between output and reference.
    pub cosine: f64,
    /// The standard deviation of the output.
    pub out_sd: f64,
    /// The standard deviation of the reference.
    pub reference_sd: f64,
    /// Elements beyond the tolerance, those below included.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub mismatched: usize,
    /// Elements that only one of the two has.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unpaired: usize,
    /// Elements that are a number where the reference is NaN.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub nan_missing: usize,
    /// Elements that are NaN where the reference is a number.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub nan_extra: usize,
    /// Elements that are infinite where the reference is not, the reverse, or of the other sign.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub inf_mismatch: usize,
    /// Elements of which nothing is right: the difference is more than half of the reference, which
    /// is a normal number. Not counted on a device.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost: usize,
    /// Elements that are off by more than [`OFF_SHARE`] of the reference, which is a normal number.
    /// Not counted on a device.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub off: usize,
    /// The first element beyond the tolerance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_bad: Option<usize>,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// Compares an output with its reference, element by element.
///
/// The reference is not rounded to the output's type. If the lengths differ, every element that
/// only one of them has is a mismatch.
pub fn measure(out: &[f64], reference: &[f64], tolerance: &Tolerance) -> ErrorStats {
    let kinds = FloatLimits::of(tolerance.dtype);
    let sums = sums_of(out, reference, &kinds);
    let mut stats = sums.stats();
    let limit = tolerance.absolute + tolerance.scaled * stats.scale;
    let exact = limit == 0.0 && tolerance.relative == 0.0;
    let rounded = if exact { rounded(tolerance.dtype, reference) } else { Vec::new() };
    for (i, (o, r)) in out.iter().zip(reference).enumerate() {
        let within = match kinds.compare(*o, *r) {
            ElementDifference::Same => true,
            ElementDifference::Apart(difference) => {
                let ulp = kinds.ulp(*r);
                stats.max_ulp = stats.max_ulp.max(difference / ulp).min(f64::MAX);
                stats.max_excess = stats.max_excess.max(difference - ulp / 2.0);
                let relative = difference / r.abs().max(kinds.normal);
                stats.max_rel = stats.max_rel.max(relative).min(f64::MAX);
                let is_lost = r.abs() >= kinds.normal && relative > 0.5;
                stats.lost += usize::from(is_lost);
                stats.off += usize::from(r.abs() >= kinds.normal && relative > OFF_SHARE);
                match rounded.get(i) {
                    Some(rounded) => o == rounded,
                    None => difference <= limit + tolerance.relative * r.abs(),
                }
            }
            ElementDifference::NanMissing => {
                stats.nan_missing += 1;
                false
            }
            ElementDifference::NanExtra => {
                stats.nan_extra += 1;
                false
            }
            ElementDifference::InfMismatch => {
                stats.inf_mismatch += 1;
                false
            }
        };
        if !within {
            stats.note_bad(i, 1);
        }
    }
    stats.unpaired = out.len().abs_diff(reference.len());
    stats.note_bad(out.len().min(reference.len()), stats.unpaired);
    stats
}

impl ErrorStats {
    fn note_bad(&mut self, at: usize, count: usize) {
        if count > 0 {
            self.mismatched += count;
            self.first_bad = self.first_bad.or(Some(at));
        }
    }
}

/// Compares two outputs of the same type bit by bit; for integers and for results promised to
/// be bitwise identical.
///
/// Integers are compared as integers: 53 bits are not enough for all of them.
pub fn measure_bytes(out: &[u8], reference: &[u8], dtype: Dtype) -> ErrorStats {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    tensor::to_f64(dtype, out, &mut a);
    tensor::to_f64(dtype, reference, &mut b);
    let tolerance = Tolerance { absolute: f64::MAX, relative: 0.0, scaled: 0.0, dtype };
    let mut stats = measure(&a, &b, &tolerance);
    (stats.mismatched, stats.first_bad) = (0, None);
    let differ = |a: &[u8], b: &[u8]| match dtype {
        // Any byte but 0 is true.
        Dtype::Bool => (a != [0]) != (b != [0]),
        _ => a != b,
    };
    let width = dtype.bytes();
    let pairs = out.chunks_exact(width).zip(reference.chunks_exact(width));
    for (i, (a, b)) in pairs.enumerate() {
        stats.note_bad(i, usize::from(differ(a, b)));
    }
    stats.note_bad(a.len().min(b.len()), stats.unpaired);
    stats
}

/// Numbers rounded to a type.
pub fn rounded(dtype: Dtype, values: &[f64]) -> Vec<f64> {
    let mut bytes = vec![0; values.len() * dtype.bytes()];
    tensor::from_f64(dtype, values, &mut bytes);
    let mut back = Vec::with_capacity(values.len());
    tensor::to_f64(dtype, &bytes, &mut back);
    back
}

enum ElementDifference {
    Same,
    Apart(f64),
    NanMissing,
    NanExtra,
    InfMismatch,
}

/// The properties of a type that a comparison needs.
struct FloatLimits {
    /// Beyond this the type has no finite number.
    overflow: f64,
    largest: f64,
    infinite: bool,
    normal: f64,
    epsilon: f64,
}

impl FloatLimits {
    fn of(dtype: Dtype) -> FloatLimits {
        match dtype.float_range() {
            Some(range) => FloatLimits {
                overflow: range.largest * (1.0 + dtype.epsilon() / 4.0),
                largest: range.largest,
                infinite: dtype != Dtype::F8E4m3,
                normal: tensor::power_of_two(range.exponent_min),
                epsilon: dtype.epsilon(),
            },
            None => FloatLimits {
                overflow: f64::INFINITY,
                largest: f64::MAX,
                infinite: false,
                normal: 1.0,
                epsilon: 1.0,
            },
        }
    }

    /// The distance between neighboring numbers near a reference.
    fn ulp(&self, reference: f64) -> f64 {
        let magnitude = reference.abs().clamp(self.normal, self.largest);
        // The power of two at or below it.
        let power = f64::from_bits(magnitude.to_bits() & (0x7ff << 52));
        (power * self.epsilon).max(f64::from_bits(1))
    }

    fn compare(&self, out: f64, reference: f64) -> ElementDifference {
        // Out of range: infinity or the largest number, depending on the type.
        let reference = if reference.abs() <= self.overflow || reference.is_nan() {
            reference
        } else if self.infinite {
            f64::INFINITY.copysign(reference)
        } else {
            self.largest.copysign(reference)
        };
        match (out.is_nan(), reference.is_nan()) {
            (true, true) => ElementDifference::Same,
            (true, false) => ElementDifference::NanExtra,
            (false, true) => ElementDifference::NanMissing,
            _ if out == reference => ElementDifference::Same,
            _ if out.is_infinite() || reference.is_infinite() => ElementDifference::InfMismatch,
            _ => ElementDifference::Apart((out - reference).abs().min(f64::MAX)),
        }
    }
}

/// Sums over the elements that are finite on both sides, in units in which no square overflows.
#[derive(Default)]
struct ErrorSums {
    n: usize,
    n_finite: f64,
    unit: f64,
    max_abs: f64,
    peak: f64,
    error: f64,
    out: f64,
    reference: f64,
    out_squares: f64,
    reference_squares: f64,
    products: f64,
    out_spread: f64,
    reference_spread: f64,
}

fn sums_of(out: &[f64], reference: &[f64], kinds: &FloatLimits) -> ErrorSums {
    let finite = || {
        let pairs = out.iter().zip(reference).map(|(o, r)| (*o, *r));
        pairs.filter(|(o, r)| o.is_finite() && r.abs() <= kinds.overflow.min(f64::MAX))
    };
    let largest = finite().fold(0.0_f64, |most, (o, r)| most.max(o.abs()).max(r.abs()));
    let exponent = ((largest.to_bits() >> 52) as i32 - 1023).clamp(-900, 900);
    let unit = tensor::power_of_two(exponent);
    let inverse = tensor::power_of_two(-exponent);
    let scaled = || finite().map(|(o, r)| (o * inverse, r * inverse));
    let mut found = ErrorSums { n: out.len().max(reference.len()), unit, ..ErrorSums::default() };
    for (o, r) in scaled() {
        let difference = (o - r).abs();
        found.n_finite += 1.0;
        found.max_abs = found.max_abs.max(difference);
        found.peak = found.peak.max(r.abs());
        found.error += difference * difference;
        found.out += o;
        found.reference += r;
        found.out_squares += o * o;
        found.reference_squares += r * r;
        found.products += o * r;
    }
    let n_finite = found.n_finite.max(1.0);
    let (out_mean, reference_mean) = (found.out / n_finite, found.reference / n_finite);
    for (o, r) in scaled() {
        found.out_spread += (o - out_mean).powi(2);
        found.reference_spread += (r - reference_mean).powi(2);
    }
    found
}

impl ErrorSums {
    fn stats(&self) -> ErrorStats {
        let n_finite = self.n_finite.max(1.0);
        let mean_root = |sum: f64| ((sum / n_finite).sqrt() * self.unit).min(f64::MAX);
        let both = (self.out_squares * self.reference_squares).sqrt();
        let snr_db = match (self.error, self.reference_squares) {
            (0.0, _) => SNR_DB_MAX,
            (_, 0.0) => -SNR_DB_MAX,
            (error, signal) => 10.0 * (signal / error).log10(),
        };
        ErrorStats {
            n: self.n,
            max_abs: (self.max_abs * self.unit).min(f64::MAX),
            rms: mean_root(self.error),
            scale: mean_root(self.reference_squares),
            peak: (self.peak * self.unit).min(f64::MAX),
            snr_db: snr_db.clamp(-SNR_DB_MAX, SNR_DB_MAX),
            cosine: match both {
                0.0 if self.error == 0.0 => 1.0,
                0.0 => 0.0,
                both => (self.products / both).clamp(-1.0, 1.0),
            },
            out_sd: mean_root(self.out_spread),
            reference_sd: mean_root(self.reference_spread),
            ..ErrorStats::default()
        }
    }
}

#[cfg(test)]
mod tests;
