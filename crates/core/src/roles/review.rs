//! A review of a change: what a reviewer says before the gate, and what the figures say about the
//! same five signals afterwards. Both are advice: no gate and no verdict reads them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum length of a reviewer's text, in characters.
const REASON_CHARS: usize = 2_000;
/// What a reviewer advises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ReviewAdvice {
    /// No objections.
    Agree,
    /// What it can gain is within the noise.
    DowngradeToNoiseBound,
    /// It should not be kept.
    DowngradeToRollback,
    /// A person should look at it.
    EscalateHuman,
}

/// One of the five aspects of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewSignal {
    /// Whether the measurement matches the claim.
    HypothesisMetricAlignment,
    /// Whether something else changed than what was named.
    OffTargetGain,
    /// Whether the quick set and all cases agree.
    QuickVsFull,
    /// Whether it is more than noise.
    NoiseBand,
    /// Whether results that are claimed to be identical are.
    BitIdentity,
}

/// The result for a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stance {
    /// It supports the change, or does not contradict it.
    Pass,
    /// It contradicts it.
    Fail,
    /// It cannot be determined.
    Unknown,
}

/// A reviewer's opinion of a candidate before its gate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Review {
    /// The tree that was looked at.
    pub tree: String,
    /// The advice; `None` if the review failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<ReviewAdvice>,
    /// Why, in the reviewer's words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The five signals.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub signals: BTreeMap<ReviewSignal, Stance>,
    /// Why there is no review, if there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub failed: String,
}

/// What the figures say about a signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SignalAssessment {
    /// The signal.
    pub signal: ReviewSignal,
    /// Its result.
    pub stance: Stance,
    /// Why, with the figures.
    pub why: String,
}

names!(ReviewAdvice {
    Agree => "AGREE",
    DowngradeToNoiseBound => "DOWNGRADE_TO_NOISE_BOUND",
    DowngradeToRollback => "DOWNGRADE_TO_ROLLBACK",
    EscalateHuman => "ESCALATE_HUMAN",
});
names!(ReviewSignal {
    HypothesisMetricAlignment => "hypothesis_metric_alignment",
    OffTargetGain => "off_target_gain",
    QuickVsFull => "quick_vs_full",
    NoiseBand => "noise_band",
    BitIdentity => "bit_identity",
});
names!(Stance { Pass => "pass", Fail => "fail", Unknown => "unknown" });

impl Review {
    /// A review that failed.
    pub fn failed(tree: &str, why: &str) -> Self {
        Self {
            tree: tree.to_owned(),
            failed: why.chars().take(REASON_CHARS).collect(),
            ..Self::default()
        }
    }

    /// Whether it objects to the change.
    pub fn doubts(&self) -> bool {
        self.advice == Some(ReviewAdvice::DowngradeToRollback)
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
