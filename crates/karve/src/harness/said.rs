//! What a command said, as far as it is told of a failure.

use crate::process::{self, Exit, Run};
use karve_core::measurement::{FailureCategory, Gate, classify_failure};

/// Characters of a log that an excerpt keeps, from its end.
const EXCERPT_CHARS: usize = 2_000;

/// What a test says that did not pass.
pub(super) fn wrong(case: &str, run: &Run) -> Gate {
    let excerpt = excerpt(run);
    let killed = matches!(
        run.exit,
        Exit::Signal(9) | Exit::Code(137) | Exit::TooMuch(process::Excess::Memory)
    );
    let category = match classify_failure(false, &excerpt) {
        FailureCategory::Other if killed => FailureCategory::RuntimeOom,
        category => category,
    };
    Gate::WrongResult {
        case: case.to_owned(),
        category,
        excerpt,
    }
}

/// The end of what a command said, with how it ended.
pub fn excerpt(run: &Run) -> String {
    let mut text = run.stdout.text().into_owned();
    text.push_str(&run.stderr.text());
    let text = text.trim();
    let skip = text.chars().count().saturating_sub(EXCERPT_CHARS);
    let tail: String = text.chars().skip(skip).collect();
    let ended = run.exit.describe();
    format!("{ended}{}{tail}", if tail.is_empty() { "" } else { ": " })
}
