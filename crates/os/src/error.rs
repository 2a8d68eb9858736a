//! An error is what stops karve itself: a kind, a sentence, its causes and hints.
//!
//! What goes wrong with a candidate or an agent is an outcome, and an event; it never becomes an
//! error. Each hint names a command, a flag or a file. The kind chooses the exit code.

use std::fmt::{self, Display};

/// What kind of thing went wrong; chooses the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A check failed or a verification found differences.
    Negative,
    /// The command line or `karve.toml` is not usable.
    Usage,
    /// Git, the disk, a tool or the machine does not allow it.
    Environment,
    /// Another karve holds the campaign or the device.
    Busy,
    /// The user stopped it.
    Interrupted,
    /// A bug in karve.
    Bug,
}

impl ErrorKind {
    /// The documented exit code.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Negative => 1,
            Self::Usage => 2,
            Self::Environment => 3,
            Self::Busy => 4,
            Self::Bug => 70,
            Self::Interrupted => 130,
        }
    }

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Negative => "check_failed",
            Self::Usage => "usage",
            Self::Environment => "environment",
            Self::Busy => "busy",
            Self::Bug => "bug",
            Self::Interrupted => "interrupted",
        }
    }

    /// The kind with an exit code, as another karve ended with it.
    pub fn of_exit_code(code: i32) -> Option<Self> {
        let kinds = [
            Self::Negative,
            Self::Usage,
            Self::Environment,
            Self::Busy,
            Self::Bug,
            Self::Interrupted,
        ];
        kinds.into_iter().find(|kind| i32::from(kind.exit_code()) == code)
    }
}

/// An error as the user sees it: printed once, at the top level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandError {
    /// Chooses the exit code.
    pub kind: ErrorKind,
    /// One sentence without a full stop.
    pub message: String,
    /// Why, outermost first.
    pub causes: Vec<String>,
    /// What to do; each names a command, a flag or a file.
    pub hints: Vec<String>,
}

/// The result of everything that touches the world.
pub type Result<T, E = CommandError> = std::result::Result<T, E>;

impl CommandError {
    /// An error of a given kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), causes: Vec::new(), hints: Vec::new() }
    }

    /// The command line or `karve.toml` is not usable.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    /// Git, the disk, a tool or the machine does not allow it.
    pub fn environment(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Environment, message)
    }

    /// Adds a cause.
    #[must_use]
    pub fn cause(mut self, cause: impl Display) -> Self {
        self.causes.push(cause.to_string());
        self
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        for cause in &self.causes {
            write!(f, ": {cause}")?;
        }
        for hint in &self.hints {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for CommandError {}

/// Turns an input/output error into an environment error with a sentence.
pub trait WithContext<T> {
    /// Says what could not be done.
    fn context(self, message: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Display> WithContext<T> for std::result::Result<T, E> {
    fn context(self, message: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|cause| CommandError::environment(message()).cause(cause))
    }
}
