//! What a round taught, in numbers: the lesson of its summary, and the evidence for the library.

use super::relations::{in_kernel, is_contained, other_ways};
use crate::campaign::{Campaign, RoundPhase, RoundState, RoundSummary};
use crate::charter::{Better, Metric};
use crate::comparison::Comparison;
use crate::hypothesis::{Direction, Hypothesis};
use crate::integrity::has_ghost;
use crate::knowledge::{
    Evidence, EvidenceEffect, Learning, Lesson, LessonNotes, PredictedCounter, effect_of,
};
use crate::measurement::Gate;
use crate::policy::ProfileWhen;
use crate::profile::classify::with_derived;
use crate::profile::compare::{
    CounterChange, Expectation, ExpectationResult, assess, compare, parse_expectation,
};
use crate::profile::{CounterValues, KernelProfile, Profile, ProfileDepth};
use crate::verdict::{DropReason, Verdict};
use karve_numerics::case::CaseSet;
use karve_numerics::stats;

/// Maximum length of a lesson, in characters.
const LESSON_MAX: usize = 1_000;
/// Characters of a commit that identify it.
const PARENT_CHARS: usize = 12;
/// Maximum number of cases named in a workload.
const CASES_MAX: usize = 4;
/// Maximum number of findings without an entry that one campaign leaves.
const NEW_MAX: usize = 20;
/// Below this a candidate is a clear loss.
const LOSS_RATIO: f64 = 0.97;
/// Counters that the pages of a campaign show of each version.
const SHOWN: [&str; 4] = ["dram_bytes_per_s", "occupancy_pct", "registers", "tensor_pct"];
/// Maximum number of counters that a finding names.
const NAMED_MAX: usize = 8;
/// A change that was expected to gain more than this and gained nothing is a refuted assumption.
const ASSUMED_RATIO: f64 = 1.05;

/// Maximum number of counters that a hypothesis may predict.
const PREDICTED_MAX: usize = 8;
/// Maximum length of a prediction that is not about a counter, in characters.
const STRANGE_MAX: usize = 80;
/// Maximum length of an evidence note, in characters.
const NOTE_MAX: usize = 400;
/// Maximum number of counters before and after in a lesson.
const MOVED_MAX: usize = 24;

/// The commit whose profile shows what the round changed, and how deep to look: the candidate of a
/// measured round, if its parent was profiled, and if it is kept or its hypothesis made a
/// prediction.
pub fn to_compare(campaign: &Campaign) -> Option<(String, ProfileDepth)> {
    let round = campaign.current_round()?;
    let RoundPhase::Learning { verdict } = &round.phase else {
        return None;
    };
    let shown = round.shown()?;
    let before = before(campaign, round)?;
    before.main_kernel()?;
    let prediction = !expected(round).is_empty();
    let candidate = round.candidate.as_ref()?;
    // What made it slower is worth a look where every round is profiled.
    let policy = &campaign.charter()?.policy;
    let is_loss = shown.overall.ratio < LOSS_RATIO;
    let is_loss = is_loss && policy.profile_when == ProfileWhen::EveryRound;
    (verdict.keeps() || prediction || is_loss).then(|| (candidate.commit.clone(), before.depth))
}

/// The profile of the parent.
fn before<'a>(campaign: &'a Campaign, round: &RoundState) -> Option<&'a Profile> {
    let profile = campaign.profile();
    profile.filter(|profile| profile.commit == round.parent)
}

/// The counters that the hypothesis predicts to move, each once.
fn expected(round: &RoundState) -> Vec<Expectation> {
    let mut all: Vec<Expectation> = Vec::new();
    let lines = round.hypothesis.iter().flat_map(|h| &h.counters);
    for one in lines.filter_map(|line| parse_expectation(line)) {
        if !all.iter().any(|known| known.counter == one.counter) {
            all.push(one);
        }
    }
    all.truncate(PREDICTED_MAX);
    all
}

/// The outcome of the hypothesis's predictions. A prediction that names no counter is unread.
fn check_predictions(round: &RoundState, moved: &[CounterChange]) -> Vec<PredictedCounter> {
    let lines = round.hypothesis.iter().flat_map(|h| &h.counters);
    let strange = lines.filter(|line| parse_expectation(line).is_none());
    let strange = strange.map(|line| PredictedCounter {
        counter: line.chars().take(STRANGE_MAX).collect(),
        result: ExpectationResult::Unread,
        values: String::new(),
    });
    let tell = |expected: Expectation| {
        let found = moved.iter().find(|m| m.counter == expected.counter);
        PredictedCounter {
            result: assess(&expected, moved),
            values: found.map(CounterChange::describe).unwrap_or_default(),
            counter: expected.counter,
        }
    };
    let known = expected(round).into_iter().map(tell);
    known.chain(strange).take(PREDICTED_MAX).collect()
}

/// What the current round taught, in numbers; with the profile of its candidate, if one was
/// taken.
pub fn lesson(campaign: &Campaign, after: Option<&Profile>) -> Lesson {
    let Some(round) = campaign.current_round() else {
        return Lesson::default();
    };
    let RoundPhase::Learning { verdict } = &round.phase else {
        return Lesson::default();
    };
    let why = round.preview(verdict.clone()).reason(&|case| campaign.case_name(case));
    let comparison = round.shown();
    let pair = before(campaign, round).zip(after);
    let mut moved = pair.map_or_else(Vec::new, |(before, after)| compare(before, after));
    let prediction = match pair {
        Some(_) => check_predictions(round, &moved),
        None => Vec::new(),
    };
    moved.retain(|moved| moved.way().is_some());
    moved.truncate(MOVED_MAX);
    let mut text = match (&round.hypothesis, comparison) {
        (Some(hypothesis), Some(comparison)) => format!(
            "{}: expected {:.3}x, measured {}; {why}",
            hypothesis.title,
            hypothesis.expected_ratio,
            comparison.overall.describe(),
        ),
        (Some(hypothesis), None) => format!("{}: {why}", hypothesis.title),
        (None, _) => why,
    };
    let reported_value: Vec<String> = prediction.iter().map(PredictedCounter::describe).collect();
    let mut learning = learning(campaign, round, verdict);
    if let Some(learning) = &mut learning {
        learning.moved = moved.iter().take(NAMED_MAX).map(CounterChange::describe).collect();
    }
    if !reported_value.is_empty() {
        let reported_value = reported_value.join("; ");
        text = format!("{text}; {reported_value}");
        if let Some(learning) = &mut learning {
            let note = &mut learning.evidence.note;
            *note = format!("{note}; {reported_value}").chars().take(NOTE_MAX).collect();
        }
    }
    Lesson {
        text: text.chars().take(LESSON_MAX).collect(),
        learning: learning.map(Box::new),
        seen: after.and_then(Profile::main_kernel).map(shown_counters).unwrap_or_default(),
        bottleneck: after.filter(|after| after.skipped.is_none()).map(|after| after.bottleneck),
        moved,
        predicted: prediction,
        shares: Vec::new(),
    }
}

/// The counters of a kernel that pages show.
pub fn shown_counters(kernel: &KernelProfile) -> CounterValues {
    let mut values = with_derived(kernel);
    values.retain(|name, _| SHOWN.contains(&name.as_str()));
    values
}

/// What the library learns: a reusable finding, a sharper condition, or a refuted assumption.
fn learning(campaign: &Campaign, round: &RoundState, verdict: &Verdict) -> Option<Learning> {
    let hypothesis = round.hypothesis.as_deref()?;
    let comparison = round.shown();
    let named = hypothesis.entry.is_some();
    let failed = fails(verdict);
    // More of what is already in the kernel says nothing about the entry.
    let kept = in_kernel(campaign);
    let has = |id: &String| kept.contains(id) || is_contained(id, campaign.known(), &kept);
    let repeats = !verdict.keeps() && hypothesis.entry.as_ref().is_some_and(has);
    let reported_value = match (verdict, comparison) {
        (Verdict::Keep { .. } | Verdict::KeepGated { .. }, Some(_)) => !has_ghost(&round.findings),
        (Verdict::Drop { .. }, _) if failed => named,
        (
            Verdict::Drop { reason: DropReason::NotFaster | DropReason::Regressed { .. } },
            Some(_),
        ) => named || hypothesis.expected_ratio >= ASSUMED_RATIO,
        (Verdict::Undecided { .. }, Some(_)) => named,
        // How much slower may be in doubt; that it is slower is not.
        (Verdict::Drop { reason }, Some(_)) if slower_by_both_clocks(reason) => named,
        (Verdict::Drop { reason: DropReason::SameArtifact }, _) => named,
        _ => false,
    };
    // The best value of a knob is in the tuner's journal; as a rule it would be folklore.
    let only_knobs = hypothesis.sweep || !hypothesis.config.is_empty();
    if !reported_value || repeats || (only_knobs && !named) {
        return None;
    }
    let is_new = |round: &&RoundSummary| {
        let learning = round.lesson.learning.as_ref();
        learning.is_some_and(|learning| learning.is_new)
    };
    if !named && campaign.rounds().iter().filter(is_new).count() >= NEW_MAX {
        return None;
    }
    let evidence = evidence(campaign, round, hypothesis, comparison, verdict)?;
    // Only a keep is proof: what a dropped or undecided round seems to gain says nothing.
    if !verdict.keeps() && effect_of(&evidence) == EvidenceEffect::Supports {
        return None;
    }
    let name = campaign.charter().map(|c| c.name.clone())?;
    let new = format!("{}{}", found_prefix(&name), round.number);
    Some(Learning {
        is_new: !named,
        entry: hypothesis.entry.clone().unwrap_or(new),
        title: hypothesis.title.chars().take(100).collect(),
        mechanism: hypothesis.mechanism.chars().take(LESSON_MAX).collect(),
        bottleneck: hypothesis.bottleneck.chars().take(STRANGE_MAX).collect(),
        language: match hypothesis.direction {
            Direction::Algorithm => String::new(),
            _ => campaign.charter().map(|c| c.target.language.to_lowercase()).unwrap_or_default(),
        },
        moved: Vec::new(),
        beside: beside(campaign),
        evidence,
        words: LessonNotes::default(),
        unsaid: String::new(),
        became: String::new(),
    })
}

/// Entries in the kernel, with what this campaign found itself.
fn beside(campaign: &Campaign) -> Vec<String> {
    let found = campaign.rounds().iter().filter(|round| round.verdict.keeps());
    let found = found.filter_map(|round| round.lesson.learning.as_ref());
    let found = found.filter(|learning| learning.is_new).map(|learning| learning.entry.clone());
    in_kernel(campaign).into_iter().chain(found).collect()
}

/// Whether the clocks disagree about a candidate that is slower by both.
fn slower_by_both_clocks(reason: &DropReason) -> bool {
    matches!(
        reason,
        DropReason::ClocksDisagree { metric, second, .. } if *metric < 1.0 && *second < 1.0
    )
}

/// Whether the change itself was wrong: it does not build, or its result differs.
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

/// The prefix of entry ids that a campaign makes from its own findings.
pub fn found_prefix(campaign: &str) -> String {
    format!("found-{}-r", plain(campaign))
}

fn plain(name: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let text: String = name.to_lowercase().chars().map(keep).collect();
    text.trim_matches('-').chars().take(60).collect()
}

/// The name of a metric with its unit, unless the name ends with it: figures without are no use
/// elsewhere.
fn name_with_unit(metric: &Metric) -> String {
    let (name, unit) = (&metric.name, &metric.unit);
    match unit.is_empty() || name.to_lowercase().ends_with(&unit.to_lowercase()) {
        true => name.clone(),
        false => format!("{name}_{unit}"),
    }
}

fn evidence(
    campaign: &Campaign,
    round: &RoundState,
    hypothesis: &Hypothesis,
    comparison: Option<&Comparison>,
    verdict: &Verdict,
) -> Option<Evidence> {
    let failed = fails(verdict);
    let dropped = |reason: DropReason| *verdict == Verdict::Drop { reason };
    let same = dropped(DropReason::SameArtifact);
    let ways = |id: &String| other_ways(id, campaign.known(), &in_kernel(campaign));
    let charter = campaign.charter()?;
    let cases = campaign.cases_of(CaseSet::Full);
    let names: Vec<String> =
        cases.iter().take(CASES_MAX).map(|case| campaign.case_name(*case)).collect();
    let facts = campaign.preparation().map(|p| &p.environment.facts);
    let host = facts.and_then(|facts| facts.get("cpu").cloned());
    let medians = |of: &dyn Fn(&crate::comparison::CaseComparison) -> f64| {
        let values: Vec<f64> = comparison.iter().flat_map(|c| c.cases.iter().map(of)).collect();
        stats::geometric_mean(&values).unwrap_or(0.0)
    };
    let overall = comparison.map(|comparison| comparison.overall);
    let before = medians(&|case| case.parent_median);
    let after = medians(&|case| case.candidate_median);
    Some(Evidence {
        metric: name_with_unit(&charter.metric),
        before,
        after,
        ratio: overall.map_or(if same { 1.0 } else { 0.0 }, |overall| overall.ratio),
        low: overall.and_then(|overall| overall.low),
        high: overall.and_then(|overall| overall.high),
        device: match host {
            Some(host) => format!("{} ({host})", charter.target.device),
            None => charter.target.device.clone(),
        },
        workload: format!("{} {}", charter.target.op, names.join("; ")),
        run: format!("{}/round-{}", charter.name, round.number),
        date: charter.created.chars().take(10).collect(),
        toolchain: String::new(),
        n: comparison.map_or(1, |comparison| comparison.blocks.max(1)),
        note: match (failed, same) {
            (true, _) => "it did not build, or its result was wrong".to_owned(),
            (false, true) => "the built artifact is the same".to_owned(),
            (false, false) => {
                let quotient = charter.metric.ln_speedup(before, after).exp();
                let expected = hypothesis.expected_ratio;
                format!(
                    "expected {expected:.3}x; the ratio is from paired readings, the medians give \
                     {quotient:.3}x"
                )
            }
        },
        failed,
        // It produced the same machine code: nothing was tried.
        not_faster: dropped(DropReason::NotFaster),
        parent: round.parent.chars().take(PARENT_CHARS).collect(),
        on_top_of: hypothesis.entry.as_ref().map(ways).unwrap_or_default(),
        disputed: String::new(),
        more_is_better: charter.metric.better == Better::Higher,
        reported: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::Clock;

    #[test]
    fn clocks_that_disagree_about_how_slow_it_is_agree_that_it_is() {
        let slower = |metric, second| {
            slower_by_both_clocks(&DropReason::ClocksDisagree { clock: Clock::Cpu, metric, second })
        };
        assert!(slower(0.11, 0.26));
        assert!(!slower(0.9, 1.2) && !slower(1.5, 0.9) && !slower(2.0, 1.5));
        assert!(!slower(f64::NAN, 0.5));
        assert!(!slower_by_both_clocks(&DropReason::NotFaster));
    }
}
