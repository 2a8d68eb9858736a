//! Which setting to measure again, so that luck does not choose the winner.
//!
//! One reading is not the truth: of many equal settings the one with the luckiest reading looks
//! best. So the one that looks best is measured again, and with it every setting that could still
//! be better, until they separate or have been measured often enough. The noise of readings is
//! learned from settings that were measured more than once.

use super::{SearchRecord, TriedSetting};
use crate::grid::GridPoint;
use crate::stats;

/// Maximum number of readings of one setting.
const READINGS_MAX: usize = 9;
/// Minimum number of readings of the best.
const BEST_MIN: usize = 3;
/// Maximum number of settings that race at once.
const CONTENDERS_MAX: usize = 6;
/// A setting is out when it is worse by this many deviations of its mean.
const APART: f64 = 2.0;
/// The assumed noise of readings before it is known, relative to the value.
const NOISE_GUESS: f64 = 0.02;
/// A median absolute deviation times this is a deviation, for normal values.
const NORMAL: f64 = 1.4826;

/// A setting that may be the best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contender {
    /// The setting.
    pub point: GridPoint,
    /// Its median value.
    pub value: f64,
    /// Its number of readings.
    pub readings: usize,
}

/// The settings that may still be the best.
#[derive(Clone, Debug, PartialEq)]
pub struct Race {
    noise: f64,
    contenders: Vec<Contender>,
}

impl Race {
    /// The race, from a record.
    pub fn new(record: &SearchRecord) -> Self {
        let noise = noise_of(record);
        let contender = |entry: &TriedSetting| {
            Some(Contender {
                point: entry.point,
                value: entry.value()?,
                readings: entry.readings.len(),
            })
        };
        let own = record.entries().iter().filter(|e| !record.is_again(e));
        let mut all: Vec<Contender> = own.filter_map(contender).collect();
        all.sort_by(|a, b| a.value.total_cmp(&b.value).then(a.point.cmp(&b.point)));
        let error = |one: &Contender| noise * one.value / (one.readings as f64).sqrt();
        let first = all.first().copied();
        let near = |one: &Contender| {
            first.is_some_and(|first| {
                one.value - first.value <= APART * error(one).hypot(error(&first))
            })
        };
        all.retain(near);
        all.truncate(CONTENDERS_MAX);
        Self { noise, contenders: all }
    }

    /// The noise of readings of one setting, relative to the value.
    pub fn noise(&self) -> f64 {
        self.noise
    }

    /// The settings that may still be the best, the one that looks best first.
    pub fn contenders(&self) -> &[Contender] {
        &self.contenders
    }

    /// The setting that looks best, until it has enough readings to rule out luck.
    pub fn confirm(&self) -> Option<GridPoint> {
        let first = self.contenders.first()?;
        (first.readings < BEST_MIN).then_some(first.point)
    }

    /// The setting whose next reading decides most; `None` when there are enough readings.
    pub fn again(&self) -> Option<GridPoint> {
        if let Some(point) = self.confirm() {
            return Some(point);
        }
        let first = self.contenders.first()?;
        if self.contenders.len() < 2 {
            return None;
        }
        let open = self.contenders.iter().filter(|c| c.readings < READINGS_MAX);
        let fewest = open.min_by_key(|contender| contender.readings)?;
        // Equal settings are all fine: they need not separate.
        let differs = |one: &Contender| one.value / first.value > 1.0 + self.noise / 4.0;
        let settled = first.readings >= READINGS_MAX && !self.contenders.iter().any(differs);
        (!settled).then_some(fewest.point)
    }
}

/// The noise of readings, from all settings that were read more than once.
fn noise_of(record: &SearchRecord) -> f64 {
    let mut apart = Vec::new();
    for entry in record.entries().iter().filter(|e| e.readings.len() > 1) {
        let Some(middle) = entry.value() else {
            continue;
        };
        let count = entry.readings.len() as f64;
        // The median is closer to its readings than the true value is.
        let widen = (count / (count - 1.0)).sqrt();
        let off = |reading: &f64| (reading / middle - 1.0).abs() * widen;
        apart.extend(entry.readings.iter().map(off));
    }
    if apart.len() < BEST_MIN {
        NOISE_GUESS
    } else {
        stats::median(&apart).map_or(NOISE_GUESS, |median| NORMAL * median)
    }
}
