//! The end of a command's output, for a message.

use super::CommandOutcome;

/// How many characters from the end of a log an excerpt keeps.
const EXCERPT_CHARS: usize = 2_000;

/// The end of a command's output, with how it exited.
pub fn excerpt(run: &CommandOutcome) -> String {
    let mut text = run.stdout.text().into_owned();
    text.push_str(&run.stderr.text());
    let text = text.trim();
    let skip = text.chars().count().saturating_sub(EXCERPT_CHARS);
    let tail: String = text.chars().skip(skip).collect();
    let ended = run.exit.describe();
    format!("{ended}{}{tail}", if tail.is_empty() { "" } else { ": " })
}
