//! Why a worker is of no use any more, and what that is for a candidate.

use karve_core::measurement::{FailureCategory, Gate};
use karve_os::process::Exit;

/// Why a worker is of no use any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// It ended.
    Ended {
        /// How.
        exit: Exit,
        /// What it printed last.
        said: String,
    },
    /// It did not answer in time.
    TooLong,
    /// It does not stand still when it must.
    Restless,
    /// It answered what no worker answers.
    Garbled(&'static str),
    /// It could not do what it was asked.
    Refused(String),
}

impl Broken {
    /// What that is for a candidate on a case.
    pub(super) fn gate(self, case: &str) -> Gate {
        match self {
            Self::Ended { exit, said } => {
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
            Self::TooLong => Gate::TimedOut {
                what: format!("the kernel on {case}"),
            },
            Self::Restless => Gate::Dishonest {
                why: "its process cannot be made to stand still".into(),
            },
            Self::Garbled(what) => Gate::Dishonest {
                why: format!("its process answered with {what}"),
            },
            Self::Refused(why) => Gate::WrongResult {
                case: case.to_owned(),
                category: FailureCategory::Other,
                excerpt: why,
            },
        }
    }
}

/// What is likely if it was ended for touching memory.
fn strayed(exit: Exit) -> &'static str {
    match exit {
        Exit::Signal(7 | 11) => {
            "; inputs are read-only, and an output is as large as contract.args says"
        }
        _ => "",
    }
}
