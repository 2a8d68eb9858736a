//! How a command ended, and how to describe it.

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It exited with a code.
    Code(i32),
    /// A signal that did not come from us killed it.
    Signal(i32),
    /// It exceeded its time limit and was killed.
    TimedOut,
    /// The user wanted to stop immediately, and it was killed.
    Stopped,
    /// It exceeded a resource limit and was killed.
    TooMuch(ExceededLimit),
}

/// What a command used too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExceededLimit {
    /// All its processes together use too much memory.
    Memory,
    /// It has too many processes.
    Processes,
    /// One process has too many threads.
    Threads,
    /// It printed more than allowed.
    Output,
}

impl Exit {
    /// Whether it exited with code zero.
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }

    /// How it ended, in words. Signals are named as in a shell.
    pub fn describe(self) -> String {
        let signal = match self {
            Self::Code(code) => return format!("exit code {code}"),
            Self::TimedOut => return "ran past its limit".into(),
            Self::Stopped => return "stopped".into(),
            Self::TooMuch(ExceededLimit::Memory) => return "exceeded its memory limit".into(),
            Self::TooMuch(ExceededLimit::Processes) => return "exceeded its process limit".into(),
            Self::TooMuch(ExceededLimit::Threads) => return "exceeded its thread limit".into(),
            Self::TooMuch(ExceededLimit::Output) => return "exceeded its output limit".into(),
            Self::Signal(signal) => signal,
        };
        let name = match signal {
            libc::SIGILL => " (illegal instruction)",
            libc::SIGABRT => " (aborted)",
            libc::SIGBUS => " (bus error)",
            libc::SIGFPE => " (floating point exception)",
            libc::SIGKILL => " (killed)",
            libc::SIGSEGV => " (segmentation fault)",
            _ => "",
        };
        format!("ended by signal {signal}{name}")
    }
}
