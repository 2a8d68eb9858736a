//! The rules of other tools, written anew from what is published about their methods.
//!
//! Tools that run one program after the other get the incumbent's readings of the first 60 pairs
//! and the candidate's of the next 60. That is an approximation: the arms took turns when they were
//! recorded, so each block spans twice the time that it would have taken alone, and the two blocks
//! are twice as far apart. Bootstraps draw fewer resamples than the tools do.

use crate::Decision;
use crate::significance::{mann_whitney, paired_t, welch};
use crate::trials::Series;
use karve_numerics::stats::{self, DrawRng};

/// Readings of each arm that the fixed-size rules take.
const N: usize = 60;
/// The significance level that all of them use by default.
const ALPHA: f64 = 0.05;
/// The two-sided bound of the normal distribution at that level.
const NORMAL_Z: f64 = 1.959_964;
/// A change below this is called noise.
const NOISE: f64 = 0.02;
/// Resamples of a bootstrap; more would change borderline decisions only.
const RESAMPLES: usize = 400;
/// The z value from which tango calls a difference significant.
const TANGO_Z: f64 = 2.6;
/// The relative difference that tango asks for besides.
const TANGO_CHANGE: f64 = 0.005;
/// Pairs before the first peek.
const PEEK_FROM: usize = 5;

/// A rule of another tool.
pub(crate) struct Other {
    /// How the table names it.
    pub(crate) name: &'static str,
    /// What it says to a series.
    pub(crate) decide: fn(&Series) -> Decision,
}

/// All of them, in the order of the table.
pub(crate) const ALL: [Other; 8] = [
    Other { name: "one run each, 2% threshold", decide: one_run },
    Other { name: "mean of 60, A then B, 2% threshold", decide: block_means },
    Other { name: "hyperfine: Welch t, N=60", decide: hyperfine },
    Other { name: "criterion: bootstrap, N=60, 2% noise", decide: criterion },
    Other { name: "benchstat: Mann-Whitney, N=60", decide: benchstat },
    Other { name: "tango: paired z, 400 pairs", decide: tango },
    Other { name: "paired bootstrap of the median, n=60", decide: paired_bootstrap },
    Other { name: "paired t, a look after every pair", decide: peeking },
];

fn one_run(series: &Series) -> Decision {
    Decision::new(series.parent[0] > series.candidate[0] * (1.0 + NOISE), 1)
}

fn blocks(series: &Series) -> (&[f64], &[f64]) {
    (&series.parent[..N], &series.candidate[N..2 * N])
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn block_means(series: &Series) -> Decision {
    let (a, b) = blocks(series);
    Decision::new(mean(a) > mean(b) * (1.0 + NOISE), N)
}

fn hyperfine(series: &Series) -> Decision {
    let (a, b) = blocks(series);
    Decision::new(mean(b) < mean(a) && welch(a, b).p < ALPHA, N)
}

/// Significant by a bootstrapped t statistic, and the whole interval of the relative change of
/// the mean beyond the noise threshold.
fn criterion(series: &Series) -> Decision {
    let (a, b) = blocks(series);
    let mut draws = DrawRng::new(1);
    let observed = welch(a, b).t.abs();
    let pool: Vec<f64> = a.iter().chain(b).copied().collect();
    let beyond = (0..RESAMPLES)
        .filter(|_| {
            let (x, y) = (resample(&pool, N, &mut draws), resample(&pool, N, &mut draws));
            welch(&x, &y).t.abs() >= observed
        })
        .count();
    if beyond as f64 / RESAMPLES as f64 >= ALPHA {
        return Decision::new(false, N);
    }
    let changes: Vec<f64> = (0..RESAMPLES)
        .map(|_| mean(&resample(b, N, &mut draws)) / mean(&resample(a, N, &mut draws)) - 1.0)
        .collect();
    let upper = stats::quantile(&changes, 1.0 - ALPHA / 2.0);
    Decision::new(upper.is_some_and(|upper| upper < -NOISE), N)
}

fn resample(values: &[f64], n: usize, draws: &mut DrawRng) -> Vec<f64> {
    (0..n).map(|_| values[draws.below(values.len())]).collect()
}

fn benchstat(series: &Series) -> Decision {
    let (a, b) = blocks(series);
    let faster = stats::median(b) < stats::median(a);
    Decision::new(faster && mann_whitney(a, b) >= NORMAL_Z, N)
}

fn tango(series: &Series) -> Decision {
    let pairs = series.parent.iter().zip(&series.candidate);
    let differences: Vec<f64> = pairs.map(|(a, b)| a - b).collect();
    let n = differences.len();
    let Some((middle, deviation)) = stats::mean_and_deviation(&differences) else {
        return Decision::new(false, n);
    };
    let z = middle / (deviation / (n as f64).sqrt());
    let change = middle / mean(&series.parent);
    Decision::new(z >= TANGO_Z && change > TANGO_CHANGE, n)
}

/// The lower end of the interval of the median log speedup is above karve's null, 1%.
fn paired_bootstrap(series: &Series) -> Decision {
    let speedups = &series.ln_speedups()[..N];
    let mut draws = DrawRng::new(1);
    let medians: Vec<f64> =
        (0..RESAMPLES).filter_map(|_| stats::median(&resample(speedups, N, &mut draws))).collect();
    let lower = stats::quantile(&medians, ALPHA / 2.0);
    Decision::new(lower.is_some_and(|lower| lower > 1.01_f64.ln()), N)
}

/// Stops as soon as either arm is significantly faster.
fn peeking(series: &Series) -> Decision {
    let speedups = series.ln_speedups();
    for n in PEEK_FROM..=speedups.len() {
        let test = paired_t(&speedups[..n]);
        if test.p < ALPHA {
            return Decision::new(test.t > 0.0, n);
        }
    }
    Decision::undecided(speedups.len())
}
