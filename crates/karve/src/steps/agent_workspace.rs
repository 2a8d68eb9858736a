//! The workspace of an external agent: the parent's files in a directory of the campaign, with a
//! separate repository. It exists from the proposal of a round to its end.

use super::context::Context;
use super::{agent_sandbox, bug};
use karve_core::campaign::{Campaign, ImplementStep, Step};
use karve_harness::git::{HistoryAccess, Oid, PatchResult};
use karve_harness::store;
use karve_os::error::{Result, WithContext as _};
use karve_os::files;
use std::fs;
use std::path::Path;

/// The directory of the campaign where an external agent works.
pub const WORKSPACE_DIR: &str = "agent-workspace";
/// The file that says which round the workspace was prepared for.
const WORKSPACE_NOTE: &str = "agent-workspace.txt";
const WORKSPACE_NOTE_BYTES_MAX: u64 = 1_000;

/// Whether this step waits for an external agent; if so, its workspace is prepared.
pub fn waits_for_answer(context: &Context, step: &Step, campaign: &Campaign) -> Result<bool> {
    let waits = context.acting.agent.waits_for_answer(step);
    match step {
        Step::Propose { round, .. } if waits => {
            prepare_workspace(context, *round, campaign.incumbent(), None)?;
        }
        Step::Implement(step) if waits => {
            prepare_workspace(context, step.round, &step.parent, Some(step))?;
        }
        _ => {}
    }
    Ok(waits)
}

/// Prepares the parent's files, with the change to fix if there is one; unless they are already
/// there for this implementation: then the external agent may have changed them, and they stay.
fn prepare_workspace(
    context: &Context,
    round: u32,
    parent: &str,
    step: Option<&ImplementStep>,
) -> Result<()> {
    let workspace = context.dir.join(WORKSPACE_DIR);
    let note = context.dir.join(WORKSPACE_NOTE);
    let variant = match step.map_or(0, |step| step.variant) {
        0 => String::new(),
        variant => format!(", variant {}", variant + 1),
    };
    let wanted = format!("round {round} on {parent}{variant}\n");
    let found = files::read_text(&note, WORKSPACE_NOTE_BYTES_MAX).unwrap_or_default();
    if workspace.is_dir() && found == wanted {
        return Ok(());
    }
    let cannot = || format!("cannot prepare {}", workspace.display());
    let _ = fs::remove_file(&note);
    let tree = context.repos.fresh(WORKSPACE_DIR, parent)?;
    if workspace.exists() {
        agent_sandbox::keep(context, &workspace, &tree)?;
        fs::remove_dir_all(&workspace).context(cannot)?;
    }
    agent_sandbox::put(context, &tree)?;
    // Nothing in it affects the user's repository.
    let parent = Oid::named(parent)?;
    context.repos.work.detach_worktree(&tree, &parent, HistoryAccess::Sealed)?;
    if let Some(step) = step {
        apply_failed_change(context, &tree, step)?;
    }
    fs::rename(&tree, &workspace).context(cannot)?;
    context.repos.work.prune_under(&context.dir.worktrees())?;
    files::write_atomic(&note, wanted.as_bytes())
}

/// Applies the refused change, so that the agent can fix it in place.
pub(super) fn apply_failed_change(
    context: &Context,
    tree: &Path,
    step: &ImplementStep,
) -> Result<()> {
    let Some((candidate, _)) = &step.repair else {
        return Ok(());
    };
    let patch = store::get_artifact(&context.dir, &candidate.patch)?;
    match context.repos.work.apply_patch(tree, &patch)? {
        PatchResult::Refused(why) => Err(bug("a candidate's own patch does not apply").cause(why)),
        _ => Ok(()),
    }
}
