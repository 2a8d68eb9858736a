//! The tables `[policy]`, `[policy.accept]`, `[policy.controls]` and `[policy.tune]` of
//! `karve.toml`.

use super::names::{
    BundleRuleName, ErrorRuleName, FirstVerdictName, FullWhenName, PresetName, ProfileWhenName,
    ReviewRuleName, SmallGainName, StopName, StreakActionName, WarmUpRuleName,
};
use super::values::OrNone;
use karve_core::policy::{
    BundleRule, ErrorRule, FirstVerdict, Preset, ProfileWhen, ReviewRule, SmallGain, StreakAction,
    WarmUpRule,
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The rules; every key overrides the preset.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PolicyTable {
    /// The rules to start from; `strict` by default.
    #[schemars(with = "Option<PresetName>")]
    pub(super) preset: Option<Preset>,
    /// What counts as faster and as slower.
    #[serde(default)]
    pub(super) accept: AcceptTable,
    /// When a gain on the quick cases must be confirmed on all cases.
    pub(super) full_when: Option<FullWhenName>,
    /// When the parent is profiled.
    #[schemars(with = "Option<ProfileWhenName>")]
    pub(super) profile_when: Option<ProfileWhen>,
    /// Whether rounds without a gain profile a kernel again that was profiled as deeply before.
    pub(super) profile_again: Option<bool>,
    /// Whether the first round waits for the A/A test and the first profile.
    #[schemars(with = "Option<FirstVerdictName>")]
    pub(super) first_verdict: Option<FirstVerdict>,
    /// Reasons to stop, in order.
    pub(super) stop: Option<Vec<StopName>>,
    /// Actions after a streak of rounds without a gain: `{ 2 = "review", 3 = "inspect_code" }`.
    #[schemars(with = "Option<BTreeMap<String, StreakActionName>>")]
    pub(super) on_streak: Option<BTreeMap<String, StreakAction>>,
    /// Maximum number of rounds, unless `limits.rounds` is set.
    #[schemars(range(min = 1, max = 100_000))]
    pub(super) rounds_max: Option<u32>,
    /// Maximum minutes for one round, or "none".
    pub(super) round_minutes: Option<OrNone<u32>>,
    /// How many repair attempts a round allows after a failed build or correctness check.
    #[schemars(range(min = 0, max = 20))]
    pub(super) debug_retries: Option<u32>,
    /// How often a proposal may be refused before the round is dropped.
    #[schemars(range(min = 1, max = 20))]
    pub(super) proposal_tries: Option<u32>,
    /// How often a hypothesis is implemented; the best implementation is measured. 1 by default.
    #[schemars(range(min = 1, max = 8))]
    pub(super) best_of: Option<u32>,
    /// Maximum number of changes in one hypothesis.
    #[schemars(range(min = 1, max = 100))]
    pub(super) changes_per_round: Option<u32>,
    /// A hypothesis at least this similar to a dropped one is a duplicate.
    pub(super) duplicate_similarity: Option<f64>,
    /// The number of the baseline in tables.
    #[schemars(range(min = 0, max = 1))]
    pub(super) baseline_number: Option<u32>,
    /// The number of the first round.
    #[schemars(range(min = 1, max = 2))]
    pub(super) first_round: Option<u32>,
    /// Directions that a hypothesis must name when the rounds before it stagnate, its own included.
    #[schemars(range(min = 1, max = 12))]
    pub(super) stagnation_directions: Option<u32>,
    /// A kept gain below this speedup lowers the priority of its direction, or "none".
    pub(super) modest_gain_ratio: Option<OrNone<f64>>,
    /// A bottleneck with one of these words raises a question for you.
    pub(super) ask_about: Option<Vec<String>>,
    /// The class of a kernel by its operations per byte, and the order of entries for each class.
    #[serde(default)]
    pub(super) playbook: PlaybookTable,
    /// How often the measurement itself is checked by an A/A test.
    #[serde(default)]
    pub(super) controls: ControlsTable,
    /// How far candidates with knobs are tuned before they are measured.
    #[serde(default)]
    pub(super) tune: LadderTable,
    /// What happens when a reviewer objects to a change.
    #[schemars(with = "Option<ReviewRuleName>")]
    pub(super) review: Option<ReviewRule>,
    /// What happens to a change with parts that its hypothesis does not state.
    #[schemars(with = "Option<BundleRuleName>")]
    pub(super) bundles: Option<BundleRule>,
}

/// The class of a kernel by its operations per byte, and the order of entries for each class.
#[derive(Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PlaybookTable {
    /// Below this a kernel is memory-bound.
    pub(super) memory_below: Option<f64>,
    /// Above this it is compute-bound.
    pub(super) compute_above: Option<f64>,
    /// Letters of the playbook for memory-bound kernels, the first first.
    pub(super) memory: Option<String>,
    /// The same for compute-bound kernels.
    pub(super) compute: Option<String>,
}

/// How far candidates with knobs are tuned before they are measured.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LadderTable {
    /// Maximum share of the campaign's hours for tuning; 0 turns it off.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub(super) share: Option<f64>,
    /// Maximum minutes for one candidate.
    #[schemars(range(min = 0.0, max = 100_000.0))]
    pub(super) minutes: Option<f64>,
    /// Settings that show the trend.
    #[schemars(range(min = 1, max = 10_000))]
    pub(super) few: Option<u32>,
    /// Settings of the coarse search, including the previous ones.
    #[schemars(range(min = 1, max = 100_000))]
    pub(super) coarse: Option<u32>,
    /// Settings of the fine search, including the previous ones.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(super) fine: Option<u32>,
}

/// How often the measurement itself is checked by an A/A test of the incumbent.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ControlsTable {
    /// Run at the baseline and after every N rounds; 0 turns it off.
    #[schemars(range(min = 0, max = 100_000))]
    pub(super) every: Option<u32>,
    /// Blocks of one A/A test.
    #[schemars(range(min = 8, max = 4_000))]
    pub(super) blocks: Option<u32>,
}

/// What counts as faster and as slower. Ratios are speedups: 1.02 is 2% faster.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AcceptTable {
    /// The speedup that must be disproved as an upper bound.
    pub(super) null_ratio: Option<f64>,
    /// The smallest speedup worth keeping.
    pub(super) effect_ratio: Option<f64>,
    /// Family-wise error over all rounds.
    pub(super) alpha: Option<f64>,
    /// Evidence against the minimum effect, and for or against a regression.
    pub(super) guard_evidence: Option<f64>,
    /// How much slower a case may become, or "none" to ignore single cases.
    pub(super) case_regress_ratio: Option<OrNone<f64>>,
    /// A case that is shown to lose more than this is reverted, or "none".
    pub(super) case_loss_ratio: Option<OrNone<f64>>,
    /// The same for cases marked minor.
    pub(super) minor_regress_ratio: Option<f64>,
    /// Maximum ratio of the candidate's p90 to the parent's p90.
    pub(super) tail_ratio: Option<f64>,
    /// Fewest blocks before anything is decided.
    #[schemars(range(min = 1, max = 4_000))]
    pub(super) blocks_min: Option<u32>,
    /// Most blocks of one duel.
    #[schemars(range(min = 1, max = 4_000))]
    pub(super) blocks_max: Option<u32>,
    /// How to handle a proven gain below `small_gain_ratio`.
    #[schemars(with = "Option<SmallGainName>")]
    pub(super) small_gain: Option<SmallGain>,
    /// The ratio from which a gain is no longer small.
    pub(super) small_gain_ratio: Option<f64>,
    /// Which error `alpha` bounds: the error of the whole campaign, or the share of wrong keeps.
    #[schemars(with = "Option<ErrorRuleName>")]
    pub(super) errors: Option<ErrorRule>,
    /// Which blocks only warm up: the first one, or as many as needed.
    #[schemars(with = "Option<WarmUpRuleName>")]
    pub(super) warm_up: Option<WarmUpRule>,
}
