//! The powers of root that a process gives up before it loads a kernel: all of them, for good.
//!
//! One is kept where the files of the project could not be read without it, as those of another
//! user whom root builds for: the power to read any file, which a worker of the user has too.

use std::ffi::CStr;

/// The header of the call, in its third version.
const VERSION: u32 = 0x2008_0522;

/// The power to read and search whatever there is.
const READ_ANY: u32 = 1 << 2;

/// More than any kernel knows of.
const POWERS_MAX: libc::c_ulong = 64;

/// Whose powers: those of this thread.
#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

/// Thirty-two powers: those in use, those that may be used, those that a program would inherit.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Powers {
    used: u32,
    usable: u32,
    inherited: u32,
}

/// Gives them all up but for reading, if a path cannot be opened otherwise.
pub(super) fn give_up(must_open: &CStr) {
    // No program that is started could have them again.
    for power in 0..POWERS_MAX {
        // SAFETY: the call takes numbers; a power that there is not is refused.
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
    set([0, 1].map(|half| Powers {
        usable: usable[half],
        ..Powers::default()
    }));
    let kept = match opens(must_open) {
        true => 0,
        false => READ_ANY & usable[0],
    };
    let low = Powers {
        used: kept,
        usable: kept,
        inherited: 0,
    };
    set([low, Powers::default()]);
}

/// The powers that this thread may use.
fn usable() -> [u32; 2] {
    let header = Header {
        version: VERSION,
        pid: 0,
    };
    let mut powers = [Powers::default(); 2];
    // SAFETY: both places outlive the call, and the second has room for both halves.
    unsafe { libc::syscall(libc::SYS_capget, &header, powers.as_mut_ptr()) };
    powers.map(|half| half.usable)
}

fn set(powers: [Powers; 2]) {
    let header = Header {
        version: VERSION,
        pid: 0,
    };
    // SAFETY: both places outlive the call, and the second has both halves.
    unsafe { libc::syscall(libc::SYS_capset, &header, powers.as_ptr()) };
}

fn opens(path: &CStr) -> bool {
    // SAFETY: the path ends with a zero, and the descriptor is closed by the one who knows it.
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
