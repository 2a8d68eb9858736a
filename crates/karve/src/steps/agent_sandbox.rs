//! The folder `sandbox/` of tilegym: an agent finds it in its worktree with `perf_results.md` and
//! what it left there in earlier rounds; nothing of it is committed.

use super::context::Context;
use karve_core::policy::Preset;
use karve_os::error::Result;
use karve_os::files;
use std::fs;
use std::path::{Path, PathBuf};

/// The folder, in a worktree and in the directory of the campaign.
const FOLDER: &str = "sandbox";
/// Where the agent's own files are between rounds.
const KEPT: &str = "sandbox-files";
/// What karve writes itself.
const RESULTS: &str = "perf_results.md";
/// Files that are kept, and bytes of each.
const FILES_MAX: usize = 64;
const BYTES_MAX: u64 = 1 << 20;

/// The folder of a worktree, if the workflow has one and the project does not.
fn folder(context: &Context, tree: &Path) -> Option<PathBuf> {
    let is_tilegym = context.charter.policy.preset == Preset::Tilegym;
    let folder = tree.join(&context.charter.workdir).join(FOLDER);
    (is_tilegym && fs::symlink_metadata(&folder).is_err()).then_some(folder)
}

/// Puts the folder into a fresh worktree; returns it, if there is one.
pub(super) fn put(context: &Context, tree: &Path) -> Result<Option<PathBuf>> {
    let Some(folder) = folder(context, tree) else {
        return Ok(None);
    };
    for file in plain_files(&context.dir.join(KEPT)) {
        copy(&file, &folder)?;
    }
    copy(&context.dir.join(FOLDER).join(RESULTS), &folder)?;
    Ok(Some(folder))
}

/// Keeps what an external agent left in its last workspace. A fresh worktree shows whether the
/// folder belongs to the project instead.
pub(super) fn keep(context: &Context, workspace: &Path, fresh: &Path) -> Result<()> {
    let left = workspace.join(&context.charter.workdir).join(FOLDER);
    // Links on the way would lead elsewhere.
    let is_inside = files::settled(&left).starts_with(files::settled(workspace));
    match folder(context, fresh) {
        Some(_) if is_inside => keep_files(context, &left),
        _ => Ok(()),
    }
}

/// Takes what an agent left in the folder, and removes it from the worktree.
pub(super) fn take(context: &Context, folder: Option<&Path>) -> Result<()> {
    let Some(folder) = folder else {
        return Ok(());
    };
    keep_files(context, folder)?;
    // A link in its place would lead elsewhere.
    if fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_dir()) {
        let _ = fs::remove_dir_all(folder);
    }
    Ok(())
}

fn keep_files(context: &Context, folder: &Path) -> Result<()> {
    let kept = context.dir.join(KEPT);
    for file in plain_files(folder) {
        if file.file_name().is_some_and(|name| name != RESULTS) {
            copy(&file, &kept)?;
        }
    }
    Ok(())
}

/// The first plain files of a directory, by name.
fn plain_files(dir: &Path) -> Vec<PathBuf> {
    let is_dir = fs::symlink_metadata(dir).is_ok_and(|meta| meta.is_dir());
    let entries = is_dir.then(|| fs::read_dir(dir).ok()).flatten().into_iter().flatten();
    let plain =
        entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let mut files: Vec<PathBuf> = plain.map(|entry| entry.path()).take(FILES_MAX).collect();
    files.sort();
    files
}

/// Copies a file that is there and not too large.
fn copy(file: &Path, to: &Path) -> Result<()> {
    let (Ok(bytes), Some(name)) = (files::read(file, BYTES_MAX), file.file_name()) else {
        return Ok(());
    };
    files::write_derived(&to.join(name), &bytes)
}
