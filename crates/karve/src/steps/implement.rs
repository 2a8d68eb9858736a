//! The agent implements the hypothesis in a fresh worktree, and its change becomes a candidate.

use super::candidate::{CandidateChange, commit_candidate};
use super::context::Context;
use super::{agent_sandbox, agent_turn, agent_workspace};
use crate::refs::variant_ref;
use karve_agents::Implementation;
use karve_agents::builtin::{config_of, knobs_at};
use karve_agents::external::{EXTERNAL, no_change};
use karve_core::agenda::ItemAction;
use karve_core::campaign::{Campaign, Event, ImplementStep};
use karve_core::hypothesis::Candidate;
use karve_harness::git::{ExpectedRef, Oid};
use karve_harness::outcome::{ReasonResult, split};
use karve_numerics::space::KnobSetting;
use karve_os::error::Result;
use std::path::Path;

pub(crate) fn perform(
    context: &mut Context,
    step: &ImplementStep,
    campaign: &Campaign,
) -> Result<Event> {
    let ImplementStep { round, retry, variant, .. } = *step;
    let tree = agent_turn::worktree_for_agent(context, &step.parent)?;
    agent_workspace::apply_failed_change(context, &tree, step)?;
    let sandbox = agent_sandbox::put(context, &tree)?;
    let setup = agent_turn::setup(context, campaign);
    let (implementation, session_log) =
        agent_turn::turn_in_worktree(context, &tree, &setup, |agent, workspace| {
            agent.implement(step, workspace)
        })?;
    agent_sandbox::take(context, sandbox.as_deref())?;
    let (made, usage) = match implementation {
        Implementation::NotDone { why, usage } => (Err(why), usage),
        Implementation::Done { summary, usage } => {
            let taken = split(take_candidate(context, step, &tree, summary, campaign))?;
            require_change(context, step, &taken)?;
            (taken, usage)
        }
    };
    if let (Ok(candidate), true) = (&made, step.of > 1) {
        keep_variant(context, candidate, round, variant)?;
    }
    let event = match made {
        Ok(candidate) => {
            Event::Implemented { round, retry, variant, candidate, usage, session_log }
        }
        Err(why) => Event::NotImplemented { round, retry, variant, why, usage, session_log },
    };
    context.repos.remove(&tree)?;
    Ok(event)
}

/// A slip of an external agent does not cost a round: what has notes for its own use alone is not
/// taken, and the round keeps waiting.
fn require_change(
    context: &Context,
    step: &ImplementStep,
    taken: &Result<Candidate, String>,
) -> Result<()> {
    let role = step.brief.roles.as_ref().map(|roles| roles.route.implements.as_str());
    let is_empty = taken.as_ref().is_ok_and(|candidate| {
        candidate.files.is_empty() && candidate.out_of_scope.is_empty() && !step.hypothesis.sweep
    });
    if !is_empty || context.acting.agent.called(role) != Some(EXTERNAL) {
        return Ok(());
    }
    let why = format!(
        "nothing that can be edited differs from the parent: change {}; notes of your own are \
         kept, but are no change",
        context.charter.editable.join(", ")
    );
    Err(no_change(&why, step))
}

/// What an agent left in its worktree, as a candidate, or why it is not one.
fn take_candidate(
    context: &Context,
    step: &ImplementStep,
    tree: &Path,
    summary: String,
    campaign: &Campaign,
) -> ReasonResult<Candidate> {
    let roles = step.brief.roles.as_ref();
    let change = CandidateChange {
        worktree: tree,
        writes: roles.map(|roles| roles.implements.writes.as_slice()),
        round: step.round,
        parent: &step.parent,
        hypothesis: &step.hypothesis,
        summary,
    };
    let (candidate, refused) = commit_candidate(context, change)?;
    match why_rejected(context, step, &candidate, &refused, campaign)? {
        None => Ok(candidate),
        Some(why) => Err(why.into()),
    }
}

/// Why a change is not a candidate, if so: it changes only files that it must not, or it sets
/// other values than the agenda item that is due asks for.
fn why_rejected(
    context: &Context,
    step: &ImplementStep,
    candidate: &Candidate,
    refused: &[String],
    campaign: &Campaign,
) -> Result<Option<String>> {
    let roles = step.brief.roles.as_ref();
    let role = roles.map(|roles| roles.route.implements.as_str());
    if let Some(why) = candidate.why_out_of_scope(&step.hypothesis, refused, role) {
        return Ok(Some(why));
    }
    let Some(task) = campaign.task() else {
        return Ok(None);
    };
    if !matches!(task.item.how, ItemAction::Knobs { .. }) {
        return Ok(None);
    }
    let values = |commit: &str| -> Result<KnobSetting> {
        let (editable, declared) = (&context.charter.editable, &context.charter.knobs);
        let knobs = knobs_at(&context.repos.work, commit, editable, declared)?;
        Ok(config_of(&knobs))
    };
    let before = values(&step.parent)?;
    // Declarations that no longer parse do not have the requested values.
    let after = values(&candidate.commit).unwrap_or_default();
    Ok(task.item.misses_values(&before, &after))
}

/// Keeps the commit of a variant from being collected.
fn keep_variant(context: &Context, candidate: &Candidate, round: u32, variant: u32) -> Result<()> {
    let name = variant_ref(&context.charter.name, round, variant);
    let oid = Oid::named(&candidate.commit)?;
    context.repos.work.update_ref(&name, &oid, ExpectedRef::Any)
}
