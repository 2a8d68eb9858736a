//! Search over knobs: which setting to try next, given the earlier results.
//!
//! Two searchers live here. `moves` is the built-in strategy of a campaign: one knob at a time,
//! each a hypothesis that a duel judges. The others are the tuner's: they propose a setting and
//! get its result, as often as the budget allows, and work with whole settings. All are pure: the
//! same seed and the same results give the same proposals.

mod annealing;
mod auto;
pub mod budget;
mod genetic;
mod importance;
mod local;
mod moves;
mod portfolio;
mod race;
mod record;

pub use importance::{Importance, importance};
pub use moves::{KnobTrial, ProposedMove, TrialOutcome, propose};
pub use portfolio::{Portfolio, PortfolioGoal, portfolio};
pub use race::{Contender, Race};
pub use record::{SearchRecord, TriedSetting};

use crate::grid::{Grid, GridPoint};
use crate::stats::DrawRng;
use std::sync::Arc;

/// How the tuner chooses settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StrategyKind {
    /// A model of the times, made of a Gaussian process and trees.
    #[default]
    Auto,
    /// Any setting, with equal probability.
    Random,
    /// The best neighbor, and a restart where there is none.
    Local,
    /// Neighbors, including worse ones, less and less often.
    Annealing,
    /// Crossover and mutation of the best.
    Genetic,
}

impl StrategyKind {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Auto, Self::Random, Self::Local, Self::Annealing, Self::Genetic];

    /// Its name, as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Random => "random",
            Self::Local => "local",
            Self::Annealing => "annealing",
            Self::Genetic => "genetic",
        }
    }

    /// The strategy with that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    fn strategy(self, seed: u64) -> Box<dyn Strategy> {
        let draws = DrawRng::new(seed ^ 0x6b61_7276_6500);
        match self {
            Self::Auto => Box::new(auto::AutoSearch::new(draws)),
            Self::Random => Box::new(RandomSearch { draws }),
            Self::Local => Box::new(local::LocalSearch::new(draws)),
            Self::Annealing => Box::new(annealing::AnnealingSearch::new(draws)),
            Self::Genetic => Box::new(genetic::GeneticSearch::new(draws)),
        }
    }
}

/// The result of one trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TrialResult {
    /// The time it took, or any other value where less is better.
    Value(f64),
    /// It did not build, was wrong, ran out of a resource or exceeded a limit.
    Failed,
}

/// Proposes settings that were not proposed before.
trait Strategy: std::fmt::Debug + Send {
    /// The next setting, or `None` if there are no more. May be called again before the last
    /// results have arrived.
    fn ask(&mut self, grid: &Grid, record: &SearchRecord) -> Option<GridPoint>;

    /// By which factor the next setting is expected to beat the best, minus one.
    fn expected_gain(&self) -> Option<f64> {
        None
    }
}

/// A search with an ask-and-tell interface.
#[derive(Debug)]
pub struct Search {
    grid: Arc<Grid>,
    record: SearchRecord,
    strategy: Box<dyn Strategy>,
    /// Settings to try first: the default, and the best from elsewhere.
    first: Vec<GridPoint>,
}

impl Search {
    /// A search of a grid. The default setting is proposed first, then the given ones.
    pub fn new(grid: Arc<Grid>, kind: StrategyKind, seed: u64, given: &[GridPoint]) -> Self {
        let mut first: Vec<GridPoint> = grid.default_point().into_iter().collect();
        first.extend(given);
        first.reverse();
        Self { grid, record: SearchRecord::default(), strategy: kind.strategy(seed), first }
    }

    /// The grid that is searched.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// The same, shared.
    pub fn shared_grid(&self) -> &Arc<Grid> {
        &self.grid
    }

    /// All proposals and results so far.
    pub fn record(&self) -> &SearchRecord {
        &self.record
    }

    /// The next setting to try; `None` when all were tried.
    pub fn ask(&mut self) -> Option<GridPoint> {
        while let Some(point) = self.first.pop() {
            if self.record.expect(point) {
                return Some(point);
            }
        }
        if self.record.len() >= self.grid.len() {
            return None;
        }
        let asked = self.strategy.ask(&self.grid, &self.record);
        let point = asked.filter(|point| !self.record.contains(*point));
        // A strategy without further ideas does not end the search.
        let point = point.or_else(|| self.record.fresh(&self.grid, &mut DrawRng::new(1)))?;
        self.record.expect(point);
        Some(point)
    }

    /// Records the result of a setting, whether it was proposed or not.
    pub fn add_result(&mut self, point: GridPoint, reading: TrialResult) {
        self.record.add_reading(point, reading);
    }

    /// Records that the builds of two settings are identical.
    pub fn add_same(&mut self, a: GridPoint, b: GridPoint) {
        self.record.same(a, b);
    }

    /// By which factor the next setting is expected to beat the best, minus one.
    pub fn expected_gain(&self) -> Option<f64> {
        self.strategy.expected_gain()
    }
}

/// Any setting, with equal probability.
#[derive(Debug)]
struct RandomSearch {
    draws: DrawRng,
}

impl Strategy for RandomSearch {
    fn ask(&mut self, grid: &Grid, record: &SearchRecord) -> Option<GridPoint> {
        record.fresh(grid, &mut self.draws)
    }
}

#[cfg(test)]
mod tests;
