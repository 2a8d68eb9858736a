//! The expected speedup of an entry in a place: one rule for the search, the entry and the brief.
//!
//! Measurements of the same kind of operation count in full; measurements of other operations and
//! mere claims count in part, up to a bound: a loop that gains a factor of a hundred shows that
//! there is a gain, and little about its size elsewhere.

use super::{Entry, EntryKind, Evidence, KnownEntry, Situation, standing::weigh};

/// The share of a log speedup that is believed if it was claimed, or shown for another operation.
const DISTANT_TRUST: f64 = 0.5;
/// The largest log speedup of a claim without evidence.
const CLAIM_GAIN_MAX: f64 = 0.25;
/// The largest log speedup of evidence from other operations, however large it is there.
const ELSEWHERE_GAIN_MAX: f64 = 0.5;
/// The speedup of an entry without evidence or claims.
pub(super) const UNSAID_RATIO: f64 = 1.05;

/// What an entry promises, and the basis for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpectedGain {
    /// The speedup that was shown or claimed.
    pub shown: f64,
    /// Runs for and against it that count here.
    pub n_evidence: u32,
    /// Whether all of them were about other operations, or only reported.
    pub elsewhere: bool,
}

/// What an entry promises in a place; without a place, all evidence counts as from elsewhere.
pub fn expected(entry: &Entry, at: Option<&Situation>) -> ExpectedGain {
    let counts = entry.evidence.iter().filter(|e| e.disputed.is_empty());
    let is_near = |e: &&Evidence| at.is_some_and(|at| at.shares_op(&e.workload));
    let (near, far): (Vec<&Evidence>, Vec<&Evidence>) = counts.partition(is_near);
    // If there is evidence for the same kind of operation, only that counts.
    let of = if near.is_empty() { far } else { near.clone() };
    // Evidence that was only reported was not measured here either.
    let elsewhere = !of.is_empty() && near.iter().all(|e| e.reported);
    let (n_for, n_against) = weigh(of.iter().copied());
    let of_these = Entry {
        evidence: of.into_iter().cloned().collect(),
        impact: entry.impact,
        ..Entry::default()
    };
    let shown = match (n_for, n_against) {
        // An entry with only failures promises nothing, whatever it claims.
        (0, 1..) => of_these.expected_ratio().min(1.0),
        _ => of_these.expected_ratio(),
    };
    ExpectedGain {
        shown,
        n_evidence: u32::try_from(n_for + n_against).unwrap_or(u32::MAX),
        elsewhere,
    }
}

impl ExpectedGain {
    /// The promise of an entry as stored in a campaign.
    pub fn of(known: &KnownEntry) -> Self {
        Self {
            shown: known.expected_ratio,
            n_evidence: known.n_evidence,
            elsewhere: known.elsewhere,
        }
    }

    /// The promised log speedup. `kept_share` is the fraction of their promises that applied
    /// entries have delivered in this campaign; 1 if none was applied.
    pub fn gain(&self, kept_share: f64) -> f64 {
        let gain = self.shown.max(1e-6).ln();
        let part = |most: f64| most * (1.0 - (-DISTANT_TRUST * gain / most).exp());
        match (self.n_evidence > 0, self.elsewhere) {
            (true, false) => gain,
            (true, true) | (false, _) if gain <= 0.0 => gain,
            (true, true) => kept_share * part(ELSEWHERE_GAIN_MAX),
            (false, _) => part(CLAIM_GAIN_MAX),
        }
    }

    /// The speedup in words, with its basis; `None` for entries that promise none: an anti-pattern,
    /// a way of working, and an entry that says nothing about its gain.
    pub fn describe(&self, kind: EntryKind, kept_share: f64) -> Option<String> {
        let unsaid = self.n_evidence == 0 && (self.shown - UNSAID_RATIO).abs() < 1e-12;
        if !promises(kind) || unsaid {
            return None;
        }
        let ratio = self.gain(kept_share).exp();
        let runs = match self.n_evidence {
            1 => "1 run".to_owned(),
            n => format!("{n} runs"),
        };
        Some(match (self.n_evidence, self.elsewhere) {
            (0, _) => format!("{ratio:.2}x expected, only claimed"),
            (_, true) => format!(
                "{ratio:.2}x expected, measured on other operations only ({:.2}x in {runs})",
                self.shown
            ),
            (_, false) => format!("{ratio:.2}x expected, measured on such operations ({runs})"),
        })
    }
}

/// Whether entries of a kind promise a speedup.
pub fn promises(kind: EntryKind) -> bool {
    match kind {
        EntryKind::Optimization | EntryKind::Case | EntryKind::Tip => true,
        EntryKind::AntiPattern | EntryKind::Technique => false,
    }
}
