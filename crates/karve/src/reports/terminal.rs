//! The summary that `karve run` prints at the end: plain text, narrow, most important line first.

use super::agenda::{became, why};
use super::figures::{headline, speedup_now, with_unit};
use super::final_report::host_noise;
use super::source::ReportSource;
use super::text::{interval, ratio, share, time_of_work, wrapped};
use karve_core::campaign::{Campaign, RoundSummary};
use karve_os::text::counted;

/// The width of the summary, in columns.
const WIDTH: usize = 100;
/// Where the text after a label starts.
const LABEL: usize = 12;
/// The most characters of a title or a reason.
const REASON_MAX: usize = 160;

/// The end of a campaign for a terminal, at most 100 columns wide. Hidden cases are not shown.
pub fn render_terminal_summary(campaign: &Campaign) -> String {
    let Some(source) = ReportSource::guarded(campaign) else {
        return "No target is defined yet.\n".to_owned();
    };
    let source = &source;
    let mut lines = vec![title(source), String::new()];
    lines.extend(figures(source));
    lines.extend(agenda_lines(source));
    for (name, keeps) in [("Kept", true), ("Dropped", false)] {
        let rounds = campaign.rounds().iter();
        let rounds: Vec<&RoundSummary> =
            rounds.filter(|round| round.verdict.keeps() == keeps).collect();
        if !rounds.is_empty() {
            lines.push(String::new());
            lines.push(format!("{name} ({})", rounds.len()));
            lines.extend(rounds.into_iter().map(|round| round_lines(source, round)));
        }
    }
    lines.join("\n") + "\n"
}

fn title(source: &ReportSource<'_>) -> String {
    let name = source.line(&source.charter.name, REASON_MAX);
    let state = match source.campaign.stop_reason() {
        Some(reason) => source.line(&source.stop(reason, REASON_MAX), REASON_MAX),
        None => "not finished".to_owned(),
    };
    wrapped(&format!("{name}: {state}"), WIDTH, "")
}

fn labelled(label: &str, text: &str) -> String {
    let indent = " ".repeat(LABEL);
    let body = wrapped(text, WIDTH, &indent);
    format!("{label:<LABEL$}{}", &body[LABEL..])
}

fn figures(source: &ReportSource<'_>) -> Vec<String> {
    let (campaign, now) = (source.campaign, speedup_now(source));
    let mut lines = vec![labelled("speedup", &speedup(source))];
    if campaign.view().confirmed == Some(false) {
        lines.push(labelled("warning", "the final duel does not confirm a gain"));
    }
    let n_visible = source.charter.visible_cases().len();
    lines.push(labelled(
        "metric",
        &format!(
            "{}: {} -> {} (geometric mean of {n_visible} {})",
            source.line(&source.charter.metric.name, REASON_MAX),
            with_unit(source, campaign.baseline_aggregate()),
            with_unit(source, campaign.aggregate_at(now)),
            if n_visible == 1 { "case" } else { "cases" }
        ),
    ));
    if let Some(before) = campaign.peak_share_at(1.0) {
        let after = campaign.peak_share_at(now);
        let text = format!("{} -> {} of the measured peak", share(Some(before)), share(after));
        lines.push(labelled("peak", &text));
    }
    let percent = campaign.view().inflation_percent;
    if let Some(percent) = percent.filter(|_| headline(source).is_some()) {
        let product = ratio(Some(campaign.lineage().cumulative_ratio()));
        let text = format!(
            "{percent:+.1}% on the visible cases, where the kept gains multiply to {product}"
        );
        lines.push(labelled("inflation", &text));
    }
    if let Some(text) = host_noise(campaign) {
        lines.push(labelled("noise", &text));
    }
    let mut used =
        format!("{} in {}", counted(campaign.rounds().len(), "round"), time_of_work(campaign));
    if campaign.cost().usd > 0.0 {
        used.push_str(&format!(", agent {:.2} USD", campaign.cost().usd));
    }
    lines.push(labelled("used", &used));
    lines
}

/// The outcome of each item of the agenda.
fn agenda_lines(source: &ReportSource<'_>) -> Vec<String> {
    let items = source.campaign.view().agenda;
    if items.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::new(), format!("Agenda ({})", items.len())];
    for item in &items {
        let title = source.line(&item.title, REASON_MAX);
        let why = source.line(&why(source, item), REASON_MAX);
        let why = if why.is_empty() { why } else { format!(": {why}") };
        let text = format!("{}: {title}; {}{why}", item.id, became(item));
        lines.push(wrapped(&format!("  {text}"), WIDTH, "  "));
    }
    lines
}

fn speedup(source: &ReportSource<'_>) -> String {
    let kept = source.campaign.lineage().kept().len();
    match headline(source) {
        Some(comparison) => format!(
            "{}, 95% interval {}: original against final, {} blocks",
            ratio(Some(comparison.overall.ratio)),
            interval(&comparison.overall),
            comparison.blocks
        ),
        None if kept == 0 => "none: no gain was kept".to_owned(),
        None => format!(
            "about {} (estimate from {kept} kept gains, not measured against the original)",
            ratio(Some(speedup_now(source)))
        ),
    }
}

fn round_lines(source: &ReportSource<'_>, round: &RoundSummary) -> String {
    let indent = " ".repeat(LABEL + 8);
    let shown = ratio(round.ratio());
    let title = wrapped(&source.title(round, REASON_MAX), WIDTH, &indent);
    let why = wrapped(&source.why(round, REASON_MAX), WIDTH, &indent);
    let label = format!("  round {:<4}", round.number);
    format!("{label:<LABEL$}{shown:>6}  {}\n{why}", &title[indent.len()..])
}
