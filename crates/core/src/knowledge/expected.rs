//! What an entry promises in a place: one rule for the search, the entry itself and the brief.
//!
//! All of what was measured of such an operation counts, and a bounded part of what was measured
//! of others or is only claimed: a loop that shows a gain of a hundred times says that there is
//! one, and little about how large it is elsewhere.

use super::{Entry, Evidence, Kind, Known, Situation, standing::weigh};

/// How much of a log speedup is believed that was claimed, or shown of another operation.
const DISTANT_TRUST: f64 = 0.5;
/// Log speedup that a claim without evidence is worth at most.
const CLAIM_GAIN_MAX: f64 = 0.25;
/// Log speedup that evidence from other operations is worth at most, however large it is there.
const ELSEWHERE_GAIN_MAX: f64 = 0.5;
/// What stands for the speedup of an entry of which nothing is shown or said.
pub(super) const UNSAID_RATIO: f64 = 1.05;

/// What an entry promises, and on what that rests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// The speedup that was shown, or is said.
    pub shown: f64,
    /// Runs for and against it that count here.
    pub n_evidence: u32,
    /// Whether all of them were about other operations, or only told.
    pub elsewhere: bool,
}

/// What an entry promises in a place; without one, everything was shown elsewhere.
pub fn expected(entry: &Entry, at: Option<&Situation>) -> Expected {
    let counts = entry.evidence.iter().filter(|e| e.disputed.is_empty());
    let is_near = |e: &&Evidence| at.is_some_and(|at| at.shares_op(&e.workload));
    let (near, far): (Vec<&Evidence>, Vec<&Evidence>) = counts.partition(is_near);
    // Evidence for the same kind of operation counts alone, where there is any.
    let of = if near.is_empty() { far } else { near.clone() };
    // What is only told was not seen here either.
    let elsewhere = !of.is_empty() && near.iter().all(|e| e.reported);
    let (n_for, n_against) = weigh(of.iter().copied());
    let of_these = Entry {
        evidence: of.into_iter().cloned().collect(),
        impact: entry.impact,
        ..Entry::default()
    };
    let shown = match (n_for, n_against) {
        // What only failed promises nothing, whatever is said of it.
        (0, 1..) => of_these.expected_ratio().min(1.0),
        _ => of_these.expected_ratio(),
    };
    Expected {
        shown,
        n_evidence: u32::try_from(n_for + n_against).unwrap_or(u32::MAX),
        elsewhere,
    }
}

impl Expected {
    /// What a campaign remembers of it.
    pub fn of(known: &Known) -> Self {
        Self {
            shown: known.expected_ratio,
            n_evidence: known.n_evidence,
            elsewhere: known.elsewhere,
        }
    }

    /// The log speedup that is promised. `kept_share` is how much of their promises the entries
    /// kept that a campaign applied; 1 where none was.
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

    /// The speedup in words, and on what it rests; nothing for what promises none: an anti-pattern,
    /// a way of working, and what says nothing of its gain.
    pub fn describe(&self, kind: Kind, kept_share: f64) -> Option<String> {
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
                "{ratio:.2}x expected, measured of other operations only ({:.2}x in {runs})",
                self.shown
            ),
            (_, false) => format!("{ratio:.2}x expected, measured of such operations ({runs})"),
        })
    }
}

/// Whether entries of a kind promise a speedup.
pub fn promises(kind: Kind) -> bool {
    match kind {
        Kind::Optimization | Kind::Case | Kind::Tip => true,
        Kind::AntiPattern | Kind::Technique => false,
    }
}
