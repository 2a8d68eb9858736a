//! What was measured of one version of a kernel, case by case.

use karve_core::campaign::{Campaign, RoundSummary};
use karve_core::comparison::{Comparison, Estimate};
use karve_core::roofline::{SHARE_MAX, shown_cores};
use karve_core::score;
use karve_core::suite::{SolTimes, mean};
use karve_numerics::case::Case;
use karve_numerics::contract::CaseTensorError;
use karve_numerics::roof::roofline_s;
use karve_profile::roofline::cases;
use serde::Serialize;
use std::collections::BTreeMap;

/// What was measured of a version; version 0 is the kernel that the campaign started from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VersionFigures {
    /// The round that made it.
    pub round: u32,
    /// The speedup over the original, if the two were measured against each other.
    pub overall: Option<Estimate>,
    /// The speedup over the fastest correct baseline, where it was measured beside this version.
    pub over_baseline: Option<Estimate>,
    /// The name of that baseline.
    pub baseline: Option<String>,
    /// Blocks of the measurement against the original.
    pub blocks: u32,
    /// The visible cases that were measured.
    pub cases: Vec<CaseFigures>,
}

/// One case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CaseFigures {
    /// Its index in the charter.
    pub case: usize,
    /// Its name.
    pub name: String,
    /// The median reading, in the metric's unit.
    pub value: f64,
    /// The same of the original.
    pub baseline: f64,
    /// The speedup over the original, with its interval if the two were measured together.
    pub estimate: Estimate,
    /// Seconds of a call.
    pub time_s: Option<f64>,
    /// The same of the original.
    pub baseline_s: Option<f64>,
    /// The least time that the device allows, if the roofline is known.
    pub bound_s: Option<f64>,
    /// The largest absolute and relative error, under a contract.
    pub errors: Option<[f64; 2]>,
}

impl CaseFigures {
    /// The SOL score, if the bound is known.
    pub fn sol_score(&self) -> Option<f64> {
        let [kernel, baseline, bound] = [self.time_s?, self.baseline_s?, self.bound_s?];
        SolTimes { kernel, baseline, bound }.score()
    }
}

impl VersionFigures {
    /// The figures of a version.
    pub fn of(campaign: &Campaign, round: u32) -> Self {
        let summary = campaign.rounds().iter().find(|one| one.number == round);
        let (direct, shown) = comparisons(campaign, round, summary);
        let original = campaign.baseline_values();
        let values = match (direct.or(shown), round) {
            (Some(comparison), _) => comparison.candidate_values(),
            (None, 0) => original.clone(),
            (None, _) => BTreeMap::new(),
        };
        let bounds = bounds(campaign);
        let mut figures = Vec::new();
        for (case, known) in cases::visible(campaign) {
            let own = direct.and_then(|c| c.cases.iter().find(|one| one.case == case));
            let baseline = own.map(|one| one.parent_median).or(original.get(&case).copied());
            let (Some(&value), Some(baseline)) = (values.get(&case), baseline) else {
                continue;
            };
            let seconds = |value: f64| in_seconds(campaign, value, &known);
            let plain = Estimate { ratio: ratio(campaign, value, baseline), low: None, high: None };
            figures.push(CaseFigures {
                case,
                value,
                baseline,
                estimate: own.map_or(plain, |own| own.estimate),
                time_s: seconds(value),
                baseline_s: seconds(baseline),
                bound_s: bounds.get(&case).copied(),
                errors: summary.and_then(|summary| errors(&summary.errors, &known.name)),
                name: known.name,
            });
        }
        let same = Estimate { ratio: 1.0, low: None, high: None };
        let view = campaign.view();
        let baseline = view.headline_over.filter(|_| view.best_round == round);
        Self {
            round,
            over_baseline: view.headline.filter(|_| baseline.is_some()),
            baseline,
            overall: direct.map(|c| c.overall).or((round == 0).then_some(same)),
            blocks: direct.map_or(0, |c| c.blocks),
            cases: figures,
        }
    }

    /// The mean SOL score over the cases; none unless the bound of each is known.
    pub fn sol_score(&self) -> Option<f64> {
        let scores: Option<Vec<f64>> = self.cases.iter().map(CaseFigures::sol_score).collect();
        mean(&scores?)
    }

    /// The mean share of the roofline over the cases; none unless the bound of each is known.
    pub fn bound_share(&self) -> Option<f64> {
        let share = |case: &CaseFigures| Some(case.bound_s? / case.time_s?);
        let shares: Option<Vec<f64>> = self.cases.iter().map(share).collect();
        mean(&shares?)
    }

    /// What a reader must know about the speedups, where there is a baseline too.
    pub fn baseline_note(&self) -> Option<String> {
        let (name, speedup) = (self.baseline.as_ref()?, self.over_baseline?.describe());
        Some(format!(
            "speedups are over the kernel that the campaign started from; the headline is \
             {speedup} over {name}, the fastest correct baseline"
        ))
    }

    /// The speedup over the original: as measured, or the mean over the cases.
    pub fn speedup(&self) -> Option<f64> {
        let ratios: Vec<f64> = self.cases.iter().map(|case| case.estimate.ratio).collect();
        let overall = self.overall.map(|overall| overall.ratio);
        overall.or_else(|| karve_numerics::stats::geometric_mean(&ratios))
    }
}

/// The version against the original, and against its parent, as far as they were measured.
fn comparisons<'a>(
    campaign: &'a Campaign,
    round: u32,
    summary: Option<&'a RoundSummary>,
) -> (Option<&'a Comparison>, Option<&'a Comparison>) {
    let is_best = campaign.view().best_round == round && round > 0;
    let ended = campaign.final_comparison().filter(|_| is_best && campaign.is_finished());
    let shown = summary.and_then(|summary| summary.shown());
    let checked = summary.and_then(|summary| Some(&summary.check.as_ref()?.comparison));
    let first = shown.filter(|_| summary.is_some_and(|s| s.parent == campaign.base_commit()));
    (ended.or(checked).or(first), shown)
}

fn ratio(campaign: &Campaign, value: f64, baseline: f64) -> f64 {
    use karve_core::charter::Better;
    match campaign.charter().map(|charter| charter.metric.better) {
        Some(Better::Higher) => value / baseline,
        Some(Better::Lower) | None => baseline / value,
    }
}

fn in_seconds(campaign: &Campaign, value: f64, case: &Case) -> Option<f64> {
    score::implied_seconds(&campaign.charter()?.metric, value, case)
}

/// The least time of each case, as far as its work or bytes and the peaks are known. A bound that
/// the best kernel is far below says nothing.
fn bounds(campaign: &Campaign) -> BTreeMap<usize, f64> {
    let roof = campaign.baseline().and_then(|baseline| baseline.roof.as_ref());
    let charter = campaign.charter().filter(|charter| charter.declares_work());
    let (Some(charter), Some(roof)) = (charter, roof) else {
        return BTreeMap::new();
    };
    let cases = cases::visible(campaign);
    let (first, last) = (cases::at_baseline(campaign), cases::of_incumbent(campaign));
    let cores = shown_cores(charter, &cases, roof, &[&first, &last]);
    let bound = |(index, case): (usize, Case)| {
        let demand = charter.demand(&case)?;
        let bound_s = roofline_s(demand, roof.peaks_on(cores, demand).0)?;
        let is_sound = last.get(&index).is_none_or(|time_s| bound_s <= SHARE_MAX * time_s);
        is_sound.then_some((index, bound_s))
    };
    cases.into_iter().filter_map(bound).collect()
}

/// The largest absolute and relative error on a case, over all tensors.
fn errors(all: &[CaseTensorError], case: &str) -> Option<[f64; 2]> {
    let own = all.iter().filter(|one| one.case == case);
    own.map(|one| [one.error.max_abs, one.error.max_rel])
        .reduce(|a, b| [a[0].max(b[0]), a[1].max(b[1])])
}
