//! What a gain needs before it is believed: a proof that the work was done, if the gain is larger
//! than gains usually are, or if the change keeps state between calls.
//!
//! A project's own benchmark is no such proof: it calls the kernel with the same inputs again and
//! again, which is all that a cache needs.

use super::{AuditFinding, Severity};
use serde::{Deserialize, Serialize};

/// A speedup of one round above this is implausible until it is proven.
pub const ROUND_RATIO_MAX: f64 = 10.0;
/// Rules that find state which outlives a call, and files in which it could be.
pub const STATE_RULES: [&str; 11] = [
    "identity-cache",
    "content-cache",
    "tensor-memo",
    "result-memo",
    "weak-reference",
    "weight-cache",
    "static-state",
    "call-counter",
    "hidden-state",
    "replay",
    "unaudited",
];

/// The rule of functions that a change adds and that have no part in its results.
pub const GHOST_RULE: &str = "ghost";

/// Whether a gain cannot be credited to what the hypothesis says: what it added does nothing.
pub fn has_ghost(findings: &[AuditFinding]) -> bool {
    findings.iter().any(|finding| finding.rule == GHOST_RULE)
}

/// The rule that finds buffers which outlive a call.
const BUFFER_RULE: &str = "static-buffer";
/// Rules that find what may change the figures of a benchmark: output, and names that it uses.
const OUTPUT_RULES: [&str; 2] = ["prints", "shadowing"];

/// What shows that a candidate did the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GainProof {
    /// A contract: every timed call had fresh inputs, and outputs of timed calls were verified.
    Contract,
    /// karve's own strategy made every change of the campaign. It writes no caches, but a large
    /// gain is all that this explains.
    OwnStrategy,
    /// Its work was counted, call by call.
    Work,
    /// A person looked at the candidate and allowed it.
    Person,
}

impl GainProof {
    /// How it settles a doubt, in words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Contract => "the contract: timed calls had fresh inputs and checked outputs",
            Self::OwnStrategy => "karve's own strategy made every change",
            Self::Work => "its work was counted, call by call",
            Self::Person => "a person looked at it and allowed it",
        }
    }
}

/// Why a gain is not believed without a proof.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "doubt", rename_all = "snake_case")]
pub enum GainDoubt {
    /// The audit found state that outlives a call.
    State {
        /// The finding, in one line.
        finding: String,
    },
    /// The change prints, and the benchmark's figures are read from what is printed; or it changes
    /// the meaning of names that the benchmark uses.
    Output {
        /// The finding, in one line.
        finding: String,
    },
    /// The speedup of one round is above `ROUND_RATIO_MAX`.
    Ratio {
        /// The speedup: the largest that a case shows at least, or that of all.
        ratio: f64,
    },
    /// These cases are faster than the roofline or the profile says they can be.
    Roofline {
        /// Indices of the cases in the charter.
        cases: Vec<usize>,
    },
    /// karve's own clock around the command contradicts what the benchmark reports.
    Clock {
        /// Seconds by which a run became shorter by what it reports.
        claimed_s: f64,
        /// The same by karve's own clock.
        seen_s: f64,
    },
    /// The benchmark calls the kernel less often than it calls the incumbent.
    Calls {
        /// The incumbent's calls in a run.
        parent: u32,
        /// The candidate's.
        candidate: u32,
    },
    /// Most of the gain is gone while the allocator overwrites freed and fresh memory.
    StaleMemory {
        /// The speedup of the duel.
        ratio: f64,
        /// The share of the time saved in the duel that is saved then.
        left: f64,
    },
}

impl GainDoubt {
    /// In words.
    pub fn describe(&self) -> String {
        match self {
            Self::State { finding } => format!("state outlives a call: {finding}"),
            Self::Output { finding } => {
                format!("the benchmark's figures could be its own: {finding}")
            }
            Self::Ratio { ratio } => {
                format!("{ratio:.1}x in one round is above {ROUND_RATIO_MAX:.0}x")
            }
            Self::Roofline { .. } => "faster than the roofline or the profile allows".to_owned(),
            Self::Clock { claimed_s, seen_s } => {
                let (claimed, seen) = (claimed_s * 1e3, seen_s * 1e3);
                format!(
                    "the benchmark reports {claimed:.2} ms less for a run, but by karve's own \
                     clock the command takes {seen:.2} ms less"
                )
            }
            Self::Calls { parent, candidate } => format!(
                "a run of the benchmark calls the kernel {candidate} times, and the incumbent \
                 {parent} times, in every run"
            ),
            Self::StaleMemory { ratio, left } => format!(
                "the gain of {ratio:.2}x depends on what freed or fresh memory holds: while the \
                 allocator overwrites it (GLIBC_TUNABLES=glibc.malloc.perturb), {:.0}% of the \
                 saved time is left",
                left.max(0.0) * 100.0
            ),
        }
    }
}

/// Bugs that were planted in a candidate before the first keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MutantCheck {
    /// How many were built and tested.
    pub tested: u32,
    /// Whether the tests noticed one of them.
    pub noticed: bool,
}

/// The first state that the audit found in a change.
pub fn state_in(findings: &[AuditFinding]) -> Option<GainDoubt> {
    let of_state = |finding: &&AuditFinding| {
        finding.severity != Severity::Advice && STATE_RULES.contains(&finding.rule.as_str())
    };
    let first = findings.iter().find(of_state)?;
    Some(GainDoubt::State { finding: first.describe() })
}

/// The first place where a change prints, or changes the meaning of names that a benchmark uses.
pub fn output_in(findings: &[AuditFinding]) -> Option<GainDoubt> {
    let first = findings.iter().find(|finding| OUTPUT_RULES.contains(&finding.rule.as_str()))?;
    Some(GainDoubt::Output { finding: first.describe() })
}

/// Buffers that outlive a call, which the audit only mentions: an honest kernel may have one, but
/// results could be in it.
pub fn buffers_in(findings: &[AuditFinding]) -> impl Iterator<Item = &AuditFinding> {
    findings.iter().filter(|finding| finding.rule == BUFFER_RULE)
}

/// The doubts that no proof dispels.
pub fn remaining(doubts: Vec<GainDoubt>, proofs: &[GainProof]) -> Vec<GainDoubt> {
    let beyond = doubts.iter().any(|doubt| matches!(doubt, GainDoubt::Roofline { .. }));
    let large = doubts.iter().any(|doubt| matches!(doubt, GainDoubt::Ratio { .. }));
    let dispels = |proof: GainProof, doubt: &GainDoubt| match (proof, doubt) {
        (GainProof::Person, _) => true,
        (
            GainProof::OwnStrategy,
            GainDoubt::State { .. } | GainDoubt::Roofline { .. } | GainDoubt::StaleMemory { .. },
        ) => false,
        (GainProof::Work, GainDoubt::Roofline { .. } | GainDoubt::Output { .. }) => false,
        (_, GainDoubt::Output { .. }) => true,
        // Work that was done says nothing about the clock that the benchmark read.
        (_, GainDoubt::Clock { .. }) => false,
        // Nor does it about calls that were not made.
        (proof, GainDoubt::Calls { .. }) => proof == GainProof::Contract,
        (_, GainDoubt::State { .. } | GainDoubt::StaleMemory { .. }) => true,
        // Work that is done takes its time: no proof makes a device faster.
        (_, GainDoubt::Ratio { .. }) => !beyond,
        // A measured roofline is a little uncertain.
        (GainProof::Contract, GainDoubt::Roofline { .. }) => !large,
    };
    let stays = |doubt: &GainDoubt| !proofs.iter().any(|proof| dispels(*proof, doubt));
    doubts.into_iter().filter(stays).collect()
}

/// The round whose candidate a person's answer allows: `allow 3`.
pub fn allowed_round(answer: &str) -> Option<u32> {
    let mut words = answer.split_whitespace();
    let round = (words.next() == Some("allow")).then(|| words.next())??;
    round.trim_end_matches([':', ',', '.']).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_without_a_part_in_the_results_takes_the_credit_away() {
        let found = |rule: &str| AuditFinding {
            rule: rule.to_owned(),
            severity: Severity::Suspicious,
            bucket: None,
            file: "k.c".into(),
            line: 1,
            what: String::new(),
        };
        assert!(has_ghost(&[found("threads"), found(GHOST_RULE)]));
        assert!(!has_ghost(&[found("threads")]));
    }

    fn state() -> GainDoubt {
        GainDoubt::State { finding: "k.rs:3: static-state (suspicious): S".into() }
    }

    fn large() -> GainDoubt {
        GainDoubt::Ratio { ratio: 81.5 }
    }

    fn beyond() -> GainDoubt {
        GainDoubt::Roofline { cases: vec![0] }
    }

    fn stale() -> GainDoubt {
        GainDoubt::StaleMemory { ratio: 2.4, left: 0.02 }
    }

    fn unseen() -> GainDoubt {
        GainDoubt::Clock { claimed_s: 0.06, seen_s: 0.001 }
    }

    #[test]
    fn only_a_person_dispels_what_the_clock_contradicts() {
        let all = [GainProof::Contract, GainProof::OwnStrategy];
        assert_eq!(remaining(vec![unseen()], &all), [unseen()]);
        assert_eq!(remaining(vec![unseen()], &[GainProof::Person]), []);
    }

    #[test]
    fn without_a_proof_every_doubt_stays() {
        for doubt in [state(), large(), beyond(), unseen(), stale()] {
            assert_eq!(remaining(vec![doubt.clone()], &[]), [doubt]);
        }
    }

    #[test]
    fn a_contract_proves_state_and_large_gains_within_the_roofline() {
        let contract = [GainProof::Contract];
        assert_eq!(remaining(vec![state(), large()], &contract), []);
        assert_eq!(remaining(vec![beyond()], &contract), []);
        assert_eq!(remaining(vec![large(), beyond()], &contract), [large(), beyond()]);
    }

    #[test]
    fn counted_work_proves_state_and_large_gains_within_the_roofline() {
        let work = [GainProof::Work];
        assert_eq!(remaining(vec![state(), large(), stale()], &work), []);
        assert_eq!(remaining(vec![beyond()], &work), [beyond()]);
        assert_eq!(remaining(vec![large(), beyond()], &work), [large(), beyond()]);
        assert_eq!(remaining(vec![state(), unseen()], &work), [unseen()]);
    }

    #[test]
    fn karves_own_strategy_explains_a_large_gain_and_nothing_else() {
        let own = [GainProof::OwnStrategy];
        assert_eq!(remaining(vec![large()], &own), []);
        assert_eq!(remaining(vec![state(), large(), stale()], &own), [state(), stale()]);
        assert_eq!(remaining(vec![large(), beyond()], &own), [large(), beyond()]);
    }

    #[test]
    fn a_person_may_allow_everything() {
        assert_eq!(remaining(vec![state(), large(), beyond()], &[GainProof::Person]), []);
        assert_eq!(allowed_round("allow 3"), Some(3));
        assert_eq!(allowed_round("allow 3: I read the diff"), Some(3));
        assert_eq!(allowed_round("do not allow 3"), None);
        assert_eq!(allowed_round("allow"), None);
    }

    #[test]
    fn only_state_that_is_more_than_advice_is_a_doubt() {
        let finding = |rule: &str, severity| AuditFinding {
            rule: rule.into(),
            severity,
            bucket: None,
            file: "k.c".into(),
            line: 1,
            what: "s".into(),
        };
        assert!(state_in(&[finding("static-state", Severity::Suspicious)]).is_some());
        assert!(state_in(&[finding("identity-cache", Severity::Suspicious)]).is_some());
        assert_eq!(state_in(&[finding("static-buffer", Severity::Advice)]), None);
        assert_eq!(state_in(&[finding("env-read", Severity::Suspicious)]), None);
    }
}
