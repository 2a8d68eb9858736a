//! A temporary directory in which one command builds and measures.
//!
//! It is removed with the command. If karve is killed, its reaper removes it, and if that is killed
//! too, the next command that needs such a directory does. A file in it names its karve process and
//! the repositories that have worktrees in it. The file is locked as long as that process lives: if
//! it can be locked, its owner is dead. The directory's name identifies the owner too, for the
//! moment before the file exists; in that moment only the owner's reaper may remove it.

use crate::git::Repo;
use crate::worktrees::{self, Worktrees};
use karve_os::error::{Result, WithContext};
use karve_os::process;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// How the name of each starts, before the kind.
const PREFIX: &str = "karve-";

/// The file that names the owner.
const OWNER: &str = "owner";

/// The owner's file is read up to this size.
const OWNER_BYTES_MAX: u64 = 64 << 10;

/// What the directory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScratchKind {
    /// A trial of agents.
    Agents,
    /// A bench, or an A/A test for the noise.
    Bench,
    /// A check of the worktree.
    Check,
    /// The inspection of a project.
    Doctor,
    /// The settings of a tuning run.
    Tune,
}

impl ScratchKind {
    const ALL: [Self; 5] = [Self::Agents, Self::Bench, Self::Check, Self::Doctor, Self::Tune];

    fn word(self) -> &'static str {
        match self {
            Self::Agents => "agents",
            Self::Bench => "bench",
            Self::Check => "check",
            Self::Doctor => "doctor",
            Self::Tune => "tune",
        }
    }

    fn prefix(self) -> String {
        format!("{PREFIX}{}-", self.word())
    }
}

/// Who owns a directory, and where worktrees in it are registered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct ScratchOwner {
    mark: String,
    repos: Vec<PathBuf>,
}

/// The directory; removed when dropped.
#[derive(Debug)]
pub struct ScratchDir {
    dir: TempDir,
    /// Locked while we live, and released when the directory is gone.
    _owner: File,
}

impl ScratchDir {
    /// Creates one, for worktrees of some repositories, and removes what dead processes left.
    pub fn new(kind: ScratchKind, repos: &[&Repo]) -> Result<Self> {
        sweep(|_| true);
        repos.iter().for_each(|repo| sweep_entries(repo));
        let cannot = || "cannot create a scratch directory".to_owned();
        let dir = tempfile::Builder::new()
            .prefix(&format!("{}{}", kind.prefix(), in_name(process::own_mark())))
            .tempdir()
            .context(cannot)?;
        let mut repos: Vec<PathBuf> = repos.iter().map(|repo| repo.root().to_owned()).collect();
        repos.dedup();
        let owner = ScratchOwner { mark: process::own_mark().to_owned(), repos };
        let mut file = File::create_new(dir.path().join(OWNER)).context(cannot)?;
        // Locked first: an empty file must not be removed by others.
        file.lock().context(cannot)?;
        let text = serde_json::to_vec(&owner).context(cannot)?;
        file.write_all(&text).context(cannot)?;
        Ok(Self { dir, _owner: file })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The tag of its commands.
    pub fn tag(&self) -> String {
        self.path().to_string_lossy().into_owned()
    }
}

/// Removes what one dead karve process left, by its mark.
pub fn remove_leftovers_of(mark: &str) {
    sweep(|owner| owner.mark == mark);
    for (name, dir) in directories() {
        if of_karve(&name, mark) && is_mine(&dir) && is_nameless(&dir) {
            remove(&dir, &ScratchOwner::default());
        }
    }
}

/// How a name identifies the karve process: by the last part of its mark, which is unique.
fn in_name(mark: &str) -> String {
    format!("{}-", mark.rsplit('/').next().unwrap_or(mark))
}

fn of_karve(name: &str, mark: &str) -> bool {
    let rest = |kind: &ScratchKind| name.strip_prefix(&kind.prefix());
    let mut rests = ScratchKind::ALL.iter().filter_map(rest);
    rests.any(|rest| rest.starts_with(&in_name(mark)))
}

/// Whether this user created it: another user's directory is theirs to remove.
fn is_mine(path: &Path) -> bool {
    let made_by = fs::symlink_metadata(path).map(|data| data.uid());
    let me = fs::metadata("/proc/self").map(|data| data.uid());
    made_by.is_ok_and(|made_by| me.is_ok_and(|me| me == made_by))
}

/// Whether the file that names the owner is missing or empty.
fn is_nameless(dir: &Path) -> bool {
    fs::metadata(dir.join(OWNER)).map_or(true, |data| data.len() == 0)
}

/// The directories of all karve processes, with their names.
fn directories() -> impl Iterator<Item = (String, PathBuf)> {
    let entries = fs::read_dir(std::env::temp_dir()).into_iter().flatten();
    entries.flatten().filter_map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        (is_dir && is_ours(&name)).then(|| (name, entry.path()))
    })
}

/// Removes the directories whose karve process is dead, and the worktrees in them. What cannot be
/// removed is left for the next time.
fn sweep(is_meant: impl Fn(&ScratchOwner) -> bool) {
    for (_, dir) in directories() {
        // The lock is held meanwhile, so that only one karve process removes it.
        if let Some((owner, _lock)) = dead_owner(&dir)
            && is_meant(&owner)
        {
            remove(&dir, &owner);
        }
    }
}

fn is_ours(name: &str) -> bool {
    ScratchKind::ALL.iter().any(|kind| name.starts_with(&kind.prefix()))
}

/// The owner of a directory, if it is dead.
fn dead_owner(dir: &Path) -> Option<(ScratchOwner, File)> {
    let path = dir.join(OWNER);
    let is_file = fs::symlink_metadata(&path).is_ok_and(|data| data.is_file());
    if !is_file || !is_mine(&path) || !is_mine(dir) {
        return None;
    }
    let file = File::open(path).ok()?;
    file.try_lock().ok()?;
    let mut text = Vec::new();
    let mut reader = (&file).take(OWNER_BYTES_MAX);
    reader.read_to_end(&mut text).ok()?;
    Some((serde_json::from_slice(&text).ok()?, file))
}

fn remove(dir: &Path, owner: &ScratchOwner) {
    process::end_tagged(&dir.to_string_lossy());
    for repo in &owner.repos {
        let Ok(repo) = Repo::discover(repo) else {
            continue;
        };
        let sides = fs::read_dir(dir.join("worktrees")).into_iter().flatten();
        let all = fs::read_dir(dir).into_iter().flatten().chain(sides);
        for entry in all.flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                // This removes the worktrees of an earlier process.
                let _ = Worktrees::new(&repo, entry.path());
            }
        }
        let _ = repo.prune_under(dir);
    }
    let _ = fs::remove_dir_all(dir);
}

/// Removes the entries of worktrees whose directory is gone, such as after a restart of the host:
/// only karve creates such paths.
fn sweep_entries(repo: &Repo) {
    for path in repo.worktree_paths().unwrap_or_default() {
        let is_made_here = path.ancestors().skip(2).any(|dir| {
            let name = dir.file_name().unwrap_or_default();
            is_ours(&name.to_string_lossy()) && !dir.exists()
        });
        if is_made_here && worktrees::is_named_by_us(&path) {
            let _ = repo.worktree_remove(&path);
        }
    }
}
