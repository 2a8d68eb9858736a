//! Plain data from which every screen and file is rendered.

mod baselines;

pub use baselines::{BaselineView, over_baselines};

use crate::agenda::ItemOutcome;
use crate::campaign::strategy::{Directive, QueueItem};
use crate::campaign::{Campaign, OriginalCheck, RoundPhase, RoundSummary, signals_of, strategy};
use crate::comparison::{Comparison, Estimate};
use crate::integrity::AuditFinding;
use crate::measurement::Gate;
use crate::roles::{Review, RoutingDecision, SignalAssessment};
use crate::spending::{AgentUsage, CostPerPercent, TurnPurpose, TurnTotals};
use crate::variants::VariantTrial;
use crate::{agenda, lineage, score, spending, verdict};
use karve_numerics::contract::CaseTensorError;
use karve_numerics::stats;
use serde::Serialize;
use std::collections::BTreeMap;

/// A campaign at a glance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CampaignView {
    /// Its name.
    pub campaign: String,
    /// What happens next, or `finished`.
    pub step: String,
    /// Why it ended, once it did.
    pub stopped: Option<String>,
    /// Rounds that are settled.
    pub rounds_done: u32,
    /// Rounds that the limits allow.
    pub rounds_max: u32,
    /// Rounds that were kept.
    pub kept: u32,
    /// Rounds in a row without a gain.
    pub streak: u32,
    /// Time of work, in seconds.
    pub spent_s: f64,
    /// What the agent used.
    pub usage: AgentUsage,
    /// The same by what it was asked for, and for each percent of gain.
    pub cost: CostView,
    /// The metric: name, unit.
    pub metric: (String, String),
    /// The aggregate at the baseline.
    pub baseline: Option<f64>,
    /// The aggregate of the incumbent, estimated from the kept gains.
    pub incumbent: Option<f64>,
    /// The speedup over the original before there is a headline: as last measured directly, times
    /// the gains kept since then.
    pub cumulative_ratio: f64,
    /// How many gains that is; `speedup_note` says so in words.
    pub unchecked_keeps: u32,
    /// What must be said along with the speedup.
    pub speedup_note: Option<String>,
    /// The only headline number: original against final, measured again at the end; or, where there
    /// are baselines, the fastest correct one against final.
    pub headline: Option<Estimate>,
    /// The name of that baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headline_over: Option<String>,
    /// Original against final, where the headline is over a baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over_original: Option<Estimate>,
    /// What the log states and its readings do not show: it was changed, and no figure here counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub misstated: Vec<String>,
    /// The named baselines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub baselines: Vec<BaselineView>,
    /// What the check of an imported task lets through.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub task_findings: Vec<String>,
    /// Whose word the numbers rest on, where no contract is; see [`crate::charter::Charter`].
    pub self_reported: Option<&'static str>,
    /// Whether the final duel confirms a gain; `None` before it.
    pub confirmed: Option<bool>,
    /// By how much the product of the kept gains exceeds what the final duel shows on the same
    /// visible cases, in percent.
    pub inflation_percent: Option<f64>,
    /// Share of the measured peak at the baseline.
    pub peak_share_baseline: Option<f64>,
    /// Share of the measured peak now.
    pub peak_share: Option<f64>,
    /// The commit of the incumbent.
    pub best_commit: String,
    /// The round that made it; 0 is the baseline.
    pub best_round: u32,
    /// Where to look next.
    pub directive: Directive,
    /// Questions for a person.
    pub queue: Vec<QueueItem>,
    /// The items of the agenda, in the order in which they are taken up.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agenda: Vec<ItemView>,
    /// The round under way.
    pub current: Option<CurrentView>,
}

/// What agents used.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CostView {
    /// By what was asked for; what was never asked for is left out.
    pub turns: BTreeMap<String, TurnTotals>,
    /// Per percent of the gain that is shown; `None` if nothing was reported or gained.
    pub per_percent: Option<CostPerPercent>,
}

/// An item of the agenda, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ItemView {
    /// Its name.
    pub id: String,
    /// One line.
    pub title: String,
    /// What it was expected to gain.
    pub expected_ratio: f64,
    /// The effort it takes.
    pub effort: &'static str,
    /// `kept`, `dropped`, `skipped`, `due`, `open`, or `not reached` when the campaign has ended.
    pub state: &'static str,
    /// Why, in words, where there is more to say.
    pub why: String,
    /// The rounds that tried it.
    pub rounds: Vec<u32>,
    /// What was measured, if it was kept.
    pub ratio: Option<f64>,
}

/// The round under way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CurrentView {
    /// Its number.
    pub round: u32,
    /// Where it stands.
    pub phase: String,
    /// The hypothesis, once there is one.
    pub title: Option<String>,
    /// Blocks measured, while it is measured.
    pub blocks: Option<u32>,
}

/// One settled round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RoundView {
    /// Its number.
    pub round: u32,
    /// The hypothesis.
    pub title: String,
    /// What was expected.
    pub expected_ratio: Option<f64>,
    /// What was measured.
    pub ratio: Option<f64>,
    /// What became of it.
    pub verdict: String,
    /// Why.
    pub why: String,
    /// Blocks that were measured.
    pub blocks: u32,
    /// The candidate's commit.
    pub commit: Option<String>,
    /// Whether the gate was passed.
    pub passed: Option<bool>,
    /// The results of each implementation, if there were several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tryouts: Vec<VariantTrial>,
    /// Which of them continued, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<u32>,
    /// The deciding comparison.
    pub comparison: Option<Comparison>,
    /// Time of work, in seconds.
    pub spent_s: f64,
    /// The speedup over the original up to here.
    pub cumulative_ratio: f64,
    /// Gains in it that were not measured against the original.
    pub unchecked_keeps: u32,
    /// What the original against the candidate showed, if that was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<OriginalCheck>,
    /// The aggregate of this candidate.
    pub aggregate: Option<f64>,
    /// What it taught.
    pub lesson: String,
    /// What the audit found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<AuditFinding>,
    /// How far its results were from the reference, under a contract.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<CaseTensorError>,
    /// Who was asked, and why, where there are roles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<RoutingDecision>,
    /// The reviews of its candidates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reviews: Vec<Review>,
    /// The five signals of a review from the figures, where there was one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub signals: Vec<SignalAssessment>,
}

impl CampaignView {
    /// The one number to show: the headline, or the speedup so far before there is one.
    pub fn gain(&self) -> f64 {
        self.headline.map_or(self.cumulative_ratio, |headline| headline.ratio)
    }

    /// What it is a speedup over.
    pub fn gain_over(&self) -> String {
        match &self.headline_over {
            Some(name) => format!("{name}, the fastest correct baseline"),
            None => "the original".to_owned(),
        }
    }

    /// What must be shown along with it, after a comma.
    pub fn gain_note(&self) -> String {
        let over = self.headline_over.as_ref().map(|_| format!(", over {}", self.gain_over()));
        let note = self.speedup_note.as_ref().map(|note| format!(", {note}"));
        over.unwrap_or_default() + &note.unwrap_or_default()
    }
}

impl Campaign {
    /// The campaign at a glance.
    pub fn view(&self) -> CampaignView {
        let charter = self.charter();
        let best = self.lineage().best();
        let over_original = self.final_comparison().map(|comparison| comparison.overall);
        let baselines = self.baseline_views();
        let over_fastest = self.over_fastest(&baselines);
        let headline = over_fastest.as_ref().map(|(_, speedup)| *speedup).or(over_original);
        let headline_over = over_fastest.map(|(name, _)| name);
        let cumulative = self.lineage().cumulative_ratio();
        let unchecked_keeps = match over_original {
            Some(_) => 0,
            None => self.lineage().n_unchecked(),
        };
        let now = self.final_visible_ratio().unwrap_or(cumulative);
        CampaignView {
            campaign: charter.map(|c| c.name.clone()).unwrap_or_default(),
            step: self.next_step().map_or("finished", |step| step.name()).to_owned(),
            stopped: self.stop_text(),
            rounds_done: u32::try_from(self.rounds().len()).unwrap_or(u32::MAX),
            rounds_max: charter.map_or(0, |c| c.limits.rounds),
            kept: u32::try_from(self.lineage().kept().len()).unwrap_or(u32::MAX),
            streak: self.streak(),
            spent_s: self.spent_ms() as f64 / 1_000.0,
            usage: spending::shown(self.cost()),
            cost: self.cost_view(),
            metric: charter
                .map(|c| (c.metric.name.clone(), c.metric.unit.clone()))
                .unwrap_or_default(),
            baseline: self.baseline_aggregate(),
            incumbent: self.aggregate_at(now),
            cumulative_ratio: cumulative,
            unchecked_keeps,
            speedup_note: lineage::unchecked_note(unchecked_keeps).or_else(|| self.busy_note()),
            headline,
            over_original: over_original.filter(|_| headline_over.is_some()),
            headline_over,
            misstated: self.misstatements().iter().map(|one| one.describe()).collect(),
            baselines,
            task_findings: self.preparation().map(|p| p.task_findings.clone()).unwrap_or_default(),
            self_reported: charter.and_then(|c| c.self_reported()),
            confirmed: self.final_comparison().and_then(verdict::confirms),
            inflation_percent: self
                .final_visible_ratio()
                .map(|ratio| score::percent_change(ratio, self.lineage().product())),
            peak_share_baseline: self.peak_share_at(1.0),
            peak_share: self.peak_share_at(now),
            best_commit: self.incumbent().to_owned(),
            best_round: best.map_or(0, |kept| kept.round),
            directive: strategy::directive(self),
            queue: strategy::queue(self),
            agenda: self.agenda_view(),
            current: self.current_view(),
        }
    }

    /// What agents used. The gain is the headline, or the speedup so far before there is one.
    fn cost_view(&self) -> CostView {
        let spent =
            TurnPurpose::ALL.map(|asked| (asked.name().to_owned(), self.spending().of(asked)));
        let asked = spent.into_iter().filter(|(_, spent)| spent.turns > 0);
        let headline = self.final_comparison().map(|c| c.overall.ratio);
        let gain = headline.unwrap_or_else(|| self.lineage().cumulative_ratio());
        let shown = |(name, spent): (String, TurnTotals)| {
            let usd = spending::shown_usd(spent.usd);
            (name, TurnTotals { usd, ..spent })
        };
        let price = spending::per_percent(self.cost(), gain);
        CostView {
            turns: asked.map(shown).collect(),
            per_percent: price
                .map(|price| CostPerPercent { usd: price.usd.map(spending::shown_usd), ..price }),
        }
    }

    /// What the final duel shows on the visible cases, which is what the rounds measured.
    pub fn final_visible_ratio(&self) -> Option<f64> {
        let visible = self.charter()?.visible_cases();
        let cases = &self.final_comparison()?.cases;
        let of_visible = cases.iter().filter(|case| visible.contains(&case.case));
        let ratios: Vec<f64> = of_visible.map(|case| case.estimate.ratio).collect();
        stats::geometric_mean(&ratios)
    }

    fn agenda_view(&self) -> Vec<ItemView> {
        let (items, fates) = (self.items(), self.fates());
        let task = self.current_round().and_then(|round| round.task.as_ref());
        let of = |number: usize| {
            let item = &items[number];
            let of_it = |round: &&RoundSummary| round.task.as_ref() == Some(&item.id);
            let tried: Vec<&RoundSummary> = self.rounds().iter().filter(of_it).collect();
            let (state, why, ratio) = match &fates[number] {
                ItemOutcome::Kept { ratio, .. } => ("kept", String::new(), *ratio),
                ItemOutcome::Dropped { .. } => {
                    let last = tried.last().map(|round| &round.verdict);
                    let why = last.map(|verdict| verdict.describe(&|case| self.case_name(case)));
                    ("dropped", why.unwrap_or_default(), None)
                }
                ItemOutcome::Skipped { why } => ("skipped", why.clone(), None),
                ItemOutcome::Open if task == Some(&item.id) => ("due", String::new(), None),
                ItemOutcome::Open if self.stop_reason().is_some() => {
                    ("not reached", String::new(), None)
                }
                ItemOutcome::Open => ("open", String::new(), None),
            };
            ItemView {
                id: item.id.clone(),
                title: item.title.clone(),
                expected_ratio: item.expected_ratio,
                effort: item.effort.name(),
                state,
                why,
                rounds: tried.iter().map(|round| round.number).collect(),
                ratio,
            }
        };
        agenda::order(items).into_iter().map(of).collect()
    }

    fn current_view(&self) -> Option<CurrentView> {
        let round = self.current_round()?;
        let blocks = match &round.phase {
            RoundPhase::Measuring(measuring) => Some(measuring.duel.n_blocks()),
            RoundPhase::Checking(check) => Some(check.duel.n_blocks()),
            _ => None,
        };
        Some(CurrentView {
            round: round.number,
            phase: round.phase.name().to_owned(),
            title: round.hypothesis.as_ref().map(|h| h.title.clone()),
            blocks,
        })
    }

    /// One settled round.
    pub fn round_view(&self, round: &RoundSummary) -> RoundView {
        let before = if round.verdict.keeps() {
            1.0
        } else {
            // A dropped candidate is its parent's aggregate times its own speedup.
            round.ratio().unwrap_or(1.0)
        };
        RoundView {
            round: round.number,
            title: round.title().to_owned(),
            expected_ratio: round.hypothesis.as_ref().map(|h| h.expected_ratio),
            ratio: round.ratio(),
            verdict: round.verdict.word().to_owned(),
            why: round.why(&|case| self.case_name(case)),
            blocks: round.shown().map_or(0, |c| c.blocks),
            commit: round.candidate.as_ref().map(|candidate| candidate.commit.clone()),
            passed: round.gate.as_ref().map(Gate::passed),
            tryouts: round.tryouts.clone(),
            chosen: round.chosen,
            comparison: round.comparison.clone().or_else(|| round.quick.clone()),
            spent_s: round.spent_ms as f64 / 1_000.0,
            cumulative_ratio: round.cumulative_ratio,
            unchecked_keeps: round.unchecked_keeps,
            check: round.check.clone(),
            aggregate: round
                .ratio()
                .and_then(|_| self.aggregate_at(round.cumulative_ratio * before)),
            lesson: round.lesson.text.clone(),
            findings: round.findings.clone(),
            errors: round.errors.clone(),
            route: round.route.as_deref().cloned(),
            signals: match round.reviews.is_empty() {
                true => Vec::new(),
                false => signals_of(round),
            },
            reviews: round.reviews.clone(),
        }
    }
}
