//! Figures that several reports show. The core computes ratios, aggregates and medians; here
//! they are only converted to the units of a table.

use super::source::ReportSource;
use super::text::{number, typed};
use karve_core::campaign::RoundSummary;
use karve_core::charter::{Better, Goal};
use karve_core::comparison::{CaseComparison, Comparison, SpeedChange};
use karve_core::measurement::PassRates;
use karve_numerics::expr::{Expr, parse_expr};
use karve_numerics::stats;
use minijinja::{Value, context};
use std::collections::BTreeMap;

/// The most characters of a unit.
pub(super) const UNIT_MAX: usize = 20;
/// Operations per second in a TFLOPS.
const TERA: f64 = 1e12;

/// Values that are computed once per file.
pub(super) struct ReportFigures<'a> {
    source: &'a ReportSource<'a>,
    medians: BTreeMap<usize, f64>,
    passes: BTreeMap<usize, PassRates>,
    work: Option<Expr>,
}

impl<'a> ReportFigures<'a> {
    /// The figures of a campaign.
    pub(super) fn of(source: &'a ReportSource<'a>) -> Self {
        let mut values: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        let mut passes: BTreeMap<usize, Vec<PassRates>> = BTreeMap::new();
        let baseline = source.campaign.baseline();
        for reading in baseline.iter().flat_map(|baseline| &baseline.readings) {
            let of_case = values.entry(reading.case).or_default();
            of_case.push(reading.sample.value);
            passes.entry(reading.case).or_default().extend(reading.sample.passes);
        }
        let passes = passes
            .into_iter()
            .filter_map(|(case, all)| Some((case, PassRates::median(&all)?)))
            .collect();
        let medians = values
            .into_iter()
            .filter_map(|(case, values)| Some((case, stats::median(&values)?)))
            .collect();
        let work = source.charter.metric.work.as_deref();
        Self { source, medians, passes, work: work.and_then(|work| parse_expr(work).ok()) }
    }

    /// The median baseline reading of a case, in the metric's unit.
    pub(super) fn baseline_median(&self, case: usize) -> Option<f64> {
        self.medians.get(&case).copied()
    }

    /// The median baseline passes of a case, in the metric's unit.
    pub(super) fn baseline_passes(&self, case: usize) -> Option<PassRates> {
        self.passes.get(&case).copied()
    }

    /// How much faster one pass became against the baseline, over the visible cases.
    pub(super) fn pass_speedup(
        &self,
        passes: impl Fn(usize) -> Option<PassRates>,
        pick: fn(PassRates) -> f64,
    ) -> Option<f64> {
        let visible = self.source.charter.visible_cases();
        let ratios: Option<Vec<f64>> = visible
            .into_iter()
            .map(|case| Some(pick(passes(case)?) / pick(self.baseline_passes(case)?)))
            .collect();
        stats::geometric_mean(&ratios?)
    }

    /// The candidate of a round against the baseline: its parent's gains times its own.
    pub(super) fn speedup(&self, round: &RoundSummary) -> Option<f64> {
        let base = self.source.campaign.baseline_aggregate()?;
        let now = self.source.campaign.round_view(round).aggregate?;
        Some(self.source.charter.metric.ln_speedup(base, now).exp())
    }

    /// A reading as a rate.
    pub(super) fn tflops(&self, case: usize, value: f64) -> Option<f64> {
        let metric = &self.source.charter.metric;
        if let Some(per_unit) = metric.rate_per_unit() {
            return Some(value * per_unit / TERA);
        }
        let seconds = value * metric.seconds_per_unit()?;
        Some(self.operations(case)? / seconds / TERA)
    }

    /// Mean and maximum rate over the visible cases, if each has a value.
    pub(super) fn mean_and_peak(&self, value: impl Fn(usize) -> Option<f64>) -> Option<(f64, f64)> {
        let visible = self.source.charter.visible_cases();
        let rates: Option<Vec<f64>> =
            visible.into_iter().map(|case| self.tflops(case, value(case)?)).collect();
        let rates = rates.filter(|rates| !rates.is_empty())?;
        let peak = rates.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some((rates.iter().sum::<f64>() / rates.len() as f64, peak))
    }

    /// Geometric-mean rate over the visible cases at a speedup over the baseline.
    pub(super) fn tflops_at(&self, speedup: f64) -> Option<f64> {
        Some(self.source.campaign.baseline_rate()? * speedup / TERA)
    }

    /// An aggregate of the metric as a time, if it is one or the work is known.
    pub(super) fn latency_ms(&self, aggregate: Option<f64>) -> Option<f64> {
        let (metric, aggregate) = (&self.source.charter.metric, aggregate?);
        if let Some(seconds) = metric.seconds_per_unit() {
            return Some(aggregate * seconds * 1e3);
        }
        let visible = self.source.charter.visible_cases();
        let work: Option<Vec<f64>> = visible.iter().map(|c| self.operations(*c)).collect();
        let operations = stats::geometric_mean(&work?)?;
        Some(operations / (aggregate * metric.rate_per_unit()?) * 1e3)
    }

    /// A reading of one case as a time, if it is one or the work is known.
    pub(super) fn case_latency_ms(&self, case: usize, value: f64) -> Option<f64> {
        let metric = &self.source.charter.metric;
        if let Some(seconds) = metric.seconds_per_unit() {
            return Some(value * seconds * 1e3);
        }
        Some(self.operations(case)? / (value * metric.rate_per_unit()?) * 1e3)
    }

    /// The time of a round's candidate or its parent as it was measured: the geometric mean of its
    /// own medians in the duel over the visible cases, if each was measured.
    pub(super) fn round_latency_ms(
        &self,
        round: &RoundSummary,
        pick: fn(&CaseComparison) -> f64,
    ) -> Option<f64> {
        let (comparison, _) = deciding(round)?;
        let visible = self.source.campaign.cases_at(round.number).into_iter();
        let of = |case: usize| comparison.cases.iter().find(|c| c.case == case);
        let medians: Option<Vec<f64>> = visible.map(|case| of(case).map(pick)).collect();
        self.latency_ms(stats::geometric_mean(&medians?))
    }

    /// A step from one aggregate to another, as a time and as a rate.
    pub(super) fn speed(&self, before: Option<f64>, after: Option<f64>) -> Value {
        let times = [before, after].map(|aggregate| self.latency_ms(aggregate));
        let time = |ms: Option<f64>| match ms {
            Some(_) => format!("{} ms", number(ms)),
            None => number(None),
        };
        let rate = |aggregate: Option<f64>, ms: Option<f64>| match self.source.charter.metric.better
        {
            Better::Higher => with_unit(self.source, aggregate),
            Better::Lower if ms.is_some() => format!("{} calls/s", number(ms.map(|ms| 1e3 / ms))),
            Better::Lower => number(None),
        };
        context! {
            time_before => time(times[0]),
            time_after => time(times[1]),
            before_ms => times[0],
            after_ms => times[1],
            time_ratio => times[0].zip(times[1]).map(|(before, after)| after / before),
            rate_before => rate(before, times[0]),
            rate_after => rate(after, times[1]),
        }
    }

    /// The work of one call.
    pub(super) fn operations(&self, case: usize) -> Option<f64> {
        let params = self.source.campaign.case(case)?.params;
        self.work.as_ref()?.evaluate_params(&params).ok()
    }
}

/// Original against final, if the campaign is finished and measured it.
pub(super) fn headline<'a>(source: &ReportSource<'a>) -> Option<&'a Comparison> {
    // An extended campaign that runs again has only the duel of its previous end.
    let ended = source.campaign.stop_reason().is_some();
    source.campaign.final_comparison().filter(|_| ended)
}

/// The speedup of the incumbent on the visible cases: measured at the end, or the speedup so far.
/// It belongs to the aggregates, which are about the visible cases too.
pub(super) fn speedup_now(source: &ReportSource<'_>) -> f64 {
    let measured = headline(source).and_then(|_| source.campaign.final_visible_ratio());
    measured.unwrap_or_else(|| source.campaign.lineage().cumulative_ratio())
}

/// The comparison that decided a round, and the set of cases it was made on.
pub(super) fn deciding(round: &RoundSummary) -> Option<(&Comparison, &'static str)> {
    let full = round.comparison.as_ref().map(|c| (c, "full"));
    full.or_else(|| round.quick.as_ref().map(|c| (c, "quick")))
}

/// The result of a case by its interval, as text.
pub(super) fn change(change: SpeedChange) -> &'static str {
    match change {
        SpeedChange::Improved => "faster",
        SpeedChange::Regressed => "slower",
        SpeedChange::Inconclusive => "inconclusive",
    }
}

/// A reading with its unit.
pub(super) fn with_unit(source: &ReportSource<'_>, value: Option<f64>) -> String {
    match value.filter(|value| value.is_finite()) {
        Some(value) => {
            let unit = source.line(&source.charter.metric.unit, UNIT_MAX);
            format!("{} {unit}", number(Some(value))).trim().to_owned()
        }
        None => number(None),
    }
}

/// The goal as text.
pub(super) fn goal(source: &ReportSource<'_>) -> Option<String> {
    let unit = source.line(&source.charter.metric.unit, UNIT_MAX);
    Some(match source.charter.target.goal? {
        Goal::AtLeast { value } => format!(">{} {unit}", typed(value)),
        Goal::AtMost { value } => format!("<{} {unit}", typed(value)),
        Goal::PeakShare { share } => format!(">{}% peak", typed(share * 100.0)),
        Goal::Speedup { ratio } => format!(">{}x", typed(ratio)),
    })
}
