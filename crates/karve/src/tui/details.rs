//! The text of the tabs: what happened in a round, its change, and what agents said.

use super::model::WatchModel;
use super::state::RoundFilter;
use super::theme::TonedLine;
use crate::ui::gauges::{device_text, time_text};
use crate::ui::style::Tone;
use karve_core::payload::{GateRow, IntegrityState, RoundPayload, Span};
use karve_core::view::RoundView;

/// Lines of a text that are shown.
const LINES_MAX: usize = 20_000;
/// Refused proposals, gates and spans of a round that are shown.
const ROWS_MAX: usize = 200;

/// One sentence.
pub(super) fn note(text: &str) -> Vec<TonedLine> {
    text.lines().map(|line| TonedLine::toned(line, Tone::Dim)).collect()
}

/// Text from anybody, line by line, within bounds.
pub(super) fn text_lines(text: &str) -> Vec<TonedLine> {
    let mut lines: Vec<TonedLine> = text.lines().take(LINES_MAX).map(TonedLine::new).collect();
    if text.lines().nth(LINES_MAX).is_some() {
        lines.push(TonedLine::toned("… the rest is not shown", Tone::Dim));
    }
    lines
}

/// A change: added and removed lines have a tone, and their signs without color.
pub(super) fn diff_lines(patch: &str) -> Vec<TonedLine> {
    let mut lines = text_lines(patch);
    for line in &mut lines {
        let text = line.text.as_str();
        let is_head = ["diff --git", "+++ ", "--- "].iter().any(|head| text.starts_with(head));
        line.tone = match text.chars().next() {
            _ if is_head => Some(Tone::Strong),
            Some('+') => Some(Tone::Good),
            Some('-') => Some(Tone::Bad),
            Some('@') => Some(Tone::Dim),
            _ => line.tone,
        };
    }
    lines
}

/// A heading after an empty line.
fn heading(lines: &mut Vec<TonedLine>, text: &str) {
    if !lines.is_empty() {
        lines.push(TonedLine::new(""));
    }
    lines.push(TonedLine::toned(text, Tone::Strong));
}

/// A settled round from hypothesis to lesson.
pub(super) fn round_log(model: &WatchModel, round: &RoundPayload) -> Vec<TonedLine> {
    let view = &round.round.view;
    let mut lines = vec![TonedLine::toned(&view.title, Tone::Strong)];
    lines.push(verdict_line(view));
    if let Some(hypothesis) = &round.hypothesis {
        lines.push(TonedLine::new(&format!("expected {:.2}x", hypothesis.expected_ratio)));
        let words = [&hypothesis.bottleneck, &hypothesis.mechanism];
        let words = words.into_iter().filter(|text| !text.is_empty());
        lines.extend(words.map(|text| TonedLine::new(text)));
    }
    if let Some(comparison) = &view.comparison {
        heading(&mut lines, "cases");
        for case in &comparison.cases {
            let (name, text) = (model.payload.case_name(case.case), case.estimate.describe());
            lines.push(TonedLine::new(&format!("  {text}  {name}")));
        }
    }
    gate_lines(&mut lines, &round.gates);
    span_lines(&mut lines, &round.spans);
    if !round.refused.is_empty() {
        heading(&mut lines, "refused proposals");
        let refused = round.refused.iter().take(ROWS_MAX);
        lines.extend(refused.map(|why| TonedLine::new(&format!("  {why}"))));
    }
    if !view.lesson.is_empty() {
        heading(&mut lines, "lesson");
        lines.extend(text_lines(&view.lesson));
    }
    if let Some(commit) = &view.commit {
        heading(&mut lines, "commit");
        lines.push(TonedLine::new(&format!("  {commit}")));
    }
    lines
}

fn verdict_line(view: &RoundView) -> TonedLine {
    let tone = match RoundFilter::of(&view.verdict) {
        RoundFilter::Kept => Tone::Good,
        RoundFilter::Dropped => Tone::Bad,
        RoundFilter::Undecided | RoundFilter::All => Tone::Dim,
    };
    TonedLine::toned(&format!("{}: {}", view.verdict, view.why), tone)
}

fn gate_lines(lines: &mut Vec<TonedLine>, gates: &[GateRow]) {
    if gates.is_empty() {
        return;
    }
    heading(lines, "gate");
    for gate in gates.iter().take(ROWS_MAX) {
        let tone = if gate.passed { Tone::Good } else { Tone::Bad };
        let retry =
            if gate.retry == 0 { String::new() } else { format!("repair {}: ", gate.retry) };
        let time = time_text(gate.ms as f64 / 1_000.0);
        lines.push(TonedLine::toned(&format!("  {retry}{} ({time})", gate.result), tone));
        let findings = gate.findings.iter().take(ROWS_MAX);
        lines.extend(findings.map(|found| TonedLine::new(&format!("    {found}"))));
    }
}

fn span_lines(lines: &mut Vec<TonedLine>, spans: &[Span]) {
    if spans.is_empty() {
        return;
    }
    heading(lines, "steps");
    for span in spans.iter().rev().take(ROWS_MAX).rev() {
        let time = time_text(span.spent_ms as f64 / 1_000.0);
        let by = span.by.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
        let used = match span.usage.is_none() {
            true => String::new(),
            false => format!(", {} tokens, ${:.4}", span.usage.tokens, span.usage.usd),
        };
        lines.push(TonedLine::new(&format!("  {:<10} {time:>12}{by}{used}", span.what)));
    }
}

/// The round under way.
pub(super) fn current_log(model: &WatchModel) -> Vec<TonedLine> {
    let Some(current) = &model.payload.campaign.current else {
        return note("The round is not settled yet.");
    };
    let title = current.title.clone().unwrap_or_else(|| "no hypothesis yet".to_owned());
    let mut lines = vec![TonedLine::toned(&title, Tone::Strong)];
    lines.push(TonedLine::new(&format!("under way: {}", current.phase)));
    if let Some(left) = model.follower.campaign().duel_left() {
        let blocks = current.blocks.unwrap_or(0);
        let time = left.seconds_max.map(|s| format!(", at most {} left", time_text(s as f64)));
        let time = time.unwrap_or_default();
        let text = format!("{blocks} of at most {} blocks{time}", left.blocks_max);
        lines.push(TonedLine::new(&text));
    }
    let of_round = |span: &&Span| span.round == Some(current.round);
    let spans: Vec<Span> = model.payload.spans.iter().filter(of_round).cloned().collect();
    span_lines(&mut lines, &spans);
    lines
}

/// The campaign as a whole.
pub(super) fn campaign_log(model: &WatchModel) -> Vec<TonedLine> {
    let payload = &model.payload;
    let Some(target) = &payload.target else {
        return note("The campaign has no charter yet.");
    };
    let mut lines = vec![TonedLine::toned(&payload.campaign.campaign, Tone::Strong)];
    let about = format!("{} ({}) on {}", target.op, target.backend, target.device);
    lines.push(TonedLine::new(&about));
    lines.push(TonedLine::new(&format!("policy {}, agent {}", target.policy, target.agent)));
    if let Some(conditions) = model.follower.conditions() {
        lines.push(TonedLine::new(&device_text(conditions)));
    }
    if let Some(comparison) = &payload.final_comparison {
        heading(&mut lines, "original against final");
        for case in &comparison.cases {
            let (name, text) = (payload.case_name(case.case), case.estimate.describe());
            lines.push(TonedLine::new(&format!("  {text}  {name}")));
        }
    }
    heading(&mut lines, "checks");
    for check in &payload.integrity {
        let (mark, tone) = match check.state {
            IntegrityState::Passed => ("passed ", Tone::Good),
            IntegrityState::Flagged => ("FLAGGED", Tone::Bad),
            IntegrityState::NotRun => ("not run", Tone::Dim),
        };
        let text = format!("  {mark}  {}: {}", check.name, check.detail);
        lines.push(TonedLine::toned(&text, tone));
    }
    if !payload.campaign.queue.is_empty() {
        heading(&mut lines, "questions for a person (\"karve answer\")");
        for item in &payload.campaign.queue {
            lines.push(TonedLine::new(&format!("  round {}: {}", item.round, item.question)));
        }
    }
    heading(&mut lines, "environment");
    for (name, value) in payload.environment.iter().take(ROWS_MAX) {
        lines.push(TonedLine::toned(&format!("  {name}: {value}"), Tone::Dim));
    }
    lines
}
