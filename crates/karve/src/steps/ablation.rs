//! Measures the parts of a kept bundle: each is left out in turn, and what remains is built, tested
//! and read beside the kept kernel.

use super::context::Context;
use super::correctness::test_visible_cases;
use super::tuning;
use crate::tuner::evaluator::{Evaluator, SettingResult};
use karve_core::campaign::{Campaign, strategy};
use karve_core::hypothesis::PartShare;
use karve_core::measurement::{FailureCategory, Gate};
use karve_core::parts::{SeparatePart, separate_parts};
use karve_core::variants::VariantTrial;
use karve_harness::commands::CommandVariant;
use karve_harness::git::{CommitNote, Oid, PatchResult};
use karve_harness::outcome::{GateResult, split};
use karve_harness::worktrees::BuiltTree;
use karve_harness::{project_file, store};
use karve_numerics::case::CaseSet;
use karve_os::clock;
use karve_os::error::Result;
use std::time::{Duration, Instant};

/// The kept kernel, or it without one part.
struct AblationArm {
    built: Option<BuiltTree>,
    trial: VariantTrial,
}

/// The share of each part of the round's change, if the policy asks for it.
pub(super) fn shares(context: &mut Context, campaign: &Campaign) -> Result<Vec<PartShare>> {
    let Some(plan) = strategy::to_ablate(campaign) else {
        return Ok(Vec::new());
    };
    let until = Instant::now() + Duration::from_secs(plan.limit_s);
    let patch = store::get_artifact(&context.dir, &plan.patch)?;
    let parts = separate_parts(&String::from_utf8_lossy(&patch));
    let kept = plan.commit;
    let mut arms = vec![arm(split(context.repos.built(&context.harness(), &kept))?)];
    for part in &parts {
        let built = match Instant::now() < until {
            true => split(without(context, &kept, part, campaign))?,
            false => Err(Gate::TimedOut { what: "leaving out parts".to_owned() }),
        };
        arms.push(arm(built));
    }
    match split(tuning::new_evaluator(context, &Oid::named(&kept)?, campaign))? {
        Ok(evaluator) => {
            let mut turns = 0..plan.turns;
            while turns.next().is_some() && Instant::now() < until {
                read_each(context, &evaluator, &mut arms)?;
            }
        }
        Err(why) => context.device.notices.mention(&why),
    }
    context.repos.keep_only(&[&kept])?;
    let Some((whole, others)) = arms.split_first() else {
        return Ok(Vec::new());
    };
    let of = |(part, arm): (&SeparatePart, &AblationArm)| {
        strategy::share(&part.what, &whole.trial, &arm.trial, plan.ratio)
    };
    Ok(parts.iter().zip(others).map(of).collect())
}

fn arm(built: std::result::Result<BuiltTree, Gate>) -> AblationArm {
    let (built, gate) = match built {
        Ok(built) => (Some(built), Gate::Passed),
        Err(gate) => (None, gate),
    };
    AblationArm { built, trial: VariantTrial::new(0, gate) }
}

/// The kept kernel without a part, built and correct on the visible cases.
fn without(
    context: &mut Context,
    kept: &str,
    part: &SeparatePart,
    campaign: &Campaign,
) -> GateResult<BuiltTree> {
    let tree = context.repos.fresh("ablation", kept)?;
    context.repos.reveal(&tree, kept)?;
    let work = &context.repos.work;
    let undone = work.revert_patch(&tree, part.patch.as_bytes())?;
    let editable = project_file::glob_set(&context.charter.editable)?;
    let message = format!("without {}\n", part.what);
    let note = CommitNote { message: &message, date: clock::now_s() };
    // Nothing refers to this commit, so the next garbage collection removes it.
    let made = work.commit_candidate(&tree, &Oid::named(kept)?, &editable, &note)?;
    context.repos.remove(&tree)?;
    if let PatchResult::Refused(excerpt) = undone {
        let category = FailureCategory::BuildCompile;
        return Err(Gate::BuildFailed { category, excerpt }.into());
    }
    let harness = context.harness();
    let built = context.repos.built(&harness, made.oid.as_str())?;
    test_visible_cases(&harness, &built.path, CaseSet::Full, CommandVariant::Usual, campaign)?;
    Ok(built)
}

/// One reading of every arm that was built. An arm that cannot be read has no readings.
fn read_each(context: &mut Context, evaluator: &Evaluator, arms: &mut [AblationArm]) -> Result<()> {
    for arm in arms {
        let Some(built) = &arm.built else {
            continue;
        };
        match evaluator.read_tree(built, None, &mut tuning::tuning_device(context))? {
            SettingResult::Read { value, .. } => arm.trial.values.push(value),
            SettingResult::Failed { .. } => {
                arm.trial.values.clear();
                arm.built = None;
            }
        }
    }
    Ok(())
}
