//! autoresearch: `results.tsv`, one line for the baseline and one for each round.

use super::{ExportResult, ExportSource};
use karve_core::campaign::RoundSummary;
use karve_core::measurement::Gate;
use karve_os::text::one_line;

/// Characters of a commit and of a description.
const COMMIT_CHARS: usize = 7;
const CHARS_MAX: usize = 200;

pub(super) fn autoresearch(source: &ExportSource<'_>) -> ExportResult {
    let campaign = source.campaign;
    let task = source.task();
    let metric = task["metric"].as_str().unwrap_or(&source.charter.metric.name);
    let mut text = format!("commit\t{}\tmemory_gb\tstatus\tdescription\n", cell(metric));
    let mut line = |commit: &str, value: Option<f64>, status: &str, title: &str| {
        let commit: String = commit.chars().take(COMMIT_CHARS).collect();
        let value = value.unwrap_or(0.0);
        text.push_str(&format!("{commit}\t{value:.6}\t0.0\t{status}\t{}\n", cell(title)));
    };
    line(campaign.base_commit(), campaign.baseline_aggregate(), "keep", "baseline");
    for round in campaign.rounds() {
        let commit = round.candidate.as_ref().map_or("-", |candidate| candidate.commit.as_str());
        let value = campaign.round_view(round).aggregate;
        let status = status_of(round);
        line(commit, value.filter(|_| status != "crash"), status, round.title());
    }
    let mut result = ExportResult::one("results.tsv", text);
    result.notes.push("karve does not measure memory: memory_gb is 0.0 in every line".to_owned());
    result
}

/// What became of a round, in the words of the format. What was never measured is a crash.
fn status_of(round: &RoundSummary) -> &'static str {
    let is_measured = round.gate.as_ref().is_some_and(Gate::passed) && round.shown().is_some();
    match (round.verdict.keeps(), is_measured) {
        (true, _) => "keep",
        (false, true) => "discard",
        (false, false) => "crash",
    }
}

/// Text without tabs and line ends.
fn cell(text: &str) -> String {
    one_line(&text.replace('\t', " "), CHARS_MAX)
}
