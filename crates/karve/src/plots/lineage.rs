//! The lineage as a column, like a log of commits: kept rounds on the line, others beside it.

use super::color_of;
use super::sheet::Sheet;
use karve_core::chart::{COLORS, Shape};
use karve_core::payload::{Payload, RoundRow};
use karve_core::score::factor_text;

/// The most rounds; the last ones are shown.
const ROUNDS_MAX: usize = 60;
const WIDTH: f64 = 840.0;
const TOP: f64 = 44.0;
const ROW: f64 = 20.0;
const MAIN: f64 = 30.0;
const SIDE: f64 = 54.0;

/// The plot; none without rounds.
pub(super) fn lineage(payload: &Payload) -> Option<String> {
    if payload.rounds.is_empty() {
        return None;
    }
    let skipped = payload.rounds.len().saturating_sub(ROUNDS_MAX);
    let rounds = &payload.rounds[skipped..];
    let height = TOP + ROW * (rounds.len() as f64 + 1.0) + 14.0;
    let title = match skipped {
        0 => "What became of each round".to_owned(),
        n => format!("The last {ROUNDS_MAX} rounds, {n} before"),
    };
    let mut sheet = Sheet::new(&title, (WIDTH, height));
    let y = |row: usize| TOP + ROW * row as f64 + ROW / 2.0;
    let last_kept = rounds.iter().rposition(kept).map_or(0, |row| row + 1);
    let style = format!("stroke=\"{}\" stroke-width=\"2\"", COLORS[0]);
    sheet.line((MAIN, y(0)), (MAIN, y(last_kept)), &style);
    sheet.put(&Shape::Diamond.element((MAIN, y(0)), COLORS[0]));
    let start = if skipped == 0 { "original" } else { "the best before" };
    sheet.text((SIDE + 26.0, y(0) + 4.0), "start", start);
    let mut parent = 0;
    for (row, round) in rounds.iter().enumerate() {
        let (row, color) = (row + 1, color_of(&round.view.verdict));
        let at = if kept(round) {
            parent = row;
            (MAIN, y(row))
        } else {
            let bend = format!(
                "<path d=\"M{MAIN} {:.1}C{MAIN} {:.1} {SIDE} {:.1} {SIDE} {:.1}\" fill=\"none\" \
                 stroke=\"{color}\" stroke-opacity=\"0.5\"/>",
                y(parent),
                y(row),
                y(parent),
                y(row)
            );
            sheet.put(&bend);
            (SIDE, y(row))
        };
        let shape = match (kept(round), round.view.verdict.as_str()) {
            (true, _) => Shape::Disc,
            (false, "undecided") => Shape::Ring,
            (false, _) => Shape::Cross,
        };
        sheet.put(&shape.element(at, color));
        let ratio = round.view.ratio.map_or_else(|| "-".to_owned(), factor_text);
        let label = format!("{}  {ratio}", round.view.round);
        sheet.text((SIDE + 26.0, y(row) + 4.0), "start", &label);
        sheet.sentence((SIDE + 110.0, y(row) + 4.0), &short(&round.view.title, 46));
        let why = if kept(round) { "kept" } else { round.view.why.as_str() };
        sheet.sentence((SIDE + 410.0, y(row) + 4.0), &short(why, 62));
    }
    Some(sheet.finish())
}

/// The start of a text, with a sign that it goes on.
fn short(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn kept(round: &RoundRow) -> bool {
    round.view.verdict.starts_with("keep")
}
