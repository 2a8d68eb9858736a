//! The system calls behind `process`, and the only unsafe code of karve.
//!
//! Each function wraps one or a few calls and is safe to use. The start of a child, the privileges
//! it drops, and its namespace sandbox are separate modules.

mod capabilities;
mod child_socket;
mod clone;
mod namespace;
mod sandbox_profile;
mod signals;
mod start;

use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::{io, mem, ptr};

pub(super) use self::capabilities::{
    READ_ANY, bar_capabilities, keep_capabilities, suspend_capabilities,
};
pub(super) use self::child_socket::{
    bounded_file, continue_process, cpu_time_of, receive_message, send_message, socket_pair,
    stop_and_wait, written_text,
};
pub(super) use self::namespace::{NamespaceHandle, NamespacePlan, TREES_MAX, ViewAction};
pub(super) use self::sandbox_profile::{
    LimitedResource, SandboxProfile, apply_ruleset, has_filters, ids, install_filter, is_root,
    limit, rule_out_new_privileges,
};
pub(super) use self::start::{
    CPUS_MAX, CpuMask, ParentDeathAction, SpawnError, SpawnSpec, SpawnedChild, affinity,
    set_affinity, spawn,
};

/// A process id, as the kernel writes it.
pub(super) type Pid = libc::pid_t;

/// What a process used, as reported by `wait4`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ResourceUsage {
    /// User and system time.
    pub(super) cpu: Duration,
    /// The largest resident set.
    pub(super) max_rss_bytes: u64,
}

impl ResourceUsage {
    /// Adds what another process used.
    pub(super) fn add(&mut self, other: Self) {
        self.cpu += other.cpu;
        self.max_rss_bytes = self.max_rss_bytes.max(other.max_rss_bytes);
    }
}

/// Makes orphaned descendants children of karve instead of init, once per process.
pub(super) fn become_subreaper() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the option takes one number. Kernels without it leave orphans to init, where
        // their marks still identify them.
        unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
    });
}

/// Whether to wait for a child that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitMode {
    Block,
    Look,
}

/// How many children karve has begun to start.
static STARTS: AtomicU64 = AtomicU64::new(0);

/// How many children karve has begun to start so far.
pub(super) fn starts() -> u64 {
    STARTS.load(Ordering::SeqCst)
}

/// Counts a child, before it is started.
pub(super) fn count_start() {
    STARTS.fetch_add(1, Ordering::SeqCst);
}

/// Reaps a child and returns its status, or `None` if it has not ended.
pub(super) fn wait(pid: Pid, how: WaitMode) -> io::Result<Option<(i32, ResourceUsage)>> {
    let flags = match how {
        WaitMode::Block => 0,
        WaitMode::Look => libc::WNOHANG,
    };
    loop {
        let mut status = 0;
        // SAFETY: a zeroed rusage is a valid place to write to; both places outlive the call.
        let (reaped, usage) = unsafe {
            let mut usage = mem::zeroed();
            (libc::wait4(pid, &mut status, flags, &mut usage), usage)
        };
        match reaped {
            0 => return Ok(None),
            -1 => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            _ => return Ok(Some((status, parse_usage(&usage)))),
        }
    }
}

fn parse_usage(usage: &libc::rusage) -> ResourceUsage {
    let duration = |t: libc::timeval| {
        Duration::from_secs(t.tv_sec as u64) + Duration::from_micros(t.tv_usec as u64)
    };
    ResourceUsage {
        cpu: duration(usage.ru_utime) + duration(usage.ru_stime),
        max_rss_bytes: usage.ru_maxrss as u64 * 1024,
    }
}

/// Decodes a wait status: the exit code, or the signal as the error.
pub(super) fn parse_status(status: i32) -> Result<i32, i32> {
    if libc::WIFEXITED(status) {
        Ok(libc::WEXITSTATUS(status))
    } else {
        Err(libc::WTERMSIG(status))
    }
}

/// Whether a child has ended, or any child for `None`; reaps nothing.
pub(super) fn has_ended(pid: Option<Pid>) -> bool {
    let (kind, id) = pid.map_or((libc::P_ALL, 0), |pid| (libc::P_PID, pid as libc::id_t));
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: a zeroed siginfo is a valid place to write to, and its pid reads as zero unless the
    // kernel has filled it in.
    unsafe {
        let mut info: libc::siginfo_t = mem::zeroed();
        libc::waitid(kind, id, &mut info, flags) == 0 && info.si_pid() != 0
    }
}

/// A descriptor that becomes readable when the process ends.
pub(super) fn pidfd_open(pid: Pid) -> io::Result<OwnedFd> {
    // SAFETY: the call takes two numbers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if fd == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just created this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}

/// Sends SIGKILL to exactly the process behind a pidfd.
pub(super) fn kill_pidfd(pidfd: &OwnedFd) {
    let none = ptr::null::<libc::siginfo_t>();
    // SAFETY: the descriptor is open, and a null siginfo is allowed.
    unsafe {
        libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), libc::SIGKILL, none, 0);
    }
}

/// Sends SIGKILL to a process.
pub(super) fn kill(pid: Pid) {
    if pid > 1 {
        // SAFETY: the call takes two numbers.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    }
}

/// Sends SIGKILL to a process group, atomically: a member cannot fork its way out.
pub(super) fn kill_group(group: Pid) {
    if group > 1 {
        // SAFETY: the call takes two numbers.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
}

/// Waits until a descriptor is readable or closed, or the time is up.
///
/// Absent descriptors are skipped. Returns for each whether it is ready; after a signal none is.
pub(super) fn wait_readable<const N: usize>(
    fds: [Option<BorrowedFd<'_>>; N],
    timeout: Duration,
) -> io::Result<[bool; N]> {
    let mut polled = fds.map(|fd| libc::pollfd {
        fd: fd.map_or(-1, |fd| fd.as_raw_fd()),
        events: libc::POLLIN,
        revents: 0,
    });
    let timeout = libc::timespec {
        tv_sec: timeout.as_secs().min(i32::MAX as u64) as libc::time_t,
        tv_nsec: timeout.subsec_nanos().into(),
    };
    // SAFETY: the array has the given length, and both places outlive the call.
    let n = unsafe { libc::ppoll(polled.as_mut_ptr(), N as libc::nfds_t, &timeout, ptr::null()) };
    if n == -1 {
        let error = io::Error::last_os_error();
        return match error.kind() {
            io::ErrorKind::Interrupted => Ok([false; N]),
            _ => Err(error),
        };
    }
    Ok(polled.map(|p| p.revents != 0))
}

/// Makes reads of a descriptor return immediately when there is nothing to read.
pub(super) fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the descriptor is open, and the command takes and returns numbers.
    let done = unsafe {
        // The read end of a pipe has no other flag that could be set.
        libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) != -1
    };
    if done { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Drops the cached pages of a file; those that are not on disk yet stay.
pub(super) fn forget_pages(file: &File) {
    // SAFETY: the descriptor is open, and the call takes numbers. It is advisory, so a failure
    // does not matter.
    unsafe {
        libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED);
    }
}

/// An anonymous file in memory that contains the bytes and is read from its start.
pub(super) fn file_in_memory(bytes: &[u8]) -> io::Result<File> {
    // Some machines refuse such files unless they are marked as not executable, and old kernels do
    // not know that flag.
    let create = |flags| {
        // SAFETY: the name is a null-terminated string.
        let fd = unsafe { libc::memfd_create(c"karve-stdin".as_ptr(), flags) };
        if fd == -1 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just created this descriptor, and nothing else owns it.
        Ok(File::from(unsafe { OwnedFd::from_raw_fd(fd) }))
    };
    let mut file =
        create(libc::MFD_CLOEXEC | libc::MFD_NOEXEC_SEAL).or_else(|_| create(libc::MFD_CLOEXEC))?;
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}
