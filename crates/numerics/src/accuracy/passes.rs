//! Comparisons of tensors on a device: the device adds up, pass by pass, and this concludes.

use super::{
    AccuracyRuleSet, CrossBound, CrossCheckResult, ErrorStats, ErrorSums, FloatLimits, Sensitivity,
    Tolerance,
};
use crate::tensor::{self, Dtype};

/// Figures of a pass.
pub const FIGURES: usize = 12;

/// Figures that stand for no element are at least this.
const NO_ELEMENT: f64 = (1_u64 << 53) as f64;

/// What a device adds up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparePass {
    /// The largest magnitude.
    Largest = 0,
    /// Sums over elements that are finite.
    Sums = 1,
    /// What holds for each element.
    Elements = 2,
    /// Squares of the second tensor, and elements whose bits differ.
    Squares = 3,
    /// Elements that differ by more than a bound, or at all.
    Cross = 4,
}

impl ComparePass {
    /// How the figures of two parts of the tensors are put together.
    pub fn combine(self, figure: usize, a: f64, b: f64) -> f64 {
        match (self, figure) {
            (Self::Largest, 0) | (Self::Sums, 1 | 2) | (Self::Elements, 2..=4) => a.max(b),
            (Self::Elements, 9) | (Self::Cross, 1) => a.min(b),
            _ => a + b,
        }
    }
}

/// The numbers that a pass needs, as the kernels of the device read them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CompareLimits {
    overflow: f64,
    largest: f64,
    normal: f64,
    epsilon: f64,
    has_inf: u32,
    exact: u32,
    inverse: f64,
    out_mean: f64,
    reference_mean: f64,
    limit: f64,
    relative: f64,
}

impl CompareLimits {
    fn of(dtype: Dtype) -> Self {
        let FloatLimits { overflow, largest, infinite, normal, epsilon } = FloatLimits::of(dtype);
        let has_inf = u32::from(infinite);
        Self { overflow, largest, normal, epsilon, has_inf, ..Self::default() }
    }
}

/// One pair of tensors in a pass.
#[derive(Clone, Copy, Debug)]
pub struct PassItem {
    /// Which pair.
    pub pair: usize,
    /// The numbers that the pass needs.
    pub limits: CompareLimits,
}

/// Runs passes over pairs of tensors.
pub trait RunPass {
    /// How a pass fails.
    type Error;

    /// The figures of each of these pairs.
    fn run(
        &mut self,
        pass: ComparePass,
        items: &[PassItem],
    ) -> Result<Vec<[f64; FIGURES]>, Self::Error>;
}

fn run_one<R: RunPass>(
    device: &mut R,
    pass: ComparePass,
    limits: CompareLimits,
) -> Result<[f64; FIGURES], R::Error> {
    let found = device.run(pass, &[PassItem { pair: 0, limits }])?;
    Ok(found.first().copied().unwrap_or_default())
}

/// As [`super::measure`], for one pair of tensors of `n` elements on a device.
pub fn measure_on<R: RunPass>(
    n: usize,
    tolerance: &Tolerance,
    device: &mut R,
) -> Result<ErrorStats, R::Error> {
    let mut limits = CompareLimits::of(tolerance.dtype);
    let [largest, ..] = run_one(device, ComparePass::Largest, limits)?;
    let exponent = ((largest.to_bits() >> 52) as i32 - 1023).clamp(-900, 900);
    let unit = tensor::power_of_two(exponent);
    limits.inverse = tensor::power_of_two(-exponent);
    let found = run_one(device, ComparePass::Sums, limits)?;
    let [n_finite, max_abs, peak, error, out, reference, ..] = found;
    let [.., out_squares, reference_squares, products, _, _, _] = found;
    (limits.out_mean, limits.reference_mean) =
        (out / n_finite.max(1.0), reference / n_finite.max(1.0));
    let scale = ((reference_squares / n_finite.max(1.0)).sqrt() * unit).min(f64::MAX);
    limits.limit = tolerance.absolute + tolerance.scaled * scale;
    limits.relative = tolerance.relative;
    limits.exact = u32::from(limits.limit == 0.0 && limits.relative == 0.0);
    let each = run_one(device, ComparePass::Elements, limits)?;
    let sums = ErrorSums {
        n,
        n_finite,
        unit,
        max_abs,
        peak,
        error,
        out,
        reference,
        out_squares,
        reference_squares,
        products,
        out_spread: each[0],
        reference_spread: each[1],
    };
    Ok(ErrorStats {
        max_ulp: each[2],
        max_excess: each[3],
        max_rel: each[4],
        nan_missing: each[5] as usize,
        nan_extra: each[6] as usize,
        inf_mismatch: each[7] as usize,
        mismatched: each[8] as usize,
        first_bad: (each[9] < NO_ELEMENT).then_some(each[9] as usize),
        ..sums.stats()
    })
}

/// Two outputs of one type that are to be compared.
#[derive(Clone, Copy, Debug)]
pub struct AgreeRequest {
    /// Their elements.
    pub n: usize,
    /// The type.
    pub dtype: Dtype,
    /// By how much they may differ.
    pub bound: CrossBound,
}

impl AgreeRequest {
    /// The scale of the differences, from the figures of the second output.
    fn scale(&self, [squares, ..]: &[f64; FIGURES]) -> f64 {
        let rms = (squares.min(f64::MAX) / self.n.max(1) as f64).sqrt();
        rms.max(self.bound.scale)
    }

    fn limits(&self, scale: f64) -> CompareLimits {
        CompareLimits {
            limit: (self.bound.scaled * scale + self.bound.smallest).min(f64::MAX),
            relative: self.bound.relative,
            exact: u32::from(!self.dtype.is_float()),
            ..CompareLimits::of(self.dtype)
        }
    }

    fn result(&self, scale: f64, figures: &[f64; FIGURES]) -> CrossCheckResult {
        let [beyond, first, differences, ..] = *figures;
        let mean = differences / self.n.max(1) as f64;
        let rms = match self.dtype.is_float() && mean.is_finite() {
            true => mean.sqrt() / scale,
            false => 0.0,
        };
        CrossCheckResult {
            n: self.n,
            beyond: beyond as usize,
            first: (first < NO_ELEMENT).then_some(first as usize),
            rms,
            agrees: beyond == 0.0 && rms <= self.bound.rms_max,
        }
    }
}

/// As [`super::agree`], for many pairs of outputs on a device.
pub fn agree_on<R: RunPass>(
    pairs: &[AgreeRequest],
    device: &mut R,
) -> Result<Vec<CrossCheckResult>, R::Error> {
    let first = |(pair, one): (usize, &AgreeRequest)| PassItem {
        pair,
        limits: CompareLimits::of(one.dtype),
    };
    let all: Vec<PassItem> = pairs.iter().enumerate().map(first).collect();
    let squares = device.run(ComparePass::Squares, &all)?;
    let same = |one: &AgreeRequest| CrossCheckResult {
        n: one.n,
        agrees: true,
        ..CrossCheckResult::default()
    };
    let mut results: Vec<CrossCheckResult> = pairs.iter().map(same).collect();
    let scales: Vec<f64> = pairs.iter().zip(&squares).map(|(one, of)| one.scale(of)).collect();
    let differing: Vec<PassItem> = (0..pairs.len().min(squares.len()))
        .filter(|pair| squares[*pair][1] != 0.0)
        .map(|pair| PassItem { pair, limits: pairs[pair].limits(scales[pair]) })
        .collect();
    if !differing.is_empty() {
        let found = device.run(ComparePass::Cross, &differing)?;
        for (PassItem { pair, .. }, figures) in differing.iter().zip(&found) {
            results[*pair] = pairs[*pair].result(scales[*pair], figures);
        }
    }
    Ok(results)
}

/// As [`Sensitivity::of`], for references of `n` elements on a device.
pub fn sensitivity_on<R: RunPass>(
    n: usize,
    epsilon: f64,
    device: &mut R,
) -> Result<Sensitivity, R::Error> {
    let tolerance = AccuracyRuleSet::Default.tolerance(Dtype::F64);
    Ok(Sensitivity::from(&measure_on(n, &tolerance, device)?, epsilon))
}

#[cfg(test)]
mod tests {
    use super::super::{agree, measure};
    use super::*;
    use proptest::prelude::*;

    /// The passes of the kernels, on the host.
    struct HostPasses {
        dtype: Dtype,
        out: Vec<f64>,
        reference: Vec<f64>,
    }

    impl HostPasses {
        fn figures(&self, at: usize, pass: ComparePass, c: &CompareLimits) -> [f64; FIGURES] {
            let mut f = [0.0; FIGURES];
            let (o, r) = (self.out[at], self.reference[at]);
            let is_finite = o.is_finite() && r.is_finite() && r.abs() <= c.overflow;
            let (a, b) = (o * c.inverse, r * c.inverse);
            let bits = |v: f64| v.to_bits();
            match pass {
                ComparePass::Largest if is_finite => f[0] = o.abs().max(r.abs()),
                ComparePass::Sums if is_finite => {
                    let apart = (a - b).abs();
                    f[..9].copy_from_slice(&[
                        1.0,
                        apart,
                        b.abs(),
                        apart * apart,
                        a,
                        b,
                        a * a,
                        b * b,
                        a * b,
                    ]);
                }
                ComparePass::Elements => {
                    if is_finite {
                        (f[0], f[1]) = ((a - c.out_mean).powi(2), (b - c.reference_mean).powi(2));
                    }
                    let is_good = self.element(o, r, c, &mut f);
                    f[8] = if is_good { 0.0 } else { 1.0 };
                    f[9] = if is_good { NO_ELEMENT } else { at as f64 };
                }
                ComparePass::Squares => {
                    f[0] = if r.is_finite() { r * r } else { 0.0 };
                    f[1] = f64::from(u8::from(bits(o) != bits(r)));
                }
                ComparePass::Cross => {
                    let apart = (o - r).abs();
                    let is_near = apart <= c.limit + c.relative * r.abs() && apart.is_finite();
                    f[1] = NO_ELEMENT;
                    if is_near {
                        f[2] = apart * apart;
                    } else if o != r && !(o.is_nan() && r.is_nan()) {
                        (f[0], f[1]) = (1.0, at as f64);
                    }
                }
                ComparePass::Largest | ComparePass::Sums => {}
            }
            f
        }

        fn element(&self, o: f64, r: f64, c: &CompareLimits, f: &mut [f64; FIGURES]) -> bool {
            let kinds = FloatLimits::of(self.dtype);
            match kinds.compare(o, r) {
                super::super::ElementDifference::Same => true,
                super::super::ElementDifference::Apart(apart) => {
                    let ulp = kinds.ulp(r);
                    (f[2], f[3]) = (apart / ulp, apart - ulp / 2.0);
                    f[4] = apart / r.abs().max(c.normal);
                    apart <= c.limit + c.relative * r.abs()
                }
                super::super::ElementDifference::NanMissing => {
                    f[5] = 1.0;
                    false
                }
                super::super::ElementDifference::NanExtra => {
                    f[6] = 1.0;
                    false
                }
                super::super::ElementDifference::InfMismatch => {
                    f[7] = 1.0;
                    false
                }
            }
        }
    }

    impl RunPass for HostPasses {
        type Error = std::convert::Infallible;

        fn run(
            &mut self,
            pass: ComparePass,
            items: &[PassItem],
        ) -> Result<Vec<[f64; FIGURES]>, Self::Error> {
            let both = |one: [f64; FIGURES], other: [f64; FIGURES]| {
                std::array::from_fn(|at| pass.combine(at, one[at], other[at]))
            };
            let of_item = |item: &PassItem| {
                let all = (0..self.out.len()).map(|at| self.figures(at, pass, &item.limits));
                all.reduce(both).unwrap_or_default()
            };
            Ok(items.iter().map(of_item).collect())
        }
    }

    fn element() -> impl Strategy<Value = f64> {
        prop_oneof![
            8 => -4.0..4.0_f64,
            1 => prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(0.0), Just(1e30)],
        ]
    }

    proptest! {
        #[test]
        fn passes_conclude_what_a_comparison_on_the_host_does(
            pairs in prop::collection::vec((element(), element(), 0.0..0.01_f64), 1..40),
        ) {
            let dtype = Dtype::F32;
            let out: Vec<f64> = pairs.iter().map(|(o, _, _)| f64::from(*o as f32)).collect();
            // Most are near each other.
            let near = |(o, r, by): &(f64, f64, f64)| if *by < 0.001 { *r } else { o * (1.0 + by) };
            let reference: Vec<f64> =
                pairs.iter().map(|pair| f64::from(near(pair) as f32)).collect();
            let mut device = HostPasses { dtype, out: out.clone(), reference: reference.clone() };
            let tolerance = AccuracyRuleSet::Default.tolerance(dtype);
            let found = measure_on(out.len(), &tolerance, &mut device).unwrap();
            // Lost elements are counted on the host only.
            let on_host = ErrorStats { lost: 0, off: 0, ..measure(&out, &reference, &tolerance) };
            prop_assert_eq!(found, on_host);
            let zero = ErrorStats { scale: 1.0, ..ErrorStats::default() };
            let bound = CrossBound::from(&zero, &zero, dtype);
            // Twice the same pair.
            let request = AgreeRequest { n: out.len(), dtype, bound };
            let found = agree_on(&[request; 2], &mut device).unwrap();
            prop_assert_eq!((found.len(), found[0]), (2, found[1]));
            let found = found[0];
            let bytes = |values: &[f64]| {
                let mut bytes = vec![0; values.len() * 4];
                tensor::from_f64(dtype, values, &mut bytes);
                bytes
            };
            let wanted = agree(&bytes(&out), &bytes(&reference), dtype, &bound);
            prop_assert_eq!((found.agrees, found.beyond), (wanted.agrees, wanted.beyond));
            prop_assert_eq!(found.first, wanted.first);
        }
    }
}
