//! Which role ran in a round and why, and the review next to the measured figures.

use super::page::MarkdownPage;
use super::source::ReportSource;
use super::text::{CELL_MAX, PARAGRAPH_MAX, code, escaped};
use karve_core::campaign::{RoundSummary, signals_of};
use karve_core::policy::ReviewRule;
use karve_core::roles::Review;

/// The role that was chosen, with every rule that applied.
pub(super) fn push_asked_role(
    source: &ReportSource<'_>,
    round: &RoundSummary,
    page: &mut MarkdownPage,
) {
    let Some(route) = &round.route else {
        return;
    };
    page.section("Role");
    page.block(format!("{}.", code(&route.describe())));
    let line = |line: String| source.markdown(&line, PARAGRAPH_MAX);
    page.list(&route.lines().into_iter().map(line).collect::<Vec<_>>());
}

/// The review before the gate, and the same signals from the figures.
pub(super) fn reviews(source: &ReportSource<'_>, round: &RoundSummary, page: &mut MarkdownPage) {
    if round.reviews.is_empty() {
        return;
    }
    page.section("Review");
    let said = round.reviews.iter();
    let said = said.map(|review| source.markdown(&review.describe(), PARAGRAPH_MAX));
    page.list(&said.collect::<Vec<_>>());
    let last = round.reviews.last();
    let rows: Vec<Vec<String>> = signals_of(round)
        .into_iter()
        .map(|figure| {
            let before = last.and_then(|review| review.signals.get(&figure.signal));
            vec![
                code(figure.signal.name()),
                before.map_or("-", |stance| stance.name()).to_owned(),
                figure.stance.name().to_owned(),
                escaped(&source.line(&figure.why, CELL_MAX)),
            ]
        })
        .collect();
    if !rows.is_empty() {
        let columns = ["Signal", "Reviewer, before", "Figures, after", "Why"];
        page.table(&columns, &rows);
    }
    page.block(decided(source.charter.policy.review, round));
}

/// What decided: if the policy skips doubted candidates, gate and duel were not run.
fn decided(rule: ReviewRule, round: &RoundSummary) -> &'static str {
    let doubted = round.reviews.last().is_some_and(Review::doubts);
    let is_measured = round.comparison.is_some() || round.quick.is_some();
    match (rule, &round.gate) {
        (ReviewRule::Skip, _) if doubted => {
            "The policy drops candidates that a reviewer doubts (`policy.review = \"skip\"`): the \
             gate and the duel were not run for this candidate."
        }
        (_, _) if is_measured => "A review is advice: the gate and the duel decided.",
        (_, Some(_)) => "A review is advice: the gate decided.",
        (_, None) => "A review is advice: the round ended before its gate.",
    }
}

/// The reviews, round by round, for the final report.
pub(super) fn section(source: &ReportSource<'_>, page: &mut MarkdownPage) {
    let rounds = source.campaign.rounds().iter();
    let said = rounds.flat_map(|round| round.reviews.iter().map(move |review| (round, review)));
    let lines: Vec<String> = said
        .map(|(round, review)| {
            let text = source.markdown(&review.describe(), CELL_MAX);
            let became = round.verdict.word();
            format!("Round {} ({became}): {text}", round.number)
        })
        .collect();
    if !lines.is_empty() {
        page.section("Reviews");
        page.list(&lines);
    }
}
