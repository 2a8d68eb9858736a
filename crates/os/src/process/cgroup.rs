//! A control group for one command: the kernel's own list of everything that the command started.
//!
//! A descendant cannot leave it by a new session, a double fork or a cleared environment. If
//! none can be created (no cgroup v2, or no write access) there is no leaf, and the other layers
//! must suffice.
//!
//! Creating and removing a leaf takes longer than all other overhead of a short command. So one
//! that a command left empty and unchanged is reused for the next command of the same thread and
//! tag.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::{fs, io, thread};

use super::sys::Pid;

/// How often to try to remove a leaf that is still busy; dead processes leave it late.
const REMOVE_TRIES_MAX: u32 = 50;
const REMOVE_PAUSE: Duration = Duration::from_micros(200);

/// How often to ask the kernel again whether a leaf that lists no process is empty.
const COUNT_TRIES_MAX: u32 = 20;
const COUNT_PAUSE: Duration = Duration::from_micros(50);

/// How many of these attempts are made without a pause.
const COUNT_TRIES_AT_ONCE: u32 = 3;

/// How many leaves a thread keeps for its next commands.
const SPARE_MAX: usize = 4;

/// How deep and how wide the hierarchy is searched for leaves.
const DEPTH_MAX: u32 = 16;
const GROUPS_MAX: usize = 20_000;

/// The first part of the name of every leaf.
const PREFIX: &str = "karve.";

/// The group karve is in, below which leaves are created.
#[derive(Debug)]
struct CgroupRoot {
    /// Where cgroup v2 is mounted.
    mount: PathBuf,
    /// The directory of the group.
    dir: PathBuf,
    /// The group as `/proc/<pid>/cgroup` writes it, without a slash at the end.
    name: String,
}

/// A control group for one command; removed when dropped.
#[derive(Debug)]
pub(super) struct CommandCgroup {
    dir: PathBuf,
    /// The group as `/proc/<pid>/cgroup` writes it.
    name: String,
    /// The hash of the tag.
    tag: u64,
    fd: File,
    /// Its `cgroup.events`, `cgroup.type` and `cgroup.controllers`.
    events: File,
    kind: File,
    controllers: File,
}

thread_local! {
    /// Empty leaves of this thread; removed when it ends.
    static SPARE: RefCell<Vec<CommandCgroup>> = const { RefCell::new(Vec::new()) };
}

impl CommandCgroup {
    /// A leaf for a command, if this machine lets us create one.
    pub(super) fn for_tag(tag: &str) -> Option<Self> {
        let hash = hash(tag);
        let spare = SPARE.with_borrow_mut(|spare| {
            let at = spare.iter().position(|leaf| leaf.tag == hash)?;
            Some(spare.swap_remove(at))
        });
        spare.or_else(|| Self::new(tag))
    }

    /// Creates a leaf.
    pub(super) fn new(tag: &str) -> Option<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let base = base()?;
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let tag = hash(tag);
        let name = format!("{PREFIX}{}.{n}.{tag:016x}", std::process::id());
        let dir = base.dir.join(&name);
        fs::create_dir(&dir).ok()?;
        let open = || -> io::Result<Self> {
            Ok(Self {
                name: format!("{}/{name}", base.name),
                tag,
                fd: File::open(&dir)?,
                events: File::open(dir.join("cgroup.events"))?,
                kind: File::open(dir.join("cgroup.type"))?,
                controllers: File::open(dir.join("cgroup.controllers"))?,
                dir: dir.clone(),
            })
        };
        open().inspect_err(|_| remove(&dir)).ok()
    }

    /// Keeps the leaf for the next command of this thread, if it is unchanged. It is known to be
    /// empty; the command may have changed its type, created groups below it, or set a limit for
    /// the next command, which only a leaf with controllers has.
    pub(super) fn keep_spare(self) {
        let has_groups = self.fd.metadata().map_or(true, |data| data.nlink() != 2);
        let is_domain = line_in(&self.kind, |line| line == b"domain");
        let has_controllers = line_in(&self.controllers, |line| !line.is_empty());
        if has_groups || !is_domain || has_controllers {
            return;
        }
        SPARE.with_borrow_mut(|spare| {
            if spare.len() >= SPARE_MAX {
                spare.remove(0);
            }
            spare.push(self);
        });
    }

    /// The directory, for a child to be started in.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Moves a process into the leaf; returns whether that worked.
    pub(super) fn adopt(&self, pid: Pid) -> bool {
        fs::write(self.dir.join("cgroup.procs"), pid.to_string()).is_ok()
    }

    /// Whether no live process is left.
    ///
    /// The kernel may for a moment count a process that has just died, though it does not list it.
    /// Only the count is trusted: a list can miss a process that moves to a child group meanwhile.
    pub(super) fn is_empty(&self) -> bool {
        for tried in 0..COUNT_TRIES_MAX {
            if line_in(&self.events, |line| line == b"populated 0") {
                return true;
            }
            if !self.pids().is_empty() {
                return false;
            }
            if tried >= COUNT_TRIES_AT_ONCE {
                thread::sleep(COUNT_PAUSE);
            }
        }
        false
    }

    /// The live processes in the leaf and in groups that they created below it.
    pub(super) fn pids(&self) -> HashSet<Pid> {
        groups_below(&self.dir).iter().flat_map(|dir| pids_of(dir)).collect()
    }

    /// Kills all of them at once, if the kernel supports it.
    pub(super) fn kill(&self) {
        let _ = fs::write(self.dir.join("cgroup.kill"), "1");
    }

    /// Whether a process is, or was when it died, in the leaf.
    pub(super) fn holds(&self, pid: Pid) -> bool {
        fs::read_to_string(format!("/proc/{pid}/cgroup"))
            .ok()
            .as_deref()
            .and_then(own_group)
            .and_then(|group| group.strip_prefix(self.name.as_str()))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl Drop for CommandCgroup {
    fn drop(&mut self) {
        remove(&self.dir);
    }
}

/// Whether a short file of a group has such a line.
fn line_in(file: &File, is_such: impl Fn(&[u8]) -> bool) -> bool {
    let mut bytes = [0; 256];
    let n = file.read_at(&mut bytes, 0).unwrap_or(0);
    bytes[..n].split(|byte| *byte == b'\n').any(is_such)
}

/// Selects leaves by owner.
#[derive(Clone, Copy, Debug)]
pub(super) enum CgroupOwner<'a> {
    /// Those that were created for a tag, by any karve process.
    Tag(&'a str),
    /// Those of one karve process, by its id.
    Karve(u32),
}

/// The live processes in such leaves.
pub(super) fn pids_in(whose: &CgroupOwner<'_>) -> HashSet<Pid> {
    leaves(whose).iter().flat_map(|leaf| groups_below(leaf)).flat_map(|d| pids_of(&d)).collect()
}

/// Removes such leaves whose karve process is dead, if they are empty.
pub(super) fn remove_leftover(whose: &CgroupOwner<'_>) {
    let is_left = |leaf: &&PathBuf| match whose {
        CgroupOwner::Tag(_) => is_abandoned(leaf),
        // It may be dead and still be listed, until its parent reaps it.
        CgroupOwner::Karve(_) => true,
    };
    leaves(whose).iter().filter(is_left).for_each(|leaf| remove(leaf));
}

fn leaves(whose: &CgroupOwner<'_>) -> Vec<PathBuf> {
    let (start, end) = match whose {
        CgroupOwner::Tag(tag) => (PREFIX.to_owned(), format!(".{:016x}", hash(tag))),
        CgroupOwner::Karve(pid) => (format!("{PREFIX}{pid}."), String::new()),
    };
    let Some(base) = base() else {
        return Vec::new();
    };
    let is_leaf = |dir: &PathBuf| {
        dir.file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.starts_with(&start) && name.ends_with(&end))
    };
    groups_below(&base.mount).into_iter().filter(is_leaf).collect()
}

fn base() -> Option<&'static CgroupRoot> {
    static BASE: OnceLock<Option<CgroupRoot>> = OnceLock::new();
    BASE.get_or_init(|| {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let base = parse_base(&mounts, own_group(&groups)?)?;
        // Leaves of a killed karve process stay behind, empty.
        let left = fs::read_dir(&base.dir).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
        left.filter(|dir| is_abandoned(dir)).for_each(|dir| remove(&dir));
        Some(base)
    })
    .as_ref()
}

/// The v2 group in a `/proc/<pid>/cgroup`.
fn own_group(groups: &str) -> Option<&str> {
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some(group.strip_suffix(" (deleted)").unwrap_or(group))
}

/// Finds the directory of a group: below the mount, minus the part of the hierarchy that a
/// container hides by mounting only a subtree.
fn parse_base(mountinfo: &str, group: &str) -> Option<CgroupRoot> {
    mountinfo.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        if kind.split(' ').next() != Some("cgroup2") {
            return None;
        }
        let mut fields = mount.split(' ').skip(3);
        let root = fields.next()?.trim_end_matches('/');
        let mount = PathBuf::from(fields.next()?);
        let below = group.strip_prefix(root)?.trim_matches('/');
        let dir = if below.is_empty() { mount.clone() } else { mount.join(below) };
        Some(CgroupRoot { mount, dir, name: group.trim_end_matches('/').to_owned() })
    })
}

/// Whether a directory is a leaf whose karve process has ended, or had our id before us.
fn is_abandoned(dir: &Path) -> bool {
    let owner = || -> Option<u32> {
        let rest = dir.file_name()?.to_str()?.strip_prefix(PREFIX)?;
        rest.split('.').next()?.parse().ok()
    };
    owner().is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists())
}

fn pids_of(group: &Path) -> Vec<Pid> {
    let procs = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    // A process that ends while being listed reads as zero.
    let pids = procs.lines().filter_map(|line| line.parse().ok());
    pids.filter(|&pid| pid > 0).collect()
}

/// A group and all groups below it, parents first.
fn groups_below(top: &Path) -> Vec<PathBuf> {
    let mut found = vec![(0, top.to_owned())];
    let mut next = 0;
    while let Some((depth, dir)) = found.get(next).cloned() {
        next += 1;
        if depth == DEPTH_MAX || found.len() > GROUPS_MAX {
            break;
        }
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        let groups = entries.filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir()));
        found.extend(groups.map(|entry| (depth + 1, entry.path())));
    }
    found.into_iter().map(|(_, dir)| dir).collect()
}

/// Removes a group and those below it; one that stays busy is left for the next karve process.
fn remove(top: &Path) {
    for _ in 0..REMOVE_TRIES_MAX {
        if fs::remove_dir(top).is_ok() || !top.exists() {
            return;
        }
        for dir in groups_below(top).iter().skip(1).rev() {
            let _ = fs::remove_dir(dir);
        }
        thread::sleep(REMOVE_PAUSE);
    }
}

/// FNV-1a: the same in every version of karve, which is what a name on disk needs.
fn hash(tag: &str) -> u64 {
    tag.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(mountinfo: &str, group: &str, want_dir: Option<&str>) {
        let got = parse_base(mountinfo, group).map(|base| base.dir);
        assert_eq!(got, want_dir.map(PathBuf::from), "{group}");
    }

    #[test]
    fn the_group_is_found_where_v2_is_mounted() {
        let hybrid = "31 1 0:3 / /sys rw - sysfs sys rw\n\
            40 31 0:9 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
            41 31 0:8 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw";
        check(hybrid, "/", Some("/sys/fs/cgroup/unified"));
        check(hybrid, "/a/b", Some("/sys/fs/cgroup/unified/a/b"));
        let options = "30 23 0:26 / /sys/fs/cgroup rw shared:9 master:1 - cgroup2 cgroup2 rw";
        check(options, "/user.slice", Some("/sys/fs/cgroup/user.slice"));
    }

    #[test]
    fn a_mounted_subtree_is_taken_off() {
        let subtree = "30 23 0:26 /box/7 /sys/fs/cgroup rw - cgroup2 cgroup rw";
        check(subtree, "/box/7/a", Some("/sys/fs/cgroup/a"));
        check(subtree, "/box/7", Some("/sys/fs/cgroup"));
        check(subtree, "/elsewhere", None);
    }

    #[test]
    fn without_v2_there_is_no_base() {
        check("40 31 0:9 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids", "/", None);
        check("", "/", None);
    }

    #[test]
    fn the_group_of_a_process_is_the_line_of_v2() {
        assert_eq!(own_group("4:memory:/x\n0::/a/b\n"), Some("/a/b"));
        assert_eq!(own_group("0::/a/b (deleted)\n"), Some("/a/b"));
        assert_eq!(own_group("4:memory:/x\n"), None);
    }

    #[test]
    fn only_leaves_of_the_dead_are_abandoned() {
        let me = std::process::id();
        assert!(!is_abandoned(Path::new(&format!("/x/karve.{me}.0.00"))));
        // Process ids end well below this.
        assert!(is_abandoned(Path::new("/x/karve.4000000000.0.00")));
        assert!(!is_abandoned(Path::new("/x/user.slice")));
        assert!(!is_abandoned(Path::new("/x/karve.slice")));
    }
}
