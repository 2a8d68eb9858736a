//! Which setting to measure again, so that luck does not choose the winner.
//!
//! One reading is not the truth: of many settings that are alike the one with the luckiest
//! reading looks best. So whatever looks best is measured again, and with it every setting that
//! could still be better, until they part or have been measured often enough. How much readings
//! of one setting differ is learnt from those that were measured more than once.

use super::{Entry, Record};
use crate::grid::Point;
use crate::stats;

/// Readings of one setting at most.
const READINGS_MAX: usize = 9;
/// Readings that the best must have.
const BEST_MIN: usize = 3;
/// Settings that race at once, at most.
const CONTENDERS_MAX: usize = 6;
/// A setting is out when it is worse by so many deviations of its mean.
const APART: f64 = 2.0;
/// How much readings differ before it is known, as a part of the value.
const NOISE_GUESS: f64 = 0.02;
/// A median absolute deviation times this is a deviation, for normal values.
const NORMAL: f64 = 1.4826;

/// A setting that may be the best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contender {
    /// The setting.
    pub point: Point,
    /// Its usual value.
    pub value: f64,
    /// How often it was read.
    pub readings: usize,
}

/// Who may still be the best.
#[derive(Clone, Debug, PartialEq)]
pub struct Race {
    noise: f64,
    contenders: Vec<Contender>,
}

impl Race {
    /// The race as a record leaves it.
    pub fn new(record: &Record) -> Self {
        let noise = noise_of(record);
        let contender = |entry: &Entry| {
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
        Self {
            noise,
            contenders: all,
        }
    }

    /// How much readings of one setting differ, as a part of the value.
    pub fn noise(&self) -> f64 {
        self.noise
    }

    /// Who may still be the best, the one that looks best first.
    pub fn contenders(&self) -> &[Contender] {
        &self.contenders
    }

    /// The setting that looks best, until it was read often enough not to be luck.
    pub fn confirm(&self) -> Option<Point> {
        let first = self.contenders.first()?;
        (first.readings < BEST_MIN).then_some(first.point)
    }

    /// The setting whose next reading decides most; nothing when enough was read.
    pub fn again(&self) -> Option<Point> {
        if let Some(point) = self.confirm() {
            return Some(point);
        }
        let first = self.contenders.first()?;
        if self.contenders.len() < 2 {
            return None;
        }
        let open = self.contenders.iter().filter(|c| c.readings < READINGS_MAX);
        let fewest = open.min_by_key(|contender| contender.readings)?;
        // Settings that are alike are all fine: they need not part.
        let differs = |one: &Contender| one.value / first.value > 1.0 + self.noise / 4.0;
        let settled = first.readings >= READINGS_MAX && !self.contenders.iter().any(differs);
        (!settled).then_some(fewest.point)
    }
}

/// How much readings of one setting differ, from all settings that were read more than once.
fn noise_of(record: &Record) -> f64 {
    let mut apart = Vec::new();
    for entry in record.entries().iter().filter(|e| e.readings.len() > 1) {
        let Some(middle) = entry.value() else {
            continue;
        };
        let count = entry.readings.len() as f64;
        // The median is nearer to its readings than the truth is.
        let widen = (count / (count - 1.0)).sqrt();
        let off = |reading: &f64| (reading / middle - 1.0).abs() * widen;
        apart.extend(entry.readings.iter().map(off));
    }
    match apart.len() < BEST_MIN {
        true => NOISE_GUESS,
        false => stats::median(&apart).map_or(NOISE_GUESS, |median| NORMAL * median),
    }
}
