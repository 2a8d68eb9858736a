//! A campaign of no-op rounds that keeps the best so far, as many loops around an agent do.

use crate::trials::{LOADS, Series, Trial};
use karve::ui;
use karve_numerics::stats;

/// Rounds of a campaign.
const ROUNDS: usize = 60;
/// Readings of one round; their median is its score.
const READINGS: usize = 60;
/// Rounds between the starts of two campaigns.
const STEP: usize = 5;

/// How many new bests each load yields, and what they claim to have gained.
pub(crate) fn print(trials: &[Trial]) {
    ui::outln(&format!("\nbest so far, {ROUNDS} no-op rounds, each the median of {READINGS} runs"));
    for (load, name) in LOADS.iter().enumerate() {
        let meant = |trial: &&Trial| trial.load == load && trial.effect == 0;
        let nulls: Vec<&Trial> = trials.iter().filter(meant).collect();
        let line = |clock: &str, pick: fn(&Trial) -> &Series| {
            let scores: Vec<f64> = nulls.iter().filter_map(|t| score(pick(t))).collect();
            let played: Vec<(usize, f64)> =
                scores.windows(ROUNDS + 1).step_by(STEP).map(play).collect();
            let bests: usize = played.iter().map(|(bests, _)| bests).sum();
            let bests = bests as f64 / played.len() as f64;
            let claim = played.iter().map(|(_, claim)| *claim).fold(1.0, f64::max);
            format!("{clock} {bests:.1} new bests on average, up to {claim:.2}x claimed")
        };
        let (cpu, wall) = (line("CPU", |t| &t.cpu), line("wall", |t| &t.wall));
        ui::outln(&format!("load {name:<6} {cpu}; {wall}"));
    }
}

fn score(series: &Series) -> Option<f64> {
    stats::median(&series.candidate[..READINGS])
}

/// The number of new bests after the baseline, and the gain that they claim together.
fn play(scores: &[f64]) -> (usize, f64) {
    let Some((baseline, rounds)) = scores.split_first() else {
        return (0, 1.0);
    };
    let (mut best, mut bests) = (*baseline, 0);
    for score in rounds.iter().filter(|score| score.is_finite()) {
        if *score < best {
            (best, bests) = (*score, bests + 1);
        }
    }
    (bests, baseline / best)
}
