//! The system calls of a confined command: those that reach into other processes, change the
//! machine, or get around the other layers are refused.

use super::{ArgumentTest, SyscallFilter, SyscallRule, error};

/// All flags of `clone` that create a namespace.
const NAMESPACES: u32 = 0x7e02_0000;

/// Calls that no confined command may make.
const NEVER: [libc::c_long; 38] = [
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
    libc::SYS_lookup_dcookie,
];

/// Calls that create and change namespaces and mounts: what a sandbox inside this one needs.
const NESTED: [libc::c_long; 11] = [
    libc::SYS_unshare,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
];

/// Socket families: local, and for the network.
const LOCAL: [u32; 1] = [libc::AF_UNIX as u32];
const FAR: [u32; 4] =
    [libc::AF_UNIX as u32, libc::AF_INET as u32, libc::AF_INET6 as u32, libc::AF_NETLINK as u32];

/// Additional permissions of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::process) struct ExtraSyscalls {
    /// Internet sockets; they reach only as far as its namespace sandbox allows.
    pub(in crate::process) sockets: bool,
    /// Its own namespaces and mounts.
    pub(in crate::process) nested: bool,
    /// The hardware performance counters.
    pub(in crate::process) counters: bool,
}

/// The filter of a command.
pub(in crate::process) fn command_filter(extra: ExtraSyscalls) -> Vec<libc::sock_filter> {
    let refuse = |call: &libc::c_long| SyscallRule::refuse(*call, libc::EPERM);
    let mut rules: Vec<_> = NEVER.iter().map(refuse).collect();
    if !extra.counters {
        rules.push(refuse(&libc::SYS_perf_event_open));
    }
    if !extra.nested {
        rules.extend(NESTED.iter().map(refuse));
        // Its flags are in memory, which a filter cannot read; programs then fall back to `clone`.
        rules.push(SyscallRule::refuse(libc::SYS_clone3, libc::ENOSYS));
        let namespaces = ArgumentTest::HasAnyBit(0, NAMESPACES);
        rules.push(SyscallRule::refuse_if(libc::SYS_clone, &namespaces, libc::EPERM));
    }
    let families: &[u32] = if extra.sockets { &FAR } else { &LOCAL };
    rules.push(SyscallRule::refuse_unless(
        libc::SYS_socket,
        &ArgumentTest::IsOneOf(0, families),
        libc::EAFNOSUPPORT,
    ));
    let filter = SyscallFilter {
        rules,
        foreign_architecture: error(libc::ENOSYS),
        foreign_number: error(libc::ENOSYS),
    };
    filter.compile()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{call, decide};
    use super::super::{ALLOW, FOREIGN_NUMBERS};
    use super::*;

    #[test]
    fn every_call_gets_its_answer_in_a_few_steps() {
        let all = [false, true];
        for (sockets, nested, counters) in all
            .into_iter()
            .flat_map(|a| all.map(|b| (a, b)))
            .flat_map(|(a, b)| all.map(|c| (a, b, c)))
        {
            let program = command_filter(ExtraSyscalls { sockets, nested, counters });
            let first = |number, first| decide(&program, call(number, [first, 0, 0]));
            for number in 0..600 {
                let is_refused = NEVER.contains(&number)
                    || (!nested && NESTED.contains(&number))
                    || (!counters && number == libc::SYS_perf_event_open);
                let want = match number {
                    libc::SYS_clone3 if !nested => error(libc::ENOSYS),
                    libc::SYS_socket => error(libc::EAFNOSUPPORT),
                    _ if is_refused => error(libc::EPERM),
                    _ => ALLOW,
                };
                let (found, steps) = first(number, 0);
                assert_eq!(found, want, "{number}");
                assert!(steps < 24, "{number} takes {steps}");
            }
            let namespace = first(libc::SYS_clone, libc::CLONE_NEWNS as u32).0;
            assert_eq!(namespace == ALLOW, nested);
            let socket = |family: i32| first(libc::SYS_socket, family as u32).0;
            assert_eq!(socket(libc::AF_UNIX), ALLOW);
            assert_eq!(socket(libc::AF_INET6) == ALLOW, sockets);
            let foreign = libc::c_long::from(FOREIGN_NUMBERS) + 1;
            assert_ne!(first(foreign, 0).0, ALLOW);
        }
    }
}
