//! Everything derived from a campaign for people to read: files, reports and messages.
//!
//! Each function is pure: a campaign in, text out. No clock, no environment; the times come from
//! the events. Nothing here compares times or judges: the core already did. All of it can be
//! deleted and rebuilt byte for byte.
//!
//! `source` decides what may be shown to whom, `text` escapes it, `page` assembles it; each of
//! the other modules renders one kind of file.

mod accuracy;
mod agenda;
mod contract;
mod cost;
mod figures;
mod final_report;
mod ledgers;
mod manifest;
mod messages;
mod optimize_log;
mod page;
pub mod profile;
mod roles;
mod roofline;
mod source;
mod summary;
mod terminal;
#[cfg(test)]
mod tests;
mod text;
mod transfer;
mod trend;
mod trtllm;
mod versions;
mod why;

pub use cost::sum as price_of;
pub use final_report::render_final_report;
pub use messages::{render_candidate_message, render_commit_message, render_pull_request};
pub use terminal::render_terminal_summary;

use karve_core::campaign::{Campaign, RoundSummary};
use source::ReportSource;

/// The final report.
pub const REPORT: &str = "REPORT.md";

/// Files that exist only once a campaign is finished.
pub const AT_THE_END: [&str; 2] = [REPORT, roofline::PLOT];

/// How many characters of the reason why a campaign ended are shown.
const WHY_MAX: usize = 1_000;

/// Why a campaign ended, in text that is safe to publish.
pub fn why_ended(campaign: &Campaign) -> String {
    let source = ReportSource::guarded(campaign);
    let why = source.zip(campaign.stop_reason());
    why.map_or_else(String::new, |(source, reason)| source.stop(reason, WHY_MAX))
}

/// One derived file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DerivedFile {
    /// Relative to the campaign's directory, with `/` between its parts.
    pub path: String,
    /// Its full contents.
    pub text: String,
}

/// Every derived text file of a campaign. `REPORT.md` is among them once it is finished.
pub fn derived_files(campaign: &Campaign) -> Vec<DerivedFile> {
    let Some(source) = ReportSource::guarded(campaign) else {
        return Vec::new();
    };
    let mut files = vec![file("manifest.yaml", manifest::render_manifest(&source))];
    files.extend(campaign_wide(&source));
    let rounds = campaign.rounds().iter();
    files.extend(rounds.flat_map(|round| of_round(&source, round)));
    if campaign.is_finished() {
        files.push(file(REPORT, render_final_report(campaign)));
        files.extend(roofline::render_plot(&source).map(|svg| file(roofline::PLOT, svg)));
    }
    files
}

/// The derived files of one round.
pub fn round_files(campaign: &Campaign, round: u32) -> Vec<DerivedFile> {
    let source = ReportSource::guarded(campaign);
    let files = source.and_then(|source| Some(of_round(&source, source.round(round)?)));
    files.unwrap_or_default()
}

/// The derived files that cover all rounds, and so change with each round. The others change
/// only with the charter, its limits, and the end.
pub fn overview_files(campaign: &Campaign) -> Vec<DerivedFile> {
    ReportSource::guarded(campaign).map_or_else(Vec::new, |source| campaign_wide(&source))
}

fn campaign_wide(source: &ReportSource<'_>) -> Vec<DerivedFile> {
    vec![
        file("logs/optimize.md", optimize_log::render_optimize_log(source)),
        file("logs/performance_trend.md", trend::render_trend(source)),
        file("logs/cost.md", ledgers::render_cost(source)),
        file("logs/verified_ineffective.jsonl", ledgers::render_ineffective(source)),
        file("perf_results.md", ledgers::render_perf_results(source)),
        file("results/optimizations.md", trtllm::render_optimizations(source)),
        file(&versions::devlog_path(source), versions::render_versions(source)),
    ]
}

fn of_round(source: &ReportSource<'_>, round: &RoundSummary) -> Vec<DerivedFile> {
    let number = round.number;
    vec![
        file(&format!("rounds/round-{number}/summary.md"), summary::render_summary(source, round)),
        file(&format!("results/round-{number}.md"), trtllm::render_optimization(source, round)),
    ]
}

fn file(path: &str, text: String) -> DerivedFile {
    DerivedFile { path: path.to_owned(), text }
}
