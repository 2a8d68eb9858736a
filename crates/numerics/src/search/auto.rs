//! The default search: a model of the times chooses the most promising setting.
//!
//! Two models see the same readings. A Gaussian process over the ranks of the values of each knob
//! (a product of one smooth curve per knob, and a sum of them) extrapolates; an ensemble of random
//! trees, which may also split by products and ratios of sizes, finds steps and cliffs. Both also
//! see how often two divides a size. Their means and variances are averaged, and the setting with
//! the largest expected improvement, times the probability that it works, is next. A separate
//! ensemble learns that probability. Where most settings fail, the start stays near one that works.
//!
//! ```text
//! record ─ targets ─┬─ gaussian ─ pool of settings ─ the best few hundred ─┐
//!                   └─ forest ───────────────────────────────────────────┴─ expected improvement
//! ```
//!
//! The pool is a random part of the grid and the neighbors of the best settings. It and the factor
//! of the process grow by one row with each reading; length scales are refitted when there is a
//! fifth more data, so that a proposal is cheap.

mod forest;
mod gaussian;
mod pool;
mod targets;

use super::{SearchRecord, Strategy};
use crate::grid::{Axis, Grid, GridPoint};
use crate::stats::DrawRng;
use forest::{Forest, ForestFeatures};
use gaussian::{FitReadings, GaussianProcess};
use pool::{ScoredSetting, SettingPool};
use std::collections::BTreeMap;
use targets::FitTargets;

/// Settings that are spread over the grid before the models are used.
const START: usize = 10;
/// Settings drawn for each of them; the one farthest from all others is taken.
const SPREAD_DRAWS: usize = 30;
/// Settings with a value before the models are used.
const VALUES_MIN: usize = 3;
/// Length scales are refitted when there is this much more data.
const FIT_GROWTH: f64 = 1.2;
/// Maximum number of settings that the Gaussian process is fitted to.
const PROCESS_MAX: usize = 256;
/// Settings that the trees judge: the most promising ones of the pool.
const FOREST_SETTINGS: usize = 400;
/// Trees for times, and how many of them are regrown for each proposal.
const TREES: (usize, usize) = (30, 3);
/// The same for trees for failures.
const FAILURE_TREES: (usize, usize) = (24, 6);
/// Minimum number of values to consider how often two divides them. Fewer are learned one by one.
const TWOS_MIN: usize = 9;
/// The weight of the trees relative to the process.
const TREES_WEIGHT: f64 = 0.5;
/// A setting that is sure to fail still keeps this part of its promise.
const CHANCE_MIN: f64 = 0.02;

#[derive(Debug)]
pub(super) struct AutoSearch {
    draws: DrawRng,
    state: Option<AutoState>,
    /// The expected values of proposed settings, as logarithms.
    believed: BTreeMap<GridPoint, f64>,
    gain: Option<f64>,
}

/// State that is kept between proposals.
#[derive(Debug)]
struct AutoState {
    features: ForestFeatures,
    process: GaussianProcess,
    pool: SettingPool,
    times: Forest,
    failures: Forest,
    fit_at: f64,
}

/// The prediction for a setting.
struct PredictedSetting {
    point: GridPoint,
    /// The mean, in the unit of the targets.
    mean: f64,
    improvement: f64,
}

impl AutoSearch {
    pub(super) fn new(draws: DrawRng) -> Self {
        Self { draws, state: None, believed: BTreeMap::new(), gain: None }
    }

    /// The setting to start with: where most fail, a neighbor of one that works.
    fn start(&mut self, grid: &Grid, record: &SearchRecord) -> Option<GridPoint> {
        let failed = record.entries().iter().filter(|entry| entry.failed).count();
        let settled = record.entries().iter().filter(|entry| !entry.is_pending()).count();
        if 2 * failed > settled {
            let working = record.ranking().into_iter().take(1).map(|(point, _)| point);
            let near: Vec<GridPoint> = working
                .flat_map(|point| grid.neighbours(point))
                .filter(|point| !record.contains(*point))
                .collect();
            if let Some(point) = near.get(self.draws.below(near.len())) {
                return Some(*point);
            }
        }
        self.spread(grid, record)
    }

    /// Of some settings, the one farthest from all that were proposed.
    fn spread(&mut self, grid: &Grid, record: &SearchRecord) -> Option<GridPoint> {
        let mut best = (-1.0, record.fresh(grid, &mut self.draws)?);
        for _ in 0..SPREAD_DRAWS {
            let Some(point) = record.fresh(grid, &mut self.draws) else {
                break;
            };
            let far = |entry: &super::TriedSetting| distance(grid, entry.point, point);
            let nearest = record.entries().iter().map(far).fold(f64::MAX, f64::min);
            if nearest > best.0 {
                best = (nearest, point);
            }
        }
        Some(best.1)
    }
}

/// The squared distance of two settings, each knob from 0 to 1.
fn distance(grid: &Grid, a: GridPoint, b: GridPoint) -> f64 {
    let pairs = grid.ranks(a).iter().zip(grid.ranks(b));
    let one = |(axis, (a, b)): (&Axis, (&u16, &u16))| {
        let most = axis.values().len().saturating_sub(1).max(1) as f64;
        let apart = (f64::from(*a) - f64::from(*b)) / most;
        match (axis.numbers(), a == b) {
            (None, false) => 1.0,
            _ => apart * apart,
        }
    };
    grid.axes().iter().zip(pairs).map(one).sum()
}

/// How often two divides each value of a knob, minus the power of two common to all of them.
///
/// Devices work in groups of powers of two: a width of 64 is more like 128 than like 80, which is
/// closer. `None` for few values or non-sizes, and for powers of two, where the rank says the same.
fn twos(axis: &Axis) -> Option<Vec<u16>> {
    let numbers = axis.numbers().filter(|_| axis.is_size())?;
    let whole = |number: &f64| number.fract() == 0.0 && *number < f64::from(u32::MAX);
    if numbers.len() < TWOS_MIN || !numbers.iter().all(whole) {
        return None;
    }
    let whole: Vec<u32> = numbers.iter().map(|number| *number as u32).collect();
    if whole.iter().all(|number| number.is_power_of_two()) {
        return None;
    }
    let twos: Vec<u16> = whole.iter().map(|n| n.trailing_zeros() as u16).collect();
    let (least, most) = (twos.iter().min()?, twos.iter().max()?);
    (least < most).then(|| twos.iter().map(|count| count - least).collect())
}

impl Strategy for AutoSearch {
    fn ask(&mut self, grid: &Grid, record: &SearchRecord) -> Option<GridPoint> {
        let valued = record.entries().iter().filter(|e| e.value().is_some());
        if record.len() < START || valued.count() < VALUES_MIN {
            return self.start(grid, record);
        }
        let targets = FitTargets::new(record, &self.believed)?;
        let draws = &mut self.draws;
        let state = self.state.get_or_insert_with(|| AutoState::new(grid));
        state.learn(grid, record, &targets, draws);
        let promise = state.most_promising(grid, &targets, draws);
        let Some(promise) = promise else {
            state.fit_at = 0.0;
            return record.fresh(grid, draws);
        };
        self.gain = Some(targets.gain(promise.improvement));
        let believed = targets.to_log(promise.mean);
        self.believed.insert(promise.point, believed);
        Some(promise.point)
    }

    fn expected_gain(&self) -> Option<f64> {
        self.gain
    }
}

impl AutoState {
    fn new(grid: &Grid) -> Self {
        Self {
            features: ForestFeatures::new(grid),
            process: GaussianProcess::new(grid),
            pool: SettingPool::default(),
            times: Forest::new(TREES),
            failures: Forest::new(FAILURE_TREES),
            fit_at: 0.0,
        }
    }

    /// Updates both models with what is known now.
    fn learn(
        &mut self,
        grid: &Grid,
        record: &SearchRecord,
        targets: &FitTargets,
        draws: &mut DrawRng,
    ) {
        let points = targets.points();
        if record.len() as f64 >= self.fit_at {
            self.fit_at = record.len() as f64 * FIT_GROWTH;
            let readings = FitReadings::choose(grid, targets, draws);
            self.process.kernel.fit(&readings, draws);
            self.process.set_rows(grid, targets.best_and_last(PROCESS_MAX));
            self.pool = SettingPool::draw(grid, record, draws);
        }
        // Settings keep their order; one that failed leaves a gap.
        let rows = &self.process.rows;
        let open: Vec<GridPoint> = points.iter().copied().filter(|p| !rows.contains(p)).collect();
        let kept: Vec<GridPoint> = rows.iter().copied().filter(|p| points.contains(p)).collect();
        if kept.len() < rows.len() {
            self.process.set_rows(grid, kept);
            self.pool.forget();
        }
        for point in open {
            self.process.push(grid, point);
        }
        self.pool.admit_neighbours(grid, record);
        self.pool.leave_out(record);
        self.times.learn(&self.features, grid, &targets.readings(), draws);
        if record.entries().iter().any(|entry| entry.failed) {
            let settled = record.entries().iter().filter(|e| !e.is_pending());
            let failures: Vec<(GridPoint, f64)> =
                settled.map(|entry| (entry.point, f64::from(u8::from(entry.failed)))).collect();
            self.failures.learn(&self.features, grid, &failures, draws);
        }
    }

    /// The setting of the pool with the largest expected improvement.
    fn most_promising(
        &mut self,
        grid: &Grid,
        targets: &FitTargets,
        draws: &mut DrawRng,
    ) -> Option<PredictedSetting> {
        let mut scored = self.pool.score(grid, &self.process, targets);
        // Before the cut: where few settings work, the most promising ones hardly ever do.
        for one in &mut scored {
            one.chance = self.chance(grid, one.point);
            one.improvement *= one.chance;
        }
        let scored = pool::foremost(scored, FOREST_SETTINGS);
        let mut best: Option<PredictedSetting> = None;
        for ScoredSetting { point, mean, variance, chance, .. } in scored {
            let x = self.features.of(grid, point);
            let (tree_mean, tree_variance) = self.times.predict(&x);
            let mean = (1.0 - TREES_WEIGHT) * mean + TREES_WEIGHT * tree_mean;
            let variance = (1.0 - TREES_WEIGHT) * variance + TREES_WEIGHT * tree_variance;
            let improvement = pool::expected_improvement(mean, variance.sqrt(), targets.best());
            // Ties are broken at random, else the first of the grid would win.
            let improvement = improvement * chance * (1.0 + 1e-9 * draws.next_f64());
            if best.as_ref().is_none_or(|best| improvement > best.improvement) {
                best = Some(PredictedSetting { point, mean, improvement });
            }
        }
        best
    }

    /// The probability that a setting works.
    fn chance(&self, grid: &Grid, point: GridPoint) -> f64 {
        if self.failures.is_empty() {
            return 1.0;
        }
        let x = self.features.of(grid, point);
        (1.0 - self.failures.predict(&x).0).max(CHANCE_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_counts_how_often_two_divides_many_sizes() {
        let twos = |values: &mut dyn Iterator<Item = u32>| {
            let values: Vec<String> = values.map(|value| value.to_string()).collect();
            super::twos(&Axis::new("WIDTH", &values, None).unwrap())
        };
        let widths = twos(&mut (1..=10).map(|n| n * 16)).unwrap();
        assert_eq!(widths, [0, 1, 0, 2, 0, 1, 0, 3, 0, 1]);
        assert_eq!(twos(&mut (0..12).map(|n| 1 << n)), None, "powers of two");
        assert_eq!(twos(&mut (1..=4)), None, "few");
        assert_eq!(twos(&mut (0..12)), None, "not sizes");
        assert_eq!(twos(&mut (0..12).map(|n| 2 * n + 1)), None, "all odd");
    }
}
