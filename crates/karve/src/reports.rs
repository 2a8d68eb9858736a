//! Everything derived from a campaign for people to read: files, reports and messages.
//!
//! Each function is pure: a campaign in, text out. No clock, no environment; the times come from
//! the events. Nothing here compares times or judges: the core already did. All of it can be
//! deleted and rebuilt byte for byte.
//!
//! `source` decides what may be shown to whom, `view` gathers it for the templates, `template`
//! renders and escapes it. The pages of karve are in `templates`, those of the published workflows
//! in `crate::workflows`.

mod benchmark_csv;
mod figures;
mod findings;
pub mod profile;
mod roofline;
mod source;
mod template;
#[cfg(test)]
mod tests;
mod text;
mod view;

pub use text::price_of;

use crate::plots;
use crate::workflows::{Form, WORKFLOWS};
use benchmark_csv::VersionReadings;
pub use benchmark_csv::with_reported_snr;
use karve_core::campaign::{Campaign, DuelName, Event, Record, RoundSummary};
use karve_core::charter::Charter;
use karve_core::hypothesis::Hypothesis;
use karve_core::measurement::{Gate, Sample};
use karve_core::payload::Payload;
use karve_os::error::Result;
use source::ReportSource;
use std::collections::BTreeMap;
use template::{render, render_message};
use text::file_name;
use view::{campaign_page, candidate_page, manifest_page, message_page, report_page, round_page};

/// The final report.
pub const REPORT: &str = "REPORT.md";

/// Files that exist only once a campaign is finished.
pub const AT_THE_END: [&str; 6] =
    [REPORT, roofline::PLOT, "trend.svg", "cases.svg", "heatmap.svg", "lineage.svg"];

/// How many characters of the reason why a campaign ended are shown.
const WHY_MAX: usize = 1_000;

/// Why a campaign ended, in text that is safe to publish.
pub fn why_ended(campaign: &Campaign) -> String {
    let source = ReportSource::of(campaign);
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
    let Some(source) = ReportSource::of(campaign) else {
        return Vec::new();
    };
    let mut files = of_charter(&source);
    files.extend(of_baseline(&source));
    files.extend(campaign_wide(&source));
    let rounds = campaign.rounds().iter();
    files.extend(rounds.flat_map(|round| of_round(&source, round)));
    if campaign.is_finished() {
        files.push(file(REPORT.to_owned(), render_final_report(campaign)));
        let roof = roofline::render_plot(&source);
        files.extend(roof.map(|svg| file(roofline::PLOT.to_owned(), svg)));
        let drawn = plots::of_campaign(&Payload::of(campaign)).into_iter();
        let drawn = drawn.map(|plot| file(format!("{}.svg", plot.name), plot.svg));
        files.extend(drawn.filter(|file| AT_THE_END.contains(&file.path.as_str())));
    }
    files
}

/// The derived files of one round.
pub fn round_files(campaign: &Campaign, round: u32) -> Vec<DerivedFile> {
    let source = ReportSource::of(campaign);
    let files = source.and_then(|source| Some(of_round(&source, source.round(round)?)));
    files.unwrap_or_default()
}

/// The candidate's readings of a round, from its records, as `benchmark.csv`.
pub fn round_csv(campaign: &Campaign, round: &RoundSummary, records: &[Record]) -> Option<String> {
    let source = ReportSource::of(campaign)?;
    let mut samples: BTreeMap<usize, Vec<Sample>> = BTreeMap::new();
    for record in records {
        let Event::BlockMeasured { duel: DuelName::Round { .. }, block, .. } = &record.event else {
            continue;
        };
        for pair in block.pairs.iter().filter(|_| block.discarded.is_none()) {
            samples.entry(pair.case).or_default().push(pair.candidate);
        }
    }
    let passed = round.gate.as_ref().is_some_and(Gate::passed);
    let version = VersionReadings { samples, passed, errors: &round.errors };
    Some(benchmark_csv::render(&source, &version))
}

/// The readings of the baseline as `benchmark.csv`.
pub fn baseline_csv(campaign: &Campaign) -> Option<String> {
    let source = ReportSource::of(campaign)?;
    let baseline = campaign.baseline()?;
    let mut samples: BTreeMap<usize, Vec<Sample>> = BTreeMap::new();
    for reading in &baseline.readings {
        samples.entry(reading.case).or_default().push(reading.sample);
    }
    let version = VersionReadings { samples, passed: baseline.gate.passed(), errors: &[] };
    Some(benchmark_csv::render(&source, &version))
}

/// The derived files that cover all rounds, and so change with each round. The others change
/// only with the charter, its limits, and the end.
pub fn overview_files(campaign: &Campaign) -> Vec<DerivedFile> {
    ReportSource::of(campaign).map_or_else(Vec::new, |source| campaign_wide(&source))
}

fn of_charter(source: &ReportSource<'_>) -> Vec<DerivedFile> {
    let page = manifest_page(source);
    let forms = WORKFLOWS.iter().flat_map(|workflow| workflow.charter);
    forms.map(|form| file(form.path.to_owned(), render(form.name, &page))).collect()
}

/// The files of the baseline, if it has the number of a round.
fn of_baseline(source: &ReportSource<'_>) -> Vec<DerivedFile> {
    let Some(number) = source.charter.policy.baseline_round() else {
        return Vec::new();
    };
    if source.campaign.baseline().is_none() {
        return Vec::new();
    }
    let page = campaign_page(source);
    let forms = WORKFLOWS.iter().flat_map(|workflow| workflow.baseline);
    let path = |form: &Form| form.path.replace("{round}", &number.to_string());
    forms.map(|form| file(path(form), render(form.name, &page))).collect()
}

fn campaign_wide(source: &ReportSource<'_>) -> Vec<DerivedFile> {
    let page = campaign_page(source);
    let forms = WORKFLOWS.iter().flat_map(|workflow| workflow.campaign);
    let op = file_name(&source.charter.target.op);
    let forms = forms.map(|form| file(form.path.replace("{op}", &op), render(form.name, &page)));
    forms.chain(findings::pages(source)).filter(is_written).collect()
}

fn of_round(source: &ReportSource<'_>, round: &RoundSummary) -> Vec<DerivedFile> {
    let page = round_page(source, round);
    let number = round.number.to_string();
    let own = [("rounds/round-{round}/summary.md", "summary.md")];
    let forms = WORKFLOWS.iter().flat_map(|workflow| workflow.round);
    let forms = own.into_iter().chain(forms.map(|form| (form.path, form.name)));
    let files =
        forms.map(|(path, name)| file(path.replace("{round}", &number), render(name, &page)));
    files.filter(is_written).collect()
}

/// A page with nothing on it, such as the failure of a round that did not fail, is not written. A
/// list without lines is.
fn is_written(file: &DerivedFile) -> bool {
    !file.text.trim().is_empty() || !file.path.ends_with(".json")
}

/// The devlog of a kernel, in a project or in the directory of a campaign.
pub fn devlog_path(op: &str) -> String {
    format!("docs/kernels/{}.md", file_name(op))
}

fn file(path: String, text: String) -> DerivedFile {
    DerivedFile { path, text }
}

/// The final report, as `karve report` prints it. Hidden cases appear as numbers.
pub fn render_final_report(campaign: &Campaign) -> String {
    match ReportSource::of(campaign) {
        Some(source) => render("REPORT.md", &report_page(&source)),
        None => "# No target is defined yet\n".to_owned(),
    }
}

/// The roofline with the visible cases, before and after; none if the peaks were not measured.
pub fn render_roofline(campaign: &Campaign) -> Option<String> {
    roofline::render_plot(&ReportSource::of(campaign)?)
}

/// The end of a campaign for a terminal, at most 100 columns wide. Hidden cases are not shown.
pub fn render_terminal_summary(campaign: &Campaign) -> String {
    match ReportSource::of(campaign) {
        Some(source) => render("terminal.txt", &report_page(&source)),
        None => "No target is defined yet.\n".to_owned(),
    }
}

/// A pull request: the title in the first line, then the body.
pub fn render_pull_request(campaign: &Campaign) -> String {
    match ReportSource::of(campaign) {
        Some(source) => render("pull_request.md", &report_page(&source)),
        None => "No target is defined yet\n".to_owned(),
    }
}

/// The message of a finished round: the expectation, the result, and the details.
pub fn render_commit_message(campaign: &Campaign, round: &RoundSummary) -> Result<String> {
    match ReportSource::of(campaign) {
        Some(source) => render_message("commit.txt", &message_page(&source, round)),
        None => Ok(String::new()),
    }
}

/// The message of a candidate's commit, before its verdict is known.
pub fn render_candidate_message(
    charter: &Charter,
    round: u32,
    hypothesis: &Hypothesis,
) -> Result<String> {
    render_message("commit.txt", &candidate_page(charter, round, hypothesis))
}
