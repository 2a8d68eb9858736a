//! Whether gains transfer from the benchmark to real use: a round's check, and the audit table of
//! the report.

use super::figures::headline;
use super::page::MarkdownPage;
use super::source::ReportSource;
use super::text::{CELL_MAX, NO_VALUE, TITLE_MAX, escaped, percent};
use karve_core::attribution::{AttributionRow, GAP_MAX_PERCENT, Honesty};
use karve_core::campaign::RoundSummary;
use karve_core::integrity::{self, AuditFinding, AuditMode, Bucket, Transfer};

/// The most findings that are listed.
const LISTED_MAX: usize = 20;

const COLUMNS: [&str; 4] = ["Source", "Buckets", "Benchmark gain", "Real-training-equivalent gain"];

/// The transfer check of a round that was kept, or in which the audit found something.
pub(super) fn transfer_check(
    source: &ReportSource<'_>,
    round: &RoundSummary,
    page: &mut MarkdownPage,
) {
    let kept = round.verdict.keeps();
    if !kept && round.findings.is_empty() {
        return;
    }
    page.section("Real-training transfer check");
    if source.charter.audit.mode == AuditMode::Off {
        page.block("The audit is off, so this was not checked.");
        return;
    }
    let classified = integrity::classify(&round.findings);
    let key = classified.cache_key.as_deref();
    let key = key.map_or("none".to_owned(), |key| source.markdown(key, CELL_MAX));
    let ratio = round.ratio();
    let real = match classified.transfer() {
        Transfer::AsReal => ratio.map_or(NO_VALUE.to_owned(), |_| {
            format!("{}, because it transfers one to one", percent(ratio))
        }),
        Transfer::WithAsterisk => match source.charter.audit.weight_share {
            Some(share) => {
                let bound = ratio.map(|ratio| ratio.min(1.0 + share));
                format!("{}, bounded by audit.weight_share", percent(bound))
            }
            None => "unknown, because audit.weight_share is not set".to_owned(),
        },
        Transfer::Overfit => "none: in real use every call has different inputs".to_owned(),
    };
    page.list(&[
        format!("Bucket: {} ({})", names(&classified.buckets), classified.bucket.describe()),
        format!("Cache key: {key}"),
        format!("Benchmark gain: {}", percent(ratio)),
        format!("Estimated real gain: {real}"),
        match classified.transfer() {
            Transfer::AsReal | Transfer::WithAsterisk if !kept => {
                "Decision: none, because the round was not kept".to_owned()
            }
            transfer => format!("Decision: {}", transfer.decision()),
        },
    ]);
    if !round.findings.is_empty() {
        page.block("The audit found:");
        page.list(&listed(source, &round.findings));
    }
}

fn names(buckets: &[Bucket]) -> String {
    let names: Vec<&str> = buckets.iter().map(|bucket| bucket.name()).collect();
    names.join(", ")
}

fn listed(source: &ReportSource<'_>, findings: &[AuditFinding]) -> Vec<String> {
    let shown = findings.iter().take(LISTED_MAX);
    let mut lines: Vec<String> =
        shown.map(|finding| source.markdown(&finding.describe(), CELL_MAX)).collect();
    if findings.len() > LISTED_MAX {
        lines.push(format!("and {} more", findings.len() - LISTED_MAX));
    }
    lines
}

/// The audit table of the report, and its verdict.
pub(super) fn attribution(source: &ReportSource<'_>, page: &mut MarkdownPage) {
    page.section("Real-training audit");
    if source.charter.audit.mode == AuditMode::Off {
        page.block("The audit is off (`[audit]` in karve.toml), so this was not checked.");
        return;
    }
    let shown = headline(source).map(|comparison| comparison.overall.ratio);
    let done = karve_core::attribution::attribute_rounds(source.campaign, shown);
    if done.rows.is_empty() {
        page.block("No gain was kept, and no cache was found.");
        return;
    }
    page.block(
        "Where each gain comes from: K1 to K4 apply in real use, W1 applies up to a bound, and W2 \
         and W3 only in the benchmark. docs/integrity.md defines them.",
    );
    let rows: Vec<Vec<String>> = done.rows.iter().map(|row| table_row(source, row)).collect();
    page.table(&COLUMNS, &rows);
    let mut items = vec![
        format!("S_real (K1 to K4): {:+.1}%", flat(done.s_real_percent)),
        format!("W_real (W1, within its bound): {:+.1}%", flat(done.w_real_percent)),
        format!("R_real (W2 and W3): {:+.1}%", done.r_real_percent),
        format!(
            "Inflation gap of the benchmark: {:+.1} percentage points, from {:+.1}% in the \
             benchmark to {:+.1}% that transfers",
            flat(done.gap_percent),
            flat(done.benchmark_percent),
            flat(done.real_percent)
        ),
        format!("Verdict: {}", done.honesty.name()),
    ];
    if done.honesty == Honesty::Inflated {
        items.push(format!(
            "A gap of more than {GAP_MAX_PERCENT}% should be rolled back: it comes from the rounds \
             above that are W1, W2 or W3."
        ));
    }
    page.list(&items);
    let found = source.campaign.rounds().iter().flat_map(|round| {
        let kept = round.findings.iter().filter(|_| round.verdict.keeps());
        kept.map(|finding| format!("Round {}: {}", round.number, finding.describe()))
    });
    let found: Vec<String> =
        found.take(LISTED_MAX).map(|line| source.markdown(&line, CELL_MAX)).collect();
    if !found.is_empty() {
        page.block(
            "Audit findings in kept rounds. A person should review suspicious ones; the verdict \
             above depends only on where the gains come from:",
        );
        page.list(&found);
    }
}

/// A rounding error is not a gap.
fn flat(percent: f64) -> f64 {
    if percent.abs() < 0.05 { 0.0 } else { percent }
}

fn table_row(source: &ReportSource<'_>, row: &AttributionRow) -> Vec<String> {
    let gain = |percent: f64| format!("{percent:+.1}%");
    vec![
        escaped(&source.line(&row.source, TITLE_MAX)),
        names(&row.buckets),
        row.benchmark_percent.map_or("not measured".to_owned(), gain),
        gain(row.real_percent),
    ]
}
