//! What an undecided duel lacks for a keep: the first condition that it does not meet.

use super::turns::{self, AgedRuling};
use super::{ClockTrack, Duel, clocks};
use crate::comparison::Clock;
use crate::policy::SmallGain;
use serde::{Deserialize, Serialize};

/// A condition of a keep that a duel does not meet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "lacks", rename_all = "snake_case")]
pub enum MissingProof {
    /// Too few blocks were measured before its time was up.
    Blocks {
        /// Blocks that count.
        has: u32,
        /// Blocks that a keep needs.
        needs: u32,
    },
    /// The gain is not proven.
    Gain {
        /// The speedup that must be exceeded.
        above: f64,
        /// The evidence for it.
        has: f64,
        /// The evidence that a keep needs.
        needs: f64,
    },
    /// A case is not shown to have stayed within what it may lose.
    Case {
        /// Index of the case in the charter.
        case: usize,
        /// Its speedup.
        ratio: f64,
        /// How much slower it may become.
        allowed: f64,
        /// The evidence that it did not.
        has: f64,
        /// The evidence that a keep needs.
        needs: f64,
    },
    /// The slowest calls take longer than they may.
    Tail {
        /// The candidate's 90th percentile over the parent's.
        ratio: f64,
        /// The highest that is allowed.
        allowed: f64,
    },
    /// All calls together, or the slowest ones, do not gain.
    Turns,
    /// The proven gain is smaller than what is worth keeping.
    Effect {
        /// The speedup.
        ratio: f64,
        /// The smallest speedup worth keeping.
        needs: f64,
    },
    /// The second clock shows a loss.
    Clock {
        /// Which one.
        clock: Clock,
    },
    /// Processes that have run for long were not measured often enough.
    Aged,
}

/// What an undecided duel lacks by the clock that is closest to a proof; `None` if nothing.
pub fn missing_proof(duel: &Duel) -> Option<MissingProof> {
    let (has, needs) = (duel.n_blocks(), duel.rule.blocks_min);
    if has < needs {
        return Some(MissingProof::Blocks { has, needs });
    }
    let best = |a: &&ClockTrack, b: &&ClockTrack| a.faster.ln_max.total_cmp(&b.faster.ln_max);
    let track = duel.tracks.iter().max_by(best)?;
    let mut others = duel.tracks.iter().filter(|other| other.clock != track.clock);
    if let Some(other) = others.find(|other| other.slower.reached(duel.rule.guard_evidence)) {
        return Some(MissingProof::Clock { clock: other.clock });
    }
    missing_by(duel, track).or_else(|| {
        let aged = turns::judge_aged(duel, track);
        matches!(aged, AgedRuling::More).then_some(MissingProof::Aged)
    })
}

/// The conditions in the order in which `keep_notes` asks for them.
fn missing_by(duel: &Duel, track: &ClockTrack) -> Option<MissingProof> {
    let rule = &duel.rule;
    let needs = rule.keep_evidence * clocks(duel);
    if !track.faster.reached(needs) {
        let above = rule.null_ln.exp();
        return Some(MissingProof::Gain { above, has: track.faster.max(), needs });
    }
    let open = |case: &&super::CaseTrack| {
        let is_safe = case.regress_ln.is_none() || case.safe.reached(rule.guard_evidence);
        !is_safe || case.may_have_lost()
    };
    if let Some(case) = track.cases.iter().find(open) {
        return Some(MissingProof::Case {
            case: case.case,
            ratio: duel.location(&case.ln_speedups).map_or(f64::NAN, f64::exp),
            allowed: case.loss_ln.or(case.regress_ln).map_or(f64::NAN, f64::exp),
            has: case.safe.max(),
            needs: rule.guard_evidence,
        });
    }
    let ratio = duel.tail_ratio(track);
    let is_within = ratio <= rule.tail_ratio;
    if !is_within {
        return Some(MissingProof::Tail { ratio, allowed: rule.tail_ratio });
    }
    if !turns::allow_keep(duel, track) {
        return Some(MissingProof::Turns);
    }
    let estimate = duel.location(&track.ln_speedups)?;
    let least = match rule.small_gain {
        SmallGain::Reject => rule.effect_ln.max(rule.small_gain_ln),
        SmallGain::Remeasure | SmallGain::AcceptNote | SmallGain::AcceptAndStop => rule.effect_ln,
    };
    let effect = MissingProof::Effect { ratio: estimate.exp(), needs: least.exp() };
    (estimate < least).then_some(effect)
}

impl MissingProof {
    /// Which condition is not met, with its numbers; `name` gives the name of a case.
    pub fn describe(&self, name: &dyn Fn(usize) -> String) -> String {
        let percent = |ratio: f64| format!("{:.1}%", (ratio - 1.0) * 100.0);
        match self {
            Self::Blocks { has, needs } => {
                format!("the time was up after {has} of at least {needs} blocks")
            }
            Self::Gain { above, has, needs } => format!(
                "a gain of more than {} is not proven, evidence {has:.3} of {needs:.0}",
                percent(*above)
            ),
            Self::Case { case, ratio, allowed, has, needs } => format!(
                "the gain is proven, but it is open whether {} loses more than {}: {ratio:.3}x, \
                 evidence {has:.3} of {needs:.0}",
                name(*case),
                percent(*allowed)
            ),
            Self::Tail { ratio, allowed } => format!(
                "the gain is proven, but the slow calls (90th percentile) take {ratio:.3} times \
                 as long, more than {allowed}"
            ),
            Self::Turns => {
                "the usual call gains, but all calls together or the slowest ones do not".into()
            }
            Self::Effect { ratio, needs } => format!(
                "a gain is proven, but {ratio:.3}x is below {needs:.3}x, the least worth keeping"
            ),
            Self::Clock { clock } => {
                format!("the metric gains, but the {} shows a loss", clock.name())
            }
            Self::Aged => "too few blocks were of processes that have run for long".into(),
        }
    }

    /// What would decide it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Blocks { .. } => "a longer limits.duel_s, or fewer or smaller cases",
            Self::Gain { .. } => {
                "the same change again (the duel continues where it stopped), a larger effect, a \
                 quieter machine, or more blocks: policy.accept.blocks_max and limits.duel_s"
            }
            Self::Case { .. } => {
                "more blocks, a quieter machine, a change that leaves that case alone, or \
                 minor = true for it"
            }
            Self::Tail { .. } | Self::Turns => {
                "a change whose slow calls gain too: no setup, allocation or cache in some calls; \
                 a quieter machine"
            }
            Self::Effect { .. } => {
                "a larger effect, or a smaller policy.accept.effect_ratio (and small_gain_ratio)"
            }
            Self::Clock { .. } => "a change that does no more work by that clock: metric.clocks",
            Self::Aged => "a longer limits.duel_s",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::script::{play, script};
    use crate::verdict::Verdict;

    /// What one round lacks; each case has its own speed.
    fn lacks(speed: &[f64], noise: f64, blocks: u32) -> MissingProof {
        let mut script = script(&[1.0]);
        script.noise = noise;
        script.charter.policy.accept.blocks_max = blocks;
        script.rounds = vec![vec![crate::testing::script::ScriptedAnswer::Idea(
            crate::testing::script::idea(1, speed),
        )]];
        let (campaign, _) = play(&script);
        let round = &campaign.rounds()[0];
        assert!(matches!(round.verdict, Verdict::Undecided { .. }), "{:?}", round.verdict);
        round.missing.clone().unwrap()
    }

    #[test]
    fn an_undecided_duel_says_which_condition_failed_and_what_would_help() {
        let gain = lacks(&[1.03, 1.03], 0.2, 30);
        assert!(matches!(&gain, MissingProof::Gain { has, needs, .. } if has < needs), "{gain:?}");
        let text = gain.describe(&|case| case.to_string());
        assert!(text.starts_with("a gain of more than 1.0% is not proven, evidence"), "{text}");
        assert!(gain.remedy().contains("policy.accept.blocks_max"));
        let effect = MissingProof::Effect { ratio: 1.015, needs: 1.02 };
        let text = effect.describe(&|case| case.to_string());
        assert_eq!(text, "a gain is proven, but 1.015x is below 1.020x, the least worth keeping");
        let case = MissingProof::Case { case: 1, ratio: 1.0, allowed: 1.02, has: 3.5, needs: 20.0 };
        let text = case.describe(&|case| format!("case {case}"));
        assert!(
            text.contains("whether case 1 loses more than 2.0%: 1.000x, evidence 3.5"),
            "{text}"
        );
    }
}
