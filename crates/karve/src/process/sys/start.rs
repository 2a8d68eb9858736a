//! How a child is started: fork, set up, exec.
//!
//! What runs between fork and exec ([`Life::become_command`]) is async-signal-safe: it neither
//! allocates nor locks, for another thread of karve may hold any lock at the moment of the fork. It
//! writes to its own stack only, for it may share the memory of karve.

use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Instant;
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
    /// The moment before it was made.
    pub(in crate::process) started: Instant,
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
    let life = Life {
        start,
        argv: &argv,
        env: &env,
        // SAFETY: getpid has no preconditions.
        parent: unsafe { libc::getpid() },
        failure: failure_write.as_raw_fd(),
    };
    let born = {
        let _blocked = BlockedSignals::all();
        fork(&life).map_err(SpawnError::Fork)?
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

/// What a child has to do until it is the command.
struct Life<'a> {
    start: &'a Start<'a>,
    argv: &'a [*const libc::c_char],
    env: &'a [*const libc::c_char],
    parent: Pid,
    /// Where it says that it failed.
    failure: libc::c_int,
}

/// Makes the child, in the control group if one is given and the kernel can.
///
/// Being born there costs nothing, while moving there afterwards makes the kernel wait for a grace
/// period of several milliseconds, and would leave a moment in which a descendant could escape.
fn fork(life: &Life<'_>) -> io::Result<Child> {
    if let Ok(child) = clone_child(life) {
        return Ok(child);
    }
    let started = Instant::now();
    // SAFETY: the child runs only async-signal-safe code until it executes or exits.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => life.become_command(),
        pid => Ok(Child {
            started,
            pid,
            pidfd: pidfd_open(pid).ok(),
            in_cgroup: false,
        }),
    }
}

thread_local! {
    /// The stack of the last child of this thread: making one anew costs a short run dearly.
    static STACK: Cell<Option<Vec<u128>>> = const { Cell::new(None) };
}

fn clone_child(life: &Life<'_>) -> io::Result<Child> {
    let mut pidfd: libc::c_int = -1;
    // Taken out while it is used, so that nobody else can use it.
    let fresh = || vec![0_u128; STACK_BYTES / mem::size_of::<u128>()];
    let mut stack = STACK.take().unwrap_or_else(fresh);
    let mut args = CloneArgs {
        flags: CLONE_MEMORY | libc::CLONE_PIDFD as u64,
        pidfd: ptr::from_mut(&mut pidfd) as u64,
        exit_signal: libc::SIGCHLD as u64,
        ..CloneArgs::default()
    };
    if let Some(cgroup) = life.start.cgroup {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = cgroup.as_raw_fd() as u64;
    }
    if CLONE_MEMORY != 0 {
        args.stack = stack.as_mut_ptr() as u64;
        args.stack_size = STACK_BYTES as u64;
    }
    let started = Instant::now();
    // SAFETY: the arguments, the stack and the life outlive the child's use of them: it has
    // executed or exited when the call returns, or it has a copy of all memory.
    let pid = unsafe { clone3(&args, life) };
    STACK.set(Some(stack));
    let pid = pid?;
    // SAFETY: the kernel has just made this descriptor for us, and nobody else knows it.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok(Child {
        started,
        pid,
        pidfd: Some(pidfd),
        in_cgroup: life.start.cgroup.is_some(),
    })
}

/// Flags that make the child use the memory of karve, which waits meanwhile, instead of a copy: the
/// larger karve has grown, the longer a copy takes, and each page of it again when it is written.
#[cfg(target_arch = "x86_64")]
const CLONE_MEMORY: u64 = (libc::CLONE_VM | libc::CLONE_VFORK) as u64;

#[cfg(not(target_arch = "x86_64"))]
const CLONE_MEMORY: u64 = 0;

/// The stack of a child that uses the memory of karve: it calls a few small functions.
const STACK_BYTES: usize = 64 << 10;

/// Makes a child that lives its life on the stack that the arguments name; gives its id.
///
/// # Safety
///
/// The stack must be large enough, and used by nobody else.
#[cfg(target_arch = "x86_64")]
unsafe fn clone3(args: &CloneArgs, life: &Life<'_>) -> io::Result<Pid> {
    extern "C" fn live(life: &Life<'_>) -> ! {
        life.become_command()
    }
    let result: i64;
    // SAFETY: the kernel keeps all registers but those named here. The child starts behind the
    // system call on its own stack, whose end is aligned as a call wants it, and never leaves
    // `live`; so it touches nothing of this frame.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, {life}",
            "call {live}",
            "ud2",
            "2:",
            life = in(reg) ptr::from_ref(life),
            live = sym live,
            inlateout("rax") libc::SYS_clone3 => result,
            in("rdi") ptr::from_ref(args),
            in("rsi") mem::size_of::<CloneArgs>(),
            out("rcx") _,
            out("r11") _,
        );
    }
    if result < 0 {
        return Err(io::Error::from_raw_os_error(-result as i32));
    }
    Ok(result as Pid)
}

/// Makes a child with a copy of all memory, as fork does; gives its id.
///
/// # Safety
///
/// No thread may hold a lock that the child needs, which takes none.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn clone3(args: &CloneArgs, life: &Life<'_>) -> io::Result<Pid> {
    // SAFETY: the child runs only async-signal-safe code until it executes or exits.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            ptr::from_ref(args),
            mem::size_of::<CloneArgs>(),
        )
    };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => life.become_command(),
        pid => Ok(pid as Pid),
    }
}

impl Life<'_> {
    /// From fork to exec. Async-signal-safe.
    fn become_command(&self) -> ! {
        let start = self.start;
        let stage = if !start.prepare(self.parent) {
            STAGE_PREPARE
        } else if !start.pin() {
            STAGE_PIN
        } else if !start.enter() {
            STAGE_ENTER
        } else {
            reset_signals();
            // SAFETY: both arrays end with a null pointer, and their strings outlive the call.
            unsafe {
                libc::execve(
                    start.program.as_ptr(),
                    self.argv.as_ptr(),
                    self.env.as_ptr(),
                )
            };
            STAGE_EXECUTE
        };
        let errno = io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or(0)
            .to_ne_bytes();
        let report = [stage, errno[0], errno[1], errno[2], errno[3]];
        // SAFETY: the buffer is valid for its length; _exit runs no code of ours.
        unsafe {
            libc::write(self.failure, report.as_ptr().cast(), report.len());
            libc::_exit(127)
        }
    }
}

impl Start<'_> {
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
