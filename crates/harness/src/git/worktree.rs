//! Worktrees: created detached, removed completely, whatever an agent or a crash left behind.
//!
//! A worktree is two directories: the files at its path, and an entry `worktrees/<id>` in the
//! common directory whose file `gitdir` holds that path. `git worktree remove` and `prune` are not
//! used. The first trusts the `.git` file of the worktree and refuses one that an agent edited or
//! that a crash left half made; the second would also drop a worktree of the user's on a disk
//! that is not mounted right now. Removing both directories is all that they do.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::io::ErrorKind as Io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io, thread};

use karve_os::error::{CommandError, ErrorKind, Result, WithContext};

use super::call::{GitCall, one_line};
use super::{Oid, Repo};

/// How often a removal is tried while a dying process still writes into the directory.
const REMOVE_TRIES: u32 = 5;

/// How often to try to create a worktree, and the first pause between two tries; each pause is
/// twice the previous one. When karve is killed, the git that it started keeps running for a while,
/// and writes into the entry that is being recreated.
const ADD_TRIES: u32 = 5;
const ADD_PAUSE: Duration = Duration::from_millis(50);

/// How long an empty entry is left alone: another karve process may be creating it right now, which
/// takes milliseconds; and until it is removed it does no harm.
const SILENT_AGE: Duration = Duration::from_secs(60);

/// How many worktrees of the same name a repository can have.
const ENTRIES_MAX: u32 = 10_000;

/// A worktree as the repository knows it.
struct WorktreeEntry {
    dir: PathBuf,
    path: PathBuf,
}

impl Repo {
    /// Creates a worktree of a commit, without a branch; whatever is at the path is removed first.
    /// Submodules that the user's checkout has are filled from there.
    pub fn worktree_add(&self, path: &Path, oid: &Oid) -> Result<()> {
        let mut pause = ADD_PAUSE;
        for _ in 1..ADD_TRIES {
            if self.worktree_add_once(path, oid).is_ok() {
                return self.fill_submodules(path, oid);
            }
            thread::sleep(pause);
            pause *= 2;
        }
        self.worktree_add_once(path, oid).map_err(|error| {
            let parent = path.parent().unwrap_or(path).display();
            error.hint(format!("\"df {parent}\" shows whether the disk is full; then try again"))
        })?;
        self.fill_submodules(path, oid)
    }

    /// Creates a worktree of a commit on a new branch, for the user.
    pub fn worktree_on_branch(&self, path: &Path, branch: &str, oid: &Oid) -> Result<()> {
        let command = self.call().own_index().args(["worktree", "add", "--quiet", "-b", branch]);
        command.arg(path).arg(oid.as_str()).effect()?;
        self.fill_submodules(path, oid)
    }

    fn worktree_add_once(&self, path: &Path, oid: &Oid) -> Result<()> {
        self.worktree_remove(path)?;
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).context(|| format!("cannot create {}", parent.display()))?;
        }
        let path = settled(path);
        if self.common_dir.join("reftable").exists() {
            // This leaves it to git where a worktree keeps its HEAD.
            return self
                .call()
                .own_index()
                .args(["worktree", "add", "--quiet", "--force", "--detach"])
                .arg(path)
                .arg(oid.as_str())
                .effect();
        }
        let entry = self.make_entry(&path, oid)?;
        GitCall::on(&entry)
            .own_index()
            .work_tree(&path)
            .args(["read-tree", "--reset", "-u", oid.as_str()])
            .effect()?;
        let lock = entry.join("locked");
        fs::remove_file(&lock).context(|| format!("cannot remove {}", lock.display()))
    }

    /// Creates the two directories of a worktree as `git worktree add` does, which starts three
    /// processes for it; a round creates two worktrees.
    fn make_entry(&self, path: &Path, oid: &Oid) -> Result<PathBuf> {
        let all = self.common_dir.join("worktrees");
        let cannot = || format!("cannot create {}", path.display());
        fs::create_dir_all(&all).context(cannot)?;
        let entry = free_entry(&all, path).context(cannot)?;
        // As long as this exists, "git worktree prune" leaves the entry alone.
        fs::write(entry.join("locked"), "initializing").context(cannot)?;
        let link = path.join(".git");
        let line = |path: &Path| [path.as_os_str().as_bytes(), b"\n"].concat();
        fs::write(entry.join("gitdir"), line(&link)).context(cannot)?;
        fs::write(entry.join("commondir"), "../..\n").context(cannot)?;
        fs::write(entry.join("HEAD"), format!("{oid}\n")).context(cannot)?;
        fs::create_dir(path).context(cannot)?;
        fs::write(link, [b"gitdir: ", line(&entry).as_slice()].concat()).context(cannot)?;
        Ok(entry)
    }

    /// Removes a worktree, its files and its entry; a missing one counts as removed.
    pub fn worktree_remove(&self, path: &Path) -> Result<()> {
        let path = settled(path);
        if self.root.starts_with(&path) || self.common_dir.starts_with(&path) {
            let message = format!("refused to remove {}: it is the user's", path.display());
            return Err(CommandError::new(ErrorKind::Bug, message));
        }
        remove_all(&path)?;
        for entry in self.entries()? {
            if entry.path == path {
                remove_all(&entry.dir)?;
            }
        }
        self.remove_half_made(&path)
    }

    /// The worktrees besides the main checkout, with the commit that each has checked out.
    pub fn worktrees(&self) -> Result<Vec<(PathBuf, Oid)>> {
        let mut worktrees = Vec::new();
        for entry in self.entries()? {
            let head = GitCall::on(&entry.dir).args(["rev-parse", "--verify", "--quiet", "HEAD"]);
            let answer = head.ask()?;
            // One that a crash left half made has no commit yet.
            if let Some(oid) = Oid::parse(&String::from_utf8_lossy(&one_line(answer.stdout))) {
                worktrees.push((entry.path, oid));
            }
        }
        Ok(worktrees)
    }

    /// Where the worktrees besides the main checkout are, or were.
    pub fn worktree_paths(&self) -> Result<Vec<PathBuf>> {
        Ok(self.entries()?.into_iter().map(|entry| entry.path).collect())
    }

    /// Removes all worktrees in a directory, and returns how many there were.
    pub fn prune_under(&self, dir: &Path) -> Result<usize> {
        let dir = settled(dir);
        let mut n_removed = 0;
        for entry in self.entries()? {
            if entry.path.starts_with(&dir) {
                self.worktree_remove(&entry.path)?;
                n_removed += 1;
            }
        }
        Ok(n_removed)
    }

    /// Removes the half made worktrees whose name starts with a prefix that only the caller uses.
    pub fn prune_half_made(&self, prefix: &str) -> Result<()> {
        for dir in self.entry_dirs()? {
            let id = dir.file_name().unwrap_or_default().as_bytes();
            if id.starts_with(prefix.as_bytes()) && is_silent(&dir) {
                remove_all(&dir)?;
            }
        }
        Ok(())
    }

    /// The entries of the common directory, sorted by path.
    fn entries(&self) -> Result<Vec<WorktreeEntry>> {
        let mut entries = Vec::new();
        for dir in self.entry_dirs()? {
            let Ok(bytes) = fs::read(dir.join("gitdir")) else {
                continue;
            };
            let link = dir.join(OsStr::from_bytes(&one_line(bytes)));
            // The file names the ".git" file of the worktree; the worktree is its directory.
            if let Some(path) = link.parent() {
                entries.push(WorktreeEntry { path: settled(path), dir });
            }
        }
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    fn entry_dirs(&self) -> Result<Vec<PathBuf>> {
        let all = self.common_dir.join("worktrees");
        let say = || format!("cannot read {}", all.display());
        let read = match fs::read_dir(&all) {
            Ok(read) => read,
            Err(error) if error.kind() == Io::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).context(say),
        };
        read.map(|entry| entry.map(|entry| entry.path()).context(say)).collect()
    }

    /// Removes what `git worktree add` leaves when it is killed before it has written the path:
    /// an empty entry named after the last part of the path, perhaps with a number.
    fn remove_half_made(&self, path: &Path) -> Result<()> {
        let Some(name) = path.file_name() else {
            return Ok(());
        };
        for dir in self.entry_dirs()? {
            let id = dir.file_name().unwrap_or_default().as_bytes();
            let Some(number) = id.strip_prefix(name.as_bytes()) else {
                continue;
            };
            if is_silent(&dir)
                && number.iter().all(u8::is_ascii_digit)
                && is_older(&dir, SILENT_AGE)
            {
                remove_all(&dir)?;
            }
        }
        Ok(())
    }
}

/// Whether an entry does not name the path of its worktree.
fn is_silent(dir: &Path) -> bool {
    fs::read(dir.join("gitdir")).map_or(true, |bytes| bytes.is_empty())
}

/// Creates the first free directory: the last part of the path, perhaps with a number.
fn free_entry(all: &Path, path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default();
    for number in 0..ENTRIES_MAX {
        let mut id = name.to_owned();
        if number > 0 {
            id.push(number.to_string());
        }
        let entry = all.join(id);
        match fs::create_dir(&entry) {
            Err(error) if error.kind() == Io::AlreadyExists => {}
            made => return made.map(|()| entry),
        }
    }
    Err(io::Error::from(Io::AlreadyExists))
}

/// Whether nothing was created or removed in a directory for this long.
fn is_older(dir: &Path, age: Duration) -> bool {
    let changed = dir.symlink_metadata().and_then(|data| data.modified());
    changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|elapsed| elapsed > age))
}

/// A path without links in it, except that its last part is left unresolved: that part may not
/// exist, or may be a link to remove rather than follow.
pub(super) fn settled(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match (path.parent().map(fs::canonicalize), path.file_name()) {
        (Some(Ok(parent)), Some(name)) => parent.join(name),
        _ => path,
    }
}

/// Removes a file or a directory with its contents, even if an agent removed its own permissions.
fn remove_all(path: &Path) -> Result<()> {
    let mut last = Ok(());
    for _ in 0..REMOVE_TRIES {
        last = match path.symlink_metadata() {
            Err(error) if matches!(error.kind(), Io::NotFound | Io::NotADirectory) => {
                return Ok(());
            }
            Err(error) => Err(error),
            Ok(data) if data.is_dir() => fs::remove_dir_all(path),
            Ok(_) => fs::remove_file(path),
        };
        match &last {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == Io::PermissionDenied => make_writable(path),
            Err(_) => {}
        }
    }
    last.context(|| format!("cannot remove {}", path.display()))
        .map_err(|error| error.hint(format!("remove it yourself: rm -rf {}", path.display())))
}

/// Gives the owner all permissions on a directory and those below it, as far as allowed; if
/// something is not allowed, the next removal attempt reports it.
fn make_writable(path: &Path) {
    let mut stack = vec![path.to_owned()];
    while let Some(dir) = stack.pop() {
        let _ = fs::set_permissions(&dir, Permissions::from_mode(0o700));
        let Ok(read) = fs::read_dir(&dir) else {
            continue;
        };
        let dirs = read.filter_map(io::Result::ok).filter(|entry| {
            // The type of the entry itself: a link to a directory is not followed.
            entry.file_type().is_ok_and(|kind| kind.is_dir())
        });
        stack.extend(dirs.map(|entry| entry.path()));
    }
}
