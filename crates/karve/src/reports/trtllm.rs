//! `results/`: the trtllm formats, for one optimization and for all of them.

use super::figures::{change, deciding, estimated, goal, headline, speedup_now, with_unit};
use super::ledgers::changed_files;
use super::optimize_log::open_directions;
use super::page::MarkdownPage;
use super::source::ReportSource;
use super::summary::candidate;
use super::text::{
    CELL_MAX, NO_VALUE, PARAGRAPH_MAX, TITLE_MAX, code, decimals, escaped, list, percent, ratio,
    share, short,
};
use karve_core::campaign::RoundSummary;

const VALIDATION_COLUMNS: [&str; 5] = ["Metric", "Before", "After", "Change", "Result"];
const CUMULATIVE_COLUMNS: [&str; 6] =
    ["Step", "Optimization", "Change", "Cumulative", "SOL%", "SOL points"];

/// The trtllm terms for a verdict.
fn status(round: &RoundSummary) -> &'static str {
    if round.verdict.keeps() { "Applied" } else { "Rolled back" }
}

fn checkbox(done: bool, text: &str) -> String {
    format!("[{}] {text}", if done { "x" } else { " " })
}

/// `results/round-N.md`: one optimization.
pub(super) fn render_optimization(source: &ReportSource<'_>, round: &RoundSummary) -> String {
    let title = escaped(&source.title(round, TITLE_MAX));
    let mut page = MarkdownPage::titled(&format!("Optimization {}: {title}", round.number));
    page.section("Prerequisites");
    let passed = round.gate.as_ref().map(|gate| gate.passed());
    page.list(&[
        checkbox(source.campaign.baseline().is_some(), "baseline measured"),
        checkbox(
            !round.parent.is_empty(),
            &format!("parent saved as {}", code(&short(&round.parent))),
        ),
        checkbox(round.hypothesis.is_some(), "hypothesis stated before the change"),
        checkbox(passed == Some(true), "builds and is correct on every case of the set"),
        checkbox(deciding(round).is_some(), "measured against the parent"),
    ]);
    page.section("Implementation");
    let bottleneck = round.hypothesis.as_ref().map(|h| h.bottleneck.as_str());
    let summary = round.candidate.as_ref().map(|c| c.summary.as_str());
    let text = |text: Option<&str>| match text.map(str::trim) {
        None | Some("") => NO_VALUE.to_owned(),
        Some(text) => source.markdown(text, PARAGRAPH_MAX),
    };
    page.list(&[
        format!("Specialist: {}", text(Some(&source.charter.agent))),
        format!("Bottleneck: {}", text(bottleneck)),
        format!("Files: {}", escaped(&list(&changed_files(source, round)))),
        format!("Candidate: {}", candidate(round)),
        format!("Summary: {}", text(summary)),
    ]);
    page.section("Validation");
    page.table(&VALIDATION_COLUMNS, &validation_rows(source, round));
    page.section("Result");
    page.block(format!("{}: {}.", status(round), escaped(&source.why(round, CELL_MAX))));
    page.finish()
}

fn validation_rows(source: &ReportSource<'_>, round: &RoundSummary) -> Vec<Vec<String>> {
    let gate = round.gate.as_ref().map(|gate| source.gate(gate));
    let gate = gate.unwrap_or_else(|| "not run".to_owned());
    let none = || NO_VALUE.to_owned();
    let mut rows = vec![vec![
        "correctness".to_owned(),
        "passed".to_owned(),
        source.markdown(&gate, CELL_MAX),
        none(),
        none(),
    ]];
    let Some((comparison, set)) = deciding(round) else {
        return rows;
    };
    rows.extend(comparison.cases.iter().map(|case| {
        vec![
            escaped(&source.case(case.case)),
            escaped(&with_unit(source, Some(case.parent_median))),
            escaped(&with_unit(source, Some(case.candidate_median))),
            percent(Some(case.estimate.ratio)),
            change(case.change).to_owned(),
        ]
    }));
    rows.push(vec![
        format!("geometric mean, {set} set"),
        none(),
        none(),
        percent(Some(comparison.overall.ratio)),
        estimated(&comparison.overall),
    ]);
    rows
}

/// `results/optimizations.md`: all of them, in order.
pub(super) fn render_optimizations(source: &ReportSource<'_>) -> String {
    let (campaign, now) = (source.campaign, speedup_now(source));
    let name = source.markdown(&source.charter.name, TITLE_MAX);
    let mut page = MarkdownPage::titled(&format!("Optimizations: {name}"));
    let how = if headline(source).is_some() {
        "measured end to end"
    } else {
        "product of the kept gains"
    };
    page.list(&[
        format!(
            "Goal: {}",
            goal(source).map_or("as fast as possible".to_owned(), |goal| escaped(&goal))
        ),
        format!(
            "Start: {}, SOL {}",
            escaped(&with_unit(source, campaign.baseline_aggregate())),
            share(campaign.peak_share_at(1.0))
        ),
        format!(
            "Result: {}, SOL {}, {} ({how})",
            escaped(&with_unit(source, campaign.aggregate_at(now))),
            share(campaign.peak_share_at(now)),
            ratio(Some(now))
        ),
    ]);
    page.section("Optimizations");
    let items: Vec<String> = campaign.rounds().iter().map(|r| optimization(source, r)).collect();
    if !items.is_empty() {
        page.block(items.join("\n"));
    }
    page.section("Cumulative");
    page.table(&CUMULATIVE_COLUMNS, &cumulative_rows(source));
    page.section("Remaining opportunities");
    let open = open_directions(source);
    let open: Vec<String> = open.iter().map(|o| source.markdown(o, CELL_MAX)).collect();
    page.list(&open);
    page.finish()
}

fn optimization(source: &ReportSource<'_>, round: &RoundSummary) -> String {
    format!(
        "{}. {} — {}, {}: {}",
        round.number,
        escaped(&source.title(round, TITLE_MAX)),
        status(round),
        ratio(round.ratio()),
        escaped(&source.why(round, CELL_MAX))
    )
}

/// One row for the start and one for each applied optimization.
fn cumulative_rows(source: &ReportSource<'_>) -> Vec<Vec<String>> {
    let sol = |speedup: f64| source.campaign.peak_share_at(speedup);
    let start = sol(1.0);
    let mut before = start;
    let mut rows = vec![vec![
        "0".to_owned(),
        "start".to_owned(),
        NO_VALUE.to_owned(),
        ratio(Some(1.0)),
        share(start),
        NO_VALUE.to_owned(),
    ]];
    let rounds = source.campaign.rounds().iter();
    for round in rounds.filter(|round| round.verdict.keeps()) {
        let after = sol(round.cumulative_ratio);
        let points = after.zip(before).map(|(after, before)| (after - before) * 100.0);
        before = after;
        rows.push(vec![
            round.number.to_string(),
            escaped(&source.title(round, TITLE_MAX)),
            percent(round.ratio()),
            ratio(Some(round.cumulative_ratio)),
            share(after),
            points.map_or_else(|| decimals(None, 1), |points| format!("{points:+.1}")),
        ]);
    }
    rows
}
