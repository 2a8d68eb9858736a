//! A directory for the time of one command, in which it builds and measures.
//!
//! It goes with the command. If karve is killed, its sweeper removes it, and if that is killed too,
//! the next command that needs such a directory does. A file in it names its karve and the
//! repositories that have worktrees in it. The file is locked as long as that karve lives: what can
//! be locked has no owner any more.

use crate::error::{Context, Result};
use crate::git::Repo;
use crate::process;
use crate::trees::{self, Trees};
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
pub enum Kind {
    /// A trial of agents.
    Agents,
    /// A bench, or equal sides for the noise.
    Bench,
    /// A check of the worktree.
    Check,
    /// The examination of a project.
    Doctor,
    /// The settings of a tuning run.
    Tune,
}

impl Kind {
    const ALL: [Self; 5] = [
        Self::Agents,
        Self::Bench,
        Self::Check,
        Self::Doctor,
        Self::Tune,
    ];

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
struct Owner {
    mark: String,
    repos: Vec<PathBuf>,
}

/// The directory; removed when dropped.
#[derive(Debug)]
pub struct Scratch {
    dir: TempDir,
    /// Locked while we live, and let go when the directory is gone.
    _owner: File,
}

impl Scratch {
    /// Makes one, for worktrees of some repositories, and removes what dead ones left.
    pub fn new(kind: Kind, repos: &[&Repo]) -> Result<Self> {
        sweep(|_| true);
        repos.iter().for_each(|repo| sweep_entries(repo));
        let cannot = || "cannot make a scratch directory".to_owned();
        let dir = tempfile::Builder::new()
            .prefix(&kind.prefix())
            .tempdir()
            .context(cannot)?;
        let mut repos: Vec<PathBuf> = repos.iter().map(|repo| repo.root().to_owned()).collect();
        repos.dedup();
        let owner = Owner {
            mark: process::own_mark().to_owned(),
            repos,
        };
        let mut file = File::create_new(dir.path().join(OWNER)).context(cannot)?;
        // Locked first: a file that says nothing yet is nobody's to remove.
        file.lock().context(cannot)?;
        let text = serde_json::to_vec(&owner).context(cannot)?;
        file.write_all(&text).context(cannot)?;
        Ok(Self { dir, _owner: file })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// What its commands are tagged with.
    pub fn tag(&self) -> String {
        self.path().to_string_lossy().into_owned()
    }
}

/// Removes what one dead karve left, by its mark.
pub fn sweep_after(mark: &str) {
    sweep(|owner| owner.mark == mark);
}

/// Removes the directories whose karve is dead, and the worktrees in them. What cannot be removed
/// is left for the next time.
fn sweep(is_meant: impl Fn(&Owner) -> bool) {
    let entries = fs::read_dir(std::env::temp_dir()).into_iter().flatten();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_dir || !is_ours(&name.to_string_lossy()) {
            continue;
        }
        // The lock is held meanwhile, so that one karve at a time removes it.
        if let Some((owner, _lock)) = dead_owner(&entry.path())
            && is_meant(&owner)
        {
            remove(&entry.path(), &owner);
        }
    }
}

fn is_ours(name: &str) -> bool {
    Kind::ALL
        .iter()
        .any(|kind| name.starts_with(&kind.prefix()))
}

/// The owner of a directory, if it is dead.
fn dead_owner(dir: &Path) -> Option<(Owner, File)> {
    let path = dir.join(OWNER);
    // What another user made is theirs to remove, whatever it says.
    let me = fs::metadata("/proc/self").ok()?.uid();
    let data = fs::symlink_metadata(&path).ok()?;
    if !data.is_file() || data.uid() != me || fs::symlink_metadata(dir).ok()?.uid() != me {
        return None;
    }
    let file = File::open(path).ok()?;
    file.try_lock().ok()?;
    let mut text = Vec::new();
    let mut reader = (&file).take(OWNER_BYTES_MAX);
    reader.read_to_end(&mut text).ok()?;
    Some((serde_json::from_slice(&text).ok()?, file))
}

fn remove(dir: &Path, owner: &Owner) {
    process::end_tagged(&dir.to_string_lossy());
    for repo in &owner.repos {
        let Ok(repo) = Repo::discover(repo) else {
            continue;
        };
        let sides = fs::read_dir(dir.join("worktrees")).into_iter().flatten();
        let all = fs::read_dir(dir).into_iter().flatten().chain(sides);
        for entry in all.flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                // That is how the worktrees of an earlier process are removed.
                let _ = Trees::new(&repo, entry.path());
            }
        }
        let _ = repo.prune_under(dir);
    }
    let _ = fs::remove_dir_all(dir);
}

/// Removes the entries of worktrees whose directory is gone, such as after a restart of the host:
/// their path is one that only karve makes.
fn sweep_entries(repo: &Repo) {
    for path in repo.worktree_paths().unwrap_or_default() {
        let is_made_here = path.ancestors().skip(2).any(|dir| {
            let name = dir.file_name().unwrap_or_default();
            is_ours(&name.to_string_lossy()) && !dir.exists()
        });
        if is_made_here && trees::is_named_by_us(&path) {
            let _ = repo.worktree_remove(&path);
        }
    }
}
