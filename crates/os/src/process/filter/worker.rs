//! The system calls of a worker: a kernel computes, may start threads, and writes its outputs.

use libc::c_long;

use super::super::readable::DeviceAccess;
use super::{ArgumentTest, SyscallFilter, SyscallRule, error};

/// Advice that takes pages away from every process that shares them.
const ADVICE_REFUSED: [u32; 5] = [
    libc::MADV_REMOVE as u32,
    libc::MADV_PAGEOUT as u32,
    MADV_COLLAPSE,
    libc::MADV_HWPOISON as u32,
    MADV_SOFT_OFFLINE,
];
const MADV_COLLAPSE: u32 = 25;
const MADV_SOFT_OFFLINE: u32 = 101;

/// Commands of `fcntl` that concern other processes: seals on karve's memory would keep later
/// workers from mapping it, and locks, leases and signals tell others something.
const FILE_COMMANDS_REFUSED: [u32; 11] = [
    libc::F_ADD_SEALS as u32,
    libc::F_SETLEASE as u32,
    libc::F_NOTIFY as u32,
    libc::F_GETLK as u32,
    libc::F_SETLK as u32,
    libc::F_SETLKW as u32,
    libc::F_OFD_GETLK as u32,
    libc::F_OFD_SETLK as u32,
    libc::F_OFD_SETLKW as u32,
    libc::F_SETOWN as u32,
    F_SETSIG,
];
const F_SETSIG: u32 = 10;

/// Options of `prctl` that would hide the process from karve, keep it alive after karve, or change
/// how system calls and cores are shared.
const OPTIONS_REFUSED: [u32; 7] = [
    libc::PR_SET_SECCOMP as u32,
    libc::PR_SET_DUMPABLE as u32,
    libc::PR_SET_PDEATHSIG as u32,
    libc::PR_SET_PTRACER as u32,
    libc::PR_SET_MM as u32,
    libc::PR_SCHED_CORE as u32,
    PR_SET_SYSCALL_USER_DISPATCH,
];
const PR_SET_SYSCALL_USER_DISPATCH: u32 = 59;

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
    libc::SYS_tkill,
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
    libc::SYS_mq_unlink,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_fallocate,
    libc::SYS_sync,
    libc::SYS_syncfs,
    // What others can wait for or notice: locks on files that several processes have open, memory
    // that karve cannot look at, interrupts on every CPU.
    libc::SYS_flock,
    libc::SYS_memfd_secret,
    libc::SYS_membarrier,
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
    libc::SYS_request_key,
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
    libc::SYS_socketpair,
    libc::SYS_bind,
    libc::SYS_connect,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
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

#[cfg(not(target_arch = "x86_64"))]
const REFUSED_OLD: &[c_long] = &[];

/// What a driver needs to start: a socket that nobody can connect to.
const FOR_DRIVERS: [c_long; 3] = [libc::SYS_socket, libc::SYS_bind, libc::SYS_listen];

/// What compilers do: start each other, and lock files of the cache that they write to.
#[cfg(target_arch = "x86_64")]
const FOR_COMPILERS: &[c_long] =
    &[libc::SYS_execve, libc::SYS_flock, libc::SYS_fork, libc::SYS_vfork];
#[cfg(not(target_arch = "x86_64"))]
const FOR_COMPILERS: &[c_long] = &[libc::SYS_execve, libc::SYS_flock];

/// The filter of the worker with this process id.
pub(in crate::process) fn worker_filter(own: u32, device: &DeviceAccess) -> Vec<libc::sock_filter> {
    let compiles = matches!(device, DeviceAccess::Compilers(_));
    let has_driver = *device != DeviceAccess::None;
    let is_needed = |call: &c_long| {
        (has_driver && FOR_DRIVERS.contains(call)) || (compiles && FOR_COMPILERS.contains(call))
    };
    let always = REFUSED.iter().chain(REFUSED_OLD).filter(|call| !is_needed(call));
    let mut rules: Vec<_> = always.map(|call| SyscallRule::refuse(*call, libc::EPERM)).collect();
    // The C library then uses the older call, whose flags can be inspected.
    rules.push(SyscallRule::refuse(libc::SYS_clone3, libc::ENOSYS));
    let itself = ArgumentTest::IsOneOf(0, &[own]);
    if has_driver {
        let local = ArgumentTest::IsOneOf(0, &[libc::AF_UNIX as u32]);
        rules.push(SyscallRule::refuse_unless(libc::SYS_socket, &local, libc::EPERM));
    }
    if !compiles {
        // Threads may be created, processes may not.
        let thread = ArgumentTest::HasAnyBit(0, libc::CLONE_THREAD as u32);
        rules.push(SyscallRule::refuse_unless(libc::SYS_clone, &thread, libc::EPERM));
    }
    let unless = [
        // Signals may go only to the process itself.
        (libc::SYS_kill, &itself),
        (libc::SYS_tgkill, &itself),
        (libc::SYS_rt_sigqueueinfo, &itself),
        (libc::SYS_rt_tgsigqueueinfo, &itself),
        (libc::SYS_prlimit64, &ArgumentTest::IsOneOf(0, &[0])),
    ];
    rules.extend(unless.map(|(call, test)| SyscallRule::refuse_unless(call, test, libc::EPERM)));
    let on = [
        (libc::SYS_madvise, ArgumentTest::IsOneOf(2, &ADVICE_REFUSED)),
        (libc::SYS_fcntl, ArgumentTest::IsOneOf(1, &FILE_COMMANDS_REFUSED)),
        (libc::SYS_prctl, ArgumentTest::IsOneOf(0, &OPTIONS_REFUSED)),
    ];
    rules.extend(on.map(|(call, test)| SyscallRule::refuse_if(call, &test, libc::EPERM)));
    let filter = SyscallFilter {
        rules,
        foreign_architecture: libc::SECCOMP_RET_KILL_PROCESS,
        foreign_number: error(libc::EPERM),
    };
    filter.compile()
}

#[cfg(test)]
mod tests {
    use super::super::ALLOW;
    use super::super::tests::{call, decide};
    use super::*;

    const OWN: u32 = 4_711;

    fn is_allowed(number: c_long, arguments: [u32; 3]) -> bool {
        decide(&worker_filter(OWN, &DeviceAccess::None), call(number, arguments)).0 == ALLOW
    }

    #[test]
    fn only_a_worker_that_compiles_starts_processes_and_none_connects_to_anything() {
        let decided = |device: &DeviceAccess, number| {
            decide(&worker_filter(OWN, device), call(number, [0; 3])).0 == ALLOW
        };
        let compiles = DeviceAccess::Compilers("/c".into());
        for number in FOR_COMPILERS.iter().chain(&[libc::SYS_clone]) {
            assert!(decided(&compiles, *number), "{number}");
            assert!(!decided(&DeviceAccess::Driver, *number), "{number}");
        }
        for number in [libc::SYS_socket, libc::SYS_connect, libc::SYS_ptrace, libc::SYS_kill] {
            assert!(!decided(&compiles, number), "{number}");
        }
        let socket = |device: &DeviceAccess, family: i32| {
            let call = call(libc::SYS_socket, [family as u32, 0, 0]);
            decide(&worker_filter(OWN, device), call).0 == ALLOW
        };
        assert!(socket(&DeviceAccess::Driver, libc::AF_UNIX));
        assert!(!socket(&DeviceAccess::Driver, libc::AF_INET));
        assert!(!socket(&DeviceAccess::None, libc::AF_UNIX));
    }

    #[test]
    fn every_call_gets_its_answer_in_a_few_steps() {
        let program = worker_filter(OWN, &DeviceAccess::None);
        for number in 0..600 {
            let is_refused = REFUSED.contains(&number)
                || REFUSED_OLD.contains(&number)
                || [libc::SYS_clone, libc::SYS_kill, libc::SYS_tgkill].contains(&number)
                || [libc::SYS_rt_sigqueueinfo, libc::SYS_rt_tgsigqueueinfo].contains(&number);
            let want = match number {
                libc::SYS_clone3 => error(libc::ENOSYS),
                _ if is_refused => error(libc::EPERM),
                _ => ALLOW,
            };
            let (found, steps) = decide(&program, call(number, [0; 3]));
            assert_eq!(found, want, "{number}");
            assert!(steps < 36, "{number} takes {steps}");
        }
    }

    #[test]
    fn arguments_decide_about_threads_signals_limits_and_advice() {
        let thread = libc::CLONE_THREAD as u32;
        assert!(is_allowed(libc::SYS_clone, [thread | 0x100, 0, 0]));
        for signal in [libc::SYS_kill, libc::SYS_tgkill, libc::SYS_rt_sigqueueinfo] {
            assert!(is_allowed(signal, [OWN, 9, 9]));
            assert!(!is_allowed(signal, [OWN + 1, 9, 9]));
        }
        assert!(!is_allowed(libc::SYS_prlimit64, [OWN, 0, 0]));
        for advice in ADVICE_REFUSED {
            assert!(!is_allowed(libc::SYS_madvise, [0, 0, advice]));
        }
        assert!(is_allowed(libc::SYS_madvise, [0, 0, libc::MADV_DONTNEED as u32]));
        for command in FILE_COMMANDS_REFUSED {
            assert!(!is_allowed(libc::SYS_fcntl, [0, command, 0]));
        }
        assert!(is_allowed(libc::SYS_fcntl, [0, libc::F_GETFL as u32, 0]));
        for option in OPTIONS_REFUSED {
            assert!(!is_allowed(libc::SYS_prctl, [option, 0, 0]));
        }
        assert!(is_allowed(libc::SYS_prctl, [libc::PR_SET_NAME as u32, 0, 0]));
    }
}
