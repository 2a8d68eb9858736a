//! What a child permanently drops before it executes: files, calls, privileges and resources.
//!
//! Everything is prepared before the fork. The code that the child runs is async-signal-safe.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::{mem, ptr};

/// Flag of `landlock_create_ruleset`: only return the version.
const LANDLOCK_VERSION: libc::c_uint = 1;

/// The kind of a rule for a file hierarchy.
const LANDLOCK_PATH_BENEATH: libc::c_uint = 1;

/// Operation and flag of `seccomp`: a filter that does not slow the processor down.
const SECCOMP_SET_FILTER: libc::c_uint = 1;
const SECCOMP_SPEC_ALLOW: libc::c_ulong = 1 << 2;

/// Capabilities of root that a command keeps: they concern files, which the other layers protect.
const KEPT_RIGHTS: [i32; 4] = [0, 1, 3, 4];

/// The layout of the capabilities that `capset` reads.
const CAPABILITY_VERSION: u32 = 0x2008_0522;

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
        // SAFETY: plain system calls on numbers; the descriptor is open.
        unsafe {
            if !limited || libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 {
                return false;
            }
            if self.drops_rights && !drop_rights() {
                return false;
            }
            self.ruleset.as_ref().is_none_or(|ruleset| {
                libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) == 0
            })
        }
    }

    /// Installs the call filter; the last step before the program is executed. Async-signal-safe.
    pub(super) fn filter(&self) -> bool {
        if self.filter.is_empty() {
            return true;
        }
        let program = libc::sock_fprog {
            len: self.filter.len() as libc::c_ushort,
            filter: self.filter.as_ptr().cast_mut(),
        };
        // SAFETY: the program is valid for its length and outlives the call, which copies it.
        let set = |flags: libc::c_ulong| unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                SECCOMP_SET_FILTER,
                flags,
                ptr::from_ref(&program),
            ) == 0
        };
        set(SECCOMP_SPEC_ALLOW) || set(0)
    }
}

/// Sets a limit, or keeps a lower existing one.
fn limit(what: LimitedResource, most: u64) -> bool {
    // SAFETY: the limits are valid places to read from and write to.
    unsafe {
        let mut now: libc::rlimit = mem::zeroed();
        if libc::getrlimit(what.id(), &mut now) == -1 {
            return false;
        }
        let most = now.rlim_max.min(most as libc::rlim_t);
        let new = libc::rlimit {
            rlim_cur: most,
            rlim_max: most,
        };
        libc::setrlimit(what.id(), &new) == 0
    }
}

/// Drops root's capabilities that a command may not have. A program that it executes cannot regain
/// them, since [`Cage::restrict`] rules out new privileges first.
fn drop_rights() -> bool {
    #[repr(C)]
    struct CapsetHeader {
        version: u32,
        pid: libc::c_int,
    }
    let header = CapsetHeader {
        version: CAPABILITY_VERSION,
        pid: 0,
    };
    let kept = KEPT_RIGHTS
        .iter()
        .fold(0_u32, |all, right| all | 1 << right);
    // SAFETY: both places are valid for the given version; they hold the effective, permitted and
    // inheritable capabilities, and then the high halves of these.
    unsafe {
        let mut now = [0_u32; 6];
        let (header, rights) = (ptr::from_ref(&header), now.as_mut_ptr());
        if libc::syscall(libc::SYS_capget, header, rights) == -1 {
            return false;
        }
        // A missing capability cannot be kept.
        let kept = kept & now[1];
        let new = [kept, kept, 0, 0, 0, 0];
        libc::syscall(libc::SYS_capset, header, new.as_ptr()) == 0
    }
}

/// The version of Landlock that the kernel offers; 0 if none.
pub(in crate::process) fn landlock_version() -> u32 {
    let none = ptr::null::<u8>();
    // SAFETY: with this flag the call reads nothing.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            none,
            0_usize,
            LANDLOCK_VERSION,
        )
    };
    u32::try_from(version).unwrap_or(0)
}

/// What a ruleset restricts, as the kernel reads it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::process) struct LandlockAccess {
    /// Which accesses to files.
    pub(in crate::process) files: u64,
    /// Which uses of TCP.
    pub(in crate::process) net: u64,
    /// What is confined to the sandbox.
    pub(in crate::process) scoped: u64,
}

/// An empty ruleset: nothing that it restricts is allowed.
pub(in crate::process) fn landlock_ruleset(governed: LandlockAccess) -> io::Result<OwnedFd> {
    // SAFETY: the place is valid for its size, and fields that an old kernel does not know are
    // zero.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            ptr::from_ref(&governed),
            mem::size_of::<LandlockAccess>(),
            0,
        )
    };
    if fd == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just created this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}

/// Allows accesses to an open path and everything below it.
pub(in crate::process) fn landlock_allow(
    ruleset: BorrowedFd<'_>,
    path: &File,
    accesses: u64,
) -> io::Result<()> {
    #[repr(C, packed)]
    struct PathBeneath {
        accesses: u64,
        fd: i32,
    }
    let rule = PathBeneath {
        accesses,
        fd: path.as_raw_fd(),
    };
    // SAFETY: both descriptors are open, and the rule outlives the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            ruleset.as_raw_fd(),
            LANDLOCK_PATH_BENEATH,
            ptr::from_ref(&rule),
            0,
        )
    };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
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
