//! The digest of the read-only files, by which a change of the harness is noticed.

use karve_harness::git::{Oid, Repo};
use karve_harness::project_file;
use karve_os::error::Result;
use karve_os::files;

/// One digest of all read-only files of a commit.
pub fn harness_hash(repo: &Repo, commit: &Oid, editable: &[String]) -> Result<String> {
    let globs = project_file::glob_set(editable)?;
    let mut list = String::new();
    for entry in repo.entries_outside(commit, &globs)? {
        list.push_str(&format!("{} {} {}\n", entry.mode.as_str(), entry.oid, entry.path));
    }
    Ok(files::sha256_hex(list.as_bytes()))
}
