//! Named rule sets, and how they judge the measured error of an output.

use super::{ErrorStats, Tolerance};
use crate::tensor::Dtype;
use serde::{Deserialize, Serialize};
use std::fmt;

/// By how much the error may exceed the incumbent's, unless the rules say otherwise.
const ERROR_RATIO_MAX: f64 = 4.0;

/// Rounding the output alone costs up to half an epsilon of each element; as a root mean square
/// it is a quarter. Two more roundings do not indicate a narrower type.
const ROUNDINGS: f64 = 1.0;

/// What a plain loop over n terms costs, in epsilons times √n: 0.2 was measured and follows from
/// a random walk. This leaves room for less uniform data.
const SUMMING: f64 = 1.0;

/// The largest error among many elements, in root mean squares.
const PEAKS: f64 = 4.0;

/// The least signal-to-noise ratio of four bits.
const FOUR_BITS_SNR_DB: f64 = 10.0;

/// An output whose spread is below this share of the reference's is made up.
const SPREAD_MIN: f64 = 0.5;

/// Which rules an output must meet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum AccuracyRuleSet {
    /// Relative to the scale of the output: 1e-9 for f64, 1e-4 for f32, 1e-2 for f16, 2e-2 for
    /// bf16; a signal-to-noise ratio for eight bits.
    #[default]
    Default,
    /// The gates of the primus workflow: 1e-4 for f32, 1e-2 for f16 and bf16, 25 dB for f8e4m3,
    /// 20 dB for f8e5m2.
    Primus,
    /// The defaults of `torch.testing.assert_close`.
    Torch,
    /// As `Default`; and the error is at most twice what honest arithmetic may cost, also on
    /// numbers so large or small that a careless intermediate result overflows or underflows.
    Stable,
    /// As `Default`; and the error does not grow with the number of terms: at most twice what one
    /// rounding of every input and of the result costs. Compensated sums have that.
    Compensated,
    /// The reference's bits.
    Bitwise,
    /// The project's own tolerances.
    Custom {
        /// In units of the output.
        #[serde(default)]
        absolute: f64,
        /// Relative to each element of the reference.
        #[serde(default)]
        relative: f64,
        /// Relative to the reference's root mean square.
        #[serde(default)]
        scaled: f64,
        /// The least signal-to-noise ratio, in decibels.
        #[serde(default)]
        snr_db_min: Option<f64>,
        /// By how much the error may exceed the incumbent's.
        #[serde(default)]
        error_ratio_max: Option<f64>,
    },
}

impl AccuracyRuleSet {
    /// How far an element may be from its reference.
    pub fn tolerance(&self, dtype: Dtype) -> Tolerance {
        let of = |absolute, relative, scaled| Tolerance { absolute, relative, scaled, dtype };
        if !dtype.is_float() {
            return of(0.0, 0.0, 0.0);
        }
        // Eight bits are judged by the signal-to-noise ratio; this only bounds single elements.
        let eight = dtype.epsilon();
        match *self {
            AccuracyRuleSet::Bitwise => of(0.0, 0.0, 0.0),
            AccuracyRuleSet::Custom { absolute, relative, scaled, .. } => {
                of(absolute, relative, scaled)
            }
            AccuracyRuleSet::Default | AccuracyRuleSet::Stable | AccuracyRuleSet::Compensated => {
                let share = pick(dtype, [1e-9, 1e-4, 1e-2, 2e-2, eight, eight]);
                of(0.0, share, share)
            }
            AccuracyRuleSet::Primus => {
                let share = pick(dtype, [1e-4, 1e-4, 1e-2, 1e-2, eight, eight]);
                let scaled = if dtype.bytes() == 1 { eight } else { 0.0 };
                of(share, share, scaled)
            }
            AccuracyRuleSet::Torch => {
                let relative = pick(dtype, [1e-7, 1.3e-6, 1e-3, 1.6e-2, 0.0, 0.0]);
                let absolute = pick(dtype, [1e-7, 1e-5, 1e-5, 1e-5, 0.0, 0.0]);
                of(absolute, relative, 0.0)
            }
        }
    }

    /// The least signal-to-noise ratio in decibels, if there is one.
    pub fn snr_db_min(&self, dtype: Dtype) -> Option<f64> {
        match (self, dtype) {
            (AccuracyRuleSet::Custom { snr_db_min, .. }, _) => *snr_db_min,
            (AccuracyRuleSet::Torch | AccuracyRuleSet::Bitwise, _) => None,
            (_, Dtype::F8E4m3) => Some(25.0),
            (_, Dtype::F8E5m2) => Some(20.0),
            (_, _) => None,
        }
    }

    /// By how much the error may exceed the incumbent's.
    pub fn error_ratio_max(&self) -> f64 {
        match self {
            AccuracyRuleSet::Custom { error_ratio_max: Some(most), .. } => *most,
            AccuracyRuleSet::Custom { .. } | AccuracyRuleSet::Default | AccuracyRuleSet::Primus => {
                ERROR_RATIO_MAX
            }
            AccuracyRuleSet::Torch | AccuracyRuleSet::Bitwise => ERROR_RATIO_MAX,
            AccuracyRuleSet::Stable | AccuracyRuleSet::Compensated => ERROR_RATIO_MAX,
        }
    }
}

/// The least signal-to-noise ratio that primus requires, by a format that is named in words such as
/// `gemm_fp8_blockwise`.
pub fn primus_snr_db_min(words: &str) -> Option<f64> {
    let words = words.to_lowercase();
    let names = |formats: &[&str]| formats.iter().any(|format| words.contains(format));
    if names(&["fp4", "e2m1"]) {
        return Some(FOUR_BITS_SNR_DB);
    }
    let dtype = match (names(&["e5m2", "bf8"]), names(&["e4m3", "fp8"])) {
        (true, _) => Dtype::F8E5m2,
        (false, true) => Dtype::F8E4m3,
        (false, false) => return None,
    };
    AccuracyRuleSet::Primus.snr_db_min(dtype)
}

/// One of six figures: for f64, f32, f16, bf16, f8e4m3 and f8e5m2.
fn pick(dtype: Dtype, of: [f64; 6]) -> f64 {
    match dtype {
        Dtype::F64 => of[0],
        Dtype::F32 => of[1],
        Dtype::F16 => of[2],
        Dtype::Bf16 => of[3],
        Dtype::F8E4m3 => of[4],
        Dtype::F8E5m2 => of[5],
        Dtype::I64 | Dtype::I32 | Dtype::I16 | Dtype::I8 | Dtype::Bool => 0.0,
        Dtype::U64 | Dtype::U32 | Dtype::U16 | Dtype::U8 => 0.0,
    }
}

/// How much the reference changes when its inputs change a little: how sums of nearly canceling
/// numbers amplify rounding errors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Sensitivity {
    /// The root mean square of the changes, divided by the relative change of the inputs.
    pub rms: f64,
    /// The largest change, divided by the relative change of the inputs.
    pub max: f64,
}

impl Sensitivity {
    /// From two references, one on inputs that `draw::nudge` changed by up to `epsilon`, the
    /// epsilon of their type.
    pub fn of(nudged: &[f64], reference: &[f64], epsilon: f64) -> Sensitivity {
        let tolerance = AccuracyRuleSet::Default.tolerance(Dtype::F64);
        Sensitivity::from(&super::measure(nudged, reference, &tolerance), epsilon)
    }

    /// From how the nudged reference differs.
    pub(super) fn from(stats: &ErrorStats, epsilon: f64) -> Sensitivity {
        Sensitivity {
            rms: (stats.rms / epsilon).min(f64::MAX),
            max: (stats.max_abs / epsilon).min(f64::MAX),
        }
    }
}

/// What is known about an output besides its elements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OutputInfo {
    /// The type of its elements.
    pub dtype: Dtype,
    /// How many terms are summed for one element, if the project says so; 1 if none are summed.
    pub reduction: Option<u64>,
    /// How much the reference depends on the last bits of the inputs, if that was measured.
    pub sensitivity: Option<Sensitivity>,
    /// Whether the reference computes in the kernel's own types, which costs it as much as a
    /// kernel, and not in float64.
    pub is_reference_native: bool,
}

impl From<Dtype> for OutputInfo {
    fn from(dtype: Dtype) -> OutputInfo {
        OutputInfo { dtype, reduction: None, sensitivity: None, is_reference_native: false }
    }
}

impl OutputInfo {
    /// The error that honest arithmetic may make for a reference described by `stats`.
    pub fn floor(&self, stats: &ErrorStats) -> ErrorFloor {
        let Some(range) = self.dtype.float_range() else {
            return ErrorFloor::default();
        };
        // Kernels on narrow types sum in float32.
        let summing = SUMMING * self.dtype.epsilon().min(Dtype::F32.epsilon());
        let terms = (self.reduction.unwrap_or(1).max(1) as f64).sqrt();
        let sensitivity = self.sensitivity.unwrap_or_default();
        let sums = |size: f64, sensitivity: f64| summing * terms * (size + sensitivity);
        let rounding = |size: f64| ROUNDINGS * self.dtype.epsilon() * size;
        // Even an element of typical size may have the error of the largest sums.
        // Every term may be a product that underflows.
        let sums_rms = sums(stats.scale, sensitivity.rms) + terms * range.smallest();
        let sums_max = (PEAKS * sums_rms).max(sums(stats.peak, sensitivity.max));
        ErrorFloor {
            sums_rms,
            sums_max,
            rms: rounding(stats.scale) + sums_rms,
            max: rounding(stats.peak.max(PEAKS * stats.scale)) + sums_max,
        }
    }
}

/// The error that honest arithmetic may make: no kernel is required to have less.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ErrorFloor {
    /// The root mean square of what sums may cost.
    pub sums_rms: f64,
    /// What sums may cost at most.
    pub sums_max: f64,
    /// The root mean square, including that of rounding the output.
    pub rms: f64,
    /// The maximum, including that of rounding the output.
    pub max: f64,
}

/// Why an output is not accurate enough.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Inaccuracy {
    /// Some elements are NaN where they should not be, or the reverse.
    NotANumber {
        /// NaN where the reference is a number.
        extra: usize,
        /// A number where the reference is NaN.
        missing: usize,
    },
    /// Some elements are infinite where the reference is not, or the reverse.
    Infinite {
        /// How many.
        count: usize,
    },
    /// Some elements are beyond the tolerance.
    Mismatched {
        /// How many.
        count: usize,
        /// Of how many.
        n: usize,
        /// The first of them.
        first: usize,
        /// The largest difference.
        max_abs: f64,
        /// What is allowed, in words.
        allowed: String,
    },
    /// The signal-to-noise ratio is too low.
    Noisy {
        /// The ratio in decibels.
        snr_db: f64,
        /// What it must be at least.
        snr_db_min: f64,
    },
    /// The output barely varies, but the reference does.
    Constant {
        /// The standard deviation of the output.
        out_sd: f64,
        /// The standard deviation of the reference.
        reference_sd: f64,
    },
    /// The error is much larger than the incumbent's on the same inputs.
    LessAccurate {
        /// Which error: `rms`, `max` or `relative`.
        error: String,
        /// The candidate's.
        candidate: f64,
        /// The incumbent's.
        incumbent: f64,
        /// The most that is allowed.
        allowed: f64,
    },
    /// Many elements are wrong by more than half, where the incumbent's are not.
    Lost {
        /// How many.
        candidate: usize,
        /// How many of the incumbent's.
        incumbent: usize,
        /// How many are allowed.
        allowed: usize,
    },
    /// Many elements are off by more than a 64th, where the incumbent's are not.
    Off {
        /// How many.
        candidate: usize,
        /// How many of the incumbent's.
        incumbent: usize,
        /// How many are allowed.
        allowed: usize,
    },
    /// The error is larger than the accuracy class of the contract allows.
    BeyondClass {
        /// The class.
        class: String,
        /// Which error: `rms` or `max`.
        error: String,
        /// The candidate's.
        candidate: f64,
        /// The most that is allowed.
        allowed: f64,
    },
    /// A timed call is much less accurate than checked ones.
    LessAccurateTimed {
        /// The error of the timed call.
        timed: f64,
        /// The error that it would have as a checked one.
        checked: f64,
        /// The most that is allowed.
        allowed: f64,
    },
}

impl fmt::Display for Inaccuracy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Inaccuracy::NotANumber { extra, missing } => write!(
                f,
                "{extra} elements are NaN where the reference is not, and {missing} the reverse"
            ),
            Inaccuracy::Infinite { count } => {
                write!(f, "{count} infinities do not match the reference")
            }
            Inaccuracy::Mismatched { count, n, first, max_abs, allowed } => write!(
                f,
                "{count} of {n} elements are beyond the tolerance, the first at index {first}; \
                 the largest difference is {max_abs:.3e}, but each must be {allowed}"
            ),
            Inaccuracy::Noisy { snr_db, snr_db_min } => {
                write!(f, "the signal-to-noise ratio is {snr_db:.1} dB, below {snr_db_min:.1} dB")
            }
            Inaccuracy::Constant { out_sd, reference_sd } => write!(
                f,
                "the output barely varies: its standard deviation is {out_sd:.3e}, the \
                reference's is {reference_sd:.3e}"
            ),
            Inaccuracy::LessAccurate { error, candidate, incumbent, allowed } => write!(
                f,
                "the {error} error is {candidate:.3e}; the incumbent's is {incumbent:.3e}, the \
                limit is {allowed:.3e}"
            ),
            Inaccuracy::Lost { candidate, incumbent, allowed } => write!(
                f,
                "{candidate} elements are wrong by more than half, and {incumbent} of the \
                incumbent's; the limit is {allowed}"
            ),
            Inaccuracy::Off { candidate, incumbent, allowed } => write!(
                f,
                "{candidate} elements are off by more than 1.6% of their value, and {incumbent} of \
                the incumbent's; the limit is {allowed}"
            ),
            Inaccuracy::BeyondClass { class, error, candidate, allowed } => write!(
                f,
                "the {error} error is {candidate:.3e}, but accuracy = \"{class}\" in [contract] \
                allows {allowed:.3e}"
            ),
            Inaccuracy::LessAccurateTimed { timed, checked, allowed } => write!(
                f,
                "a timed call is less accurate than the checked ones: its error is {timed:.3e}, \
                theirs {checked:.3e}, the limit is {allowed:.3e}"
            ),
        }
    }
}

/// Whether an output is accurate enough: by the rules, and compared with the incumbent's error on
/// the same inputs. Integers are exact or wrong.
pub fn judge(
    candidate: &ErrorStats,
    incumbent: Option<&ErrorStats>,
    rules: &AccuracyRuleSet,
    output: impl Into<OutputInfo>,
) -> Result<(), Inaccuracy> {
    let output = output.into();
    meets_rules(candidate, rules, &output)?;
    match incumbent {
        Some(incumbent) if output.dtype.is_float() => {
            is_as_accurate(candidate, incumbent, rules.error_ratio_max(), &output)
        }
        _ => Ok(()),
    }
}

fn meets_rules(
    stats: &ErrorStats,
    rules: &AccuracyRuleSet,
    output: &OutputInfo,
) -> Result<(), Inaccuracy> {
    let (extra, missing) = (stats.nan_extra, stats.nan_missing);
    if extra + missing > 0 {
        return Err(Inaccuracy::NotANumber { extra, missing });
    }
    if stats.inf_mismatch > 0 {
        let count = stats.inf_mismatch;
        return Err(Inaccuracy::Infinite { count });
    }
    let floor = output.floor(stats);
    let exact = *rules == AccuracyRuleSet::Bitwise || !output.dtype.is_float();
    // A missing element has no difference that the floor could excuse.
    let inexcusable = exact || stats.unpaired > 0 || stats.max_excess > floor.sums_max;
    if stats.mismatched > 0 && inexcusable {
        return Err(Inaccuracy::Mismatched {
            count: stats.mismatched,
            n: stats.n,
            first: stats.first_bad.unwrap_or(0),
            max_abs: stats.max_abs,
            allowed: rules.tolerance(output.dtype).describe(),
        });
    }
    if let Some(snr_db_min) = rules.snr_db_min(output.dtype)
        && stats.snr_db < snr_db_min
        && stats.rms > floor.sums_rms
    {
        let snr_db = stats.snr_db;
        return Err(Inaccuracy::Noisy { snr_db, snr_db_min });
    }
    if stats.reference_sd > 2.0 * floor.rms && stats.out_sd < SPREAD_MIN * stats.reference_sd {
        return Err(Inaccuracy::Constant {
            out_sd: stats.out_sd,
            reference_sd: stats.reference_sd,
        });
    }
    super::classes::is_of_class(stats, rules, output)
}

fn is_as_accurate(
    candidate: &ErrorStats,
    incumbent: &ErrorStats,
    ratio_max: f64,
    output: &OutputInfo,
) -> Result<(), Inaccuracy> {
    let floor = output.floor(candidate);
    let check = |error: &str, candidate: f64, incumbent: f64, floor: f64| {
        // An incumbent that makes the errors of its reference seems to be exact.
        let allowed = match output.is_reference_native {
            false => (ratio_max * incumbent).max(floor),
            true => ratio_max * incumbent.max(floor),
        };
        if candidate <= allowed {
            return Ok(());
        }
        Err(Inaccuracy::LessAccurate { error: error.to_owned(), candidate, incumbent, allowed })
    };
    check("rms", candidate.rms, incumbent.rms, floor.rms)?;
    check("max", candidate.max_abs, incumbent.max_abs, floor.max)?;
    // If nothing is summed, each element is accurate or not on its own.
    if output.reduction == Some(1) && output.sensitivity.is_none() {
        let floor = PEAKS * output.dtype.epsilon();
        check("relative", candidate.max_rel, incumbent.max_rel, floor)?;
    }
    Ok(())
}
