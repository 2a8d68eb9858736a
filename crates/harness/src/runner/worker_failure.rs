//! Why a worker can no longer be used, and what that means for a candidate.

use crate::outcome::{Failure, GateResult};
use karve_core::measurement::{FailureCategory, Gate};
use karve_numerics::case::Case;
use karve_os::error::Result;
use karve_os::process::Exit;

/// Why a worker can no longer be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WorkerFailure {
    /// It ended.
    Ended {
        /// How.
        exit: Exit,
        /// What it printed last.
        stderr: String,
    },
    /// It did not reply in time.
    TooLong,
    /// It cannot be frozen.
    Restless,
    /// It sent a malformed reply.
    Garbled(&'static str),
    /// It could not do what was requested.
    Refused(String),
}

/// A value, or why the worker can no longer be used.
pub(super) type WorkerResult<T> = Result<T, Failure<WorkerFailure>>;

/// What the failure of a worker means for its kernel on a case.
pub(super) fn on_case<T>(result: WorkerResult<T>, case: &Case) -> GateResult<T> {
    result.map_err(|failure| failure.map(|broken| broken.gate(&case.name)))
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
            Self::Ended { exit, stderr: said } => {
                let said = said.trim();
                let colon = if said.is_empty() { "" } else { ": " };
                let killed = matches!(exit, Exit::Signal(9));
                Gate::WrongResult {
                    case: case.to_owned(),
                    category: if killed {
                        FailureCategory::RuntimeOom
                    } else {
                        FailureCategory::RuntimeAssert
                    },
                    excerpt: format!(
                        "the kernel's process: {}{colon}{said}{}",
                        exit.describe(),
                        strayed(exit)
                    ),
                }
            }
            Self::TooLong => Gate::TimedOut { what: format!("the kernel on {case}") },
            Self::Restless => Gate::Dishonest { why: "its process cannot be frozen".into() },
            Self::Garbled(what) => Gate::Dishonest { why: format!("its process sent {what}") },
            Self::Refused(why) => Gate::WrongResult {
                case: case.to_owned(),
                category: FailureCategory::Other,
                excerpt: why,
            },
        }
    }
}

/// The likely cause if it was killed for a memory access.
fn strayed(exit: Exit) -> &'static str {
    match exit {
        Exit::Signal(7 | 11) => {
            "; inputs are read-only, and outputs have the size given in contract.args"
        }
        _ => "",
    }
}
