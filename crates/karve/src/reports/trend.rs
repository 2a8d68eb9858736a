//! `logs/performance_trend.md`: one row for the baseline and one for each finished round.

use super::figures::{ReportFigures, deciding};
use super::page::MarkdownPage;
use super::source::ReportSource;
use super::text::{CELL_MAX, NO_VALUE, TITLE_MAX, decimals, escaped, percent};
use karve_core::campaign::RoundSummary;

const COLUMNS: [&str; 10] = [
    "Round",
    "Status",
    "Description",
    "Fwd Avg TFLOPS",
    "Fwd Peak TFLOPS",
    "Bwd Avg TFLOPS",
    "Bwd Peak TFLOPS",
    "Combined Step TFLOPS",
    "vs Baseline",
    "Key Finding",
];

/// The vs Baseline column for the baseline, and for a pass that is not measured.
const NOT_COMPARED: &str = "—";

/// Which of the columns the campaign's one metric belongs to.
#[derive(Clone, Copy)]
enum PassColumn {
    Forward,
    Backward,
    Step,
}

impl PassColumn {
    /// By the name of the metric; the default is a forward pass.
    fn of(metric: &str) -> Self {
        let name = metric.to_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| name.contains(word));
        if says(&["combined", "step"]) {
            Self::Step
        } else if says(&["backward", "bwd"]) {
            Self::Backward
        } else {
            Self::Forward
        }
    }

    /// The five columns of rates.
    fn cells(self, mean_and_peak: Option<(f64, f64)>, step: Option<f64>) -> Vec<String> {
        let mean = decimals(mean_and_peak.map(|(mean, _)| mean), 3);
        let peak = decimals(mean_and_peak.map(|(_, peak)| peak), 3);
        let none = || NO_VALUE.to_owned();
        match self {
            Self::Forward => vec![mean, peak, none(), none(), none()],
            Self::Backward => vec![none(), none(), mean, peak, none()],
            Self::Step => vec![none(), none(), none(), none(), decimals(step, 3)],
        }
    }

    /// The change against the baseline.
    fn compared(self, speedup: Option<f64>) -> String {
        let change = percent(speedup);
        match self {
            Self::Forward => format!("step -, fwd {change}, bwd {NOT_COMPARED}"),
            Self::Backward => format!("step -, fwd {NOT_COMPARED}, bwd {change}"),
            Self::Step => format!("step {change}"),
        }
    }
}

/// The trend table.
pub(super) fn render_trend(source: &ReportSource<'_>) -> String {
    let figures = ReportFigures::of(source);
    let pass = PassColumn::of(&source.charter.metric.name);
    let mut rows = Vec::new();
    if source.campaign.baseline().is_some() {
        rows.push(baseline_row(source, &figures, pass));
    }
    let rounds = source.campaign.rounds();
    rows.extend(rounds.iter().map(|r| round_row(source, &figures, pass, r)));
    let mut page = MarkdownPage::titled("Performance trend");
    page.block(
        "Fwd and Bwd are medians of the candidate's own readings, mean and maximum over the \
         visible cases; they are left out if only some cases were measured. Combined Step and \
         vs Baseline come from the paired comparisons of the rounds.",
    );
    let baseline_number = source.charter.policy.baseline_number;
    if baseline_number > 0 {
        page.block(format!(
            "Row {baseline_number} is the baseline, so round N is in row \
             N+{baseline_number}."
        ));
    }
    page.table(&COLUMNS, &rows);
    page.finish()
}

fn baseline_row(
    source: &ReportSource<'_>,
    figures: &ReportFigures<'_>,
    pass: PassColumn,
) -> Vec<String> {
    let mut row = vec![
        source.charter.policy.baseline_number.to_string(),
        "BASELINE".to_owned(),
        "the unchanged kernel".to_owned(),
    ];
    let rates = figures.mean_and_peak(|case| figures.baseline_median(case));
    row.extend(pass.cells(rates, figures.tflops_at(1.0)));
    row.push(NOT_COMPARED.to_owned());
    let passed = source.campaign.baseline().map(|b| source.gate(&b.gate));
    row.push(source.markdown(&passed.unwrap_or_default(), CELL_MAX));
    row
}

fn round_row(
    source: &ReportSource<'_>,
    figures: &ReportFigures<'_>,
    pass: PassColumn,
    round: &RoundSummary,
) -> Vec<String> {
    let speedup = figures.speedup(round);
    let measured = |case: usize| {
        let (comparison, _) = deciding(round)?;
        let of_case = comparison.cases.iter().find(|c| c.case == case)?;
        Some(of_case.candidate_median)
    };
    let number = source.charter.policy.baseline_number + round.number;
    let mut row = vec![
        number.to_string(),
        status(round).to_owned(),
        escaped(&source.title(round, TITLE_MAX)),
    ];
    let step = speedup.and_then(|speedup| figures.tflops_at(speedup));
    row.extend(pass.cells(figures.mean_and_peak(measured), step));
    row.push(pass.compared(speedup));
    row.push(finding(source, round));
    row
}

/// The terms of this format for a verdict.
pub(super) fn status(round: &RoundSummary) -> &'static str {
    if round.verdict.keeps() { "ACCEPTED" } else { "ROLLED BACK" }
}

/// The lesson of a round, or else the reason for its verdict.
fn finding(source: &ReportSource<'_>, round: &RoundSummary) -> String {
    match source.lesson(round, CELL_MAX).as_str() {
        "" => escaped(&source.why(round, CELL_MAX)),
        lesson => escaped(lesson),
    }
}
