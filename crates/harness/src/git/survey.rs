//! What in a worktree differs from a tree.
//!
//! Found by looking at the files themselves. Git lists the tree and hashes the contents of files
//! without conversion; its own comparison is not used, since that trusts the index (whose bits
//! an agent can set) and runs the filters that the worktree's attributes ask for.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use karve_os::error::Result;

use super::call::text;
use super::change::{ChangeRefusal, RawChange, WorktreeChange};
use super::history::RawEntry;
use super::scratch::SurveyScratch;
use super::worktree::settled;
use super::{FileMode, Oid, Repo, compare, walk};

/// Everything found in a worktree.
pub(super) struct WorktreeSurvey {
    /// The top of the worktree.
    pub(super) root: PathBuf,
    /// The entries of the tree.
    pub(super) entries: Arc<Vec<RawEntry>>,
    /// What differs, sorted by path.
    pub(super) found: Vec<RawChange>,
    /// New files that the ignore rules of the tree hide.
    pub(super) ignored: Vec<RawChange>,
    /// Holds the shadow of each modified file.
    pub(super) scratch: SurveyScratch,
}

impl Repo {
    /// Everything in a worktree that differs from a commit: files of the commit that are changed,
    /// gone or of another kind, and new files that its ignore rules do not hide.
    pub fn changes(&self, worktree: &Path, parent: &Oid) -> Result<Vec<WorktreeChange>> {
        Ok(self.survey(worktree, parent)?.found.iter().map(RawChange::change).collect())
    }

    pub(super) fn survey(&self, worktree: &Path, parent: &Oid) -> Result<WorktreeSurvey> {
        let root = settled(worktree);
        let entries = self.ls_tree(parent)?;
        let mut scratch = SurveyScratch::new(self.scratch.as_deref())?;
        let mut found = compare::tracked(self, &root, &entries, &mut scratch)?;
        let differing = compare::in_doubt(self, &root, &entries, &found);
        scratch.check_out(self, parent, &differing)?;
        compare::learn_plain(self, &scratch.shadow(), &entries, &differing)?;
        found.retain(|found| !compare::is_as_checked_out(&root, &scratch.shadow(), found));
        let new = walk::new_files(&root, &entries);
        let rules = walk::ignore_rules(&entries);
        if !new.is_empty() {
            scratch.check_out(self, parent, &rules)?;
        }
        let (ignored, new) = walk::split_ignored(self, &scratch.shadow(), new)?;
        found.extend(new);
        found.extend(self.inside_submodules(&root, &entries)?);
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(WorktreeSurvey { root, entries, found, ignored, scratch })
    }

    /// What was changed inside the submodules of a worktree, compared with their repositories in
    /// the user's checkout.
    fn inside_submodules(&self, root: &Path, entries: &[RawEntry]) -> Result<Vec<RawChange>> {
        let mut all = Vec::new();
        for link in entries.iter().filter(|entry| entry.mode == FileMode::Gitlink) {
            let path = root.join(text(&link.path));
            let filled = path.join(".git").symlink_metadata().is_ok();
            let Some(source) = self.submodule(&link.path)?.filter(|_| filled) else {
                continue;
            };
            if compare::is_real_dir(root, &link.path) {
                for mut found in source.survey(&path, &link.oid)?.found {
                    found.path = [&link.path[..], b"/", &found.path].concat();
                    found.obstacle = Some(ChangeRefusal::InSubmodule);
                    all.push(found);
                }
            }
        }
        Ok(all)
    }
}
