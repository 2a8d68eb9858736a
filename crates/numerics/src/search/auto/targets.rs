//! What the models learn: the logarithms of the values, with the slow end compressed.
//!
//! How slow a slow setting is says little about where the fast ones are, and a few at a hundred
//! times the median would dominate a model. Beyond twice the distance from the best to the median,
//! differences count a tenth.

use super::super::{SearchRecord, TriedSetting};
use crate::grid::GridPoint;
use crate::stats;
use std::collections::BTreeMap;

/// Values up to this many distances from the best to the median count in full.
const PLAIN: f64 = 2.0;
/// How much the rest counts.
const SLOW_PART: f64 = 0.1;

/// The settings that did not fail, with mean 0 and deviation 1.
#[derive(Debug)]
pub(super) struct FitTargets {
    points: Vec<GridPoint>,
    values: Vec<f64>,
    mean: f64,
    deviation: f64,
    best: f64,
}

impl FitTargets {
    /// The targets of a record. A setting without a result has its predicted value.
    pub(super) fn new(record: &SearchRecord, believed: &BTreeMap<GridPoint, f64>) -> Option<Self> {
        let known: Vec<f64> = record.entries().iter().filter_map(TriedSetting::value).collect();
        let known: Vec<f64> = known.iter().map(|value| value.ln()).collect();
        let median = stats::median(&known)?;
        let least = known.iter().copied().fold(f64::INFINITY, f64::min);
        let plain = least + PLAIN * (median - least);
        let drawn_in = |log: f64| if log > plain { plain + SLOW_PART * (log - plain) } else { log };
        let mut points = Vec::with_capacity(record.len());
        let mut values = Vec::with_capacity(record.len());
        for entry in record.entries().iter().filter(|entry| !entry.failed) {
            let log = entry.value().map(f64::ln);
            let believed = || believed.get(&entry.point).copied();
            points.push(entry.point);
            // A prediction may not be better than the best reading.
            values.push(match log {
                Some(log) => drawn_in(log),
                None => drawn_in(believed().unwrap_or(median).max(least)),
            });
        }
        let (mean, deviation) = stats::mean_and_deviation(&values)?;
        let deviation = deviation.max(1e-9);
        for value in &mut values {
            *value = (*value - mean) / deviation;
        }
        Some(Self {
            points,
            best: values.iter().copied().fold(f64::INFINITY, f64::min),
            values,
            mean,
            deviation,
        })
    }

    pub(super) fn points(&self) -> &[GridPoint] {
        &self.points
    }

    pub(super) fn values(&self) -> &[f64] {
        &self.values
    }

    /// The settings with their values.
    pub(super) fn readings(&self) -> Vec<(GridPoint, f64)> {
        self.points.iter().copied().zip(self.values.iter().copied()).collect()
    }

    /// The least of them.
    pub(super) fn best(&self) -> f64 {
        self.best
    }

    /// The values of some of the settings.
    pub(super) fn of(&self, points: &[GridPoint]) -> Vec<f64> {
        let places: BTreeMap<GridPoint, f64> = self.readings().into_iter().collect();
        let value = |point: &GridPoint| places.get(point).copied().unwrap_or(0.0);
        points.iter().map(value).collect()
    }

    /// Settings for the process: all, or else the best half and the latest half, in order.
    pub(super) fn best_and_last(&self, most: usize) -> Vec<GridPoint> {
        let count = self.points.len();
        if count <= most {
            return self.points.clone();
        }
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by(|a, b| self.values[*a].total_cmp(&self.values[*b]));
        let mut chosen = vec![false; count];
        for place in order.iter().take(most / 2) {
            chosen[*place] = true;
        }
        let mut left = most - most / 2;
        for place in (0..count).rev() {
            if left > 0 && !chosen[place] {
                chosen[place] = true;
                left -= 1;
            }
        }
        let kept = chosen.iter().zip(&self.points).filter(|(chosen, _)| **chosen);
        kept.map(|(_, point)| *point).collect()
    }

    /// A target as the logarithm of a value.
    pub(super) fn to_log(&self, target: f64) -> f64 {
        self.mean + self.deviation * target
    }

    /// By which factor a value improves with such an improvement of the target, minus one.
    pub(super) fn gain(&self, improvement: f64) -> f64 {
        (improvement * self.deviation).exp() - 1.0
    }
}
