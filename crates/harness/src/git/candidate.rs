//! A candidate: the parent's tree plus the worktree's editable files, as a commit.
//!
//! Contents are copied out of the worktree before git sees them, each file opened without following
//! links and checked to be where it seems to be. The tree is built in karve's own index. Modes are
//! the parent's; a new file is plain.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use globset::GlobSet;

use karve_os::error::{CommandError, ErrorKind, Result};

use super::call::text;
use super::change::{ChangeKind, ChangeRefusal, RawChange, WorktreeChange};
use super::compare::{has_crlf, on_disk, parent_of, read_in_place};
use super::history::{RawEntry, TreeDifference};
use super::objects::{commit_tree, hash_paths};
use super::survey::WorktreeSurvey;
use super::{CommitNote, FileMode, Oid, Repo, history};

/// What a candidate may include.
#[derive(Clone, Copy)]
pub struct CandidateFilter<'a> {
    /// The paths that may change.
    pub editable: &'a GlobSet,
    /// Whether some bytes contain what no candidate may include.
    pub forbids: &'a dyn Fn(&[u8]) -> bool,
}

/// A change that is not included, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedChange {
    /// The change.
    pub change: WorktreeChange,
    /// Why it is not included.
    pub why: ChangeRefusal,
}

/// A candidate commit, and what it leaves out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateCommit {
    /// The commit.
    pub oid: Oid,
    /// Its tree; the parent's tree if no editable file was changed.
    pub tree: Oid,
    /// The paths that differ from the parent, sorted.
    pub files: Vec<String>,
    /// The difference to the parent, binary files included.
    pub patch: Vec<u8>,
    /// Other changes in the worktree.
    pub out_of_scope: Vec<RefusedChange>,
    /// New editable files that the parent's ignore rules treat as build products; not included.
    pub ignored: Vec<String>,
}

/// A change that is included.
enum AcceptedChange {
    Removed { path: String },
    Written { path: String, mode: FileMode, kept: Vec<u8> },
}

impl Repo {
    /// Commits a worktree's editable files on top of a parent.
    pub fn commit_candidate(
        &self,
        worktree: &Path,
        parent: &Oid,
        editable: &GlobSet,
        note: &CommitNote<'_>,
    ) -> Result<CandidateCommit> {
        let forbids = &|_: &[u8]| false;
        self.commit_within(worktree, parent, CandidateFilter { editable, forbids }, note)
    }

    /// The same, without files that contain forbidden bytes: git never sees them.
    pub fn commit_within(
        &self,
        worktree: &Path,
        parent: &Oid,
        terms: CandidateFilter<'_>,
        note: &CommitNote<'_>,
    ) -> Result<CandidateCommit> {
        let editable = terms.editable;
        let mut survey = self.survey(worktree, parent)?;
        let (taken, out_of_scope) = self.take(&survey, terms)?;
        let tree = if taken.is_empty() {
            self.tree_of(parent)?
        } else {
            survey.scratch.load(self, parent)?;
            self.write_tree(&survey.scratch.index(), &taken, parent)?
        };
        let oid = commit_tree(self.call(), &tree, Some(parent), note)?;
        let (changed, patch) = if taken.is_empty() {
            (Vec::new(), Vec::new())
        } else {
            self.changes_between(parent, &tree)?
        };
        let entries = Arc::new(history::with_changes(&survey.entries, &changed));
        self.memory.keep_listing(&oid, &entries);
        let files: Vec<String> = changed.iter().map(TreeDifference::path).collect();
        // A candidate must never change a read-only file, so this is checked again.
        if let Some(path) = files.iter().find(|path| !editable.is_match(path)) {
            let message = format!("the candidate changes {path}, which is not editable");
            return Err(CommandError::new(ErrorKind::Bug, message));
        }
        let ignored = survey.ignored.iter().map(|found| text(&found.path));
        let ignored = ignored.filter(|path| editable.is_match(path)).collect();
        Ok(CandidateCommit { oid, tree, files, patch, out_of_scope, ignored })
    }

    /// Decides what is included, and copies it.
    fn take(
        &self,
        survey: &WorktreeSurvey,
        terms: CandidateFilter<'_>,
    ) -> Result<(Vec<AcceptedChange>, Vec<RefusedChange>)> {
        let editable = terms.editable;
        let mut taken = Vec::new();
        let mut refused = Vec::new();
        let remaining = remaining(survey, editable);
        for (n, found) in survey.found.iter().enumerate() {
            let path = text(&found.path);
            let refusal = refusal(found, editable).or_else(|| {
                (!found.tracked && is_in_the_way(&remaining, &found.path))
                    .then_some(ChangeRefusal::InTheWay)
            });
            let result = match (refusal, found.kind) {
                (Some(why), _) => Err(why),
                (None, ChangeKind::Deleted) => Ok(AcceptedChange::Removed { path }),
                // The executable bit of an editable file stays; changing it alone is not a change.
                (None, ChangeKind::ModeChanged) => continue,
                (None, _) if (terms.forbids)(&found.path) => Err(ChangeRefusal::HoldsKey),
                (None, _) => match read_in_place(&survey.root, &found.path) {
                    Ok(bytes) if (terms.forbids)(&bytes) => Err(ChangeRefusal::HoldsKey),
                    Ok(bytes) => {
                        let bytes = self.with_parents_line_endings(survey, found, bytes)?;
                        let kept = survey.scratch.keep(&format!("file-{n}"), &bytes)?;
                        let mode = mode_in(&survey.entries, found);
                        Ok(AcceptedChange::Written { path, mode, kept })
                    }
                    Err(why) => Err(why),
                },
            };
            match result {
                Ok(change) => taken.push(change),
                Err(why) => refused.push(RefusedChange { change: found.change(), why }),
            }
        }
        Ok((taken, refused))
    }

    /// The contents of a file, with line endings as the parent stores them.
    fn with_parents_line_endings(
        &self,
        survey: &WorktreeSurvey,
        found: &RawChange,
        bytes: Vec<u8>,
    ) -> Result<Vec<u8>> {
        match found.tracked && self.is_checked_out_with_crlf(survey, found)? {
            true => Ok(without_crlf(&bytes)),
            false => Ok(bytes),
        }
    }

    /// Whether checkout converted the line endings of the parent's file to CRLF; then the
    /// candidate's are converted back, or every line would differ.
    fn is_checked_out_with_crlf(&self, survey: &WorktreeSurvey, found: &RawChange) -> Result<bool> {
        let shadow = on_disk(&survey.scratch.shadow(), &found.path);
        let Ok(expected) = fs::read(shadow) else {
            return Ok(false);
        };
        let entry = survey.entries.iter().find(|entry| entry.path == found.path);
        let (Some(entry), true) = (entry, has_crlf(&expected)) else {
            return Ok(false);
        };
        let stored = self.call().args(["cat-file", "blob", entry.oid.as_str()]).output()?;
        Ok(!has_crlf(&stored) && without_crlf(&expected) == stored)
    }

    /// Writes the parent's tree with the changes.
    fn write_tree(&self, index: &Path, taken: &[AcceptedChange], parent: &Oid) -> Result<Oid> {
        let kept: Vec<&[u8]> = taken
            .iter()
            .filter_map(|change| match change {
                AcceptedChange::Written { kept, .. } => Some(kept.as_slice()),
                AcceptedChange::Removed { .. } => None,
            })
            .collect();
        let mut oids = hash_paths(self.call().args(["hash-object", "-w"]), &kept)?.into_iter();
        // Removals first: a file may replace a directory.
        let mut lines = String::new();
        let mut written = String::new();
        for change in taken {
            match change {
                AcceptedChange::Removed { path } => {
                    lines += &format!("0 {}\t{path}\0", parent.zero())
                }
                AcceptedChange::Written { path, mode, .. } => {
                    let oid = oids.next().map(|oid| oid.to_string()).unwrap_or_default();
                    written += &format!("{} {oid}\t{path}\0", mode.as_str());
                }
            }
        }
        lines += &written;
        let call = || self.call().index(index);
        call()?.args(["update-index", "-z", "--index-info"]).stdin(lines).effect()?;
        call()?.arg("write-tree").oid()
    }
}

/// Why a change must not be included, judging by the change alone.
fn refusal(found: &RawChange, editable: &GlobSet) -> Option<ChangeRefusal> {
    let Ok(path) = std::str::from_utf8(&found.path) else {
        return Some(ChangeRefusal::BadName);
    };
    if !editable.is_match(path) {
        return Some(match found.obstacle {
            Some(why @ (ChangeRefusal::InSubmodule | ChangeRefusal::TooMany)) => why,
            _ => ChangeRefusal::NotEditable,
        });
    }
    if let Some(why) = found.obstacle {
        return Some(why);
    }
    if path.split(['/', '\\']).any(is_gits_own) {
        return Some(ChangeRefusal::GitsOwn);
    }
    (!found.mode.is_file()).then_some(ChangeRefusal::NotAFile)
}

/// Whether a name starts like git's own files, or is one that git refuses on some file systems.
fn is_gits_own(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with(".git") || name.starts_with("git~")
}

/// The paths of the parent that stay, whatever is added.
fn remaining<'a>(survey: &'a WorktreeSurvey, editable: &GlobSet) -> BTreeSet<&'a [u8]> {
    let goes: BTreeSet<&[u8]> = survey
        .found
        .iter()
        .filter(|found| found.kind == ChangeKind::Deleted && refusal(found, editable).is_none())
        .map(|found| found.path.as_slice())
        .collect();
    let paths = survey.entries.iter().map(|entry| entry.path.as_slice());
    paths.filter(|path| !goes.contains(path)).collect()
}

/// Whether a new file would displace one that stays: a file where it needs a directory, or
/// a directory at its own path. Git would silently drop the old one.
fn is_in_the_way(remaining: &BTreeSet<&[u8]>, path: &[u8]) -> bool {
    let mut dir = parent_of(path);
    while !dir.is_empty() {
        if remaining.contains(dir) {
            return true;
        }
        dir = parent_of(dir);
    }
    let below = [path, b"/"].concat();
    remaining.range(below.as_slice()..).next().is_some_and(|path| path.starts_with(&below))
}

/// The mode that a file has in the candidate.
fn mode_in(entries: &[RawEntry], found: &RawChange) -> FileMode {
    let entry = entries.iter().find(|entry| entry.path == found.path);
    entry.map_or(FileMode::File, |entry| entry.mode)
}

fn without_crlf(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for (n, byte) in bytes.iter().enumerate() {
        if *byte != b'\r' || bytes.get(n + 1) != Some(&b'\n') {
            out.push(*byte);
        }
    }
    out
}
