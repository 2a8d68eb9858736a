//! Seccomp filters: which system calls a command or a worker may make, as a program for the kernel.
//!
//! The lists of calls are in `command` and `worker`. A refused call fails with an error that
//! programs can handle. The program is compiled before the fork; the child only installs it.

mod command;
mod worker;

use libc::{c_int, c_long, sock_filter};

pub(super) use self::command::{ExtraSyscalls, command_filter};
pub(super) use self::worker::worker_filter;

/// Operations of the kernel's filter machine.
const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const JUMP_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const JUMP_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const JUMP_ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// The answer that lets a call through.
const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;

/// Where a call's number, architecture and arguments are. Of an argument only the low half is
/// read, on a machine that stores it first.
const AT_NUMBER: u32 = 0;
const AT_ARCHITECTURE: u32 = 4;
const AT_ARGUMENTS: u32 = 16;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: u32 = 0;

/// Numbers from here on belong to another calling convention, which has the same calls again.
const FOREIGN_NUMBERS: u32 = 0x4000_0000;

/// Up to this many rules are tried one after the other.
const LEAF: usize = 2;

/// A filter before it is compiled. A call without a rule is allowed.
struct SyscallFilter {
    rules: Vec<SyscallRule>,
    /// The answer to a call of another architecture, and of another calling convention.
    foreign_architecture: u32,
    foreign_number: u32,
}

/// The steps that decide one call; they always return an answer.
struct SyscallRule {
    call: u32,
    steps: Vec<sock_filter>,
}

/// A test of one argument of a call, by its index.
enum ArgumentTest<'a> {
    IsOneOf(u32, &'a [u32]),
    HasAnyBit(u32, u32),
}

impl SyscallRule {
    /// The call always fails.
    fn refuse(call: c_long, errno: c_int) -> Self {
        Self { call: call as u32, steps: vec![answer(error(errno))] }
    }

    /// The call fails unless an argument passes a test.
    fn refuse_unless(call: c_long, test: &ArgumentTest<'_>, errno: c_int) -> Self {
        Self::on_argument(call, test, [ALLOW, error(errno)])
    }

    /// The call fails if an argument passes a test.
    fn refuse_if(call: c_long, test: &ArgumentTest<'_>, errno: c_int) -> Self {
        Self::on_argument(call, test, [error(errno), ALLOW])
    }

    fn on_argument(call: c_long, test: &ArgumentTest<'_>, [passed, failed]: [u32; 2]) -> Self {
        let (argument, code, values) = match test {
            ArgumentTest::IsOneOf(argument, values) => (argument, JUMP_EQUAL, *values),
            ArgumentTest::HasAnyBit(argument, bits) => {
                (argument, JUMP_ANY_BIT, std::slice::from_ref(bits))
            }
        };
        let mut steps = vec![load(AT_ARGUMENTS + 8 * argument)];
        for (left, value) in (1..=values.len() as u8).rev().zip(values) {
            steps.push(step(code, *value, left, 0));
        }
        steps.extend([answer(failed), answer(passed)]);
        Self { call: call as u32, steps }
    }
}

impl SyscallFilter {
    /// The program, or none for an unsupported architecture.
    ///
    /// It uses a binary search over its rules: the kernel runs the program for every existing call
    /// when it is installed, and a list would take a tenth of a millisecond each time.
    fn compile(mut self) -> Vec<sock_filter> {
        if ARCHITECTURE == 0 {
            return Vec::new();
        }
        let mut program = vec![
            load(AT_ARCHITECTURE),
            step(JUMP_EQUAL, ARCHITECTURE, 1, 0),
            answer(self.foreign_architecture),
            load(AT_NUMBER),
        ];
        if cfg!(target_arch = "x86_64") {
            let foreign = step(JUMP_AT_LEAST, FOREIGN_NUMBERS, 0, 1);
            program.extend([foreign, answer(self.foreign_number)]);
        }
        self.rules.sort_by_key(|rule| rule.call);
        program.extend(search(&self.rules));
        program
    }
}

/// Finds the rule of a call among rules sorted by call.
fn search(rules: &[SyscallRule]) -> Vec<sock_filter> {
    let mut steps = Vec::new();
    if rules.len() > LEAF {
        let (low, high) = rules.split_at(rules.len() / 2);
        let low = search(low);
        // A jump is at most 255 steps wide; half of the rules of any filter are shorter.
        steps.push(step(JUMP_AT_LEAST, high[0].call, low.len() as u8, 0));
        steps.extend(low);
        steps.extend(search(high));
        return steps;
    }
    for rule in rules {
        steps.push(step(JUMP_EQUAL, rule.call, 0, rule.steps.len() as u8));
        steps.extend(&rule.steps);
    }
    steps.push(answer(ALLOW));
    steps
}

/// The answer that makes a call fail with an error.
fn error(errno: c_int) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno as u32
}

fn answer(what: u32) -> sock_filter {
    step(RETURN, what, 0, 0)
}

fn load(at: u32) -> sock_filter {
    step(LOAD, at, 0, 0)
}

fn step(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call as the kernel shows it to a filter.
    #[derive(Clone, Copy)]
    pub(super) struct Call {
        pub(super) architecture: u32,
        pub(super) number: u32,
        pub(super) arguments: [u32; 3],
    }

    /// A call of this architecture.
    pub(super) fn call(number: c_long, arguments: [u32; 3]) -> Call {
        Call { architecture: ARCHITECTURE, number: number as u32, arguments }
    }

    /// The kernel's decision, and after how many steps.
    pub(super) fn decide(program: &[sock_filter], call: Call) -> (u32, u32) {
        let (mut at, mut value, mut steps) = (0, 0, 0);
        loop {
            let one = &program[at];
            at += 1;
            steps += 1;
            let holds = match one.code {
                RETURN => return (one.k, steps),
                LOAD => {
                    value = match one.k {
                        AT_NUMBER => call.number,
                        AT_ARCHITECTURE => call.architecture,
                        argument => call.arguments[(argument - AT_ARGUMENTS) as usize / 8],
                    };
                    continue;
                }
                JUMP_EQUAL => value == one.k,
                JUMP_AT_LEAST => value >= one.k,
                JUMP_ANY_BIT => value & one.k != 0,
                code => panic!("unknown step {code}"),
            };
            at += usize::from(if holds { one.jt } else { one.jf });
        }
    }

    #[test]
    fn a_call_of_another_architecture_or_convention_gets_its_own_answer() {
        let filter = SyscallFilter {
            rules: vec![SyscallRule::refuse(libc::SYS_reboot, libc::EPERM)],
            foreign_architecture: libc::SECCOMP_RET_KILL_PROCESS,
            foreign_number: error(libc::ENOSYS),
        };
        let program = filter.compile();
        let own = call(libc::SYS_read, [0; 3]);
        let foreign = Call { architecture: ARCHITECTURE ^ 1, ..own };
        assert_eq!(decide(&program, own).0, ALLOW);
        assert_eq!(decide(&program, foreign).0, libc::SECCOMP_RET_KILL_PROCESS);
        if cfg!(target_arch = "x86_64") {
            let convention = call(c_long::from(FOREIGN_NUMBERS), [0; 3]);
            assert_eq!(decide(&program, convention).0, error(libc::ENOSYS));
        }
    }

    #[test]
    fn an_argument_is_compared_with_every_value() {
        let test = ArgumentTest::IsOneOf(2, &[3, 5, 7]);
        let rules = [SyscallRule::refuse_if, SyscallRule::refuse_unless]
            .map(|rule| rule(libc::SYS_madvise, &test, libc::EPERM));
        let [on, unless] = rules.map(|rule| {
            let filter = SyscallFilter {
                rules: vec![rule],
                foreign_architecture: ALLOW,
                foreign_number: ALLOW,
            };
            filter.compile()
        });
        for value in 0..9 {
            let one = call(libc::SYS_madvise, [3, 5, value]);
            let is_named = [3, 5, 7].contains(&value);
            assert_eq!(decide(&on, one).0 != ALLOW, is_named, "{value}");
            assert_eq!(decide(&unless, one).0 == ALLOW, is_named, "{value}");
        }
    }
}
