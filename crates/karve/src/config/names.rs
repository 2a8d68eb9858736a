//! The words that some keys of `karve.toml` accept, and their counterparts in core.
//!
//! Core's own enums have no schema, so each has a twin here whose variants are serialized the
//! same way; a test deserializes every word of the schema as core's type.

use karve_core::policy::{FullWhen, StopRule};
use schemars::JsonSchema;
use serde::Deserialize;

/// The rules to start from.
#[derive(JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[allow(dead_code, reason = "only its schema is used")]
pub(super) enum PresetName {
    /// A gain is at least 2%, proven to exceed 1%, and no case gets 2% slower.
    Strict,
    /// A gain is at least 1%, and a case may get less than 5% slower.
    Primus,
    /// Any proven gain counts, but a small one ends the campaign; 25 rounds.
    Tilegym,
    /// Keep what improves, drop what slows any case by more than 5%.
    Trtllm,
    /// Judged on all cases together; a round may bundle several changes.
    HyperMla,
}

/// When a gain on the quick cases must be confirmed on all cases.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum FullWhenName {
    /// Before every keep.
    Always,
    /// Below this speedup, for high-risk changes, and at the end.
    Borderline(f64),
}

impl FullWhenName {
    pub(super) fn rule(self) -> FullWhen {
        match self {
            Self::Always => FullWhen::Always,
            Self::Borderline(ratio) => FullWhen::Borderline { ratio },
        }
    }
}

/// A reason to stop.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum StopName {
    /// The goal is reached.
    TargetMet,
    /// This share of the measured peak is reached.
    HardwareLimit(f64),
    /// The rounds are used up.
    Rounds,
    /// The hours are used up.
    WallTime,
    /// The agent budget is used up.
    AgentCost,
    /// This many rounds in a row gained nothing.
    NoGain(#[schemars(range(min = 1, max = 100_000))] u32),
    /// A small gain was kept.
    SmallGainKept,
    /// The agent has no further hypothesis.
    ProposalsExhausted,
}

impl StopName {
    pub(super) fn rule(self) -> StopRule {
        match self {
            Self::TargetMet => StopRule::TargetMet,
            Self::HardwareLimit(share) => StopRule::HardwareLimit { share },
            Self::Rounds => StopRule::Rounds,
            Self::WallTime => StopRule::WallTime,
            Self::AgentCost => StopRule::AgentCost,
            Self::NoGain(rounds) => StopRule::NoGain { rounds },
            Self::SmallGainKept => StopRule::SmallGainKept,
            Self::ProposalsExhausted => StopRule::ProposalsExhausted,
        }
    }
}

/// The schema of a core enum that is serialized as one word.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident: $($word:ident),+) => {
        $(#[$doc])*
        #[derive(JsonSchema)]
        #[serde(rename_all = "snake_case")]
        #[allow(dead_code, reason = "only its schema is used")]
        pub(super) enum $name { $($word),+ }
    };
}

words!(
    /// Which direction is better.
    BetterName: Lower, Higher
);
words!(
    /// When the parent is profiled.
    ProfileWhenName: EveryRound, OnChange, OnEscalation
);
words!(
    /// What the first round waits for.
    FirstVerdictName: AfterChecks, Soon, AtOnce
);
words!(
    /// How to handle a proven but small gain.
    SmallGainName: Remeasure, AcceptNote, AcceptAndStop, Reject
);
words!(
    /// The action after a streak of rounds without a gain.
    StreakActionName: Diagnose, Review, Reprofile, InspectCode, CompareOrAsk
);
words!(
    /// Which clocks decide a duel.
    ClockRuleName: Metric, Auto, Both
);
words!(
    /// Whether candidates are audited.
    AuditModeName: On, Off
);
words!(
    /// Which error `alpha` bounds.
    ErrorRuleName: FamilyWise, FalseDiscovery
);
words!(
    /// Which blocks only warm up.
    WarmUpRuleName: First, Detected
);
words!(
    /// What happens when a reviewer objects to a change.
    ReviewRuleName: Record, Repair, Skip, Downgrade
);
words!(
    /// What happens to a change with parts that its hypothesis does not state.
    BundleRuleName: Record, Refuse, Ablate
);
words!(
    /// Where the GPU of a target is.
    GpuPlaceName: Here, Elsewhere
);
