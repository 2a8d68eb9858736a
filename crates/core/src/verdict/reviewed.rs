//! A keep after a review of its figures.

use super::{DropReason, KeepNote, Verdict};
use crate::roles::{Review, ReviewAdvice};

/// A keep after the review of its figures: a review can only take from it.
pub(crate) fn judge_review(verdict: Verdict, review: &Review) -> Verdict {
    match (review.advice, verdict) {
        (Some(ReviewAdvice::DowngradeToRollback), verdict) if verdict.keeps() => {
            Verdict::Drop { reason: DropReason::Downgraded { why: review.describe() } }
        }
        (Some(ReviewAdvice::DowngradeToNoiseBound), verdict) => verdict.noted(KeepNote::NoiseBound),
        (_, verdict) => verdict,
    }
}

impl Verdict {
    /// The same verdict with one more note, if it keeps.
    fn noted(mut self, note: KeepNote) -> Self {
        match &mut self {
            Self::Keep { notes } | Self::KeepGated { notes, .. } => notes.push(note),
            Self::Drop { .. } | Self::Undecided { .. } => {}
        }
        self
    }
}
