//! The system calls behind `process`, and the only unsafe code of karve.
//!
//! Each function wraps one or a few calls and is safe to use. What runs between fork and exec
//! ([`Start::become_command`]) is async-signal-safe: it neither allocates nor locks, for another
//! thread of karve may hold any lock at the moment of the fork.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Once;
use std::time::Duration;
use std::{mem, ptr};

/// A process id, as the kernel writes it.
pub(super) type Pid = libc::pid_t;

/// Flag of `clone3`: the child starts in the control group whose directory is given.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Flag of `close_range`: the descriptors are closed by exec, not at once.
const CLOSE_RANGE_CLOEXEC: libc::c_uint = 4;

/// Signals are numbered from 1 to this.
const SIGNAL_MAX: i32 = 64;

/// What a process used, as `wait4` tells.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// User and system time.
    pub(super) cpu: Duration,
    /// The largest resident set.
    pub(super) max_rss_bytes: u64,
}

impl Usage {
    /// Adds what another process used.
    pub(super) fn add(&mut self, other: Self) {
        self.cpu += other.cpu;
        self.max_rss_bytes = self.max_rss_bytes.max(other.max_rss_bytes);
    }
}

/// Why a command did not start.
#[derive(Debug)]
pub(super) enum SpawnError {
    /// The process could not be made.
    Fork(io::Error),
    /// Its streams, session or death signal could not be set up.
    Prepare(io::Error),
    /// Its directory could not be entered.
    Enter(io::Error),
    /// The program could not be executed.
    Execute(io::Error),
}

/// All that a child needs, made before the fork so that the child need not allocate.
pub(super) struct Start<'a> {
    /// The file to execute.
    pub(super) program: &'a CStr,
    /// Its arguments, the name first.
    pub(super) argv: &'a [CString],
    /// Its environment, as `NAME=value`.
    pub(super) env: &'a [CString],
    /// Its working directory.
    pub(super) dir: &'a CStr,
    /// What becomes of descriptors 0, 1 and 2.
    pub(super) streams: [BorrowedFd<'a>; 3],
    /// The control group to be born in, if there is one.
    pub(super) cgroup: Option<BorrowedFd<'a>>,
}

/// A started child.
#[derive(Debug)]
pub(super) struct Child {
    /// Its id, which is also its process group and session.
    pub(super) pid: Pid,
    /// Readable when the child has ended; absent on old kernels.
    pub(super) pidfd: Option<OwnedFd>,
    /// Whether it was born in the control group.
    pub(super) in_cgroup: bool,
}

/// The stages at which a child can fail, as one byte on the failure pipe.
const STAGE_PREPARE: u8 = 1;
const STAGE_ENTER: u8 = 2;
const STAGE_EXECUTE: u8 = 3;

/// Starts a child and returns once it has executed its program, or failed to.
pub(super) fn spawn(start: &Start<'_>) -> Result<Child, SpawnError> {
    let (mut failure_read, failure_write) = io::pipe().map_err(SpawnError::Fork)?;
    let argv = null_terminated(start.argv);
    let env = null_terminated(start.env);
    // SAFETY: getpid has no preconditions.
    let parent = unsafe { libc::getpid() };
    let born = {
        let _blocked = BlockedSignals::all();
        match fork(start.cgroup).map_err(SpawnError::Fork)? {
            Fork::Child => {
                start.become_command(&argv, &env, parent, failure_write.as_raw_fd());
            }
            Fork::Parent(child) => child,
        }
    };
    drop(failure_write);
    let mut report = [0_u8; 5];
    match failure_read.read_exact(&mut report) {
        // The pipe was closed by a successful exec.
        Err(_) => Ok(born),
        Ok(()) => {
            let [stage, errno @ ..] = report;
            let error = io::Error::from_raw_os_error(i32::from_ne_bytes(errno));
            // The child is exiting: it is reaped here as nobody else knows of it.
            let _ = wait(born.pid, Wait::Block);
            Err(match stage {
                STAGE_ENTER => SpawnError::Enter(error),
                STAGE_EXECUTE => SpawnError::Execute(error),
                _ => SpawnError::Prepare(error),
            })
        }
    }
}

fn null_terminated(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings
        .iter()
        .map(|s| s.as_ptr())
        .chain([ptr::null()])
        .collect()
}

enum Fork {
    Child,
    Parent(Child),
}

/// The argument of `clone3`, as far as this file uses it; the rest is zero.
#[repr(C, align(8))]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// Forks, into the control group if one is given and the kernel can.
///
/// Being born there costs nothing, while moving there afterwards makes the kernel wait for a grace
/// period of several milliseconds, and would leave a moment in which a descendant could escape.
fn fork(cgroup: Option<BorrowedFd<'_>>) -> io::Result<Fork> {
    if let Some(cgroup) = cgroup
        && let Ok(forked) = fork_into(cgroup)
    {
        return Ok(forked);
    }
    // SAFETY: the child runs only async-signal-safe code until it executes or exits.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        pid => Ok(Fork::Parent(Child {
            pid,
            pidfd: pidfd_open(pid).ok(),
            in_cgroup: false,
        })),
    }
}

fn fork_into(cgroup: BorrowedFd<'_>) -> io::Result<Fork> {
    let mut pidfd: libc::c_int = -1;
    let args = CloneArgs {
        flags: CLONE_INTO_CGROUP | libc::CLONE_PIDFD as u64,
        pidfd: ptr::from_mut(&mut pidfd) as u64,
        exit_signal: libc::SIGCHLD as u64,
        cgroup: cgroup.as_raw_fd() as u64,
        ..CloneArgs::default()
    };
    // SAFETY: without CLONE_VM the child has its own copy of memory and stack, as after fork; it
    // runs only async-signal-safe code until it executes or exits. The arguments outlive the call.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            ptr::from_ref(&args),
            mem::size_of::<CloneArgs>(),
        )
    };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        pid => {
            // SAFETY: the kernel has just made this descriptor for us, and nobody else knows it.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            Ok(Fork::Parent(Child {
                pid: pid as Pid,
                pidfd: Some(pidfd),
                in_cgroup: true,
            }))
        }
    }
}

impl Start<'_> {
    /// The life of the child from fork to exec. Async-signal-safe.
    fn become_command(
        &self,
        argv: &[*const libc::c_char],
        env: &[*const libc::c_char],
        parent: Pid,
        failure: libc::c_int,
    ) -> ! {
        let stage = if !self.prepare(parent) {
            STAGE_PREPARE
        } else if !self.enter() {
            STAGE_ENTER
        } else {
            reset_signals();
            // SAFETY: both arrays end with a null pointer, and their strings outlive the call.
            unsafe { libc::execve(self.program.as_ptr(), argv.as_ptr(), env.as_ptr()) };
            STAGE_EXECUTE
        };
        let errno = io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or(0)
            .to_ne_bytes();
        let report = [stage, errno[0], errno[1], errno[2], errno[3]];
        // SAFETY: the buffer is valid for its length; _exit runs no code of ours.
        unsafe {
            libc::write(failure, report.as_ptr().cast(), report.len());
            libc::_exit(127)
        }
    }

    /// Own session, death with karve, the three streams.
    fn prepare(&self, parent: Pid) -> bool {
        // SAFETY: plain system calls on numbers; the descriptors are open, and are all above 2
        // because the runtime of Rust opens 0, 1 and 2 before main.
        unsafe {
            if libc::setsid() == -1 || libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == -1 {
                return false;
            }
            // If karve died before the line above, no signal will ever come.
            if libc::getppid() != parent {
                libc::_exit(127);
            }
            // What karve itself inherited is none of the command's business. Old kernels cannot do
            // this, and then only descriptors pass that others forgot to protect.
            libc::syscall(
                libc::SYS_close_range,
                3,
                libc::c_uint::MAX,
                CLOSE_RANGE_CLOEXEC,
            );
            (0..)
                .zip(&self.streams)
                .all(|(target, fd)| libc::dup2(fd.as_raw_fd(), target) != -1)
        }
    }

    fn enter(&self) -> bool {
        // SAFETY: the path is a null-terminated string.
        unsafe { libc::chdir(self.dir.as_ptr()) == 0 }
    }
}

/// Gives the child default signal dispositions and an empty mask. Async-signal-safe.
///
/// Ignoring a signal first discards it where it is pending: a Ctrl-C that reached the child before
/// it had its own session was not meant for it.
fn reset_signals() {
    // SAFETY: the calls are async-signal-safe, and refuse signals that cannot be set.
    unsafe {
        for signal in 1..=SIGNAL_MAX {
            libc::signal(signal, libc::SIG_IGN);
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none = mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut());
    }
}

/// Blocks all signals of this thread while it lives.
///
/// Without it a signal between fork and exec would run the handlers of karve in the child, which
/// shares their pipes.
struct BlockedSignals(libc::sigset_t);

impl BlockedSignals {
    fn all() -> Self {
        // SAFETY: a zeroed set is a valid place to write to; both sets outlive the calls.
        unsafe {
            let mut all = mem::zeroed();
            let mut before = mem::zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
            Self(before)
        }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: the set was filled by pthread_sigmask.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, ptr::null_mut()) };
    }
}

/// Makes orphaned descendants children of karve instead of init; once per process.
pub(super) fn become_subreaper() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the option takes one number. Kernels without it leave orphans to init, where
        // their marks still tell whose they are.
        unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
    });
}

/// Whether to wait for a child that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    Block,
    Look,
}

/// Reaps a child and gives its status, or `None` if it has not ended.
pub(super) fn wait(pid: Pid, how: Wait) -> io::Result<Option<(i32, Usage)>> {
    let flags = match how {
        Wait::Block => 0,
        Wait::Look => libc::WNOHANG,
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

fn parse_usage(usage: &libc::rusage) -> Usage {
    let duration = |t: libc::timeval| {
        Duration::from_secs(t.tv_sec as u64) + Duration::from_micros(t.tv_usec as u64)
    };
    Usage {
        cpu: duration(usage.ru_utime) + duration(usage.ru_stime),
        max_rss_bytes: usage.ru_maxrss as u64 * 1024,
    }
}

/// What a wait status says: the exit code, or the signal as the error.
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
    // SAFETY: the kernel has just made this descriptor for us, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}

/// Sends SIGKILL to exactly the process behind a pidfd.
pub(super) fn kill_pidfd(pidfd: &OwnedFd) {
    let none = ptr::null::<libc::siginfo_t>();
    // SAFETY: the descriptor is open, and a null siginfo is allowed.
    unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            libc::SIGKILL,
            none,
            0,
        );
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

/// Waits until a descriptor is readable or closed, or the time is over.
///
/// Absent descriptors are passed over. Tells for each whether it is ready; after a signal none is.
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
    let n = unsafe {
        libc::ppoll(
            polled.as_mut_ptr(),
            N as libc::nfds_t,
            &timeout,
            ptr::null(),
        )
    };
    if n == -1 {
        let error = io::Error::last_os_error();
        return match error.kind() {
            io::ErrorKind::Interrupted => Ok([false; N]),
            _ => Err(error),
        };
    }
    Ok(polled.map(|p| p.revents != 0))
}

/// Makes reads of a descriptor return at once when there is nothing to read.
pub(super) fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the descriptor is open, and both commands take and give numbers.
    let done = unsafe {
        let flags = libc::fcntl(fd.as_raw_fd(), libc::F_GETFL);
        flags != -1 && libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK) != -1
    };
    if done {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// A nameless file in memory that holds the bytes and is read from its beginning.
pub(super) fn file_in_memory(bytes: &[u8]) -> io::Result<File> {
    // Some machines refuse such files unless they are marked as not executable, and old kernels do
    // not know the mark.
    let create = |flags| {
        // SAFETY: the name is a null-terminated string.
        let fd = unsafe { libc::memfd_create(c"karve-stdin".as_ptr(), flags) };
        if fd == -1 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just made this descriptor for us, and nobody else knows it.
        Ok(File::from(unsafe { OwnedFd::from_raw_fd(fd) }))
    };
    let mut file =
        create(libc::MFD_CLOEXEC | libc::MFD_NOEXEC_SEAL).or_else(|_| create(libc::MFD_CLOEXEC))?;
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}
