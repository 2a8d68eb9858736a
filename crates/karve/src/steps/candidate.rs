//! Everything that an agent changed, including read-only files, so that a recording is complete.

use super::World;
use super::audit::exact_globs;
use karve_harness::git::{CandidateFilter, CommitNote, Oid};
use karve_harness::store;
use karve_os::error::Result;
use std::path::Path;

impl World {
    /// The artifact with the patch of the accepted files and the extra files of a worktree. None
    /// if there are no extra files, or if a patch cannot reproduce one, such as a symlink or one
    /// with a key.
    pub(super) fn whole_change(
        &self,
        (worktree, parent): (&Path, &Oid),
        (files, strays): (&[String], &[String]),
        note: &CommitNote<'_>,
    ) -> Result<Option<String>> {
        if strays.is_empty() {
            return Ok(None);
        }
        let globs = exact_globs(&[files, strays].concat())?;
        // Nothing refers to this commit, so the next garbage collection removes it.
        let forbids = |bytes: &[u8]| self.holds_key(bytes);
        let terms = CandidateFilter {
            editable: &globs,
            forbids: &forbids,
        };
        let made = self.repo.commit_within(worktree, parent, terms, note)?;
        let is_whole = strays.iter().all(|stray| made.files.contains(stray));
        match is_whole {
            true => store::put_artifact(&self.dir, &made.patch).map(Some),
            false => Ok(None),
        }
    }
}
