//! Accuracy classes by name, and errors over several calls: on hostile inputs, and in timed calls.
//!
//! The unit of all of them is what one rounding of every input and of the result would cost:
//! `epsilon · |result| + epsilon · sensitivity`. For a sum of n random terms, in these units:
//!
//! ```text
//! compensated, or in a wider type    0.2 to 0.4, however many terms there are
//! pairwise, in no particular order   0.25 · √log2(n), 0.8 for a thousand
//! one after the other                0.2 · √n, 6 for a thousand
//! ```

use super::{AccuracyRuleSet, ErrorStats, Inaccuracy, OutputInfo};
use crate::tensor::Dtype;

/// The error of a compensated result at most, in units.
const COMPENSATED_MAX: f64 = 2.0;

/// The error of a stable result at most, as a multiple of what honest arithmetic may cost.
const STABLE_MAX: f64 = 2.0;

/// The largest error among many elements, in root mean squares.
const PEAKS: f64 = 4.0;

/// Over several inputs no kernel must have a smaller error than this, in units.
const OVERALL_FLOOR: f64 = 2.0;

/// What a plain sum costs a reference of the kernel's own type, in units times √n.
const REFERENCE_SUMMING: f64 = 0.2;

/// With few elements the ratio of two errors depends on luck: up to one part in a million of
/// equal kernels stay within the limit if it grows by this, divided by their number.
const LUCK: f64 = 16.0;

/// How much less accurate than its checked calls a timed one may be.
const TIMED_RATIO_MAX: f64 = 8.0;

/// The share of all elements of which a candidate may lose everything where the incumbent does
/// not, at least; and the same in roundings of a narrow type.
const LOST_SHARE: f64 = 1.0 / 64.0;
const LOST_ROUNDINGS: f64 = 8.0;

impl OutputInfo {
    /// What one rounding of every input and of the result costs, as a root mean square.
    pub fn unit(&self, stats: &ErrorStats) -> f64 {
        self.unit_of(stats.scale, self.sensitivity.unwrap_or_default().rms)
    }

    /// The error of the reference itself, in units: none if it is in float64.
    fn reference_units(&self) -> f64 {
        let terms = self.reduction.unwrap_or(1) as f64;
        if self.is_reference_native { 1.0 + REFERENCE_SUMMING * terms.sqrt() } else { 0.0 }
    }

    fn unit_max(&self, stats: &ErrorStats) -> f64 {
        let sensitivity = self.sensitivity.unwrap_or_default();
        let peak = self.unit_of(stats.peak, sensitivity.max);
        peak.max(PEAKS * self.unit(stats))
    }

    fn unit_of(&self, size: f64, sensitivity: f64) -> f64 {
        let smallest = self.dtype.float_range().map_or(0.0, |range| range.smallest());
        // Kernels on narrow types sum in float32.
        let summing = self.dtype.epsilon().min(Dtype::F32.epsilon());
        self.dtype.epsilon() * size + summing * sensitivity + smallest
    }
}

/// Whether an output is of the class that the rules name, if they name one.
pub(super) fn is_of_class(
    stats: &ErrorStats,
    rules: &AccuracyRuleSet,
    output: &OutputInfo,
) -> Result<(), Inaccuracy> {
    if !output.dtype.is_float() {
        return Ok(());
    }
    let (class, rms_max, abs_max) = match rules {
        AccuracyRuleSet::Compensated => {
            let of = |unit: f64| COMPENSATED_MAX * unit;
            ("compensated", of(output.unit(stats)), of(output.unit_max(stats)))
        }
        AccuracyRuleSet::Stable => {
            let floor = output.floor(stats);
            ("stable", STABLE_MAX * floor.rms, STABLE_MAX * floor.max)
        }
        AccuracyRuleSet::Default | AccuracyRuleSet::Primus | AccuracyRuleSet::Torch => {
            return Ok(());
        }
        AccuracyRuleSet::Bitwise | AccuracyRuleSet::Custom { .. } => return Ok(()),
    };
    let errors = [("rms", stats.rms, rms_max), ("max", stats.max_abs, abs_max)];
    match errors.into_iter().find(|(_, error, most)| error > most) {
        None => Ok(()),
        Some((name, error, allowed)) => Err(Inaccuracy::BeyondClass {
            class: class.to_owned(),
            error: name.to_owned(),
            candidate: error,
            allowed,
        }),
    }
}

/// The errors of both kernels on one output of one call.
#[derive(Debug, Clone, PartialEq)]
pub struct PairedError {
    /// The candidate's.
    pub candidate: ErrorStats,
    /// The incumbent's, on the same inputs.
    pub incumbent: ErrorStats,
    /// The output.
    pub output: OutputInfo,
}

/// Whether a candidate is as accurate as the incumbent over all inputs of one kind, nominal or
/// hostile, of a check.
///
/// On each single call it may be less accurate by what a reordered sum costs, which is a lot if
/// the inputs are ill-conditioned. Over all calls it may not: the bound is the incumbent's own
/// error on the same inputs, however hostile they are.
pub fn judge_overall(pairs: &[PairedError], rules: &AccuracyRuleSet) -> Result<(), Inaccuracy> {
    let mut sums = [0.0_f64; 3];
    let mut n = 0.0;
    for pair in pairs.iter().filter(|pair| pair.output.dtype.is_float()) {
        let unit = pair.output.unit(&pair.candidate);
        let share = |rms: f64| (rms / unit).min(1e100).powi(2) * pair.candidate.n as f64;
        sums[0] += share(pair.candidate.rms);
        sums[1] += share(pair.incumbent.rms);
        sums[2] += share(unit * pair.output.reference_units());
        n += pair.candidate.n as f64;
    }
    if n == 0.0 {
        return Ok(());
    }
    keeps_small_elements(pairs, rules)?;
    let [candidate, incumbent, reference] = sums.map(|sum| (sum / n).sqrt());
    let ratio_max = rules.error_ratio_max() * (1.0 + LUCK / n);
    let allowed = (ratio_max * incumbent.max(reference)).max(OVERALL_FLOOR);
    if candidate <= allowed {
        return Ok(());
    }
    Err(Inaccuracy::LessAccurate {
        error: "overall (in roundings)".to_owned(),
        candidate,
        incumbent,
        allowed,
    })
}

/// Whether a candidate computes what is small next to the largest elements, as the incumbent does.
/// The other rules measure errors by the scale of the whole output, so that zeros in place of most
/// elements can be within them.
fn keeps_small_elements(pairs: &[PairedError], rules: &AccuracyRuleSet) -> Result<(), Inaccuracy> {
    keeps_share(pairs, rules, |errors| errors.lost).map_err(|[candidate, incumbent, allowed]| {
        Inaccuracy::Lost { candidate, incumbent, allowed }
    })
}

/// The same for elements that are off by a little, on inputs that are not hostile: where terms
/// cancel, a different order of operations costs as much.
pub fn judge_nominal(pairs: &[PairedError], rules: &AccuracyRuleSet) -> Result<(), Inaccuracy> {
    keeps_share(pairs, rules, |errors| errors.off).map_err(|[candidate, incumbent, allowed]| {
        Inaccuracy::Off { candidate, incumbent, allowed }
    })
}

/// Whether a candidate has not many more of some elements than the incumbent; if not, how many it
/// has, how many the incumbent has, and how many are allowed.
fn keeps_share(
    pairs: &[PairedError],
    rules: &AccuracyRuleSet,
    count: impl Fn(&ErrorStats) -> usize,
) -> Result<(), [usize; 3]> {
    let floats = || pairs.iter().filter(|pair| pair.output.dtype.is_float());
    let candidate: usize = floats().map(|pair| count(&pair.candidate)).sum();
    let incumbent: usize = floats().map(|pair| count(&pair.incumbent)).sum();
    let granted = floats().map(|pair| {
        let share = LOST_SHARE.max(LOST_ROUNDINGS * pair.output.dtype.epsilon());
        share * pair.candidate.n as f64
    });
    let granted = granted.sum::<f64>().max(1.0);
    let allowed = (rules.error_ratio_max() * incumbent as f64 + granted) as usize;
    match candidate <= allowed {
        true => Ok(()),
        false => Err([candidate, incumbent, allowed]),
    }
}

/// Whether a timed call is as accurate as the checked ones on inputs of the same kind: a kernel
/// must not be careful only when it is checked. If the incumbent's own error grew as well, the
/// inputs were harder.
pub fn judge_timed(timed: &PairedError, checked: &PairedError) -> Result<(), Inaccuracy> {
    if !timed.output.dtype.is_float() {
        return Ok(());
    }
    let relative = |stats: &ErrorStats| stats.rms / stats.scale.max(f64::MIN_POSITIVE);
    let grown = relative(&timed.incumbent) / relative(&checked.incumbent);
    let harder = if grown.is_finite() { grown.max(1.0) } else { 1.0 };
    let n = timed.candidate.n.min(checked.candidate.n).max(1) as f64;
    let ratio_max = TIMED_RATIO_MAX * (1.0 + LUCK / n) * harder;
    let usual = relative(&checked.candidate) * timed.candidate.scale;
    let floor = OVERALL_FLOOR * timed.output.unit(&timed.candidate);
    let allowed = (ratio_max * usual).max(floor);
    match timed.candidate.rms <= allowed {
        true => Ok(()),
        false => Err(Inaccuracy::LessAccurateTimed {
            timed: timed.candidate.rms,
            checked: usual,
            allowed,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accuracy::{Sensitivity, judge, measure};
    use crate::draw::{self, Draw, InputPattern, PatternTarget};
    use crate::tensor;

    const TERMS: usize = 2_048;
    const ROWS: usize = 40;

    /// A sum of float32 numbers.
    type Sum = fn(&[f32]) -> f32;

    fn plain(x: &[f32]) -> f32 {
        x.iter().sum()
    }

    fn lanes(x: &[f32]) -> f32 {
        let mut sums = [0.0_f32; 8];
        x.iter().enumerate().for_each(|(i, v)| sums[i % 8] += v);
        sums.iter().sum()
    }

    fn pairwise(x: &[f32]) -> f32 {
        match x {
            [] => 0.0,
            [one] => *one,
            _ => pairwise(&x[..x.len() / 2]) + pairwise(&x[x.len() / 2..]),
        }
    }

    fn kahan(x: &[f32]) -> f32 {
        let (mut sum, mut lost) = (0.0_f32, 0.0_f32);
        for v in x {
            let y = v - lost;
            let next = sum + y;
            lost = (next - sum) - y;
            sum = next;
        }
        sum
    }

    fn wide(x: &[f32]) -> f32 {
        x.iter().map(|v| f64::from(*v)).sum::<f64>() as f32
    }

    /// Sums of the rows of one draw, by both.
    fn summed(of: [Sum; 2], pattern: Option<InputPattern>, seed: u64) -> PairedError {
        summed_beside(of, None, pattern, seed)
    }

    /// The same, with a reference in float32 if there is one.
    fn summed_beside(
        of: [Sum; 2],
        reference: Option<Sum>,
        pattern: Option<InputPattern>,
        seed: u64,
    ) -> PairedError {
        let dtype = Dtype::F32;
        let mut bytes = vec![0; ROWS * TERMS * 4];
        draw::fill(&Draw::Normal { mean: 0.0, sd: 1.0 }, dtype, seed, 0, &mut bytes);
        if let Some(pattern) = pattern {
            let target = PatternTarget { pattern, hostile: None, dtype, row: TERMS };
            draw::apply(&target, seed, 0, &mut bytes);
        }
        let sums = |bytes: &[u8]| -> Vec<f64> {
            let mut values = Vec::new();
            tensor::to_f64(dtype, bytes, &mut values);
            values.chunks(TERMS).map(|row| row.iter().sum()).collect()
        };
        let truth = sums(&bytes);
        let x: Vec<f32> = bytes.as_chunks::<4>().0.iter().map(|v| f32::from_ne_bytes(*v)).collect();
        let by = |sum: Sum| x.chunks(TERMS).map(|row| f64::from(sum(row))).collect::<Vec<f64>>();
        draw::nudge(dtype, seed, 0, &mut bytes);
        let sensitivity = Sensitivity::of(&sums(&bytes), &truth, dtype.epsilon());
        // In the worst order an honest error grows with the number of terms, not with its root.
        let reduction = Some((TERMS as u64).pow(1 + u32::from(pattern.is_some())));
        let sensitivity = Some(sensitivity);
        let is_reference_native = reference.is_some();
        let output = OutputInfo { dtype, reduction, sensitivity, is_reference_native };
        let truth = reference.map_or(truth, by);
        let [candidate, incumbent] =
            of.map(|sum| measure(&by(sum), &truth, &AccuracyRuleSet::Default.tolerance(dtype)));
        PairedError { candidate, incumbent, output }
    }

    #[test]
    fn zeros_for_what_is_small_next_to_the_largest_element_are_refused() {
        let truth: Vec<f64> = (0..640).map(|i| (f64::from(i) * 0.05).exp()).collect();
        let output = OutputInfo::from(Dtype::F32);
        let tolerance = AccuracyRuleSet::Default.tolerance(Dtype::F32);
        let of = |values: &[f64]| measure(values, &truth, &tolerance);
        let exact: Vec<f64> = truth.iter().map(|v| f64::from(*v as f32)).collect();
        let judged = |zeros: usize, elsewhere: usize| {
            let mut candidate = exact.clone();
            candidate[..zeros].fill(0.0);
            let mut incumbent = exact.clone();
            incumbent[..elsewhere].fill(0.0);
            let (candidate, incumbent) = (of(&candidate), of(&incumbent));
            // By the scale of the output nothing is wrong.
            judge(&candidate, Some(&incumbent), &AccuracyRuleSet::Default, output)?;
            let pair = PairedError { candidate, incumbent, output };
            judge_overall(&[pair], &AccuracyRuleSet::Default)
        };
        assert_eq!(judged(10, 0), Ok(()));
        let refused = Inaccuracy::Lost { candidate: 200, incumbent: 0, allowed: 10 };
        assert_eq!(judged(200, 0), Err(refused));
        assert_eq!(judged(200, 60), Ok(()));
    }

    #[test]
    fn a_compensated_sum_is_told_from_a_plain_one() {
        for pattern in [None, Some(InputPattern::Cancellation), Some(InputPattern::Sorted)] {
            for seed in 0..10 {
                let ok = |sum: Sum, rules: AccuracyRuleSet| {
                    let pair = summed([sum, sum], pattern, seed);
                    judge(&pair.candidate, None, &rules, pair.output).is_ok()
                };
                for sum in [kahan as Sum, wide] {
                    assert!(ok(sum, AccuracyRuleSet::Compensated), "{pattern:?} {seed}");
                }
                // In order, the sums of both halves are large.
                let in_order = pattern == Some(InputPattern::Sorted);
                assert!(in_order || ok(pairwise, AccuracyRuleSet::Compensated), "{seed}");
                assert!(!ok(plain, AccuracyRuleSet::Compensated), "{pattern:?} {seed}");
                for sum in [kahan as Sum, wide, pairwise, plain, lanes] {
                    assert!(ok(sum, AccuracyRuleSet::Stable), "{pattern:?} {seed}");
                }
            }
        }
    }

    #[test]
    fn on_hostile_inputs_the_bound_is_the_incumbents_own_error() {
        let overall = |of: [Sum; 2]| {
            let draws = 0..6;
            let pairs: Vec<PairedError> =
                draws.map(|seed| summed(of, Some(InputPattern::Cancellation), seed)).collect();
            for pair in &pairs {
                let incumbent = Some(&pair.incumbent);
                let rules = AccuracyRuleSet::Default;
                assert!(judge(&pair.candidate, incumbent, &rules, pair.output).is_ok());
            }
            judge_overall(&pairs, &AccuracyRuleSet::Default).is_ok()
        };
        assert!(overall([plain, plain]) && overall([lanes, plain]) && overall([plain, lanes]));
        assert!(overall([kahan, plain]) && overall([wide, kahan]) && overall([pairwise, wide]));
        assert!(!overall([plain, kahan]) && !overall([plain, wide]));
    }

    #[test]
    fn an_incumbent_with_the_errors_of_its_reference_is_not_exact() {
        let judged = |sum: Sum, pattern: Option<InputPattern>| {
            let of = |seed| summed_beside([sum, plain], Some(plain), pattern, seed);
            let pairs: Vec<PairedError> = (0..6).map(of).collect();
            assert!(pairs.iter().all(|pair| pair.incumbent.rms == 0.0));
            let rules = AccuracyRuleSet::Default;
            judge_overall(&pairs, &rules)?;
            pairs.iter().try_for_each(|pair| {
                judge(&pair.candidate, Some(&pair.incumbent), &rules, pair.output)
            })
        };
        for pattern in [None, Some(InputPattern::Cancellation), Some(InputPattern::Sorted)] {
            for sum in [kahan as Sum, wide, pairwise, plain, lanes] {
                assert_eq!(judged(sum, pattern), Ok(()), "{pattern:?}");
            }
        }
        // With fewer bits, as on a tensor core.
        let narrow: Sum = |row| row.iter().map(|v| f32::from_bits(v.to_bits() & !0x1fff)).sum();
        assert!(judged(narrow, None).is_err());
    }

    #[test]
    fn a_timed_call_must_be_as_accurate_as_the_checked_ones() {
        let same = |sums: [Sum; 2]| {
            let checked = summed(sums, None, 1);
            (2..40).all(|seed| judge_timed(&summed(sums, None, seed), &checked).is_ok())
        };
        assert!(same([plain, plain]) && same([kahan, plain]) && same([wide, wide]));
        let checked = summed([kahan, wide], None, 1);
        let careless =
            (2..40).map(|seed| judge_timed(&summed([plain, wide], None, seed), &checked));
        assert!(careless.into_iter().all(|judged| judged.is_err()));
    }
}
