//! What a sweep ends with: the best setting that is right on the hidden cases too.

use super::Sweep;
use crate::error::Result;
use crate::tuner::journal::Line;
use crate::tuner::recorded::Failure;
use crate::tuner::workshop::{Tried, Workshop};
use karve_core::grid::Point;

/// Settings that may be wrong on a hidden case before the default stays.
const WRONG_MAX: usize = 3;

impl Sweep {
    /// The best setting that is also right on the hidden cases, and how many better ones are not.
    /// When too many were wrong it is the default.
    pub fn chosen(&mut self, workshop: &mut Workshop) -> Result<(Option<Point>, usize)> {
        let default = self.search.grid().default_point();
        for wrong in 0..WRONG_MAX {
            let best = self.record().best().map(|(point, _)| point);
            let Some(point) = best.filter(|point| Some(*point) != default) else {
                return Ok((best, wrong));
            };
            let config = self.search.grid().config(point);
            if workshop.is_right_on_hidden(&config)? {
                return Ok((best, wrong));
            }
            let tried = Tried::Failed {
                why: "it is wrong on a hidden case".to_owned(),
                failure: Failure::Wrong,
            };
            self.journal.append(&Line::of(&config, &tried, 0))?;
            self.take(point, &tried);
        }
        let stays = default.filter(|point| self.record().value(*point).is_some());
        Ok((stays, WRONG_MAX))
    }
}
