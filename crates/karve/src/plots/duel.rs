//! One duel: how its evidence grew, what each block showed, and the readings of both arms.

use super::GRAY;
use super::ticks::ratio_ticks;
use karve_core::chart::{COLORS, Chart, Stroke};
use karve_core::comparison::Estimate;
use karve_core::payload::DuelTrace;
use karve_numerics::stats;

/// Most points of a curve: more cannot be told apart.
const POINTS_MAX: usize = 240;

/// The evidence after each block on a logarithmic scale, with both thresholds.
pub fn evidence(trace: &DuelTrace) -> Option<String> {
    let blocks = trace.points.len();
    if blocks == 0 {
        return None;
    }
    let needed = trace.keep_evidence.max(trace.drop_evidence);
    let highest = trace.points.iter().flat_map(|point| [point.faster, point.not_faster]);
    let top = highest.fold(needed, f64::max).log10().min(308.0).ceil() + 0.3;
    let mut chart = Chart::new("Evidence, block by block", (0.0, blocks.max(8) as f64), (0.0, top));
    let step = (top / 6.0).ceil().max(1.0);
    let ticks = (0..=6).map(|k| f64::from(k) * step).filter(|y| *y <= top);
    let ticks = ticks.map(|y| (y, format!("1e{y:.0}").replace("1e0", "1")));
    chart.axes("blocks", "evidence (log scale)", &ticks.collect::<Vec<_>>());
    let level = |value: f64| value.max(1.0).log10();
    let (keep, drop) = (short(trace.keep_evidence), short(trace.drop_evidence));
    match keep == drop {
        true => chart.level(level(trace.keep_evidence), GRAY, &format!("keep or drop: {keep}")),
        false => {
            chart.level(level(trace.keep_evidence), COLORS[2], &format!("keep: {keep}"));
            chart.level(level(trace.drop_evidence), COLORS[1], &format!("drop: {drop}"));
        }
    }
    let curve = |of: fn(&karve_core::payload::DuelPoint) -> f64| {
        let points = trace.points.iter().enumerate();
        thinned(points.map(|(n, point)| ((n + 1) as f64, level(of(point)))).collect())
    };
    chart.line(&curve(|point| point.faster), COLORS[2], Stroke::Solid);
    chart.line(&curve(|point| point.not_faster), COLORS[1], Stroke::Solid);
    let (null, effect) = (percent(trace.null_ratio), percent(trace.effect_ratio));
    chart.legend(&format!("faster by over {null}"), COLORS[2], Stroke::Solid);
    chart.legend(&format!("faster by less than {effect}"), COLORS[1], Stroke::Solid);
    Some(chart.finish())
}

fn short(evidence: f64) -> String {
    match evidence {
        e if e < 1e5 => format!("{e:.0}"),
        e => format!("{e:.0e}"),
    }
}

fn percent(ratio: f64) -> String {
    format!("{:.1}%", (ratio - 1.0) * 100.0).replace(".0%", "%")
}

/// The speedup that each block shows, with the median and its interval.
pub fn pairs(trace: &DuelTrace) -> Option<String> {
    let logs: Vec<f64> = trace.points.iter().map(|point| point.ratio.ln()).collect();
    let estimate = Estimate::of(&logs);
    let median = stats::median(&logs)?;
    let widest = logs.iter().map(|ln| ln.abs()).fold(0.02, f64::max).min(6.0) * 1.1;
    let low = logs.iter().copied().fold(0.0, f64::min).max(-widest) - 0.1 * widest;
    let high = logs.iter().copied().fold(0.0, f64::max).min(widest) + 0.1 * widest;
    let title = "Speedup of each block (above 1: the candidate is faster)";
    let mut chart = Chart::new(title, (0.0, logs.len().max(8) as f64), (low, high));
    let ticks = ratio_ticks(low.exp(), high.exp()).into_iter();
    let ticks: Vec<(f64, String)> = ticks.map(|(ratio, text)| (ratio.ln(), text)).collect();
    chart.axes("blocks", "speedup (log scale)", &ticks);
    if let (Some(from), Some(to)) = (estimate.low, estimate.high) {
        chart.band(from.ln(), to.ln(), COLORS[0]);
    }
    let skipped = logs.len().saturating_sub(POINTS_MAX * 4);
    let dots = logs.iter().enumerate().skip(skipped);
    let dots = dots.map(|(n, ln)| ((n + 1) as f64, ln.clamp(low, high)));
    chart.dots(&dots.collect::<Vec<_>>(), COLORS[0]);
    chart.level(0.0, GRAY, "equal");
    chart.level(median, COLORS[0], "");
    chart.legend(&format!("median {:.3}x", estimate.ratio), COLORS[0], Stroke::Solid);
    Some(chart.finish())
}

/// The distribution of the readings of both arms, in units of the parent's median of their case.
pub fn ecdf(trace: &DuelTrace) -> Option<String> {
    let (mut parent, mut candidate) = (Vec::new(), Vec::new());
    for readings in &trace.readings {
        let of_parent: Vec<f64> = readings.iter().map(|(parent, _)| *parent).collect();
        let Some(median) = stats::median(&of_parent).filter(|median| *median > 0.0) else {
            continue;
        };
        parent.extend(readings.iter().map(|(parent, _)| parent / median));
        candidate.extend(readings.iter().map(|(_, candidate)| candidate / median));
    }
    let all = || parent.iter().chain(&candidate).copied();
    // The slowest percent would squeeze all others.
    let high = stats::quantile(&all().collect::<Vec<f64>>(), 0.99)? * 1.02;
    let low = all().fold(f64::INFINITY, f64::min) * 0.98;
    if !(low.is_finite() && high > low) {
        return None;
    }
    let title = "Readings of both arms (1 = the parent's median)";
    let mut chart = Chart::new(title, (low, high), (0.0, 1.0));
    let across = (0..=6).map(|k| low + (high - low) * f64::from(k) / 6.0);
    let across: Vec<(f64, String)> = across.map(|x| (x, format!("{x:.2}"))).collect();
    let up = (0..=4).map(|k| f64::from(k) / 4.0);
    let up: Vec<(f64, String)> = up.map(|y| (y, format!("{:.0}%", y * 100.0))).collect();
    chart.marked_axes("metric over the parent's median", &across, "share of readings", &up);
    for (mut values, color, name) in [(parent, GRAY, "parent"), (candidate, COLORS[0], "candidate")]
    {
        values.sort_by(f64::total_cmp);
        let n = values.len() as f64;
        let steps = values.iter().enumerate().filter(|(_, value)| **value <= high);
        let steps = steps.map(|(k, value)| (*value, (k + 1) as f64 / n));
        let first = values.first().map(|value| (*value, 0.0));
        chart.line(&thinned(first.into_iter().chain(steps).collect()), color, Stroke::Solid);
        chart.legend(name, color, Stroke::Solid);
    }
    Some(chart.finish())
}

/// At most `POINTS_MAX` points of a curve, with its first and last.
fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let every = points.len().div_ceil(POINTS_MAX).max(1);
    let last = points.len().saturating_sub(1);
    let kept = points.iter().enumerate().filter(|(n, _)| n % every == 0 || *n == last);
    kept.map(|(_, point)| *point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_curve_keeps_its_ends() {
        let points: Vec<(f64, f64)> = (0..5_000).map(|n| (f64::from(n), 0.0)).collect();
        let thin = thinned(points.clone());
        assert!(thin.len() <= POINTS_MAX + 1);
        assert_eq!((thin.first(), thin.last()), (points.first(), points.last()));
        assert_eq!(thinned(points[..3].to_vec()), points[..3]);
    }
}
