//! How a child is started: fork, set up, exec.
//!
//! What runs between fork and exec ([`Start::become_command`]) is async-signal-safe: it neither
//! allocates nor locks, for another thread of karve may hold any lock at the moment of the fork.

use std::ffi::{CStr, CString};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::{mem, ptr};

use super::{Pid, Wait, pidfd_open, wait};

/// Flag of `clone3`: the child starts in the control group whose directory is given.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Flag of `close_range`: the descriptors are closed by exec, not at once.
const CLOSE_RANGE_CLOEXEC: libc::c_uint = 4;

/// Signals are numbered from 1 to this.
const SIGNAL_MAX: i32 = 64;

/// CPUs are numbered below this: no Linux is built for more.
pub(in crate::process) const CPUS_MAX: usize = 8192;

/// A set of CPUs, as the kernel reads it: one bit for each.
pub(in crate::process) type CpuMask = [u64; CPUS_MAX / 64];

/// Why a command did not start.
#[derive(Debug)]
pub(in crate::process) enum SpawnError {
    /// The process could not be made.
    Fork(io::Error),
    /// Its streams, session or death signal could not be set up.
    Prepare(io::Error),
    /// It could not be pinned to its CPUs.
    Pin(io::Error),
    /// Its directory could not be entered.
    Enter(io::Error),
    /// The program could not be executed.
    Execute(io::Error),
}

/// All that a child needs, made before the fork so that the child need not allocate.
pub(in crate::process) struct Start<'a> {
    /// The file to execute.
    pub(in crate::process) program: &'a CStr,
    /// Its arguments, the name first.
    pub(in crate::process) argv: &'a [CString],
    /// Its environment, as `NAME=value`.
    pub(in crate::process) env: &'a [CString],
    /// Its working directory.
    pub(in crate::process) dir: &'a CStr,
    /// What becomes of descriptors 0, 1 and 2.
    pub(in crate::process) streams: [BorrowedFd<'a>; 3],
    /// The control group to be born in, if there is one.
    pub(in crate::process) cgroup: Option<BorrowedFd<'a>>,
    /// The CPUs to run on, if not on those of karve.
    pub(in crate::process) cpus: Option<&'a CpuMask>,
    /// What happens to it when karve dies.
    pub(in crate::process) death: Death,
}

/// What happens to a child when karve dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::process) enum Death {
    /// It is killed.
    WithKarve,
    /// Nothing: it outlives karve.
    OnItsOwn,
}

/// A started child.
#[derive(Debug)]
pub(in crate::process) struct Child {
    /// Its id, which is also its process group and session.
    pub(in crate::process) pid: Pid,
    /// Readable when the child has ended; absent on old kernels.
    pub(in crate::process) pidfd: Option<OwnedFd>,
    /// Whether it was born in the control group.
    pub(in crate::process) in_cgroup: bool,
}

/// The stages at which a child can fail, as one byte on the failure pipe.
const STAGE_PREPARE: u8 = 1;
const STAGE_ENTER: u8 = 2;
const STAGE_EXECUTE: u8 = 3;
const STAGE_PIN: u8 = 4;

/// Starts a child and returns once it has executed its program, or failed to.
pub(in crate::process) fn spawn(start: &Start<'_>) -> Result<Child, SpawnError> {
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
                STAGE_PIN => SpawnError::Pin(error),
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
        } else if !self.pin() {
            STAGE_PIN
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
            if libc::setsid() == -1 {
                return false;
            }
            if self.death == Death::WithKarve {
                if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == -1 {
                    return false;
                }
                // If karve died before the line above, no signal will ever come.
                if libc::getppid() != parent {
                    libc::_exit(127);
                }
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

    /// Confines itself to its CPUs: to all of them, for the kernel would quietly leave out those
    /// that it may not have.
    fn pin(&self) -> bool {
        let Some(cpus) = self.cpus else { return true };
        let mut got: CpuMask = [0; CPUS_MAX / 64];
        let size = mem::size_of::<CpuMask>();
        // SAFETY: both sets are valid for their size; errno belongs to this thread.
        unsafe {
            if libc::sched_setaffinity(0, size, cpus.as_ptr().cast()) == -1
                || libc::sched_getaffinity(0, size, got.as_mut_ptr().cast()) == -1
            {
                return false;
            }
            if got != *cpus {
                *libc::__errno_location() = libc::EINVAL;
            }
        }
        got == *cpus
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
