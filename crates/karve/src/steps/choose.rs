//! Best of several: variants are built, tested and measured, interleaved.

use super::context::Context;
use super::correctness::tested_visibly;
use super::tuning;
use crate::checks::{audit_commits, out_of_scope};
use crate::tuner::evaluator::SettingResult;
use karve_core::campaign::{Campaign, ChooseStep, Event};
use karve_core::hypothesis::Candidate;
use karve_core::measurement::Gate;
use karve_core::variants::VariantTrial;
use karve_core::{integrity, variants};
use karve_harness::commands::CommandVariant;
use karve_harness::git::Oid;
use karve_harness::worktrees::BuiltTree;
use karve_numerics::case::CaseSet;
use karve_os::error::Result;

pub(crate) fn perform(
    context: &mut Context,
    step: &ChooseStep,
    campaign: &Campaign,
) -> Result<Event> {
    let mut tryouts = Vec::with_capacity(step.candidates.len());
    let mut standing: Vec<(usize, BuiltTree)> = Vec::new();
    for (place, (variant, candidate)) in step.candidates.iter().enumerate() {
        let gate = match variant_built(context, candidate, campaign)? {
            Ok(built) => {
                standing.push((place, built));
                Gate::Passed
            }
            Err(gate) => gate,
        };
        tryouts.push(VariantTrial { variant: *variant, gate, values: Vec::new() });
    }
    // If only one passed, it needs no measurement.
    if standing.len() > 1 {
        read_interleaved(context, step, (&standing, &mut tryouts), campaign)?;
    }
    let first = variants::first(&tryouts).unwrap_or(0);
    let kept = step.candidates.iter().find(|(variant, _)| *variant == first);
    let kept = kept.map_or("", |(_, candidate)| &candidate.commit);
    context.repos.keep_only(&[campaign.incumbent(), kept])?;
    Ok(Event::Chosen { round: step.round, first, tryouts })
}

/// A variant, built and correct on the visible cases, or its gate failure.
fn variant_built(
    context: &mut Context,
    candidate: &Candidate,
    campaign: &Campaign,
) -> Result<std::result::Result<BuiltTree, Gate>> {
    let commits = (&Oid::named(campaign.incumbent())?, &Oid::named(&candidate.commit)?);
    if let Some(gate) = out_of_scope(&context.repos.work, campaign, commits, candidate)? {
        return Ok(Err(gate));
    }
    let findings = audit_commits(&context.repos.work, &context.charter, commits, &candidate.files)?;
    if let Some(gate) = integrity::forbids(&findings) {
        return Ok(Err(gate));
    }
    let harness = context.harness();
    let built = match context.repos.built(&harness, &candidate.commit)? {
        Ok(built) => built,
        Err(gate) => return Ok(Err(gate)),
    };
    let parent = context.repos.built(&harness, campaign.incumbent())?;
    let harness = match &parent {
        Ok(parent) => harness.beside(&parent.path),
        Err(_) => harness,
    };
    let on = (CaseSet::Full, CommandVariant::Usual);
    let (gate, _) = tested_visibly(&harness, &built.path, on, campaign)?;
    Ok(gate.map(|()| built))
}

/// Measures each variant as often as the step says; each pass starts with a different one.
fn read_interleaved(
    context: &mut Context,
    step: &ChooseStep,
    (standing, tryouts): (&[(usize, BuiltTree)], &mut [VariantTrial]),
    campaign: &Campaign,
) -> Result<()> {
    let base = Oid::named(campaign.incumbent())?;
    let evaluator = match tuning::evaluator(context, &base, campaign)? {
        Ok(evaluator) => evaluator,
        // Without readings the first that passed is chosen.
        Err(why) => {
            context.device.notices.mention(&why);
            return Ok(());
        }
    };
    let mut unread = Vec::new();
    for turn in 0..step.turns as usize {
        for number in 0..standing.len() {
            let (place, built) = &standing[(number + turn) % standing.len()];
            match evaluator.read(built, &mut tuning::device(context))? {
                SettingResult::Read { value, .. } => tryouts[*place].values.push(value),
                SettingResult::Failed { .. } => unread.push(*place),
            }
        }
    }
    // A variant that cannot be measured every time is not wanted.
    for place in unread {
        tryouts[place].values.clear();
    }
    Ok(())
}
