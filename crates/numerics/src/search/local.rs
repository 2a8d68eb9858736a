//! Local search: looks at the neighbors of a setting, moves to any that is better, and restarts
//! where none is.

use super::{SearchRecord, Strategy};
use crate::grid::{Grid, GridPoint};
use crate::stats::DrawRng;

/// Restarts after this many settings without an improvement.
const PATIENCE: usize = 40;

#[derive(Debug)]
pub(super) struct LocalSearch {
    draws: DrawRng,
    at: Option<GridPoint>,
    /// Neighbors that were not tried yet.
    open: Vec<GridPoint>,
    /// Settings proposed since the last step.
    requested: Vec<GridPoint>,
}

impl LocalSearch {
    pub(super) fn new(draws: DrawRng) -> Self {
        Self { draws, at: None, open: Vec::new(), requested: Vec::new() }
    }

    fn go_to(&mut self, point: GridPoint, grid: &Grid) {
        self.at = Some(point);
        self.requested.clear();
        self.open = grid.neighbours(point);
        for last in (1..self.open.len()).rev() {
            self.open.swap(last, self.draws.below(last + 1));
        }
    }
}

impl Strategy for LocalSearch {
    fn ask(&mut self, grid: &Grid, record: &SearchRecord) -> Option<GridPoint> {
        if self.at.is_none() {
            let best = record.best().map(|(point, _)| point);
            let start = best.or_else(|| record.fresh(grid, &mut self.draws))?;
            self.go_to(start, grid);
        }
        let here = self.at.and_then(|at| record.value(at));
        let better = self.requested.iter().filter_map(|point| {
            let value = record.value(*point)?;
            here.is_none_or(|here| value < here).then_some((*point, value))
        });
        if let Some((point, _)) = better.min_by(|a, b| a.1.total_cmp(&b.1)) {
            self.go_to(point, grid);
        }
        if self.requested.len() < PATIENCE {
            while let Some(next) = self.open.pop() {
                if !record.contains(next) {
                    self.requested.push(next);
                    return Some(next);
                }
            }
        }
        let start = record.fresh(grid, &mut self.draws)?;
        self.go_to(start, grid);
        Some(start)
    }
}
