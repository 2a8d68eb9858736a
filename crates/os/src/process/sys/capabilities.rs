//! The capabilities of root that a process drops.
//!
//! A command does this between fork and exec, so nothing here allocates.

use std::ptr;

/// Those that concern files, which the other layers protect: change owners and modes of any file,
/// and write to any.
pub(in crate::process) const OF_FILES: u64 = 1 << 0 | 1 << 1 | 1 << 3 | 1 << 4;

/// The capability to read and search everything.
pub(in crate::process) const READ_ANY: u64 = 1 << 2;

/// The third version of the layout that the calls read.
const VERSION: u32 = 0x2008_0522;

/// More than any kernel has.
const CAPABILITIES_MAX: libc::c_ulong = 64;

/// Whose capabilities: those of this thread.
#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: libc::c_int,
}

const OWN: CapabilityHeader = CapabilityHeader { version: VERSION, pid: 0 };

/// Keeps only these, as far as it has them. A program that it executes cannot regain the others if
/// new privileges are ruled out. Async-signal-safe.
pub(in crate::process) fn keep_capabilities(kept: u64) -> bool {
    permitted().is_some_and(|permitted| set(kept & permitted, kept & permitted))
}

/// Uses none for now, but may still keep some. Async-signal-safe.
pub(in crate::process) fn suspend_capabilities() -> bool {
    permitted().is_some_and(|permitted| set(0, permitted))
}

/// No program that is started can get any. Async-signal-safe.
pub(in crate::process) fn bar_capabilities() {
    for one in 0..CAPABILITIES_MAX {
        // SAFETY: the call takes numbers; an unknown capability is refused.
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, one, 0, 0, 0) } == -1 {
            break;
        }
    }
    // SAFETY: the call takes numbers.
    unsafe {
        let all = libc::PR_CAP_AMBIENT_CLEAR_ALL;
        libc::prctl(libc::PR_CAP_AMBIENT, all, 0, 0, 0);
    }
}

fn permitted() -> Option<u64> {
    // The effective, permitted and inheritable ones, and then the high halves of these.
    let mut now = [0_u32; 6];
    // SAFETY: both places outlive the call and are valid for the version.
    let got = unsafe { libc::syscall(libc::SYS_capget, ptr::from_ref(&OWN), now.as_mut_ptr()) };
    (got == 0).then_some(u64::from(now[4]) << 32 | u64::from(now[1]))
}

fn set(effective: u64, permitted: u64) -> bool {
    let halves = |all: u64| (all as u32, (all >> 32) as u32);
    let ((effective, effective_high), (permitted, permitted_high)) =
        (halves(effective), halves(permitted));
    let new = [effective, permitted, 0, effective_high, permitted_high, 0];
    // SAFETY: both places outlive the call and are valid for the version.
    unsafe { libc::syscall(libc::SYS_capset, ptr::from_ref(&OWN), new.as_ptr()) == 0 }
}
