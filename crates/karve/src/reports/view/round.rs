//! What the templates show of one round.

use super::shapes::aggregates;
use super::{comparison_page, pass_page, rates, streak_action};
use crate::reports::figures::{ReportFigures, UNIT_MAX, deciding, with_unit};
use crate::reports::source::ReportSource;
use crate::reports::text::{
    CELL_MAX, PARAGRAPH_MAX, line, list, number, printable, time_with_waits,
};
use karve_core::campaign::{PhaseCost, RoundSummary, signals_of};
use karve_core::hypothesis::{ChangePart, Hypothesis};
use karve_core::integrity::{GainProof, Severity};
use karve_core::knowledge::{self, EvidenceEffect, effect_of};
use karve_core::lineage::unchecked_note;
use karve_core::measurement::{FailureCategory, Gate};
use karve_core::policy::WarmUpRule;
use karve_core::profile::Bottleneck;
use karve_core::roles::{Review, ReviewAdvice};
use karve_core::variants::ImplementedVariant;
use karve_core::verdict::{DropReason, Verdict};
use karve_numerics::accuracy::SNR_DB_MAX;
use karve_numerics::contract::CaseTensorError;
use minijinja::value::{Serde, merge_maps};
use minijinja::{Value, context};
use std::collections::BTreeMap;

/// A settled round, as all pages show it.
pub(super) fn settled(
    source: &ReportSource<'_>,
    figures: &ReportFigures<'_>,
    round: &RoundSummary,
) -> Value {
    let paragraph = |text: &str| source.line(text, PARAGRAPH_MAX);
    let reviews = round.reviews.iter().map(|review| paragraph(&review.describe()));
    let predicted: Vec<String> = round.lesson.predicted.iter().map(|p| p.describe()).collect();
    let sets = round.tuned.as_ref().and_then(|tuned| tuned.values());
    let suspicious = round.findings.iter().filter(|found| found.severity == Severity::Suspicious);
    let suspicious = suspicious.map(|found| source.line(&found.describe(), CELL_MAX));
    context! {
        number => round.number,
        at_ms => round.at_ms,
        spent_ms => round.spent_ms,
        time => time_with_waits(round.spent_ms, round.host),
        usd => round.usage.usd,
        phases => round.phases.iter().map(phase).collect::<Vec<_>>(),
        title => source.title(round, PARAGRAPH_MAX),
        specialist => source.line(specialist(source, round), CELL_MAX),
        hypothesis => round.hypothesis.as_ref().map(|h| hypothesis_page(h)),
        reviews => reviews.collect::<Vec<_>>(),
        keeps => round.verdict.keeps(),
        word => round.verdict.word(),
        why => source.why(round, CELL_MAX),
        lesson => source.lesson(round, PARAGRAPH_MAX),
        shares => shares(source, round),
        predicted => paragraph(&predicted.join("; ")),
        because => round.lesson.learning.as_deref().and_then(knowledge::root_cause)
            .map(|why| paragraph(&why)),
        learning => learning(source, round),
        precedent => precedent(source, round),
        counters => super::counters(&round.lesson.seen),
        limited_by => round.lesson.bottleneck.map(Bottleneck::name),
        sets => sets.map(|values| paragraph(&values)),
        suspicious => suspicious.collect::<Vec<_>>(),
        settled => settled_by(source, round),
        iteration => iteration_status(&round.verdict),
        is_ineffective => is_ineffective(&round.verdict),
        ..merge_maps([change(source, round), results(source, figures, round)])
    }
}

/// What settled the suspicious findings of a round, in words; nothing if nothing did.
pub(super) fn settled_by(source: &ReportSource<'_>, round: &RoundSummary) -> Option<String> {
    let proofs = source.campaign.settled_by(round);
    (!proofs.is_empty()).then(|| {
        let all: Vec<&str> = proofs.into_iter().map(GainProof::describe).collect();
        all.join("; ")
    })
}

/// Who made the change: the role, where there are roles, or the agent.
fn specialist<'a>(source: &ReportSource<'a>, round: &'a RoundSummary) -> &'a str {
    let route = round.route.as_ref();
    route.map_or(source.charter.agent.as_str(), |route| &route.implements)
}

/// The library entry that the round adapts, and how far it can be trusted.
fn precedent(source: &ReportSource<'_>, round: &RoundSummary) -> Option<Value> {
    let id = round.hypothesis.as_ref()?.entry.as_ref()?;
    let known = source.campaign.known().iter().find(|known| known.id == *id);
    Some(context! {
        entry => source.line(id, CELL_MAX),
        family => knowledge::casebook_family(&format!("{id} {}", round.title())),
        confidence => known.map_or("unknown", |known| known.status.name()),
    })
}

/// What a phase of a round took.
fn phase(cost: &PhaseCost) -> Value {
    context! {
        name => Serde(cost.phase),
        at_ms => cost.at_ms,
        spent_ms => cost.spent_ms,
        turns => cost.turns,
        usd => cost.usage.usd,
    }
}

/// What only the pages about the round show.
pub(super) fn details(source: &ReportSource<'_>, round: &RoundSummary) -> Value {
    let paragraph = |text: &String| source.line(text, PARAGRAPH_MAX);
    let cell = |text: &String| source.line(text, CELL_MAX);
    let route = round.route.as_ref().map(|route| {
        let why = route.lines();
        context! {
            role => route.describe(),
            why => why.iter().map(paragraph).collect::<Vec<_>>(),
        }
    });
    let tuned = round.tuned.as_ref().map(|tuned| {
        let values = tuned.config.iter();
        let values = values.map(|(name, value)| cell(&format!("{name} = {value}")));
        context! { about => cell(&tuned.describe()), settings => values.collect::<Vec<_>>() }
    });
    let excerpt = round.gate.as_ref().and_then(|gate| source.excerpt(gate));
    let variants = round.variants.iter().map(|made| variant(source, round, made));
    let errors = round.errors.iter().map(|error| error_row(source, error));
    let findings = round.findings.iter().map(|found| cell(&found.describe()));
    context! {
        task => round.task.as_ref().map(paragraph),
        refused => round.refused.iter().map(cell).collect::<Vec<_>>(),
        route,
        tuned,
        variants => variants.collect::<Vec<_>>(),
        retries => round.retries,
        signals => signals(source, round),
        doubted => round.reviews.last().is_some_and(Review::doubts),
        advice => round.reviews.last().and_then(|review| review.advice).map(ReviewAdvice::name),
        log => excerpt.map(printable),
        layouts => round.layouts.as_ref().map(|layouts| context! {
            ratios => &layouts.ratios,
            clock => source.line(layouts.clock.called(&source.charter.metric), CELL_MAX),
        }),
        failure => round.gate.as_ref().and_then(failure_category).map(Serde),
        build_ok => !matches!(round.gate, None | Some(Gate::BuildFailed { .. })),
        errors => errors.collect::<Vec<_>>(),
        snr_db => snr_by_case(source, round),
        worst => worst(round),
        warm_up => warm_up(source.charter.policy.accept.warm_up),
        decision => decision(&round.verdict),
        findings => findings.collect::<Vec<_>>(),
        transfer => super::transfer::transfer(source, round),
        ..next(source, round)
    }
}

/// Whether the results of a candidate are right, though it may be too slow somewhere.
fn is_correct(gate: &Gate) -> bool {
    gate.passed() || matches!(gate, Gate::SlowerElsewhere { .. })
}

/// What kind of failure a gate saw.
fn failure_category(gate: &Gate) -> Option<FailureCategory> {
    match gate {
        Gate::BuildFailed { category, .. } | Gate::WrongResult { category, .. } => Some(*category),
        Gate::TimedOut { .. } => Some(FailureCategory::RuntimeHang),
        Gate::SlowerElsewhere { .. } => Some(FailureCategory::BenchRegression),
        Gate::OutOfScope { .. } | Gate::Dishonest { .. } => Some(FailureCategory::Other),
        Gate::Passed => None,
    }
}

/// Blocks that only warm up, where the policy fixes their number.
fn warm_up(rule: WarmUpRule) -> Option<u32> {
    match rule {
        WarmUpRule::First => Some(1),
        WarmUpRule::Detected => None,
    }
}

/// What the coordinator does with a kernel.
fn decision(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Keep { .. } | Verdict::KeepGated { .. } => "USE",
        Verdict::Undecided { .. } => "EVALUATE",
        Verdict::Drop { .. } => "SKIP",
    }
}

/// The largest differences of any tensor from the reference.
fn worst(round: &RoundSummary) -> Value {
    let of = |figure: &dyn Fn(&CaseTensorError) -> f64| {
        let figures = round.errors.iter().map(figure).filter(|figure| figure.is_finite());
        figures.reduce(f64::max)
    };
    context! {
        max_abs => of(&|error| error.error.max_abs),
        max_rel => of(&|error| error.error.max_rel),
    }
}

/// The least signal-to-noise ratio on each case, under a contract.
fn snr_by_case(source: &ReportSource<'_>, round: &RoundSummary) -> BTreeMap<String, f64> {
    let mut least = BTreeMap::new();
    for error in &round.errors {
        let of_case = least.entry(source.line(&error.case, CELL_MAX)).or_insert(SNR_DB_MAX);
        *of_case = error.error.snr_db.min(*of_case);
    }
    least
}

/// A hypothesis, before or after its verdict.
pub(super) fn hypothesis_page(stated: &Hypothesis) -> Value {
    let paragraph = |text: &str| line(text, PARAGRAPH_MAX);
    let knobs = stated.config.iter();
    let knobs = knobs.map(|(name, value)| line(&format!("{name} = {value}"), CELL_MAX));
    let listed = |names: &[String]| (!names.is_empty()).then(|| paragraph(&list(names)));
    context! {
        title => paragraph(&stated.title),
        bottleneck => paragraph(stated.bottleneck.trim()),
        mechanism => paragraph(&stated.mechanism),
        expected => stated.expected_ratio,
        direction => stated.direction.name(),
        bucket => stated.bucket.map(|bucket| bucket.name()),
        counters => listed(&stated.counters),
        gate => stated.gate.as_deref().map(paragraph),
        knobs => knobs.collect::<Vec<_>>(),
        files => stated.files.iter().map(|file| paragraph(file)).collect::<Vec<_>>(),
        alternatives => stated.alternatives.iter().map(|idea| paragraph(idea)).collect::<Vec<_>>(),
        risks => match stated.high_risk {
            true => vec!["control flow or data layout changes"],
            false => Vec::new(),
        },
    }
}

/// The change: commits and files.
fn change(source: &ReportSource<'_>, round: &RoundSummary) -> Value {
    let candidate = round.candidate.as_ref();
    let mut kept = source.campaign.lineage().kept().iter();
    let made_from = kept.find(|kept| kept.commit == round.parent);
    let files = candidate.iter().flat_map(|candidate| &candidate.files);
    context! {
        parent => &round.parent,
        parent_version => made_from.map_or(0, |kept| kept.round),
        candidate => candidate.map(|candidate| context! {
            commit => &candidate.commit,
            summary => source.line(candidate.summary.trim(), PARAGRAPH_MAX),
            parts => parts(source, &candidate.parts),
            out_of_scope => (!candidate.out_of_scope.is_empty())
                .then(|| source.line(&list(&candidate.out_of_scope), PARAGRAPH_MAX)),
        }),
        files => files.map(|file| source.line(file, CELL_MAX)).collect::<Vec<_>>(),
    }
}

/// The parts of a change that has several.
fn parts(source: &ReportSource<'_>, parts: &[ChangePart]) -> Vec<String> {
    let of = |part: &ChangePart| match part.stated {
        true => part.what.clone(),
        false => format!("{}, not stated", part.what),
    };
    let shown = parts.iter().filter(|_| parts.len() > 1);
    shown.map(|part| source.line(&of(part), CELL_MAX)).collect()
}

/// What each part of a kept bundle is worth.
fn shares(source: &ReportSource<'_>, round: &RoundSummary) -> Vec<String> {
    round.lesson.shares.iter().map(|share| source.line(&share.describe(), CELL_MAX)).collect()
}

/// One of several implementations of the hypothesis.
fn variant(source: &ReportSource<'_>, round: &RoundSummary, made: &ImplementedVariant) -> Value {
    let trial = round.tryouts.iter().find(|trial| trial.variant == made.variant);
    let seen = match (&made.candidate, trial) {
        (None, _) => made.why.clone(),
        (Some(_), None) => "not tried".to_owned(),
        (Some(_), Some(trial)) => trial.gate.describe(),
    };
    let value = trial.filter(|_| made.candidate.is_some()).and_then(|trial| trial.value());
    context! {
        number => made.variant + 1,
        seen => source.line(&seen, CELL_MAX),
        measured => value.map(|value| trial_reading(source, value)),
        was_chosen => round.chosen == Some(made.variant),
    }
}

/// A reading that selected a variant, in the unit of the metric; rates are inverted.
fn trial_reading(source: &ReportSource<'_>, value: f64) -> String {
    let metric = &source.charter.metric;
    let value = number(Some(metric.better.as_metric(value)));
    let unit = source.line(&metric.unit, UNIT_MAX);
    format!("{value} {unit}").trim().to_owned()
}

/// The gate and the figures.
fn results(source: &ReportSource<'_>, figures: &ReportFigures<'_>, round: &RoundSummary) -> Value {
    let decided = deciding(round);
    let speedup = figures.speedup(round);
    let reading = |case: usize| {
        let (comparison, _) = decided?;
        let of_case = comparison.cases.iter().find(|c| c.case == case)?;
        Some((of_case.candidate_median, of_case.passes))
    };
    let gate = round.gate.as_ref();
    let mut earlier = source.campaign.rounds().iter().rev();
    let before = earlier.find(|r| r.number < round.number && r.verdict.keeps());
    let before = before.map_or(1.0, |kept| kept.cumulative_ratio);
    let sol = |speedup: f64| source.campaign.peak_share_at(speedup);
    let aggregate = source.campaign.round_view(round).aggregate;
    context! {
        gate => gate.map(|gate| source.line(&gate.describe(), CELL_MAX)),
        passed => gate.is_some_and(Gate::passed),
        correct => gate.is_some_and(is_correct),
        comparison => decided.map(|(comparison, set)| context! {
            set,
            ..comparison_page(source, figures, comparison)
        }),
        ratio => round.ratio(),
        cumulative_ratio => round.cumulative_ratio,
        cumulative_note => unchecked_note(round.unchecked_keeps),
        check => round.check.as_ref().map(|check| context! {
            claimed => check.claimed,
            ..comparison_page(source, figures, &check.comparison)
        }),
        peak_share => sol(round.cumulative_ratio),
        peak_points => sol(round.cumulative_ratio)
            .zip(sol(before))
            .map(|(after, before)| (after - before) * 100.0),
        speedup,
        tflops => speedup.and_then(|speedup| figures.tflops_at(speedup)),
        rates => rates(figures.mean_and_peak(|case| reading(case).map(|(median, _)| median))),
        passes => pass_page(figures, |case| reading(case)?.1),
        aggregates => aggregates(source, figures, reading),
        score => context! {
            before => with_unit(source, source.campaign.aggregate_at(before)),
            // Also before the round is settled, for the message of its commit.
            after => with_unit(
                source,
                round.ratio().and_then(|ratio| source.campaign.aggregate_at(before * ratio)),
            ),
        },
        latency_ms => figures.round_latency_ms(round, |case| case.candidate_median),
        parent_ms => figures.round_latency_ms(round, |case| case.parent_median),
        speed => figures.speed(source.campaign.aggregate_at(before), aggregate),
    }
}

/// Where the next round starts, and what the policy asks for.
fn next(source: &ReportSource<'_>, round: &RoundSummary) -> Value {
    let from = match &round.candidate {
        Some(candidate) if round.verdict.keeps() => &candidate.commit,
        Some(_) | None => &round.parent,
    };
    let until = source.campaign.rounds().iter();
    let streak = until
        .filter(|earlier| earlier.number <= round.number)
        .rev()
        .take_while(|earlier| !earlier.verdict.keeps())
        .count();
    let streak = u32::try_from(streak).unwrap_or(u32::MAX);
    context! {
        next_from => from,
        streak,
        action => source.charter.policy.streak_action(streak).map(streak_action),
    }
}

/// The signals of a review: the reviewer's view before, the figures after.
fn signals(source: &ReportSource<'_>, round: &RoundSummary) -> Vec<Value> {
    let last = round.reviews.last();
    let all = signals_of(round).into_iter().map(|figure| {
        let before = last.and_then(|review| review.signals.get(&figure.signal));
        context! {
            name => figure.signal.name(),
            before => before.map(|stance| stance.name()),
            after => figure.stance.name(),
            why => source.line(&figure.why, CELL_MAX),
        }
    });
    all.collect()
}

/// What the library learned from the round.
fn learning(source: &ReportSource<'_>, round: &RoundSummary) -> Option<Value> {
    let learning = round.lesson.learning.as_ref()?;
    let says = match (effect_of(&learning.evidence), learning.is_new) {
        (EvidenceEffect::Supports, true) => "new finding",
        (EvidenceEffect::Supports, false) => "supports it",
        (EvidenceEffect::Refutes, _) => "refutes it",
        (EvidenceEffect::Open, _) => "open",
    };
    Some(context! {
        entry => source.line(&learning.entry, CELL_MAX),
        ratio => (learning.evidence.ratio > 0.0).then_some(learning.evidence.ratio),
        says,
        became => source.line(&learning.became, PARAGRAPH_MAX),
    })
}

/// The error of one tensor on one case against the reference.
pub(super) fn error_row(source: &ReportSource<'_>, examined: &CaseTensorError) -> Value {
    let error = &examined.error;
    let is_exact = error.snr_db >= SNR_DB_MAX;
    let was_exact = examined.beside.as_ref().is_some_and(|beside| beside.rms == 0.0);
    context! {
        tensor => source.line(&examined.tensor, CELL_MAX),
        case => source.line(&examined.case, CELL_MAX),
        max_abs => error.max_abs,
        max_ulp => error.max_ulp,
        is_exact,
        snr_db => error.snr_db,
        vs_parent => examined.ratio(),
        both_exact => is_exact && was_exact,
    }
}

/// Keep, revert or crash: a crash is a candidate that did not build or run.
fn iteration_status(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Keep { .. } | Verdict::KeepGated { .. } => "keep",
        Verdict::Undecided { .. } => "revert",
        Verdict::Drop { reason } => match reason {
            DropReason::Gate { gate } => gate_status(gate),
            DropReason::NoCandidate { .. }
            | DropReason::NoChange
            | DropReason::SameArtifact
            | DropReason::AlreadyTried { .. }
            | DropReason::NotFaster
            | DropReason::Regressed { .. }
            | DropReason::ClocksDisagree { .. }
            | DropReason::LayoutLuck { .. }
            | DropReason::Unproven { .. }
            | DropReason::SlowCalls { .. }
            | DropReason::Inflated(_)
            | DropReason::Downgraded { .. }
            | DropReason::RoundTimeUp => "revert",
        },
    }
}

fn gate_status(gate: &Gate) -> &'static str {
    match gate {
        Gate::BuildFailed { .. } | Gate::TimedOut { .. } => "crash",
        Gate::WrongResult { category, .. } => match category {
            FailureCategory::RuntimeAssert
            | FailureCategory::RuntimeOom
            | FailureCategory::RuntimeHang => "crash",
            FailureCategory::BuildCompile
            | FailureCategory::BuildLink
            | FailureCategory::SnrFail
            | FailureCategory::BenchRegression
            | FailureCategory::Other => "revert",
        },
        Gate::Passed
        | Gate::OutOfScope { .. }
        | Gate::SlowerElsewhere { .. }
        | Gate::Dishonest { .. } => "revert",
    }
}

/// Whether the direction was implemented, judged and rolled back, as primus lists it: without a
/// gain, too little to decide, or wrong. The reason says which.
fn is_ineffective(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Keep { .. } | Verdict::KeepGated { .. } => false,
        Verdict::Undecided { .. } => true,
        Verdict::Drop { reason } => match reason {
            DropReason::NotFaster
            | DropReason::Regressed { .. }
            | DropReason::LayoutLuck { .. }
            | DropReason::SlowCalls { .. }
            | DropReason::SameArtifact
            | DropReason::ClocksDisagree { .. }
            | DropReason::Unproven { .. }
            | DropReason::Downgraded { .. } => true,
            DropReason::Gate { gate } => !matches!(gate, Gate::OutOfScope { .. }),
            // Nothing was judged.
            DropReason::NoCandidate { .. }
            | DropReason::NoChange
            | DropReason::AlreadyTried { .. }
            | DropReason::RoundTimeUp
            // The incumbent was not what it seemed; the idea may be a good one.
            | DropReason::Inflated(_) => false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verdict_is_a_decision_of_the_coordinator() {
        let keep = Verdict::Keep { notes: Vec::new() };
        let drop = Verdict::Drop { reason: DropReason::NotFaster };
        assert_eq!(decision(&keep), "USE");
        assert_eq!(decision(&Verdict::Undecided { blocks: 60 }), "EVALUATE");
        assert_eq!(decision(&drop), "SKIP");
    }

    #[test]
    fn every_gate_says_what_failed_and_whether_results_were_right() {
        let excerpt = String::new;
        let wrong =
            |category| Gate::WrongResult { case: "small".into(), category, excerpt: excerpt() };
        let link = Gate::BuildFailed { category: FailureCategory::BuildLink, excerpt: excerpt() };
        let slow = Gate::SlowerElsewhere { why: "3x slower on M=7".into() };
        let shown = |gate: &Gate| (failure_category(gate), is_correct(gate));
        assert_eq!(shown(&Gate::Passed), (None, true));
        assert_eq!(shown(&link), (Some(FailureCategory::BuildLink), false));
        for category in [FailureCategory::RuntimeAssert, FailureCategory::SnrFail] {
            assert_eq!(shown(&wrong(category)), (Some(category), false));
        }
        // Right, but not kept.
        assert_eq!(shown(&slow), (Some(FailureCategory::BenchRegression), true));
        let dishonest = Gate::Dishonest { why: "it reads a clock".into() };
        assert_eq!(shown(&dishonest), (Some(FailureCategory::Other), false));
    }
}
