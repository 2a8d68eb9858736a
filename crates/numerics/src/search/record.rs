//! The proposals of a search and their results.

use super::TrialResult;
use crate::grid::{Grid, GridPoint};
use crate::stats::{self, DrawRng};
use std::collections::BTreeMap;

/// Draws before all points are searched for a new one.
const DRAWS_MAX: usize = 64;

/// One setting and its results.
#[derive(Clone, Debug, PartialEq)]
pub struct TriedSetting {
    /// The setting.
    pub point: GridPoint,
    /// Its values, in order of arrival.
    pub readings: Vec<f64>,
    /// Whether a trial failed; then its values do not count.
    pub failed: bool,
    /// The earlier setting with an identical build, if there is one.
    pub same_as: Option<GridPoint>,
}

impl TriedSetting {
    /// Its usual value: the median of its readings, `None` if it failed or has none yet.
    pub fn value(&self) -> Option<f64> {
        if self.failed { None } else { stats::median(&self.readings) }
    }

    /// Whether it was proposed and has no result yet.
    pub fn is_pending(&self) -> bool {
        !self.failed && self.readings.is_empty()
    }
}

/// All settings of a search, in the order in which they were proposed.
#[derive(Clone, Debug, Default)]
pub struct SearchRecord {
    entries: Vec<TriedSetting>,
    places: BTreeMap<GridPoint, usize>,
}

impl SearchRecord {
    /// The settings, in the order in which they were proposed.
    pub fn entries(&self) -> &[TriedSetting] {
        &self.entries
    }

    /// How many settings there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing was proposed yet.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether a setting was proposed.
    pub fn contains(&self, point: GridPoint) -> bool {
        self.places.contains_key(&point)
    }

    /// The results of a setting.
    pub fn entry(&self, point: GridPoint) -> Option<&TriedSetting> {
        self.entries.get(*self.places.get(&point)?)
    }

    /// The value of a setting.
    pub fn value(&self, point: GridPoint) -> Option<f64> {
        self.entry(point).and_then(TriedSetting::value)
    }

    /// Whether it has the same build as another setting: its readings say nothing new.
    pub fn is_again(&self, entry: &TriedSetting) -> bool {
        entry.same_as.is_some_and(|first| self.value(first).is_some())
    }

    /// The settings that have a value of their own.
    fn valued(&self) -> impl Iterator<Item = (GridPoint, f64)> + '_ {
        let own = self.entries.iter().filter(|entry| !self.is_again(entry));
        own.filter_map(|entry| Some((entry.point, entry.value()?)))
    }

    /// The setting with the lowest value, as far as is known.
    pub fn best(&self) -> Option<(GridPoint, f64)> {
        self.valued().min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The settings that have a value, the best first.
    pub fn ranking(&self) -> Vec<(GridPoint, f64)> {
        let mut all: Vec<(GridPoint, f64)> = self.valued().collect();
        all.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
        all
    }

    /// A setting that was not proposed yet.
    pub(super) fn fresh(&self, grid: &Grid, draws: &mut DrawRng) -> Option<GridPoint> {
        let size = grid.len();
        for _ in 0..DRAWS_MAX {
            let point = GridPoint(u32::try_from(draws.below(size)).ok()?);
            if !self.contains(point) {
                return Some(point);
            }
        }
        let start = draws.below(size);
        let turned = (start..size).chain(0..start);
        let mut points = turned.filter_map(|at| u32::try_from(at).ok()).map(GridPoint);
        points.find(|point| !self.contains(*point))
    }

    /// Notes that a setting was proposed; false if it was before.
    pub(super) fn expect(&mut self, point: GridPoint) -> bool {
        if self.contains(point) {
            return false;
        }
        self.places.insert(point, self.entries.len());
        self.entries.push(TriedSetting {
            point,
            readings: Vec::new(),
            failed: false,
            same_as: None,
        });
        true
    }

    /// Records that the builds of two settings are identical: the one that was proposed later
    /// becomes a duplicate of the other.
    pub(super) fn same(&mut self, a: GridPoint, b: GridPoint) {
        let (Some(&at_a), Some(&at_b)) = (self.places.get(&a), self.places.get(&b)) else {
            return;
        };
        let (first, later) = if at_a <= at_b { (a, at_b) } else { (b, at_a) };
        if let Some(entry) = self.entries.get_mut(later).filter(|e| e.point != first) {
            entry.same_as = Some(first);
        }
    }

    /// Records the result of a setting. Anything but a positive number is a failure.
    pub(super) fn add_reading(&mut self, point: GridPoint, reading: TrialResult) {
        self.expect(point);
        let place = self.places.get(&point).copied();
        let Some(entry) = place.and_then(|place| self.entries.get_mut(place)) else {
            return;
        };
        match reading {
            TrialResult::Value(value) if value.is_finite() && value > 0.0 => {
                entry.readings.push(value);
            }
            TrialResult::Value(_) | TrialResult::Failed => entry.failed = true,
        }
    }
}
