//! Best of several: variants are built, tested and measured, interleaved.

use super::context::Context;
use super::correctness::test_visible_cases;
use super::tuning;
use crate::checks::{audit_commits, check_changes};
use crate::tuner::evaluator::SettingResult;
use karve_core::campaign::{Campaign, ChooseStep, Event};
use karve_core::hypothesis::Candidate;
use karve_core::measurement::Gate;
use karve_core::variants::{self, VariantTrial};
use karve_harness::commands::CommandVariant;
use karve_harness::git::Oid;
use karve_harness::outcome::{GateResult, split};
use karve_harness::worktrees::BuiltTree;
use karve_numerics::case::CaseSet;
use karve_os::error::Result;

pub(crate) fn perform(
    context: &mut Context,
    step: &ChooseStep,
    campaign: &Campaign,
) -> Result<Event> {
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
        trials.push(VariantTrial { variant: *variant, gate, values: Vec::new() });
    }
    // If only one passed, it needs no measurement.
    if passed.len() > 1 {
        read_interleaved(context, step.turns, &passed, &mut trials, campaign)?;
    }
    let first = variants::first(&trials).unwrap_or(0);
    let kept = step.candidates.iter().find(|(variant, _)| *variant == first);
    let kept = kept.map_or("", |(_, candidate)| &candidate.commit);
    context.repos.keep_only(&[campaign.incumbent(), kept])?;
    Ok(Event::Chosen { round: step.round, first, tryouts: trials })
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
