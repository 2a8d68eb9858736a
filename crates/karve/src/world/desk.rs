//! Where a visitor works: the parent's files in a directory of the campaign, with a repository of
//! its own.

use super::World;
use crate::error::{Context, Result};
use crate::git::{Oid, Past};
use crate::plain_file;
use crate::store;
use karve_core::campaign::{ImplementStep, Step};
use std::fs;

/// The directory of the campaign where a visitor works.
pub const DESK: &str = "desk";
/// What the desk was laid for.
const LAID: &str = "desk.txt";
const LAID_BYTES_MAX: u64 = 1_000;

impl World {
    /// Whether a visitor must come before this step; if so, the files are laid out that are to be
    /// changed.
    pub fn awaits(&mut self, step: &Step) -> Result<bool> {
        let waits = self.agent.awaits(step);
        if let (true, Step::Implement(step)) = (waits, step) {
            self.lay_desk(step)?;
        }
        Ok(waits)
    }

    /// Lays out the parent's files, unless they lie there for this round already: then the visitor
    /// may have changed them, and mends that.
    fn lay_desk(&self, step: &ImplementStep) -> Result<()> {
        let (desk, laid) = (self.dir.join(DESK), self.dir.join(LAID));
        let wanted = format!("round {} on {}\n", step.round, step.parent);
        let found = plain_file::read_text(&laid, LAID_BYTES_MAX).unwrap_or_default();
        if desk.is_dir() && found == wanted {
            return Ok(());
        }
        let cannot = || format!("cannot lay out {}", desk.display());
        let _ = fs::remove_file(&laid);
        if desk.exists() {
            fs::remove_dir_all(&desk).context(cannot)?;
        }
        let tree = self.trees.fresh(&self.repo, DESK, &step.parent)?;
        // Nothing that is done there reaches the user's repository.
        let parent = Oid::named(&step.parent)?;
        self.repo.detach_worktree(&tree, &parent, Past::Sealed)?;
        fs::rename(&tree, &desk).context(cannot)?;
        self.repo.prune_under(&self.dir.worktrees())?;
        store::write_atomic(&laid, wanted.as_bytes())
    }
}
