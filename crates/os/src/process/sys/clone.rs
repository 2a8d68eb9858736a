//! The system call that creates a child, on its own stack in karve's memory if possible.

use std::{io, mem, ptr};

use super::Pid;

/// The argument of `clone3`, as far as this file uses it; the rest is zero.
#[repr(C, align(8))]
#[derive(Default)]
pub(super) struct CloneArgs {
    pub(super) flags: u64,
    pub(super) pidfd: u64,
    pub(super) child_tid: u64,
    pub(super) parent_tid: u64,
    pub(super) exit_signal: u64,
    pub(super) stack: u64,
    pub(super) stack_size: u64,
    pub(super) tls: u64,
    pub(super) set_tid: u64,
    pub(super) set_tid_size: u64,
    pub(super) cgroup: u64,
}

/// Flags that make the child use the memory of karve, which waits meanwhile, instead of a copy: a
/// copy takes longer the larger karve is, and each of its pages costs again when it is written.
#[cfg(target_arch = "x86_64")]
pub(super) const CLONE_MEMORY: u64 = (libc::CLONE_VM | libc::CLONE_VFORK) as u64;

#[cfg(not(target_arch = "x86_64"))]
pub(super) const CLONE_MEMORY: u64 = 0;

/// The stack size of a child that uses karve's memory: it calls a few small functions.
pub(super) const STACK_BYTES: usize = 64 << 10;

/// What a child runs.
pub(super) type ChildMain<T> = extern "C" fn(&T) -> !;

/// Creates a child that runs on the stack that the arguments name; returns its id.
///
/// # Safety
///
/// The stack must be large enough, and used by nothing else.
#[cfg(target_arch = "x86_64")]
pub(super) unsafe fn clone3<T>(args: &CloneArgs, life: &T, live: ChildMain<T>) -> io::Result<Pid> {
    let result: i64;
    // SAFETY: the kernel preserves all registers except those named here. The child starts after
    // the system call on its own stack, whose end is aligned as a call requires, and never leaves
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
            live = in(reg) live,
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

/// Creates a child with a copy of all memory, as fork does; returns its id.
///
/// # Safety
///
/// No thread may hold a lock that the child needs, which takes none.
#[cfg(not(target_arch = "x86_64"))]
pub(super) unsafe fn clone3<T>(args: &CloneArgs, life: &T, live: ChildMain<T>) -> io::Result<Pid> {
    // SAFETY: the child runs only async-signal-safe code until it executes or exits.
    let pid = unsafe {
        libc::syscall(libc::SYS_clone3, ptr::from_ref(args), mem::size_of::<CloneArgs>())
    };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => live(life),
        pid => Ok(pid as Pid),
    }
}
