//! Genetic search: crosses two of the best settings and mutates a few knobs.

use super::{SearchRecord, Strategy};
use crate::grid::{Grid, GridPoint};
use crate::stats::DrawRng;

/// Settings that have offspring.
const PARENTS: usize = 20;
/// Settings that are drawn before the first crossover.
const START: usize = 20;
/// Attempts to get a valid new setting by crossover.
const TRIES: usize = 100;

#[derive(Debug)]
pub(super) struct GeneticSearch {
    draws: DrawRng,
}

impl GeneticSearch {
    pub(super) fn new(draws: DrawRng) -> Self {
        Self { draws }
    }

    /// One of the best, the better ones more often.
    fn parent(&mut self, best: &[(GridPoint, f64)]) -> Option<GridPoint> {
        let (a, b) = (self.draws.below(best.len()), self.draws.below(best.len()));
        best.get(a.min(b)).map(|(point, _)| *point)
    }

    fn child(&mut self, grid: &Grid, (a, b): (GridPoint, GridPoint)) -> Vec<u16> {
        let width = grid.axes().len();
        let mut child = Vec::with_capacity(width);
        for (axis, (x, y)) in grid.axes().iter().zip(grid.ranks(a).iter().zip(grid.ranks(b))) {
            let inherited = if self.draws.next_f64() < 0.5 { *x } else { *y };
            let changes = self.draws.next_f64() * (width as f64) < 1.0;
            child.push(if changes {
                self.draws.below(axis.values().len()) as u16
            } else {
                inherited
            });
        }
        child
    }
}

impl Strategy for GeneticSearch {
    fn ask(&mut self, grid: &Grid, record: &SearchRecord) -> Option<GridPoint> {
        let mut best = record.ranking();
        if record.len() < START || best.len() < 2 {
            return record.fresh(grid, &mut self.draws);
        }
        best.truncate(PARENTS);
        for _ in 0..TRIES {
            let (a, b) = (self.parent(&best)?, self.parent(&best)?);
            let child = self.child(grid, (a, b));
            let found = grid.find(&child).filter(|point| !record.contains(*point));
            if found.is_some() {
                return found;
            }
        }
        record.fresh(grid, &mut self.draws)
    }
}
