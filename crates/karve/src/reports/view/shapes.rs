//! What the tables of primus show of a shape: its size, both passes, and the best version so far.

use crate::reports::figures::{ReportFigures, deciding, headline, with_unit};
use crate::reports::source::ReportSource;
use crate::reports::text::CELL_MAX;
use karve_core::campaign::{Campaign, StopReason};
use karve_core::measurement::PassRates;
use karve_numerics::case::CaseSet;
use karve_numerics::stats;
use minijinja::{Value, context};

/// A reading of one case: the metric, and its passes where the metric has them.
pub(super) type CaseReading = (f64, Option<PassRates>);

/// The rates of both passes in TFLOPS, forward and backward.
type BothRates = (Option<f64>, Option<f64>);

/// The size of a case; one that is hidden has only its number.
pub(super) fn shape(source: &ReportSource<'_>, case: usize) -> Value {
    let is_hidden = source.charter.cases.get(case).is_none_or(|c| c.set == CaseSet::Hidden);
    let params = source.campaign.case(case).filter(|_| !is_hidden).map(|case| case.params);
    let of = |name: &str| {
        let value = params.as_ref().and_then(|params| params.get(name));
        value.map(|value| source.line(value, CELL_MAX))
    };
    let (m, n, k, name) = (of("M"), of("N"), of("K"), source.case(case));
    let size = match (&m, &n, &k) {
        (Some(m), Some(n), Some(k)) => format!("{m}x{n}x{k} ({name})"),
        _ => name,
    };
    context! { size, m, n, k }
}

/// The rates of a case. A metric without passes belongs to one of them.
pub(super) fn pass_rates(
    source: &ReportSource<'_>,
    figures: &ReportFigures<'_>,
    case: usize,
    reading: Option<CaseReading>,
) -> BothRates {
    let metric = &source.charter.metric;
    let rate = |value: f64| figures.tflops(case, value);
    match reading {
        None => (None, None),
        Some((_, Some(passes))) => (rate(passes.forward), rate(passes.backward)),
        Some((value, None)) if metric.is_backward() => (None, rate(value)),
        Some((value, None)) => (rate(value), None),
    }
}

/// The same for a template.
pub(super) fn rates_page((forward, backward): BothRates) -> Value {
    context! { forward, backward }
}

/// The geometric mean of each pass over the visible cases, if all were measured.
pub(super) fn aggregates(
    source: &ReportSource<'_>,
    figures: &ReportFigures<'_>,
    reading: impl Fn(usize) -> Option<CaseReading>,
) -> Value {
    let visible = source.charter.visible_cases().into_iter();
    let rates: Vec<_> =
        visible.map(|case| pass_rates(source, figures, case, reading(case))).collect();
    let mean = |of: fn(&BothRates) -> Option<f64>| -> Option<f64> {
        let all: Option<Vec<f64>> = rates.iter().map(of).collect();
        stats::geometric_mean(&all?)
    };
    rates_page((mean(|rates| rates.0), mean(|rates| rates.1)))
}

/// The first column of rates: a kernel whose work is not known has its metric there.
pub(super) fn first_rate(source: &ReportSource<'_>, figures: &ReportFigures<'_>) -> String {
    let mut visible = source.charter.visible_cases().into_iter();
    match visible.any(|case| figures.tflops(case, 1.0).is_some()) {
        true => "Forward TFLOPS".to_owned(),
        false => source.line(&source.charter.metric.name, CELL_MAX),
    }
}

/// Each visible case, before and now: as the final duel read it, or else by the kept rounds.
pub(super) fn best(source: &ReportSource<'_>, figures: &ReportFigures<'_>) -> Vec<Value> {
    let visible = source.charter.visible_cases().into_iter();
    let shown = visible.map(|case| {
        let ended = headline(source).and_then(|duel| duel.cases.iter().find(|c| c.case == case));
        let (before, after, ratio) = match ended {
            Some(of) => {
                (Some(of.parent_median), Some(of.candidate_median), Some(of.estimate.ratio))
            }
            None => so_far(source, figures, case),
        };
        context! {
            before => with_unit(source, before),
            after => with_unit(source, after),
            ratio,
            ..shape(source, case)
        }
    });
    shown.collect()
}

/// The baseline's reading, that of the last kept version, and the product of the kept gains.
fn so_far(
    source: &ReportSource<'_>,
    figures: &ReportFigures<'_>,
    case: usize,
) -> (Option<f64>, Option<f64>, Option<f64>) {
    let before = figures.baseline_median(case);
    let kept = source.campaign.rounds().iter().filter(|round| round.verdict.keeps());
    kept.fold((before, before, Some(1.0)), |(before, _, ratio), round| {
        let cases = deciding(round).map(|(comparison, _)| &comparison.cases);
        let of = cases.and_then(|cases| cases.iter().find(|c| c.case == case));
        let gained = ratio.zip(of).map(|(ratio, of)| ratio * of.estimate.ratio);
        (before, of.map(|of| of.candidate_median), gained)
    })
}

/// Which of primus's conditions ended the campaign.
pub(super) fn termination(campaign: &Campaign) -> Value {
    let met = campaign.stop_reason().and_then(condition);
    context! {
        t1 => met == Some("T1") || campaign.goal_met(),
        t2 => met == Some("T2"),
        t3 => met == Some("T3"),
        t4 => met == Some("T4"),
        met,
    }
}

/// The condition of primus that a reason to stop is; a limit on time or cost is the user's.
fn condition(reason: &StopReason) -> Option<&'static str> {
    match reason {
        StopReason::TargetMet => Some("T1"),
        StopReason::HardwareLimit => Some("T2"),
        StopReason::RoundsUsed { .. } => Some("T3"),
        StopReason::TimeUsed | StopReason::CostUsed | StopReason::Exhausted { limit: true, .. } => {
            Some("T4")
        }
        StopReason::MutationCheckFailed
        | StopReason::BaselineFailed { .. }
        | StopReason::NoGain { .. }
        | StopReason::SmallGain
        | StopReason::Exhausted { limit: false, .. }
        | StopReason::AgendaThrough { .. }
        | StopReason::AgentUnusable { .. }
        | StopReason::MeasurementInvalid { .. } => None,
    }
}
