//! Matrix products as honest kernels compute them, and as dishonest ones do.

use karve_numerics::accuracy::{AccuracyRuleSet, ErrorStats, OutputInfo, Sensitivity, measure};
use karve_numerics::draw::{Draw, fill, nudge};
use karve_numerics::tensor::{Dtype, from_f64, to_f64};
use std::ops::{Add, Mul, Sub};

/// Rows and columns of every product.
pub const SIDE: usize = 8;

/// The ways in which an honest kernel may sum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Summing {
    Plain,
    Fused,
    Reversed,
    Blocked,
    Pairwise,
    Compensated,
    Lanes8,
    Lanes16,
    SplitInFour,
    Wide,
}

pub const HONEST: [Summing; 10] = [
    Summing::Plain,
    Summing::Fused,
    Summing::Reversed,
    Summing::Blocked,
    Summing::Pairwise,
    Summing::Compensated,
    Summing::Lanes8,
    Summing::Lanes16,
    Summing::SplitInFour,
    Summing::Wide,
];

/// What a dishonest kernel does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cheat {
    Bf16Inputs,
    F16Inputs,
    Bf16Output,
    ShortBy5Percent,
    ShortByOne,
    OneNan,
    AllNan,
    Constant,
    Zeros,
    OffByOneRow,
    SwappedColumns,
    OtherInputs,
    OneElement,
}

pub const CHEATS: [Cheat; 13] = [
    Cheat::Bf16Inputs,
    Cheat::F16Inputs,
    Cheat::Bf16Output,
    Cheat::ShortBy5Percent,
    Cheat::ShortByOne,
    Cheat::OneNan,
    Cheat::AllNan,
    Cheat::Constant,
    Cheat::Zeros,
    Cheat::OffByOneRow,
    Cheat::SwappedColumns,
    Cheat::OtherInputs,
    Cheat::OneElement,
];

trait Real: Copy + Default + Add<Output = Self> + Mul<Output = Self> + Sub<Output = Self> {
    fn of(value: f64) -> Self;
    fn wide(self) -> f64;
    fn fused(self, b: Self, c: Self) -> Self;
}

impl Real for f32 {
    fn of(value: f64) -> f32 {
        value as f32
    }
    fn wide(self) -> f64 {
        self.into()
    }
    fn fused(self, b: f32, c: f32) -> f32 {
        (f64::from(self) * f64::from(b) + f64::from(c)) as f32
    }
}

impl Real for f64 {
    fn of(value: f64) -> f64 {
        value
    }
    fn wide(self) -> f64 {
        self
    }
    fn fused(self, b: f64, c: f64) -> f64 {
        self.mul_add(b, c)
    }
}

fn plain<T: Real>(a: &[T], b: &[T]) -> T {
    a.iter().zip(b).fold(T::default(), |s, (a, b)| s + *a * *b)
}

fn compensated<T: Real>(a: &[T], b: &[T]) -> T {
    let (mut sum, mut lost) = (T::default(), T::default());
    for (a, b) in a.iter().zip(b) {
        let term = *a * *b - lost;
        let next = sum + term;
        lost = (next - sum) - term;
        sum = next;
    }
    sum
}

fn pairwise<T: Real>(a: &[T], b: &[T]) -> T {
    if a.len() <= 8 {
        return plain(a, b);
    }
    let half = a.len() / 2;
    pairwise(&a[..half], &b[..half]) + pairwise(&a[half..], &b[half..])
}

fn lanes<T: Real, const N: usize>(a: &[T], b: &[T]) -> T {
    let mut sums = [T::default(); N];
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        sums[i % N] = a.fused(*b, sums[i % N]);
    }
    sums.into_iter().fold(T::default(), |s, v| s + v)
}

fn by_blocks<T: Real>(a: &[T], b: &[T], block: usize) -> T {
    let parts = a.chunks(block).zip(b.chunks(block));
    parts.fold(T::default(), |s, (a, b)| s + plain(a, b))
}

fn dot<T: Real>(how: Summing, a: &[T], b: &[T]) -> T {
    match how {
        Summing::Plain => plain(a, b),
        Summing::Fused => {
            let terms = a.iter().zip(b);
            terms.fold(T::default(), |s, (a, b)| a.fused(*b, s))
        }
        Summing::Reversed => {
            let terms = a.iter().zip(b).rev();
            terms.fold(T::default(), |s, (a, b)| s + *a * *b)
        }
        Summing::Blocked => by_blocks(a, b, 64),
        Summing::Pairwise => pairwise(a, b),
        Summing::Compensated => compensated(a, b),
        Summing::Lanes8 => lanes::<T, 8>(a, b),
        Summing::Lanes16 => lanes::<T, 16>(a, b),
        Summing::SplitInFour => by_blocks(a, b, a.len().div_ceil(4).max(1)),
        Summing::Wide => {
            let terms = a.iter().zip(b);
            T::of(terms.fold(0.0, |s, (a, b)| s + a.wide() * b.wide()))
        }
    }
}

/// The inputs of a product, and what is known of its output.
pub struct Product {
    pub dtype: Dtype,
    pub k: usize,
    a: Vec<f64>,
    b: Vec<f64>,
}

fn numbers(draw: &Draw, dtype: Dtype, (seed, stream): (u64, u64), k: usize) -> [Vec<f64>; 2] {
    let mut bytes = vec![0; SIDE * k * dtype.bytes()];
    let mut values = [Vec::new(), Vec::new()];
    fill(draw, dtype, seed, stream, &mut bytes);
    to_f64(dtype, &bytes, &mut values[0]);
    nudge(dtype, seed, stream, &mut bytes);
    to_f64(dtype, &bytes, &mut values[1]);
    values
}

/// A product, and the same with its inputs nudged.
pub fn products(draws: &[Draw; 2], dtype: Dtype, k: usize, seed: u64) -> [Product; 2] {
    let [a, a_nudged] = numbers(&draws[0], dtype, (seed, 0), k);
    let [b, b_nudged] = numbers(&draws[1], dtype, (seed, 1), k);
    let of = |a, b| Product { dtype, k, a, b };
    [of(a, b), of(a_nudged, b_nudged)]
}

impl Product {
    fn each<T: Real>(&self, dot: impl Fn(&[T], &[T]) -> f64) -> Vec<f64> {
        let narrow = |values: &[f64]| values.iter().map(|v| T::of(*v)).collect::<Vec<T>>();
        let (a, b) = (narrow(&self.a), narrow(&self.b));
        let rows = a.chunks(self.k);
        rows.flat_map(|a| b.chunks(self.k).map(|b| dot(a, b)).collect::<Vec<f64>>()).collect()
    }

    pub fn reference(&self) -> Vec<f64> {
        self.each::<f64>(plain)
    }

    /// The output of an honest kernel: sums in float32, or in float64 for float64.
    pub fn honest(&self, how: Summing) -> Vec<u8> {
        let values = match self.dtype {
            Dtype::F64 => self.each::<f64>(|a, b| dot(how, a, b)),
            _ => self.each::<f32>(|a, b| dot(how, a, b).wide()),
        };
        self.bytes(&values)
    }

    fn bytes(&self, values: &[f64]) -> Vec<u8> {
        let mut bytes = vec![0; values.len() * self.dtype.bytes()];
        from_f64(self.dtype, values, &mut bytes);
        bytes
    }

    fn with_inputs(&self, of: impl Fn(&[f64]) -> Vec<f64>) -> Product {
        Product { dtype: self.dtype, k: self.k, a: of(&self.a), b: of(&self.b) }
    }

    pub fn dishonest(&self, cheat: Cheat) -> Vec<u8> {
        let rounding = |dtype: Dtype| {
            let rounded = |v: &[f64]| karve_numerics::accuracy::rounded(dtype, v);
            self.with_inputs(rounded).honest(Summing::Lanes8)
        };
        let short = |by: usize| {
            let cut = |v: &[f64]| {
                let mut v = v.to_vec();
                for row in v.chunks_mut(self.k) {
                    row[self.k - by..].fill(0.0);
                }
                v
            };
            self.with_inputs(cut).honest(Summing::Lanes8)
        };
        let mut values = Vec::new();
        to_f64(self.dtype, &self.honest(Summing::Lanes8), &mut values);
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        match cheat {
            Cheat::Bf16Inputs => return rounding(Dtype::Bf16),
            Cheat::F16Inputs => return rounding(Dtype::F16),
            Cheat::ShortBy5Percent => return short(self.k.div_ceil(20)),
            Cheat::ShortByOne => return short(1),
            Cheat::Bf16Output => values = karve_numerics::accuracy::rounded(Dtype::Bf16, &values),
            Cheat::OneNan => values[SIDE] = f64::NAN,
            Cheat::AllNan => values.fill(f64::NAN),
            Cheat::Constant => values.fill(mean),
            Cheat::Zeros => values.fill(0.0),
            Cheat::OffByOneRow => values.rotate_left(SIDE),
            Cheat::SwappedColumns => values.chunks_mut(SIDE).for_each(|row| row.swap(0, 1)),
            Cheat::OtherInputs => values.reverse(),
            Cheat::OneElement => values[SIDE + 1] = values[2 * SIDE],
        }
        self.bytes(&values)
    }

    pub fn stats(&self, out: &[u8], reference: &[f64], rules: &AccuracyRuleSet) -> ErrorStats {
        let mut values = Vec::new();
        to_f64(self.dtype, out, &mut values);
        measure(&values, reference, &rules.tolerance(self.dtype))
    }

    /// What is known of the output.
    pub fn output(&self, nudged: &Product, reference: &[f64]) -> OutputInfo {
        OutputInfo {
            dtype: self.dtype,
            reduction: Some(self.k as u64),
            sensitivity: Some(Sensitivity::of(
                &nudged.reference(),
                reference,
                self.dtype.epsilon(),
            )),
            is_reference_native: false,
        }
    }
}

/// What both inputs are drawn from, by name.
pub fn draws() -> Vec<(&'static str, [Draw; 2])> {
    let normal = Draw::Normal { mean: 0.0, sd: 1.0 };
    let both = |draw: &Draw| [draw.clone(), draw.clone()];
    let of = || Box::new(Draw::Normal { mean: 0.0, sd: 1.0 });
    let uniform = |low, high| Draw::Uniform { low, high };
    vec![
        ("normal", both(&normal)),
        ("uniform -1 to 1", both(&uniform(-1.0, 1.0))),
        ("uniform 0 to 1", both(&uniform(0.0, 1.0))),
        ("normal 3 ± 0.1", both(&Draw::Normal { mean: 3.0, sd: 0.1 })),
        ("integers", both(&Draw::Integers { low: -8, high: 8 })),
        ("sparse", [Draw::Sparse { density: 0.1, of: of() }, normal.clone()]),
        ("sorted", [Draw::Sorted { of: of() }, normal.clone()]),
        ("large", both(&Draw::Large { full: false })),
        ("mixed", both(&Draw::Mixed)),
        ("mixed × normal", [Draw::Mixed, normal.clone()]),
        ("cancelling", both(&Draw::Cancelling)),
        ("cancelling × 1", [Draw::Cancelling, Draw::Constant { value: 1.0 }]),
        ("denormals", both(&Draw::Denormals)),
        ("denormals × 1", [Draw::Denormals, Draw::Constant { value: 1.0 }]),
        ("with NaN", [Draw::Nans { share: 0.001, of: of() }, normal]),
        ("zeros", both(&Draw::Zeros)),
    ]
}
