//! What becomes of a keep whose figures are too good to be true.

use super::{KeepNote, Verdict, judge_gate};
use crate::integrity::ImplausibleReason;

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
