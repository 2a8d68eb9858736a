//! A forest plot: the speedup of each case with its interval, hidden cases marked, and the loss
//! that reverts a round.

use super::GRAY;
use super::sheet::{Sheet, told};
use super::ticks::ratio_ticks;
use karve_core::chart::{COLORS, Shape};
use karve_core::comparison::{CaseComparison, Comparison, SpeedChange};
use karve_core::payload::{CaseLabel, Payload};
use karve_numerics::case::CaseSet;

/// The most cases of a plot.
const CASES_MAX: usize = 64;
/// The space for names to the left and figures to the right, and the height of a row.
const LEFT: f64 = 220.0;
const RIGHT: f64 = 190.0;
const WIDTH: f64 = 840.0;
const TOP: f64 = 46.0;
const ROW: f64 = 22.0;

/// The plot; none without cases.
pub fn forest(payload: &Payload, shown: &Comparison, title: &str) -> Option<String> {
    let cases: Vec<&CaseComparison> = shown.cases.iter().take(CASES_MAX).collect();
    if cases.is_empty() {
        return None;
    }
    let estimates = || cases.iter().map(|case| &case.estimate).chain([&shown.overall]);
    let log = |ratio: f64| ratio.max(1e-9).ln();
    let low = estimates().map(|e| log(e.low.unwrap_or(e.ratio))).fold(-0.02, f64::min) - 0.02;
    let high = estimates().map(|e| log(e.high.unwrap_or(e.ratio))).fold(0.02, f64::max) + 0.02;
    let across =
        |ln: f64| LEFT + (ln.clamp(low, high) - low) / (high - low) * (WIDTH - LEFT - RIGHT);
    let height = TOP + ROW * (cases.len() as f64 + 2.0) + 24.0;
    let mut sheet = Sheet::new(title, (WIDTH, height));
    let bottom = TOP + ROW * (cases.len() as f64 + 1.0);
    let one = across(0.0);
    sheet.line((one, TOP - 6.0), (one, bottom), "class=\"axis\" stroke=\"#333333\"");
    for (ratio, text) in ratio_ticks(low.exp(), high.exp()) {
        sheet.text((across(ratio.ln()), bottom + 16.0), "middle", &text);
    }
    for (row, case) in cases.iter().enumerate() {
        let y = TOP + ROW * row as f64 + ROW / 2.0;
        let label = payload.cases.iter().find(|label| label.case == case.case);
        draw_guard(&mut sheet, label, (y, &across));
        let name = payload.case_name(case.case);
        let hidden = label.is_some_and(|label| label.set == CaseSet::Hidden);
        sheet.text((LEFT - 12.0, y + 4.0), "end", name);
        let color = match case.change {
            SpeedChange::Improved => COLORS[2],
            SpeedChange::Regressed => COLORS[1],
            SpeedChange::Inconclusive => GRAY,
        };
        let shape = if hidden { Shape::Ring } else { Shape::Disc };
        let estimate = &case.estimate;
        let ends =
            (estimate.low.unwrap_or(estimate.ratio), estimate.high.unwrap_or(estimate.ratio));
        let style = format!("stroke=\"{color}\" stroke-width=\"2\"");
        sheet.line((across(log(ends.0)), y), (across(log(ends.1)), y), &style);
        let drawn = shape.element((across(log(estimate.ratio)), y), color);
        let about = told(&format!("{name}: {}", estimate.describe()));
        sheet.put(&format!("<g><title>{about}</title>{drawn}</g>"));
        sheet.text((WIDTH - RIGHT + 16.0, y + 4.0), "start", &estimate.describe());
    }
    let y = TOP + ROW * cases.len() as f64 + ROW / 2.0;
    sheet.text((LEFT - 12.0, y + 4.0), "end", "all (geometric mean)");
    let drawn = Shape::Diamond.element((across(log(shown.overall.ratio)), y), COLORS[0]);
    sheet.put(&drawn);
    sheet.text((WIDTH - RIGHT + 16.0, y + 4.0), "start", &shown.overall.describe());
    Some(sheet.finish())
}

/// A tick where a loss of this case reverts a round.
fn draw_guard(
    sheet: &mut Sheet,
    label: Option<&CaseLabel>,
    (y, across): (f64, &dyn Fn(f64) -> f64),
) {
    if let Some(guard) = label.and_then(|label| label.guard_ratio) {
        let x = across(guard.ln());
        let style = format!("stroke=\"{}\" stroke-dasharray=\"2 2\"", COLORS[1]);
        sheet.line((x, y - 8.0), (x, y + 8.0), &style);
    }
}
