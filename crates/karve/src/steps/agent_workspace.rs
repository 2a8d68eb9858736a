//! The workspace of an external agent: the parent's files in a directory of the campaign, with a
//! separate repository. It exists from the proposal of a round to its end.

use super::{World, bug};
use karve_core::campaign::{Campaign, ImplementStep, Step};
use karve_harness::git::{HistoryAccess, Oid, PatchResult};
use karve_harness::store;
use karve_os::error::{Context, Result};
use karve_os::files;
use std::fs;
use std::path::Path;

/// The directory of the campaign where an external agent works.
pub const WORKSPACE_DIR: &str = "agent-workspace";
/// The file that says which round the workspace was prepared for.
const WORKSPACE_NOTE: &str = "agent-workspace.txt";
const WORKSPACE_NOTE_BYTES_MAX: u64 = 1_000;

impl World {
    /// Whether this step waits for an external agent; if so, its workspace is prepared.
    pub fn waits_for_answer(&mut self, step: &Step, campaign: &Campaign) -> Result<bool> {
        let waits = self.agent.waits_for_answer(step);
        match step {
            Step::Propose { round, .. } if waits => {
                self.prepare_workspace(*round, campaign.incumbent(), None)?;
            }
            Step::Implement(step) if waits => {
                self.prepare_workspace(step.round, &step.parent, Some(step))?;
            }
            _ => {}
        }
        Ok(waits)
    }

    /// Prepares the parent's files, with the change to fix if there is one; unless they are already
    /// there for this implementation: then the external agent may have changed them, and they stay.
    fn prepare_workspace(
        &self,
        round: u32,
        parent: &str,
        step: Option<&ImplementStep>,
    ) -> Result<()> {
        let (desk, laid) = (self.dir.join(WORKSPACE_DIR), self.dir.join(WORKSPACE_NOTE));
        let variant = match step.map_or(0, |step| step.variant) {
            0 => String::new(),
            variant => format!(", variant {}", variant + 1),
        };
        let wanted = format!(
            "round {round} on {parent}{variant}
"
        );
        let found = files::read_text(&laid, WORKSPACE_NOTE_BYTES_MAX).unwrap_or_default();
        if desk.is_dir() && found == wanted {
            return Ok(());
        }
        let cannot = || format!("cannot prepare {}", desk.display());
        let _ = fs::remove_file(&laid);
        if desk.exists() {
            fs::remove_dir_all(&desk).context(cannot)?;
        }
        let tree = self.trees.fresh(&self.repo, WORKSPACE_DIR, parent)?;
        // Nothing in it affects the user's repository.
        let parent = Oid::named(parent)?;
        self.repo
            .detach_worktree(&tree, &parent, HistoryAccess::Sealed)?;
        if let Some(step) = step {
            self.apply_failed_change(&tree, step)?;
        }
        fs::rename(&tree, &desk).context(cannot)?;
        self.repo.prune_under(&self.dir.worktrees())?;
        files::write_atomic(&laid, wanted.as_bytes())
    }

    /// Applies the refused change, so that the agent can fix it in place.
    pub(super) fn apply_failed_change(&self, tree: &Path, step: &ImplementStep) -> Result<()> {
        let Some((candidate, _)) = &step.repair else {
            return Ok(());
        };
        let patch = store::get_artifact(&self.dir, &candidate.patch)?;
        match self.repo.apply_patch(tree, &patch)? {
            PatchResult::Refused(why) => {
                Err(bug("a candidate's own patch does not apply").cause(why))
            }
            _ => Ok(()),
        }
    }
}
