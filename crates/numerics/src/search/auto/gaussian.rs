//! A Gaussian process over settings.
//!
//! For each knob a table holds the correlation of any two of its values: a Matérn curve of
//! smoothness 5/2 over the difference of their ranks, or one number if the values are words. Sizes
//! have a second curve, over how often two divides them. The correlation of two settings is the
//! product of these, mixed with their mean. Length scales, noise and the mixture maximize the
//! likelihood of the readings, by coordinate search.

use super::targets::FitTargets;
use crate::grid::{Axis, Grid, GridPoint};
use crate::stats::DrawRng;
use std::ops::{Add, Mul};

/// Maximum number of readings that length scales are fitted to.
const FIT_MAX: usize = 100;
/// How often each length scale is adjusted: twice as often while there are few readings.
const SWEEPS: usize = 2;
const FEW: usize = 40;
/// The length scales before anything is known; 1 is the whole range of a knob.
const LENGTH: f64 = 1.0;
const LENGTH_RANGE: (f64, f64) = (0.05, 20.0);
/// How strongly length scales are pulled to that: the weight of the square of their logarithm.
const LENGTH_HOLD: f64 = 0.25;
/// The noise share of the variance.
const NOISE: f64 = 1e-3;
const NOISE_RANGE: (f64, f64) = (1e-6, 0.3);
const NOISE_HOLD: f64 = 0.02;
/// How much of the correlation is the mean over the knobs rather than the product.
const MIXTURE: f64 = 0.3;
const MIXTURE_MAX: f64 = 0.9;
const MIXTURE_STEP: f64 = 0.15;
/// A smaller improvement does not count.
const LIKELIER: f64 = 1e-3;
/// A pivot is at least this.
const PIVOT_MIN: f64 = 1e-9;

/// The process: the correlation of settings, and those that it knows.
#[derive(Debug)]
pub(super) struct GaussianProcess {
    pub(super) kernel: CovarianceKernel,
    pub(super) factor: CholeskyFactor,
    /// The settings in the factor, in its order.
    pub(super) rows: Vec<GridPoint>,
}

impl GaussianProcess {
    pub(super) fn new(grid: &Grid) -> Self {
        let factor = CholeskyFactor::default();
        Self { kernel: CovarianceKernel::new(grid), factor, rows: Vec::new() }
    }

    /// Replaces all settings; the rows in a pool become invalid.
    pub(super) fn set_rows(&mut self, grid: &Grid, rows: Vec<GridPoint>) {
        self.factor = CholeskyFactor::default();
        self.rows = rows;
        let known = ranks_of(grid, &self.rows);
        for count in 1..=known.len() {
            self.factor.push(&self.kernel, &known[..count]);
        }
    }

    /// Adds a setting.
    pub(super) fn push(&mut self, grid: &Grid, point: GridPoint) {
        self.rows.push(point);
        self.factor.push(&self.kernel, &ranks_of(grid, &self.rows));
    }
}

/// The ranks of the values of each setting.
pub(super) fn ranks_of<'a>(grid: &'a Grid, points: &[GridPoint]) -> Vec<&'a [u16]> {
    points.iter().map(|point| grid.ranks(*point)).collect()
}

/// The correlation of settings.
#[derive(Clone, Debug)]
pub(super) struct CovarianceKernel {
    axes: Vec<AxisSimilarity>,
    twos: Vec<TwosSimilarity>,
    noise: f64,
    mixture: f64,
}

/// The correlation of two values of a knob, by the difference of their ranks.
#[derive(Clone, Debug)]
struct AxisSimilarity {
    values: usize,
    words: bool,
    length: f64,
    table: Vec<f32>,
}

/// The correlation of two sizes, by how often two divides them.
#[derive(Clone, Debug)]
struct TwosSimilarity {
    axis: usize,
    /// How often two divides each value of the knob.
    counts: Vec<u16>,
    curve: AxisSimilarity,
}

impl TwosSimilarity {
    fn new((axis, knob): (usize, &Axis)) -> Option<Self> {
        let counts = super::twos(knob)?;
        let most = counts.iter().copied().max()?;
        Some(Self { axis, counts, curve: AxisSimilarity::new(usize::from(most) + 1, false) })
    }

    fn alike(&self, a: &[u16], b: &[u16]) -> f32 {
        let count = |ranks: &[u16]| self.counts[usize::from(ranks[self.axis])];
        self.curve.table[usize::from(count(a).abs_diff(count(b)))]
    }
}

impl AxisSimilarity {
    fn new(values: usize, words: bool) -> Self {
        let mut curve = Self { values, words, length: LENGTH, table: Vec::new() };
        curve.set(LENGTH);
        curve
    }

    fn set(&mut self, length: f64) {
        self.length = length.clamp(LENGTH_RANGE.0, LENGTH_RANGE.1);
        let whole = self.values.saturating_sub(1).max(1) as f64;
        let alike = |between: usize| {
            if self.words {
                let other = (-1.5 / self.length).exp();
                return if between == 0 { 1.0 } else { other };
            }
            let apart = 5_f64.sqrt() * between as f64 / whole / self.length;
            (1.0 + apart + apart * apart / 3.0) * (-apart).exp()
        };
        self.table = (0..self.values).map(|n| alike(n) as f32).collect();
    }
}

/// A parameter that is adjusted to make the readings more likely.
#[derive(Clone, Copy, Debug)]
enum Hyperparameter {
    Length(usize),
    Twos(usize),
    Noise,
    Mixture,
}

impl CovarianceKernel {
    pub(super) fn new(grid: &Grid) -> Self {
        let curve =
            |axis: &Axis| AxisSimilarity::new(axis.values().len(), axis.numbers().is_none());
        let axes = grid.axes().iter();
        Self {
            axes: axes.clone().map(curve).collect(),
            twos: axes.enumerate().filter_map(TwosSimilarity::new).collect(),
            noise: NOISE,
            mixture: MIXTURE,
        }
    }

    /// The correlation of two settings, 0 to 1.
    pub(super) fn alike(&self, a: &[u16], b: &[u16]) -> f32 {
        let (mut product, mut sum) = (1_f32, 0_f32);
        for (curve, (a, b)) in self.axes.iter().zip(a.iter().zip(b)) {
            let one = curve.table[usize::from(a.abs_diff(*b))];
            product *= one;
            sum += one;
        }
        for twos in &self.twos {
            let one = twos.alike(a, b);
            product *= one;
            sum += one;
        }
        let mixture = self.mixture as f32;
        let curves = self.axes.len() + self.twos.len();
        (1.0 - mixture) * product + mixture * sum / curves as f32
    }

    /// Fits length scales, noise and mixture to readings.
    pub(super) fn fit(&mut self, readings: &FitReadings<'_>, draws: &mut DrawRng) {
        let mut best = self.unlikeliness(readings);
        let mut screws: Vec<Hyperparameter> =
            (0..self.axes.len()).map(Hyperparameter::Length).collect();
        screws.extend((0..self.twos.len()).map(Hyperparameter::Twos));
        screws.extend([Hyperparameter::Noise, Hyperparameter::Mixture]);
        let sweeps = if readings.values.len() < FEW { SWEEPS } else { 1 };
        for _ in 0..sweeps {
            for last in (1..screws.len()).rev() {
                screws.swap(last, draws.below(last + 1));
            }
            for screw in &screws {
                // One direction as long as it helps, else the other.
                for direction in [-1.0, 1.0] {
                    let before = best;
                    while let Some(value) = self.turned(*screw, direction, readings, best) {
                        best = value;
                    }
                    if best < before {
                        break;
                    }
                }
            }
        }
    }

    /// Adjusts one parameter and returns the new negative log-likelihood, if it is lower.
    fn turned(
        &mut self,
        screw: Hyperparameter,
        direction: f64,
        readings: &FitReadings<'_>,
        best: f64,
    ) -> Option<f64> {
        let before = self.place(screw);
        let after = match screw {
            Hyperparameter::Length(_) | Hyperparameter::Twos(_) => before * 2_f64.powf(direction),
            Hyperparameter::Noise => before * 4_f64.powf(direction),
            Hyperparameter::Mixture => before + direction * MIXTURE_STEP,
        };
        self.set_hyperparameter(screw, after);
        if self.place(screw) == before {
            return None;
        }
        let now = self.unlikeliness(readings);
        if now < best - LIKELIER {
            return Some(now);
        }
        self.set_hyperparameter(screw, before);
        None
    }

    fn place(&self, screw: Hyperparameter) -> f64 {
        match screw {
            Hyperparameter::Length(axis) => self.axes[axis].length,
            Hyperparameter::Twos(index) => self.twos[index].curve.length,
            Hyperparameter::Noise => self.noise,
            Hyperparameter::Mixture => self.mixture,
        }
    }

    fn set_hyperparameter(&mut self, screw: Hyperparameter, to: f64) {
        match screw {
            Hyperparameter::Length(axis) => self.axes[axis].set(to),
            Hyperparameter::Twos(index) => self.twos[index].curve.set(to),
            Hyperparameter::Noise => self.noise = to.clamp(NOISE_RANGE.0, NOISE_RANGE.1),
            Hyperparameter::Mixture => self.mixture = to.clamp(0.0, MIXTURE_MAX),
        }
    }

    /// The negative log-likelihood of the readings, up to a constant.
    fn unlikeliness(&self, readings: &FitReadings<'_>) -> f64 {
        let FitReadings { ranks, values } = readings;
        let mut factor = CholeskyFactor::default();
        for count in 1..=ranks.len() {
            factor.push_row(self, &ranks[..count]);
        }
        let solved = factor.solve(values);
        let count = values.len().max(1) as f64;
        let square: f64 = solved.iter().map(|value| value * value).sum::<f64>() / count;
        let twos = self.twos.iter().map(|twos| &twos.curve);
        let curves = self.axes.iter().chain(twos);
        let hold: f64 = curves.map(|curve| LENGTH_HOLD * curve.length.ln().powi(2)).sum();
        let hold = hold + NOISE_HOLD * (self.noise / NOISE).ln().powi(2);
        0.5 * count * square.max(1e-12).ln() + factor.ln_pivots() + hold
    }
}

/// The readings that length scales are fitted to.
pub(super) struct FitReadings<'a> {
    ranks: Vec<&'a [u16]>,
    values: Vec<f64>,
}

impl<'a> FitReadings<'a> {
    /// All, or else the best half and a random part of the rest.
    pub(super) fn choose(grid: &'a Grid, targets: &FitTargets, draws: &mut DrawRng) -> Self {
        let (points, values) = (targets.points(), targets.values());
        let mut chosen: Vec<usize> = (0..values.len()).collect();
        if chosen.len() > FIT_MAX {
            chosen.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
            for place in FIT_MAX / 2..FIT_MAX {
                let other = place + draws.below(chosen.len() - place);
                chosen.swap(place, other);
            }
            chosen.truncate(FIT_MAX);
            chosen.sort_unstable();
        }
        Self {
            ranks: chosen.iter().map(|at| grid.ranks(points[*at])).collect(),
            values: chosen.iter().map(|at| values[*at]).collect(),
        }
    }
}

/// The triangular factor of the correlation matrix of all settings.
#[derive(Debug, Default)]
pub(super) struct CholeskyFactor {
    rows: Vec<Vec<f64>>,
    /// The same in single precision, for the many settings of a pool.
    single: Vec<Vec<f32>>,
}

impl CholeskyFactor {
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The row of a setting, in single precision.
    pub(super) fn single(&self, row: usize) -> &[f32] {
        &self.single[row]
    }

    /// Adds the last of the settings.
    pub(super) fn push(&mut self, kernel: &CovarianceKernel, settings: &[&[u16]]) {
        self.push_row(kernel, settings);
        let row = self.rows.last().map(Vec::as_slice).unwrap_or_default();
        let single = row.iter().map(|value| *value as f32).collect();
        self.single.push(single);
    }

    /// The same without single precision.
    fn push_row(&mut self, kernel: &CovarianceKernel, settings: &[&[u16]]) {
        let Some((last, others)) = settings.split_last() else {
            return;
        };
        let mut row: Vec<f64> = Vec::with_capacity(settings.len());
        for (other, earlier) in others.iter().zip(&self.rows) {
            let alike = f64::from(kernel.alike(last, other));
            let at = row.len();
            row.push((alike - dot(&row, &earlier[..at])) / earlier[at]);
        }
        let own = 1.0 + kernel.noise - dot(&row, &row);
        row.push(own.max(PIVOT_MIN).sqrt());
        self.rows.push(row);
    }

    /// What the factor times the result gives the values.
    pub(super) fn solve(&self, values: &[f64]) -> Vec<f64> {
        let mut solved: Vec<f64> = Vec::with_capacity(values.len());
        for (row, value) in self.rows.iter().zip(values) {
            let at = solved.len();
            solved.push((value - dot(&row[..at], &solved)) / row[at]);
        }
        solved
    }

    fn ln_pivots(&self) -> f64 {
        let pivots = self.rows.iter().filter_map(|row| row.last());
        pivots.map(|pivot| pivot.ln()).sum()
    }
}

/// The sum of the products, in lanes that the processor can take at once.
pub(super) fn dot<T>(a: &[T], b: &[T]) -> T
where
    T: Copy + Default + Add<Output = T> + Mul<Output = T>,
{
    const LANES: usize = 16;
    let (left, right) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = left.remainder().iter().zip(right.remainder());
    let rest = rest.fold(T::default(), |sum, (a, b)| sum + *a * *b);
    let mut sums = [T::default(); LANES];
    for (a, b) in left.zip(right) {
        for lane in 0..LANES {
            sums[lane] = sums[lane] + a[lane] * b[lane];
        }
    }
    sums.iter().fold(rest, |sum, lane| sum + *lane)
}
