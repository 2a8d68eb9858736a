//! What a duel on this host could have shown: simulated duels on readings of equal kernels.
//!
//! A simulated duel draws residuals in runs of neighbors, so that their autocorrelation is kept;
//! each run gets its own sign, because a private coin decides which side runs first. Shifted by
//! the log of a true ratio, they are judged by the rule of a duel. Where the rule asks for the
//! Hodges–Lehmann estimate, the median stands in: it only needs counting.

use crate::duel::DuelRule;
use karve_numerics::stats::{DrawRng, ln_evidence};
use serde::{Deserialize, Serialize};

/// Simulated duels for one ratio.
const SIMULATIONS: u32 = 200;
/// Neighbors that are drawn together.
const RUN: usize = 5;
/// Fewer residuals say too little about a host.
pub const RESIDUALS_MIN: usize = 8;
/// The share of duels that must end well for an effect to count as detectable.
pub const POWER_WANTED: f64 = 0.8;

/// The ratios that `smallest_detectable` tries, in hundredths of a percent.
const GRID: [u32; 28] = [
    25, 50, 75, 100, 125, 150, 175, 200, 225, 250, 300, 350, 400, 450, 500, 600, 700, 800, 1_000,
    1_250, 1_500, 2_000, 2_500, 3_000, 4_000, 5_000, 7_500, 10_000,
];

/// How often, and how soon, a true speedup would be reported as faster.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DuelPower {
    /// The true speedup.
    pub ratio: f64,
    /// The share of duels that end with "faster".
    pub share: f64,
    /// Blocks that a duel takes on average, whatever its outcome.
    pub blocks: f64,
}

/// The log ratios minus their median: what they would be for equal kernels.
pub fn residuals(ln_speedups: &[f64]) -> Vec<f64> {
    let middle = karve_numerics::stats::median(ln_speedups).unwrap_or_default();
    ln_speedups.iter().map(|value| value - middle).collect()
}

/// The power of a rule at a true `ratio`; `None` with too few residuals.
pub fn power(residuals: &[f64], rule: &DuelRule, ratio: f64, seed: u64) -> Option<DuelPower> {
    Some(DuelSimulation::new(residuals, rule)?.power(ratio, seed))
}

/// The smallest speedup of a fixed grid that the rule would detect four times out of five.
///
/// `None` with too few residuals, or if not even a 2x speedup would be detected.
pub fn smallest_detectable(residuals: &[f64], rule: &DuelRule, seed: u64) -> Option<f64> {
    let simulation = DuelSimulation::new(residuals, rule)?;
    let ratio = |step: &u32| 1.0 + f64::from(*step) / 10_000.0;
    // The power grows with the ratio, so bisection finds the step in five simulations.
    let shows = |step: &u32| simulation.power(ratio(step), seed).share >= POWER_WANTED;
    let place = GRID.partition_point(|step| !shows(step));
    GRID.get(place).map(ratio)
}

/// What every simulated duel of one host and one rule has in common.
struct DuelSimulation<'a> {
    residuals: &'a [f64],
    rule: &'a DuelRule,
    /// For each number of blocks the fewest successes that reach the keep's evidence.
    keep: Vec<u32>,
    /// The same for a drop.
    drop: Vec<u32>,
}

/// How a simulated duel ended.
struct SimulatedDuel {
    faster: bool,
    blocks: u32,
}

impl<'a> DuelSimulation<'a> {
    fn new(residuals: &'a [f64], rule: &'a DuelRule) -> Option<Self> {
        let usable = residuals.len() >= RESIDUALS_MIN && residuals.iter().all(|v| v.is_finite());
        usable.then(|| Self {
            residuals,
            rule,
            keep: fewest_successes(rule.keep_evidence, rule.blocks_max),
            drop: fewest_successes(rule.guard_evidence, rule.blocks_max),
        })
    }

    fn power(&self, ratio: f64, seed: u64) -> DuelPower {
        // The same draws for every ratio: only the ratio differs.
        let mut draws = DrawRng::new(seed);
        let (mut faster, mut blocks) = (0_u32, 0_u64);
        for _ in 0..SIMULATIONS {
            let ended = self.duel(ratio.ln(), &mut DrawRng::new(draws.next_u64()));
            faster += u32::from(ended.faster);
            blocks += u64::from(ended.blocks);
        }
        DuelPower {
            ratio,
            share: f64::from(faster) / f64::from(SIMULATIONS),
            blocks: blocks as f64 / f64::from(SIMULATIONS),
        }
    }

    fn duel(&self, shift: f64, draws: &mut DrawRng) -> SimulatedDuel {
        let rule = self.rule;
        let (mut above_null, mut below_effect, mut at_effect) = (0_u32, 0_u32, 0_u32);
        let (mut proven, mut disproven) = (false, false);
        let (mut place, mut sign) = (0, 1.0);
        for n in 1..=rule.blocks_max {
            if (n as usize - 1).is_multiple_of(RUN) {
                place = draws.below(self.residuals.len());
                sign = if draws.next_f64() < 0.5 { 1.0 } else { -1.0 };
            }
            let residual = self.residuals[place % self.residuals.len()];
            place += 1;
            let reading = shift + sign * residual;
            above_null += u32::from(reading > rule.null_ln);
            below_effect += u32::from(reading < rule.effect_ln);
            at_effect += u32::from(reading >= rule.effect_ln);
            let at = n as usize;
            proven |= self.keep.get(at).is_some_and(|s| above_null >= *s);
            disproven |= self.drop.get(at).is_some_and(|s| below_effect >= *s);
            if n < rule.blocks_min {
                continue;
            }
            if disproven || (proven && at_effect * 2 >= n) {
                return SimulatedDuel { faster: !disproven, blocks: n };
            }
        }
        SimulatedDuel { faster: false, blocks: rule.blocks_max }
    }
}

/// For n = 0.. the fewest successes among n signs whose evidence reaches `threshold`; more than n
/// where none does.
fn fewest_successes(threshold: f64, n_max: u32) -> Vec<u32> {
    let bound = threshold.ln();
    let mut fewest = 0_u32;
    (0..=n_max)
        .map(|n| {
            // One sign more needs as many successes as before, or one more.
            while fewest <= n && ln_evidence(fewest, n - fewest) < bound {
                fewest += 1;
            }
            fewest
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::charter;
    use karve_numerics::stats::SignEvidence;

    fn rule() -> DuelRule {
        DuelRule::of(&charter(), 2_000.0)
    }

    /// Readings of equal kernels: uniform within ±`width`.
    fn noise(width: f64, n: usize) -> Vec<f64> {
        let mut draws = DrawRng::new(3);
        (0..n).map(|_| (draws.next_f64() * 2.0 - 1.0) * width).collect()
    }

    #[test]
    fn without_noise_the_smallest_effect_is_the_one_the_rule_asks_for() {
        assert_eq!(smallest_detectable(&[0.0; 20], &rule(), 1), Some(1.02));
        let power = power(&[0.0; 20], &rule(), 1.03, 1).unwrap();
        assert_eq!((power.share, power.blocks), (1.0, 14.0));
    }

    #[test]
    fn few_or_broken_residuals_say_nothing() {
        assert_eq!(power(&[0.0; 7], &rule(), 1.05, 1), None);
        assert_eq!(smallest_detectable(&[0.0; 7], &rule(), 1), None);
        assert_eq!(smallest_detectable(&[f64::NAN; 20], &rule(), 1), None);
    }

    #[test]
    fn power_grows_with_the_ratio_and_falls_with_the_noise() {
        for width in [0.01, 0.05, 0.2] {
            let residuals = noise(width, 60);
            let shares: Vec<f64> = [1.0, 1.01, 1.02, 1.03, 1.05, 1.1, 1.5]
                .iter()
                .map(|ratio| power(&residuals, &rule(), *ratio, 5).unwrap().share)
                .collect();
            assert!(shares.is_sorted(), "{width}: {shares:?}");
        }
        let smallest = |width| smallest_detectable(&noise(width, 60), &rule(), 5).unwrap();
        assert!(smallest(0.01) < smallest(0.1) && smallest(0.1) < smallest(0.4));
    }

    #[test]
    fn equal_kernels_are_never_called_faster() {
        let power = power(&noise(0.05, 60), &rule(), 1.0, 9).unwrap();
        assert_eq!(power.share, 0.0);
    }

    #[test]
    fn what_no_ratio_shows_is_none() {
        let mut wild = noise(0.1, 60);
        wild.iter_mut().for_each(|value| *value = value.signum() * 9.0);
        assert_eq!(smallest_detectable(&wild, &rule(), 1), None);
    }

    #[test]
    fn the_table_says_when_evidence_is_reached() {
        let table = fewest_successes(20.0, 60);
        for n in 0..=60_u32 {
            for successes in 0..=n {
                let evidence = SignEvidence {
                    ln_max: ln_evidence(successes, n - successes),
                    ..SignEvidence::default()
                };
                let reached = successes >= table[n as usize];
                assert_eq!(reached, evidence.reached(20.0), "{successes} of {n}");
            }
        }
    }

    #[test]
    fn residuals_lie_around_zero() {
        assert_eq!(residuals(&[1.0, 2.0, 4.0]), vec![-1.0, 0.0, 2.0]);
        assert!(residuals(&[]).is_empty());
    }
}
