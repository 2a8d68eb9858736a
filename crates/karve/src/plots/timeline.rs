//! What took how long: one row for each round, one color for each kind of work, and a mark on each
//! turn of an agent that leads to its transcript.

use super::stacked::{StackedBar, StackedRow, stacked};
use crate::ui::gauges::time_text;
use karve_core::payload::{Payload, Span};
use std::collections::BTreeMap;

/// The most rows; the last rounds are shown.
const ROWS_MAX: usize = 50;

/// The kinds of work with their colors.
const KINDS: [(&str, &str); 10] = [
    ("prepare", "#b0b0b0"),
    ("profile", "#cc79a7"),
    ("propose", "#e69f00"),
    ("implement", "#f0c340"),
    ("review", "#a6761d"),
    ("gate", "#56b4e9"),
    ("tune", "#7570b3"),
    ("measure", "#2b62b0"),
    ("A/A test", "#8a8a8a"),
    ("learn", "#009e73"),
];

fn color_of(what: &str) -> &'static str {
    KINDS.iter().find(|(name, _)| *name == what).map_or("#b0b0b0", |(_, color)| color)
}

/// Where the transcript of a turn is, from the round and the artifact with its session log.
pub type TurnUrl<'a> = &'a dyn Fn(u32, &str) -> String;

/// The plot; none before anything took time. Times of work only: a pause has no width. A file has
/// no links.
pub fn timeline(payload: &Payload, turn_url: Option<TurnUrl<'_>>) -> Option<String> {
    let mut rows: BTreeMap<Option<u32>, Vec<&Span>> = BTreeMap::new();
    for span in &payload.spans {
        if span.spent_ms > 0 || !span.session_logs.is_empty() {
            rows.entry(span.round).or_default().push(span);
        }
    }
    let skipped = rows.len().saturating_sub(ROWS_MAX);
    let rows = rows.into_iter().skip(skipped).map(|(round, spans)| {
        let total: u64 = spans.iter().map(|span| span.spent_ms).sum();
        StackedRow {
            name: round.map_or_else(|| "outside".to_owned(), |round| format!("round {round}")),
            bars: spans.iter().map(|span| bar(span, turn_url)).collect(),
            total: time_text(total as f64 / 1e3),
        }
    });
    let rows: Vec<StackedRow> = rows.collect();
    let has_links = rows.iter().any(|row| row.bars.iter().any(|bar| bar.link.is_some()));
    let mut title = "Time of work, by round and step".to_owned();
    if has_links {
        title.push_str("; a ring leads to what the agent said");
    }
    if skipped > 0 {
        title.push_str(&format!(": the last {ROWS_MAX} rows"));
    }
    stacked(&title, &KINDS, &rows)
}

fn bar(span: &Span, turn_url: Option<TurnUrl<'_>>) -> StackedBar {
    let by = span.by.as_ref().map_or_else(String::new, |by| format!(", {by}"));
    let used = match span.usage.tokens {
        0 => String::new(),
        tokens => format!(", {tokens} tokens"),
    };
    let link = turn_url.zip(span.round).zip(span.session_logs.first());
    StackedBar {
        length: span.spent_ms as f64,
        color: color_of(span.what),
        about: format!("{}: {}{by}{used}", span.what, time_text(span.spent_ms as f64 / 1e3)),
        link: link.map(|((url, round), log)| url(round, log)),
    }
}
