//! What a child permanently drops before it executes: files, calls, privileges and resources.
//!
//! Everything is prepared before the fork. The code that the child runs is async-signal-safe.

use std::os::fd::{AsRawFd, OwnedFd};
use std::{mem, ptr};

use super::capabilities::{OF_FILES, keep_capabilities};

/// The restrictions of a child.
#[derive(Debug, Default)]
pub(in crate::process) struct SandboxProfile {
    /// The files it may touch.
    pub(in crate::process) ruleset: Option<OwnedFd>,
    /// The calls it may make.
    pub(in crate::process) filter: Vec<libc::sock_filter>,
    /// Resource limits.
    pub(in crate::process) limits: Vec<(LimitedResource, u64)>,
    /// Whether it loses root's capabilities.
    pub(in crate::process) drops_rights: bool,
}

/// A resource whose limit the kernel enforces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::process) enum LimitedResource {
    /// Bytes of private memory of one process.
    Memory,
    /// Bytes of one file.
    FileSize,
    /// Open files of one process.
    OpenFiles,
    /// Processes and threads of the user in the user namespace.
    Processes,
    /// Bytes of a core file.
    Core,
}

impl LimitedResource {
    fn id(self) -> libc::__rlimit_resource_t {
        match self {
            Self::Memory => libc::RLIMIT_DATA,
            Self::FileSize => libc::RLIMIT_FSIZE,
            Self::OpenFiles => libc::RLIMIT_NOFILE,
            Self::Processes => libc::RLIMIT_NPROC,
            Self::Core => libc::RLIMIT_CORE,
        }
    }
}

impl SandboxProfile {
    /// Applies all restrictions that further children inherit. Async-signal-safe.
    pub(super) fn restrict(&self) -> bool {
        let limited = self.limits.iter().all(|(what, most)| limit(*what, *most));
        limited
            && rule_out_new_privileges()
            && (!self.drops_rights || keep_capabilities(OF_FILES))
            && self.ruleset.as_ref().is_none_or(apply_ruleset)
    }

    /// Installs the call filter; the last step before the program is executed. Async-signal-safe.
    pub(super) fn filter(&self) -> bool {
        install_filter(&self.filter)
    }
}

/// No program that this process executes gains privileges by that. Async-signal-safe.
pub(in crate::process) fn rule_out_new_privileges() -> bool {
    // SAFETY: the call takes numbers.
    unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 }
}

/// Applies a Landlock ruleset to this thread and its children. Async-signal-safe.
pub(in crate::process) fn apply_ruleset(ruleset: &OwnedFd) -> bool {
    // SAFETY: a plain system call on numbers; the descriptor is open.
    unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) == 0 }
}

/// Installs a seccomp filter for this thread and its children, without slowing the processor down
/// if the kernel can; an empty one means none. Async-signal-safe.
pub(in crate::process) fn install_filter(steps: &[libc::sock_filter]) -> bool {
    if steps.is_empty() {
        return true;
    }
    let program =
        libc::sock_fprog { len: steps.len() as libc::c_ushort, filter: steps.as_ptr().cast_mut() };
    // SAFETY: the program is valid for its length and outlives the call, which copies it.
    let set = |flags: libc::c_ulong| unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            ptr::from_ref(&program),
        ) == 0
    };
    set(libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW) || set(0)
}

/// Sets a limit, or keeps a lower existing one.
pub(in crate::process) fn limit(what: LimitedResource, most: u64) -> bool {
    // SAFETY: the limits are valid places to read from and write to.
    unsafe {
        let mut now: libc::rlimit = mem::zeroed();
        if libc::getrlimit(what.id(), &mut now) == -1 {
            return false;
        }
        let most = now.rlim_max.min(most as libc::rlim_t);
        let new = libc::rlimit { rlim_cur: most, rlim_max: most };
        libc::setrlimit(what.id(), &new) == 0
    }
}

/// Whether the kernel filters calls.
pub(in crate::process) fn has_filters() -> bool {
    // SAFETY: the call takes numbers, and fails on kernels without filters.
    unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) >= 0 }
}

/// Whether karve runs as root.
pub(in crate::process) fn is_root() -> bool {
    // SAFETY: the call has no preconditions.
    unsafe { libc::geteuid() == 0 }
}

/// The ids of the user and the group that karve acts for.
pub(in crate::process) fn ids() -> (u32, u32) {
    // SAFETY: the calls have no preconditions.
    unsafe { (libc::geteuid(), libc::getegid()) }
}
