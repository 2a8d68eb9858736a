//! Which system calls a confined command may make, as a program for the kernel.
//!
//! Calls that reach into other processes, change the machine, or get around the other layers are
//! refused. A refused call fails with an error that programs can handle.

/// Operations of the kernel's filter machine.
const LOAD: u16 = 0x20;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_AT_LEAST: u16 = 0x35;
const JUMP_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

/// Results of the filter.
const ALLOW: u32 = 0x7fff_0000;
const ERROR: u32 = 0x0005_0000;

/// Where a call's number, architecture and first argument are.
const AT_NUMBER: u32 = 0;
const AT_MACHINE: u32 = 4;
const AT_FIRST: u32 = 16;

#[cfg(target_arch = "x86_64")]
const MACHINE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const MACHINE: u32 = 0xc000_00b7;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const MACHINE: u32 = 0;

/// Numbers from here on are calls of another convention, which is not used.
const FOREIGN: u32 = 0x4000_0000;

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
const FAR: [u32; 4] = [
    libc::AF_UNIX as u32,
    libc::AF_INET as u32,
    libc::AF_INET6 as u32,
    libc::AF_NETLINK as u32,
];

/// Additional permissions of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ExtraSyscalls {
    /// Internet sockets; they reach only as far as its namespace sandbox allows.
    pub(super) sockets: bool,
    /// Its own namespaces and mounts.
    pub(super) nested: bool,
    /// The hardware performance counters.
    pub(super) counters: bool,
}

/// The steps that decide one call; they always return a result.
struct SyscallRule {
    call: u32,
    steps: Vec<libc::sock_filter>,
}

/// Up to this many rules are tried one after the other.
const LEAF: usize = 2;

/// The program, or none for an unsupported architecture.
///
/// It uses a binary search over its rules: the kernel runs the program for every existing call
/// when a command is started, and a list would take a tenth of a millisecond each time.
pub(super) fn program(calls: ExtraSyscalls) -> Vec<libc::sock_filter> {
    if MACHINE == 0 {
        return Vec::new();
    }
    let mut program = vec![
        load(AT_MACHINE),
        step(JUMP_EQUAL, MACHINE, 1, 0),
        error(libc::ENOSYS),
        load(AT_NUMBER),
    ];
    if cfg!(target_arch = "x86_64") {
        program.extend([step(JUMP_AT_LEAST, FOREIGN, 0, 1), error(libc::ENOSYS)]);
    }
    let mut rules = rules(calls);
    rules.sort_by_key(|rule| rule.call);
    program.extend(search(&rules));
    program
}

fn rules(calls: ExtraSyscalls) -> Vec<SyscallRule> {
    let mut rules = Vec::new();
    let mut refuse = |calls: &[libc::c_long], answer| {
        rules.extend(calls.iter().map(|call| SyscallRule {
            call: *call as u32,
            steps: vec![answer],
        }));
    };
    let refused = error(libc::EPERM);
    refuse(&NEVER, refused);
    if !calls.counters {
        refuse(&[libc::SYS_perf_event_open], refused);
    }
    if !calls.nested {
        refuse(&NESTED, refused);
        // Its flags are in memory, which a filter cannot read; programs then fall back to `clone`.
        refuse(&[libc::SYS_clone3], error(libc::ENOSYS));
        rules.push(SyscallRule {
            call: libc::SYS_clone as u32,
            steps: vec![
                load(AT_FIRST),
                step(JUMP_ANY_BIT, NAMESPACES, 0, 1),
                refused,
                allow(),
            ],
        });
    }
    rules.push(sockets(if calls.sockets { &FAR } else { &LOCAL }));
    rules
}

/// Allows some socket families.
fn sockets(kinds: &[u32]) -> SyscallRule {
    let n = kinds.len() as u8;
    let mut steps = vec![load(AT_FIRST)];
    for (i, kind) in (0..n).zip(kinds) {
        steps.push(step(JUMP_EQUAL, *kind, n - i, 0));
    }
    steps.extend([error(libc::EAFNOSUPPORT), allow()]);
    SyscallRule {
        call: libc::SYS_socket as u32,
        steps,
    }
}

/// Finds the rule of a call among rules sorted by call; a call without a rule is allowed.
fn search(rules: &[SyscallRule]) -> Vec<libc::sock_filter> {
    let mut steps = Vec::new();
    if rules.len() > LEAF {
        let (low, high) = rules.split_at(rules.len() / 2);
        let low = search(low);
        // A jump is at most 255 steps wide; all rules together are shorter.
        steps.push(step(JUMP_AT_LEAST, high[0].call, low.len() as u8, 0));
        steps.extend(low);
        steps.extend(search(high));
        return steps;
    }
    for rule in rules {
        steps.push(step(JUMP_EQUAL, rule.call, 0, rule.steps.len() as u8));
        steps.extend(&rule.steps);
    }
    steps.push(allow());
    steps
}

fn allow() -> libc::sock_filter {
    step(RETURN, ALLOW, 0, 0)
}

fn load(at: u32) -> libc::sock_filter {
    step(LOAD, at, 0, 0)
}

fn error(errno: i32) -> libc::sock_filter {
    step(RETURN, ERROR | errno as u32, 0, 0)
}

fn step(code: u16, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's decision, and after how many steps.
    fn answer(program: &[libc::sock_filter], number: u32, first: u32) -> (u32, u32) {
        let (mut at, mut value, mut steps) = (0, 0, 0);
        loop {
            let one = &program[at];
            at += 1;
            steps += 1;
            let holds = match one.code {
                RETURN => return (one.k, steps),
                LOAD => {
                    value = match one.k {
                        AT_NUMBER => number,
                        AT_MACHINE => MACHINE,
                        _ => first,
                    };
                    continue;
                }
                JUMP_EQUAL => value == one.k,
                JUMP_AT_LEAST => value >= one.k,
                _ => value & one.k != 0,
            };
            at += usize::from(if holds { one.jt } else { one.jf });
        }
    }

    #[test]
    fn every_call_gets_its_answer_in_a_few_steps() {
        let all = [false, true];
        for (sockets, nested, counters) in all
            .into_iter()
            .flat_map(|a| all.map(|b| (a, b)))
            .flat_map(|(a, b)| all.map(|c| (a, b, c)))
        {
            let calls = ExtraSyscalls {
                sockets,
                nested,
                counters,
            };
            let program = program(calls);
            assert!(program.len() < 256, "{}", program.len());
            for number in 0..600 {
                let call = libc::c_long::from(number);
                let is_refused = NEVER.contains(&call)
                    || (!nested && NESTED.contains(&call))
                    || (!counters && call == libc::SYS_perf_event_open);
                let want = match call {
                    libc::SYS_clone3 if !nested => ERROR | libc::ENOSYS as u32,
                    libc::SYS_socket => ERROR | libc::EAFNOSUPPORT as u32,
                    _ if is_refused => ERROR | libc::EPERM as u32,
                    _ => ALLOW,
                };
                let (found, steps) = answer(&program, number, 0);
                assert_eq!(found, want, "{number}");
                assert!(steps < 24, "{number} takes {steps}");
            }
            let clone = libc::SYS_clone as u32;
            let made = answer(&program, clone, libc::CLONE_NEWNS as u32).0;
            assert_eq!(made == ALLOW, nested);
            let socket = |kind: i32| answer(&program, libc::SYS_socket as u32, kind as u32).0;
            assert_eq!(socket(libc::AF_UNIX), ALLOW);
            assert_eq!(socket(libc::AF_INET6) == ALLOW, sockets);
            assert_ne!(answer(&program, FOREIGN + 1, 0).0, ALLOW);
        }
    }
}
