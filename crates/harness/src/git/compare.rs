//! Compares the files of a tree with those of a worktree.

use std::collections::HashMap;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{ErrorKind as Io, Read};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use karve_os::error::{CommandError, Result};

use super::call::text;
use super::change::{ChangeKind, ChangeRefusal, FILE_BYTES_MAX, RawChange};
use super::history::RawEntry;
use super::memory::{ContentDigest, print_of};
use super::objects::hash_paths;
use super::scratch::SurveyScratch;
use super::{ExecutableBit, FileMode, Repo};

/// What is found in place of a tree entry.
enum FileStatus {
    /// Nothing, or a directory with other files in it.
    Gone,
    /// Something unchanged, or checked elsewhere.
    Same,
    /// Something that cannot be compared, and why.
    Other(ChangeKind, FileMode, ChangeRefusal),
    /// A file.
    File(FileMode, u64),
    /// A link, with its target.
    Link(Vec<u8>),
}

/// What is found in place of a directory of the tree.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DirStatus {
    Real,
    /// It is a link, or is behind one.
    Linked,
    Gone,
}

/// The directories of a worktree, each checked once.
struct DirCache<'a> {
    root: &'a Path,
    seen: HashMap<&'a [u8], DirStatus>,
}

/// A file or link of the worktree whose contents must be hashed.
struct UnhashedFile<'a> {
    entry: &'a RawEntry,
    mode: FileMode,
    len: u64,
    name: Vec<u8>,
}

/// Compares each entry of the tree with the worktree; contents are compared as stored, so a file
/// that was converted at checkout still counts as modified here.
pub(super) fn tracked(
    repo: &Repo,
    root: &Path,
    entries: &[RawEntry],
    scratch: &mut SurveyScratch,
) -> Result<Vec<RawChange>> {
    let mut dirs = DirCache { root, seen: HashMap::new() };
    let mut all = Vec::new();
    let mut present = Vec::new();
    for (n, entry) in entries.iter().enumerate() {
        match dirs.look(entry) {
            FileStatus::Same => {}
            FileStatus::Gone => all.push(raw_change(entry, ChangeKind::Deleted, entry.mode, None)),
            FileStatus::Other(kind, mode, why) => {
                all.push(raw_change(entry, kind, mode, Some(why)))
            }
            FileStatus::File(mode, len) => {
                present.push(UnhashedFile { entry, mode, len, name: entry.path.clone() });
            }
            FileStatus::Link(target) => {
                // In its own file, so that the target is hashed together with all the files.
                let name = scratch.keep(&format!("link-{n}"), &target)?;
                present.push(UnhashedFile { entry, mode: FileMode::Symlink, len: 0, name });
            }
        }
    }
    let changed = |file: &UnhashedFile<'_>, kind| raw_change(file.entry, kind, file.mode, None);
    let grown = grown(repo, &present)?;
    present.retain(|file| {
        let differs = grown.contains(&file.entry.path);
        if differs {
            all.push(changed(file, ChangeKind::Modified));
        }
        !differs
    });
    for (file, same) in are_as_stored(repo, root, present)? {
        if !same {
            all.push(changed(&file, ChangeKind::Modified));
        } else if file.mode != file.entry.mode && repo.file_modes == ExecutableBit::Kept {
            all.push(changed(&file, ChangeKind::ModeChanged));
        }
    }
    Ok(all)
}

/// For each file, whether its contents match what is stored. Git hashes only those files that
/// were never found unchanged before.
fn are_as_stored<'a>(
    repo: &Repo,
    root: &Path,
    present: Vec<UnhashedFile<'a>>,
) -> Result<Vec<(UnhashedFile<'a>, bool)>> {
    let mut all = Vec::new();
    let mut unknown = Vec::new();
    for file in present {
        let known = repo.memory.print(&file.entry.oid);
        let small = file.len <= FILE_BYTES_MAX;
        match known.filter(|_| small).zip(file.print(root)) {
            Some((stored, print)) => all.push((file, stored == print)),
            None => unknown.push(file),
        }
    }
    if unknown.is_empty() {
        return Ok(all);
    }
    let names: Vec<&[u8]> = unknown.iter().map(|file| file.name.as_slice()).collect();
    let oids = hash_paths(repo.call().work_tree(root).arg("hash-object"), &names)?;
    for (file, oid) in unknown.into_iter().zip(oids) {
        let same = oid == file.entry.oid;
        if same
            && file.len <= FILE_BYTES_MAX
            && let Some(print) = file.print(root)
        {
            repo.memory.keep_print(&oid, print);
        }
        all.push((file, same));
    }
    Ok(all)
}

impl UnhashedFile<'_> {
    fn print(&self, root: &Path) -> Option<ContentDigest> {
        print_of(&on_disk(root, &self.name))
    }
}

/// The files that are modified, or were converted at checkout. There is no doubt about a file that
/// was found to be checked out as stored, and that has no other kind of line endings.
pub(super) fn in_doubt<'a>(
    repo: &Repo,
    root: &Path,
    entries: &[RawEntry],
    found: &'a [RawChange],
) -> Vec<&'a [u8]> {
    let stored = |path: &[u8]| entries.iter().find(|entry| entry.path == path);
    let is_plain = |path: &[u8]| {
        stored(path).is_some_and(|entry| repo.memory.is_plain(path, &entry.oid))
            && read_in_place(root, path).is_ok_and(|bytes| !has_crlf(&bytes))
    };
    found
        .iter()
        .filter(|found| found.kind == ChangeKind::Modified && found.mode.is_file())
        .map(|found| found.path.as_slice())
        .filter(|path| !is_plain(path))
        .collect()
}

/// Remembers which files of the shadow were checked out exactly as stored.
pub(super) fn learn_plain(
    repo: &Repo,
    shadow: &Path,
    entries: &[RawEntry],
    paths: &[&[u8]],
) -> Result<()> {
    if paths.is_empty() {
        return Ok(());
    }
    let there = |entry: &&RawEntry| {
        paths.contains(&entry.path.as_slice()) && on_disk(shadow, &entry.path).is_file()
    };
    let entries: Vec<&RawEntry> = entries.iter().filter(there).collect();
    let names: Vec<&[u8]> = entries.iter().map(|entry| entry.path.as_slice()).collect();
    let oids = hash_paths(repo.call().work_tree(shadow).arg("hash-object"), &names)?;
    for (entry, oid) in entries.into_iter().zip(oids) {
        if oid == entry.oid
            && let Some(print) = print_of(&on_disk(shadow, &entry.path))
        {
            repo.memory.keep_print(&oid, print);
            repo.memory.keep_plain(&entry.path, &oid);
        }
    }
    Ok(())
}

pub(super) fn has_crlf(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|pair| pair == b"\r\n")
}

fn raw_change(
    entry: &RawEntry,
    kind: ChangeKind,
    mode: FileMode,
    obstacle: Option<ChangeRefusal>,
) -> RawChange {
    RawChange { path: entry.path.clone(), kind, mode, tracked: true, obstacle }
}

/// The very large files whose size differs from the stored one. An agent can create a file of any
/// size instantly, and reading it would take forever.
fn grown(repo: &Repo, present: &[UnhashedFile<'_>]) -> Result<Vec<Vec<u8>>> {
    let large: Vec<&UnhashedFile<'_>> =
        present.iter().filter(|file| file.len > FILE_BYTES_MAX).collect();
    if large.is_empty() {
        return Ok(Vec::new());
    }
    let names: String = large.iter().map(|file| format!("{}\n", file.entry.oid)).collect();
    let answer =
        repo.call().args(["cat-file", "--batch-check=%(objectsize)"]).stdin(names).output()?;
    let sizes: Vec<Option<u64>> = text(&answer).lines().map(|line| line.parse().ok()).collect();
    if sizes.len() != large.len() {
        return Err(CommandError::environment("git cat-file did not print a size for each file"));
    }
    let differing = large.iter().zip(sizes).filter(|(file, size)| *size != Some(file.len));
    Ok(differing.map(|(file, _)| file.entry.path.clone()).collect())
}

impl<'a> DirCache<'a> {
    fn look(&mut self, entry: &'a RawEntry) -> FileStatus {
        match self.state(parent_of(&entry.path)) {
            DirStatus::Linked => {
                return FileStatus::Other(
                    ChangeKind::TypeChanged,
                    FileMode::Symlink,
                    ChangeRefusal::BehindLink,
                );
            }
            DirStatus::Gone => return FileStatus::Gone,
            DirStatus::Real => {}
        }
        let path = on_disk(self.root, &entry.path);
        match path.symlink_metadata() {
            Ok(data) => look_at(entry, &path, &data),
            Err(error) if is_absent(&error) => FileStatus::Gone,
            Err(_) => {
                FileStatus::Other(ChangeKind::Modified, FileMode::Other, ChangeRefusal::Unreadable)
            }
        }
    }

    fn state(&mut self, dir: &'a [u8]) -> DirStatus {
        if let Some(state) = self.seen.get(dir) {
            return *state;
        }
        let above = if dir.is_empty() { DirStatus::Real } else { self.state(parent_of(dir)) };
        let state = match above {
            DirStatus::Real => match on_disk(self.root, dir).symlink_metadata() {
                Ok(data) if data.is_dir() => DirStatus::Real,
                Ok(data) if data.is_symlink() => DirStatus::Linked,
                Ok(_) | Err(_) => DirStatus::Gone,
            },
            DirStatus::Linked | DirStatus::Gone => above,
        };
        self.seen.insert(dir, state);
        state
    }
}

/// What an entry has become, given that something is there.
fn look_at(entry: &RawEntry, path: &Path, data: &Metadata) -> FileStatus {
    let mode = mode_of(data);
    let other = |kind, why| FileStatus::Other(kind, mode, why);
    match entry.mode {
        FileMode::Gitlink if data.is_dir() => FileStatus::Same,
        FileMode::Symlink if data.is_symlink() => match fs::read_link(path) {
            Ok(target) => FileStatus::Link(target.as_os_str().as_bytes().to_vec()),
            Err(_) => other(ChangeKind::Modified, ChangeRefusal::Unreadable),
        },
        FileMode::File | FileMode::Executable if data.is_file() => match File::open(path) {
            Ok(_) => FileStatus::File(mode, data.len()),
            Err(_) => other(ChangeKind::Modified, ChangeRefusal::Unreadable),
        },
        _ if data.is_dir() => FileStatus::Gone,
        FileMode::File
        | FileMode::Executable
        | FileMode::Symlink
        | FileMode::Gitlink
        | FileMode::Other => other(ChangeKind::TypeChanged, ChangeRefusal::NotAFile),
    }
}

/// The kind of an entry itself, not of what it links to.
pub(super) fn mode_of(data: &Metadata) -> FileMode {
    if data.is_symlink() {
        FileMode::Symlink
    } else if !data.is_file() {
        FileMode::Other
    } else if data.permissions().mode() & 0o100 != 0 {
        FileMode::Executable
    } else {
        FileMode::File
    }
}

/// Whether a file differs from what is stored only by the conversion at checkout.
pub(super) fn is_as_checked_out(root: &Path, shadow: &Path, found: &RawChange) -> bool {
    found.kind == ChangeKind::Modified
        && found.mode.is_file()
        && found.obstacle.is_none()
        && same_bytes(&on_disk(root, &found.path), &on_disk(shadow, &found.path))
}

fn same_bytes(a: &Path, b: &Path) -> bool {
    let (Ok(mut a), Ok(mut b)) = (File::open(a), File::open(b)) else {
        return false;
    };
    let (Ok(len_a), Ok(len_b)) = (a.metadata().map(|d| d.len()), b.metadata().map(|d| d.len()))
    else {
        return false;
    };
    if len_a != len_b {
        return false;
    }
    let mut buffers = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let mut left = len_a;
    while left > 0 {
        let n = usize::try_from(left).unwrap_or(usize::MAX).min(1 << 16);
        let (x, y) = (&mut buffers.0[..n], &mut buffers.1[..n]);
        if a.read_exact(x).is_err() || b.read_exact(y).is_err() || x != y {
            return false;
        }
        left -= n as u64;
    }
    true
}

/// Whether a path is a directory that can be reached without links.
pub(super) fn is_real_dir(root: &Path, path: &[u8]) -> bool {
    DirCache { root, seen: HashMap::new() }.state(path) == DirStatus::Real
}

/// A path of the tree on disk.
pub(super) fn on_disk(root: &Path, path: &[u8]) -> PathBuf {
    // Joining an empty path would add a slash, and a slash makes the system follow a link.
    if path.is_empty() { root.to_owned() } else { root.join(std::ffi::OsStr::from_bytes(path)) }
}

/// The directory of a path; empty for the top.
pub(super) fn parent_of(path: &[u8]) -> &[u8] {
    path.iter().rposition(|byte| *byte == b'/').map_or(&[], |slash| &path[..slash])
}

fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), Io::NotFound | Io::NotADirectory)
}

/// Reads a file of the worktree, if it is a file, of a sane size, and really in the worktree.
pub(super) fn read_in_place(
    root: &Path,
    path: &[u8],
) -> std::result::Result<Vec<u8>, ChangeRefusal> {
    let path = on_disk(root, path);
    // A link is not followed, and a pipe in place of the file does not block.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(&path)
        .map_err(|_| ChangeRefusal::Unreadable)?;
    if !file.metadata().is_ok_and(|data| data.is_file()) {
        return Err(ChangeRefusal::NotAFile);
    }
    // A directory above it may have become a link since the check; the open file shows that.
    let really = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
    if really.map_err(|_| ChangeRefusal::Unreadable)? != path {
        return Err(ChangeRefusal::BehindLink);
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|_| ChangeRefusal::Unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(ChangeRefusal::TooLarge);
    }
    Ok(bytes)
}
