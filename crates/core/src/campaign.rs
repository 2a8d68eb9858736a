//! The machine: what happens next, given what happened.
//!
//! A campaign is a fold over its events. `next_step` is pure; `record` takes in events that were
//! written to disk and refuses those out of order. Nothing else changes a campaign.

mod artifacts;
mod baselines;
mod choosing;
mod controls;
mod devices;
mod duels;
mod event;
mod gating;
mod host_tally;
mod in_round;
mod left;
mod original;
mod out_of_order;
mod phase_cost;
mod planted_bug;
mod plausible;
mod profiling;
mod record;
mod refusal;
mod reviewing;
mod round;
mod scores;
mod signals;
mod stated;
mod stop_reason;
mod stopping;
pub mod strategy;
mod stress;
mod tasks;
#[cfg(test)]
mod tests;

pub use crate::knowledge::Lesson;
use crate::spending::AgentUsage;
pub use baselines::BaselineDuel;
pub use choosing::ChooseStep;
pub use controls::{CONTROL_SLOWDOWN, Control, ControlKind, ControlResult, DetectableEffect};
pub use devices::{DeviceUse, RemoteDevice, RenewalRule};
pub use event::{
    Baseline, DuelName, Event, HalvedCase, ImplementStep, LOG_VERSION, MeasureStep, Preparation,
    ProcessAge, Provenance, Record, Repeats, Step, Tip,
};
pub use gating::TuneStep;
pub use host_tally::HostTally;
pub use left::DuelLeft;
pub use original::{OriginalCheck, RunningCheck};
pub use out_of_order::OutOfOrder;
pub use phase_cost::{PhaseCost, WorkPhase};
pub use planted_bug::PlantedBug;
pub use plausible::{CountingReason, KeepEvidence};
pub use refusal::ProposalRefusal;
pub use reviewing::ReviewStep;
pub use round::{LayoutResults, LayoutTrial, RoundPhase, RoundState, RoundSummary, RunningDuel};
pub use signals::signals_of;
pub use stated::{Misstatement, StatedBaseline, StatedFigures};
pub use stop_reason::StopReason;
pub use stress::AddedCases;
pub use tasks::AgendaTask;

use crate::agenda::AgendaItem;
use crate::charter::Charter;
use crate::comparison::{Clock, Comparison};
use crate::duel::Duel;
use crate::hypothesis::HypothesisDigest;
use crate::knowledge::KnownEntry;
use crate::lineage::Lineage;
use crate::measurement::{Block, DiscardReason, Sample};
use crate::mutants::TestStrength;
use crate::policy::FullWhen;
use crate::profile::{Profile, ProfileDepth};
use crate::sampling;
use crate::spending::Spending;
use baselines::RunningBaseline;
use controls::RunningControl;
use devices::DeviceUses;
use karve_numerics::case::{Case, CaseSet};
use round::UndecidedDuel;
use stated::EndCheck;
use std::collections::BTreeMap;
use strategy::Brief;

/// A campaign as its events made it.
#[derive(Clone, Debug, Default)]
pub struct Campaign {
    phase: CampaignPhase,
    facts: CampaignFacts,
    rounds: Vec<RoundSummary>,
    /// The gist of each settled round's hypothesis, in the order of `rounds`.
    gists: Vec<Option<HypothesisDigest>>,
    lineage: Lineage,
    final_comparison: Option<Comparison>,
    baseline_duels: Vec<BaselineDuel>,
    end_check: EndCheck,
    controls: Vec<ControlResult>,
    /// Settled rounds when the measurement was last checked.
    controlled_at: Option<u32>,
    devices: DeviceUses,
    /// Undecided duels, by parent and tree: they are continued, never restarted.
    open_duels: BTreeMap<(String, String), UndecidedDuel>,
    n_events: u64,
    spent_ms: u64,
    host: HostTally,
    /// Time that tuning took.
    tuned_ms: u64,
    cost: AgentUsage,
    /// The agents that proposed or implemented, in order of first appearance.
    agents: Vec<String>,
    spending: Spending,
    unknown_events: u32,
    /// Cases that were held back at first.
    added: Vec<AddedCases>,
    answers: Vec<String>,
    answered_in: u32,
    /// Settled rounds when an ended campaign was last extended: the stop rules count from there.
    resumed_at: usize,
}

/// What is known from the first steps on. Each is set once, by its event, before a round starts.
#[derive(Clone, Debug, Default)]
struct CampaignFacts {
    charter: Option<Box<Charter>>,
    preparation: Option<Preparation>,
    planted_bugs: Vec<PlantedBug>,
    strength: Option<TestStrength>,
    tips: Vec<Tip>,
    known: Vec<KnownEntry>,
    baseline: Option<Baseline>,
    quick: Vec<usize>,
    profile: Option<Profile>,
    first_profile: Option<Profile>,
    /// The items of the agenda.
    items: Option<Vec<AgendaItem>>,
}

/// Where a campaign stands.
#[derive(Clone, Debug, Default)]
enum CampaignPhase {
    #[default]
    Undefined,
    Defined,
    Prepared,
    MutationChecked,
    TipsKnown,
    Comparing(Box<RunningBaseline>),
    Controlling(Box<RunningControl>),
    Round(Box<RoundState>),
    Confirming {
        reason: StopReason,
        duel: Box<Duel>,
        blocks: u32,
        spent_ms: u64,
    },
    /// The final kernel is not profiled yet.
    LookingBack(StopReason),
    Closing(StopReason),
    Finished(StopReason),
}

impl Campaign {
    /// A campaign before its first event.
    pub fn new() -> Self {
        Self::default()
    }

    /// What must happen next; `None` when the campaign is finished. Calling it twice gives the
    /// same answer.
    pub fn next_step(&self) -> Option<Step> {
        Some(match &self.phase {
            CampaignPhase::Undefined => Step::DefineTarget,
            CampaignPhase::Defined => Step::Prepare,
            CampaignPhase::Prepared => Step::CheckMutations,
            CampaignPhase::MutationChecked => Step::ReadTips,
            CampaignPhase::TipsKnown => Step::MeasureBaseline,
            CampaignPhase::Comparing(running) => running.step(self),
            CampaignPhase::Controlling(control) => control.step(self.incumbent()),
            CampaignPhase::Round(round) => self.round_step(round),
            CampaignPhase::Confirming { duel, blocks, .. } => Step::Measure(MeasureStep {
                duel: DuelName::Final,
                parent: self.base_commit().to_owned(),
                candidate: self.incumbent().to_owned(),
                cases: duel.cases(),
                block: *blocks,
                age: ProcessAge::Usual,
            }),
            CampaignPhase::LookingBack(_) => Step::ProfileFinal {
                commit: self.incumbent().to_owned(),
                depth: ProfileDepth::Light,
            },
            CampaignPhase::Closing(reason) => self.end_step(reason),
            CampaignPhase::Finished(_) => return None,
        })
    }

    fn round_step(&self, state: &RoundState) -> Step {
        let round = state.number;
        match &state.phase {
            RoundPhase::Profiling => Step::Profile {
                round,
                commit: self.incumbent().to_owned(),
                depth: self.profile_depth(),
            },
            RoundPhase::Proposing { try_no, errors } => {
                Step::Propose { round, try_no: *try_no, brief: Box::new(self.brief(errors)) }
            }
            RoundPhase::Implementing { hypothesis, retry, variant, repair: fix, review } => {
                Step::Implement(ImplementStep {
                    review: review.clone(),
                    round,
                    retry: *retry,
                    variant: *variant,
                    of: self.realizations(hypothesis, fix.is_some()),
                    parent: self.incumbent().to_owned(),
                    hypothesis: hypothesis.clone(),
                    repair: fix.clone(),
                    brief: Box::new(self.brief(&[])),
                })
            }
            RoundPhase::Choosing { .. } => Step::Choose(self.choose_step(state)),
            RoundPhase::Reviewing { hypothesis, retry, candidate, proven, .. } => {
                let mut step = self.review_step(round, *retry, hypothesis, candidate);
                if let Some(verdict) = proven {
                    step.figures = signals_of(&state.preview(verdict.clone()));
                }
                Step::Review(step)
            }
            RoundPhase::Gating { retry, candidate, set, .. } => {
                Step::Gate { round, retry: *retry, candidate: candidate.clone(), set: *set }
            }
            RoundPhase::Tuning { hypothesis, candidate, rung, .. } => {
                Step::Tune(self.tune_step(state, hypothesis, candidate, *rung))
            }
            RoundPhase::Measuring(measuring) => Step::Measure(MeasureStep {
                duel: measuring.name(round),
                parent: self.incumbent().to_owned(),
                candidate: measuring.candidate.commit.clone(),
                cases: measuring.duel.cases(),
                block: measuring.blocks,
                age: measuring.age_due(),
            }),
            RoundPhase::Checking(check) => Step::Measure(check.step(round, self.base_commit())),
            RoundPhase::Settling { verdict } => {
                Step::Settle { round, verdict: verdict.clone(), candidate: state.candidate.clone() }
            }
            RoundPhase::Learning { .. } => Step::Learn { round },
        }
    }

    /// The charter, once the target is defined.
    pub fn charter(&self) -> Option<&Charter> {
        self.facts.charter.as_deref()
    }

    /// The base, the harness and the host, once prepared.
    pub fn preparation(&self) -> Option<&Preparation> {
        self.facts.preparation.as_ref()
    }

    /// The baseline, once measured.
    pub fn baseline(&self) -> Option<&Baseline> {
        self.facts.baseline.as_ref()
    }

    /// The bugs that were planted before the baseline.
    pub fn planted_bugs(&self) -> &[PlantedBug] {
        &self.facts.planted_bugs
    }

    /// How many small bugs the tests noticed; if those were not counted, how many of the bugs that
    /// were planted until they noticed one.
    pub fn test_strength(&self) -> Option<TestStrength> {
        self.facts.strength.clone().or_else(|| PlantedBug::strength(self.planted_bugs()))
    }

    /// The lessons of earlier campaigns.
    pub fn tips(&self) -> &[Tip] {
        &self.facts.tips
    }

    /// The entries of the library that apply to the target.
    pub fn known(&self) -> &[KnownEntry] {
        &self.facts.known
    }

    #[cfg(test)]
    pub(crate) fn set_profile(&mut self, profile: Profile) {
        self.facts.profile = Some(profile);
    }

    /// The last profile.
    pub fn profile(&self) -> Option<&Profile> {
        self.facts.profile.as_ref()
    }

    /// The first profile, of the original kernel.
    pub fn first_profile(&self) -> Option<&Profile> {
        self.facts.first_profile.as_ref()
    }

    /// The settled rounds, in order.
    pub fn rounds(&self) -> &[RoundSummary] {
        &self.rounds
    }

    /// The tree of kept commits.
    pub fn lineage(&self) -> &Lineage {
        &self.lineage
    }

    /// The round under way.
    pub fn current_round(&self) -> Option<&RoundState> {
        match &self.phase {
            CampaignPhase::Round(round) => Some(round),
            CampaignPhase::Controlling(control) => control.round(),
            CampaignPhase::Undefined
            | CampaignPhase::Defined
            | CampaignPhase::Prepared
            | CampaignPhase::MutationChecked
            | CampaignPhase::TipsKnown
            | CampaignPhase::Comparing(_)
            | CampaignPhase::Confirming { .. }
            | CampaignPhase::LookingBack(_)
            | CampaignPhase::Closing(_)
            | CampaignPhase::Finished(_) => None,
        }
    }

    /// Why the campaign ended, in words, with the planted bug that says why it could not start.
    pub fn stop_text(&self) -> Option<String> {
        let reason = self.stop_reason()?;
        let text = reason.describe();
        let last =
            self.planted_bugs().last().filter(|_| *reason == StopReason::MutationCheckFailed);
        Some(match last {
            Some(PlantedBug { bug, detail, .. }) if detail.is_empty() => format!("{text}: {bug}"),
            Some(PlantedBug { bug, detail, .. }) => format!("{text}: {bug}: {detail}"),
            None => text,
        })
    }

    /// Why the campaign ended, or is about to.
    pub fn stop_reason(&self) -> Option<&StopReason> {
        match &self.phase {
            CampaignPhase::Finished(reason)
            | CampaignPhase::Closing(reason)
            | CampaignPhase::LookingBack(reason)
            | CampaignPhase::Confirming { reason, .. } => Some(reason),
            CampaignPhase::Comparing(running) => running.reason.as_ref(),
            CampaignPhase::Undefined
            | CampaignPhase::Defined
            | CampaignPhase::Prepared
            | CampaignPhase::MutationChecked
            | CampaignPhase::TipsKnown
            | CampaignPhase::Controlling(_)
            | CampaignPhase::Round(_) => None,
        }
    }

    /// Whether the campaign is finished.
    pub fn is_finished(&self) -> bool {
        matches!(self.phase, CampaignPhase::Finished(_))
    }

    /// Events taken in so far.
    pub fn n_events(&self) -> u64 {
        self.n_events
    }

    /// What the agent has used so far.
    pub fn cost(&self) -> AgentUsage {
        self.cost
    }

    /// The same, by what it was asked for.
    pub fn spending(&self) -> &Spending {
        &self.spending
    }

    /// Events that a newer karve wrote.
    pub fn unknown_events(&self) -> u32 {
        self.unknown_events
    }

    /// The commit that every gain is measured against; empty before the preparation.
    pub fn base_commit(&self) -> &str {
        self.facts.preparation.as_ref().map_or("", |preparation| &preparation.base)
    }

    /// The commit that the next candidate must beat; empty before the preparation.
    pub fn incumbent(&self) -> &str {
        self.lineage.best().map_or(self.base_commit(), |kept| &kept.commit)
    }

    /// The tree of the incumbent.
    pub fn incumbent_tree(&self) -> &str {
        match (self.lineage.best(), &self.facts.preparation) {
            (Some(kept), _) => &kept.tree,
            (None, Some(preparation)) => &preparation.base_tree,
            (None, None) => "",
        }
    }

    /// A case with its parameters as they are measured: halved if it did not fit.
    pub fn case(&self, index: usize) -> Option<Case> {
        let case = self.charter()?.cases.get(index)?.clone();
        let halved = self.baseline().and_then(|b| b.halved.iter().find(|h| h.case == index));
        Some(match halved {
            Some(halved) => case.with_params(&halved.params),
            None => case,
        })
    }

    /// What a case is called in everything that karve writes: by its name as measured, or if it is
    /// hidden by its number among the hidden ones.
    pub fn case_name(&self, index: usize) -> String {
        let mut hidden = self.cases_of(CaseSet::Hidden).into_iter();
        if let Some(at) = hidden.position(|hidden| hidden == index) {
            return format!("hidden case {}", at + 1);
        }
        self.case(index).map_or_else(|| format!("case {index}"), |case| case.name)
    }

    /// Indices of the cases of a set: quick ones are chosen from the baseline if none is named.
    pub fn cases_of(&self, set: CaseSet) -> Vec<usize> {
        let Some(charter) = self.charter() else {
            return Vec::new();
        };
        match set {
            CaseSet::Quick => self.facts.quick.clone(),
            CaseSet::Full => charter.visible_cases(),
            CaseSet::Hidden => charter.hidden_cases(),
            CaseSet::Stress => charter.stress_cases(),
        }
    }

    /// How long the streak of rounds without a gain is.
    pub fn streak(&self) -> u32 {
        let tail = self.rounds.iter().rev().take_while(|round| !round.verdict.keeps()).count();
        u32::try_from(tail).unwrap_or(u32::MAX)
    }

    /// Why the next block does not count; `None` if it does.
    pub fn discards(&self, block: &Block) -> Option<DiscardReason> {
        match &self.phase {
            CampaignPhase::Controlling(control) => control.discards(block),
            CampaignPhase::Confirming { duel, .. } => duel.discards(block),
            CampaignPhase::Comparing(running) => running.duel.discards(block),
            CampaignPhase::Round(round) => match &round.phase {
                RoundPhase::Measuring(measuring) => measuring.duel.discards(block),
                RoundPhase::Checking(check) => check.duel.discards(block),
                _ => None,
            },
            _ => None,
        }
    }

    /// The evidence that the next keep needs.
    fn keep_evidence(&self) -> f64 {
        let kept = u32::try_from(self.lineage.kept().len()).unwrap_or(u32::MAX);
        self.charter().map_or(f64::INFINITY, |charter| {
            let rounds = charter.limits.rounds;
            charter.policy.accept.keep_evidence(rounds, kept)
        })
    }

    /// The clock that counts alongside the metric, once the baseline is known.
    pub fn second_clock(&self) -> Option<Clock> {
        let (charter, baseline) = (self.charter()?, self.baseline()?);
        let samples: Vec<Sample> = baseline.readings.iter().map(|r| r.sample).collect();
        sampling::second_clock(&charter.metric, &samples)
    }

    /// Everything an agent may know for the round under way.
    fn brief(&self, errors: &[String]) -> Brief {
        strategy::brief(self, errors)
    }

    /// The round in which a person answered last; 0 before the first answer.
    pub fn answered_in(&self) -> u32 {
        self.answered_in
    }

    /// What people answered to escalations.
    pub fn answers(&self) -> &[String] {
        &self.answers
    }

    /// Whether a keep on the quick set must be proven again on the full set.
    fn full_needed(&self, ratio: f64, high_risk: bool) -> bool {
        if self.facts.quick == self.cases_of(CaseSet::Full) {
            return false;
        }
        match self.charter().map(|charter| charter.policy.full_when) {
            Some(FullWhen::Borderline { ratio: limit }) => ratio < limit || high_risk,
            Some(FullWhen::Always) | None => true,
        }
    }
}
