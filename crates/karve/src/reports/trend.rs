//! The trend of a campaign: each measured round with its interval, and the best so far.

use super::source::ReportSource;
use karve_core::campaign::{Campaign, RoundSummary};
use karve_core::chart::{COLORS, Chart, Stroke};
use karve_core::comparison::Estimate;
use karve_core::score::factor_text;

/// The path of the plot.
pub(super) const PLOT: &str = "trend.svg";

/// The color of rounds that were not kept.
const GRAY: &str = "#8a8a8a";
/// How many ticks the vertical axis has, at most.
const TICKS_MAX: i32 = 8;

/// A speedup over the original, on a log scale, with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
struct TrendPoint {
    round: f64,
    at: f64,
    low: f64,
    high: f64,
    kept: bool,
}

impl TrendPoint {
    fn new(round: f64, before: f64, estimate: &Estimate, kept: bool) -> Self {
        let log = |ratio: f64| (before * ratio).max(f64::MIN_POSITIVE).log10();
        let at = log(estimate.ratio);
        let (low, high) = (estimate.low.map_or(at, log), estimate.high.map_or(at, log));
        Self { round, at, low, high, kept }
    }
}

/// The rounds that were measured, and the steps of the best so far.
fn points(campaign: &Campaign) -> (Vec<TrendPoint>, Vec<(f64, f64)>) {
    let (mut points, mut steps) = (Vec::new(), vec![(0.0, 0.0)]);
    let mut best = 1.0_f64;
    for round in campaign.rounds() {
        let number = f64::from(round.number);
        let kept = round.verdict.keeps();
        if let Some(comparison) = round.shown() {
            points.push(TrendPoint::new(number, best, &comparison.overall, kept));
        }
        steps.push((number, best.log10()));
        best = campaign.round_view(round).cumulative_ratio;
        steps.push((number, best.log10()));
    }
    (points, steps)
}

/// Whether there is anything to draw: something was measured.
pub(super) fn is_drawn(campaign: &Campaign) -> bool {
    let measured = |round: &RoundSummary| round.shown().is_some();
    campaign.final_comparison().is_some() || campaign.rounds().iter().any(measured)
}

/// The plot; none if nothing was measured.
pub(super) fn render_plot(source: &ReportSource<'_>) -> Option<String> {
    let campaign = source.campaign;
    if !is_drawn(campaign) {
        return None;
    }
    let (mut points, steps) = points(campaign);
    let end = campaign.rounds().last().map_or(0.0, |round| f64::from(round.number)) + 1.0;
    let last = campaign.final_comparison();
    let last = last.map(|comparison| TrendPoint::new(end, 1.0, &comparison.overall, true));
    let every = || points.iter().chain(&last);
    let low = every().map(|point| point.low).fold(0.0, f64::min) - 0.03;
    let high = every().map(|point| point.high).fold(0.1, f64::max) + 0.03;
    let title = "Speedup over the original, with 95% intervals";
    let mut chart = Chart::new(title, (0.0, end + 0.5), (low, high));
    chart.axes("round", "speedup (log scale)", &ticks(low, high));
    chart.level(0.0, GRAY, "original");
    chart.line(&steps, COLORS[0], Stroke::Solid);
    points.extend(last);
    for point in &points {
        let color = match (point.round >= end, point.kept) {
            (true, _) => COLORS[1],
            (false, true) => COLORS[2],
            (false, false) => GRAY,
        };
        chart.line(&[(point.round, point.low), (point.round, point.high)], color, Stroke::Solid);
        chart.dot((point.round, point.at), color);
    }
    chart.legend("best so far", COLORS[0], Stroke::Solid);
    chart.legend("kept", COLORS[2], Stroke::Solid);
    chart.legend("not kept", GRAY, Stroke::Solid);
    if let Some(last) = last {
        let label = format!("final duel: {}", factor_text(10_f64.powf(last.at)));
        chart.legend(&label, COLORS[1], Stroke::Solid);
    }
    Some(chart.finish())
}

/// Round values (1, 2, 5, 10, …) between two logarithms.
fn ticks(low: f64, high: f64) -> Vec<(f64, String)> {
    let decades = (low.floor() as i32)..=(high.ceil() as i32);
    let steps: &[f64] = match high - low {
        range if range > 4.0 => &[1.0],
        range if range > 0.6 => &[1.0, 2.0, 5.0],
        _ => &[1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 7.0, 9.0],
    };
    let every = (high - low).ceil() as i32 / TICKS_MAX + 1;
    let decades = decades.filter(|decade| decade % every == 0);
    let values =
        decades.flat_map(|decade| steps.iter().map(move |step| step * 10_f64.powi(decade)));
    let shown = |value: f64| factor_text(value).replace(".00x", "x").replace(".0x", "x");
    let logs = values.map(|value| (value.log10(), shown(value)));
    logs.filter(|(at, _)| (low..=high).contains(at)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few_for_small_and_large_gains() {
        for (low, high) in [(-0.03, 0.13), (-0.1, 0.5), (-0.5, 2.3), (-1.0, 3.9), (-3.0, 30.0)] {
            let ticks = ticks(low, high);
            assert!((2..=14).contains(&ticks.len()), "{low} to {high}: {ticks:?}");
            assert!(ticks.iter().any(|(at, _)| *at == 0.0), "{ticks:?}");
        }
    }

    #[test]
    fn a_round_stands_at_what_the_best_before_it_times_its_ratio_gives() {
        let estimate = Estimate { ratio: 1.5, low: Some(1.25), high: None };
        let point = TrendPoint::new(3.0, 2.0, &estimate, false);
        assert!((point.at - 3.0_f64.log10()).abs() < 1e-12);
        assert!((point.low - 2.5_f64.log10()).abs() < 1e-12);
        assert_eq!(point.high, point.at, "an open interval ends at the estimate");
    }
}
