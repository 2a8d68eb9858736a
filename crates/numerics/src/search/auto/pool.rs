//! The settings that the model considers, with the Gaussian process's prediction for each.
//!
//! For each setting the pool keeps the solved row of its correlation with the known settings; a new
//! reading adds one number to each row.

use super::super::SearchRecord;
use super::gaussian::{GaussianProcess, dot, ranks_of};
use super::targets::FitTargets;
use crate::grid::{Grid, GridPoint};
use crate::stats::DrawRng;
use std::collections::BTreeSet;
use std::f64::consts::{PI, SQRT_2};

/// Settings that are drawn.
const SIZE: usize = 4_096;
/// How many of them are mutations of one of the best, where valid.
const OFFSPRING: usize = 2_048;
/// The best that have offspring.
const PARENTS: usize = 16;
/// Maximum number of knobs that are mutated.
const CHANGES_MAX: usize = 4;
/// All neighbors of this many best settings are in the pool.
const NEIGHBOURED: usize = 8;
/// Minimum variance, as a share of the whole.
const VARIANCE_MIN: f64 = 1e-8;

#[derive(Debug, Default)]
pub(super) struct SettingPool {
    settings: Vec<PoolSetting>,
    inside: BTreeSet<GridPoint>,
    neighboured: BTreeSet<GridPoint>,
    /// How many settings of the record were already removed.
    left_out: usize,
}

#[derive(Debug)]
struct PoolSetting {
    point: GridPoint,
    row: Vec<f32>,
}

/// The prediction of the process for a setting.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScoredSetting {
    pub(super) point: GridPoint,
    pub(super) mean: f64,
    pub(super) variance: f64,
    pub(super) improvement: f64,
    /// The probability that it works.
    pub(super) chance: f64,
}

impl SettingPool {
    /// A pool of settings that were not proposed: all of them, or a random part.
    pub(super) fn draw(grid: &Grid, record: &SearchRecord, draws: &mut DrawRng) -> Self {
        let mut pool = Self { left_out: record.len(), ..Self::default() };
        if grid.len() <= SIZE {
            grid.points().for_each(|point| pool.admit(point, record));
            return pool;
        }
        for _ in 0..SIZE - OFFSPRING {
            if let Some(point) = record.fresh(grid, draws) {
                pool.admit(point, record);
            }
        }
        pool.admit_offspring(grid, record, draws);
        pool
    }

    /// Adds settings that differ from the best ones in a few knobs.
    fn admit_offspring(&mut self, grid: &Grid, record: &SearchRecord, draws: &mut DrawRng) {
        let mut parents = record.ranking();
        parents.truncate(PARENTS);
        for _ in 0..OFFSPRING {
            let Some((parent, _)) = parents.get(draws.below(parents.len())) else {
                return;
            };
            let mut ranks = grid.ranks(*parent).to_vec();
            for _ in 0..2 + draws.below(CHANGES_MAX - 1) {
                let knob = draws.below(ranks.len());
                ranks[knob] = draws.below(grid.axes()[knob].values().len()) as u16;
            }
            if let Some(point) = grid.find(&ranks) {
                self.admit(point, record);
            }
        }
    }

    fn admit(&mut self, point: GridPoint, record: &SearchRecord) {
        if !record.contains(point) && self.inside.insert(point) {
            let row = Vec::new();
            self.settings.push(PoolSetting { point, row });
        }
    }

    /// Adds the neighbors of the best settings.
    pub(super) fn admit_neighbours(&mut self, grid: &Grid, record: &SearchRecord) {
        for (best, _) in record.ranking().into_iter().take(NEIGHBOURED) {
            if self.neighboured.insert(best) {
                for point in grid.neighbours(best) {
                    self.admit(point, record);
                }
            }
        }
    }

    /// Removes the settings that were proposed.
    pub(super) fn leave_out(&mut self, record: &SearchRecord) {
        let new = record.entries().get(self.left_out..).unwrap_or_default();
        let asked = |point: GridPoint| new.iter().any(|entry| entry.point == point);
        self.settings.retain(|setting| !asked(setting.point));
        self.left_out = record.len();
    }

    /// Clears the rows, because the factor has changed.
    pub(super) fn forget(&mut self) {
        for setting in &mut self.settings {
            setting.row.clear();
        }
    }

    /// The prediction of the process for every setting.
    pub(super) fn score(
        &mut self,
        grid: &Grid,
        process: &GaussianProcess,
        targets: &FitTargets,
    ) -> Vec<ScoredSetting> {
        let GaussianProcess { kernel, factor, rows } = process;
        let known = ranks_of(grid, rows);
        let weights = factor.solve(&targets.of(rows));
        let count = weights.len().max(1) as f64;
        let whole = weights.iter().map(|w| w * w).sum::<f64>() / count;
        let single: Vec<f32> = weights.iter().map(|weight| *weight as f32).collect();
        let mut scored = Vec::with_capacity(self.settings.len());
        for PoolSetting { point, row } in &mut self.settings {
            let ranks = grid.ranks(*point);
            for at in row.len()..factor.len() {
                let solved = factor.single(at);
                let alike = kernel.alike(known[at], ranks);
                row.push((alike - dot(row, &solved[..at])) / solved[at]);
            }
            let mean = f64::from(dot(row, &single));
            let variance = whole * (1.0 - f64::from(dot(row, row))).max(VARIANCE_MIN);
            scored.push(ScoredSetting {
                point: *point,
                mean,
                variance,
                improvement: expected_improvement(mean, variance.sqrt(), targets.best()),
                chance: 1.0,
            });
        }
        scored
    }
}

/// The most promising ones.
pub(super) fn foremost(mut scored: Vec<ScoredSetting>, most: usize) -> Vec<ScoredSetting> {
    if scored.len() > most {
        scored.select_nth_unstable_by(most, |a, b| {
            let order = b.improvement.total_cmp(&a.improvement);
            order.then(a.point.cmp(&b.point))
        });
        scored.truncate(most);
    }
    scored.sort_by_key(|one| one.point);
    scored
}

/// The expected amount by which a normal value is below `best`, where values above count as zero.
pub(super) fn expected_improvement(mean: f64, deviation: f64, best: f64) -> f64 {
    let deviation = deviation.max(1e-9);
    let z = (best - mean) / deviation;
    let density = (-0.5 * z * z).exp() / (2.0 * PI).sqrt();
    deviation * (z * below(z) + density).max(0.0)
}

/// The probability that a standard normal value is below `z`, to about 1e-7.
fn below(z: f64) -> f64 {
    // The rational approximation of the complementary error function by Chebyshev fitting.
    const TERMS: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let x = z.abs() / SQRT_2;
    let t = 1.0 / (1.0 + 0.5 * x);
    let series = TERMS.iter().rev().fold(0.0, |sum, term| sum * t + term);
    let tail = 0.5 * t * (series - x * x).exp();
    if z < 0.0 { tail } else { 1.0 - tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_of_the_normal_distribution() {
        for (z, want) in [(0.0, 0.5), (1.0, 0.841_344_75), (-2.0, 0.022_750_13)] {
            assert!((below(z) - want).abs() < 1e-6, "{z}: {}", below(z));
        }
        assert!((expected_improvement(0.0, 1.0, 0.0) - 0.398_942).abs() < 1e-5);
        assert!(expected_improvement(50.0, 1.0, 0.0) < 1e-12);
        assert!((expected_improvement(-3.0, 1e-9, 0.0) - 3.0).abs() < 1e-6);
    }
}
