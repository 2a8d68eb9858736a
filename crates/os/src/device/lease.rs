//! The lease of a device: one karve process at a time measures on it, whichever user started it.
//!
//! A lease is a lock on a file that names its holder. The kernel releases the lock when the
//! holder dies, however it dies; a name without a lock means nothing.

use super::NoticeSink;
use crate::clock;
use crate::error::{CommandError, ErrorKind, Result};
use crate::process::{RUN_MARK, StopFlag};
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

/// Names the directory of the leases.
pub const DIR: &str = "KARVE_LEASE_DIR";

/// How often Ctrl-C is checked.
const GLANCE: Duration = Duration::from_millis(20);

/// A shorter wait is not reported: two campaigns alternate block by block.
const MENTIONED_AFTER: Duration = Duration::from_secs(1);

/// A longer wait is reported in a message that stays visible, once for each holder.
const NOTICE_AFTER: Duration = Duration::from_secs(5);

/// The process of the holder that such a message named last.
static NAMED: AtomicU32 = AtomicU32::new(u32::MAX);

/// How many times at most the file may be removed while it is being opened.
const TRIES_MAX: u32 = 100;

/// What follows the name of a device in the name of a file for one who waits.
const WAITING: &str = ".wait-";

/// The most files that are listed.
const HELD_MAX: usize = 1_000;

/// At most this much of a lease file is read.
const HOLDER_BYTES_MAX: u64 = 4096;

/// At most this much of a name is shown.
const NAME_CHARS_MAX: usize = 80;

/// The mode bit of a directory in which users cannot remove each other's files.
const STICKY: u32 = 0o1000;

/// The mode bits of a directory that others may write to.
const OTHERS_WRITE: u32 = 0o022;

/// Who holds a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseHolder {
    /// Its process; 0 if it has not named itself.
    pub pid: u32,
    /// The campaign or command.
    pub holder: String,
    /// Since when, by its clock.
    pub since: String,
}

impl LeaseHolder {
    /// This process, for a campaign or command.
    pub fn me(name: &str) -> Self {
        Self { pid: std::process::id(), holder: name.to_owned(), since: clock::second() }
    }

    /// One line for people.
    pub fn describe(&self) -> String {
        if self.pid == 0 {
            return "a process that has not named itself".to_owned();
        }
        format!("{} (process {}) since {}", clean(&self.holder), self.pid, clean(&self.since))
    }
}

/// Text that another process wrote, without anything that could manipulate a terminal.
fn clean(text: &str) -> String {
    let plain = |c: &char| c.is_alphanumeric() || " .:_-/".contains(*c);
    text.chars().filter(plain).take(NAME_CHARS_MAX).collect()
}

/// A held device. It is free again when this is dropped, or when the process dies.
#[derive(Debug)]
pub struct Lease {
    file: File,
}

impl Lease {
    /// The locked file, for a cleanup process that keeps the lease after karve exits.
    pub(super) fn file(&self) -> &File {
        &self.file
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // The name of a dead holder would be misleading.
        let _ = self.file.set_len(0);
    }
}

/// A request for a lease.
#[derive(Clone, Copy, Debug)]
pub struct LeaseRequest<'a> {
    /// The device, as the charter names it.
    pub device: &'a str,
    /// The requester: the campaign or command.
    pub holder: &'a str,
    /// How long to wait for another holder.
    pub limit: Duration,
}

/// Takes the lease of a device, and waits for another holder as long as the request allows; returns
/// how long that took. There is no lease if the holder is a karve that runs us as its command: it
/// is waiting for us.
pub fn take(
    wish: &LeaseRequest<'_>,
    stop: &StopFlag,
    notices: &NoticeSink,
) -> Result<(Option<Lease>, Duration)> {
    let home = LeaseDir::of_host();
    let marks = std::env::var(RUN_MARK).unwrap_or_default();
    if !marks.is_empty() && home.holder(wish.device).is_some_and(|h| is_within(&marks, h.pid)) {
        return Ok((None, Duration::ZERO));
    }
    let (lease, waited) = home.take(wish, stop, notices)?;
    Ok((Some(lease), waited))
}

/// Takes the lease if it is free.
pub fn try_take(device: &str, holder: &str) -> Result<Option<Lease>> {
    LeaseDir::of_host().try_take(device, holder)
}

/// The current holder of a device, if any.
pub fn holder_of(device: &str) -> Option<LeaseHolder> {
    LeaseDir::of_host().holder(device)
}

/// What is held and waited for on this host: the device, and who since when.
pub fn held() -> Vec<(String, String)> {
    let entries = fs::read_dir(LeaseDir::of_host().dir).into_iter().flatten().flatten();
    let mut found: Vec<(String, String)> = entries
        .take(HELD_MAX)
        .filter_map(|entry| {
            let mut file = plain(&entry.path(), OpenOptions::new().read(true)).ok()?;
            // Nobody is named by a file that is not locked.
            file.try_lock_shared().err()?;
            let (name, who) = (entry.file_name(), read_holder(&mut file).describe());
            let name = clean(&name.to_string_lossy());
            Some(match name.split_once(WAITING) {
                Some((device, _)) => (device.to_owned(), format!("waits: {who}")),
                None => (name, format!("held by {who}")),
            })
        })
        .collect();
    found.sort();
    found
}

/// A file that names who waits for a device, as long as it is locked.
struct WaitNote(PathBuf, File);

impl WaitNote {
    fn new(path: &Path, holder: &str) -> Option<Self> {
        let mut name = path.as_os_str().to_owned();
        name.push(format!("{WAITING}{}", std::process::id()));
        let path = PathBuf::from(name);
        let mut file = make(&path).ok()?;
        file.try_lock().ok()?;
        let text = serde_json::to_vec(&LeaseHolder::me(holder)).ok()?;
        let _ = file.write_all(&text);
        Some(Self(path, file))
    }
}

impl Drop for WaitNote {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
        let _ = self.1.unlock();
    }
}

/// Whether the marks of a command, from the outermost karve inward, name a process.
fn is_within(marks: &str, pid: u32) -> bool {
    let own = format!("{pid}-");
    marks.split('/').any(|mark| mark.starts_with(&own))
}

/// Where leases are stored.
struct LeaseDir {
    dir: PathBuf,
    /// Whether all users of the host may add their own.
    shared: bool,
}

impl LeaseDir {
    /// The directory set in the environment, else one for all users: a login from another machine
    /// must find the leases of those who work at this one.
    fn of_host() -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let (dir, shared) = match set(DIR) {
            Some(dir) => (dir.into(), false),
            None => (std::env::temp_dir().join("karve-leases"), true),
        };
        Self { dir, shared }
    }

    fn path(&self, device: &str) -> PathBuf {
        self.dir.join(file_name(device))
    }

    fn holder(&self, device: &str) -> Option<LeaseHolder> {
        let mut file = plain(&self.path(device), OpenOptions::new().read(true)).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Some(read_holder(&mut file)),
            Ok(()) | Err(TryLockError::Error(_)) => None,
        }
    }

    fn try_take(&self, device: &str, holder: &str) -> Result<Option<Lease>> {
        let path = self.path(device);
        for _ in 0..TRIES_MAX {
            let file = self.open(&path)?;
            match file.try_lock() {
                Ok(()) if is_still(&file, &path) => return Ok(Some(lease_of(file, holder))),
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(cannot(&path, error)),
            }
        }
        Err(cannot(&path, "another process keeps removing it"))
    }

    fn take(
        &self,
        wish: &LeaseRequest<'_>,
        stop: &StopFlag,
        notices: &NoticeSink,
    ) -> Result<(Lease, Duration)> {
        let path = self.path(wish.device);
        let mut waited = Duration::ZERO;
        for _ in 0..TRIES_MAX {
            if let Some(lease) = self.try_take(wish.device, wish.holder)? {
                return Ok((lease, waited));
            }
            let start = Instant::now();
            let file = LeaseWait::new(self.open(&path)?, &path)?.until(wish, stop, notices)?;
            waited += start.elapsed();
            if is_still(&file, &path) {
                return Ok((lease_of(file, wish.holder), waited));
            }
        }
        Err(cannot(&path, "another process keeps removing it"))
    }

    /// Opens the file of a lease, and creates it and its directory if they do not exist.
    fn open(&self, path: &Path) -> Result<File> {
        self.check()?;
        for _ in 0..TRIES_MAX {
            // Not created and opened in one call: the kernel refuses that for another user's file
            // in a shared directory.
            match plain(path, OpenOptions::new().read(true).write(true)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    let file = plain(path, OpenOptions::new().read(true));
                    return file.map_err(|error| cannot(path, error));
                }
                Err(error) => return Err(cannot(path, error)),
                Ok(file) => return Ok(file),
            }
            match make(path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(cannot(path, error)),
                Ok(file) => return Ok(file),
            }
        }
        Err(cannot(path, "another process keeps removing it"))
    }

    /// Creates the directory if needed, and refuses one that others can write to freely.
    fn check(&self) -> Result<()> {
        let dir = &self.dir;
        let look = || fs::symlink_metadata(dir);
        let meta = match look() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
                made.map_err(|error| cannot(dir, error))?;
                if self.shared {
                    // All users may add a file, and none can remove another's.
                    let _ = fs::set_permissions(dir, Permissions::from_mode(0o1777));
                }
                look()
            }
            found => found,
        };
        let meta = meta.map_err(|error| cannot(dir, error))?;
        let own = is_own(&meta);
        if own || (meta.is_dir() && meta.mode() & STICKY != 0) {
            return Ok(());
        }
        Err(cannot(dir, "it belongs to another user"))
    }
}

/// A wait in the kernel's own queue. Polling would never get a lease from a holder that takes it
/// again immediately.
struct LeaseWait {
    path: PathBuf,
    locked: mpsc::Receiver<io::Result<File>>,
    names: File,
}

impl LeaseWait {
    fn new(file: File, path: &Path) -> Result<Self> {
        let names = file.try_clone().map_err(|error| cannot(path, error))?;
        let (sender, locked) = mpsc::channel();
        // If the waiter has given up when the lock is granted, closing the file releases it.
        thread::spawn(move || {
            let got = file.lock().map(|()| file);
            let _ = sender.send(got);
        });
        Ok(Self { path: path.to_owned(), locked, names })
    }

    /// Waits until the file is ours, the user stops, or the request times out.
    fn until(
        mut self,
        wish: &LeaseRequest<'_>,
        stop: &StopFlag,
        notices: &NoticeSink,
    ) -> Result<File> {
        let start = Instant::now();
        let mut tell = vec![NOTICE_AFTER, MENTIONED_AFTER];
        let mut note = None;
        loop {
            match self.locked.recv_timeout(GLANCE) {
                Ok(locked) => return locked.map_err(|error| cannot(&self.path, error)),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(cannot(&self.path, "the wait was interrupted"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if stop.finish_step() {
                return Err(stopped());
            }
            if start.elapsed() >= wish.limit {
                return Err(busy(wish, &read_holder(&mut self.names)));
            }
            if let Some(after) = tell.pop_if(|after| start.elapsed() >= *after) {
                note = note.or_else(|| WaitNote::new(&self.path, wish.holder));
                let holder = read_holder(&mut self.names);
                let text = format!("waiting for {}: held by {}", wish.device, holder.describe());
                if after == NOTICE_AFTER && is_new(&NAMED, holder.pid) {
                    notices.notify(&text);
                } else {
                    notices.mention(&text);
                }
            }
        }
    }
}

/// Whether a holder is another one than the last that was named. Campaigns that take turns wait for
/// each other before every block, and one message says so.
fn is_new(named: &AtomicU32, pid: u32) -> bool {
    named.swap(pid, Ordering::Relaxed) != pid
}

fn read_holder(file: &mut File) -> LeaseHolder {
    let mut text = String::new();
    let _ = file.rewind();
    let _ = file.take(HOLDER_BYTES_MAX).read_to_string(&mut text);
    serde_json::from_str(&text).unwrap_or_else(|_| LeaseHolder {
        pid: 0,
        holder: String::new(),
        since: String::new(),
    })
}

/// Writes the holder's name to the file. It is only informative, so a full disk does not matter.
fn lease_of(mut file: File, holder: &str) -> Lease {
    if let Ok(text) = serde_json::to_vec(&LeaseHolder::me(holder)) {
        let _ = file.set_len(0);
        let _ = file.rewind();
        let _ = file.write_all(&text);
    }
    Lease { file }
}

/// Whether a path still points to the file; it may have been removed before it was locked.
fn is_still(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

/// A valid file name for a device with any name.
fn file_name(device: &str) -> String {
    let slug: String = device
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(100)
        .collect();
    format!("{slug}.lock")
}

fn make(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
    // Other users must be able to write their names, whatever this user's umask.
    let _ = file.set_permissions(Permissions::from_mode(0o666));
    Ok(file)
}

/// Opens a plain file and nothing else: no link to a file of the user, no pipe.
fn plain(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let refused = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, why);
    let file = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() || meta.nlink() > 1 {
        return Err(refused("it is not a plain file, or has other links"));
    }
    let dir = fs::metadata(path.parent().unwrap_or(path))?;
    if is_own(&meta) || dir.mode() & (STICKY | OTHERS_WRITE) != 0 {
        return Ok(file);
    }
    Err(refused("it belongs to another user"))
}

fn is_own(meta: &Metadata) -> bool {
    meta.uid() == 0 || meta.uid() == own_uid()
}

fn own_uid() -> u32 {
    fs::metadata("/proc/self").map_or(u32::MAX, |meta| meta.uid())
}

fn cannot(path: &Path, cause: impl std::fmt::Display) -> CommandError {
    CommandError::environment(format!("cannot use the lease {}", path.display()))
        .cause(cause)
        .hint(format!("set {DIR} to a directory that you may write to"))
}

fn busy(wish: &LeaseRequest<'_>, holder: &LeaseHolder) -> CommandError {
    CommandError::new(
        ErrorKind::Busy,
        format!("the device {} is held by {}", wish.device, holder.describe()),
    )
    .hint("set a larger device.lease_wait_s in karve.toml to wait, then run \"karve run\" again")
}

fn stopped() -> CommandError {
    CommandError::new(ErrorKind::Interrupted, "stopped by the user")
        .hint("resume with \"karve run\"")
}

#[cfg(test)]
mod tests;
