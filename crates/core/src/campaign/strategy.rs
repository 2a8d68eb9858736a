//! Where to look next: stagnation, the escalation ladder, and the bounded brief.

mod ablation;
mod autopilot;
mod case_notes;
mod class;
mod learning;
mod limits;
mod recall;
mod relations;
mod roles;
mod stagnation;

pub use ablation::{Ablation, share, to_ablate};
pub use autopilot::items_of_profile;
use case_notes::case_notes;
pub(in crate::campaign) use class::outside_playbook;
pub use class::{KernelClass, kernel_class};
pub use learning::{found_prefix, lesson, shown_counters, to_compare};
use limits::limits;
use recall::applied_entry;
pub use recall::{BriefEntry, LibraryRecall, recall, repeats_refuted};
pub use relations::UsableEntry;
pub(super) use roles::unroutable;
pub use roles::{RoundRoles, in_role, misrouted, request_of};
use stagnation::{least_explored, triggers};

use crate::campaign::{AgendaTask, Campaign, RoundSummary, Tip};
use crate::charter::{AskRule, Metric, Target};
use crate::comparison::SpeedChange;
use crate::hypothesis::{Direction, title_similarity};
use crate::knowledge::EntryKind;
use crate::measurement::Gate;
use crate::policy::{Policy, StreakAction};
use crate::roles::{Review, ReviewAdvice};
use crate::verdict::{DropReason, Verdict};
use karve_numerics::case::{Case, CaseSet};
use karve_numerics::contract::Contract;
use karve_numerics::search::{KnobTrial, TrialOutcome};
use serde::{Deserialize, Serialize};

/// Maximum number of earlier rounds in a brief, newest first.
const TRIED_MAX: usize = 30;
/// Maximum number of tips in a brief.
const TIPS_MAX: usize = 10;
/// Maximum number of Findings of the last candidate's audit in a brief.
const AUDITED_MAX: usize = 12;
/// Maximum length of the profile digest in a brief, in characters.
const DIGEST_MAX: usize = 4_000;
/// Maximum length of any text by others in a brief, in characters.
const TEXT_MAX: usize = 2_000;
/// Maximum number of open ideas that are shown.
const OPEN_MAX: usize = 12;
/// Pages of the library to read again.
const PAGES_MAX: usize = 6;
/// From this similarity of titles on, two ideas are the same.
const SAME_IDEA: f64 = 0.6;

/// A sign that the present direction is exhausted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "trigger", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum StagnationTrigger {
    /// Two or more rounds in a row were not kept.
    DropsInARow { rounds: u32 },
    /// The last rounds changed next to nothing.
    MicroAdjustments { rounds: u32 },
    /// The last rounds targeted the same bottleneck without success.
    SameBottleneck { bottleneck: String },
    /// The last rounds changed the same knob back and forth.
    ParameterJitter { knob: String },
}

/// Where to look next.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Directive {
    /// The signs that the present direction is exhausted; empty while there are none.
    pub triggers: Vec<StagnationTrigger>,
    /// The direction to change to, if so.
    pub turn_to: Option<Direction>,
    /// The rung of the escalation ladder.
    pub action: Option<StreakAction>,
    /// The last candidate won some cases and lost others: what separates them.
    pub gate: Option<GateHint>,
    /// The class of the kernel, if the policy asks for one.
    #[serde(default)]
    pub class: Option<String>,
    /// Directions that others come before: their last kept gain was modest.
    #[serde(default)]
    pub lowered: Vec<Direction>,
    /// Ideas that earlier rounds weighed and nobody took up yet.
    #[serde(default)]
    pub open: Vec<String>,
    /// Directions that the hypothesis must name, its own included.
    #[serde(default)]
    pub wanted: u32,
    /// Pages of the library on the device, the language and the operation to read again, if the
    /// present direction is exhausted.
    #[serde(default)]
    pub revisit: Vec<String>,
}

/// Cases that the last candidate won and lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateHint {
    /// The round.
    pub round: u32,
    /// Names of the cases that became faster.
    pub won: Vec<String>,
    /// Names of the cases that became slower.
    pub lost: Vec<String>,
    /// The narrowest predicate over one case parameter that separates them.
    pub predicate: Option<String>,
}

/// Everything that an agent needs for one task, bounded in size. Hidden cases are not in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Brief {
    /// The round.
    pub round: u32,
    /// The campaign.
    pub campaign: String,
    /// The kernel to optimize.
    pub target: Target,
    /// The commit to start from.
    pub parent: String,
    /// The commit the campaign started from.
    pub base: String,
    /// The editable files.
    pub editable: Vec<String>,
    /// The visible cases.
    pub cases: Vec<Case>,
    /// How fast each of them is now, and could be, in words; in the same order.
    pub case_notes: Vec<String>,
    /// Names of the cases that are held back.
    pub held_back: Vec<String>,
    /// Whether there are hidden cases.
    pub has_hidden: bool,
    /// The other machine that builds and measures, and how to run something there; if there is one.
    pub remote: Option<String>,
    /// Threads that the kernel may use, under a contract.
    pub threads: Option<u32>,
    /// How close each output must be to the reference, under a contract, in words.
    pub tolerance: Vec<String>,
    /// What is measured.
    pub metric: Metric,
    /// The speedup so far.
    pub cumulative_ratio: f64,
    /// Gains in it that were not measured against the original.
    pub unchecked_keeps: u32,
    /// The smallest speedup that is kept.
    pub effect_ratio: f64,
    /// Maximum number of changes that one hypothesis may bundle.
    pub changes_per_round: u32,
    /// Where to look next.
    pub directive: Directive,
    /// What was tried, newest first.
    pub tried: Vec<PastRound>,
    /// Lessons from earlier campaigns.
    pub tips: Vec<Tip>,
    /// Library entries: those that match the profile, and those that were refuted here.
    pub recall: LibraryRecall,
    /// The end of the last profile.
    pub profile: String,
    /// What an agent in the role of a profiler says about it.
    pub report: String,
    /// The library entry that the hypothesis of the round applies.
    pub applied: Option<BriefEntry>,
    /// Limits of a change: registers, occupancy, control level.
    pub limits: Vec<String>,
    /// The round that made the parent; 0 for the original.
    pub parent_version: u32,
    /// The agenda item that the round is for.
    pub task: Option<AgendaTask>,
    /// What was wrong with the last reply.
    pub errors: Vec<String>,
    /// Human answers to escalations.
    pub answers: Vec<String>,
    /// The Findings of the audit for the last candidate, one line each.
    pub audited: Vec<String>,
    /// Every knob setting that was tried, for the built-in strategy.
    pub trials: Vec<KnobTrial>,
    /// Whether a sweep of all knobs may be proposed now.
    pub sweep: bool,
    /// Seed for random draws.
    pub seed: u64,
    /// Which role is asked, and what it may do, if there are roles.
    pub roles: Option<Box<RoundRoles>>,
    /// Maximum number of tokens of the brief.
    pub tokens_max: u32,
}

/// An earlier round, as shown in a brief.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PastRound {
    /// The round.
    pub round: u32,
    /// The hypothesis.
    pub title: String,
    /// Its outcome, in one word.
    pub verdict: &'static str,
    /// Why, in words.
    pub why: String,
    /// The speedup, if it was measured.
    pub ratio: Option<f64>,
    /// What it taught.
    pub lesson: String,
}

/// A question for a person. The campaign does not wait for the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueItem {
    /// The round that raised it.
    pub round: u32,
    /// The question.
    pub question: String,
}

/// The brief for the current round.
pub fn brief(campaign: &Campaign, errors: &[String]) -> Brief {
    let round = campaign.current_round().map_or(0, |round| round.number);
    let charter = campaign.charter();
    let digest = campaign.profile().map_or("", |profile| &profile.digest);
    let report = campaign.profile().and_then(|profile| profile.report.as_ref());
    let visible = campaign.cases_of(CaseSet::Full);
    let held_back = campaign.cases_of(CaseSet::Stress);
    let recent = |texts: &[String]| texts.iter().rev().take(TIPS_MAX).map(|t| clip(t)).collect();
    let short = |tip: &Tip| Tip { source: clip(&tip.source), text: clip(&tip.text) };
    Brief {
        round,
        campaign: charter.map(|c| c.name.clone()).unwrap_or_default(),
        target: charter.map_or_else(Target::default, |c| c.target.clone()),
        parent: campaign.incumbent().to_owned(),
        base: campaign.base_commit().to_owned(),
        editable: charter.map(|c| c.editable.clone()).unwrap_or_default(),
        cases: visible.iter().filter_map(|index| campaign.case(*index)).collect(),
        case_notes: case_notes(campaign, &visible),
        held_back: held_back.iter().map(|case| campaign.case_name(*case)).collect(),
        has_hidden: !campaign.cases_of(CaseSet::Hidden).is_empty(),
        remote: campaign.remote_note(),
        threads: charter.and_then(|c| c.contract.as_ref()).map(|contract| contract.threads),
        tolerance: charter.and_then(|c| c.contract.as_deref()).map_or_else(Vec::new, tolerances),
        metric: charter.map_or_else(Metric::default, |c| c.metric.clone()),
        cumulative_ratio: campaign.lineage().cumulative_ratio(),
        unchecked_keeps: campaign.lineage().n_unchecked(),
        effect_ratio: charter.map_or(1.0, |c| c.policy.accept.effect_ratio),
        changes_per_round: charter.map_or(1, |c| c.policy.changes_per_round),
        directive: directive(campaign),
        tried: campaign.rounds().iter().rev().take(TRIED_MAX).map(|r| tried(campaign, r)).collect(),
        tips: campaign.tips().iter().take(TIPS_MAX).map(short).collect(),
        recall: recall(campaign),
        task: campaign.task(),
        profile: digest.chars().take(DIGEST_MAX).collect(),
        report: report.map_or_else(String::new, |report| report.for_brief()),
        applied: applied_entry(campaign),
        limits: limits(campaign),
        parent_version: campaign.lineage().best().map_or(0, |kept| kept.round),
        errors: errors.iter().take(TRIED_MAX).map(|e| clip(e)).collect(),
        answers: recent(campaign.answers()),
        audited: audited(campaign),
        trials: campaign.rounds().iter().filter_map(trial).collect(),
        sweep: campaign.sweep_due(),
        seed: charter.map_or(0, |c| c.seed),
        roles: in_role(campaign).map(Box::new),
        tokens_max: charter.map_or(AskRule::BRIEF_TOKENS, |c| c.asks.brief_tokens),
    }
}

/// How close each output must be to the reference.
fn tolerances(contract: &Contract) -> Vec<String> {
    let outputs = contract.args.iter().filter(|arg| arg.is_written());
    let said = outputs.map(|arg| {
        let words = contract.accuracy.tolerance(arg.dtype).describe();
        format!("{} ({}): {words}", arg.name, arg.dtype.name())
    });
    said.take(TIPS_MAX).collect()
}

fn tried(campaign: &Campaign, round: &RoundSummary) -> PastRound {
    let why = round.reason(&|case| campaign.case_name(case));
    PastRound {
        round: round.number,
        title: clip(round.title()),
        verdict: round.verdict.word(),
        why: clip(&why),
        ratio: round.ratio(),
        lesson: clip(&round.lesson.text),
    }
}

fn audited(campaign: &Campaign) -> Vec<String> {
    let last = campaign.rounds().last();
    let findings = last.map_or(&[][..], |round| &round.findings);
    let lines = findings.iter().take(AUDITED_MAX);
    lines.map(|f| clip(&f.describe())).collect()
}

fn clip(text: &str) -> String {
    text.chars().take(TEXT_MAX).collect()
}

/// What a round says about knob values. The values that another kept change was tuned to are part
/// of the incumbent too: their gain is what tuning added to that change.
fn trial(round: &RoundSummary) -> Option<KnobTrial> {
    let hypothesis = round.hypothesis.as_ref()?;
    let (config, ratio) = match &round.tuned {
        Some(tuned) if hypothesis.sweep => (&tuned.config, round.ratio()),
        Some(tuned) if hypothesis.config.is_empty() && round.verdict.keeps() => {
            (&tuned.config, tuned.trend())
        }
        _ => (&hypothesis.config, round.ratio()),
    };
    if config.is_empty() {
        return None;
    }
    let outcome = match (&round.verdict, ratio) {
        (Verdict::Drop { reason: DropReason::SameArtifact | DropReason::NoChange }, _) => {
            TrialOutcome::NoEffect
        }
        // It may have been fast, but it was wrong.
        (Verdict::Drop { reason: DropReason::Gate { .. } }, _) => TrialOutcome::Failed,
        (verdict, Some(ratio)) => TrialOutcome::Measured { ratio, kept: verdict.keeps() },
        (_, None) => TrialOutcome::Failed,
    };
    Some(KnobTrial { config: config.clone(), outcome })
}

/// Where to look next, from the history alone.
pub fn directive(campaign: &Campaign) -> Directive {
    let rounds = campaign.rounds();
    let triggers = triggers(rounds, campaign.streak());
    let turn_to = (!triggers.is_empty()).then(|| least_explored(rounds)).flatten();
    let wanted = campaign.charter().map_or(1, |c| c.policy.stagnation_directions);
    let wanted = if triggers.is_empty() { 1 } else { wanted };
    Directive {
        turn_to,
        triggers,
        action: campaign.charter().and_then(|c| c.policy.streak_action(campaign.streak())),
        gate: rounds.last().and_then(|round| gate_hint(campaign, round)),
        class: kernel_class(campaign).map(|class| class.describe()),
        lowered: lowered(campaign),
        open: open_ideas(rounds),
        wanted,
        revisit: if turn_to.is_some() { pages(campaign) } else { Vec::new() },
    }
}

/// Pages of the library about the device, the language or the operation, which are no changes
/// themselves.
fn pages(campaign: &Campaign) -> Vec<String> {
    let about = campaign.known().iter().filter(|known| {
        known.refuted.is_empty() && matches!(known.kind, EntryKind::Technique | EntryKind::Case)
    });
    about.map(|known| format!("{}: {}", known.id, known.title)).take(PAGES_MAX).collect()
}

/// Directions whose last kept gain was modest by the policy.
fn lowered(campaign: &Campaign) -> Vec<Direction> {
    let Some(limit) = campaign.charter().and_then(|c| c.policy.modest_gain_ratio) else {
        return Vec::new();
    };
    let last_keep = |direction: &Direction| {
        let of_it = |round: &&RoundSummary| {
            round.hypothesis.as_ref().is_some_and(|h| h.direction == *direction)
        };
        let mut kept = campaign.rounds().iter().rev().filter(|round| round.verdict.keeps());
        kept.find(of_it).and_then(RoundSummary::ratio)
    };
    let is_low = |direction: &Direction| last_keep(direction).is_some_and(|ratio| ratio < limit);
    Direction::ALL.into_iter().filter(is_low).collect()
}

/// Alternatives of earlier hypotheses that no later round took up, newest first.
pub fn open_ideas(rounds: &[RoundSummary]) -> Vec<String> {
    let mut open: Vec<String> = Vec::new();
    for (index, round) in rounds.iter().enumerate().rev() {
        let later = &rounds[index + 1..];
        let stated = round.hypothesis.iter().flat_map(|hypothesis| &hypothesis.alternatives);
        for idea in stated {
            let is_taken = later.iter().any(|r| title_similarity(r.title(), idea) >= SAME_IDEA);
            let is_known = open.iter().any(|known| title_similarity(known, idea) >= SAME_IDEA);
            if !is_taken && !is_known && open.len() < OPEN_MAX {
                open.push(clip(idea));
            }
        }
    }
    open
}

fn gate_hint(campaign: &Campaign, round: &RoundSummary) -> Option<GateHint> {
    let Verdict::Drop { reason: DropReason::Regressed { cases: lost } } = &round.verdict else {
        return None;
    };
    let comparison = round.shown()?;
    let won: Vec<usize> = comparison
        .cases
        .iter()
        .filter(|case| case.change == SpeedChange::Improved)
        .map(|case| case.case)
        .collect();
    if won.is_empty() {
        return None;
    }
    let names = |cases: &[usize]| cases.iter().map(|c| campaign.case_name(*c)).collect();
    let cases = |indices: &[usize]| -> Vec<Case> {
        indices.iter().filter_map(|index| campaign.case(*index)).collect()
    };
    Some(GateHint {
        round: round.number,
        won: names(&won),
        lost: names(lost),
        predicate: separating_predicate(&cases(&won), &cases(lost)),
    })
}

/// The narrowest condition on one parameter that holds for all of `won` and none of `lost`.
fn separating_predicate(won: &[Case], lost: &[Case]) -> Option<String> {
    let number = |case: &Case, name: &str| {
        let number: f64 = case.params.get(name)?.parse().ok()?;
        number.is_finite().then_some(number)
    };
    won.first()?.params.keys().find_map(|name| {
        let values = |cases: &[Case]| -> Option<(f64, f64)> {
            let numbers: Option<Vec<f64>> = cases.iter().map(|c| number(c, name)).collect();
            let numbers = numbers?;
            let low = numbers.iter().copied().fold(f64::INFINITY, f64::min);
            Some((low, numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max)))
        };
        let ((won_low, won_high), (lost_low, lost_high)) = (values(won)?, values(lost)?);
        if won_low > lost_high {
            Some(format!("{name} >= {won_low}"))
        } else if won_high < lost_low {
            Some(format!("{name} <= {won_high}"))
        } else {
            None
        }
    })
}

/// Whether the policy wants a person to hear of this bottleneck.
fn asks_about(policy: &Policy, bottleneck: &str) -> bool {
    let words = bottleneck.to_lowercase();
    let mut words = words.split(|c: char| !c.is_alphanumeric());
    words.any(|word| policy.ask_about.iter().any(|about| about == word))
}

/// Questions for a person: those that agents asked, and one where the ladder ended.
pub fn queue(campaign: &Campaign) -> Vec<QueueItem> {
    let Some(charter) = campaign.charter() else {
        return Vec::new();
    };
    let mut items = Vec::new();
    let mut streak = 0_u32;
    for round in campaign.rounds() {
        if let Some(question) = round.hypothesis.as_ref().and_then(|h| h.question.clone()) {
            items.push(QueueItem { round: round.number, question });
        }
        let stated = round.hypothesis.as_ref().map(|h| h.bottleneck.trim());
        if let Some(stated) = stated.filter(|stated| asks_about(&charter.policy, stated)) {
            let question = format!(
                "the root cause is \"{stated}\": which scheduling, compiler or hardware detail \
                 should be looked at?"
            );
            items.push(QueueItem { round: round.number, question });
        }
        streak = if round.verdict.keeps() { 0 } else { streak + 1 };
        let reached = |streak| charter.policy.streak_action(streak);
        let asked = reached(streak) == Some(StreakAction::CompareOrAsk);
        let before = streak.checked_sub(1).and_then(reached);
        if asked && before != Some(StreakAction::CompareOrAsk) {
            let question = format!(
                "{streak} rounds in a row gained nothing: which approach or reference \
                 implementation should be tried?"
            );
            items.push(QueueItem { round: round.number, question });
        }
        let called = |review: &&Review| review.advice == Some(ReviewAdvice::EscalateHuman);
        if let Some(review) = round.reviews.iter().find(called) {
            items.push(QueueItem {
                round: round.number,
                question: format!("the reviewer asks for a human decision: {}", review.reason),
            });
        }
        if let Some(Gate::Dishonest { why }) = &round.gate {
            let question = format!("a candidate was refused as dishonest: {why}");
            items.push(QueueItem { round: round.number, question });
        }
    }
    // An answer covers everything that was asked before it.
    items.retain(|item| item.round >= campaign.answered_in());
    items
}

#[cfg(test)]
mod tests;
