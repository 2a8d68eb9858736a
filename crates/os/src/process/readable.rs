//! What a worker may read: its tree, the libraries of the system, and a few facts about the host.
//!
//! Everything else is refused by Landlock, for root too: home directories, the checkout with its
//! `karve.toml`, campaigns, other processes, the memory file of the worker itself.

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
pub(super) const WRITABLE: &str = "/dev/null";

/// What a worker may read besides the system's libraries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadableTree {
    /// The tree of its kernel.
    pub root: PathBuf,
    /// What it may not read there, by the paths from the root.
    pub withheld: Vec<PathBuf>,
    /// More files and directories, such as a reference that was set aside.
    pub more: Vec<PathBuf>,
}

/// The paths that a ruleset names.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct ReadablePaths {
    /// May be read, with all that is beneath them.
    pub(super) read: Vec<PathBuf>,
    /// May be listed, with all that is beneath them.
    pub(super) listed: Vec<PathBuf>,
}

impl ReadableTree {
    /// The paths that a worker of this host gets.
    pub(super) fn paths(&self) -> ReadablePaths {
        let named = LIBRARIES.iter().chain(FACTS).map(PathBuf::from);
        let mut paths = ReadablePaths {
            read: named.chain(self.more.iter().cloned()).collect(),
            listed: LISTED.iter().map(PathBuf::from).collect(),
        };
        let libraries = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        paths.read.extend(std::env::split_paths(&libraries).filter(|path| path.is_absolute()));
        let withheld: Vec<PathBuf> =
            self.withheld.iter().map(|path| self.root.join(path)).collect();
        add(&self.root, &withheld, &mut paths);
        paths
    }
}

/// A directory without what is withheld: as a whole if nothing is, or else entry by entry. A link
/// is left out: where it leads to is readable by its own path, or not at all.
fn add(dir: &Path, withheld: &[PathBuf], paths: &mut ReadablePaths) {
    if !withheld.iter().any(|path| path.starts_with(dir) && path.exists()) {
        paths.read.push(dir.to_owned());
        return;
    }
    paths.listed.push(dir.to_owned());
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
        let names = |paths: &[PathBuf]| {
            let own = paths.iter().filter_map(|path| path.strip_prefix(root).ok());
            let mut own: Vec<String> = own.map(|path| path.display().to_string()).collect();
            own.sort();
            own
        };
        let mut tree = ReadableTree { root: root.to_owned(), ..Default::default() };
        assert_eq!(names(&tree.paths().read), [""]);
        tree.withheld = vec!["sub/karve.toml".into(), ".git".into()];
        let paths = tree.paths();
        assert_eq!(names(&paths.read), ["karve.toml", "kernel.c", "sub/deep", "sub/kernel.py"]);
        assert_eq!(names(&paths.listed), ["", "sub"]);
        assert!(!paths.read.iter().any(|path| path.starts_with("/etc/passwd")));
    }
}
