//! Judges what all turns of a duel show: a gain of the usual turn is not a gain if other calls pay
//! for it.

use super::{DropReason, clocks, lacks_aged};
use crate::duel::{ClockTrack, Duel, SlowCalls};
use karve_numerics::stats;

/// Aged blocks that a keep needs, and how many there may be before they count against it.
const AGED_MIN: usize = 3;
const AGED_MAX: usize = 7;

/// While a duel looks like a gain, one block out of so many is aged until there are enough, and one
/// out of so many when nothing else is missing. No candidate can tell which.
const AGED_EARLY_ODDS: usize = 6;
const AGED_LATE_ODDS: usize = 2;

/// What the blocks with aged processes say about a proven gain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum AgedRuling {
    /// They show it too, or there is no way to age the processes.
    Shown,
    /// Another aged block is needed.
    More,
    /// They do not show it; the speedup there.
    Gone(f64),
}

/// Why the turns speak against a candidate, if that is proven by any clock.
pub(super) fn drop_reason(duel: &Duel) -> Option<DropReason> {
    let enough = duel.rule.guard_evidence * clocks(duel) * SlowCalls::N_CLAIMS;
    let (which, ratio) = duel.tracks.iter().find_map(|track| track.turns.slow_calls(enough))?;
    Some(DropReason::SlowCalls { which, ratio })
}

/// Whether all turns together show a gain by this clock, not only the usual ones.
pub(super) fn allow_keep(duel: &Duel, track: &ClockTrack) -> bool {
    let turns = &track.turns;
    if !turns.is_known() {
        return true;
    }
    // A NaN is not a gain.
    duel.total_ln(track) > 0.0
        && !turns.has_costly_slow_turns(duel.rule.effect_ln)
        && stats::hodges_lehmann(&turns.means).is_some_and(|mean| mean >= duel.rule.null_ln)
}

/// Judges the aged blocks of a duel whose other blocks prove a gain by this clock. A quick duel
/// that is followed by another one needs none.
pub(super) fn judge_aged(duel: &Duel, track: &ClockTrack) -> AgedRuling {
    let rule = &duel.rule;
    if !track.turns.is_known() || !rule.is_final {
        return AgedRuling::Shown;
    }
    let aged = &track.turns.aged;
    let shown = stats::median(aged).unwrap_or(f64::NEG_INFINITY);
    match aged.len() {
        n if n < AGED_MIN => AgedRuling::More,
        _ if shown > rule.null_ln => AgedRuling::Shown,
        n if n < AGED_MAX => AgedRuling::More,
        _ => AgedRuling::Gone(shown.exp()),
    }
}

/// Whether the next block must be one of aged processes. A coin decides, unless there are no usual
/// blocks left.
pub fn aging_due(duel: &Duel) -> bool {
    if lacks_aged(duel) {
        return duel.n_blocks() >= duel.rule.blocks_max || duel.toss(AGED_LATE_ODDS);
    }
    looks_faster(duel) && duel.toss(AGED_EARLY_ODDS)
}

/// Whether a block may be aged or not, whatever the coin says: an earlier karve aged exactly the
/// last blocks of a proven gain.
pub fn aging_allowed(duel: &Duel, is_aged: bool) -> bool {
    is_aged == aging_due(duel) || is_aged == lacks_aged(duel)
}

/// Whether a duel that may end in a keep looks like a gain, and has room for an aged block.
fn looks_faster(duel: &Duel) -> bool {
    let rule = &duel.rule;
    let track = duel.main();
    let looks = || stats::median(&track.ln_speedups).is_some_and(|ln| ln >= rule.effect_ln);
    let has_room = track.turns.is_known() && track.turns.aged.len() < AGED_MIN;
    rule.is_final && has_room && duel.n_blocks() >= rule.blocks_min && looks()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::charter::Charter;
    use crate::comparison::Clock;
    use crate::duel::DuelRule;
    use crate::measurement::{Block, FirstArm, Pair, PairTurns, Sample, SlowTurns, TurnTimes};
    use crate::testing::charter;
    use crate::verdict::{DuelDeadline, DuelRuling, Verdict, aging_due, judge_duel};
    use karve_numerics::stats::DrawRng;

    /// Turns of each arm in a block.
    const TURNS: usize = 25;

    /// How long a turn of a kernel takes, in microseconds, given its number in its process.
    type KernelTime<'a> = dyn FnMut(usize) -> f64 + 'a;

    fn sample(us: f64) -> Sample {
        Sample { value: us, wall_us: us as u64, cpu_us: us as u64, passes: None, snr_db: None }
    }

    fn times(turns: &[f64], incumbent: &[f64]) -> TurnTimes {
        let quantile = |q| sample(stats::quantile(turns, q).unwrap());
        let mean = sample(turns.iter().sum::<f64>() / turns.len() as f64);
        let slow = SlowTurns::count(turns, incumbent);
        let slow = SlowTurns { time: slow, cpu: slow };
        TurnTimes { mean, p90: quantile(0.9), worst: quantile(1.0), slow }
    }

    /// A block as the kernel runner makes it: its readings are those of the usual turn.
    fn block(parent: &mut KernelTime<'_>, candidate: &mut KernelTime<'_>, aged: u32) -> Block {
        let first = aged as usize;
        let both: Vec<(f64, f64)> =
            (first..first + TURNS).map(|turn| (parent(turn), candidate(turn))).collect();
        let mut sorted = both.clone();
        sorted.sort_by(|a, b| (a.1 / a.0).total_cmp(&(b.1 / b.0)));
        let usual = sorted[TURNS / 2];
        let (parents, candidates): (Vec<f64>, Vec<f64>) = both.into_iter().unzip();
        let pair = Pair {
            case: 0,
            first: FirstArm::Parent,
            parent: sample(usual.0),
            candidate: sample(usual.1),
            turns: Some(PairTurns {
                n: TURNS as u32,
                parent: times(&parents, &parents),
                candidate: times(&candidates, &parents),
            }),
        };
        Block { seed: 0, pad: 0, pairs: vec![pair], aged, discarded: None, conditions: None }
    }

    fn decide(
        charter: &Charter,
        parent: &mut KernelTime<'_>,
        candidate: &mut KernelTime<'_>,
    ) -> Verdict {
        simulate(charter, parent, candidate, Seen::AllTurns).0
    }

    /// What a duel is told about its blocks.
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        AllTurns,
        UsualTurn,
    }

    /// The verdict on a duel, and whether each of its blocks was aged.
    fn simulate(
        charter: &Charter,
        parent: &mut KernelTime<'_>,
        candidate: &mut KernelTime<'_>,
        seen: Seen,
    ) -> (Verdict, Vec<bool>) {
        let rule = DuelRule::of(charter, charter.keep_evidence()).with_second(Some(Clock::Cpu));
        let mut duel = Duel::new(charter, &[0], rule);
        let mut ages = Vec::new();
        loop {
            if let DuelRuling::Decided(verdict) = judge_duel(&duel, DuelDeadline::Left) {
                return (verdict, ages);
            }
            let is_aged = aging_due(&duel);
            ages.push(is_aged);
            let aged = if is_aged { 50 * TURNS as u32 } else { 0 };
            let mut block = block(parent, candidate, aged);
            block.seed = parent(0).to_bits();
            if seen == Seen::UsualTurn {
                block.pairs[0].turns = None;
            }
            duel.take(&block).unwrap();
        }
    }

    /// The noise of a busy host: a little on every turn, and one turn in `rare` is delayed by up
    /// to `delay` times its length, with the long ones rare.
    fn noisy(draws: &mut DrawRng, us: f64, rare: usize, delay: f64) -> f64 {
        let little = 1.0 + 0.02 * draws.next_f64();
        let late = if draws.below(rare) == 0 { delay * draws.next_f64().powi(4) } else { 0.0 };
        us * (little + late)
    }

    /// Keeps among duels of kernels: the candidate's turn takes this long.
    fn keeps(duels: u64, rare: usize, kernel: impl FnMut(usize, &mut DrawRng) -> f64) -> usize {
        keeps_if(Seen::AllTurns, duels, rare, kernel)
    }

    fn keeps_if(
        seen: Seen,
        duels: u64,
        rare: usize,
        mut kernel: impl FnMut(usize, &mut DrawRng) -> f64,
    ) -> usize {
        let charter = charter();
        let keeps = |seed: &u64| {
            let (mut one, mut other) = (DrawRng::new(2 * seed), DrawRng::new(2 * seed + 1));
            let mut parent = |_: usize| noisy(&mut one, 10_000.0, rare, 20.0);
            let mut candidate = |turn: usize| {
                let us = kernel(turn, &mut other);
                noisy(&mut other, us, rare, 20.0)
            };
            simulate(&charter, &mut parent, &mut candidate, seen).0.keeps()
        };
        (0..duels).filter(keeps).count()
    }

    #[test]
    fn a_true_gain_is_kept_however_busy_the_host() {
        for rare in [4, 12, 100] {
            let kept = |seen| keeps_if(seen, 200, rare, |_, _| 10_000.0 / 1.05);
            let (all, usual) = (kept(Seen::AllTurns), kept(Seen::UsualTurn));
            assert!(all >= 195 && all + 5 >= usual, "{all} and {usual}: one in {rare} is late");
        }
    }

    #[test]
    fn equal_kernels_are_never_kept_nor_called_slow() {
        let charter = charter();
        let mut slow = 0;
        for seed in 0..200 {
            let (mut one, mut other) = (DrawRng::new(2 * seed), DrawRng::new(2 * seed + 1));
            let mut parent = |_: usize| noisy(&mut one, 10_000.0, 6, 30.0);
            let mut candidate = |_: usize| noisy(&mut other, 10_000.0, 6, 30.0);
            let verdict = decide(&charter, &mut parent, &mut candidate);
            assert!(!verdict.keeps(), "{verdict:?}");
            let called = matches!(verdict, Verdict::Drop { reason: DropReason::SlowCalls { .. } });
            slow += usize::from(called);
        }
        assert!(slow <= 10, "{slow} of 200, at most 5% are allowed");
    }

    #[test]
    fn a_kernel_that_is_slow_in_some_of_its_calls_is_not_kept() {
        // The gain of the other calls, how many calls in sixteen are slow, and how slow.
        let cheats = [(1.15, 4, 6.0), (1.15, 2, 6.0), (1.3, 1, 8.0), (1.1, 1, 5.0), (1.1, 7, 2.0)];
        for (gain, slow, times) in cheats {
            let kept = keeps(200, 12, |_, draws| match draws.below(16) < slow {
                true => 10_000.0 * times,
                false => 10_000.0 / gain,
            });
            assert_eq!(kept, 0, "{slow} of 16 calls are {times} times slower");
        }
    }

    #[test]
    fn a_process_that_is_slow_now_and_then_is_not_kept() {
        let mut process = 0;
        // Three processes in four are fast; a short duel may not see another one.
        let kept = keeps(20, 12, |turn, draws| {
            if turn % TURNS == 0 {
                process = draws.below(4);
            }
            if process == 0 { 60_000.0 } else { 9_000.0 }
        });
        assert!(kept <= 1, "{kept} of 20");
    }

    #[test]
    fn a_kernel_that_is_slow_from_some_call_on_is_not_kept() {
        for (from, us) in [(48, 13_000.0), (500, 60_000.0), (TURNS, 10_500.0)] {
            let kept = keeps(20, 12, |turn, _| if turn < from { 9_000.0 } else { us });
            assert_eq!(kept, 0, "from call {from} on");
        }
    }

    #[test]
    fn old_processes_count_however_much_evidence_a_guard_needs() {
        let mut charter = charter();
        charter.policy.accept.guard_evidence = 2.0 * charter.keep_evidence();
        let mut slow_later = |turn: usize| if turn < 500 { 9_000.0 } else { 60_000.0 };
        let verdict = decide(&charter, &mut |_| 10_000.0, &mut slow_later);
        assert!(!verdict.keeps(), "{verdict:?}");
        let verdict = decide(&charter, &mut |_| 10_000.0, &mut |_| 9_000.0);
        assert!(verdict.keeps(), "{verdict:?}");
    }

    /// Which blocks of some duels are aged, for candidates of this time that are slow in old
    /// processes, or not.
    fn ages(us: f64, old_us: f64) -> Vec<Vec<bool>> {
        let charter = charter();
        let of = |seed: u64| {
            let (mut one, mut other) = (DrawRng::new(2 * seed), DrawRng::new(2 * seed + 1));
            let mut parent = |_: usize| noisy(&mut one, 10_000.0, 100, 20.0);
            let mut candidate =
                |turn: usize| noisy(&mut other, if turn < TURNS { us } else { old_us }, 100, 20.0);
            simulate(&charter, &mut parent, &mut candidate, Seen::AllTurns).1
        };
        (0..60).map(of).collect()
    }

    #[test]
    fn no_candidate_can_tell_which_blocks_are_aged() {
        let duels = ages(9_000.0, 9_000.0);
        let mut places: Vec<Vec<usize>> =
            duels.iter().map(|ages| (0..ages.len()).filter(|at| ages[*at]).collect()).collect();
        assert!(places.iter().all(|aged| aged.len() == AGED_MIN), "{places:?}");
        // Some come early, and usual blocks come between them.
        let early = places.iter().filter(|aged| aged[0] < 14).count();
        let apart = places.iter().filter(|aged| aged[2] - aged[0] > 2).count();
        assert!(early > 20 && apart > 40, "{early} early, {apart} apart");
        places.sort();
        places.dedup();
        assert!(places.len() > 40, "{} of 60 differ", places.len());
    }

    #[test]
    fn aging_costs_no_more_than_a_keep_needs() {
        let most = |duels: Vec<Vec<bool>>| {
            let aged = duels.iter().map(|ages| ages.iter().filter(|aged| **aged).count());
            aged.max().unwrap()
        };
        assert_eq!(most(ages(10_000.0, 10_000.0)), 0);
        assert_eq!(most(ages(9_000.0, 60_000.0)), AGED_MAX);
    }

    #[test]
    fn blocks_that_an_earlier_karve_aged_are_accepted() {
        let charter = charter();
        let rule = DuelRule::of(&charter, charter.keep_evidence());
        let mut duel = Duel::new(&charter, &[0], rule);
        for seed in 0.. {
            if lacks_aged(&duel) {
                break;
            }
            // It did not age any of these.
            assert!(aging_allowed(&duel, false) && aging_allowed(&duel, true) == aging_due(&duel));
            let usual = block(&mut |_| 10_000.0, &mut |_| 9_000.0, 0);
            duel.take(&Block { seed, ..usual }).unwrap();
        }
        assert!(aging_allowed(&duel, true));
    }
}
