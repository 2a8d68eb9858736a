//! Why a worker can no longer be used, and what that means for a candidate.

use crate::outcome::{Failure, GateResult};
use karve_core::measurement::{FailureCategory, Gate};
use karve_numerics::case::Case;
use karve_os::error::Result;
use karve_os::process::Exit;
use karve_os::text;

/// Lines, and characters of a line, of what a reference said.
const SAID_LINES_MAX: usize = 20;
const SAID_CHARS_MAX: usize = 300;

/// Why a worker can no longer be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WorkerFailure {
    /// It ended.
    Ended {
        /// How.
        exit: Exit,
        /// What it printed: for the user only.
        stderr: String,
    },
    /// It did not reply in time.
    TooLong,
    /// It cannot be frozen.
    Restless,
    /// It sent a malformed reply.
    Garbled(&'static str),
    /// It could not do what was requested.
    Refused {
        /// What an agent may know of the reason.
        shown: String,
        /// What it sent: for the user only.
        whole: String,
    },
}

/// A value, or why the worker can no longer be used.
pub(super) type WorkerResult<T> = Result<T, Failure<WorkerFailure>>;

/// What the failure of a worker means for its kernel on a case.
pub(super) fn on_case<T>(result: WorkerResult<T>, case: &Case) -> GateResult<T> {
    result.map_err(|failure| failure.map(|broken| broken.gate(&case.name)).on(case))
}

impl From<WorkerFailure> for Failure<WorkerFailure> {
    fn from(failure: WorkerFailure) -> Self {
        Self::Outcome(failure)
    }
}

impl WorkerFailure {
    /// What that means for a candidate on a case.
    pub(super) fn gate(self, case: &str) -> Gate {
        match self {
            Self::Ended { exit, .. } => {
                let killed = matches!(exit, Exit::Signal(9) | Exit::TooMuch(_));
                Gate::WrongResult {
                    case: case.to_owned(),
                    category: if killed {
                        FailureCategory::RuntimeOom
                    } else {
                        FailureCategory::RuntimeAssert
                    },
                    excerpt: format!("the kernel's process {}{}", ending(exit), strayed(exit)),
                }
            }
            Self::TooLong => Gate::TimedOut { what: format!("the kernel on {case}") },
            Self::Restless => Gate::Dishonest { why: "its process cannot be frozen".into() },
            Self::Garbled(what) => Gate::Dishonest { why: format!("its process sent {what}") },
            Self::Refused { shown, .. } => Gate::WrongResult {
                case: case.to_owned(),
                category: FailureCategory::Other,
                excerpt: shown,
            },
        }
    }

    /// The same with all that it said, for the user: of code that is not a candidate's.
    pub(super) fn in_full(self, on: &str) -> String {
        let said = match &self {
            Self::Ended { stderr: said, .. } => said.as_str(),
            // The first line is the code of what is shown anyway.
            Self::Refused { whole, .. } => whole.split_once('\n').map_or("", |(_, rest)| rest),
            Self::TooLong | Self::Restless | Self::Garbled(_) => "",
        };
        let said = text::safe_lines(said, SAID_LINES_MAX, SAID_CHARS_MAX).join("\n");
        let colon = if said.is_empty() { "" } else { ": " };
        format!("{}{colon}{said}", self.gate(on).describe())
    }
}

/// How it ended, without numbers that a kernel chooses: they could tell about a hidden case. The
/// user finds them with what it printed.
fn ending(exit: Exit) -> String {
    match exit {
        Exit::Code(_) => "exited".into(),
        Exit::Signal(4 | 6 | 7 | 8 | 9 | 11) => exit.describe(),
        Exit::Signal(_) => "ended by a signal".into(),
        Exit::TimedOut | Exit::Stopped | Exit::TooMuch(_) => exit.describe(),
    }
}

/// The likely cause if it was killed for a memory access.
fn strayed(exit: Exit) -> &'static str {
    match exit {
        Exit::Signal(7 | 11) => {
            "; inputs are read-only, outputs have the size given in contract.args, and tensors of \
             earlier calls are gone"
        }
        _ => "",
    }
}
