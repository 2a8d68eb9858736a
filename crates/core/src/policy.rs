//! Every threshold of a campaign as data, with a preset for each published workflow.
//!
//! The presets differ in what they call a gain, a regression and a reason to stop. They do not
//! differ in how evidence is gathered: every one decides by the exact sequential test of
//! `stats`, so that none of them can be fooled by noise.

mod playbook;
mod presets;

use crate::hypothesis::ChangePart;
use crate::ladder::LadderRule;
use crate::variants::BEST_OF_MAX;
pub use playbook::PlaybookRule;
use presets::{hyper_mla, primus, strict, tilegym, trtllm};
use serde::{Deserialize, Serialize};

/// Rounds that the family-wise error is shared among, unless the charter allows more rounds.
pub const ROUNDS_SHARING_ALPHA: u32 = 120;

/// Most evidence that a guard may need: a sixth of what the easiest first keep needs, so that
/// clocks that disagree and slow calls can be proven before a gain is.
const GUARD_EVIDENCE_MAX: f64 = 100.0;

/// Blocks of any duel at most, whatever a charter says.
pub const BLOCKS_MAX: u32 = 4_000;

/// The rules of a campaign.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    /// The preset it started from.
    pub preset: Preset,
    /// What counts as faster and as slower.
    pub accept: AcceptRule,
    /// Which cases are measured when.
    pub full_when: FullWhen,
    /// When the parent is profiled.
    pub profile_when: ProfileWhen,
    /// Whether the ladder has a kernel profiled again that was profiled as deeply before, as older
    /// logs say.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub profile_again: bool,
    /// Whether the first round waits for the A/A test and the first profile.
    #[serde(default, skip_serializing_if = "FirstVerdict::is_after_checks")]
    pub first_verdict: FirstVerdict,
    /// Stop predicates in order; the first that holds names the reason.
    pub stop: Vec<StopRule>,
    /// What a streak of rounds without a gain leads to: at this length, this action.
    pub on_streak: Vec<(u32, StreakAction)>,
    /// Rounds at most, unless the limits say otherwise.
    pub rounds_max: u32,
    /// Wall time of one round in minutes, if bounded.
    pub round_minutes: Option<u32>,
    /// Repair attempts for build or correctness failures within a round.
    pub debug_retries: u32,
    /// How often a proposal may be refused before the round is dropped.
    pub proposal_tries: u32,
    /// How often a hypothesis is implemented; the best implementation continues.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub best_of: u32,
    /// Changes that one hypothesis may bundle.
    pub changes_per_round: u32,
    /// From this similarity on, a hypothesis is a duplicate of a dropped one.
    pub duplicate_similarity: f64,
    /// The number of the baseline in tables.
    pub baseline_number: u32,
    /// The number of the first round.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub first_round: u32,
    /// Directions that a hypothesis must name, its own included, when the rounds before it
    /// stagnate.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub stagnation_directions: u32,
    /// A kept gain below this lowers the priority of its direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modest_gain_ratio: Option<f64>,
    /// The class of a kernel by its arithmetic intensity, and the order of ideas for each class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub playbook: Option<PlaybookRule>,
    /// A bottleneck with one of these words raises a question for a person.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ask_about: Vec<String>,
    /// How often the measurement itself is checked.
    #[serde(default)]
    pub controls: Controls,
    /// How far candidates with knobs are tuned.
    #[serde(default)]
    pub tune: LadderRule,
    /// What happens when a reviewer objects to a change.
    #[serde(default)]
    pub review: ReviewRule,
    /// What happens to a change with parts that its hypothesis does not state.
    #[serde(default, skip_serializing_if = "BundleRule::is_record")]
    pub bundles: BundleRule,
}

fn yes() -> bool {
    true
}

#[allow(clippy::trivially_copy_pass_by_ref)] // Required by serde.
fn is_yes(is: &bool) -> bool {
    *is
}

/// What happens to a change with more parts than a round may have, some of which its hypothesis
/// does not state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BundleRule {
    /// Its parts are recorded and shown.
    #[default]
    Record,
    /// The gate refuses it, and the agent may take the other parts out.
    Refuse,
    /// Its parts are recorded, and if it is kept, each is measured by leaving it out.
    Ablate,
}

impl BundleRule {
    #[allow(clippy::trivially_copy_pass_by_ref)] // Required by serde.
    fn is_record(&self) -> bool {
        *self == Self::Record
    }
}

/// What happens when a review objects to a change. It never replaces the gate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewRule {
    /// It is recorded and shown.
    #[default]
    Record,
    /// The agent gets one repair attempt, then the change goes to the gate.
    Repair,
    /// The round is dropped.
    Skip,
    /// The review is after the duel, with its figures, and may downgrade a keep.
    Downgrade,
}

fn once() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref)] // Required by serde.
fn is_once(number: &u32) -> bool {
    *number == 1
}

/// How often the measurement itself is checked by an A/A test: the incumbent against itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Controls {
    /// At the baseline and after every this many rounds; 0 is never.
    pub every: u32,
    /// Blocks of one control.
    pub blocks: u32,
}

/// The names of the presets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Ours: a gain is at least 2% with proof of more than 1%, no case loses 2%.
    Strict,
    /// The Primus-Turbo rules.
    Primus,
    /// The TileGym skill.
    Tilegym,
    /// The TensorRT-LLM workflow.
    Trtllm,
    /// The hyper-mla orchestration.
    HyperMla,
}

/// What is kept. Ratios are speedups: parent time over candidate time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AcceptRule {
    /// The speedup that must be disproved as an upper bound (θ0).
    pub null_ratio: f64,
    /// The smallest speedup worth keeping (δ).
    pub effect_ratio: f64,
    /// Family-wise error over all rounds.
    pub alpha: f64,
    /// Evidence against the minimum effect, and for or against a regression.
    pub guard_evidence: f64,
    /// How much slower a case may become; `None` does not look at single cases.
    pub case_regress_ratio: Option<f64>,
    /// A case that is shown to lose more than this is reverted, also if it stays within
    /// `case_regress_ratio`; `None` reverts only what is beyond that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case_loss_ratio: Option<f64>,
    /// The same for cases marked minor.
    pub minor_regress_ratio: f64,
    /// The highest p90 of the candidate over the p90 of the parent.
    pub tail_ratio: f64,
    /// Fewest blocks before anything is decided.
    pub blocks_min: u32,
    /// Most blocks of one duel.
    pub blocks_max: u32,
    /// What happens to a proven gain below `small_gain_ratio`.
    pub small_gain: SmallGain,
    /// Where a gain stops being small.
    pub small_gain_ratio: f64,
    /// Which error the rounds share.
    #[serde(default)]
    pub errors: ErrorRule,
    /// Which blocks only warm up.
    #[serde(default)]
    pub warm_up: WarmUpRule,
}

/// Which blocks of a duel are run and stored, but not used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WarmUpRule {
    /// The first; also the default for logs that do not say.
    #[default]
    First,
    /// The first, and those after it for as long as both arms together become faster.
    Detected,
}

/// Which error `alpha` bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorRule {
    /// The chance that any round of the campaign is kept wrongly.
    #[default]
    FamilyWise,
    /// The expected share of wrong keeps among all keeps (e-LOND): each keep eases the next.
    FalseDiscovery,
}

/// What happens to a proven but small gain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SmallGain {
    /// Three times the fewest blocks are needed before it is kept.
    Remeasure,
    /// Kept, with a note.
    AcceptNote,
    /// Kept, and the campaign stops.
    AcceptAndStop,
    /// Dropped.
    Reject,
}

/// When a gain on the quick set must be proven again on the full set.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "snake_case")]
pub enum FullWhen {
    /// Before every keep.
    Always,
    /// Below this speedup, for high-risk changes, and at the end.
    Borderline {
        /// The speedup below which the quick set alone is not trusted.
        ratio: f64,
    },
}

/// When the parent is profiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProfileWhen {
    /// Before every round.
    EveryRound,
    /// After the baseline, after a keep, and when the escalation ladder asks for it.
    OnChange,
    /// Only when the escalation ladder asks for it.
    OnEscalation,
}

/// What comes before the first round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FirstVerdict {
    /// The A/A test and the profile; also the default for logs that do not say.
    #[default]
    AfterChecks,
    /// Neither: they follow the first verdict. An agent with ideas of its own gets the profile, and
    /// it is taken where karve calls the kernel itself.
    Soon,
    /// The same, and an external agent gets no profile before the first verdict either: it can ask
    /// for one.
    AtOnce,
}

impl FirstVerdict {
    #[allow(clippy::trivially_copy_pass_by_ref)] // Required by serde.
    fn is_after_checks(&self) -> bool {
        *self == Self::AfterChecks
    }
}

/// A reason to stop, as a predicate over the campaign.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "snake_case")]
pub enum StopRule {
    /// The goal of the charter is reached.
    TargetMet,
    /// This share of the measured peak is reached.
    HardwareLimit {
        /// Share of the peak, 0 to 1.
        share: f64,
    },
    /// The rounds of the charter are used up.
    Rounds,
    /// The wall time of the charter is used up.
    WallTime,
    /// The agent cost of the charter is used up.
    AgentCost,
    /// This many rounds in a row gained nothing.
    NoGain {
        /// Length of the streak.
        rounds: u32,
    },
    /// A gain below the small-gain limit was kept.
    SmallGainKept,
    /// The agent has no further hypothesis.
    ProposalsExhausted,
}

/// A rung of the escalation ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreakAction {
    /// Say why the last change failed before the next one.
    Diagnose,
    /// Review the directions and name three that differ fundamentally.
    Review,
    /// Profile in full and classify again.
    Reprofile,
    /// Inspect the generated code against a reference.
    InspectCode,
    /// Compare with the state of the art, or change the approach; ask a person.
    CompareOrAsk,
}

impl Preset {
    /// All presets, ours first.
    pub const ALL: [Self; 5] =
        [Self::Strict, Self::Primus, Self::Tilegym, Self::Trtllm, Self::HyperMla];

    /// Its name in `karve.toml`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Primus => "primus",
            Self::Tilegym => "tilegym",
            Self::Trtllm => "trtllm",
            Self::HyperMla => "hyper-mla",
        }
    }

    /// The preset of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.name() == name)
    }

    /// Its rules.
    pub fn policy(self) -> Policy {
        match self {
            Self::Strict => strict(),
            Self::Primus => primus(),
            Self::Tilegym => tilegym(),
            Self::Trtllm => trtllm(),
            Self::HyperMla => hyper_mla(),
        }
    }
}

impl AcceptRule {
    /// The evidence a keep needs, if `rounds_max` rounds share the error and `kept` were kept.
    pub fn keep_evidence(&self, rounds_max: u32, kept: u32) -> f64 {
        let family_wise = f64::from(rounds_max.max(ROUNDS_SHARING_ALPHA)) / self.alpha;
        match self.errors {
            ErrorRule::FamilyWise => family_wise,
            ErrorRule::FalseDiscovery => family_wise / (1.0 + f64::from(kept)),
        }
    }
}

impl Policy {
    /// What a change has besides its hypothesis, if that is refused.
    pub fn unstated(&self, parts: &[ChangePart]) -> Vec<String> {
        let most = self.changes_per_round.max(1) as usize;
        let is_bundle = parts.len() > most && parts.iter().any(|part| part.stated);
        let others = parts.iter().filter(|part| !part.stated).map(|part| part.what.clone());
        match self.bundles {
            BundleRule::Refuse if is_bundle => others.collect(),
            BundleRule::Refuse | BundleRule::Record | BundleRule::Ablate => Vec::new(),
        }
    }

    /// The number of the baseline, if it is that of a round.
    pub fn baseline_round(&self) -> Option<u32> {
        (0 < self.baseline_number && self.baseline_number < self.first_round)
            .then_some(self.baseline_number)
    }

    /// What a streak of `rounds` rounds without a gain leads to.
    pub fn streak_action(&self, rounds: u32) -> Option<StreakAction> {
        self.on_streak.iter().filter(|(at, _)| *at <= rounds).map(|(_, action)| *action).max()
    }

    /// Every value that makes no sense, in words.
    pub fn errors(&self) -> Vec<String> {
        let mut faults = self.accept.errors();
        faults.extend(self.tune.errors());
        let mut check = |holds: bool, fault: &str| {
            if !holds {
                faults.push(fault.to_owned());
            }
        };
        check(
            self.stop.contains(&StopRule::Rounds),
            "stop must contain the rule rounds: all rounds share one error bound",
        );
        check(
            !self.stop.contains(&StopRule::NoGain { rounds: 0 }),
            "stop: no_gain needs at least 1 round",
        );
        check(self.on_streak.iter().all(|(at, _)| *at >= 1), "on_streak must start at 1 or more");
        check(self.round_minutes != Some(0), "round_minutes must be at least 1");
        check((1..=2).contains(&self.first_round), "first_round must be 1 or 2");
        check((1..=12).contains(&self.stagnation_directions), "stagnation_directions: 1 to 12");
        check(
            self.controls.every == 0 || (8..=BLOCKS_MAX).contains(&self.controls.blocks),
            "controls.blocks must be between 8 and 4000: fewer cannot show anything",
        );
        check(self.debug_retries <= 20, "debug_retries must be at most 20");
        check((1..=20).contains(&self.proposal_tries), "proposal_tries must be 1 to 20");
        check((1..=BEST_OF_MAX).contains(&self.best_of), "best_of must be 1 to 8");
        check(
            self.playbook.as_ref().is_none_or(PlaybookRule::is_sound),
            "playbook: memory_below must be above 0 and at most compute_above, and memory and \
             compute name entries by letters",
        );
        // At 0 every hypothesis would be a duplicate of every dropped one.
        check(
            self.duplicate_similarity > 0.0 && self.duplicate_similarity <= 1.0,
            "duplicate_similarity must be above 0 and at most 1",
        );
        faults
    }
}

impl AcceptRule {
    fn errors(&self) -> Vec<String> {
        let accept = self;
        let mut faults = Vec::new();
        let mut check = |holds: bool, fault: &str| {
            if !holds {
                faults.push(fault.to_owned());
            }
        };
        let ratio = |value: f64| value.is_finite() && (1.0..=100.0).contains(&value);
        check(ratio(accept.null_ratio), "accept.null_ratio must be at least 1");
        check(ratio(accept.effect_ratio), "accept.effect_ratio must be at least 1");
        check(
            accept.effect_ratio >= accept.null_ratio,
            "accept.effect_ratio must not be below accept.null_ratio",
        );
        check(accept.alpha > 0.0 && accept.alpha <= 0.2, "accept.alpha must be in (0, 0.2]");
        check(
            (2.0..=GUARD_EVIDENCE_MAX).contains(&accept.guard_evidence),
            "accept.guard_evidence must be between 2 and 100",
        );
        check(
            accept.case_regress_ratio.is_none_or(ratio) && ratio(accept.minor_regress_ratio),
            "regression ratios must be at least 1",
        );
        check(
            accept.case_loss_ratio.is_none_or(ratio),
            "accept.case_loss_ratio must be at least 1",
        );
        check(ratio(accept.tail_ratio), "accept.tail_ratio must be at least 1");
        check(accept.blocks_min >= 1, "accept.blocks_min must be at least 1");
        check(
            accept.blocks_max >= accept.blocks_min && accept.blocks_max <= BLOCKS_MAX,
            "accept.blocks_max must be between accept.blocks_min and 4000",
        );
        check(ratio(accept.small_gain_ratio), "accept.small_gain_ratio must be at least 1");
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_sound_and_found_by_its_name() {
        for preset in Preset::ALL {
            assert_eq!(Preset::by_name(preset.name()), Some(preset));
            assert_eq!(preset.policy().errors(), Vec::<String>::new());
            assert_eq!(preset.policy().preset, preset);
        }
    }

    #[test]
    fn the_presets_differ_where_the_systems_contradict_each_other() {
        let regress = |p: Preset| p.policy().accept.case_regress_ratio;
        assert_eq!(regress(Preset::Strict), Some(1.02));
        assert_eq!(regress(Preset::Primus), Some(1.05));
        assert_eq!(regress(Preset::Trtllm), Some(1.05));
        assert_eq!(regress(Preset::HyperMla), None);
        assert_eq!(Preset::Tilegym.policy().rounds_max, 25);
        // At most 30 configurations there, and an hour for each version of hyper-mla.
        let tune = Preset::Tilegym.policy().tune;
        assert_eq!((tune.few.max(tune.coarse).max(tune.fine), tune.minutes), (30, 5.0));
        assert_eq!(Preset::HyperMla.policy().tune.minutes, 60.0);
        assert_eq!(Preset::Primus.policy().rounds_max, 119);
        assert!(Preset::Tilegym.policy().stop.contains(&StopRule::NoGain { rounds: 2 }));
        assert!(!Preset::Primus.policy().stop.contains(&StopRule::NoGain { rounds: 2 }));
    }

    #[test]
    fn a_keep_at_120_rounds_needs_evidence_of_2400() {
        assert!((strict().accept.keep_evidence(10, 7) - 2400.0).abs() < 1e-9);
        assert!((strict().accept.keep_evidence(1200, 0) - 24_000.0).abs() < 1e-9);
    }

    #[test]
    fn with_false_discoveries_bounded_each_keep_eases_the_next() {
        let accept = AcceptRule { errors: ErrorRule::FalseDiscovery, ..strict().accept };
        for (kept, want) in [(0, 2400.0), (1, 1200.0), (5, 400.0)] {
            assert!((accept.keep_evidence(119, kept) - want).abs() < 1e-9, "{kept}");
        }
    }

    fn playbook(memory_below: f64, memory: &str) -> PlaybookRule {
        PlaybookRule {
            memory_below,
            compute_above: 50.0,
            memory: memory.into(),
            compute: "D".into(),
        }
    }

    #[test]
    fn values_that_make_no_sense_are_named() {
        let check = |change: &dyn Fn(&mut Policy), want: &str| {
            let mut policy = strict();
            change(&mut policy);
            let faults = policy.errors();
            assert!(faults.len() == 1 && faults[0].contains(want), "{faults:?}");
        };
        check(&|p| p.accept.alpha = f64::NAN, "accept.alpha");
        check(&|p| p.accept.tail_ratio = 0.5, "accept.tail_ratio");
        check(&|p| p.accept.guard_evidence = 1.0, "accept.guard_evidence");
        check(&|p| p.accept.guard_evidence = 101.0, "accept.guard_evidence");
        check(&|p| p.accept.small_gain_ratio = 0.0, "accept.small_gain_ratio");
        check(&|p| p.accept.blocks_max = 4_001, "accept.blocks_max");
        check(&|p| p.accept.blocks_min = 401, "accept.blocks_max");
        check(&|p| p.duplicate_similarity = 0.0, "duplicate_similarity");
        check(&|p| p.accept.case_loss_ratio = Some(0.9), "accept.case_loss_ratio");
        check(&|p| p.playbook = Some(playbook(60.0, "AB")), "playbook: memory_below");
        check(&|p| p.playbook = Some(playbook(10.0, "a b")), "playbook: memory_below");
        check(&|p| p.round_minutes = Some(0), "round_minutes");
        check(&|p| p.stop.clear(), "the rule rounds");
        check(&|p| p.stop.push(StopRule::NoGain { rounds: 0 }), "no_gain");
    }

    #[test]
    fn the_ladder_climbs_with_the_streak() {
        let policy = strict();
        assert_eq!(policy.streak_action(0), None);
        assert_eq!(policy.streak_action(2), Some(StreakAction::Reprofile));
        assert_eq!(policy.streak_action(9), Some(StreakAction::CompareOrAsk));
    }
}
