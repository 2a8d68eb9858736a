//! Cases by rounds: green where a candidate was faster, orange where it was slower.

use super::sheet::{Sheet, opacity};
use karve_core::chart::COLORS;
use karve_core::payload::{Payload, RoundRow};

/// The most rounds and cases; the last rounds are shown.
const ROUNDS_MAX: usize = 120;
const CASES_MAX: usize = 48;
/// The gain or loss that has the full color, as a logarithm: 20%.
const FULL_LN: f64 = 0.182;
const LEFT: f64 = 200.0;
const TOP: f64 = 44.0;
const WIDTH: f64 = 840.0;
const ROW: f64 = 20.0;

/// The plot; none if no round compared cases.
pub(super) fn heatmap(payload: &Payload) -> Option<String> {
    let measured = |round: &&RoundRow| round.view.comparison.is_some();
    let rounds: Vec<&RoundRow> = payload.rounds.iter().filter(measured).collect();
    let rounds = &rounds[rounds.len().saturating_sub(ROUNDS_MAX)..];
    let seen = |case: &usize| {
        let compared = rounds.iter().filter_map(|round| round.view.comparison.as_ref());
        compared.flat_map(|shown| &shown.cases).any(|compared| compared.case == *case)
    };
    let cases: Vec<usize> = payload.cases.iter().map(|label| label.case).filter(seen).collect();
    let cases = &cases[..cases.len().min(CASES_MAX)];
    if rounds.is_empty() || cases.is_empty() {
        return None;
    }
    let height = TOP + ROW * cases.len() as f64 + 34.0;
    let title = "Each case in each round (green: faster, orange: slower, full color: 20%)";
    let mut sheet = Sheet::new(title, (WIDTH, height));
    let cell = ((WIDTH - LEFT - 14.0) / rounds.len() as f64).min(46.0);
    for (row, case) in cases.iter().enumerate() {
        let y = TOP + ROW * row as f64;
        sheet.text((LEFT - 10.0, y + 14.0), "end", payload.case_name(*case));
        for (column, round) in rounds.iter().enumerate() {
            let compared = round.view.comparison.as_ref();
            let found = compared.and_then(|c| c.cases.iter().find(|one| one.case == *case));
            let Some(found) = found else {
                continue;
            };
            let ln = found.estimate.ratio.ln();
            let color = if ln >= 0.0 { COLORS[2] } else { COLORS[1] };
            let share = opacity(ln.abs() / FULL_LN).max(0.06);
            let style = format!("fill=\"{color}\" fill-opacity=\"{share:.2}\"");
            let about = format!(
                "round {}, {}: {}",
                round.view.round,
                payload.case_name(*case),
                found.estimate.describe()
            );
            let at = (LEFT + cell * column as f64, y);
            sheet.bar(at, ((cell - 1.0).max(0.5), ROW - 1.0), (&style, &about));
        }
    }
    let every = rounds.len().div_ceil(12);
    for (column, round) in rounds.iter().enumerate().filter(|(column, _)| column % every == 0) {
        let x = LEFT + cell * (column as f64 + 0.5);
        let y = TOP + ROW * cases.len() as f64 + 16.0;
        sheet.text((x, y), "middle", &round.view.round.to_string());
    }
    Some(sheet.finish())
}
