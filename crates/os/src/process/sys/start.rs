//! How a child is started: fork, set up, exec.
//!
//! What runs between fork and exec ([`ChildSetup::become_command`]) is async-signal-safe: it
//! neither allocates nor locks, because another thread of karve may hold any lock at the moment of
//! the fork. It writes only to its own stack, because it may share karve's memory.

use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::io::Read;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Instant;
use std::{io, mem, ptr};

use super::clone::{CLONE_MEMORY, CloneArgs, STACK_BYTES, clone3};
use super::namespace::NamespaceHandle;
use super::sandbox_profile::SandboxProfile;
use super::signals::{BlockedSignals, reset_signals};
use super::{Pid, WaitMode, count_start, pidfd_open, wait};

/// Flag of `clone3`: the child starts in the control group whose directory is given.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Flag of `close_range`: the descriptors are closed by exec, not immediately.
const CLOSE_RANGE_CLOEXEC: libc::c_uint = 4;

/// CPUs are numbered below this: no Linux is built for more.
pub(in crate::process) const CPUS_MAX: usize = 8192;

/// A set of CPUs, as the kernel reads it: one bit for each.
pub(in crate::process) type CpuMask = [u64; CPUS_MAX / 64];

/// The CPUs on which this thread may run.
pub(in crate::process) fn affinity() -> Option<CpuMask> {
    let mut got: CpuMask = [0; CPUS_MAX / 64];
    let size = mem::size_of::<CpuMask>();
    // SAFETY: the set is valid for its size.
    let found = unsafe { libc::sched_getaffinity(0, size, got.as_mut_ptr().cast()) };
    (found != -1).then_some(got)
}

/// From now on this thread runs on these CPUs, as far as allowed. Returns whether it worked.
pub(in crate::process) fn set_affinity(cpus: &CpuMask) -> bool {
    let size = mem::size_of::<CpuMask>();
    // SAFETY: the set is valid for its size.
    unsafe { libc::sched_setaffinity(0, size, cpus.as_ptr().cast()) != -1 }
}

/// Why a command did not start.
#[derive(Debug)]
pub(in crate::process) enum SpawnError {
    /// The process could not be created.
    Fork(io::Error),
    /// Its streams, session or death signal could not be set up.
    Prepare(io::Error),
    /// It could not be confined.
    Confine(io::Error),
    /// It could not be pinned to its CPUs.
    Pin(io::Error),
    /// Its directory could not be entered.
    Enter(io::Error),
    /// The program could not be executed.
    Execute(io::Error),
}

/// Everything that a child needs, prepared before the fork so that the child need not allocate.
pub(in crate::process) struct SpawnSpec<'a> {
    /// The file to execute.
    pub(in crate::process) program: &'a CStr,
    /// Its arguments, name first.
    pub(in crate::process) argv: &'a [CString],
    /// Its environment, as `NAME=value`.
    pub(in crate::process) env: &'a [CString],
    /// Its working directory.
    pub(in crate::process) dir: &'a CStr,
    /// What becomes of descriptors 0, 1 and 2.
    pub(in crate::process) streams: [BorrowedFd<'a>; 3],
    /// The control group to start in, if there is one.
    pub(in crate::process) cgroup: Option<BorrowedFd<'a>>,
    /// The CPUs to run on, if not karve's.
    pub(in crate::process) cpus: Option<&'a CpuMask>,
    /// What happens to it when karve dies.
    pub(in crate::process) death: ParentDeathAction,
    /// Its namespace sandbox, if it has one.
    pub(in crate::process) namespace: Option<&'a NamespaceHandle>,
    /// Its restrictions.
    pub(in crate::process) profile: Option<&'a SandboxProfile>,
}

/// What happens to a child when karve dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::process) enum ParentDeathAction {
    /// It is killed.
    WithKarve,
    /// Nothing: it outlives karve.
    OnItsOwn,
}

/// A started child.
#[derive(Debug)]
pub(in crate::process) struct SpawnedChild {
    /// The moment before it was created.
    pub(in crate::process) started: Instant,
    /// Its id, which is also its process group and session.
    pub(in crate::process) pid: Pid,
    /// Readable when the child has ended; absent on old kernels.
    pub(in crate::process) pidfd: Option<OwnedFd>,
    /// Whether it was started in the control group.
    pub(in crate::process) in_cgroup: bool,
}

/// The stages at which a child can fail, as one byte on the failure pipe.
const FAILURE_PREPARE: u8 = 1;
const FAILURE_ENTER: u8 = 2;
const FAILURE_EXECUTE: u8 = 3;
const FAILURE_PIN: u8 = 4;
const FAILURE_CONFINE: u8 = 5;

/// The message of a child that has started the command in its sandbox: the command's id, and
/// whether it was started in its control group.
const FAILURE_BORN: u8 = 6;
const FAILURE_BORN_ALONE: u8 = 7;

/// Starts a child and returns once it has executed its program, or failed to.
pub(in crate::process) fn spawn(start: &SpawnSpec<'_>) -> Result<SpawnedChild, SpawnError> {
    let (mut failure_read, failure_write) = io::pipe().map_err(SpawnError::Fork)?;
    let argv = null_terminated(start.argv);
    let env = null_terminated(start.env);
    let life = ChildSetup {
        start,
        argv: &argv,
        env: &env,
        // SAFETY: getpid has no preconditions.
        parent: unsafe { libc::getpid() },
        failure: failure_write.as_raw_fd(),
        inner_stack: Cell::new(0),
        inner_started: Cell::new(None),
    };
    count_start();
    let mut born = {
        let _blocked = BlockedSignals::all();
        fork(&life).map_err(SpawnError::Fork)?
    };
    drop(failure_write);
    let mut failure = None;
    let mut inner = None;
    let mut report = [0_u8; 5];
    // The pipe is closed by a successful exec.
    while failure_read.read_exact(&mut report).is_ok() {
        let [stage, number @ ..] = report;
        match (stage, i32::from_ne_bytes(number)) {
            (FAILURE_BORN, pid) => inner = Some((pid, true)),
            (FAILURE_BORN_ALONE, pid) => inner = Some((pid, false)),
            (stage, errno) => failure = Some((stage, io::Error::from_raw_os_error(errno))),
        }
    }
    if start.namespace.is_some() {
        // The child that started the command in its sandbox is done.
        let _ = wait(born.pid, WaitMode::Block);
        if let Some((pid, in_group)) = inner {
            born.in_cgroup &= in_group;
            born.pid = pid;
            born.pidfd = pidfd_open(pid).ok();
            born.started = life.inner_started.get().unwrap_or(born.started);
        }
    }
    let Some((stage, error)) = failure else {
        return if start.namespace.is_some() && inner.is_none() {
            Err(SpawnError::Confine(io::ErrorKind::BrokenPipe.into()))
        } else {
            Ok(born)
        };
    };
    // The child is exiting: it is reaped here because nothing else knows about it.
    if start.namespace.is_none() || inner.is_some() {
        let _ = wait(born.pid, WaitMode::Block);
    }
    Err(match stage {
        FAILURE_PIN => SpawnError::Pin(error),
        FAILURE_CONFINE => SpawnError::Confine(error),
        FAILURE_ENTER => SpawnError::Enter(error),
        FAILURE_EXECUTE => SpawnError::Execute(error),
        _ => SpawnError::Prepare(error),
    })
}

fn null_terminated(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings.iter().map(|s| s.as_ptr()).chain([ptr::null()]).collect()
}

/// What a child has to do until it becomes the command.
pub(super) struct ChildSetup<'a> {
    start: &'a SpawnSpec<'a>,
    argv: &'a [*const libc::c_char],
    env: &'a [*const libc::c_char],
    parent: Pid,
    /// Where it reports a failure.
    failure: libc::c_int,
    /// The stack of the command itself, if another child starts it in its sandbox.
    inner_stack: Cell<u64>,
    /// The moment before the command was created there, if memory is shared.
    inner_started: Cell<Option<Instant>>,
}

/// Creates the child, in the control group if one is given and the kernel supports it.
///
/// Starting there costs nothing, while moving there afterward makes the kernel wait for a grace
/// period of several milliseconds, and would leave a moment in which a descendant could escape.
fn fork(life: &ChildSetup<'_>) -> io::Result<SpawnedChild> {
    if let Ok(child) = clone_child(life) {
        return Ok(child);
    }
    let started = Instant::now();
    // SAFETY: the child runs only async-signal-safe code until it executes or exits.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => life.begin(),
        pid => Ok(SpawnedChild { started, pid, pidfd: pidfd_open(pid).ok(), in_cgroup: false }),
    }
}

thread_local! {
    /// The stack of the last child of this thread: a new one is expensive for a short run.
    static STACK: Cell<Option<Vec<u128>>> = const { Cell::new(None) };
}

fn clone_child(life: &ChildSetup<'_>) -> io::Result<SpawnedChild> {
    let mut pidfd: libc::c_int = -1;
    // Taken out while in use, so that nothing else can use it.
    let fresh = || vec![0_u128; 2 * STACK_BYTES / mem::size_of::<u128>()];
    let mut stack = STACK.take().unwrap_or_else(fresh);
    let mut args = CloneArgs {
        flags: CLONE_MEMORY | libc::CLONE_PIDFD as u64,
        pidfd: ptr::from_mut(&mut pidfd) as u64,
        exit_signal: libc::SIGCHLD as u64,
        ..CloneArgs::default()
    };
    if life.start.namespace.is_none() {
        life.start.born_in_group(&mut args);
    }
    if CLONE_MEMORY != 0 {
        args.stack = stack.as_mut_ptr() as u64;
        args.stack_size = STACK_BYTES as u64;
        life.inner_stack.set(args.stack + STACK_BYTES as u64);
    }
    let started = Instant::now();
    // SAFETY: the arguments, the stack and the life outlive the child's use of them: it has
    // executed or exited when the call returns, or it has a copy of all memory.
    let pid = unsafe { clone3(&args, life, begin) };
    STACK.set(Some(stack));
    let pid = pid?;
    // SAFETY: the kernel has just created this descriptor, and nothing else owns it.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok(SpawnedChild { started, pid, pidfd: Some(pidfd), in_cgroup: life.start.cgroup.is_some() })
}

extern "C" fn begin(life: &ChildSetup<'_>) -> ! {
    life.begin()
}

extern "C" fn become_command(life: &ChildSetup<'_>) -> ! {
    life.become_command()
}

impl ChildSetup<'_> {
    /// Becomes the command, or starts it in its sandbox. Async-signal-safe.
    fn begin(&self) -> ! {
        match self.start.namespace {
            None => self.become_command(),
            Some(room) => self.bring_into(room),
        }
    }

    /// Creates the command in its sandbox, as a child of karve, and exits. Slow steps are done
    /// here, before the clock of the command starts.
    fn bring_into(&self, room: &NamespaceHandle) -> ! {
        let start = self.start;
        let stage = if !room.enter() || !start.profile.is_none_or(SandboxProfile::restrict) {
            FAILURE_CONFINE
        } else if !start.enter() {
            FAILURE_ENTER
        } else {
            let mut args = CloneArgs {
                flags: CLONE_MEMORY | libc::CLONE_PARENT as u64,
                ..CloneArgs::default()
            };
            start.born_in_group(&mut args);
            if CLONE_MEMORY != 0 {
                args.stack = self.inner_stack.get();
                args.stack_size = STACK_BYTES as u64;
            }
            self.inner_started.set(Some(Instant::now()));
            // SAFETY: only the command uses the stack, and `life` outlives its use of it.
            if let Ok(pid) = unsafe { clone3(&args, self, become_command) } {
                self.leave(FAILURE_BORN, pid);
            }
            args.flags &= !CLONE_INTO_CGROUP;
            args.cgroup = 0;
            // SAFETY: as above.
            if let Ok(pid) = unsafe { clone3(&args, self, become_command) } {
                self.leave(FAILURE_BORN_ALONE, pid);
            }
            FAILURE_CONFINE
        };
        self.fail(stage)
    }

    fn leave(&self, stage: u8, pid: Pid) -> ! {
        self.report(stage, pid);
        // SAFETY: _exit runs no code of ours.
        unsafe { libc::_exit(0) }
    }

    /// From fork to exec. Async-signal-safe.
    fn become_command(&self) -> ! {
        let start = self.start;
        let outside = start.namespace.is_none();
        let stage = if !start.prepare(if outside { self.parent } else { 0 }) {
            FAILURE_PREPARE
        } else if !start.pin() {
            FAILURE_PIN
        } else if outside && !start.profile.is_none_or(SandboxProfile::restrict) {
            FAILURE_CONFINE
        } else if outside && !start.enter() {
            FAILURE_ENTER
        } else {
            reset_signals();
            if !start.profile.is_none_or(SandboxProfile::filter) {
                self.fail(FAILURE_CONFINE);
            }
            // SAFETY: both arrays end with a null pointer, and their strings outlive the call.
            unsafe { libc::execve(start.program.as_ptr(), self.argv.as_ptr(), self.env.as_ptr()) };
            FAILURE_EXECUTE
        };
        self.fail(stage)
    }

    fn fail(&self, stage: u8) -> ! {
        self.report(stage, io::Error::last_os_error().raw_os_error().unwrap_or(0));
        // SAFETY: _exit runs no code of ours.
        unsafe { libc::_exit(127) }
    }

    fn report(&self, stage: u8, number: i32) {
        let [a, b, c, d] = number.to_ne_bytes();
        let report = [stage, a, b, c, d];
        // SAFETY: the buffer is valid for its length.
        unsafe { libc::write(self.failure, report.as_ptr().cast(), report.len()) };
    }
}

impl SpawnSpec<'_> {
    /// The command starts in its control group, but not the child that starts it in its sandbox.
    fn born_in_group(&self, args: &mut CloneArgs) {
        if let Some(cgroup) = self.cgroup {
            args.flags |= CLONE_INTO_CGROUP;
            args.cgroup = cgroup.as_raw_fd() as u64;
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
            if self.death == ParentDeathAction::WithKarve {
                if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == -1 {
                    return false;
                }
                // If karve died before the line above, no signal will ever come.
                if libc::getppid() != parent {
                    libc::_exit(127);
                }
            }
            // The command must not get descriptors that karve itself inherited. Old kernels cannot
            // do this, and then only descriptors without close-on-exec get through.
            libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, CLOSE_RANGE_CLOEXEC);
            (0..).zip(&self.streams).all(|(target, fd)| libc::dup2(fd.as_raw_fd(), target) != -1)
        }
    }

    /// Pins itself to its CPUs: to all of them, because the kernel would silently drop those that
    /// are not allowed.
    fn pin(&self) -> bool {
        let Some(cpus) = self.cpus else { return true };
        if !set_affinity(cpus) {
            return false;
        }
        let held = affinity().is_some_and(|got| got == *cpus);
        if !held {
            // SAFETY: errno belongs to this thread.
            unsafe { *libc::__errno_location() = libc::EINVAL };
        }
        held
    }

    fn enter(&self) -> bool {
        // SAFETY: the path is a null-terminated string.
        unsafe { libc::chdir(self.dir.as_ptr()) == 0 }
    }
}
