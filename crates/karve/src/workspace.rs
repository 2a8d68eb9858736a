//! Workspace mode: a minimal stack extracted from the user's repository, with its provenance.
//!
//! The campaign runs in a small separate repository. Changes come back only through the integration
//! gate: the editable files are put on top of the original commit in the user's repository, and
//! that is what the final duel and `karve apply` use.

use crate::refs::upstream_ref;
use globset::GlobSet;
use karve_core::campaign::Provenance;
use karve_core::charter::{Charter, WorkMode};
use karve_harness::git::{CommitNote, ExpectedRef, NewFile, Oid, Repo};
use karve_harness::store::CampaignDir;
use karve_harness::worktrees::Worktrees;
use karve_harness::{git, project_file};
use karve_os::clock;
use karve_os::error::{CommandError, Result, WithContext};
use std::collections::BTreeMap;
use std::fs;

/// Files that may be extracted.
const FILES_MAX: usize = 10_000;

/// The repository in which candidates are made.
pub(crate) fn repo_of(upstream: &Repo, dir: &CampaignDir, charter: &Charter) -> Result<Repo> {
    let path = dir.join("workspace");
    match charter.mode {
        WorkMode::Workspace { .. } if path.join(".git").exists() => {
            Ok(Repo::discover(&path)?.with_scratch(dir.join("tmp")))
        }
        WorkMode::Workspace { .. } | WorkMode::Repo => Ok(upstream.clone()),
    }
}

/// Extracts the workspace, if the charter asks for one. Repeating it starts over.
pub(crate) fn extract(
    upstream: &Repo,
    dir: &CampaignDir,
    charter: &Charter,
    commit: &Oid,
) -> Result<Option<(Repo, Oid, Provenance)>> {
    let WorkMode::Workspace { files, .. } = &charter.mode else {
        return Ok(None);
    };
    let globs = project_file::glob_set(files)?;
    let path = dir.join("workspace");
    let half_made = dir.join("workspace.new");
    let _ = fs::remove_dir_all(&path);
    let _ = fs::remove_dir_all(&half_made);
    let mut taken = Vec::new();
    let mut blobs = BTreeMap::new();
    for entry in upstream.entries_outside(commit, &GlobSet::empty())? {
        if !globs.is_match(&entry.path) || !entry.mode.is_file() {
            continue;
        }
        let Some(bytes) = upstream.read_file(commit, &entry.path)? else {
            continue;
        };
        blobs.insert(entry.path.clone(), entry.oid.to_string());
        taken.push(NewFile {
            path: entry.path,
            bytes,
            executable: entry.mode.as_str() == "100755",
        });
    }
    if taken.is_empty() || taken.len() > FILES_MAX {
        return Err(CommandError::usage(format!(
            "workspace.files matches {} files; it must match 1 to {FILES_MAX}",
            taken.len()
        ))
        .hint("fix workspace.files in karve.toml"));
    }
    let message = format!("Extracted from {commit}\n");
    let note = CommitNote { message: &message, date: clock::now_s() };
    let (_, base) = git::init_with(&half_made, &taken, &note)?;
    // Under its final name it is always complete, even if karve is killed.
    fs::rename(&half_made, &path).context(|| format!("cannot create {}", path.display()))?;
    let repo = Repo::discover(&path)?.with_scratch(dir.join("tmp"));
    upstream.update_ref(&upstream_ref(charter), commit, ExpectedRef::Any)?;
    Ok(Some((repo, base, Provenance { commit: commit.to_string(), files: blobs })))
}

/// The original commit, and a commit on top of it with the editable files of the best kernel.
pub fn synced(
    upstream: &Repo,
    repo: &Repo,
    trees: &Worktrees,
    charter: &Charter,
    best: &str,
) -> Result<(Oid, Oid)> {
    let best = Oid::named(best)?;
    let name = upstream_ref(charter);
    let base = upstream.read_ref(&name)?.ok_or_else(|| {
        CommandError::environment(format!("the ref {name} is gone"))
            .hint("start a new campaign with \"karve run --new\"")
    })?;
    let globs = project_file::glob_set(&charter.editable)?;
    let tree = trees.fresh(upstream, "synced", base.as_str())?;
    for (file, bytes) in repo.read_matching(&best, &globs)? {
        let path = tree.join(&file);
        let cannot = || format!("cannot write {}", path.display());
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).context(cannot)?;
        }
        fs::write(&path, bytes).context(cannot)?;
    }
    let message = format!("[optimize] {}: synced from the workspace\n", charter.name);
    // A fixed date makes it the same commit each time.
    let note = CommitNote { message: &message, date: 0 };
    let made = upstream.commit_candidate(&tree, &base, &globs, &note)?;
    trees.remove(upstream, &tree)?;
    Ok((base, made.oid))
}
