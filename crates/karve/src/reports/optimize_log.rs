//! `logs/optimize.md`: the history of a campaign in the sections of the kernel-optimize workflow.

use super::figures::{ReportFigures, deciding, estimated, goal, headline, speedup_now, with_unit};
use super::ledgers::{changed_files, direction, ineffective};
use super::page::MarkdownPage;
use super::source::ReportSource;
use super::summary::{lesson, streak_action};
use super::text::{
    CELL_MAX, TITLE_MAX, code, decimals, duration, escaped, list, ratio, share, short, stamp,
    time_of_work,
};
use super::trend::status;
use karve_core::campaign::strategy::StagnationTrigger;
use karve_core::campaign::{RoundSummary, strategy};
use karve_core::charter::{Branch, WorkMode};
use karve_core::hypothesis::Direction;
use karve_core::policy::StopRule;

/// The log of the campaign.
pub(super) fn render_optimize_log(source: &ReportSource<'_>) -> String {
    let name = source.markdown(&source.charter.name, TITLE_MAX);
    let mut page = MarkdownPage::titled(&format!("Optimization log: {name}"));
    basic_information(source, &mut page);
    baseline(source, &mut page);
    page.section("Optimization History");
    if source.campaign.rounds().is_empty() {
        page.block("No round has finished yet.");
    }
    for round in source.campaign.rounds() {
        history(source, round, &mut page);
    }
    current_best(source, &mut page);
    directions(source, &mut page);
    verified_ineffective(source, &mut page);
    if source.campaign.is_finished() {
        final_report(source, &mut page);
    }
    termination(source, &mut page);
    page.finish()
}

fn basic_information(source: &ReportSource<'_>, page: &mut MarkdownPage) {
    let charter = source.charter;
    let text = |text: &str| source.markdown(text, CELL_MAX);
    let mode = match charter.mode {
        WorkMode::Repo => "repo",
        WorkMode::Workspace { .. } => "workspace",
    };
    let better = format!("{} is better", charter.metric.better.name());
    let branch = match &charter.branch {
        Branch::Named { name } => text(name),
        Branch::Hidden => "none".to_owned(),
    };
    let visible = charter.visible_cases();
    let names: Vec<String> = visible.iter().map(|case| source.case(*case)).collect();
    page.section("Basic Information");
    page.list(&[
        format!("Operation: {}", text(&charter.target.op)),
        format!("Backend: {}", text(&charter.target.backend)),
        format!("Language: {}", text(&charter.target.language)),
        format!("Device: {}", text(&charter.target.device)),
        format!("Execution mode: {mode}"),
        format!(
            "Metric: {} in {}, {better}",
            text(&charter.metric.name),
            text(&charter.metric.unit)
        ),
        format!("Target: {}", goal(source).map_or("none".to_owned(), |goal| escaped(&goal))),
        format!("Policy: {}", charter.policy.preset.name()),
        format!("Agent: {}", text(&charter.agent)),
        format!("Base: {}", code(&short(source.campaign.base_commit()))),
        format!("Branch: {branch}"),
        format!("Cases: {} (and {} hidden)", escaped(&list(&names)), source.n_hidden()),
        format!("Created: {}", text(&charter.created)),
    ]);
}

fn baseline(source: &ReportSource<'_>, page: &mut MarkdownPage) {
    page.section("Baseline");
    let Some(baseline) = source.campaign.baseline() else {
        page.block("Not measured yet.");
        return;
    };
    let figures = ReportFigures::of(source);
    let aggregate = source.campaign.baseline_aggregate();
    page.list(&[
        format!("Gate: {}", source.markdown(&source.gate(&baseline.gate), CELL_MAX)),
        format!("Geometric mean: {}", escaped(&with_unit(source, aggregate))),
        format!("Share of the measured peak: {}", share(source.campaign.peak_share_at(1.0))),
    ]);
    let rows: Vec<Vec<String>> = source
        .charter
        .visible_cases()
        .into_iter()
        .map(|case| {
            let median = figures.baseline_median(case);
            let rate = median.and_then(|median| figures.tflops(case, median));
            vec![
                escaped(&source.case(case)),
                escaped(&with_unit(source, median)),
                decimals(rate, 3),
            ]
        })
        .collect();
    page.table(&["Case", "Median", "TFLOPS"], &rows);
}

fn history(source: &ReportSource<'_>, round: &RoundSummary, page: &mut MarkdownPage) {
    let level = match deciding(round) {
        Some((comparison, set)) => format!("{set} ({} blocks)", comparison.blocks),
        None => "none".to_owned(),
    };
    let hypothesis = match &round.hypothesis {
        Some(hypothesis) => format!(
            "{} (expected {}, because {})",
            escaped(&source.title(round, TITLE_MAX)),
            ratio(Some(hypothesis.expected_ratio)),
            source.markdown(&hypothesis.mechanism, CELL_MAX)
        ),
        None => "none".to_owned(),
    };
    let mark = if round.verdict.keeps() { "✅" } else { "❌" };
    let result = match deciding(round) {
        Some((comparison, _)) => estimated(&comparison.overall),
        None => "not measured".to_owned(),
    };
    let test = round.gate.as_ref().map(|gate| source.gate(gate));
    let test = test.unwrap_or_else(|| "not run".to_owned());
    page.subsection(&format!("round-{}", round.number));
    page.list(&[
        format!("Time: {}", stamp(round.at_ms)),
        format!("Validation level: {level}"),
        format!("Hypothesis: {hypothesis}"),
        format!("Changes: {}", escaped(&list(&changed_files(source, round)))),
        format!("Result: {mark} {result}"),
        format!("Test: {}", source.markdown(&test, CELL_MAX)),
        format!("Decision: {}: {}", status(round), escaped(&source.why(round, CELL_MAX))),
        format!("Data: rounds/round-{}/summary.md", round.number),
        format!("Notes: {}", lesson(source, round)),
    ]);
}

fn current_best(source: &ReportSource<'_>, page: &mut MarkdownPage) {
    page.section("Current Best");
    let best = source.campaign.lineage().best();
    let from = best.map_or("the baseline".to_owned(), |kept| format!("round-{}", kept.round));
    let now = speedup_now(source);
    let how = if headline(source).is_some() {
        "measured at the end"
    } else {
        "product of the kept gains"
    };
    page.list(&[
        format!("From: {from}"),
        format!("Commit: {}", code(&short(source.campaign.incumbent()))),
        format!("Speedup: {} ({how})", ratio(Some(now))),
        format!(
            "Geometric mean: {}",
            escaped(&with_unit(source, source.campaign.aggregate_at(now)))
        ),
    ]);
}

/// What shows that the current direction is exhausted, as text, not escaped.
pub(super) fn trigger(trigger: &StagnationTrigger) -> String {
    match trigger {
        StagnationTrigger::DropsInARow { rounds } => {
            format!("{rounds} rounds in a row were not kept")
        }
        StagnationTrigger::MicroAdjustments { rounds } => {
            format!("the last {rounds} rounds made almost no difference")
        }
        StagnationTrigger::SameBottleneck { bottleneck } => {
            format!("the last rounds targeted {bottleneck} without a gain")
        }
        StagnationTrigger::ParameterJitter { knob } => {
            format!("the last rounds only changed {knob}")
        }
    }
}

/// Ideas to try, from the directive and the directions not tried yet, not escaped.
pub(super) fn open_directions(source: &ReportSource<'_>) -> Vec<String> {
    let directive = strategy::directive(source.campaign);
    let mut items: Vec<String> = Vec::new();
    if let Some(turn_to) = directive.turn_to {
        let why: Vec<String> = directive.triggers.iter().map(trigger).collect();
        items.push(format!("switch to {}: {}", turn_to.name(), why.join("; ")));
    }
    if let Some(action) = directive.action {
        items.push(streak_action(action).to_owned());
    }
    if let Some(hint) = directive.gate {
        let predicate = hint.predicate.unwrap_or_else(|| "a predicate".to_owned());
        items.push(format!(
            "apply round {} only if {predicate}: faster on {}, slower on {}",
            hint.round,
            list(&hint.won),
            list(&hint.lost)
        ));
    }
    let turned = directive.turn_to;
    let unexplored = source.unexplored().into_iter();
    items.extend(
        unexplored
            .filter(|direction| Some(*direction) != turned)
            .map(|direction| format!("{}: not tried yet", direction.name())),
    );
    items
}

fn directions(source: &ReportSource<'_>, page: &mut MarkdownPage) {
    page.section("Directions to Try");
    let open = open_directions(source);
    let mut items: Vec<String> =
        open.iter().map(|item| format!("[ ] {}", source.markdown(item, CELL_MAX))).collect();
    for direction in Direction::ALL {
        let rounds: Vec<String> = source
            .campaign
            .rounds()
            .iter()
            .filter(|r| r.hypothesis.as_ref().is_some_and(|h| h.direction == direction))
            .map(|round| round.number.to_string())
            .collect();
        if !rounds.is_empty() {
            let noun = if rounds.len() == 1 { "round" } else { "rounds" };
            items.push(format!("[x] {}: {noun} {}", direction.name(), list(&rounds)));
        }
    }
    page.list(&items);
}

fn verified_ineffective(source: &ReportSource<'_>, page: &mut MarkdownPage) {
    page.section("Verified Ineffective Directions");
    let rows: Vec<Vec<String>> = ineffective(source)
        .into_iter()
        .map(|round| {
            vec![
                round.number.to_string(),
                escaped(&direction(source, round)),
                escaped(&source.why(round, CELL_MAX)),
                ratio(round.ratio()),
                escaped(&list(&changed_files(source, round))),
            ]
        })
        .collect();
    page.table(&["Round", "Direction", "Reason", "Measured", "Files"], &rows);
}

fn final_report(source: &ReportSource<'_>, page: &mut MarkdownPage) {
    let view = source.campaign.view();
    page.section("Final Report");
    let measured = headline(source).map_or("not measured".to_owned(), |comparison| {
        format!("{} over {} blocks", estimated(&comparison.overall), comparison.blocks)
    });
    let percent = view.inflation_percent.filter(|_| headline(source).is_some());
    page.list(&[
        format!("Original against final: {measured}"),
        format!("Product of the kept gains: {}", ratio(Some(view.cumulative_ratio))),
        format!("Inflation gap in percent: {}", decimals(percent, 3)),
        format!("Rounds kept: {} of {}", view.kept, view.rounds_done),
        format!("Working time: {}", time_of_work(source.campaign)),
        "Full report: REPORT.md".to_owned(),
    ]);
}

fn termination(source: &ReportSource<'_>, page: &mut MarkdownPage) {
    page.section("Termination Check");
    let rules = source.charter.policy.stop.iter();
    let mut items: Vec<String> = rules.map(|rule| stop_rule(source, *rule)).collect();
    items.push(match source.campaign.stop_reason() {
        Some(reason) => {
            format!("Result: stop, because {}", escaped(&source.stop(reason, CELL_MAX)))
        }
        None => "Result: none of these applies; the campaign continues".to_owned(),
    });
    page.list(&items);
}

/// A stop rule, and the current state of the campaign.
fn stop_rule(source: &ReportSource<'_>, rule: StopRule) -> String {
    let (campaign, limits) = (source.campaign, source.charter.limits);
    match rule {
        StopRule::TargetMet => format!(
            "Target: {}; by the kept gains {} and {}",
            goal(source).map_or("none".to_owned(), |goal| escaped(&goal)),
            ratio(Some(campaign.lineage().cumulative_ratio())),
            escaped(&with_unit(source, campaign.aggregate()))
        ),
        StopRule::HardwareLimit { share: limit } => format!(
            "Hardware: {} of the measured peak; now {}",
            share(Some(limit)),
            share(campaign.peak_share())
        ),
        StopRule::Rounds => {
            format!("Rounds: {} of {}", campaign.rounds().len(), limits.rounds)
        }
        StopRule::WallTime => {
            let limit = limits.wall_s.map(|wall_s| duration(wall_s.saturating_mul(1_000)));
            let limit = limit.unwrap_or_else(|| "no limit".to_owned());
            format!("Working time: {} of {limit}", duration(campaign.spent_ms()))
        }
        StopRule::AgentCost => {
            let limit = limits.agent_usd.map(|usd| format!("{usd:.2} USD"));
            let limit = limit.unwrap_or_else(|| "no limit".to_owned());
            format!("Agent cost: {:.2} USD of {limit}", campaign.cost().usd)
        }
        StopRule::NoGain { rounds } => {
            format!("Rounds in a row without a gain: {} of {rounds}", campaign.streak())
        }
        StopRule::SmallGainKept => "Small gain: when one is kept".to_owned(),
        StopRule::ProposalsExhausted => "Proposals: when the agent has none left".to_owned(),
    }
}
