//! `REPORT.md`: what a campaign achieved, the evidence for it, and how to check it.

use super::figures::{
    ReportFigures, change, deciding, estimated, goal, headline, speedup_now, with_unit,
};
use super::page::MarkdownPage;
use super::source::{HIDDEN_CASES, ReportSource};
use super::summary::{candidate, capital};
use super::text::{
    CELL_MAX, PARAGRAPH_MAX, TITLE_MAX, code, escaped, interval, limit, list, ratio, share, short,
    stamp, time_of_work, typed,
};
use super::versions::devlog_path;
use super::{accuracy, agenda, cost, roles, roofline, transfer, why};
use karve_core::campaign::{
    CONTROL_SLOWDOWN, Campaign, ControlKind, ControlResult, RoundSummary, strategy,
};
use karve_numerics::case::CaseSet;
use karve_os::text::counted;

const CASE_COLUMNS: [&str; 7] =
    ["Case", "Set", "Original", "Final", "Speedup", "95% interval", "Result"];
const ROUND_COLUMNS: [&str; 6] = ["Round", "Hypothesis", "Expected", "Measured", "Commit", "Why"];

/// The final report, as `karve report` prints it. Hidden cases appear as numbers.
pub fn render_final_report(campaign: &Campaign) -> String {
    let Some(source) = ReportSource::guarded(campaign) else {
        return "# No target is defined yet\n".to_owned();
    };
    let source = &source;
    let name = source.markdown(&source.charter.name, TITLE_MAX);
    let mut page = MarkdownPage::titled(&format!("Report: {name}"));
    summary(source, &mut page);
    cases(source, &mut page);
    agenda::section(source, &mut page);
    rounds(source, &mut page);
    roles::section(source, &mut page);
    accuracy::of_campaign(source, &mut page);
    peak(source, &mut page);
    why::profile_section(source, &mut page);
    roofline::section(source, &mut page);
    why::knowledge_section(source, &mut page);
    measured(source, &mut page);
    inflation(source, &mut page);
    transfer::attribution(source, &mut page);
    cost::section(source, &mut page);
    ending(source, &mut page);
    files(source, &mut page);
    page.section("How to check and use the result");
    page.list(&[
        "`karve verify` judges every verdict again from the stored readings.".to_owned(),
        "`karve diff` shows the change from the base to the result.".to_owned(),
        "`karve apply --branch NAME` creates a branch with the result.".to_owned(),
    ]);
    page.finish()
}

/// The warning at the top if the final duel does not confirm the rounds.
pub(super) const NOT_CONFIRMED: &str = "The final duel does not confirm a gain: the original may \
                                        be as fast as the result. Do not use the result as is.";

/// One sentence: the speedup, and how it was measured. Not for tables.
pub(super) fn headline_sentence(source: &ReportSource<'_>) -> String {
    let kept = source.campaign.lineage().kept().len();
    match headline(source) {
        Some(comparison) => format!(
            "{} against the original, measured interleaved over {} of {} ({} hidden)",
            estimated(&comparison.overall),
            counted(comparison.blocks as usize, "block"),
            counted(comparison.cases.len(), "case"),
            source.n_hidden()
        ),
        None if kept == 0 => "no gain was kept".to_owned(),
        None => format!(
            "about {}: an estimate from {kept} kept gains, not measured against the original",
            ratio(Some(speedup_now(source)))
        ),
    }
}

fn summary(source: &ReportSource<'_>, page: &mut MarkdownPage) {
    let (campaign, target) = (source.campaign, &source.charter.target);
    let now = speedup_now(source);
    let text = |text: &str| source.markdown(text, CELL_MAX);
    page.block(format!("**Speedup: {}.**", headline_sentence(source)));
    if campaign.view().confirmed == Some(false) {
        page.block(NOT_CONFIRMED);
    }
    if !campaign.is_finished() {
        page.block("The campaign is not finished; everything below is preliminary.");
    }
    page.list(&[
        format!(
            "Target: {} ({}, {}) on {}",
            text(&target.op),
            text(&target.backend),
            text(&target.language),
            text(&target.device)
        ),
        format!(
            "{}: {} before, {} after (geometric mean of the visible cases)",
            text(&source.charter.metric.name),
            escaped(&with_unit(source, campaign.baseline_aggregate())),
            escaped(&with_unit(source, campaign.aggregate_at(now)))
        ),
        format!("Goal: {}", goal(source).map_or("none".to_owned(), |goal| escaped(&goal))),
        format!("Rounds: {} kept of {}", campaign.lineage().kept().len(), campaign.rounds().len()),
        format!("Working time: {}", time_of_work(campaign)),
        cost::agents(source),
        format!("Started: {}", text(&source.charter.created)),
        format!(
            "Base {}, result {}",
            code(&short(campaign.base_commit())),
            code(&short(campaign.incumbent()))
        ),
    ]);
}

fn cases(source: &ReportSource<'_>, page: &mut MarkdownPage) {
    page.section("Case by case");
    if let Some(comparison) = headline(source) {
        let measured = comparison.cases.iter();
        let rows: Vec<Vec<String>> = measured
            .map(|case| {
                vec![
                    escaped(&source.case(case.case)),
                    set_name(source, case.case).to_owned(),
                    escaped(&with_unit(source, Some(case.parent_median))),
                    escaped(&with_unit(source, Some(case.candidate_median))),
                    ratio(Some(case.estimate.ratio)),
                    interval(&case.estimate),
                    change(case.change).to_owned(),
                ]
            })
            .collect();
        page.table(&CASE_COLUMNS, &rows);
        if source.n_hidden() > 0 {
            page.block(HIDDEN_CASES);
        }
        return;
    }
    page.block("The original and the result were not measured against each other. The baseline:");
    let figures = ReportFigures::of(source);
    let visible = source.charter.visible_cases();
    let rows: Vec<Vec<String>> = visible
        .into_iter()
        .map(|case| {
            let median = with_unit(source, figures.baseline_median(case));
            vec![escaped(&source.case(case)), escaped(&median)]
        })
        .collect();
    page.table(&["Case", "Original"], &rows);
}

fn set_name(source: &ReportSource<'_>, case: usize) -> &'static str {
    match source.charter.cases.get(case).map(|case| case.set) {
        Some(CaseSet::Hidden) => "hidden",
        Some(CaseSet::Quick | CaseSet::Full) | None => "visible",
    }
}

fn rounds(source: &ReportSource<'_>, page: &mut MarkdownPage) {
    let all = source.campaign.rounds();
    let rows = |keeps: bool| -> Vec<Vec<String>> {
        let wanted = all.iter().filter(|round| round.verdict.keeps() == keeps);
        wanted.map(|round| round_row(source, round)).collect()
    };
    page.section("Kept rounds");
    match rows(true).as_slice() {
        [] => page.block("None."),
        rows => page.table(&ROUND_COLUMNS, rows),
    }
    let kept = all.iter().filter(|round| round.verdict.keeps());
    let set: Vec<String> = kept
        .filter_map(|round| {
            let values = round.tuned.as_ref()?.values()?;
            let values = source.markdown(&values, PARAGRAPH_MAX);
            Some(format!("Round {} sets {values}", round.number))
        })
        .collect();
    if !set.is_empty() {
        page.list(&set);
    }
    page.section("Dropped rounds");
    match rows(false).as_slice() {
        [] => page.block("None."),
        rows => page.table(&ROUND_COLUMNS, rows),
    }
    let lessons: Vec<String> = all
        .iter()
        .map(|round| (round.number, source.lesson(round, PARAGRAPH_MAX)))
        .filter(|(_, lesson)| !lesson.is_empty())
        .map(|(number, lesson)| format!("Round {number}: {}", escaped(&lesson)))
        .collect();
    let learned = all.iter().filter_map(|round| {
        let learning = round.lesson.learning.as_ref()?;
        let became = source.markdown(&learning.became, PARAGRAPH_MAX);
        (!became.is_empty()).then(|| format!("Round {}: {became}", round.number))
    });
    let learned: Vec<String> = learned.collect();
    if !lessons.is_empty() {
        page.section("Lessons");
        page.list(&lessons);
    }
    if !learned.is_empty() {
        page.section("What the library learned");
        page.list(&learned);
    }
}

fn round_row(source: &ReportSource<'_>, round: &RoundSummary) -> Vec<String> {
    let measured = match deciding(round) {
        Some((comparison, _)) => estimated(&comparison.overall),
        None => ratio(None),
    };
    vec![
        round.number.to_string(),
        escaped(&source.title(round, TITLE_MAX)),
        ratio(round.hypothesis.as_ref().map(|h| h.expected_ratio)),
        measured,
        candidate(round),
        escaped(&source.why(round, CELL_MAX)),
    ]
}

fn peak(source: &ReportSource<'_>, page: &mut MarkdownPage) {
    page.section("Share of the measured peak");
    let floors = floors(source);
    if !floors.is_empty() {
        page.block(format!(
            "No call can take less than {floors}, even with the whole device: see \
             docs/integrity.md."
        ));
    }
    let (before, after) =
        (source.campaign.peak_share_at(1.0), source.campaign.peak_share_at(speedup_now(source)));
    if before.is_none() {
        page.block(match roofline::has_rows(source) {
            true => {
                "`commands.peak` measured no peak to compare with; the roofline below shows the \
                 share for each case."
            }
            false => "The peak of the device was not measured, or the work of a case is unknown.",
        });
        return;
    }
    page.block(format!("{} before, {} after.", share(before), share(after)));
}

/// The minimum time of a call on each visible case, if the roofline gives one.
fn floors(source: &ReportSource<'_>) -> String {
    let campaign = source.campaign;
    let floor = |case: usize| {
        let us = campaign.floor_s(case)? * 1e6;
        Some(format!("{us:.3} us on {}", campaign.case_name(case)))
    };
    let floors = source.charter.visible_cases().into_iter().filter_map(floor);
    floors.collect::<Vec<_>>().join(", ")
}

/// The rule, the evidence and the environment, so that a reader can check the claim.
pub(super) fn measured_items(source: &ReportSource<'_>) -> Vec<String> {
    let accept = &source.charter.policy.accept;
    let guard = accept.case_regress_ratio.map_or_else(
        || "there is no limit for single cases".to_owned(),
        |regress| format!("no case may be slower by {}", limit(regress)),
    );
    let blocks: u32 = source
        .campaign
        .rounds()
        .iter()
        .flat_map(|round| [&round.quick, &round.comparison])
        .flatten()
        .map(|comparison| comparison.blocks)
        .sum();
    let last = headline(source).map_or(0, |comparison| comparison.blocks);
    let mut items = vec![
        format!(
            "Rule: preset {}; a keep needs a gain of at least {}, with evidence for more than {}; \
             {guard}.",
            source.charter.policy.preset.name(),
            limit(accept.effect_ratio),
            limit(accept.null_ratio)
        ),
        format!(
            "Evidence: {} for a keep, {} for a drop or a guard; the probability of any false keep \
             in the whole campaign is at most {}%.",
            typed(source.charter.keep_evidence()),
            typed(accept.guard_evidence),
            typed(accept.alpha * 100.0)
        ),
        format!(
            "Pairs: parent and candidate ran interleaved on the same seeds, {blocks} blocks in the \
             rounds and {last} at the end; the warm-up at the start of a duel does not count."
        ),
    ];
    items.extend(control_items(source));
    if let Some(preparation) = source.campaign.preparation() {
        let hash = source.line(&preparation.harness_hash, CELL_MAX);
        items.push(format!("Harness: pinned, hash {}.", code(&hash)));
        let facts = &preparation.environment.facts;
        if !facts.contains_key("sandbox") {
            items.push("Sandbox: off; commands and agents had the same access as you.".into());
        }
        items.extend(facts.iter().map(|(name, value)| {
            format!("Environment: {}", source.markdown(&format!("{name}: {value}"), CELL_MAX))
        }));
    }
    items
}

/// What the controls show about the host: its resolution, and by which clocks.
fn control_items(source: &ReportSource<'_>) -> Vec<String> {
    let campaign = source.campaign;
    let mut items = Vec::new();
    if let Some(text) = host_noise(campaign) {
        items.push(format!("Controls: {}.", source.markdown(&text, PARAGRAPH_MAX)));
    }
    let slower = |result: &&ControlResult| result.control.kind == ControlKind::Slower;
    if let Some(result) = campaign.controls().iter().rev().find(slower) {
        let noticed = if result.shows_slowdown() {
            "and was detected"
        } else {
            "and was not detected: a change of that size may be missed on this host"
        };
        items.push(format!(
            "Positive control: {} more work measured as {} {noticed}.",
            limit(CONTROL_SLOWDOWN),
            estimated(&result.comparison.overall)
        ));
    }
    items.extend(layout_item(source));
    let second = headline(source).and_then(|comparison| comparison.second);
    if let Some(second) = second {
        items.push(format!(
            "Second clock: {} by {}.",
            estimated(&second.overall),
            second.clock.name()
        ));
    }
    items
}

/// How many gains were measured again in other code layouts, and how many were kept.
fn layout_item(source: &ReportSource<'_>) -> Option<String> {
    let rounds = source.campaign.rounds().iter();
    let tried: Vec<_> = rounds.filter(|round| round.layouts.is_some()).collect();
    let kept = tried.iter().filter(|round| round.verdict.keeps()).count();
    (!tried.is_empty()).then(|| {
        format!(
            "Layouts: gains measured again in other layouts of the same code: {}, kept after that: \
             {kept}.",
            tried.len()
        )
    })
}

/// The result of the last A/A test, as text.
pub(super) fn host_noise(campaign: &Campaign) -> Option<String> {
    let (last, metric) = (campaign.host_noise()?, &campaign.charter()?.metric);
    let shown = format!(
        "the A/A test of the incumbent showed {} over {} blocks, evidence {}",
        estimated(&last.comparison.overall),
        last.comparison.blocks,
        typed((last.evidence() * 10.0).round() / 10.0)
    );
    Some(match campaign.detectable() {
        Some(least) => format!(
            "{shown}; a round can detect {} or more, by {}",
            limit(least.ratio),
            least.clock.called(metric)
        ),
        None => format!("{shown}; too noisy to say what a round can detect"),
    })
}

fn measured(source: &ReportSource<'_>, page: &mut MarkdownPage) {
    page.section("How it was measured");
    let mut items = measured_items(source);
    let faults = source.campaign.planted_bugs();
    if !faults.is_empty() {
        let noticed = faults.iter().filter(|fault| fault.noticed).count();
        items.push(format!(
            "Mutation check: bugs planted in the kernel before the baseline: {}, caught by the \
             tests: {noticed}.",
            faults.len()
        ));
    }
    page.list(&items);
}

fn inflation(source: &ReportSource<'_>, page: &mut MarkdownPage) {
    page.section("Inflation gap of the rounds");
    let view = source.campaign.view();
    let product = ratio(Some(view.cumulative_ratio));
    match view.inflation_percent.filter(|_| headline(source).is_some()) {
        Some(percent) => page.block(format!(
            "{percent:+.1}%: the difference between the product of the kept gains, {product}, and \
             the final duel on the same cases. Above 0, the product is too high: gains that \
             are selected for being high are biased upward. The headline is free of this bias."
        )),
        None => page.block(format!(
            "The kept gains multiply to {product}. Gains that are selected for being high are \
             biased upward; only a final duel shows by how much."
        )),
    }
}

fn ending(source: &ReportSource<'_>, page: &mut MarkdownPage) {
    page.section("Why it stopped");
    let mut items = vec![match source.campaign.stop_reason() {
        Some(reason) => format!("{}.", escaped(&capital(&source.stop(reason, PARAGRAPH_MAX)))),
        None => "It is not finished.".to_owned(),
    }];
    if let Some(last) = source.campaign.rounds().last() {
        items.push(format!("The last round ended at {}.", stamp(last.at_ms)));
    }
    page.list(&items);
    let questions: Vec<String> = strategy::queue(source.campaign)
        .iter()
        .map(|item| {
            let question = source.markdown(&item.question, CELL_MAX);
            format!("Round {}: {question}", item.round)
        })
        .collect();
    if !questions.is_empty() {
        page.section("Questions for a person");
        page.list(&questions);
    }
}

fn files(source: &ReportSource<'_>, page: &mut MarkdownPage) {
    page.section("Files");
    let kept: Vec<String> = source
        .campaign
        .lineage()
        .kept()
        .iter()
        .map(|kept| format!("rounds/round-{}", kept.round))
        .collect();
    page.list(&[
        "`events.jsonl`: the full event log; everything else is derived from it".to_owned(),
        "`manifest.yaml`: the charter".to_owned(),
        "`logs/optimize.md`, `logs/performance_trend.md`, `logs/cost.md`: the history".to_owned(),
        "`rounds/round-N/summary.md`, `results/round-N.md`: one round".to_owned(),
        "`results/optimizations.md`, `perf_results.md`: all rounds in one table".to_owned(),
        format!("{}: all versions", code(&devlog_path(source))),
        format!("Kept: {}", list(&kept)),
    ]);
}
