//! Signals around a fork: none may reach karve's handlers in a child, and the child starts clean.

use std::{mem, ptr};

/// Signals are numbered from 1 to this.
const SIGNAL_MAX: i32 = 64;

/// Gives the child default signal dispositions and an empty mask. Async-signal-safe.
///
/// Ignoring a signal first discards it where it is pending: a Ctrl-C that reached the child before
/// it had its own session was not meant for it.
pub(super) fn reset_signals() {
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
/// Without it a signal between fork and exec would run karve's handlers in the child, which
/// shares their pipes.
pub(super) struct BlockedSignals(libc::sigset_t);

impl BlockedSignals {
    pub(super) fn all() -> Self {
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
