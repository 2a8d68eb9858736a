//! What a round taught, in numbers: the lesson of its summary, and the evidence for the library.

use super::hidden::shown;
use super::visible_name;
use crate::campaign::{Campaign, RoundState, RoundSummary, Stage};
use crate::charter::CaseSet;
use crate::comparison::Comparison;
use crate::hypothesis::Hypothesis;
use crate::knowledge::{Evidence, Learning, Lesson};
use crate::measurement::Gate;
use crate::stats;
use crate::verdict::{DropReason, Verdict};

/// Characters of a lesson.
const LESSON_MAX: usize = 1_000;
/// Cases that a workload names.
const CASES_MAX: usize = 4;
/// Findings without an entry that one campaign leaves behind.
const NEW_MAX: usize = 20;
/// A change from which more was expected and which gave nothing is an assumption refuted.
const ASSUMED_RATIO: f64 = 1.05;

/// What the round under way taught, in numbers.
pub fn lesson(campaign: &Campaign) -> Lesson {
    let Some(round) = campaign.current_round() else {
        return Lesson::default();
    };
    let Stage::Learning { verdict } = &round.stage else {
        return Lesson::default();
    };
    let why = verdict.describe(&|case| visible_name(campaign, case));
    let why = shown(campaign, &why);
    let comparison = round.comparison.as_ref().or(round.quick.as_ref());
    let text = match (&round.hypothesis, comparison) {
        (Some(hypothesis), Some(comparison)) => format!(
            "{}: expected {:.3}x, measured {}; {why}",
            hypothesis.title,
            hypothesis.expected_ratio,
            comparison.overall.describe(),
        ),
        (Some(hypothesis), None) => format!("{}: {why}", hypothesis.title),
        (None, _) => why,
    };
    Lesson {
        text: text.chars().take(LESSON_MAX).collect(),
        learning: learning(campaign, round, verdict).map(Box::new),
    }
}

/// What the library learns: a reusable finding, a sharper condition, or a refuted assumption.
fn learning(campaign: &Campaign, round: &RoundState, verdict: &Verdict) -> Option<Learning> {
    let hypothesis = round.hypothesis.as_deref()?;
    let comparison = round.comparison.as_ref().or(round.quick.as_ref());
    let named = hypothesis.entry.is_some();
    let failed = fails(verdict);
    let told = match (verdict, comparison) {
        (Verdict::Keep { .. } | Verdict::KeepGated { .. }, Some(_)) => true,
        (Verdict::Drop { .. }, _) if failed => named,
        (
            Verdict::Drop {
                reason: DropReason::NotFaster | DropReason::Regressed { .. },
            },
            Some(_),
        ) => named || hypothesis.expected_ratio >= ASSUMED_RATIO,
        _ => false,
    };
    // Which value a knob liked is in the journal of the tuner; as a rule it would be folklore.
    let only_knobs = hypothesis.sweep || !hypothesis.config.is_empty();
    if !told || (only_knobs && !named) {
        return None;
    }
    let is_new = |round: &&RoundSummary| {
        let learning = round.lesson.learning.as_ref();
        learning.is_some_and(|learning| learning.is_new)
    };
    if !named && campaign.rounds().iter().filter(is_new).count() >= NEW_MAX {
        return None;
    }
    let name = campaign.charter().map(|c| c.name.clone())?;
    let new = format!("{}{}", found_prefix(&name), round.number);
    Some(Learning {
        is_new: !named,
        entry: hypothesis.entry.clone().unwrap_or(new),
        title: hypothesis.title.chars().take(100).collect(),
        mechanism: hypothesis.mechanism.chars().take(LESSON_MAX).collect(),
        evidence: evidence(campaign, (round.number, hypothesis), comparison, failed)?,
        foretold: Vec::new(),
    })
}

/// Whether the change itself was wrong: it does not build, or its result is another.
fn fails(verdict: &Verdict) -> bool {
    matches!(
        verdict,
        Verdict::Drop {
            reason: DropReason::Gate {
                gate: Gate::BuildFailed { .. } | Gate::WrongResult { .. } | Gate::TimedOut { .. }
            }
        }
    )
}

/// How the ids of entries begin that a campaign makes of its own findings.
pub fn found_prefix(campaign: &str) -> String {
    format!("found-{}-r", plain(campaign))
}

fn plain(name: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let text: String = name.to_lowercase().chars().map(keep).collect();
    text.trim_matches('-').chars().take(60).collect()
}

fn evidence(
    campaign: &Campaign,
    (number, hypothesis): (u32, &Hypothesis),
    comparison: Option<&Comparison>,
    failed: bool,
) -> Option<Evidence> {
    let charter = campaign.charter()?;
    let cases = campaign.cases_of(CaseSet::Full);
    let names: Vec<String> = cases
        .iter()
        .take(CASES_MAX)
        .map(|case| campaign.case_name(*case))
        .collect();
    let facts = campaign.preparation().map(|p| &p.environment.facts);
    let host = facts.and_then(|facts| facts.get("cpu").cloned());
    let medians = |of: &dyn Fn(&crate::comparison::CaseComparison) -> f64| {
        let values: Vec<f64> = comparison
            .iter()
            .flat_map(|c| c.cases.iter().map(of))
            .collect();
        stats::geometric_mean(&values).unwrap_or(0.0)
    };
    let overall = comparison.map(|comparison| comparison.overall);
    Some(Evidence {
        metric: charter.metric.name.clone(),
        before: medians(&|case| case.parent_median),
        after: medians(&|case| case.candidate_median),
        ratio: overall.map_or(0.0, |overall| overall.ratio),
        low: overall.and_then(|overall| overall.low),
        high: overall.and_then(|overall| overall.high),
        device: match host {
            Some(host) => format!("{} ({host})", charter.target.device),
            None => charter.target.device.clone(),
        },
        workload: format!("{} {}", charter.target.op, names.join("; ")),
        run: format!("{}/round-{number}", charter.name),
        date: charter.created.chars().take(10).collect(),
        toolchain: String::new(),
        n: comparison.map_or(1, |comparison| comparison.blocks.max(1)),
        note: match (failed, hypothesis.expected_ratio) {
            (true, _) => "it did not build, or its result was wrong".to_owned(),
            (false, expected) => format!("expected {expected:.3}x"),
        },
        failed,
    })
}
