//! What an A/A test (a bench of equal sides) shows about the host: spread, drift, and what could
//! be detected.

use crate::bench::{Bench, ClockSigns};
use crate::comparison::Clock;
use crate::power::{self, DuelPower};
use karve_numerics::stats;
use serde::Serialize;

/// The true speedups for which power and cost are reported.
pub const RATIOS: [f64; 4] = [1.01, 1.02, 1.03, 1.05];

/// A remedy helps if the smallest detectable difference shrinks by at least this share.
const HELPS_SHARE: f64 = 0.2;

/// How some values are distributed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The middle.
    pub median: f64,
    /// The first quartile subtracted from the third.
    pub iqr: f64,
    /// One in ten lies below.
    pub p10: f64,
    /// One in ten lies above.
    pub p90: f64,
}

/// What one clock shows about the host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClockNoise {
    /// The clock.
    pub clock: Clock,
    /// Readings of the first case, both sides, in the clock's unit.
    pub times: Option<Spread>,
    /// Logs of the paired ratios; 0.01 is one percent.
    pub ln_ratios: Option<Spread>,
    /// By how much the readings change over the whole bench, as a log; Theil and Sen's slope.
    pub drift_ln: Option<f64>,
    /// How much a reading says about the next: correlation of neighbors.
    pub lag1: Option<f64>,
    /// The share of pairs in which B was faster; about a half for equal sides.
    pub positive_share: f64,
    /// The highest evidence that the sides differ at all; equal sides rarely reach 20.
    pub evidence: f64,
    /// Power and cost at some true speedups.
    pub power: Vec<DuelPower>,
    /// The smallest speedup that would be detected four times out of five.
    pub smallest: Option<f64>,
}

/// What each clock of an A/A test shows.
pub fn examine(bench: &Bench, seed: u64) -> Vec<ClockNoise> {
    let rule = bench.rule.one_way();
    let of_clock = |clock: &ClockSigns| {
        let signs = &clock.overall;
        let residuals = power::residuals(&signs.ln_speedups);
        let n = signs.ln_speedups.len();
        let levels = levels(clock);
        let times = clock.cases.first().map(|case| {
            let both = case.values.iter().flat_map(|(a, b)| [*a, *b]);
            both.collect::<Vec<f64>>()
        });
        let at = |ratio: &f64| power::power(&residuals, &rule, *ratio, seed);
        ClockNoise {
            clock: clock.clock,
            times: times.and_then(|times| spread(&times)),
            ln_ratios: spread(&signs.ln_speedups),
            drift_ln: slope(&levels).map(|slope| slope * (n.max(1) - 1) as f64),
            lag1: lag1(&levels),
            positive_share: f64::from(signs.above.successes) / n.max(1) as f64,
            evidence: signs.above.max().max(signs.below.max()),
            power: RATIOS.iter().filter_map(at).collect(),
            smallest: power::smallest_detectable(&residuals, &rule, seed),
        }
    };
    bench.clocks.iter().map(of_clock).collect()
}

/// Whether a remedy makes smaller differences detectable: at least a fifth smaller. `None` stands
/// for a host on which not even a 2x speedup would be detected.
pub fn helps(before: Option<f64>, after: Option<f64>) -> bool {
    match (before, after) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(before), Some(after)) => after - 1.0 <= (before - 1.0) * (1.0 - HELPS_SHARE),
    }
}

/// The mean log reading of each block, over both sides and all cases.
fn levels(clock: &ClockSigns) -> Vec<f64> {
    let n = clock.overall.ln_speedups.len();
    let of_block = |block: usize| {
        let logs = clock.cases.iter().filter_map(|case| case.values.get(block));
        let logs = logs.map(|(a, b)| f64::midpoint(a.ln(), b.ln()));
        logs.sum::<f64>() / clock.cases.len().max(1) as f64
    };
    (0..n).map(of_block).collect()
}

fn spread(values: &[f64]) -> Option<Spread> {
    let at = |q| stats::quantile(values, q);
    Some(Spread { median: at(0.5)?, iqr: at(0.75)? - at(0.25)?, p10: at(0.1)?, p90: at(0.9)? })
}

/// The median slope over all pairs of values, per step.
fn slope(values: &[f64]) -> Option<f64> {
    let mut slopes = Vec::new();
    for (i, a) in values.iter().enumerate() {
        for (j, b) in values.iter().enumerate().skip(i + 1) {
            slopes.push((b - a) / (j - i) as f64);
        }
    }
    stats::median(&slopes)
}

/// The correlation of neighbors; `None` without spread.
fn lag1(values: &[f64]) -> Option<f64> {
    let (mean, deviation) = stats::mean_and_deviation(values)?;
    let n = values.len() as f64;
    let square = deviation * deviation * (n - 1.0);
    let product: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    (square > 0.0).then(|| product / square)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::BenchRule;
    use crate::measurement::{Block, FirstArm, Pair, Sample};
    use crate::testing::charter;
    use karve_numerics::stats::DrawRng;

    fn bench(n: usize, noise: f64) -> Bench {
        let mut draws = DrawRng::new(4);
        let mut bench = Bench::new(&charter().metric, &[0], BenchRule::default());
        for _ in 0..n {
            let mut sample = || Sample {
                value: 1.0 + noise * draws.next_f64(),
                wall_us: 1,
                cpu_us: 1,
                passes: None,
                snr_db: None,
            };
            let (parent, candidate) = (sample(), sample());
            let pair = Pair { case: 0, first: FirstArm::Parent, parent, candidate, turns: None };
            let block = Block {
                seed: 1,
                pad: 0,
                pairs: vec![pair],
                discarded: None,
                conditions: None,
                aged: 0,
            };
            bench.take(&block).unwrap();
        }
        bench
    }

    #[test]
    fn a_quiet_host_sees_more_than_a_noisy_one() {
        let (quiet, noisy) =
            (examine(&bench(60, 0.01), 1).remove(0), examine(&bench(60, 0.3), 1).remove(0));
        assert!(quiet.smallest < noisy.smallest, "{quiet:?} {noisy:?}");
        assert!(quiet.ln_ratios.unwrap().iqr < noisy.ln_ratios.unwrap().iqr);
        assert_eq!(quiet.power.len(), RATIOS.len());
        assert!(quiet.evidence < 20.0 && (0.2..0.8).contains(&quiet.positive_share));
    }

    #[test]
    fn without_blocks_there_is_nothing_to_say() {
        let nothing = examine(&bench(0, 0.1), 1).remove(0);
        assert_eq!((nothing.times, nothing.smallest), (None, None));
        assert!(nothing.power.is_empty());
    }

    #[test]
    fn drift_and_neighbours_are_seen() {
        let rising: Vec<f64> = (0..20).map(f64::from).collect();
        assert_eq!(slope(&rising), Some(1.0));
        assert!(lag1(&rising).unwrap() > 0.8);
        let turning: Vec<f64> = (0..20).map(|k| f64::from(k % 2)).collect();
        assert!(lag1(&turning).unwrap() < -0.8);
        assert_eq!((lag1(&[1.0; 9]), slope(&[1.0])), (None, None));
    }

    #[test]
    fn a_remedy_helps_from_a_fifth_on() {
        assert!(helps(Some(1.05), Some(1.04)));
        assert!(!helps(Some(1.05), Some(1.045)));
        assert!(!helps(Some(1.05), None) && helps(None, Some(2.0)) && !helps(None, None));
    }
}
