//! A turn of an agent: its workspace, and its session log as an artifact.

use super::context::Context;
use super::correctness::cases_at;
use super::exec_door::{ExecDoor, ExecFiles, ExecParts};
use karve_agents::{Agent, Workspace};
use karve_core::campaign::{Campaign, Event};
use karve_core::spending::AgentUsage;
use karve_harness::commands::Harness;
use karve_harness::git::{HistoryAccess, Oid};
use karve_harness::store;
use karve_numerics::case::{Case, CaseSet};
use karve_os::error::Result;
use std::fs;
use std::path::{Path, PathBuf};

/// The context of a turn, except for its worktree.
pub(super) struct WorkspaceSetup {
    harness: Harness,
    /// The visible cases.
    cases: Vec<Case>,
    /// What the campaign has used so far.
    pub(super) spent: AgentUsage,
    /// The commit that files of a worktree are compared with.
    base: String,
}

/// The result of a turn, and the artifact with its session log.
pub(super) type TurnOutcome<T> = (T, Option<String>);

/// The context of a turn, except for its worktree.
pub(super) fn setup(context: &Context, campaign: &Campaign) -> WorkspaceSetup {
    WorkspaceSetup {
        harness: context.harness(),
        cases: cases_at(campaign, &campaign.cases_of(CaseSet::Full)),
        spent: campaign.cost(),
        base: campaign.incumbent().to_owned(),
    }
}

/// A turn in a worktree, which stays as the agent left it.
pub(super) fn turn_in_worktree<T>(
    context: &mut Context,
    tree: &Path,
    setup: &WorkspaceSetup,
    turn: impl FnOnce(&mut dyn Agent, &Workspace<'_>) -> Result<T>,
) -> Result<TurnOutcome<T>> {
    // Outside everything that the agent sees.
    let session_log = context.dir.join("tmp").join("session.jsonl");
    let _ = fs::remove_file(&session_log);
    let door = ExecDoor::open(context)?;
    let workspace = Workspace {
        repo: &context.repos.work,
        tree,
        notes: &context.dir.join("tmp").join("agent"),
        session_log: &session_log,
        stop: &context.stop,
        sandbox: context.sandbox.as_deref(),
        harness: &setup.harness,
        cases: &setup.cases,
        spent: setup.spent,
        exec: door.as_ref().map(|door| &door.access),
    };
    let parts = ExecParts {
        files: ExecFiles {
            tree,
            base: &setup.base,
            repos: &context.repos,
            secrets: &context.acting.secrets,
        },
        dir: &context.dir,
        charter: &context.charter,
    };
    let agent = context.acting.agent.as_mut();
    let outcome = match (&door, &mut context.remote) {
        (Some(door), Some(host)) => door.during(&parts, host, || turn(agent, &workspace)),
        _ => turn(agent, &workspace),
    }?;
    let artifact = match session_log.is_file() {
        true => Some(store::take_artifact(&context.dir, &session_log)?),
        false => None,
    };
    if context.acting.agent.reads_worktree() {
        // A program may have changed more than its own worktree: the build of the incumbent,
        // or how git checks files out. Both arms are rebuilt, in the same way.
        context.repos.keep_only(&[])?;
    }
    Ok((outcome, artifact))
}

/// A turn in which files are only read: at a commit, in a worktree whose changes are discarded.
pub(super) fn turn_at_commit<T>(
    context: &mut Context,
    commit: &str,
    setup: &WorkspaceSetup,
    turn: impl FnOnce(&mut dyn Agent, &Workspace<'_>) -> Result<T>,
) -> Result<TurnOutcome<T>> {
    if !context.acting.agent.reads_worktree() {
        let dir = context.dir.path().to_owned();
        return turn_in_worktree(context, &dir, setup, turn);
    }
    let tree = worktree_for_agent(context, commit)?;
    let outcome = turn_in_worktree(context, &tree, setup, turn);
    context.repos.remove(&tree)?;
    outcome
}

/// A fresh worktree for the agent, with a separate repository if the agent is a program.
pub(super) fn worktree_for_agent(context: &Context, commit: &str) -> Result<PathBuf> {
    let tree = context.repos.fresh("agent", commit)?;
    if context.acting.agent.reads_worktree() {
        detach(context, &tree, commit)?;
    }
    Ok(tree)
}

/// A confined agent cannot write to the user's repository, and may not see all of it.
fn detach(context: &Context, tree: &Path, parent: &str) -> Result<()> {
    if context.sandbox.is_none() {
        return Ok(());
    }
    let is_secret =
        !context.charter.hidden_cases().is_empty() || context.charter.sandbox.seals_history;
    // The repository of a workspace is in the campaign, which an agent cannot see.
    let is_upstream = context.repos.work.common_dir() == context.repos.upstream.common_dir();
    let access = match is_upstream && !is_secret {
        true => HistoryAccess::Shown,
        false => HistoryAccess::Sealed,
    };
    context.repos.work.detach_worktree(tree, &Oid::named(parent)?, access)
}

/// The name of the agent behind an event, if there was one.
pub fn asked_agent(context: &Context, campaign: &Campaign, event: &Event) -> Option<String> {
    let round_route = || campaign.current_round().and_then(|round| round.route.as_deref());
    let role = match event {
        Event::Proposed { route, .. } | Event::ProposalRefused { route, .. } => {
            route.as_ref().map(|route| route.role.as_str())
        }
        Event::Implemented { .. } | Event::NotImplemented { .. } => {
            round_route().map(|route| route.implements.as_str())
        }
        Event::Reviewed { .. } => {
            let reviewer = context.charter.asks.reviewer();
            reviewer.map(|role| role.name.as_str())
        }
        Event::Profiled { profile, .. } => match &profile.report {
            Some(report) => Some(report.role.as_str()),
            None => return None,
        },
        Event::Learned { session_log: Some(_), .. } => None,
        _ => return None,
    };
    context.acting.agent.called(role).map(str::to_owned)
}
