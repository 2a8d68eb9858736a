//! Texts that leave the campaign: commit messages and the pull request.

use super::figures::{change, deciding, estimated, headline, speedup_now, with_unit};
use super::final_report::{headline_sentence, measured_items};
use super::ledgers::changed_files;
use super::page::MarkdownPage;
use super::source::{HiddenNames, ReportSource};
use super::text::{
    CELL_MAX, NO_VALUE, PARAGRAPH_MAX, TITLE_MAX, code, escaped, interval, list, ratio, share,
    short, wrapped,
};
use super::trend::status;
use karve_core::campaign::{Campaign, RoundSummary};
use karve_core::charter::Charter;
use karve_core::hypothesis::Hypothesis;

/// The width of the paragraphs of a commit message, in columns.
const MESSAGE_WIDTH: usize = 72;
/// The most characters of the summary in the first line of a commit message.
const SUBJECT_MAX: usize = 72;
/// The most characters of a name in the first line of a commit message.
const NAME_MAX: usize = 40;

/// The message of a candidate's commit, before its verdict is known.
pub fn render_candidate_message(charter: &Charter, round: u32, hypothesis: &Hypothesis) -> String {
    let guard = HiddenNames::of(charter);
    let text = subject(&guard, charter, round, &hypothesis.title);
    paragraphs(&[text, hypothesis_paragraph(&guard, hypothesis)])
}

/// The message of a finished round: the expectation, the result, and the details.
pub fn render_commit_message(campaign: &Campaign, round: &RoundSummary) -> String {
    let Some(source) = ReportSource::guarded(campaign) else {
        return String::new();
    };
    let guard = HiddenNames::of(source.charter);
    let hypothesis = match &round.hypothesis {
        Some(hypothesis) => hypothesis_paragraph(&guard, hypothesis),
        None => "Hypothesis: none".to_owned(),
    };
    let measured = match deciding(round) {
        Some((comparison, set)) => format!(
            "{} on the {set} set over {} blocks",
            estimated(&comparison.overall),
            comparison.blocks
        ),
        None => "not measured".to_owned(),
    };
    let result = format!("Result: {}, {measured}; {}", status(round), source.why(round, CELL_MAX));
    let details = format!(
        "Details: files {}; parent {}; {}",
        list(&changed_files(&source, round)),
        short(&round.parent),
        source.lesson(round, PARAGRAPH_MAX)
    );
    let details = details.trim_end().trim_end_matches(';').to_owned();
    let mut texts = vec![
        subject(&guard, source.charter, round.number, round.title()),
        hypothesis,
        result,
        details,
    ];
    if let Some(values) = round.tuned.as_ref().and_then(|tuned| tuned.values()) {
        texts.push(format!("Set: {}", guard.line(&values, PARAGRAPH_MAX)));
    }
    paragraphs(&texts)
}

fn subject(guard: &HiddenNames, charter: &Charter, round: u32, title: &str) -> String {
    format!(
        "[optimize] {} {} round-{round}: {}",
        guard.line(&charter.target.op, NAME_MAX),
        guard.line(&charter.target.backend, NAME_MAX),
        guard.line(title, SUBJECT_MAX)
    )
}

fn hypothesis_paragraph(guard: &HiddenNames, hypothesis: &Hypothesis) -> String {
    let mechanism = guard.line(&hypothesis.mechanism, PARAGRAPH_MAX);
    if mechanism.starts_with("I expect") {
        return format!("Hypothesis: {mechanism}");
    }
    let expected = ratio(Some(hypothesis.expected_ratio));
    format!("Hypothesis: I expect {expected} because {mechanism}")
}

/// The first text unchanged, the others wrapped.
fn paragraphs(texts: &[String]) -> String {
    let wrap = |(index, text): (usize, &String)| match index {
        0 => text.trim_end().to_owned(),
        _ => wrapped(text, MESSAGE_WIDTH, ""),
    };
    let texts: Vec<String> = texts.iter().enumerate().map(wrap).collect();
    texts.join("\n\n") + "\n"
}

/// A pull request: the title in the first line, then the body. Titles of hypotheses are code, so
/// that text written by an agent cannot mention users or close issues.
pub fn render_pull_request(campaign: &Campaign) -> String {
    let Some(source) = ReportSource::guarded(campaign) else {
        return "No target is defined yet\n".to_owned();
    };
    let source = &source;
    let mut page = MarkdownPage::new();
    page.block(title(source));
    page.section("Summary");
    let now = speedup_now(source);
    page.block(format!("Speedup: {}.", headline_sentence(source)));
    let times = format!(
        "{}: {} before, {} after (geometric mean of the visible cases)",
        source.markdown(&source.charter.metric.name, CELL_MAX),
        escaped(&with_unit(source, campaign.baseline_aggregate())),
        escaped(&with_unit(source, campaign.aggregate_at(now)))
    );
    // If the peak is unknown, it is left out.
    let peak = campaign.peak_share_at(1.0).map(|before| {
        format!(
            "Share of the measured peak: {} before, {} after",
            share(Some(before)),
            share(campaign.peak_share_at(now))
        )
    });
    let mut items = vec![times];
    items.extend(peak);
    items.push(format!("Files: {}", files(source)));
    items.push(format!(
        "Base {}, result {}",
        code(&short(campaign.base_commit())),
        code(&short(campaign.incumbent()))
    ));
    page.list(&items);
    page.section("Case by case");
    case_table(source, &mut page);
    page.section("How it was measured");
    page.list(&measured_items(source));
    page.section("Kept rounds");
    page.list(&kept(source));
    page.section("How to reproduce");
    page.list(&[
        "`karve verify` judges every verdict again from the stored readings.".to_owned(),
        "`karve diff` shows the change from the base to the result.".to_owned(),
    ]);
    page.finish()
}

fn title(source: &ReportSource<'_>) -> String {
    let target = &source.charter.target;
    let op = source.line(&target.op, NAME_MAX);
    let backend = source.line(&target.backend, NAME_MAX);
    let device = source.line(&target.device, NAME_MAX);
    let about = if headline(source).is_some() { "" } else { "about " };
    let gain = ratio(Some(source.campaign.view().gain()));
    format!("Optimize {op} ({backend}) on {device}: {about}{gain}")
}

/// All files that kept rounds changed.
fn files(source: &ReportSource<'_>) -> String {
    let rounds = source.campaign.rounds().iter();
    let kept = rounds.filter(|round| round.verdict.keeps());
    let mut files: Vec<String> = kept.flat_map(|r| changed_files(source, r)).collect();
    files.sort();
    files.dedup();
    let files: Vec<String> = files.iter().map(|file| code(file)).collect();
    list(&files)
}

fn case_table(source: &ReportSource<'_>, page: &mut MarkdownPage) {
    let Some(comparison) = headline(source) else {
        page.block("The original and the result were not measured against each other.");
        return;
    };
    let rows: Vec<Vec<String>> = comparison
        .cases
        .iter()
        .map(|case| {
            vec![
                escaped(&source.case(case.case)),
                escaped(&with_unit(source, Some(case.parent_median))),
                escaped(&with_unit(source, Some(case.candidate_median))),
                ratio(Some(case.estimate.ratio)),
                interval(&case.estimate),
                change(case.change).to_owned(),
            ]
        })
        .collect();
    let columns = ["Case", "Before", "After", "Speedup", "95% interval", "Result"];
    page.table(&columns, &rows);
}

fn kept(source: &ReportSource<'_>) -> Vec<String> {
    let rounds = source.campaign.rounds().iter();
    let kept: Vec<String> = rounds
        .filter(|round| round.verdict.keeps())
        .map(|round| {
            let measured = match deciding(round) {
                Some((comparison, _)) => estimated(&comparison.overall),
                None => NO_VALUE.to_owned(),
            };
            let title = code(&source.title(round, TITLE_MAX));
            format!("Round {}: {title}, {measured}", round.number)
        })
        .collect();
    if kept.is_empty() { vec!["None.".to_owned()] } else { kept }
}
