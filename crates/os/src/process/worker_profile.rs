//! What a worker permanently drops before it loads a kernel: writing files, reading those that are
//! not its own, other processes, clocks and priorities of the host, and root's capabilities.
//!
//! A kernel reads its inputs, computes, may start threads, and writes its outputs. Anything else
//! it tries fails with an error, so that an honest library that merely tries is not harmed. If the
//! operating system is too old for a part, the other parts still apply.

use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use libc::c_long;

use super::filter::worker_filter;
use super::readable::{DeviceAccess, PathAccess, ReadablePaths, ReadableTree};
use super::sys::LimitedResource;
use super::{ruleset, sys};

/// The largest core file. None is written that is smaller than a page, and a program that collects
/// them is started unless this is 1.
const CORE_BYTES: u64 = 1;

/// Placeholder for the process id in a profile that another program applies to itself.
const OWN: u32 = u32::MAX;

/// A seccomp and Landlock profile for another program to apply to itself: the same as that of
/// karve's own worker.
#[derive(Debug, serde::Serialize)]
pub(super) struct WorkerProfile {
    /// The numbers of the calls that create, extend and apply a ruleset, of the one that installs
    /// a filter, and of those that get and set capabilities.
    calls: [c_long; 6],
    /// What the ruleset restricts, field by field as the kernel reads it; empty without Landlock.
    ruleset: Vec<u64>,
    /// The steps of the filter; a missing last number stands for the process id.
    filter: Vec<(u16, u8, u8, Option<u32>)>,
    /// What it may do with which paths, as a number.
    paths: Vec<(u64, Vec<PathBuf>)>,
    /// The same for the modules and libraries of an interpreter.
    libraries: u64,
    /// The largest core file.
    core_bytes: u64,
}

impl WorkerProfile {
    /// The profile that this host supports.
    pub(super) fn of_host(tree: &ReadableTree) -> Self {
        let step = |step: libc::sock_filter| {
            let number = (step.k != OWN).then_some(step.k);
            (step.code, step.jt, step.jf, number)
        };
        let paths = tree.paths().0;
        let libraries = match &tree.device {
            DeviceAccess::Compilers(_) => PathAccess::Execute,
            DeviceAccess::None | DeviceAccess::Driver => PathAccess::Read,
        };
        Self {
            calls: [
                libc::SYS_landlock_create_ruleset,
                libc::SYS_landlock_add_rule,
                libc::SYS_landlock_restrict_self,
                libc::SYS_seccomp,
                libc::SYS_capget,
                libc::SYS_capset,
            ],
            ruleset: ruleset::worker_ruleset_fields(),
            filter: worker_filter(OWN, &tree.device).into_iter().map(step).collect(),
            paths: paths.into_iter().map(|(access, paths)| (access.bits(), paths)).collect(),
            libraries: libraries.bits(),
            core_bytes: CORE_BYTES,
        }
    }
}

/// Drops, for this process and all its future threads, what no kernel needs. A file that must be
/// loaded can still be read.
pub(super) fn apply_profile(must_open: &CStr, tree: &ReadableTree) {
    sys::rule_out_new_privileges();
    sys::limit(LimitedResource::Core, CORE_BYTES);
    drop_capabilities(must_open);
    let paths = tree.paths();
    if let Some(ruleset) = ruleset::worker_ruleset(&paths) {
        hold_own_facts(&paths);
        sys::apply_ruleset(&ruleset);
    }
    sys::install_filter(&worker_filter(std::process::id(), &tree.device));
}

/// Keeps the files of `/proc/self` open without access. A rule belongs to the file that it was made
/// for, and one of `/proc` that nobody holds may be made anew.
fn hold_own_facts(paths: &ReadablePaths) {
    let own = paths.0.values().flatten().filter(|path| path.starts_with("/proc/self"));
    for path in own {
        let held = File::options().read(true).custom_flags(libc::O_PATH).open(path);
        held.into_iter().for_each(std::mem::forget);
    }
}

/// Drops all capabilities. The one to read any file is kept if the path could not be opened
/// without it, such as one of another user for whom root builds; a worker of that user can read
/// the same files.
fn drop_capabilities(must_open: &CStr) {
    sys::bar_capabilities();
    sys::suspend_capabilities();
    let opened = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(OsStr::from_bytes(must_open.to_bytes()));
    sys::keep_capabilities(match opened {
        Ok(_) => 0,
        Err(_) => sys::READ_ANY,
    });
}
