//! The trend of a campaign: each measured round with its interval, the best so far, what an A/A
//! test shows between equals, and the limit of the device.

use super::sheet::told;
use super::ticks::ratio_ticks;
use super::{GRAY, color_of};
use karve_core::campaign::ControlKind;
use karve_core::chart::{COLORS, Chart, Shape, Stroke};
use karve_core::comparison::Estimate;
use karve_core::payload::{Payload, TrendRow};
use karve_core::score::factor_text;

/// A limit farther away than this many times the best is named, not drawn.
const LIMIT_FAR: f64 = 4.0;
/// The color of baselines.
const BASELINE: &str = "#aa4499";
/// Most marks: a longer campaign shows its last rounds, and every keep.
const MARKS_MAX: usize = 1_500;

fn log(ratio: f64) -> f64 {
    ratio.max(f64::MIN_POSITIVE).log10()
}

fn ends(estimate: &Estimate) -> (f64, f64) {
    let at = estimate.ratio;
    (log(estimate.low.unwrap_or(at)), log(estimate.high.unwrap_or(at)))
}

/// The plot; none if nothing was measured.
pub(super) fn trend(payload: &Payload) -> Option<String> {
    let headline = payload.final_comparison.as_ref().map(|shown| shown.overall);
    let measured: Vec<(&TrendRow, Estimate)> =
        payload.trend.iter().filter_map(|row| Some((row, row.estimate?))).collect();
    if measured.is_empty() && headline.is_none() {
        return None;
    }
    let end = payload.trend.last().map_or(0.0, |row| f64::from(row.round)) + 1.0;
    let all = || measured.iter().map(|(_, estimate)| estimate).chain(&headline);
    let baselines = baselines(payload);
    let levels = || baselines.iter().map(|(_, ratio)| log(*ratio));
    let low = all().map(|e| ends(e).0).chain(levels()).fold(0.0, f64::min) - 0.03;
    let best = all().map(|e| ends(e).1).chain(levels()).fold(0.1, f64::max);
    let limit = payload.limit_ratio.filter(|limit| *limit < 10_f64.powf(best) * LIMIT_FAR);
    let high = limit.map_or(best, |limit| best.max(log(limit))) + 0.03;
    let title = "Speedup over the original, with 95% intervals";
    let mut chart = Chart::new(title, (0.0, end + 0.5), (low, high));
    let ticks = ratio_ticks(10_f64.powf(low), 10_f64.powf(high)).into_iter();
    let ticks: Vec<(f64, String)> = ticks.map(|(ratio, text)| (log(ratio), text)).collect();
    chart.axes("round", "speedup (log scale)", &ticks);
    aa_band(&mut chart, payload);
    chart.level(0.0, GRAY, "original");
    for (name, ratio) in &baselines {
        let label = told(&format!("{name}: {}", factor_text(*ratio)));
        chart.level(log(*ratio), BASELINE, &label);
    }
    if let Some(limit) = limit {
        chart.level(log(limit), COLORS[1], &format!("roofline: {}", factor_text(limit)));
    }
    let mut steps = vec![(0.0, 0.0)];
    let mut before = 0.0;
    for row in &payload.trend {
        steps.push((f64::from(row.round), before));
        before = log(row.best);
        steps.push((f64::from(row.round), before));
    }
    chart.line(&steps, COLORS[0], Stroke::Solid);
    let skipped = measured.len().saturating_sub(MARKS_MAX);
    for (at, (row, estimate)) in measured.iter().enumerate() {
        if at >= skipped || row.verdict.starts_with("keep") {
            mark(&mut chart, payload, row, estimate);
        }
    }
    chart.legend("best so far", COLORS[0], Stroke::Solid);
    chart.legend("kept", COLORS[2], Stroke::Solid);
    chart.legend("undecided (ring)", COLORS[1], Stroke::Solid);
    chart.legend("dropped (cross)", GRAY, Stroke::Solid);
    if let Some(headline) = headline {
        let (low, high) = ends(&headline);
        chart.line(&[(end, low), (end, high)], COLORS[0], Stroke::Solid);
        let about = format!("final duel: {}", told(&headline.describe()));
        chart.mark((end, log(headline.ratio)), Shape::Diamond, (COLORS[0], &about));
        let label = format!("final duel: {}", factor_text(headline.ratio));
        chart.legend(&label, COLORS[0], Stroke::Dashed);
    }
    Some(chart.finish())
}

/// The named baselines that count, and how fast each is, over the original.
fn baselines(payload: &Payload) -> Vec<(&str, f64)> {
    let rows = payload.campaign.baselines.iter();
    let shown = rows.filter_map(|row| Some((row.name.as_str(), row.over_original?)));
    shown.filter(|(_, ratio)| ratio.is_finite() && *ratio > 0.0).collect()
}

fn mark(chart: &mut Chart, payload: &Payload, row: &TrendRow, estimate: &Estimate) {
    let (color, x) = (color_of(row.verdict), f64::from(row.round));
    let (low, high) = ends(estimate);
    chart.line(&[(x, low), (x, high)], color, Stroke::Solid);
    let shape = match row.verdict {
        verdict if verdict.starts_with("keep") => Shape::Disc,
        "undecided" => Shape::Ring,
        _ => Shape::Cross,
    };
    let round = payload.rounds.iter().find(|round| round.view.round == row.round);
    let title = round.map_or("", |round| round.view.title.as_str());
    let about = format!("round {}: {} {} {title}", row.round, row.verdict, estimate.describe());
    chart.mark((x, log(estimate.ratio)), shape, (color, &told(&about)));
}

/// What the last A/A test shows between two builds of the same kernel.
fn aa_band(chart: &mut Chart, payload: &Payload) {
    let mut tests = payload.controls.iter().rev();
    let Some(last) = tests.find(|control| control.kind == ControlKind::Same) else {
        return;
    };
    if let (Some(low), Some(high)) = (last.estimate.low, last.estimate.high) {
        chart.band(log(low), log(high), GRAY);
        chart.legend("A/A test", GRAY, Stroke::Dashed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_interval_ends_at_the_estimate() {
        let estimate = Estimate { ratio: 3.0, low: Some(2.5), high: None };
        assert_eq!(ends(&estimate), (2.5_f64.log10(), 3.0_f64.log10()));
    }
}
