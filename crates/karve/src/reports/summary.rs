//! `rounds/round-N/summary.md`: one round, from the hypothesis to what comes next.
//!
//! It depends only on the rounds up to its own, so it never changes again.

use super::figures::{change, deciding, estimated};
use super::ledgers::changed_files;
use super::page::MarkdownPage;
use super::source::ReportSource;
use super::text::{
    CELL_MAX, NO_VALUE, PARAGRAPH_MAX, TITLE_MAX, code, duration, escaped, interval, list, number,
    percent, ratio, short, stamp,
};
use super::transfer::transfer_check;
use super::{accuracy, roles};
use karve_core::campaign::RoundSummary;
use karve_core::charter::Better;
use karve_core::comparison::{Comparison, SpeedChange};
use karve_core::policy::StreakAction;
use karve_core::variants::ImplementedVariant;

const CASE_COLUMNS: [&str; 6] =
    ["Case", "Parent median", "Candidate median", "Delta", "95% interval", "Change"];

/// The summary of one round.
pub(super) fn render_summary(source: &ReportSource<'_>, round: &RoundSummary) -> String {
    let title = escaped(&source.title(round, TITLE_MAX));
    let mut page = MarkdownPage::titled(&format!("round-{}: {title}", round.number));
    page.list(&[
        format!("Time: {}", stamp(round.at_ms)),
        format!("Parent: {}", code(&short(&round.parent))),
        format!("Candidate: {}", candidate(round)),
        format!("Working time: {}", duration(round.spent_ms)),
    ]);
    hypothesis(source, round, &mut page);
    roles::push_asked_role(source, round, &mut page);
    single_change(source, round, &mut page);
    roles::reviews(source, round, &mut page);
    results(source, round, &mut page);
    page.section("Decision");
    page.block(format!(
        "{}: {}.",
        capital(round.verdict.word()),
        escaped(&source.why(round, CELL_MAX))
    ));
    attribution(source, round, &mut page);
    transfer_check(source, round, &mut page);
    next_direction(source, round, &mut page);
    if !round.verdict.keeps() {
        rollback(source, round, &mut page);
    }
    page.finish()
}

/// With a capital first letter.
pub(super) fn capital(word: &str) -> String {
    let mut chars = word.chars();
    let first: String = chars.next().into_iter().flat_map(char::to_uppercase).collect();
    first + chars.as_str()
}

/// The commit of the candidate, as code.
pub(super) fn candidate(round: &RoundSummary) -> String {
    let commit = round.candidate.as_ref().map(|c| short(&c.commit));
    commit.map_or_else(|| "none".to_owned(), |commit| code(&commit))
}

/// What a round taught, escaped.
pub(super) fn lesson(source: &ReportSource<'_>, round: &RoundSummary) -> String {
    match source.lesson(round, PARAGRAPH_MAX).as_str() {
        "" => NO_VALUE.to_owned(),
        lesson => escaped(lesson),
    }
}

fn hypothesis(source: &ReportSource<'_>, round: &RoundSummary, page: &mut MarkdownPage) {
    page.section("Hypothesis");
    let Some(hypothesis) = &round.hypothesis else {
        page.block("None.");
        let refused = round.refused.iter().map(|r| source.markdown(r, CELL_MAX));
        page.list(&refused.collect::<Vec<_>>());
        return;
    };
    let text = |text: &str| source.markdown(text, PARAGRAPH_MAX);
    let named = hypothesis.bottleneck.trim();
    let bottleneck = if named.is_empty() { "not named" } else { named };
    let mut items = vec![
        format!("Change: {}", text(&hypothesis.title)),
        format!("Bottleneck: {}", text(bottleneck)),
        format!("Because: {}", text(&hypothesis.mechanism)),
        format!("Expected: {}", ratio(Some(hypothesis.expected_ratio))),
        format!("Direction: {}", hypothesis.direction.name()),
    ];
    if let Some(task) = &round.task {
        items.push(format!("Agenda item: {}", text(task)));
    }
    if !hypothesis.counters.is_empty() {
        items.push(format!("Counters expected to change: {}", text(&list(&hypothesis.counters))));
    }
    if let Some(gate) = &hypothesis.gate {
        items.push(format!("Intended for: {}", text(gate)));
    }
    page.list(&items);
}

fn single_change(source: &ReportSource<'_>, round: &RoundSummary, page: &mut MarkdownPage) {
    page.section("Single change");
    let Some(candidate) = &round.candidate else {
        page.block("Nothing was changed.");
        return;
    };
    let mut items = vec![format!("Files: {}", escaped(&list(&changed_files(source, round))))];
    if let Some(hypothesis) = &round.hypothesis {
        let knobs = hypothesis.config.iter();
        items.extend(knobs.map(|(name, value)| {
            format!("Knob: {}", source.markdown(&format!("{name} = {value}"), CELL_MAX))
        }));
    }
    if let Some(tuned) = &round.tuned {
        let text = source.markdown(&tuned.describe(), CELL_MAX);
        items.push(format!("Tuning, one hypothesis: {text}"));
        let values = tuned.config.iter();
        items.extend(values.map(|(name, value)| {
            let text = source.markdown(&format!("{name} = {value}"), CELL_MAX);
            format!("Tuned to: {text}")
        }));
    }
    if !candidate.summary.trim().is_empty() {
        items.push(format!(
            "In the agent's words: {}",
            source.markdown(&candidate.summary, PARAGRAPH_MAX)
        ));
    }
    if !candidate.out_of_scope.is_empty() {
        let left_out = source.markdown(&list(&candidate.out_of_scope), PARAGRAPH_MAX);
        items.push(format!("Discarded changes outside the editable files: {left_out}"));
    }
    items.extend(variants(source, round));
    if round.retries > 0 {
        items.push(format!("Repair attempts: {}", round.retries));
    }
    page.list(&items);
}

/// The implementations of the hypothesis, if there were several.
fn variants(source: &ReportSource<'_>, round: &RoundSummary) -> Vec<String> {
    let of = |made: &ImplementedVariant| {
        let tryout = round.tryouts.iter().find(|of| of.variant == made.variant);
        let seen = match (&made.candidate, tryout) {
            (None, _) => source.markdown(&made.why, CELL_MAX),
            (Some(_), None) => "not tried".to_owned(),
            (Some(_), Some(tryout)) => {
                let gate = source.markdown(&source.gate(&tryout.gate), CELL_MAX);
                match tryout.value() {
                    Some(value) => format!("{gate}, measured {}", reading_of(source, value)),
                    None => gate,
                }
            }
        };
        let mark = match round.chosen == Some(made.variant) {
            true => "; this one was chosen",
            false => "",
        };
        format!("Variant {} of {}: {seen}{mark}", made.variant + 1, round.variants.len())
    };
    round.variants.iter().map(of).collect()
}

/// A reading that selected a variant, in the unit of the metric; rates are inverted.
fn reading_of(source: &ReportSource<'_>, value: f64) -> String {
    let metric = &source.charter.metric;
    let value = match metric.better {
        Better::Lower => value,
        Better::Higher => 1.0 / value,
    };
    let unit = source.line(&metric.unit, 20);
    escaped(format!("{} {unit}", number(Some(value))).trim())
}

fn results(source: &ReportSource<'_>, round: &RoundSummary, page: &mut MarkdownPage) {
    page.section("Results");
    let test = round.gate.as_ref().map(|gate| source.gate(gate));
    let test = test.unwrap_or_else(|| "not run".to_owned());
    page.list(&[format!("Gate: {}", source.markdown(&test, CELL_MAX))]);
    match deciding(round) {
        Some((comparison, set)) => {
            page.block(format!(
                "Overall {} on the {set} set, over {} blocks.",
                estimated(&comparison.overall),
                comparison.blocks
            ));
            page.table(&CASE_COLUMNS, &case_rows(source, comparison));
            layouts(source, round, page);
        }
        None => page.block("Nothing was measured."),
    }
    accuracy::of_round(source, round, page);
}

/// The results of the same code in other layouts.
fn layouts(source: &ReportSource<'_>, round: &RoundSummary, page: &mut MarkdownPage) {
    let Some(layouts) = &round.layouts else {
        return;
    };
    let shown: Vec<String> = layouts.ratios.iter().map(|r| ratio(Some(*r))).collect();
    let clock = layouts.clock.called(&source.charter.metric);
    page.block(format!(
        "The same code in {} layouts: {} by {}; the first is the usual one.",
        shown.len(),
        list(&shown),
        source.markdown(clock, CELL_MAX)
    ));
}

fn case_rows(source: &ReportSource<'_>, comparison: &Comparison) -> Vec<Vec<String>> {
    let unit = source.line(&source.charter.metric.unit, 20);
    let reading = |value: f64| escaped(format!("{} {unit}", number(Some(value))).trim());
    let row = |case: &karve_core::comparison::CaseComparison| {
        vec![
            escaped(&source.case(case.case)),
            reading(case.parent_median),
            reading(case.candidate_median),
            percent(Some(case.estimate.ratio)),
            interval(&case.estimate),
            change(case.change).to_owned(),
        ]
    };
    comparison.cases.iter().map(row).collect()
}

fn attribution(source: &ReportSource<'_>, round: &RoundSummary, page: &mut MarkdownPage) {
    page.section("Attribution");
    let (Some(hypothesis), Some((comparison, _))) = (&round.hypothesis, deciding(round)) else {
        page.block("Nothing was measured, so no effect can be attributed.");
        return;
    };
    let cases = |wanted: SpeedChange| -> String {
        let those = comparison.cases.iter().filter(|c| c.change == wanted);
        let names: Vec<String> = those.map(|c| source.case(c.case)).collect();
        escaped(&list(&names))
    };
    page.block(
        "Parent and candidate ran interleaved on the same seeds with the same harness; only the \
         files above differ between them.",
    );
    page.list(&[
        format!(
            "Expected {}, measured {}",
            ratio(Some(hypothesis.expected_ratio)),
            ratio(round.ratio())
        ),
        format!("Faster: {}", cases(SpeedChange::Improved)),
        format!("Slower: {}", cases(SpeedChange::Regressed)),
        format!("Inconclusive: {}", cases(SpeedChange::Inconclusive)),
    ]);
}

fn next_direction(source: &ReportSource<'_>, round: &RoundSummary, page: &mut MarkdownPage) {
    page.section("Next direction");
    let from = match &round.candidate {
        Some(candidate) if round.verdict.keeps() => &candidate.commit,
        Some(_) | None => &round.parent,
    };
    let mut items = vec![format!("The next round starts from {}.", code(&short(from)))];
    let until = source.campaign.rounds().iter();
    let streak = until
        .filter(|earlier| earlier.number <= round.number)
        .rev()
        .take_while(|earlier| !earlier.verdict.keeps())
        .count();
    let streak = u32::try_from(streak).unwrap_or(u32::MAX);
    if streak > 0 {
        items.push(format!("Rounds in a row without a gain: {streak}."));
    }
    if let Some(action) = source.charter.policy.streak_action(streak) {
        items.push(format!("{}.", capital(streak_action(action))));
    }
    items.push(format!("Lesson: {}", lesson(source, round)));
    page.list(&items);
}

/// What a step of the escalation ladder asks for.
pub(super) fn streak_action(action: StreakAction) -> &'static str {
    match action {
        StreakAction::Diagnose => "say why the last change failed before the next one",
        StreakAction::Review => "name three directions that differ fundamentally",
        StreakAction::Reprofile => "profile in full and classify the bottleneck again",
        StreakAction::InspectCode => "inspect the generated code against a reference",
        StreakAction::CompareOrAsk => "compare with the state of the art or change the approach",
    }
}

fn rollback(source: &ReportSource<'_>, round: &RoundSummary, page: &mut MarkdownPage) {
    page.section("Rollback Analysis");
    let hypothesis = round.hypothesis.as_ref();
    page.list(&[
        format!("Change: {}", escaped(&source.title(round, TITLE_MAX))),
        format!("Expected: {}", ratio(hypothesis.map(|h| h.expected_ratio))),
        format!("Actual: {}", ratio(round.ratio())),
        format!("Root cause: {}", escaped(&source.why(round, CELL_MAX))),
        format!("Lesson: {}", lesson(source, round)),
    ]);
    if let Some(excerpt) = round.gate.as_ref().and_then(|gate| source.excerpt(gate)) {
        page.block("The end of the log:");
        page.block(source.fenced(excerpt));
    }
}
