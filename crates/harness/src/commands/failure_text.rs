//! The part of a command's output that is shown for a failure.

use karve_core::measurement::{FailureCategory, Gate, classify_failure};
use karve_os::process::{self, CommandOutcome, Exit, excerpt};

/// The output of a failed test.
pub(super) fn wrong(case: &str, run: &CommandOutcome) -> Gate {
    let excerpt = excerpt(run);
    let killed = matches!(
        run.exit,
        Exit::Signal(9) | Exit::Code(137) | Exit::TooMuch(process::ExceededLimit::Memory)
    );
    let category = match classify_failure(false, &excerpt) {
        FailureCategory::Other if killed => FailureCategory::RuntimeOom,
        category => category,
    };
    Gate::WrongResult { case: case.to_owned(), category, excerpt }
}
