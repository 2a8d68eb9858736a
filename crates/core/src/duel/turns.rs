//! What all turns of a duel show by one clock, beyond the usual turn of each block.
//!
//! A block is represented by its usual turn, which a busy host cannot move. It cannot be moved by
//! a kernel that is slow in one call out of four either, so three more things are kept: the mean
//! of all turns, the slow tail of each block, and blocks whose processes had lived much longer.
//! One block has few slow turns, and one late turn moves its mean, so the slow turns of both arms
//! are also counted over all blocks.
//! Turns are interleaved in random order, so for equal kernels each sign here is a fair coin.

use super::{DuelRule, SlowCalls};
use crate::charter::{Metric, OwnClock};
use crate::comparison::Clock;
use crate::measurement::{Pair, Sample, SlowTurns, TurnTimes};
use karve_numerics::stats::{self, SignEvidence};

/// How much slower the slowest turn of a block may be: single turns vary more than the rest.
const WORST_RATIO: f64 = 1.25;

/// A keep waits while the candidate has at least so many slow turns, and more than the incumbent by
/// so many standard deviations of their difference, if these cost as much as a gain is worth.
const SLOW_TURNS_MIN: f64 = 4.0;
const SLOW_SIGMAS: f64 = 1.0;

/// What all turns show by one clock. Empty if the blocks do not have turns.
#[derive(Clone, Debug, Default)]
pub struct TurnTrack {
    /// Log speedup by the mean of all turns, one per block.
    pub means: Vec<f64>,
    /// Evidence that all turns together are slower.
    pub slower: SignEvidence,
    /// Log speedup by the 90th percentile of the turns, one per block.
    p90s: Vec<f64>,
    /// Log speedup by the slowest turn, one per block.
    worsts: Vec<f64>,
    /// Evidence that the 90th percentile is worse than allowed.
    p90_worse: SignEvidence,
    /// Evidence that the slowest turn is.
    worst_worse: SignEvidence,
    /// The sums of all turns of both arms, one for each case.
    sums: Vec<(f64, f64)>,
    /// Whose the slow turns of all blocks are, for each of `SlowTurns::RATIOS`: a success is one of
    /// the candidate. A host delays both arms alike.
    slow: [SignEvidence; SlowTurns::RATIOS.len()],
    /// Turns of each arm in all blocks.
    n_turns: f64,
    /// Log speedup by the usual turn, one per aged block: all of its turns are late ones.
    pub aged: Vec<f64>,
}

impl TurnTrack {
    /// Takes in the turns of one block, if it has them.
    pub(super) fn take(&mut self, clock: Clock, pairs: &[Pair], rule: &DuelRule, metric: &Metric) {
        let Some(mean) = overall(clock, pairs, metric, |turns| turns.mean) else {
            return;
        };
        self.means.push(mean);
        self.slower.see(mean < 0.0);
        if let Some(p90) = overall(clock, pairs, metric, |turns| turns.p90) {
            self.p90s.push(p90);
            self.p90_worse.see(p90 < -rule.tail_ratio.ln());
        }
        if let Some(worst) = overall(clock, pairs, metric, |turns| turns.worst) {
            self.worsts.push(worst);
            self.worst_worse.see(worst < -rule.tail_ratio.max(WORST_RATIO).ln());
        }
        self.count_slow(clock, pairs, metric);
        self.sums.resize(pairs.len(), (0.0, 0.0));
        for (sum, pair) in self.sums.iter_mut().zip(pairs) {
            let Some(all) = of_turns(pair, |turns| turns.mean) else {
                continue;
            };
            let (_, (parent, candidate)) = clock.read(metric, &all);
            let n = pair.turns.map_or(0.0, |turns| f64::from(turns.n));
            *sum = (sum.0 + n * parent, sum.1 + n * candidate);
        }
    }

    fn count_slow(&mut self, clock: Clock, pairs: &[Pair], metric: &Metric) {
        let by_cpu = match clock {
            Clock::Metric => metric.own_clock() == Some(OwnClock::Cpu),
            Clock::Cpu => true,
            Clock::Wall => false,
        };
        let of = |turns: &TurnTimes| if by_cpu { turns.slow.cpu } else { turns.slow.time };
        for turns in pairs.iter().filter_map(|pair| pair.turns) {
            self.n_turns += f64::from(turns.n);
            let counts = of(&turns.parent).into_iter().zip(of(&turns.candidate));
            for (slow, (parent, candidate)) in self.slow.iter_mut().zip(counts) {
                // The order within a block is unknown; this one cannot overstate the evidence.
                (0..parent.min(turns.n)).for_each(|_| slow.see(false));
                (0..candidate.min(turns.n)).for_each(|_| slow.see(true));
            }
        }
    }

    /// Whether so many of the slow turns are the candidate's that a keep must wait for more turns,
    /// given the smallest log speedup worth keeping.
    pub fn has_costly_slow_turns(&self, effect_ln: f64) -> bool {
        self.slow.iter().zip(SlowTurns::RATIOS).any(|(slow, ratio)| {
            let (own, others) = (f64::from(slow.successes), f64::from(slow.failures));
            let more = own - others;
            let cost = more * (ratio - 1.0) / self.n_turns;
            own >= SLOW_TURNS_MIN && more > SLOW_SIGMAS * (own + others).sqrt() && cost > effect_ln
        })
    }

    /// Takes in an aged block.
    pub(super) fn take_aged(&mut self, clock: Clock, pairs: &[Pair], metric: &Metric) {
        let all: f64 = pairs.iter().map(|pair| clock.read(metric, pair).0).sum();
        self.aged.push(all / pairs.len() as f64);
    }

    /// Whether the blocks had turns.
    pub fn is_known(&self) -> bool {
        !self.means.is_empty()
    }

    /// Log speedup by the sum of all turns of all blocks, averaged over the cases.
    pub fn total_ln(&self, clock: Clock, metric: &Metric) -> f64 {
        let of_case = |(parent, candidate): &(f64, f64)| match clock {
            Clock::Metric => metric.ln_speedup(*parent, *candidate),
            Clock::Cpu | Clock::Wall => parent.ln() - candidate.ln(),
        };
        self.sums.iter().map(of_case).sum::<f64>() / self.sums.len() as f64
    }

    /// Which calls are proven to be slower, and by what ratio.
    pub fn slow_calls(&self, enough: f64) -> Option<(SlowCalls, f64)> {
        let ratio = |values: &[f64]| stats::median(values).map_or(f64::NAN, f64::exp);
        if self.slower.reached(enough) {
            return Some((SlowCalls::Total, ratio(&self.means)));
        }
        if self.p90_worse.reached(enough) {
            return Some((SlowCalls::Tail, ratio(&self.p90s)));
        }
        let slow = self.slow.iter().any(|slow| slow.reached(enough));
        let worse = slow || self.worst_worse.reached(enough);
        worse.then(|| (SlowCalls::Tail, ratio(&self.worsts)))
    }
}

/// A pair of one figure of all turns, instead of the usual turn.
fn of_turns(pair: &Pair, pick: fn(&TurnTimes) -> Sample) -> Option<Pair> {
    let turns = pair.turns?;
    Some(Pair { parent: pick(&turns.parent), candidate: pick(&turns.candidate), ..*pair })
}

/// The log speedup by one figure of all turns, averaged over the cases.
fn overall(
    clock: Clock,
    pairs: &[Pair],
    metric: &Metric,
    pick: fn(&TurnTimes) -> Sample,
) -> Option<f64> {
    let of_case = |pair: &Pair| Some(clock.read(metric, &of_turns(pair, pick)?).0);
    let all: Option<Vec<f64>> = pairs.iter().map(of_case).collect();
    let all = all.filter(|all| all.iter().all(|ln| ln.is_finite()))?;
    Some(all.iter().sum::<f64>() / all.len() as f64)
}
