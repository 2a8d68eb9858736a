//! One block of a duel: finds or builds the two arms, and measures them as a pair.

use super::context::Context;
use super::repeats::{incumbent_settings, settings_per_case};
use super::{bug, raw_output};
use crate::workspace::synced;
use karve_core::campaign::{
    CONTROL_SLOWDOWN, Campaign, Control, ControlKind, DuelName, Event, MeasureStep,
};
use karve_core::charter::WorkMode;
use karve_core::measurement::Gate;
use karve_harness::commands::{CaseRunSettings, CommandVariant, Harness};
use karve_harness::outcome::{BlockFailure, Failure, GateResult, IndexedCase, split};
use karve_harness::pair_runner::{BuiltArm, PairRunner};
use karve_harness::worktrees::{BuildVariant, BuiltTree};
use karve_numerics::case::{Case, CaseSet};
use karve_os::error::{CommandError, Result};
use std::collections::BTreeMap;

pub(crate) fn perform(
    context: &mut Context,
    step: &MeasureStep,
    campaign: &Campaign,
) -> Result<Event> {
    raw_output::discard(context);
    let event = measure_block(context, step, campaign);
    let event = event.map_err(|error| raw_output::name_in_error(context, error))?;
    raw_output::store_with(context, event)
}

/// Measures the next block of a duel.
fn measure_block(context: &mut Context, step: &MeasureStep, campaign: &Campaign) -> Result<Event> {
    let indexed = |index: &usize| Some((*index, campaign.case(*index)?));
    let cases: Option<Vec<IndexedCase>> = step.cases.iter().map(indexed).collect();
    let cases = cases.ok_or_else(|| bug("a duel names a case that does not exist"))?;
    let carried = context.carried.pair_runner.take().filter(|(duel, _)| *duel == step.duel);
    let mut runner = match (carried, step.block) {
        (Some((_, runner)), 1..) => runner,
        (_, _) => match split(start_pair_runner(context, step, &cases, campaign))? {
            Ok(runner) => runner,
            Err(gate) => return Ok(Event::BlockFailed { duel: step.duel, gate, raw: None }),
        },
    };
    if step.block == 0 {
        context.device.session.begin_duel();
        runner.fresh_pages()?;
    }
    if matches!((step.duel, step.block), (DuelName::Round { .. }, 0)) {
        runner.candidate.harness = runner.candidate.harness.clone().keeping_output();
    }
    let conditions = context.device.session.before_block(&context.stop, &context.device.notices)?;
    let measured = runner.block(&cases, step.age);
    context.device.session.after_block();
    if runner.parent.harness.is_under_contract() {
        // The kernel runners stay alive, so that a block has no startup cost.
        context.carried.pair_runner = Some((step.duel, runner));
    }
    Ok(match split(measured)? {
        Ok(mut block) => {
            block.conditions = Some(Box::new(conditions));
            block.discarded = campaign.discards(&block);
            Event::BlockMeasured { duel: step.duel, block, raw: None }
        }
        Err(BlockFailure::Candidate(gate)) if matches!(step.duel, DuelName::Control(_)) => {
            return Err(parent_failed(step.duel, "can no longer be measured", &gate));
        }
        Err(BlockFailure::Candidate(gate)) => {
            Event::BlockFailed { duel: step.duel, gate, raw: None }
        }
        Err(BlockFailure::Parent(gate)) if matches!(step.duel, DuelName::Baseline { .. }) => {
            Event::BlockFailed { duel: step.duel, gate, raw: None }
        }
        // The parent passed its gate, so a failure now comes from the host.
        Err(BlockFailure::Parent(gate)) => {
            return Err(parent_failed(step.duel, "can no longer be measured", &gate));
        }
    })
}

/// The pair runner for the two arms of a step.
fn start_pair_runner(
    context: &mut Context,
    step: &MeasureStep,
    cases: &[IndexedCase],
    campaign: &Campaign,
) -> GateResult<PairRunner> {
    let settings = match step.duel {
        DuelName::Final | DuelName::Original { .. } | DuelName::Baseline { .. } => {
            settings_per_case(campaign)
        }
        DuelName::Round { .. } | DuelName::Layout { .. } | DuelName::Control(_) => {
            incumbent_settings(campaign)
        }
    };
    let harness = context.harness().with_cases(settings);
    match step.duel {
        DuelName::Final => {
            // The first block also tests.
            let tested: Vec<Case> = cases.iter().map(|(_, case)| case.clone()).collect();
            let tested = (step.block == 0).then_some(&tested[..]);
            match integration_runner(context, &step.candidate, &harness, tested)? {
                Some(runner) => Ok(runner),
                None => round_runner(context, step, harness, BuildVariant::Usual),
            }
        }
        DuelName::Round { .. } | DuelName::Original { .. } => {
            round_runner(context, step, harness, BuildVariant::Usual)
        }
        DuelName::Layout { variant, .. } => {
            round_runner(context, step, harness, BuildVariant::Layout(variant))
        }
        DuelName::Control(control) => control_runner(context, step, harness, control, campaign),
        DuelName::Baseline { baseline, .. } => {
            let tested: Vec<Case> = cases.iter().map(|(_, case)| case.clone()).collect();
            let tested = (step.block == 0).then_some(&tested[..]);
            baseline_runner(context, step, &harness, (baseline, tested))
        }
    }
}

/// A baseline, in a build of its own of the unchanged project, against our kernel. It is checked on
/// the given cases first, if any.
fn baseline_runner(
    context: &mut Context,
    step: &MeasureStep,
    harness: &Harness,
    (baseline, tested): (u32, Option<&[Case]>),
) -> GateResult<PairRunner> {
    let named = context.charter.baselines.get(baseline as usize).cloned();
    let named = named.ok_or_else(|| bug("a duel names a baseline that does not exist"))?;
    let failed = |failure| parent_build_failed(step.duel, failure);
    let built =
        context.repos.built_as(harness, &step.parent, BuildVariant::Copy).map_err(failed)?;
    let ours = context.repos.built(harness, &step.candidate).map_err(failed)?;
    let harness = harness.clone().with_baseline(&built.path, &named.kernel);
    if let Some(cases) = tested {
        harness.check_kernel(&built.path, cases)?;
    }
    Ok(pair_runner_of(harness, built, ours, CommandVariant::Usual))
}

/// Both arms of a round, built.
fn round_runner(
    context: &mut Context,
    step: &MeasureStep,
    harness: Harness,
    build: BuildVariant,
) -> GateResult<PairRunner> {
    let variant = match step.duel {
        DuelName::Round { set, .. } | DuelName::Layout { set, .. } if set == CaseSet::Quick => {
            CommandVariant::Quick
        }
        _ => CommandVariant::Usual,
    };
    let failed = |failure| parent_build_failed(step.duel, failure);
    let parent = context.repos.built(&harness, &step.parent).map_err(failed)?;
    let candidate = context.repos.built_as(&harness, &step.candidate, build)?;
    Ok(pair_runner_of(harness, parent, candidate, variant))
}

/// A control duel: the incumbent against its own second build (A/A test), or against itself
/// with a little more work.
fn control_runner(
    context: &mut Context,
    step: &MeasureStep,
    harness: Harness,
    control: Control,
    campaign: &Campaign,
) -> GateResult<PairRunner> {
    if control.kind == ControlKind::Same {
        let runner = round_runner(context, step, harness, BuildVariant::Copy);
        return Ok(runner.map_err(|failure| parent_build_failed(step.duel, failure))?);
    }
    let mut runner = round_runner(context, step, harness, BuildVariant::Usual)?;
    // Both arms start the same programs; only the amount of work differs.
    let spinning =
        |arm: &BuiltArm, share: f64| arm.harness.clone().with_cases(spin_settings(campaign, share));
    runner.parent.harness = spinning(&runner.parent, 0.0);
    runner.candidate.harness = spinning(&runner.candidate, CONTROL_SLOWDOWN - 1.0);
    Ok(runner)
}

/// In workspace mode: the original commit and the synced kernel, built in the user's
/// repository with the integration commands, and tested on the given cases, if any.
fn integration_runner(
    context: &mut Context,
    best: &str,
    harness: &Harness,
    cases: Option<&[Case]>,
) -> GateResult<Option<PairRunner>> {
    let WorkMode::Workspace { integration, .. } = &context.charter.mode else {
        return Ok(None);
    };
    let harness = harness.clone().with_commands(integration);
    let upstream = context.repos.upstream.clone();
    let (base, synced) =
        synced(&upstream, &context.repos.work, &context.repos.trees, &context.charter, best)?;
    let base = context.repos.trees.built(&upstream, &harness, base.as_str())?;
    let synced = context.repos.trees.built(&upstream, &harness, synced.as_str())?;
    if let Some(cases) = cases {
        harness.test(&synced.path, cases, CommandVariant::Usual)?;
    }
    Ok(Some(pair_runner_of(harness, base, synced, CommandVariant::Usual)))
}

/// How each case runs in one arm of a control duel: with its usual repeats, and with additional
/// work, as a share of what the baseline took.
fn spin_settings(campaign: &Campaign, share: f64) -> BTreeMap<String, CaseRunSettings> {
    let usual = incumbent_settings(campaign);
    let cases = campaign.charter().map_or(0, |charter| charter.cases.len());
    let settings_of = |case: usize| {
        let name = campaign.case(case)?.name;
        let spin_us = Some(campaign.spin_us(case, share)?);
        let repeats = usual.get(&name).map_or(1, |settings| settings.repeats);
        let settings = CaseRunSettings { repeats, spin_us };
        Some((name, settings))
    };
    (0..cases).filter_map(settings_of).collect()
}

/// Two built trees under one harness.
fn pair_runner_of(
    harness: Harness,
    parent: BuiltTree,
    candidate: BuiltTree,
    variant: CommandVariant,
) -> PairRunner {
    let arm = |built: BuiltTree| BuiltArm { harness: harness.clone(), tree: built.path };
    PairRunner::new(arm(parent), arm(candidate), variant)
}

fn parent_build_failed(duel: DuelName, failure: Failure<Gate>) -> CommandError {
    failure.into_error(|gate| parent_failed(duel, "no longer builds", &gate))
}

fn parent_failed(duel: DuelName, how: &str, gate: &Gate) -> CommandError {
    CommandError::environment(format!("{} {how}", parent_name(duel)))
        .cause(gate.describe())
        .hint("check the host with \"karve doctor\"; then resume with \"karve run\"")
}

/// What a duel measures its candidate against.
fn parent_name(duel: DuelName) -> &'static str {
    match duel {
        DuelName::Original { .. } | DuelName::Final | DuelName::Baseline { .. } => "the original",
        DuelName::Round { .. } | DuelName::Layout { .. } | DuelName::Control(_) => "the incumbent",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_candidate_is_measured_against_is_called_by_its_name() {
        let gate = Gate::TimedOut { what: "the benchmark".into() };
        let says = |duel| parent_failed(duel, "no longer builds", &gate).to_string();
        assert!(says(DuelName::Original { round: 3 }).contains("the original no longer builds"));
        assert!(says(DuelName::Final).contains("the original no longer builds"));
        let round = DuelName::Round { round: 3, set: CaseSet::Full };
        assert!(says(round).contains("the incumbent no longer builds"));
    }
}
