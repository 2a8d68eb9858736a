//! Simulated annealing: moves to neighbors, including worse ones, less and less often.

use super::{SearchRecord, Strategy};
use crate::grid::{Grid, GridPoint};
use crate::stats::DrawRng;

/// A setting that is worse by this factor, minus one, is accepted with probability 1/e at first.
const HEAT: f64 = 0.5;
/// The temperature halves after this many settings.
const HALF_LIFE: f64 = 30.0;
/// Returns to the best after this many settings without an improvement.
const PATIENCE: usize = 25;

#[derive(Debug)]
pub(super) struct AnnealingSearch {
    draws: DrawRng,
    at: Option<GridPoint>,
    requested: Vec<GridPoint>,
    best: f64,
    since_best: usize,
}

impl AnnealingSearch {
    pub(super) fn new(draws: DrawRng) -> Self {
        Self { draws, at: None, requested: Vec::new(), best: f64::INFINITY, since_best: 0 }
    }

    /// Moves to a proposed setting if it is good enough.
    fn settle(&mut self, record: &SearchRecord) {
        let heat = HEAT * (-(record.len() as f64) / HALF_LIFE).exp2();
        let known = |point: &GridPoint| record.entry(*point).is_some_and(|e| !e.is_pending());
        let (came, open): (Vec<GridPoint>, Vec<GridPoint>) =
            self.requested.iter().partition(|p| known(p));
        self.requested = open;
        for point in came {
            let Some(value) = record.value(point) else {
                self.since_best += 1;
                continue;
            };
            let here = self.at.and_then(|at| record.value(at));
            let worse = here.map_or(0.0, |here| value / here - 1.0);
            if worse <= 0.0 || self.draws.next_f64() < (-worse / heat.max(1e-9)).exp() {
                self.at = Some(point);
            }
            self.since_best += 1;
            if value < self.best {
                self.best = value;
                self.since_best = 0;
            }
        }
        if self.at.is_none() || self.since_best > PATIENCE {
            self.at = record.best().map(|(point, _)| point);
            self.since_best = 0;
        }
    }
}

impl Strategy for AnnealingSearch {
    fn ask(&mut self, grid: &Grid, record: &SearchRecord) -> Option<GridPoint> {
        self.settle(record);
        let open: Vec<GridPoint> = match self.at {
            Some(at) => grid.neighbours(at),
            None => Vec::new(),
        };
        let open: Vec<GridPoint> = open.into_iter().filter(|p| !record.contains(*p)).collect();
        let next = open.get(self.draws.below(open.len())).copied();
        let next = next.or_else(|| {
            let fresh = record.fresh(grid, &mut self.draws);
            self.at = fresh;
            fresh
        })?;
        self.requested.push(next);
        Some(next)
    }
}
