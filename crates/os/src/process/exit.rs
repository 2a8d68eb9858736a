//! How a command ended, and how that is called.

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with a code.
    Code(i32),
    /// By a signal that did not come from us.
    Signal(i32),
    /// It was over its limit and was ended.
    TimedOut,
    /// The user wanted to stop at once, and it was ended.
    Stopped,
    /// It used more than it may, and was ended.
    TooMuch(Excess),
}

/// What a command used too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// All its processes together have too much memory.
    Memory,
    /// It has too many processes.
    Processes,
    /// It printed more than somebody wants to hear.
    Output,
}

impl Exit {
    /// Whether it ended by itself with code zero.
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }

    /// How it ended, in words. Signals are called as a shell calls them.
    pub fn describe(self) -> String {
        let signal = match self {
            Self::Code(code) => return format!("exit code {code}"),
            Self::TimedOut => return "ran past its limit".into(),
            Self::Stopped => return "stopped".into(),
            Self::TooMuch(Excess::Memory) => return "used more memory than it may".into(),
            Self::TooMuch(Excess::Processes) => return "had more processes than it may".into(),
            Self::TooMuch(Excess::Output) => return "printed more than it may".into(),
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
