//! Best of several: variants are built, tested and measured, interleaved on one device, or each on
//! one of several.

use super::context::Context;
use super::correctness::test_visible_cases;
use super::tuning;
use super::{bug, far};
use crate::checks::{audit_commits, check_changes};
use crate::tuner::evaluator::SettingResult;
use karve_core::campaign::{Campaign, ChooseStep, Event, Step};
use karve_core::hypothesis::Candidate;
use karve_core::measurement::Gate;
use karve_core::variants::{self, VariantTrial};
use karve_harness::commands::CommandVariant;
use karve_harness::git::Oid;
use karve_harness::outcome::{GateResult, split};
use karve_harness::worktrees::BuiltTree;
use karve_numerics::case::CaseSet;
use karve_os::error::Result;
use karve_os::host;

pub(crate) fn perform(
    context: &mut Context,
    step: &ChooseStep,
    campaign: &Campaign,
) -> Result<Event> {
    let trials = match context.remote.is_some() {
        true => far::try_variants(context, step, campaign)?,
        false => try_here(context, step, campaign)?,
    };
    let first = variants::first(&trials).unwrap_or(0);
    Ok(Event::Chosen { round: step.round, first, tryouts: trials })
}

/// All variants on this device.
fn try_here(
    context: &mut Context,
    step: &ChooseStep,
    campaign: &Campaign,
) -> Result<Vec<VariantTrial>> {
    let mut trials = Vec::with_capacity(step.candidates.len());
    let mut passed: Vec<(usize, BuiltTree)> = Vec::new();
    for (place, (variant, candidate)) in step.candidates.iter().enumerate() {
        let gate = match split(build_and_test_variant(context, candidate, campaign))? {
            Ok(built) => {
                passed.push((place, built));
                Gate::Passed
            }
            Err(gate) => gate,
        };
        trials.push(VariantTrial::new(*variant, gate));
    }
    // If only one passed, it needs no measurement.
    if passed.len() > 1 {
        read_interleaved(context, step.turns, &passed, &mut trials, campaign)?;
    }
    let first = variants::first(&trials).unwrap_or(0);
    let kept = step.candidates.iter().find(|(variant, _)| *variant == first);
    let kept = kept.map_or("", |(_, candidate)| &candidate.commit);
    context.repos.keep_only(&[campaign.incumbent(), kept])?;
    Ok(trials)
}

/// One of the variants on this device, while others are tried on other devices: it is read
/// interleaved with the incumbent, because times of different devices cannot be compared.
pub(crate) fn try_variant(
    context: &mut Context,
    variant: u32,
    campaign: &Campaign,
) -> Result<VariantTrial> {
    let Some(Step::Choose(step)) = campaign.next_step() else {
        return Err(bug("no variant is to be chosen"));
    };
    let candidate = step.candidates.iter().find(|(number, _)| *number == variant);
    let (_, candidate) = candidate.ok_or_else(|| bug("there is no such variant"))?;
    let host = host::name();
    let here = |gate| VariantTrial { host: host.clone(), ..VariantTrial::new(variant, gate) };
    let built = match split(build_and_test_variant(context, candidate, campaign))? {
        Ok(built) => built,
        Err(gate) => return Ok(here(gate)),
    };
    let mut trials = [here(Gate::Passed), here(Gate::Passed)];
    let harness = context.harness();
    if let Ok(parent) = split(context.repos.built(&harness, campaign.incumbent()))? {
        let both = [(0, built), (1, parent)];
        read_interleaved(context, step.turns, &both, &mut trials, campaign)?;
    }
    let [trial, beside] = trials;
    Ok(VariantTrial { incumbent: beside.values, ..trial })
}

/// A variant, built and correct on the visible cases, or its gate failure.
fn build_and_test_variant(
    context: &mut Context,
    candidate: &Candidate,
    campaign: &Campaign,
) -> GateResult<BuiltTree> {
    let (parent, commit) = (Oid::named(campaign.incumbent())?, Oid::named(&candidate.commit)?);
    let work = &context.repos.work;
    let findings = audit_commits(work, &context.charter, &parent, &commit, &candidate.files)?;
    check_changes(work, campaign, candidate, &findings)?;
    let harness = context.harness();
    let built = context.repos.built(&harness, &candidate.commit)?;
    let harness = match split(context.repos.built(&harness, campaign.incumbent()))? {
        Ok(parent) => harness.beside(&parent.path),
        Err(_) => harness,
    };
    let variant = CommandVariant::Usual;
    test_visible_cases(&harness, &built.path, CaseSet::Full, variant, campaign)?;
    Ok(built)
}

/// Measures each variant this often; each pass starts with a different one.
fn read_interleaved(
    context: &mut Context,
    turns: u32,
    passed: &[(usize, BuiltTree)],
    trials: &mut [VariantTrial],
    campaign: &Campaign,
) -> Result<()> {
    let base = Oid::named(campaign.incumbent())?;
    let evaluator = match split(tuning::new_evaluator(context, &base, campaign))? {
        Ok(evaluator) => evaluator,
        // Without readings the first that passed is chosen.
        Err(why) => {
            context.device.notices.mention(&why);
            return Ok(());
        }
    };
    let mut failed = Vec::new();
    for turn in 0..turns as usize {
        for number in 0..passed.len() {
            let (place, built) = &passed[(number + turn) % passed.len()];
            match evaluator.read_tree(built, None, &mut tuning::tuning_device(context))? {
                SettingResult::Read { value, .. } => trials[*place].values.push(value),
                SettingResult::Failed { .. } => failed.push(*place),
            }
        }
    }
    // A variant that cannot be measured every time is not wanted.
    for place in failed {
        trials[place].values.clear();
    }
    Ok(())
}
