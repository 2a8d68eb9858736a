//! What took how long: one row for each round, one color for each kind of work.

use super::sheet::Sheet;
use crate::ui::gauges::time_text;
use karve_core::payload::{Payload, Span};
use std::collections::BTreeMap;

/// The most rows; the last rounds are shown.
const ROWS_MAX: usize = 50;
const WIDTH: f64 = 840.0;
const LEFT: f64 = 110.0;
const TOP: f64 = 66.0;
const ROW: f64 = 18.0;

/// The kinds of work with their colors.
const KINDS: [(&str, &str); 10] = [
    ("prepare", "#b0b0b0"),
    ("profile", "#cc79a7"),
    ("propose", "#e69f00"),
    ("implement", "#f0c340"),
    ("review", "#a6761d"),
    ("gate", "#56b4e9"),
    ("tune", "#7570b3"),
    ("measure", "#0072b2"),
    ("A/A test", "#8a8a8a"),
    ("learn", "#009e73"),
];

fn color_of(what: &str) -> &'static str {
    KINDS.iter().find(|(name, _)| *name == what).map_or("#b0b0b0", |(_, color)| color)
}

/// The plot; none before anything took time. Times of work only: a pause has no width.
pub(super) fn gantt(payload: &Payload) -> Option<String> {
    let mut rows: BTreeMap<Option<u32>, Vec<&Span>> = BTreeMap::new();
    for span in payload.spans.iter().filter(|span| span.spent_ms > 0) {
        rows.entry(span.round).or_default().push(span);
    }
    let skipped = rows.len().saturating_sub(ROWS_MAX);
    let rows: Vec<(Option<u32>, Vec<&Span>)> = rows.into_iter().skip(skipped).collect();
    let longest = rows.iter().map(|(_, spans)| spans.iter().map(|s| s.spent_ms).sum::<u64>());
    let longest = longest.max().filter(|longest| *longest > 0)? as f64;
    let height = TOP + ROW * rows.len() as f64 + 30.0;
    let title = match skipped {
        0 => "Time of work, by round and step".to_owned(),
        _ => format!("Time of work, by round and step: the last {ROWS_MAX} rows"),
    };
    let mut sheet = Sheet::new(&title, (WIDTH, height));
    for (at, (name, color)) in KINDS.iter().enumerate() {
        let x = 14.0 + 82.0 * at as f64;
        sheet.bar((x, 34.0), (12.0, 12.0), (&format!("fill=\"{color}\""), name));
        sheet.text((x + 16.0, 44.0), "start", name);
    }
    let scale = (WIDTH - LEFT - 70.0) / longest;
    for (row, (round, spans)) in rows.iter().enumerate() {
        let y = TOP + ROW * row as f64;
        let name = round.map_or_else(|| "outside".to_owned(), |round| format!("round {round}"));
        sheet.text((LEFT - 8.0, y + 13.0), "end", &name);
        let mut x = LEFT;
        for span in spans {
            let wide = span.spent_ms as f64 * scale;
            let by = span.by.as_ref().map_or_else(String::new, |by| format!(", {by}"));
            let about = format!("{}: {}{by}", span.what, time_text(span.spent_ms as f64 / 1e3));
            let style = format!("fill=\"{}\"", color_of(span.what));
            sheet.bar((x, y + 2.0), (wide.max(0.4), ROW - 4.0), (&style, &about));
            x += wide;
        }
        let total: u64 = spans.iter().map(|span| span.spent_ms).sum();
        sheet.text((x + 6.0, y + 13.0), "start", &time_text(total as f64 / 1e3));
    }
    Some(sheet.finish())
}
