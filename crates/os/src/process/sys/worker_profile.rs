//! What a worker permanently drops before it loads a kernel: writing files, other processes,
//! clocks and priorities of the host, and root's capabilities.
//!
//! A kernel reads its inputs, computes, may start threads, and writes its outputs. Anything else
//! it tries fails with an error, so that an honest library that merely tries is not harmed. If the
//! operating system is too old for a part, the other parts still apply.

use super::capabilities;
use libc::{c_long, sock_filter};
use std::ffi::CStr;
use std::mem;

/// Only query the ABI version.
const LANDLOCK_CREATE_RULESET_VERSION: u32 = 1;

/// The first ABI version that can keep a process from signaling others.
const LANDLOCK_SCOPES_SINCE: c_long = 6;

/// Landlock's rights to change files: write, remove, create; then, by ABI version, move and
/// truncate.
const LANDLOCK_WRITING: u64 = 0x1ff2;
const LANDLOCK_REFER: u64 = 1 << 13;
const LANDLOCK_TRUNCATE: u64 = 1 << 14;

/// Abstract sockets and signals of processes outside the same sandbox.
const LANDLOCK_SCOPES: u64 = 3;

/// What a Landlock ruleset handles; later ABI versions have more fields.
#[repr(C)]
struct LandlockRuleset {
    files: u64,
    network: u64,
    scopes: u64,
}

/// Advice that takes pages away from every process that shares them.
const ADVICE_REFUSED: [libc::c_int; 5] = [
    libc::MADV_REMOVE,
    libc::MADV_PAGEOUT,
    MADV_COLLAPSE,
    libc::MADV_HWPOISON,
    MADV_SOFT_OFFLINE,
];
const MADV_COLLAPSE: libc::c_int = 25;
const MADV_SOFT_OFFLINE: libc::c_int = 101;

/// Seals on karve's memory, which would keep later workers from mapping it.
const F_ADD_SEALS: u32 = 1_033;

/// Calls that no kernel needs, except one that acts on other processes or on the host.
const REFUSED: &[c_long] = &[
    // Processes: they would not be frozen with the worker.
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_unshare,
    libc::SYS_setns,
    // The memory and the descriptors of others.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_kcmp,
    // Better scheduling than the other arm.
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
    libc::SYS_setpriority,
    libc::SYS_ioprio_set,
    // The clocks of the host.
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_settimeofday,
    // Work that the operating system does asynchronously, and memory that outlives a process.
    libc::SYS_io_uring_setup,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_bpf,
    libc::SYS_shmget,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_mq_open,
    libc::SYS_fallocate,
    // Timers fire while the process is frozen, during the turn of the other arm, and waiting for
    // one through many epoll sets makes that slow.
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_timer_create,
    libc::SYS_timer_settime,
    libc::SYS_setitimer,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_signalfd4,
    libc::SYS_inotify_init1,
    libc::SYS_fanotify_init,
    libc::SYS_io_setup,
    // Its own group, for the scheduler.
    libc::SYS_setsid,
    libc::SYS_setpgid,
    // Keys, and metadata of files.
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    // Messages to others, and filters that would rewrite those to karve.
    libc::SYS_socket,
    libc::SYS_seccomp,
    // The host itself.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_kexec_file_load,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
];

/// The older calls of the same kind, which only this architecture has.
#[cfg(target_arch = "x86_64")]
const REFUSED_OLD: &[c_long] = &[
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_alarm,
    libc::SYS_epoll_create,
    libc::SYS_signalfd,
    libc::SYS_inotify_init,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_iopl,
    libc::SYS_ioperm,
];

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

/// Numbers from here on belong to another calling convention, which has the same calls again.
#[cfg(target_arch = "x86_64")]
const FOREIGN_NUMBERS: u32 = 0x4000_0000;

/// Offsets of a call's numbers in the data that a filter sees.
const AT_NUMBER: u32 = 0;
const AT_ARCHITECTURE: u32 = 4;

/// The low half of an argument, on a machine that stores it first.
const fn at_argument(index: u32) -> u32 {
    16 + 8 * index
}

/// Placeholder for the process id in a profile that another program applies to itself.
const OWN: u32 = u32::MAX;

/// A seccomp and Landlock profile for another program to apply to itself: the same as that of
/// karve's own worker.
#[derive(Debug, serde::Serialize)]
pub(in crate::process) struct WorkerProfile {
    /// The numbers of the calls that create, extend and apply a ruleset, of the one that installs
    /// a filter, and of those that get and set capabilities.
    calls: [c_long; 6],
    /// What the ruleset restricts, field by field as the kernel reads it; empty without Landlock.
    ruleset: Vec<u64>,
    /// The steps of the filter; a missing last number stands for the process id.
    filter: Vec<(u16, u8, u8, Option<u32>)>,
}

impl WorkerProfile {
    /// The profile that this host supports.
    pub(in crate::process) fn of_host() -> Self {
        let step = |step: sock_filter| {
            let number = (step.k != OWN).then_some(step.k);
            (step.code, step.jt, step.jf, number)
        };
        Self {
            calls: [
                libc::SYS_landlock_create_ruleset,
                libc::SYS_landlock_add_rule,
                libc::SYS_landlock_restrict_self,
                libc::SYS_seccomp,
                libc::SYS_capget,
                libc::SYS_capset,
            ],
            ruleset: LandlockRuleset::of_host().map_or_else(Vec::new, |(rules, size)| {
                let fields = [rules.files, rules.network, rules.scopes];
                fields[..size / mem::size_of::<u64>()].to_vec()
            }),
            filter: filter(OWN).into_iter().map(step).collect(),
        }
    }
}

/// Drops, for this process and all its future threads, what no kernel needs. A file that must be
/// loaded can still be read.
pub(in crate::process) fn apply_profile(must_open: &CStr) {
    // SAFETY: the call takes numbers.
    unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    capabilities::give_up(must_open);
    confine_files();
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    refuse_calls();
}

impl LandlockRuleset {
    /// What this kernel can restrict about changing files and reaching other processes, and how
    /// many bytes of it an older kernel reads; none without Landlock.
    fn of_host() -> Option<(Self, usize)> {
        let none: *const Self = std::ptr::null();
        // SAFETY: with this flag the call reads nothing.
        let version = unsafe {
            libc::syscall(
                libc::SYS_landlock_create_ruleset,
                none,
                0,
                LANDLOCK_CREATE_RULESET_VERSION,
            )
        };
        if version < 1 {
            return None;
        }
        let mut rules = Self {
            files: LANDLOCK_WRITING,
            network: 0,
            scopes: 0,
        };
        let mut size = mem::size_of::<u64>();
        if version >= 2 {
            rules.files |= LANDLOCK_REFER;
        }
        if version >= 3 {
            rules.files |= LANDLOCK_TRUNCATE;
        }
        if version >= LANDLOCK_SCOPES_SINCE {
            rules.scopes = LANDLOCK_SCOPES;
            size = mem::size_of::<Self>();
        }
        Some((rules, size))
    }
}

/// From now on no file can be opened for writing, and no other process signaled or inspected.
fn confine_files() {
    let Some((rules, size)) = LandlockRuleset::of_host() else {
        return;
    };
    // SAFETY: the first call reads a structure that outlives it, of the given size, and creates a
    // descriptor that only this function owns.
    unsafe {
        let fd = libc::syscall(libc::SYS_landlock_create_ruleset, &rules, size, 0);
        if fd >= 0 {
            libc::syscall(libc::SYS_landlock_restrict_self, fd, 0);
            libc::close(fd as libc::c_int);
        }
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn refuse_calls() {
    let mut filter = filter(std::process::id());
    let program = libc::sock_fprog {
        len: filter.len() as libc::c_ushort,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the program and its steps outlive the call. The flag avoids slowing the processor
    // down.
    unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW,
            &program,
        );
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn filter(own: u32) -> Vec<sock_filter> {
    let mut steps = vec![
        load(AT_ARCHITECTURE),
        jump(libc::BPF_JEQ, ARCHITECTURE, 1, 0),
        end(libc::SECCOMP_RET_KILL_PROCESS),
        load(AT_NUMBER),
    ];
    #[cfg(target_arch = "x86_64")]
    {
        steps.extend([
            jump(libc::BPF_JGE, FOREIGN_NUMBERS, 0, 1),
            refuse(libc::EPERM),
        ]);
        for call in REFUSED_OLD {
            steps.extend(refused(*call, libc::EPERM));
        }
    }
    for call in REFUSED {
        steps.extend(refused(*call, libc::EPERM));
    }
    // The C library then uses the older call, whose flags can be inspected.
    steps.extend(refused(libc::SYS_clone3, libc::ENOSYS));
    // Threads may be created, processes may not.
    steps.extend(only_if(
        libc::SYS_clone,
        (libc::BPF_JSET, 0, libc::CLONE_THREAD as u32),
    ));
    // Signals may go only to the process itself.
    for call in [libc::SYS_kill, libc::SYS_tgkill, libc::SYS_rt_sigqueueinfo] {
        steps.extend(only_if(call, (libc::BPF_JEQ, 0, own)));
    }
    steps.extend(refused(libc::SYS_tkill, libc::EPERM));
    steps.extend(only_if(libc::SYS_prlimit64, (libc::BPF_JEQ, 0, 0)));
    for advice in ADVICE_REFUSED {
        steps.extend(unless(libc::SYS_madvise, (2, advice as u32)));
    }
    steps.extend(unless(libc::SYS_fcntl, (1, F_ADD_SEALS)));
    steps.extend(unless(libc::SYS_prctl, (0, libc::PR_SET_SECCOMP as u32)));
    steps.push(end(libc::SECCOMP_RET_ALLOW));
    steps
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn filter(_own: u32) -> Vec<sock_filter> {
    Vec::new()
}

fn step(code: u32, k: u32, (jt, jf): (u8, u8)) -> sock_filter {
    sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    }
}

fn load(at: u32) -> sock_filter {
    step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, at, (0, 0))
}

/// The number of steps to skip if the condition holds, and if not.
fn jump(how: u32, with: u32, holds: u8, else_: u8) -> sock_filter {
    step(libc::BPF_JMP | how | libc::BPF_K, with, (holds, else_))
}

fn end(how: u32) -> sock_filter {
    step(libc::BPF_RET | libc::BPF_K, how, (0, 0))
}

fn refuse(error: libc::c_int) -> sock_filter {
    end(libc::SECCOMP_RET_ERRNO | error as u32)
}

/// A call that is always refused.
fn refused(call: c_long, error: libc::c_int) -> [sock_filter; 2] {
    [jump(libc::BPF_JEQ, call as u32, 0, 1), refuse(error)]
}

/// A call that is allowed only if one of its arguments passes a comparison.
fn only_if(call: c_long, (how, argument, with): (u32, u32, u32)) -> [sock_filter; 5] {
    [
        jump(libc::BPF_JEQ, call as u32, 0, 4),
        load(at_argument(argument)),
        jump(how, with, 1, 0),
        refuse(libc::EPERM),
        end(libc::SECCOMP_RET_ALLOW),
    ]
}

/// A call that is refused if one of its arguments is this; the number is reloaded afterward.
fn unless(call: c_long, (argument, is): (u32, u32)) -> [sock_filter; 5] {
    [
        jump(libc::BPF_JEQ, call as u32, 0, 4),
        load(at_argument(argument)),
        jump(libc::BPF_JEQ, is, 0, 1),
        refuse(libc::EPERM),
        load(AT_NUMBER),
    ]
}
