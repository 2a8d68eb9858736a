//! The candidate from a worktree: what a role may change becomes a commit, and everything that was
//! changed is kept, so that a recording is complete.

use super::context::Context;
use super::missing_candidate::why_missing;
use crate::checks::exact_globs;
use crate::refs::refs_of;
use crate::reports;
use globset::GlobSet;
use karve_core::hypothesis::{Candidate, Hypothesis};
use karve_core::parts::parts_of;
use karve_harness::git::{CandidateCommit, CandidateFilter, CommitNote, ExpectedRef, Oid};
use karve_harness::outcome::ReasonResult;
use karve_harness::{project_file, store};
use karve_os::clock;
use karve_os::error::Result;
use std::path::Path;

/// What becomes a candidate.
pub(super) struct CandidateChange<'a> {
    /// Where the files were changed.
    pub(super) worktree: &'a Path,
    /// The files that the role may include, if not all editable ones.
    pub(super) writes: Option<&'a [String]>,
    /// The round that the candidate is for.
    pub(super) round: u32,
    /// The commit that it is based on.
    pub(super) parent: &'a str,
    /// What it implements.
    pub(super) hypothesis: &'a Hypothesis,
    /// What was done, in words.
    pub(super) summary: String,
}

/// The parent's tree plus the worktree's editable files becomes a commit under a hidden ref. A
/// role may include only some of them; files that are left out are named. Every candidate is
/// made here, whoever wrote it, so this is where one that contains a key is refused. Returns the
/// names of what was left out, too.
pub(super) fn commit_candidate(
    context: &Context,
    change: CandidateChange<'_>,
) -> ReasonResult<(Candidate, Vec<String>)> {
    let CandidateChange { worktree, writes, round, parent, hypothesis, summary } = change;
    let message = reports::render_candidate_message(&context.charter, round, hypothesis)?;
    let note = CommitNote { message: &message, date: clock::now_s() };
    context.repos.reveal(worktree, parent)?;
    let base = Oid::named(parent)?;
    let globs = accepted_files(context, worktree, &base, writes)?;
    let forbids = |bytes: &[u8]| context.acting.holds_key(bytes);
    let commit = |editable: &GlobSet| {
        let filter = CandidateFilter { editable, forbids: &forbids };
        context.repos.work.commit_within(worktree, &base, filter, &note)
    };
    let made = commit(&globs)?;
    if let Some(why) = why_missing(&made, &forbids) {
        return Err(why.into());
    }
    let CandidateCommit { oid, tree, files, patch, out_of_scope, .. } = made;
    let refused = out_of_scope.iter().map(|refused| &refused.change.path);
    let refused: Vec<String> = refused.cloned().collect();
    // An extra new file is just left behind; a changed read-only file is reported.
    let out_of_scope: Vec<String> = out_of_scope
        .into_iter()
        .filter(|refused| refused.change.tracked)
        .map(|refused| refused.change.path)
        .collect();
    let whole = match out_of_scope.is_empty() {
        true => None,
        false => {
            // Nothing refers to this commit, so the next garbage collection removes it.
            let changed = exact_globs(&[files.as_slice(), &out_of_scope].concat())?;
            whole_patch(context, &commit(&changed)?, &out_of_scope)?
        }
    };
    let name = format!("{}/round-{round}", refs_of(&context.charter.name));
    context.repos.work.update_ref(&name, &oid, ExpectedRef::Any)?;
    let candidate = Candidate {
        commit: oid.to_string(),
        tree: tree.to_string(),
        files,
        parts: parts_of(&String::from_utf8_lossy(&patch), hypothesis),
        patch: store::put_artifact(&context.dir, &patch)?,
        out_of_scope,
        whole,
        summary,
    };
    Ok((candidate, refused))
}

/// What a candidate may include from a worktree: the editable files, and in a role only the
/// changed ones that it may write.
fn accepted_files(
    context: &Context,
    tree: &Path,
    parent: &Oid,
    writes: Option<&[String]>,
) -> Result<GlobSet> {
    let editable = project_file::glob_set(&context.charter.editable)?;
    let Some(writes) = writes else {
        return Ok(editable);
    };
    let writes = project_file::glob_set(writes)?;
    let changes = context.repos.work.changes(tree, parent)?.into_iter();
    let paths = changes.map(|change| change.path);
    let accepted = paths.filter(|path| editable.is_match(path) && writes.is_match(path));
    exact_globs(&accepted.collect::<Vec<_>>())
}

/// The artifact with the patch of the accepted files and the extra files of a worktree. None if a
/// patch cannot reproduce one of them, such as a symlink or one with a key.
fn whole_patch(
    context: &Context,
    made: &CandidateCommit,
    extra: &[String],
) -> Result<Option<String>> {
    let is_whole = extra.iter().all(|file| made.files.contains(file));
    match is_whole {
        true => store::put_artifact(&context.dir, &made.patch).map(Some),
        false => Ok(None),
    }
}
