//! What a worker may read: its tree, the libraries of the system, and a few facts about the host.
//!
//! Everything else is refused by Landlock, for root too: home directories, the checkout with its
//! `karve.toml`, campaigns, other processes, the memory file of the worker itself. A worker for a
//! device also uses its driver. If its kernels are compiled when they are called, it may start
//! compilers, which are confined as it is, and write to a cache of its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The entries of a directory that are named one by one; the rest cannot be read.
const ENTRIES_MAX: usize = 500;

/// Where the system keeps libraries and their data.
const LIBRARIES: &[&str] = &[
    "/lib",
    "/lib32",
    "/lib64",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/share",
    "/usr/local/lib",
    "/usr/local/lib64",
    "/usr/local/share",
    "/usr/local/cuda",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/etc/ld.so.cache",
    "/etc/localtime",
    // Python's hash functions read it when they are imported.
    "/etc/ssl/openssl.cnf",
    "/etc/pki/tls/openssl.cnf",
    "/etc/crypto-policies",
];

/// What libraries ask about the processor, the memory and the process itself. Its `mem` and
/// `environ` are not among them.
const FACTS: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/random",
    "/dev/urandom",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/version",
    "/proc/filesystems",
    "/proc/sys/vm",
    "/proc/sys/kernel/osrelease",
    "/proc/self/auxv",
    "/proc/self/cgroup",
    "/proc/self/cmdline",
    "/proc/self/limits",
    "/proc/self/maps",
    "/proc/self/mountinfo",
    "/proc/self/smaps",
    "/proc/self/stat",
    "/proc/self/statm",
    "/proc/self/status",
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
    "/sys/devices/virtual/dmi/id",
    "/sys/kernel/mm",
];

/// Directories that may be listed, while what is in them may not be read.
const LISTED: &[&str] = &["/proc/self/fd", "/proc/self/task"];

/// Where code that silences a library writes.
const WRITABLE: &str = "/dev/null";

/// The directory of devices, how the names of those begin that a driver opens, and what it reads.
const DEVICES: &str = "/dev";
const DEVICE_NAMES: [&str; 3] = ["nvidia", "kfd", "dri"];
const DRIVER_FACTS: &[&str] = &[
    "/proc/devices",
    "/proc/driver",
    "/sys/bus/pci",
    "/sys/class/drm",
    "/sys/class/kfd",
    "/sys/devices/system/memory",
    "/sys/devices/virtual/kfd",
    "/sys/module",
];

/// A driver names its threads there.
const THREADS: &str = "/proc/self/task";

/// What compilers read besides.
const HEADERS: &[&str] = &["/usr/include", "/usr/local/include"];

/// Compilers and what they start, in the directories of PATH. The rest of them is where libraries
/// are.
const COMPILERS: &[&str] = &[
    "ar", "as", "c++", "cc", "clang", "clang++", "g++", "gcc", "hipcc", "ld", "ld.bfd", "ld.gold",
    "ld.lld", "ninja", "nvcc", "ptxas", "ranlib", "sh", "tileiras",
];

/// What a worker may read besides the system's libraries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadableTree {
    /// The tree of its kernel.
    pub root: PathBuf,
    /// What it may not read there, by the paths from the root.
    pub withheld: Vec<PathBuf>,
    /// More files and directories, such as a reference that was set aside.
    pub more: Vec<PathBuf>,
    /// The device that its kernel runs on.
    pub device: DeviceAccess,
}

/// What a worker needs for a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeviceAccess {
    /// Its kernel runs on the host.
    #[default]
    None,
    /// The driver.
    Driver,
    /// The driver, and compilers that write to this directory.
    Compilers(PathBuf),
}

/// What may be done with a path and all that is beneath it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PathAccess {
    /// Read files and list directories.
    Read,
    /// List directories.
    List,
    /// Write to files that exist, and truncate them.
    Write,
    /// Read files and execute them.
    Execute,
    /// Everything.
    Own,
}

/// The paths that a ruleset names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ReadablePaths(pub(super) BTreeMap<PathAccess, Vec<PathBuf>>);

impl ReadablePaths {
    fn add(&mut self, access: PathAccess, paths: impl IntoIterator<Item = PathBuf>) {
        self.0.entry(access).or_default().extend(paths);
    }
}

impl ReadableTree {
    /// The paths that a worker of this host gets.
    pub(super) fn paths(&self) -> ReadablePaths {
        let mut paths = ReadablePaths::default();
        let named = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        paths.add(PathAccess::Read, named(FACTS));
        paths.add(PathAccess::Read, self.more.iter().cloned());
        paths.add(PathAccess::List, named(LISTED));
        paths.add(PathAccess::Write, named(&[WRITABLE]));
        let mut libraries = named(LIBRARIES);
        let loaded = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        libraries.extend(std::env::split_paths(&loaded).filter(|path| path.is_absolute()));
        let mut access = PathAccess::Read;
        if self.device != DeviceAccess::None {
            paths.add(PathAccess::Read, named(DRIVER_FACTS));
            let devices = device_files();
            paths.add(PathAccess::Read, devices.iter().cloned());
            paths.add(PathAccess::Write, devices);
            paths.add(PathAccess::Write, named(&[THREADS]));
        }
        if let DeviceAccess::Compilers(cache) = &self.device {
            paths.add(PathAccess::Read, named(HEADERS));
            paths.add(PathAccess::Execute, compilers());
            paths.add(PathAccess::Own, [cache.clone()]);
            access = PathAccess::Execute;
        }
        paths.add(access, libraries);
        let withheld: Vec<PathBuf> =
            self.withheld.iter().map(|path| self.root.join(path)).collect();
        add(&self.root, &withheld, &mut paths);
        paths
    }
}

/// The files of the devices of this host.
fn device_files() -> Vec<PathBuf> {
    let entries = fs::read_dir(DEVICES).into_iter().flatten().flatten();
    let is_device = |name: &str| DEVICE_NAMES.iter().any(|start| name.starts_with(start));
    let found = entries.filter(|entry| is_device(&entry.file_name().to_string_lossy()));
    found.map(|entry| entry.path()).take(ENTRIES_MAX).collect()
}

/// The compilers on the path of this process.
fn compilers() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs: Vec<PathBuf> = std::env::split_paths(&path).filter(|dir| dir.is_absolute()).collect();
    let of_dir = |dir: &PathBuf| COMPILERS.iter().map(|name| dir.join(name)).collect::<Vec<_>>();
    dirs.iter().flat_map(of_dir).filter(|path| path.is_file()).collect()
}

/// A directory without what is withheld: as a whole if nothing is, or else entry by entry. A link
/// is left out: where it leads to is readable by its own path, or not at all.
fn add(dir: &Path, withheld: &[PathBuf], paths: &mut ReadablePaths) {
    if !withheld.iter().any(|path| path.starts_with(dir) && path.exists()) {
        paths.add(PathAccess::Read, [dir.to_owned()]);
        return;
    }
    paths.add(PathAccess::List, [dir.to_owned()]);
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().take(ENTRIES_MAX);
    for entry in entries {
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        if !is_link && !withheld.contains(&entry.path()) {
            add(&entry.path(), withheld, paths);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_withheld_is_left_out_and_no_link_leads_out_of_the_tree() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("sub/deep")).unwrap();
        for file in ["karve.toml", "kernel.c", "sub/karve.toml", "sub/kernel.py"] {
            fs::write(root.join(file), "").unwrap();
        }
        std::os::unix::fs::symlink("/etc", root.join("sub/link")).unwrap();
        let names = |paths: &ReadablePaths, access: PathAccess| {
            let own = paths.0[&access].iter().filter_map(|path| path.strip_prefix(root).ok());
            let mut own: Vec<String> = own.map(|path| path.display().to_string()).collect();
            own.sort();
            own
        };
        let mut tree = ReadableTree { root: root.to_owned(), ..Default::default() };
        assert_eq!(names(&tree.paths(), PathAccess::Read), [""]);
        tree.withheld = vec!["sub/karve.toml".into(), ".git".into()];
        let paths = tree.paths();
        let read = ["karve.toml", "kernel.c", "sub/deep", "sub/kernel.py"];
        assert_eq!(names(&paths, PathAccess::Read), read);
        assert_eq!(names(&paths, PathAccess::List), ["", "sub"]);
        let is_private = |path: &PathBuf| path.starts_with("/etc/passwd");
        assert!(!paths.0.values().flatten().any(is_private));
    }

    #[test]
    fn only_a_worker_that_compiles_writes_and_executes() {
        let of = |device: DeviceAccess| {
            let tree = ReadableTree { root: "/t".into(), device, ..Default::default() };
            tree.paths().0
        };
        let host = of(DeviceAccess::None);
        assert_eq!(host[&PathAccess::Write], [PathBuf::from(WRITABLE)]);
        for paths in [&host, &of(DeviceAccess::Driver)] {
            assert!(!paths.contains_key(&PathAccess::Own));
            assert!(!paths.contains_key(&PathAccess::Execute));
        }
        let compiles = of(DeviceAccess::Compilers("/c".into()));
        assert_eq!(compiles[&PathAccess::Own], [PathBuf::from("/c")]);
        let executed = &compiles[&PathAccess::Execute];
        assert!(executed.iter().any(|path| path.ends_with("sh")), "{executed:?}");
        assert!(!executed.iter().any(|path| path.ends_with("env")), "{executed:?}");
    }
}
