//! Whether a campaign can start with a charter: a file is editable, and the branch is free.

use karve_core::charter::{Branch, Charter, WorkMode};
use karve_harness::git::{Oid, Repo};
use karve_harness::project_file;
use karve_os::error::{CommandError, Result};

/// Refuses a charter that no campaign can start with, before anything is written: a charter in the
/// log can no longer be fixed.
pub fn can_start(upstream: &Repo, charter: &Charter) -> Result<()> {
    check_editable(upstream, upstream.head()?.oid(), charter)?;
    match charter.mode {
        WorkMode::Repo => check_branch(upstream, charter),
        WorkMode::Workspace { .. } => Ok(()),
    }
}

/// Refuses a checked-out branch, which would change under the user.
pub(crate) fn check_branch(repo: &Repo, charter: &Charter) -> Result<()> {
    let Branch::Named { name } = &charter.branch else {
        return Ok(());
    };
    let Some(path) = repo.checked_out(name)? else {
        return Ok(());
    };
    Err(CommandError::usage(format!("the branch {name} is checked out in {}", path.display()))
        .hint("switch that checkout to another branch, or set git.branch in karve.toml"))
}

/// At least one file must be editable, or no candidate can exist.
pub fn check_editable(repo: &Repo, base: &Oid, charter: &Charter) -> Result<()> {
    let globs = project_file::glob_set(&charter.editable)?;
    if repo.list_files(base)?.iter().any(|file| globs.is_match(file)) {
        return Ok(());
    }
    Err(CommandError::usage(format!(
        "no committed file matches sources.editable ({})",
        charter.editable.join(", ")
    ))
    .hint("commit the kernel, or fix sources.editable in karve.toml"))
}
