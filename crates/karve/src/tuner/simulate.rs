//! Simulates a search on a measured space: what it would have found after each setting.

use super::recorded::RecordedSpace;
use karve_numerics::grid::GridPoint;
use karve_numerics::search::{Race, Search, StrategyKind, TrialResult};
use karve_numerics::stats::DrawRng;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The noise that is added to a measured space.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SimulatedNoise {
    /// How much readings of one setting differ, as a fraction of the time; one reading in ten is
    /// an outlier of up to ten times as much, always slower.
    pub noise: f64,
    /// The fraction of the settings that fail although they did not when they were measured.
    pub failures: f64,
    /// The fraction of the settings that fit into the device, as few do on a GPU: those whose
    /// values need the least of it, each knob with a weight of its own. 0 if all do.
    pub fitting: f64,
}

/// How a simulated search went.
#[derive(Clone, Debug)]
pub struct SimulationResult {
    /// The optimum divided by the true time of the setting that the search considers best, after
    /// each distinct setting; 0 as long as nothing worked.
    pub fractions: Vec<f64>,
    /// The total number of readings, including repeated ones.
    pub readings: usize,
    /// The time that the search itself took.
    pub thinking: Duration,
}

/// Simulates a search on a space.
pub fn play(
    space: &RecordedSpace,
    kind: StrategyKind,
    seed: u64,
    budget: usize,
    trouble: SimulatedNoise,
) -> SimulationResult {
    let mut search = Search::new(Arc::clone(&space.grid), kind, seed, &[]);
    let mut weather = NoiseSimulator::new(space, trouble, seed);
    let mut played = SimulationResult {
        fractions: Vec::with_capacity(budget),
        readings: 0,
        thinking: Duration::ZERO,
    };
    let optimum = weather.optimum(space);
    let true_part = |point: GridPoint| match space.read(point) {
        TrialResult::Value(value) => optimum / value,
        TrialResult::Failed => 0.0,
    };
    while played.fractions.len() < budget {
        let started = Instant::now();
        let asked = search.ask();
        played.thinking += started.elapsed();
        let Some(point) = asked else {
            let last = played.fractions.last().copied().unwrap_or_default();
            played.fractions.resize(budget, last);
            break;
        };
        search.add_result(point, weather.read(space, point));
        played.readings += 1;
        while let Some(again) = contested(&search, trouble) {
            search.add_result(again, weather.read(space, again));
            played.readings += 1;
        }
        let best = search.record().best();
        played.fractions.push(best.map_or(0.0, |(point, _)| true_part(point)));
    }
    played
}

/// The setting to measure again before the next one, if readings differ.
fn contested(search: &Search, trouble: SimulatedNoise) -> Option<GridPoint> {
    if trouble.noise <= 0.0 {
        return None;
    }
    Race::new(search.record()).again()
}

/// Makes the readings of a space as noisy as those of a real machine.
struct NoiseSimulator {
    trouble: SimulatedNoise,
    draws: DrawRng,
    fails: Vec<bool>,
}

impl NoiseSimulator {
    fn new(space: &RecordedSpace, trouble: SimulatedNoise, seed: u64) -> Self {
        let mut draws = DrawRng::new(seed.wrapping_add(77));
        let mut fails = if trouble.failures > 0.0 {
            (0..space.grid.len()).map(|_| draws.next_f64() < trouble.failures).collect()
        } else {
            Vec::new()
        };
        if trouble.fitting > 0.0 {
            let needs = needs(space, &mut draws);
            let mut sorted = needs.clone();
            sorted.sort_by(f64::total_cmp);
            let most =
                sorted[((trouble.fitting * sorted.len() as f64) as usize).min(sorted.len() - 1)];
            fails = needs.iter().map(|need| *need > most).collect();
        }
        Self { trouble, draws, fails }
    }

    /// The best of the settings that do not fail here.
    fn optimum(&self, space: &RecordedSpace) -> f64 {
        if self.trouble.fitting <= 0.0 {
            return space.optimum();
        }
        let fits = |point: &GridPoint| self.fails.get(point.0 as usize) == Some(&false);
        let values = space.grid.points().filter(fits).filter_map(|point| match space.read(point) {
            TrialResult::Value(value) => Some(value),
            TrialResult::Failed => None,
        });
        values.fold(f64::INFINITY, f64::min)
    }

    fn read(&mut self, space: &RecordedSpace, point: GridPoint) -> TrialResult {
        if self.fails.get(point.0 as usize) == Some(&true) {
            return TrialResult::Failed;
        }
        let TrialResult::Value(value) = space.read(point) else {
            return TrialResult::Failed;
        };
        if self.trouble.noise <= 0.0 {
            return TrialResult::Value(value);
        }
        // A sum of three uniform values is close enough to a normal one.
        let wave = (0..3).map(|_| 2.0 * self.draws.next_f64() - 1.0).sum::<f64>();
        let outlier = if self.draws.next_f64() < 0.1 { 10.0 * self.draws.next_f64() } else { 0.0 };
        TrialResult::Value(value * (1.0 + self.trouble.noise * (wave + outlier)).max(0.1))
    }
}

/// How much of a device every setting needs.
fn needs(space: &RecordedSpace, draws: &mut DrawRng) -> Vec<f64> {
    let grid = &space.grid;
    let weights: Vec<f64> = grid.axes().iter().map(|_| draws.next_f64()).collect();
    let need = |point: GridPoint| {
        let knobs = grid.ranks(point).iter().zip(grid.axes()).zip(&weights);
        let of_knob = |((rank, axis), weight): ((&u16, &karve_numerics::grid::Axis), &f64)| {
            weight * f64::from(*rank) / axis.values().len().saturating_sub(1).max(1) as f64
        };
        knobs.map(of_knob).sum()
    };
    grid.points().map(need).collect()
}
