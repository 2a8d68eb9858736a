//! `docs/kernels/<op>.md`: the devlog, in which every candidate is a separate version.

use super::figures::{ReportFigures, with_unit};
use super::optimize_log::open_directions;
use super::page::MarkdownPage;
use super::source::ReportSource;
use super::summary::lesson;
use super::text::{
    CELL_MAX, PARAGRAPH_MAX, TITLE_MAX, decimals, escaped, file_name, number, percent,
};
use karve_core::campaign::RoundSummary;

/// Shown if nothing was measured.
const NOT_MEASURED: &str = "n/a";

const COLUMNS: [&str; 10] = [
    "Version",
    "From",
    "Change",
    "Duration (ms)",
    "TFLOPs",
    "GB/s",
    "Occupancy",
    "TC util",
    "vs previous",
    "Adopted",
];

/// The path of the devlog.
pub(super) fn devlog_path(source: &ReportSource<'_>) -> String {
    format!("docs/kernels/{}.md", file_name(&source.charter.target.op))
}

/// The devlog.
pub(super) fn render_versions(source: &ReportSource<'_>) -> String {
    let op = source.markdown(&source.charter.target.op, TITLE_MAX);
    let mut page = MarkdownPage::titled(&format!("{op}: versions"));
    page.block(
        "v0 is the base and vN is the candidate of round N. A version is never overwritten; \
         \"vs previous\" compares it with the version it was made from.",
    );
    performance(source, &mut page);
    versions(source, &mut page);
    insights(source, &mut page);
    page.finish()
}

fn performance(source: &ReportSource<'_>, page: &mut MarkdownPage) {
    page.section("Performance");
    let facts = source.campaign.preparation().map(|p| &p.environment.facts);
    let clocks: Vec<String> = facts
        .into_iter()
        .flatten()
        .filter(|(name, _)| name.contains("clock") || name.contains("governor"))
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    let clocks = if clocks.is_empty() {
        NOT_MEASURED.to_owned()
    } else {
        source.markdown(&clocks.join(", "), CELL_MAX)
    };
    let visible = source.charter.visible_cases();
    let configs: Vec<String> = visible
        .into_iter()
        .filter_map(|case| source.campaign.case(case))
        .map(|case| {
            let params: Vec<String> = case.params.iter().map(|(n, v)| format!("{n}={v}")).collect();
            format!("{} ({})", case.name, params.join(", "))
        })
        .collect();
    page.list(&[
        format!("Device: {}", source.markdown(&source.charter.target.device, CELL_MAX)),
        format!("Clocks: {clocks}"),
        format!("dtype: {}", dtype(source)),
        format!("Config: {}", source.markdown(&super::text::list(&configs), PARAGRAPH_MAX)),
        format!("Baseline: {}", escaped(&with_unit(source, source.campaign.baseline_aggregate()))),
        format!("Bottleneck: {}", bottleneck(source)),
    ]);
}

/// The data type that all visible cases share, if they do.
fn dtype(source: &ReportSource<'_>) -> String {
    let visible = source.charter.visible_cases();
    let mut types: Vec<String> = visible
        .into_iter()
        .filter_map(|case| source.campaign.case(case)?.params.get("dtype").cloned())
        .collect();
    types.dedup();
    match types.as_slice() {
        [] => NOT_MEASURED.to_owned(),
        types => source.markdown(&types.join(", "), CELL_MAX),
    }
}

fn bottleneck(source: &ReportSource<'_>) -> String {
    match source.campaign.profile() {
        None => NOT_MEASURED.to_owned(),
        Some(profile) => match &profile.skipped {
            Some(why) => format!("{NOT_MEASURED} ({})", source.markdown(why, CELL_MAX)),
            None => profile.bottleneck.name().to_owned(),
        },
    }
}

fn versions(source: &ReportSource<'_>, page: &mut MarkdownPage) {
    page.section("Versions");
    let figures = ReportFigures::of(source);
    let base_ms = figures.latency_ms(source.campaign.baseline_aggregate());
    let mut rows = vec![vec![
        "v0".to_owned(),
        "—".to_owned(),
        "base".to_owned(),
        measured(number(base_ms)),
        measured(decimals(figures.tflops_at(1.0), 3)),
        NOT_MEASURED.to_owned(),
        NOT_MEASURED.to_owned(),
        NOT_MEASURED.to_owned(),
        "—".to_owned(),
        "yes".to_owned(),
    ]];
    let made = source.campaign.rounds().iter().filter(|r| r.candidate.is_some());
    rows.extend(made.map(|round| version(source, &figures, round)));
    page.table(&COLUMNS, &rows);
}

fn measured(text: String) -> String {
    if text == super::text::NO_VALUE { NOT_MEASURED.to_owned() } else { text }
}

fn version(
    source: &ReportSource<'_>,
    figures: &ReportFigures<'_>,
    round: &RoundSummary,
) -> Vec<String> {
    let tflops = figures.speedup(round).and_then(|s| figures.tflops_at(s));
    let adopted = if round.verdict.keeps() { "yes" } else { "no" };
    vec![
        format!("v{}", round.number),
        format!("v{}", parent_version(source, round)),
        escaped(&source.title(round, TITLE_MAX)),
        measured(number(figures.round_latency_ms(round))),
        measured(decimals(tflops, 3)),
        NOT_MEASURED.to_owned(),
        NOT_MEASURED.to_owned(),
        NOT_MEASURED.to_owned(),
        measured(percent(round.ratio())),
        adopted.to_owned(),
    ]
}

/// The version that a round's candidate was made from.
fn parent_version(source: &ReportSource<'_>, round: &RoundSummary) -> u32 {
    let kept = source.campaign.lineage().kept().iter();
    let mut kept = kept.filter(|kept| kept.commit == round.parent);
    kept.next().map_or(0, |kept| kept.round)
}

fn insights(source: &ReportSource<'_>, page: &mut MarkdownPage) {
    let rounds = source.campaign.rounds().iter();
    let made: Vec<&RoundSummary> = rounds.filter(|r| r.candidate.is_some()).collect();
    page.section("Issues");
    let refused = made.iter().filter(|round| !round.verdict.keeps());
    let issues = refused.map(|round| {
        let why = escaped(&source.why(round, CELL_MAX));
        format!("v{}: {why}", round.number)
    });
    listed(page, issues.collect());
    page.section("Insights");
    let insights = made.iter().map(|round| format!("v{}: {}", round.number, lesson(source, round)));
    listed(page, insights.collect());
    page.section("Guidance for the next version");
    let open = open_directions(source);
    let open = open.iter().map(|item| source.markdown(item, CELL_MAX));
    listed(page, open.collect());
}

fn listed(page: &mut MarkdownPage, items: Vec<String>) {
    if items.is_empty() {
        page.block("None.");
    }
    page.list(&items);
}
