//! The capabilities that a process drops before it loads a kernel: all of them, permanently.
//!
//! One is kept if the project's files could not be read without it, such as those of another user
//! for whom root builds: the capability to read any file; a worker of that user can read them too.

use std::ffi::CStr;

/// The header of the call, in its third version.
const VERSION: u32 = 0x2008_0522;

/// The capability to read and search everything.
const READ_ANY: u32 = 1 << 2;

/// More than any kernel has.
const CAPABILITIES_MAX: libc::c_ulong = 64;

/// Whose capabilities: those of this thread.
#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: i32,
}

/// Thirty-two capabilities: effective, permitted, inheritable.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CapabilitySet {
    used: u32,
    usable: u32,
    inherited: u32,
}

/// Drops all of them, except reading if a path cannot be opened otherwise.
pub(super) fn give_up(must_open: &CStr) {
    // No program that is started can regain them.
    for power in 0..CAPABILITIES_MAX {
        // SAFETY: the call takes numbers; an unknown capability is refused.
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, power, 0, 0, 0) } == -1 {
            break;
        }
    }
    // SAFETY: the call takes numbers.
    unsafe {
        let all = libc::PR_CAP_AMBIENT_CLEAR_ALL;
        libc::prctl(libc::PR_CAP_AMBIENT, all, 0, 0, 0);
    }
    let usable = usable();
    set([0, 1].map(|half| CapabilitySet {
        usable: usable[half],
        ..CapabilitySet::default()
    }));
    let kept = match opens(must_open) {
        true => 0,
        false => READ_ANY & usable[0],
    };
    let low = CapabilitySet {
        used: kept,
        usable: kept,
        inherited: 0,
    };
    set([low, CapabilitySet::default()]);
}

/// The permitted capabilities of this thread.
fn usable() -> [u32; 2] {
    let header = CapabilityHeader {
        version: VERSION,
        pid: 0,
    };
    let mut powers = [CapabilitySet::default(); 2];
    // SAFETY: both places outlive the call, and the second has space for both halves.
    unsafe { libc::syscall(libc::SYS_capget, &header, powers.as_mut_ptr()) };
    powers.map(|half| half.usable)
}

fn set(powers: [CapabilitySet; 2]) {
    let header = CapabilityHeader {
        version: VERSION,
        pid: 0,
    };
    // SAFETY: both places outlive the call, and the second has both halves.
    unsafe { libc::syscall(libc::SYS_capset, &header, powers.as_ptr()) };
}

fn opens(path: &CStr) -> bool {
    // SAFETY: the path ends with a zero, and the descriptor is closed by its only owner.
    unsafe {
        let fd = libc::open(
            path.as_ptr(),
            libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK,
        );
        if fd >= 0 {
            libc::close(fd);
        }
        fd >= 0
    }
}
