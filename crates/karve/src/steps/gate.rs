//! Audits, builds and tests a candidate.

use super::context::Context;
use super::correctness::{cases_at, test_visible_cases};
use super::{bug, checksums, proof, raw_output, stale_memory};
use crate::checks::{GhostCheck, audit_commits, check_changes, is_same_code};
use crate::refs::refs_of;
use karve_agents::builtin::knobs_at;
use karve_core::campaign::{Campaign, Event, KeepEvidence, RoundState, Step};
use karve_core::charter::Commands;
use karve_core::hypothesis::Candidate;
use karve_core::integrity::{AuditFinding, in_order};
use karve_core::measurement::Gate;
use karve_harness::commands::{CommandVariant, Harness};
use karve_harness::git::{ExpectedRef, Oid};
use karve_harness::outcome::{GateResult, split};
use karve_numerics::case::{Case, CaseSet};
use karve_numerics::contract::CaseTensorError;
use karve_numerics::space::set_knob;
use karve_os::error::Result;
use std::path::Path;

pub(crate) fn perform(context: &mut Context, step: &Step, campaign: &Campaign) -> Result<Event> {
    let Step::Gate { round, retry, candidate, set } = step else {
        return Err(bug("the gate was called for another step"));
    };
    let (parent, commit) = (Oid::named(campaign.incumbent())?, Oid::named(&candidate.commit)?);
    if context.charter.policy.best_of > 1 {
        point_round_ref(context, *round, &commit)?;
    }
    let work = &context.repos.work;
    let mut findings = audit_commits(work, &context.charter, &parent, &commit, &candidate.files)?;
    raw_output::discard(context);
    let mut errors = Vec::new();
    let tested = check_changes(work, campaign, candidate, &findings)
        .and_then(|()| build_and_test(context, candidate, *set, campaign, &mut errors));
    let (mut gate, same_artifact, knobs) = match split(tested)? {
        Ok(same_build) => {
            let (work, files) = (&context.repos.work, &candidate.files);
            let same_artifact = same_build || is_same_code(work, &parent, &commit, files)?;
            findings.extend(ghosts(context, candidate, campaign)?);
            findings = in_order(findings);
            let knobs = tunable_knobs(context, candidate, campaign.incumbent());
            (Gate::Passed, same_artifact, knobs)
        }
        Err(gate) => {
            raw_output::keep_for_user(context, *round);
            (gate, false, 0)
        }
    };
    let mut evidence = KeepEvidence { findings, ..KeepEvidence::default() };
    let mut mutants = None;
    if gate.passed() && campaign.stale_memory_due(&evidence) {
        let measured = stale_memory::measure(context, candidate, &mut evidence, campaign);
        gate = split(measured)?.err().unwrap_or(Gate::Passed);
    }
    if gate.passed() {
        evidence.work = proof::count_work(context, candidate, &evidence, campaign)?;
        mutants = proof::check_mutants(context, candidate, &evidence, campaign)?;
    }
    let KeepEvidence { findings, stale_memory, work } = evidence;
    Ok(Event::Gated {
        round: *round,
        retry: *retry,
        set: *set,
        gate,
        same_artifact,
        errors,
        findings,
        knobs,
        stale_memory,
        work,
        mutants,
    })
}

/// Builds and tests a candidate; returns whether its build has the incumbent's artifacts. How far
/// its results are from the reference is known even if a hidden case fails after that.
fn build_and_test(
    context: &mut Context,
    candidate: &Candidate,
    set: CaseSet,
    campaign: &Campaign,
    errors: &mut Vec<CaseTensorError>,
) -> GateResult<bool> {
    let harness = context.harness();
    let built = context.repos.built(&harness, &candidate.commit)?;
    let parent = split(context.repos.built(&harness, campaign.incumbent()))?.ok();
    let harness = match &parent {
        Some(parent) => harness.beside(&parent.path),
        None => harness,
    };
    let variant = CommandVariant::from(set);
    for (setting, commands) in settings_of(context, campaign) {
        let harness = harness.clone().with_commands(&commands);
        test_visible_cases(&harness, &built.path, set, variant, campaign)
            .map_err(|failure| failure.map(|gate| gate.with_setting(&setting)))?;
    }
    *errors = test_visible_cases(&harness, &built.path, set, variant, campaign)?;
    if let Some(parent) = &parent {
        checksums::compare(&harness, parent, &built, set, campaign)?;
    }
    if set == CaseSet::Full {
        let hidden = cases_at(campaign, &campaign.cases_of(CaseSet::Hidden));
        // Their times may not count yet, but they must be right.
        let stress = cases_at(campaign, &campaign.cases_of(CaseSet::Stress));
        if !stress.is_empty() && harness.check_kernel(&built.path, &stress)?.is_none() {
            harness.test(&built.path, &stress, variant)?;
        }
        if harness.tests_each_case(&hidden) {
            harness.test(&built.path, &hidden, variant)?;
        }
    }
    if campaign.current_round().is_some_and(RoundState::is_before_keep) {
        check_beside_original(context, &harness, &built.path, campaign)?;
    }
    let parent_artifacts = parent.and_then(|built| built.artifacts);
    Ok(built.artifacts.is_some() && built.artifacts == parent_artifacts)
}

/// Compares a candidate that is about to be kept with the original, where that is no longer the
/// incumbent, which its other checks are next to.
fn check_beside_original(
    context: &mut Context,
    harness: &Harness,
    tree: &Path,
    campaign: &Campaign,
) -> GateResult<()> {
    let base = campaign.base_commit();
    if base == campaign.incumbent() || !harness.is_under_contract() {
        return Ok(());
    }
    match split(context.repos.built(harness, base))? {
        Ok(original) => {
            let cases = cases_at(campaign, &campaign.cases_of(CaseSet::Full));
            harness.check_beside_original(tree, &original.path, &cases)
        }
        Err(_) => Ok(()),
    }
}

/// The settings under which the language of the round wants a kernel to be right, in order, with
/// the commands that have them.
fn settings_of(context: &Context, campaign: &Campaign) -> Vec<(String, Commands)> {
    let route = campaign.current_round().and_then(|round| round.route.as_ref());
    let table_of_roles = context.charter.asks.role_table.as_deref();
    let language = route.zip(table_of_roles).and_then(|(route, of)| of.language(&route.language));
    let checks = language.iter().flat_map(|language| &language.checks);
    let with = checks.filter_map(|check| {
        let (name, value) = check.split_once('=')?;
        let mut commands = context.charter.commands.clone();
        commands.env.insert(name.to_owned(), value.to_owned());
        Some((check.clone(), commands))
    });
    with.collect()
}

/// Functions that a candidate adds and that have no part in its results, if it is about to be kept.
fn ghosts(
    context: &Context,
    candidate: &Candidate,
    campaign: &Campaign,
) -> Result<Vec<AuditFinding>> {
    if !campaign.current_round().is_some_and(RoundState::is_before_keep) {
        return Ok(Vec::new());
    }
    let sets = [CaseSet::Full, CaseSet::Hidden];
    let cases: Vec<Case> =
        sets.into_iter().flat_map(|set| cases_at(campaign, &campaign.cases_of(set))).collect();
    let (repos, harness) = (&context.repos, context.harness());
    let check = GhostCheck {
        repo: &repos.work,
        trees: &repos.trees,
        harness: &harness,
        charter: &context.charter,
        cases: &cases,
    };
    check.run(&Oid::named(campaign.incumbent())?, candidate)
}

/// The ref of a round names the candidate that is judged, not the one that was made last.
fn point_round_ref(context: &Context, round: u32, commit: &Oid) -> Result<()> {
    let name = format!("{}/round-{round}", refs_of(&context.charter.name));
    context.repos.work.update_ref(&name, commit, ExpectedRef::Any)
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
        let mut reset = text(&candidate.commit, file)?;
        for knob in new.iter().filter(|knob| knob.file == *file) {
            let same = old.iter().find(|old| old.name == knob.name && old.file == *file)?;
            reset = set_knob(&reset, knob, &same.current)?;
        }
        Some(reset == text(incumbent, file)?)
    };
    let only_settings = candidate.files.iter().all(|file| is_setting(file) == Some(true));
    match only_settings {
        true => 0,
        false => u32::try_from(new.len()).unwrap_or(u32::MAX),
    }
}
