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

impl ReviewAdvice {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::Agree, Self::DowngradeToNoiseBound, Self::DowngradeToRollback, Self::EscalateHuman];

    /// Its name in a review.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agree => "AGREE",
            Self::DowngradeToNoiseBound => "DOWNGRADE_TO_NOISE_BOUND",
            Self::DowngradeToRollback => "DOWNGRADE_TO_ROLLBACK",
            Self::EscalateHuman => "ESCALATE_HUMAN",
        }
    }

    /// The advice with that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|advice| advice.name() == name)
    }
}

impl ReviewSignal {
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

    /// The stance with that name.
    pub fn by_name(name: &str) -> Option<Self> {
        let all = [Self::Pass, Self::Fail, Self::Unknown];
        all.into_iter().find(|stance| stance.name() == name)
    }
}

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
        match self.advice {
            Some(ReviewAdvice::DowngradeToRollback) => true,
            Some(
                ReviewAdvice::Agree
                | ReviewAdvice::DowngradeToNoiseBound
                | ReviewAdvice::EscalateHuman,
            )
            | None => false,
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
