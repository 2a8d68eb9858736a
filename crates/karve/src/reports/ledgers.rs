//! The small tables: `perf_results.md`, `logs/cost.md` and `logs/verified_ineffective.jsonl`.

use super::figures::ReportFigures;
use super::page::{MarkdownPage, table};
use super::source::ReportSource;
use super::text::{CELL_MAX, NO_VALUE, TITLE_MAX, decimals, escaped, stamp};
use karve_core::campaign::RoundSummary;
use karve_core::measurement::{FailureCategory, Gate};
use karve_core::verdict::{DropReason, Verdict};
use serde::Serialize;

const ITERATION_COLUMNS: [&str; 5] =
    ["iteration", "optimization", "latency_ms", "correctness", "status"];
const COST_COLUMNS: [&str; 9] =
    ["Time", "Phase", "Round", "Status", "Wall s", "SDK s", "Turns", "Cost USD", "Cumulative USD"];

/// `perf_results.md`: one table and nothing else; iteration 0 is the baseline.
pub(super) fn render_perf_results(source: &ReportSource<'_>) -> String {
    let figures = ReportFigures::of(source);
    let mut rows = Vec::new();
    if let Some(baseline) = source.campaign.baseline() {
        let latency = figures.latency_ms(source.campaign.baseline_aggregate());
        rows.push(vec![
            "0".to_owned(),
            "baseline".to_owned(),
            decimals(latency, 6),
            correctness(Some(&baseline.gate)).to_owned(),
            "keep".to_owned(),
        ]);
    }
    rows.extend(source.campaign.rounds().iter().map(|round| {
        vec![
            round.number.to_string(),
            escaped(&source.title(round, TITLE_MAX)),
            decimals(figures.round_latency_ms(round), 6),
            correctness(round.gate.as_ref()).to_owned(),
            iteration_status(&round.verdict).to_owned(),
        ]
    }));
    table(&ITERATION_COLUMNS, &rows) + "\n"
}

/// A candidate counts as correct only if a check passed.
fn correctness(gate: Option<&Gate>) -> &'static str {
    if gate.is_some_and(Gate::passed) { "PASS" } else { "FAIL" }
}

/// Keep, revert or crash: a crash is a round without a result.
fn iteration_status(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Keep { .. } | Verdict::KeepGated { .. } => "keep",
        Verdict::Undecided { .. } => "revert",
        Verdict::Drop { reason } => match reason {
            DropReason::NoCandidate { .. } => "crash",
            DropReason::Gate { gate } => gate_status(gate),
            DropReason::NoChange
            | DropReason::SameArtifact
            | DropReason::AlreadyTried { .. }
            | DropReason::NotFaster
            | DropReason::Regressed { .. }
            | DropReason::ClocksDisagree { .. }
            | DropReason::LayoutLuck { .. }
            | DropReason::RoundTimeUp => "revert",
        },
    }
}

fn gate_status(gate: &Gate) -> &'static str {
    match gate {
        Gate::BuildFailed { .. } | Gate::TimedOut { .. } => "crash",
        Gate::WrongResult { category, .. } => match category {
            FailureCategory::RuntimeAssert
            | FailureCategory::RuntimeOom
            | FailureCategory::RuntimeHang => "crash",
            FailureCategory::BuildCompile
            | FailureCategory::BuildLink
            | FailureCategory::SnrFail
            | FailureCategory::BenchRegression
            | FailureCategory::Other => "revert",
        },
        Gate::Passed | Gate::OutOfScope { .. } | Gate::Dishonest { .. } => "revert",
    }
}

/// `logs/cost.md`: the cost of each round.
pub(super) fn render_cost(source: &ReportSource<'_>) -> String {
    // The sum is unknown if no part is known.
    let usd = |usd: f64| decimals((usd > 0.0).then_some(usd), 4);
    let mut total = 0.0;
    let rows: Vec<Vec<String>> = source
        .campaign
        .rounds()
        .iter()
        .map(|round| {
            total += round.usage.usd;
            vec![
                stamp(round.at_ms),
                "ROUND".to_owned(),
                round.number.to_string(),
                round.verdict.word().to_owned(),
                decimals(Some(round.spent_ms as f64 / 1_000.0), 1),
                NO_VALUE.to_owned(),
                NO_VALUE.to_owned(),
                usd(round.usage.usd),
                usd(total),
            ]
        })
        .collect();
    let mut page = MarkdownPage::titled("Cost");
    page.table(&COST_COLUMNS, &rows);
    page.finish()
}

/// A line of `logs/verified_ineffective.jsonl`.
#[derive(Serialize)]
struct IneffectiveRow {
    round: u32,
    direction: String,
    reason: String,
    modified_files: Vec<String>,
}

/// Rounds whose idea was measured without a gain; a failed build or run is not a measurement.
pub(super) fn ineffective<'a>(source: &ReportSource<'a>) -> Vec<&'a RoundSummary> {
    let shown = |round: &&RoundSummary| match &round.verdict {
        Verdict::Keep { .. } | Verdict::KeepGated { .. } | Verdict::Undecided { .. } => false,
        Verdict::Drop { reason } => match reason {
            DropReason::NotFaster
            | DropReason::Regressed { .. }
            | DropReason::LayoutLuck { .. }
            | DropReason::SameArtifact => true,
            DropReason::NoCandidate { .. }
            | DropReason::NoChange
            | DropReason::AlreadyTried { .. }
            | DropReason::Gate { .. }
            | DropReason::ClocksDisagree { .. }
            | DropReason::RoundTimeUp => false,
        },
    };
    source.campaign.rounds().iter().filter(shown).collect()
}

/// The direction and the title of a round, not escaped.
pub(super) fn direction(source: &ReportSource<'_>, round: &RoundSummary) -> String {
    let title = source.title(round, TITLE_MAX);
    match &round.hypothesis {
        Some(hypothesis) => format!("{}: {title}", hypothesis.direction.name()),
        None => title,
    }
}

/// The files that a round's candidate changed, not escaped.
pub(super) fn changed_files(source: &ReportSource<'_>, round: &RoundSummary) -> Vec<String> {
    let files = round.candidate.iter().flat_map(|c| &c.files);
    files.map(|file| source.line(file, CELL_MAX)).collect()
}

/// `logs/verified_ineffective.jsonl`.
pub(super) fn render_ineffective(source: &ReportSource<'_>) -> String {
    let lines = ineffective(source).into_iter().map(|round| {
        let line = IneffectiveRow {
            round: round.number,
            direction: direction(source, round),
            reason: source.why(round, CELL_MAX),
            modified_files: changed_files(source, round),
        };
        // Numbers, strings and a list of strings always serialize.
        serde_json::to_string(&line).unwrap_or_default() + "\n"
    });
    lines.collect()
}
