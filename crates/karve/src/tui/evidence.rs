//! The charts: the evidence of a duel against its two thresholds, and the trend of a campaign.

use super::theme::{Theme, TonedLine};
use karve_core::campaign::DuelName;
use karve_core::payload::{DuelTrace, Payload};
use karve_core::score;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Color;
use ratatui::symbols::Marker;
use ratatui::text::{Line, Text};
use ratatui::widgets::{Axis, Block, Chart, Dataset, GraphType};

/// The smallest and largest power of ten that is drawn.
const POWER_MIN: f64 = -1.0;
const POWER_MAX: f64 = 12.0;
/// Labels of an axis, at most.
const LABELS_MAX: usize = 7;
/// Below this height the speedups of the blocks are left out.
const TWO_CHARTS: u16 = 22;

/// The duels of a round, the last one as a chart.
pub(super) fn draw_duels(frame: &mut Frame<'_>, area: Rect, duels: &[DuelTrace], theme: Theme) {
    let Some(trace) = duels.iter().rfind(|trace| !trace.points.is_empty()) else {
        let text = "Nothing was measured yet, or the round ended before it was.";
        frame.render_widget(Line::raw(text), area);
        return;
    };
    let ratios: Vec<f64> = trace.points.iter().map(|point| point.ratio).collect();
    let last = trace.points.last();
    let (gain, none) = last.map_or((0.0, 0.0), |point| (point.faster, point.not_faster));
    let text = [
        format!(
            "{}: {} blocks, {} did not count; last block {:.3}x",
            duel_text(trace.duel),
            ratios.len(),
            trace.discarded,
            ratios.last().copied().unwrap_or(1.0),
        ),
        format!(
            "line: evidence for a gain, {}; a keep needs {} (dots)",
            score::count(gain),
            score::count(trace.keep_evidence)
        ),
        format!(
            "bar: evidence against it, {}; a drop needs {} (dots)",
            score::count(none),
            score::count(trace.drop_evidence)
        ),
    ];
    let columns = usize::from(area.width);
    let lines = text.iter().flat_map(|line| TonedLine::new(line).wrapped(columns));
    let lines: Vec<Line<'_>> = lines.map(|line| Line::raw(line.text)).collect();
    let head = u16::try_from(lines.len()).unwrap_or(3);
    let second = match area.height >= TWO_CHARTS {
        true => Constraint::Percentage(40),
        false => Constraint::Length(0),
    };
    let [top, upper, lower] =
        Layout::vertical([Constraint::Length(head), Constraint::Min(5), second]).areas(area);
    frame.render_widget(Text::from(lines), top);
    draw_evidence(frame, upper, trace, theme);
    if lower.height > 0 {
        draw_ratios(frame, lower, trace, theme);
    }
}

fn duel_text(duel: DuelName) -> String {
    match duel {
        DuelName::Final => "final duel".to_owned(),
        DuelName::Round { round, .. } => format!("round {round}"),
        DuelName::Layout { round, variant, .. } => format!("round {round}, layout {variant}"),
        DuelName::Original { round } => format!("round {round}, against the original"),
        DuelName::Control(_) => "A/A test".to_owned(),
        DuelName::Baseline { baseline, .. } => format!("baseline {}", baseline + 1),
    }
}

/// Evidence as a power of ten, within bounds.
fn power(evidence: f64) -> f64 {
    match evidence > 0.0 {
        true => evidence.log10().clamp(POWER_MIN, POWER_MAX),
        false => POWER_MIN,
    }
}

fn draw_evidence(frame: &mut Frame<'_>, area: Rect, trace: &DuelTrace, theme: Theme) {
    let of = |value: fn(&karve_core::payload::DuelPoint) -> f64| -> Vec<(f64, f64)> {
        let points = trace.points.iter().enumerate();
        points.map(|(at, point)| (at as f64 + 1.0, power(value(point)))).collect()
    };
    let (gain, none) = (of(|point| point.faster), of(|point| point.not_faster));
    let right = (trace.points.len() as f64).max(2.0);
    let limit = |evidence: f64| vec![(1.0, power(evidence)), (right, power(evidence))];
    let (keep, drop) = (limit(trace.keep_evidence), limit(trace.drop_evidence));
    let all = gain.iter().chain(&none).chain(&keep).chain(&drop).map(|(_, y)| *y);
    let (low, high) = all.fold((0.0_f64, 1.0_f64), |(low, high), y| (low.min(y), high.max(y)));
    let (low, high) = (low.floor(), (high + 0.1).ceil());
    let line = |data| Dataset::default().graph_type(GraphType::Line).data(data);
    let datasets = vec![
        line(&keep).marker(Marker::Dot).style(theme.series(Color::Green)),
        line(&drop).marker(Marker::Dot).style(theme.series(Color::Red)),
        line(&gain).marker(Marker::Braille).style(theme.series(Color::Cyan)),
        line(&none).marker(Marker::Block).style(theme.series(Color::Magenta)),
    ];
    let chart = Chart::new(datasets)
        .x_axis(blocks_axis(right))
        .y_axis(Axis::default().bounds([low, high]).labels(power_labels(low, high)))
        .legend_position(None);
    frame.render_widget(chart, area);
}

fn blocks_axis(right: f64) -> Axis<'static> {
    Axis::default().bounds([1.0, right]).labels(["1".to_owned(), format!("block {right:.0}")])
}

/// Labels at even distances, of which some are powers of ten.
fn power_labels(low: f64, high: f64) -> Vec<String> {
    let n = (high - low) as usize + 1;
    let n = if n > LABELS_MAX { 2 } else { n.max(2) };
    let step = (high - low) / (n - 1) as f64;
    (0..n).map(|at| score::count(10_f64.powf(low + step * at as f64))).collect()
}

fn draw_ratios(frame: &mut Frame<'_>, area: Rect, trace: &DuelTrace, theme: Theme) {
    let points = trace.points.iter().enumerate();
    let ratios: Vec<(f64, f64)> =
        points.map(|(at, point)| (at as f64 + 1.0, point.ratio)).collect();
    let right = (ratios.len() as f64).max(2.0);
    let null = [(1.0, trace.null_ratio), (right, trace.null_ratio)];
    let values = ratios.iter().chain(&null).map(|(_, ratio)| *ratio).filter(|r| r.is_finite());
    let (low, high) = values.fold((1.0_f64, 1.0_f64), |(low, high), r| (low.min(r), high.max(r)));
    let margin = ((high - low) * 0.1).max(0.01);
    let (low, high) = (low - margin, high + margin);
    let datasets = vec![
        Dataset::default().graph_type(GraphType::Line).data(&null),
        Dataset::default()
            .marker(Marker::Dot)
            .graph_type(GraphType::Scatter)
            .style(theme.series(Color::Cyan))
            .data(&ratios),
    ];
    let labels = [low, f64::midpoint(low, high), high].map(|ratio| format!("{ratio:.3}x"));
    let title = "speedup of each block, and what it must exceed";
    let chart = Chart::new(datasets)
        .block(Block::new().title(title))
        .x_axis(blocks_axis(right))
        .y_axis(Axis::default().bounds([low, high]).labels(labels))
        .legend_position(None);
    frame.render_widget(chart, area);
}

/// The best so far, and every measured round with its interval.
pub(super) fn draw_trend(frame: &mut Frame<'_>, area: Rect, payload: &Payload, theme: Theme) {
    if payload.trend.is_empty() {
        frame.render_widget(Line::raw("No round is settled yet."), area);
        return;
    }
    let mut best = vec![(0.0, 1.0)];
    for row in &payload.trend {
        let before = best.last().map_or(1.0, |(_, ratio)| *ratio);
        best.extend([(f64::from(row.round), before), (f64::from(row.round), row.best)]);
    }
    let measured: Vec<(f64, f64)> = payload
        .trend
        .iter()
        .filter_map(|row| row.estimate.map(|of| (f64::from(row.round), of.ratio)))
        .collect();
    let ends: Vec<(f64, f64)> = payload
        .trend
        .iter()
        .filter_map(|row| row.estimate.map(|of| (f64::from(row.round), of)))
        .flat_map(|(round, of)| of.low.into_iter().chain(of.high).map(move |end| (round, end)))
        .collect();
    let values = best.iter().chain(&measured).chain(&ends).map(|(_, ratio)| *ratio);
    let values = values.filter(|ratio| ratio.is_finite());
    let (low, high) = values.fold((1.0_f64, 1.0_f64), |(low, high), r| (low.min(r), high.max(r)));
    let margin = ((high - low) * 0.08).max(0.01);
    let (low, high) = (low - margin, high + margin);
    let right = best.last().map_or(1.0, |(round, _)| round.max(1.0));
    let set = |marker, kind, data| Dataset::default().marker(marker).graph_type(kind).data(data);
    let datasets = vec![
        set(Marker::Braille, GraphType::Line, &best).style(theme.series(Color::Green)),
        set(Marker::Braille, GraphType::Scatter, &ends).style(theme.series(Color::DarkGray)),
        set(Marker::Dot, GraphType::Scatter, &measured).style(theme.series(Color::Cyan)),
    ];
    let [top, rest] = Layout::vertical([Constraint::Length(2), Constraint::Min(4)]).areas(area);
    let text = payload.final_comparison.as_ref().map_or_else(
        || format!("speedup over the original, {:.3}x so far", payload.campaign.cumulative_ratio),
        |shown| format!("speedup over the original, final duel {}", shown.overall.describe()),
    );
    let key = "line: best so far; dots: rounds, interval ends";
    frame.render_widget(Text::from(vec![Line::raw(text), Line::raw(key)]), top);
    let labels = [low, f64::midpoint(low, high), high].map(|ratio| format!("{ratio:.2}x"));
    let chart = Chart::new(datasets)
        .x_axis(
            Axis::default()
                .bounds([0.0, right])
                .labels(["0".to_owned(), format!("round {right:.0}")]),
        )
        .y_axis(Axis::default().bounds([low, high]).labels(labels))
        .legend_position(None);
    frame.render_widget(chart, rest);
}
