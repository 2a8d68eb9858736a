//! What the campaign used up to each round: time of work, tokens and dollars.

use crate::ui::gauges::time_text;
use karve_core::chart::{COLORS, Chart, Stroke};
use karve_core::payload::Payload;

/// The plot; none without rounds. Each curve ends at its own total.
pub(super) fn cost(payload: &Payload) -> Option<String> {
    let last = payload.rounds.last()?;
    let end = f64::from(last.view.round);
    let mut chart = Chart::new(
        "Used up to each round, as a share of the total",
        (0.0, end.max(1.0)),
        (0.0, 1.0),
    );
    let up = (0..=4).map(|k| f64::from(k) / 4.0);
    let up: Vec<(f64, String)> = up.map(|y| (y, format!("{:.0}%", y * 100.0))).collect();
    chart.axes("round", "share", &up);
    let mut curve = |name: String, color: &str, of: &dyn Fn(usize) -> f64| {
        let mut sum = 0.0;
        let mut points = vec![(0.0, 0.0)];
        for (at, round) in payload.rounds.iter().enumerate() {
            sum += of(at);
            points.push((f64::from(round.view.round), sum));
        }
        if sum > 0.0 {
            let shares: Vec<(f64, f64)> = points.iter().map(|(x, y)| (*x, y / sum)).collect();
            chart.line(&shares, color, Stroke::Solid);
            chart.legend(&name, color, Stroke::Solid);
        }
    };
    let rounds = &payload.rounds;
    let spent_s: f64 = rounds.iter().map(|round| round.view.spent_s).sum();
    curve(format!("time in rounds: {}", time_text(spent_s)), COLORS[0], &|at| {
        rounds[at].view.spent_s
    });
    let tokens: u64 = rounds.iter().map(|round| round.usage.tokens).sum();
    curve(format!("tokens: {tokens}"), COLORS[1], &|at| rounds[at].usage.tokens as f64);
    let usd: f64 = rounds.iter().map(|round| round.usage.usd).sum();
    curve(format!("cost: ${usd:.2}"), COLORS[2], &|at| rounds[at].usage.usd.max(0.0));
    Some(chart.finish())
}
