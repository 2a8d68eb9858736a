//! The plots of a tuning run as SVG: the progress of the best, which knobs matter, the two that
//! matter most against each other, and all knobs of the best settings side by side.

use super::earlier::Ranking;
use super::session::TuneResult;
use karve_core::chart::{COLORS, Chart, HEIGHT, LEFT, RIGHT, Stroke, TOP, WIDTH, escaped};
use karve_core::charter::Better;
use karve_core::score::figure;
use karve_numerics::grid::{Axis, Grid};
use karve_numerics::search::{
    self, Importance, Search, SearchRecord, StrategyKind, TrialResult, TriedSetting,
};
use karve_os::error::{Result, WithContext};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// The most knobs of a plot.
const KNOBS_MAX: usize = 12;
/// The most values of a knob in the heat map.
const VALUES_MAX: usize = 24;
/// The width of the longest bar, and the sides of the heat map, in pixels.
const BAR: f64 = 460.0;
const MAP: (f64, f64) = (520.0, 300.0);
/// The most settings that are drawn side by side, the best of them.
const LINES_MAX: usize = 120;
/// The width of a character of a label, about; and the most characters of a value.
const CHAR: f64 = 6.8;
const VALUE_CHARS: usize = 12;

/// A label that fits into a width, with all of it as its title.
fn fitted(text: &str, width: f64) -> String {
    let room = (width / CHAR).max(2.0) as usize;
    match text.chars().nth(room) {
        None => escaped(text),
        Some(_) => {
            let cut: String = text.chars().take(room - 1).collect();
            format!("{}…<title>{}</title>", escaped(&cut), escaped(text))
        }
    }
}

/// Each how many of these labels can be written into columns of a width.
fn every(labels: &[String], width: f64) -> usize {
    let longest = labels.iter().map(|label| label.chars().count().min(VALUE_CHARS)).max();
    ((longest.unwrap_or(1) + 1) as f64 * CHAR / width).ceil().max(1.0) as usize
}

/// Writes the plots into a directory.
pub fn write(found: &TuneResult, dir: &Path) -> Result<()> {
    let (grid, record) = (&found.grid, &found.record);
    fs::create_dir_all(dir).context(|| format!("cannot create {}", dir.display()))?;
    let matters = search::importance(grid, record);
    for (name, text) in [
        ("convergence.svg", render_convergence(record, found.better)),
        ("importance.svg", render_importance(grid, &matters)),
        ("pairs.svg", render_pairs(grid, record, &matters)),
        ("settings.svg", render_settings(grid, record, &matters)),
    ] {
        let path = dir.join(name);
        fs::write(&path, text)
            .context(|| format!("cannot write {}", path.display()))
            .map_err(|error| error.hint("name another directory with --svg DIR"))?;
    }
    Ok(())
}

/// The plots of what an earlier run tried. Nothing for a single setting.
pub fn of_ranking(ranking: &Ranking) -> Vec<String> {
    let Some((grid, record)) = searched(ranking) else {
        return Vec::new();
    };
    let matters = search::importance(&grid, &record);
    vec![
        render_importance(&grid, &matters),
        render_settings(&grid, &record, &matters),
        render_pairs(&grid, &record, &matters),
    ]
}

/// The settings of a ranking as a grid of the values that were tried, and their results.
fn searched(ranking: &Ranking) -> Option<(Arc<Grid>, SearchRecord)> {
    let (first, _) = ranking.first().filter(|_| ranking.len() > 1)?;
    let values = |name: &String| -> Vec<String> {
        ranking.iter().filter_map(|(config, _)| config.get(name).cloned()).collect()
    };
    let axes: Vec<Axis> =
        first.keys().filter_map(|name| Axis::new(name, &values(name), None).ok()).collect();
    let rank = |config: &karve_numerics::space::KnobSetting| -> Option<Vec<u16>> {
        let of = |axis: &Axis| {
            let at = axis.values().iter().position(|value| config.get(axis.name()) == Some(value));
            u16::try_from(at?).ok()
        };
        axes.iter().map(of).collect()
    };
    let settings: Vec<Vec<u16>> = ranking.iter().filter_map(|(config, _)| rank(config)).collect();
    let grid = Arc::new(Grid::of_list(axes.clone(), settings).ok()?);
    let mut search = Search::new(Arc::clone(&grid), StrategyKind::default(), 0, &[]);
    for (config, value) in ranking {
        if let Some(point) = rank(config).and_then(|ranks| grid.find(&ranks)) {
            search.add_result(point, TrialResult::Value(*value));
        }
    }
    Some((grid, search.record().clone()))
}

/// Parallel coordinates: one axis for each knob, one line for each of the best settings.
fn render_settings(grid: &Grid, record: &SearchRecord, matters: &[Importance]) -> String {
    let title = "The settings, the best one in orange (stronger: faster)";
    let mut chart = Chart::new(title, (0.0, 1.0), (0.0, 1.0));
    let shown: Vec<usize> = matters.iter().take(KNOBS_MAX).map(|one| one.axis).collect();
    let wide = WIDTH - LEFT - RIGHT + 150.0;
    let apart = wide / (shown.len().max(2) - 1) as f64;
    let across = |at: usize| LEFT + apart * at as f64;
    let high = HEIGHT - TOP - 74.0;
    let up = |axis: usize, rank: u16| {
        let last = grid.axes()[axis].values().len().max(2) - 1;
        TOP + 20.0 + high * (1.0 - f64::from(rank) / last as f64)
    };
    let ranking = record.ranking();
    let best = ranking.first().map_or(1.0, |(_, value)| *value);
    for (place, (point, value)) in ranking.iter().take(LINES_MAX).enumerate().rev() {
        let ranks = grid.ranks(*point);
        let at = shown.iter().enumerate();
        let at = at.map(|(n, axis)| format!("{:.1},{:.1}", across(n), up(*axis, ranks[*axis])));
        let (color, wide) = if place == 0 { (COLORS[1], 3.0) } else { (COLORS[0], 1.2) };
        let near = (best / value).clamp(0.05, 1.0).powi(2);
        let points: Vec<String> = at.collect();
        chart.put(&format!(
            "<polyline fill=\"none\" stroke=\"{color}\" stroke-width=\"{wide}\" \
             stroke-opacity=\"{near:.2}\" points=\"{}\"/>",
            points.join(" ")
        ));
    }
    for (n, axis) in shown.iter().enumerate() {
        let (x, axis) = (across(n), &grid.axes()[*axis]);
        let every = axis.values().len().div_ceil(VALUES_MAX / 2).max(1);
        for (rank, value) in axis.values().iter().enumerate().filter(|(at, _)| at % every == 0) {
            let rank = u16::try_from(rank).unwrap_or(u16::MAX);
            let label = fitted(value, (apart - 8.0).min(VALUE_CHARS as f64 * CHAR));
            // Lines go through it.
            chart.put(&format!(
                "<text class=\"halo\" x=\"{:.1}\" y=\"{:.1}\" stroke=\"#ffffff\" \
                 stroke-width=\"4\" paint-order=\"stroke\">{label}</text>",
                x + 5.0,
                up(shown[n], rank) + 4.0
            ));
        }
        // Neighbors are at different heights, so that each has the room of two.
        let below = HEIGHT - if n % 2 == 0 { 28.0 } else { 10.0 };
        chart.text((x, below), "middle", &fitted(axis.name(), 2.0 * apart - 8.0));
    }
    chart.finish()
}

/// Every setting in the order in which it was tried, and the best so far.
fn render_convergence(record: &SearchRecord, better: Better) -> String {
    let logs: Vec<Option<f64>> =
        record.entries().iter().map(|entry| entry.value().map(f64::log10)).collect();
    let known = || logs.iter().flatten().copied();
    let low = known().fold(f64::INFINITY, f64::min);
    let high = known().fold(f64::NEG_INFINITY, f64::max);
    let (low, high) =
        if low.is_finite() { (low - 0.05, high.max(low + 0.1) + 0.05) } else { (0.0, 1.0) };
    let count = logs.len().max(8) as f64;
    let mut chart = Chart::new("Settings in the order tried", (0.0, count), (low, high));
    let ticks = (0..=5).map(|k| low + (high - low) * f64::from(k) / 5.0);
    let ticks = ticks.map(|y| (y, figure(better.as_metric(10_f64.powf(y)))));
    chart.axes("settings", "value (log scale)", &ticks.collect::<Vec<_>>());
    let mut best = f64::INFINITY;
    let mut steps = Vec::new();
    for (number, log) in logs.iter().enumerate() {
        let x = (number + 1) as f64;
        match log {
            Some(log) => {
                chart.dot((x, *log), COLORS[0]);
                if best.is_finite() {
                    steps.push((x, best));
                }
                best = best.min(*log);
                steps.push((x, best));
            }
            None => chart.dot((x, high), COLORS[1]),
        }
    }
    chart.line(&steps, COLORS[2], Stroke::Solid);
    chart.legend("best so far", COLORS[2], Stroke::Solid);
    chart.legend("a setting", COLORS[0], Stroke::Solid);
    chart.legend("failed", COLORS[1], Stroke::Solid);
    chart.finish()
}

/// A bar for each knob.
fn render_importance(grid: &Grid, matters: &[Importance]) -> String {
    let mut chart =
        Chart::new("Share of the variance that each knob alone explains", (0.0, 1.0), (0.0, 1.0));
    for (row, one) in matters.iter().take(KNOBS_MAX).enumerate() {
        let y = TOP + 12.0 + 26.0 * row as f64;
        let name = fitted(grid.axes()[one.axis].name(), LEFT + 44.0);
        let x = LEFT + 60.0;
        chart.text((x - 8.0, y + 13.0), "end", &name);
        chart.put(&format!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"18\" fill=\"{}\"/>",
            (one.share * BAR).max(1.0),
            COLORS[0]
        ));
        let percent = format!("{:.0}%", one.share * 100.0);
        chart.text((x + one.share * BAR + 8.0, y + 13.0), "start", &percent);
    }
    chart.finish()
}

/// The best value for each pair of values of the two knobs that matter most.
fn render_pairs(grid: &Grid, record: &SearchRecord, matters: &[Importance]) -> String {
    let [first, second, ..] = matters else {
        return Chart::new("There is only one knob", (0.0, 1.0), (0.0, 1.0)).finish();
    };
    let (across, up) = (&grid.axes()[first.axis], &grid.axes()[second.axis]);
    let title = format!("The best of {} and {}", across.name(), up.name());
    let mut chart = Chart::new(&escaped(&title), (0.0, 1.0), (0.0, 1.0));
    let columns = across.values().len().min(VALUES_MAX);
    let rows = up.values().len().min(VALUES_MAX);
    let cell = (MAP.0 / columns as f64, MAP.1 / rows as f64);
    let best = record.best().map_or(1.0, |(_, value)| value);
    let least = |column: usize, row: usize| {
        let here = |entry: &&TriedSetting| {
            let ranks = grid.ranks(entry.point);
            usize::from(ranks[first.axis]) == column && usize::from(ranks[second.axis]) == row
        };
        let values = record.entries().iter().filter(here).filter_map(TriedSetting::value);
        values.min_by(f64::total_cmp)
    };
    let labeled = every(&across.values()[..columns], cell.0);
    for column in 0..columns {
        let x = LEFT + column as f64 * cell.0;
        if column % labeled == 0 {
            let label = fitted(&across.values()[column], VALUE_CHARS as f64 * CHAR);
            chart.text((x + cell.0 / 2.0, TOP + MAP.1 + 18.0), "middle", &label);
        }
        for row in 0..rows {
            let y = TOP + MAP.1 - (row + 1) as f64 * cell.1;
            let Some(value) = least(column, row) else {
                continue;
            };
            let near = (best / value).clamp(0.0, 1.0);
            chart.put(&format!(
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\" \
                 fill-opacity=\"{near:.2}\"/>",
                cell.0 - 1.0,
                cell.1 - 1.0,
                COLORS[0]
            ));
            if cell.0 < 5.0 * CHAR || cell.1 < 14.0 {
                continue;
            }
            let place = (x + cell.0 / 2.0, y + cell.1 / 2.0 + 4.0);
            let label = match near > 0.6 {
                true => format!("<tspan class=\"on-cell\" fill=\"#ffffff\">{near:.2}</tspan>"),
                false => format!("{near:.2}"),
            };
            chart.text(place, "middle", &label);
        }
    }
    for row in (0..rows).step_by((14.0 / cell.1).ceil().max(1.0) as usize) {
        let y = TOP + MAP.1 - (row as f64 + 0.5) * cell.1 + 4.0;
        chart.text((LEFT - 8.0, y), "end", &fitted(&up.values()[row], LEFT - 12.0));
    }
    let below = (LEFT + MAP.0 / 2.0, TOP + MAP.1 + 38.0);
    chart.text(below, "middle", &escaped(across.name()));
    chart.text((4.0, TOP - 6.0), "start", &fitted(up.name(), LEFT + 60.0));
    chart.finish()
}
