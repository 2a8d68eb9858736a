//! The files of a worktree that are not in a tree.
//!
//! The walk follows no link. Which new files are ignored is decided by the rules of the tree, not
//! by those in the worktree: a rule file written by an agent could hide itself and everything else.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use karve_os::error::Result;

use super::call::nul_separated;
use super::change::{ChangeKind, ChangeRefusal, RawChange};
use super::compare::{mode_of, on_disk};
use super::history::RawEntry;
use super::{FileMode, Repo};

/// The maximum number of new files and directories to look at; a build creates far fewer.
const N_NEW_MAX: usize = 200_000;

/// Finds what is in a worktree and not in the tree.
pub(super) fn new_files(root: &Path, entries: &[RawEntry]) -> Vec<RawChange> {
    let known: BTreeMap<&[u8], FileMode> =
        entries.iter().map(|entry| (entry.path.as_slice(), entry.mode)).collect();
    let mut all = Vec::new();
    let mut n_dirs_new = 0;
    let mut stack: Vec<Vec<u8>> = Vec::new();
    if root.symlink_metadata().is_ok_and(|data| data.is_dir()) {
        stack.push(Vec::new());
    }
    while let Some(dir) = stack.pop() {
        if all.len() + n_dirs_new > N_NEW_MAX {
            all.push(new(dir, FileMode::Other, Some(ChangeRefusal::TooMany)));
            break;
        }
        let has_known = has_below(&known, &dir);
        n_dirs_new += usize::from(!has_known);
        let Ok(children) = children(root, &dir) else {
            all.push(new(dir, FileMode::Other, Some(ChangeRefusal::Unreadable)));
            continue;
        };
        let nested = !dir.is_empty() && children.iter().any(|(name, _)| name == b".git");
        if nested {
            all.push(new(dir.clone(), FileMode::Gitlink, Some(ChangeRefusal::NotAFile)));
        }
        // A repository around a known file must not hide that file's new neighbors.
        if nested && !has_known {
            continue;
        }
        for (name, mode) in children.into_iter().filter(|(name, _)| name != b".git") {
            let path = if dir.is_empty() { name } else { [&dir[..], b"/", &name].concat() };
            match (mode, known.get(path.as_slice())) {
                (None, Some(FileMode::Gitlink)) => {}
                (None, _) => stack.push(path),
                (Some(_), Some(_)) => {}
                (Some(mode), None) => all.push(new(path, mode, None)),
            }
        }
    }
    all
}

/// The names in a directory, with the kind of each; `None` means a directory.
fn children(root: &Path, dir: &[u8]) -> std::io::Result<Vec<(Vec<u8>, Option<FileMode>)>> {
    let mut children = Vec::new();
    for entry in fs::read_dir(on_disk(root, dir))? {
        let entry = entry?;
        let mode = match entry.metadata() {
            Ok(data) if data.is_dir() => None,
            Ok(data) => Some(mode_of(&data)),
            Err(_) => Some(FileMode::Other),
        };
        children.push((entry.file_name().as_bytes().to_vec(), mode));
    }
    // The order of the file system differs from machine to machine.
    children.sort();
    Ok(children)
}

fn new(path: Vec<u8>, mode: FileMode, obstacle: Option<ChangeRefusal>) -> RawChange {
    RawChange { path, kind: ChangeKind::Added, mode, tracked: false, obstacle }
}

/// Whether the tree has something below a directory.
fn has_below(known: &BTreeMap<&[u8], FileMode>, dir: &[u8]) -> bool {
    if dir.is_empty() {
        return true;
    }
    let start = [dir, b"/"].concat();
    known.range(start.as_slice()..).next().is_some_and(|(path, _)| path.starts_with(&start))
}

/// The files of the tree that say what is ignored.
pub(super) fn ignore_rules(entries: &[RawEntry]) -> Vec<&[u8]> {
    entries
        .iter()
        .filter(|entry| entry.mode.is_file())
        .map(|entry| entry.path.as_slice())
        .filter(|path| *path == b".gitignore" || path.ends_with(b"/.gitignore"))
        .collect()
}

/// Splits new files into those that the rules in the shadow hide, and the others.
pub(super) fn split_ignored(
    repo: &Repo,
    shadow: &Path,
    new: Vec<RawChange>,
) -> Result<(Vec<RawChange>, Vec<RawChange>)> {
    if new.is_empty() {
        return Ok((Vec::new(), new));
    }
    let mut names = Vec::new();
    for found in &new {
        // This command reads ":(top)x" as a pathspec, but not after a "./".
        names.extend(b"./");
        names.extend(&found.path);
        names.push(0);
    }
    let answer = repo
        .call()
        .work_tree(shadow)
        .env("GIT_LITERAL_PATHSPECS", "0")
        .args(["check-ignore", "--no-index", "-z", "--stdin"])
        .stdin(names)
        .ask()?;
    // Exit code 1 means that none is ignored.
    if !matches!(answer.code, 0 | 1) {
        return Err(answer.into_error("git check-ignore failed"));
    }
    let hidden: HashSet<&[u8]> =
        nul_separated(&answer.stdout).filter_map(|name| name.strip_prefix(b"./")).collect();
    Ok(new.into_iter().partition(|found| hidden.contains(found.path.as_slice())))
}
