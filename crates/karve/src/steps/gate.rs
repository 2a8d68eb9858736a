//! Audits, builds and tests a candidate.

use super::bug;
use super::context::Context;
use super::correctness::{cases_at, tested_visibly};
use crate::checks::{audit_commits, out_of_scope};
use crate::refs::refs_of;
use karve_agents::builtin::knobs_at;
use karve_core::campaign::{Campaign, Event, Step};
use karve_core::hypothesis::Candidate;
use karve_core::integrity;
use karve_core::measurement::Gate;
use karve_harness::commands::{CommandVariant, Harness};
use karve_harness::git::{ExpectedRef, Oid};
use karve_harness::outcome::GateResult;
use karve_numerics::case::CaseSet;
use karve_numerics::contract::CaseTensorError;
use karve_numerics::space::set_knob;
use karve_os::error::Result;
use std::path::Path;

pub(crate) fn perform(context: &mut Context, step: &Step, campaign: &Campaign) -> Result<Event> {
    let Step::Gate { round, retry, candidate, set } = step else {
        return Err(bug("the gate was called for another step"));
    };
    let commits = (&Oid::named(campaign.incumbent())?, &Oid::named(&candidate.commit)?);
    if context.charter.policy.best_of > 1 {
        name_candidate(context, *round, commits.1)?;
    }
    let (work, charter) = (&context.repos.work, &context.charter);
    let findings = audit_commits(work, charter, commits, &candidate.files)?;
    let forbidden = integrity::forbids(&findings);
    let gated = |gate, same_artifact| Event::Gated {
        round: *round,
        retry: *retry,
        set: *set,
        gate,
        same_artifact,
        errors: Vec::new(),
        findings,
        knobs: 0,
    };
    if let Some(gate) = out_of_scope(&context.repos.work, campaign, commits, candidate)? {
        return Ok(gated(gate, false));
    }
    if let Some(gate) = forbidden {
        return Ok(gated(gate, false));
    }
    let harness = context.harness();
    let built = match context.repos.built(&harness, &candidate.commit)? {
        Ok(built) => built,
        Err(gate) => return Ok(gated(gate, false)),
    };
    let parent = context.repos.built(&harness, campaign.incumbent())?;
    let harness = match &parent {
        Ok(parent) => harness.beside(&parent.path),
        Err(_) => harness,
    };
    let parent_artifacts = parent.ok().and_then(|built| built.artifacts);
    let same = built.artifacts.is_some() && built.artifacts == parent_artifacts;
    let (gate, errors) = tested(&harness, &built.path, *set, campaign)?;
    let passed = gate.is_ok();
    let mut event = match gate {
        Ok(()) => gated(Gate::Passed, same),
        Err(gate) => gated(gate, false),
    };
    if let Event::Gated { errors: seen, knobs, .. } = &mut event {
        *seen = errors;
        *knobs = match passed {
            true => tunable_knobs(context, candidate, campaign.incumbent()),
            false => 0,
        };
    }
    Ok(event)
}

/// The ref of a round names the candidate that is judged, not the one that was made last.
fn name_candidate(context: &Context, round: u32, commit: &Oid) -> Result<()> {
    let name = format!("{}/round-{round}", refs_of(&context.charter.name));
    context.repos.work.update_ref(&name, commit, ExpectedRef::Any)
}

/// The test result of a built tree on a set, and how far its results are from the reference.
fn tested(
    harness: &Harness,
    tree: &Path,
    set: CaseSet,
    campaign: &Campaign,
) -> Result<(GateResult<()>, Vec<CaseTensorError>)> {
    let variant = if set == CaseSet::Quick { CommandVariant::Quick } else { CommandVariant::Usual };
    let (mut gate, errors) = tested_visibly(harness, tree, (set, variant), campaign)?;
    if gate.is_ok() && set == CaseSet::Full {
        let hidden = cases_at(campaign, &campaign.cases_of(CaseSet::Hidden));
        if harness.tests_each_case(&hidden) {
            gate = harness.test(tree, &hidden, variant)?.map_err(conceal);
        }
    }
    Ok((gate, errors))
}

/// Removes the details of a hidden case and of its failure.
fn conceal(gate: Gate) -> Gate {
    match gate {
        Gate::WrongResult { category, .. } => Gate::WrongResult {
            case: "a hidden case".into(),
            category,
            excerpt: "hidden cases are reported without details".into(),
        },
        Gate::TimedOut { .. } => Gate::TimedOut { what: "the test on a hidden case".into() },
        other => other,
    }
}

/// How many knobs a candidate declares. None if it differs from the incumbent by their values
/// alone: then the setting is the hypothesis.
fn tunable_knobs(context: &Context, candidate: &Candidate, incumbent: &str) -> u32 {
    let (editable, declared) = (&context.charter.editable, &context.charter.knobs);
    let knobs_of = |commit: &str| knobs_at(&context.repos.work, commit, editable, declared);
    let (new, old) = match (knobs_of(&candidate.commit), knobs_of(incumbent)) {
        (Ok(new), Ok(old)) => (new, old),
        // The rung itself reports the error.
        (Err(_), _) => return 1,
        (Ok(new), Err(_)) => (new, Vec::new()),
    };
    let text = |commit: &str, file: &str| -> Option<String> {
        let bytes = context.repos.work.read_file(&Oid::named(commit).ok()?, file).ok()??;
        String::from_utf8(bytes).ok()
    };
    // The new text with the old values of its knobs.
    let is_setting = |file: &String| {
        let mut turned = text(&candidate.commit, file)?;
        for knob in new.iter().filter(|knob| knob.file == *file) {
            let same = old.iter().find(|old| old.name == knob.name && old.file == *file)?;
            turned = set_knob(&turned, knob, &same.current)?;
        }
        Some(turned == text(incumbent, file)?)
    };
    let all = candidate.files.iter().all(|file| is_setting(file) == Some(true));
    match all {
        true => 0,
        false => u32::try_from(new.len()).unwrap_or(u32::MAX),
    }
}
