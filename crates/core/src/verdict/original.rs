//! Judges a would-be keep against the original: gains that multiply must also be there when the
//! candidate is measured against the kernel that the campaign started from.

use super::{DropReason, DuelDeadline, KeepNote, Verdict};
use crate::duel::Duel;
use serde::{Deserialize, Serialize};

/// A product of gains is inflated if it is off by more than this ratio, or by more than this share
/// of its logarithm: each gain of a product has its own error, and large ones are stretched by a
/// busy host.
const INFLATED_RATIO: f64 = 1.05;
const INFLATED_SHARE: f64 = 0.1;

/// Gains that multiply to more than the original shows, as speedups over it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct InflatedGain {
    /// The product of the gains.
    pub claimed: f64,
    /// What was measured.
    pub measured: f64,
}

/// What the kept gains say about a candidate, as speedups over the original.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OriginalClaim {
    /// The product of the gains, the candidate's included.
    pub claimed: f64,
    /// What was last measured against the original.
    pub before: f64,
}

impl OriginalClaim {
    /// Log speedups below this one contradict the claim.
    fn least_ln(self) -> f64 {
        let claimed = self.claimed.ln();
        claimed - INFLATED_RATIO.ln().max(INFLATED_SHARE * claimed.abs())
    }
}

/// Judges a candidate with this verdict by its duel against the original; `None` if another block
/// is needed. It ends early if the duel agrees with the claim, or contradicts it.
pub fn judge_original(
    duel: &Duel,
    claim: OriginalClaim,
    verdict: &Verdict,
    time: DuelDeadline,
) -> Option<Verdict> {
    let (n, rule) = (duel.n_blocks(), &duel.rule);
    if n < rule.blocks_min {
        return None;
    }
    let shown = duel.comparison().overall;
    let least_ln = claim.least_ln();
    if shown.high.is_some_and(|high| high.ln() < least_ln) {
        let inflated = InflatedGain { claimed: claim.claimed, measured: shown.ratio };
        // A NaN is no gain.
        let gains = shown.ratio.ln() > claim.before.ln() + rule.null_ln;
        return Some(match gains {
            true => noting(verdict.clone(), KeepNote::Inflated(inflated)),
            false => Verdict::Drop { reason: DropReason::Inflated(inflated) },
        });
    }
    let agrees = shown.ratio.ln() >= least_ln;
    let ends = agrees || n >= rule.blocks_max || time == DuelDeadline::Up;
    ends.then(|| verdict.clone())
}

/// The same verdict with another note, if it keeps.
fn noting(mut verdict: Verdict, note: KeepNote) -> Verdict {
    match &mut verdict {
        Verdict::Keep { notes } | Verdict::KeepGated { notes, .. } => notes.push(note),
        Verdict::Drop { .. } | Verdict::Undecided { .. } => {}
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::duel::DuelRule;
    use crate::measurement::{Block, FirstArm, Pair, Sample};
    use crate::testing::{charter, fixed};
    use karve_numerics::stats::DrawRng;
    use proptest::prelude::*;

    fn keep() -> Verdict {
        Verdict::Keep { notes: Vec::new() }
    }

    /// The ruling on a candidate with this speedup and this relative noise, and its blocks.
    fn rule(speed: f64, noise: f64, claim: OriginalClaim, seed: u64) -> (Verdict, u32) {
        let charter = charter();
        let mut rule = DuelRule::of(&charter, 100.0);
        (rule.blocks_min, rule.blocks_max) = (8, 24);
        let mut duel = Duel::new(&charter, &[0], rule);
        let mut draws = DrawRng::new(seed);
        loop {
            if let Some(verdict) = judge_original(&duel, claim, &keep(), DuelDeadline::Left) {
                return (verdict, duel.n_blocks());
            }
            let mut sample = |us: f64| {
                let value = us * (1.0 + noise * (draws.next_f64() - 0.5));
                Sample { value, wall_us: 1, cpu_us: 1, passes: None, snr_db: None }
            };
            let (parent, candidate) = (sample(100.0), sample(100.0 / speed));
            let pair = Pair { case: 0, first: FirstArm::Parent, parent, candidate, turns: None };
            let (seed, pairs) = (0, vec![pair]);
            let block = Block { seed, pad: 0, pairs, aged: 0, discarded: None, conditions: None };
            duel.take(&block).unwrap();
        }
    }

    #[test]
    fn a_claim_that_holds_ends_the_duel_at_once() {
        for (claimed, speed) in [(3.0, 3.0), (3.0, 2.9), (1.2, 1.16), (2.0, 5.0), (16.2, 15.0)] {
            let claim = OriginalClaim { claimed, before: 1.1 };
            assert_eq!(rule(speed, 0.02, claim, 1), (keep(), 8), "{claimed} for {speed}");
        }
    }

    #[test]
    fn an_inflated_gain_is_kept_as_what_it_is() {
        let claim = OriginalClaim { claimed: 16.2, before: 4.0 };
        let (verdict, blocks) = rule(7.7, 0.02, claim, 1);
        let Verdict::Keep { notes } = verdict else { panic!("{verdict:?}") };
        let [KeepNote::Inflated(inflated)] = notes[..] else { panic!("{notes:?}") };
        assert!((inflated.measured - 7.7).abs() < 0.1 && inflated.claimed == 16.2);
        assert_eq!(blocks, 8);
    }

    #[test]
    fn what_gains_nothing_over_the_last_check_is_dropped() {
        for speed in [7.0, 7.7, 7.75] {
            let claim = OriginalClaim { claimed: 16.2, before: 7.7 };
            let (verdict, _) = rule(speed, 0.002, claim, 1);
            let inflated = matches!(verdict, Verdict::Drop { reason: DropReason::Inflated(_) });
            assert!(inflated, "{verdict:?}");
        }
    }

    #[test]
    fn what_noise_hides_takes_more_blocks_and_is_not_held_against_it() {
        let claim = OriginalClaim { claimed: 2.0, before: 1.5 };
        let (verdict, blocks) = rule(1.8, 0.6, claim, 5);
        assert_eq!((verdict, blocks), (keep(), 24));
    }

    proptest! {
        #![proptest_config(fixed(200))]

        /// Scaling claim and speed alike never turns an honest claim into an inflated one.
        #[test]
        fn an_honest_claim_is_never_called_inflated(
            speed in 1.02_f64..50.0, noise in 0.0_f64..0.3, before in 0.5_f64..50.0, seed: u64,
        ) {
            let claim = OriginalClaim { claimed: speed, before };
            prop_assert_eq!(rule(speed, noise, claim, seed).0, keep());
        }

        /// A claim of twice the truth is never kept without saying so.
        #[test]
        fn twice_the_truth_is_always_noticed(
            speed in 1.02_f64..50.0, noise in 0.0_f64..0.1, before in 0.5_f64..50.0, seed: u64,
        ) {
            let claim = OriginalClaim { claimed: 2.0 * speed, before };
            prop_assert_ne!(rule(speed, noise, claim, seed).0, keep());
        }
    }
}
