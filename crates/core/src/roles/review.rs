//! A second look at a change: what a reviewer says before the gate, and what the figures say of the
//! same five signals afterwards. Both are advice: no gate and no verdict reads them.

use crate::campaign::RoundSummary;
use crate::comparison::Estimate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Characters of what a reviewer says.
const REASON_CHARS: usize = 2_000;
/// The share of the predicted gain that must be seen.
const ALIGNED_SHARE: f64 = 0.25;
/// Points below the predicted gain that may be missing, in percent.
const ALIGNED_POINTS: f64 = 1.0;
/// A gain counts from so many standard errors on.
const SIGMAS: f64 = 2.0;
/// Standard errors between the ends of an interval of 95%.
const INTERVAL_SIGMAS: f64 = 3.92;
/// The signal-to-noise ratio that the same bits have at least, in decibels.
const SAME_BITS_DB: f64 = 80.0;
/// Words that claim the same bits.
const SAME_BITS: [&str; 4] = ["bit-identical", "bitwise", "bit identical", "bit-exact"];

/// What a reviewer advises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Advice {
    /// Nothing speaks against it.
    Agree,
    /// What it can gain is within the noise.
    DowngradeToNoiseBound,
    /// It should not be taken.
    DowngradeToRollback,
    /// A person should look at it.
    EscalateHuman,
}

/// One of the five things a review looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// Whether what is seen fits what was claimed.
    HypothesisMetricAlignment,
    /// Whether something else changed than what was named.
    OffTargetGain,
    /// Whether few cases and all cases say the same.
    QuickVsFull,
    /// Whether it is more than noise.
    NoiseBand,
    /// Whether results that are called the same are the same.
    BitIdentity,
}

/// How a signal stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stance {
    /// It speaks for the change, or not against it.
    Pass,
    /// It speaks against it.
    Fail,
    /// It cannot be told.
    Unknown,
}

/// What a reviewer said of a candidate before its gate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Review {
    /// The tree that was looked at.
    pub tree: String,
    /// What is advised; nothing if the review failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<Advice>,
    /// Why, in the reviewer's words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The five signals.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub signals: BTreeMap<Signal, Stance>,
    /// Why there is no review, if there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub failed: String,
}

/// What the figures say of a signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Said {
    /// The signal.
    pub signal: Signal,
    /// How it stands.
    pub stance: Stance,
    /// Why, with the figures.
    pub why: String,
}

impl Advice {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Agree,
        Self::DowngradeToNoiseBound,
        Self::DowngradeToRollback,
        Self::EscalateHuman,
    ];

    /// Its name in a review.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agree => "AGREE",
            Self::DowngradeToNoiseBound => "DOWNGRADE_TO_NOISE_BOUND",
            Self::DowngradeToRollback => "DOWNGRADE_TO_ROLLBACK",
            Self::EscalateHuman => "ESCALATE_HUMAN",
        }
    }

    /// The advice of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|advice| advice.name() == name)
    }
}

impl Signal {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::HypothesisMetricAlignment,
        Self::OffTargetGain,
        Self::QuickVsFull,
        Self::NoiseBand,
        Self::BitIdentity,
    ];

    /// Its name in a review.
    pub fn name(self) -> &'static str {
        match self {
            Self::HypothesisMetricAlignment => "hypothesis_metric_alignment",
            Self::OffTargetGain => "off_target_gain",
            Self::QuickVsFull => "quick_vs_full",
            Self::NoiseBand => "noise_band",
            Self::BitIdentity => "bit_identity",
        }
    }
}

impl Stance {
    /// Its name in a review.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Unknown => "unknown",
        }
    }

    /// The stance of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        let all = [Self::Pass, Self::Fail, Self::Unknown];
        all.into_iter().find(|stance| stance.name() == name)
    }
}

impl Review {
    /// A review that did not come about.
    pub fn failed(tree: &str, why: &str) -> Self {
        Self {
            tree: tree.to_owned(),
            failed: why.chars().take(REASON_CHARS).collect(),
            ..Self::default()
        }
    }

    /// Whether it speaks against the change.
    pub fn doubts(&self) -> bool {
        match self.advice {
            Some(Advice::DowngradeToRollback) => true,
            Some(Advice::Agree | Advice::DowngradeToNoiseBound | Advice::EscalateHuman) | None => {
                false
            }
        }
    }

    /// In words.
    pub fn describe(&self) -> String {
        let Some(advice) = self.advice else {
            return format!("no review: {}", self.failed);
        };
        let against = self.signals.iter().filter(|(_, is)| **is == Stance::Fail);
        let against: Vec<&str> = against.map(|(signal, _)| signal.name()).collect();
        let against = match against.is_empty() {
            true => String::new(),
            false => format!(" ({})", against.join(", ")),
        };
        format!("{}{against}: {}", advice.name(), self.reason)
    }
}

/// The five signals of a round that was measured, from its figures alone.
pub fn signals_of(round: &RoundSummary) -> Vec<Said> {
    let Some(comparison) = round.comparison.as_ref().or(round.quick.as_ref()) else {
        return Vec::new();
    };
    let seen = &comparison.overall;
    let said = |signal, (stance, why)| Said {
        signal,
        stance,
        why,
    };
    vec![
        said(Signal::HypothesisMetricAlignment, alignment(round, seen)),
        said(Signal::OffTargetGain, off_target(round)),
        said(Signal::QuickVsFull, quick_vs_full(round)),
        said(Signal::NoiseBand, noise_band(seen)),
        said(Signal::BitIdentity, bit_identity(round)),
    ]
}

fn percent(ratio: f64) -> f64 {
    (ratio - 1.0) * 100.0
}

/// The standard error of a log speedup, from its interval.
fn sigma(seen: &Estimate) -> Option<f64> {
    let width = seen.high?.ln() - seen.low?.ln();
    (width.is_finite() && width >= 0.0).then_some(width / INTERVAL_SIGMAS)
}

fn alignment(round: &RoundSummary, seen: &Estimate) -> (Stance, String) {
    let Some(hypothesis) = &round.hypothesis else {
        return (Stance::Unknown, "there is no hypothesis".into());
    };
    let (predicted, observed) = (percent(hypothesis.expected_ratio), percent(seen.ratio));
    let least = (ALIGNED_SHARE * predicted).min(predicted - ALIGNED_POINTS);
    let figures = format!("{predicted:+.1}% was expected and {observed:+.1}% seen");
    let Some(sigma) = sigma(seen) else {
        return (Stance::Unknown, format!("{figures}, without an interval"));
    };
    let stance = match observed >= least && seen.ratio.ln() >= SIGMAS * sigma {
        true => Stance::Pass,
        false => Stance::Fail,
    };
    (
        stance,
        format!("{figures}; at least {least:+.1}% and two standard errors count"),
    )
}

fn off_target(round: &RoundSummary) -> (Stance, String) {
    let named = round.hypothesis.as_ref().map_or(&[][..], |h| &h.files);
    let changed = round.candidate.as_ref().map_or(&[][..], |c| &c.files);
    if named.is_empty() || changed.is_empty() {
        return (Stance::Unknown, "no files were named".into());
    }
    let others: Vec<&str> = changed
        .iter()
        .filter(|file| !named.contains(file))
        .map(String::as_str)
        .collect();
    match others.is_empty() {
        true => (Stance::Pass, "only named files changed".into()),
        false => (
            Stance::Fail,
            format!("not named, but changed: {}", others.join(", ")),
        ),
    }
}

fn quick_vs_full(round: &RoundSummary) -> (Stance, String) {
    let (Some(quick), Some(full)) = (&round.quick, &round.comparison) else {
        return (Stance::Unknown, "one set was measured".into());
    };
    let (quick, full) = (quick.overall.ratio, full.overall.ratio);
    let stance = match (quick > 1.0) == (full > 1.0) {
        true => Stance::Pass,
        false => Stance::Fail,
    };
    (
        stance,
        format!("{quick:.3}x on the quick set, {full:.3}x on all cases"),
    )
}

fn noise_band(seen: &Estimate) -> (Stance, String) {
    match (seen.low, seen.high) {
        (Some(low), Some(high)) if low > 1.0 || high < 1.0 => (
            Stance::Pass,
            format!("[{low:.3}, {high:.3}] does not hold 1"),
        ),
        (Some(low), Some(high)) => (Stance::Fail, format!("[{low:.3}, {high:.3}] holds 1")),
        _ => (Stance::Unknown, "there is no interval".into()),
    }
}

fn bit_identity(round: &RoundSummary) -> (Stance, String) {
    let claimed = round
        .hypothesis
        .as_ref()
        .map(|h| format!("{} {}", h.title, h.mechanism));
    let summary = round.candidate.as_ref().map(|c| c.summary.clone());
    let text = format!(
        "{} {}",
        claimed.unwrap_or_default(),
        summary.unwrap_or_default()
    );
    let text = text.to_lowercase();
    if !SAME_BITS.iter().any(|word| text.contains(word)) {
        return (Stance::Pass, "the same bits are not claimed".into());
    }
    let worst = round.errors.iter().map(|seen| seen.error.snr_db);
    let worst = worst.fold(f64::INFINITY, f64::min);
    if !worst.is_finite() {
        let why = "the same bits are claimed, and no error was measured";
        return (Stance::Unknown, why.into());
    }
    let stance = match worst >= SAME_BITS_DB {
        true => Stance::Pass,
        false => Stance::Fail,
    };
    (
        stance,
        format!("the same bits are claimed, and {worst:.0} dB was measured"),
    )
}
