//! What becomes of a keep whose figures are too good to be true.

use super::{DropReason, KeepNote, Verdict, judge_gate};
use crate::comparison::{ClaimCheck, Comparison};
use crate::integrity::{self, AuditFinding, GainDoubt, GainProof, ImplausibleReason, MutantCheck};

/// A figure of a case that is too good.
#[derive(Clone, Debug, PartialEq)]
pub struct ImplausibleFigure {
    /// Index of the case in the charter.
    pub case: usize,
    /// Its name.
    pub name: String,
    /// Why it is implausible.
    pub why: ImplausibleReason,
    /// Whether it is certainly impossible; otherwise it is worth a look.
    pub certain: bool,
}

/// Judges a keep with its doubts: the impossible is dropped, the implausible is noted.
pub fn judge_doubts(verdict: Verdict, doubts: &[ImplausibleFigure]) -> Verdict {
    let certain = doubts.iter().find(|doubt| doubt.certain);
    let dropped = certain.and_then(|doubt| judge_gate(&doubt.why.gate(&doubt.name), false));
    if let Some(dropped) = dropped {
        return dropped;
    }
    let mut cases: Vec<usize> = doubts.iter().map(|doubt| doubt.case).collect();
    cases.dedup();
    let mut verdict = verdict;
    match &mut verdict {
        Verdict::Keep { notes } | Verdict::KeepGated { notes, .. } if !cases.is_empty() => {
            notes.push(KeepNote::NearImpossible { cases });
        }
        Verdict::Keep { .. }
        | Verdict::KeepGated { .. }
        | Verdict::Drop { .. }
        | Verdict::Undecided { .. } => {}
    }
    verdict
}

/// Why a keep needs a proof, before any proof: a gain that is too large, a change that keeps state
/// or prints, or a clock that contradicts it.
pub fn find_doubts(
    verdict: &Verdict,
    findings: &[AuditFinding],
    comparison: Option<&Comparison>,
) -> Vec<GainDoubt> {
    let (Verdict::Keep { notes } | Verdict::KeepGated { notes, .. }) = verdict else {
        return Vec::new();
    };
    let mut doubts: Vec<GainDoubt> = integrity::state_in(findings).into_iter().collect();
    doubts.extend(integrity::output_in(findings));
    if let Some(comparison) = comparison {
        let estimates = comparison.cases.iter().map(|case| &case.estimate);
        // What is shown at least: a single noisy case is no evidence of more than 10x.
        let shown = estimates.map(|estimate| estimate.low.unwrap_or(estimate.ratio));
        let ratio = shown.fold(comparison.overall.ratio, f64::max);
        if ratio > integrity::ROUND_RATIO_MAX {
            doubts.push(GainDoubt::Ratio { ratio });
        }
        if let Some(ClaimCheck { claimed_s, seen_s }) = comparison.contradiction {
            doubts.push(GainDoubt::Clock { claimed_s, seen_s });
        }
    }
    for note in notes {
        if let KeepNote::NearImpossible { cases } = note {
            doubts.push(GainDoubt::Roofline { cases: cases.clone() });
        }
    }
    doubts
}

/// What speaks for a candidate whose gain is doubted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProofState {
    /// What shows that it does the work.
    pub proofs: Vec<GainProof>,
    /// Why its work counts do not, if they could have.
    pub work: Option<String>,
}

/// Judges a keep with what proves that the work was done: without a proof, a gain that is doubted
/// is not kept. No policy or setting changes this.
pub fn judge_proof(
    verdict: Verdict,
    round: u32,
    doubts: Vec<GainDoubt>,
    state: ProofState,
) -> Verdict {
    let doubts = integrity::remaining(doubts, &state.proofs);
    match doubts.is_empty() {
        true => verdict,
        false => {
            let reason = DropReason::Unproven { round, doubts, work: state.work };
            Verdict::Drop { reason }
        }
    }
}

impl Verdict {
    /// The same verdict; a keep notes that the tests do not notice bugs in it, if that was seen.
    #[must_use]
    pub(crate) fn noting(mut self, mutants: Option<MutantCheck>) -> Self {
        let Some(MutantCheck { tested: planted @ 1.., noticed: false }) = mutants else {
            return self;
        };
        match &mut self {
            Self::Keep { notes } | Self::KeepGated { notes, .. } => {
                notes.push(KeepNote::BlindTests { planted });
            }
            Self::Drop { .. } | Self::Undecided { .. } => {}
        }
        self
    }
}
