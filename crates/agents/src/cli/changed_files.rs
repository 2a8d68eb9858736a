//! What a turn left in its worktree: which files changed during the turn.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Most files and directories that are checked.
const ENTRIES_MAX: usize = 200_000;

/// When a file last changed in any way (ctime); a program cannot set it.
pub(super) fn changed_at(path: &Path) -> Option<(i64, i64)> {
    let data = fs::symlink_metadata(path).ok()?;
    Some((data.ctime(), data.ctime_nsec()))
}

/// The files of a worktree that changed after a point in time, and directories from which
/// something was removed. Git's own files are left out.
pub(super) fn changed(tree: &Path, since: (i64, i64)) -> Vec<PathBuf> {
    let mut changed = Vec::new();
    let mut dirs = vec![tree.to_owned()];
    let mut seen = 0;
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            seen += 1;
            if seen > ENTRIES_MAX {
                return changed;
            }
            let path = entry.path();
            if entry.file_name() == ".git" {
                continue;
            }
            if changed_at(&path).is_some_and(|at| at > since) {
                changed.push(path.clone());
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                dirs.push(path);
            }
        }
    }
    if changed.is_empty() && changed_at(tree).is_some_and(|at| at > since) {
        changed.push(tree.to_owned());
    }
    changed
}
