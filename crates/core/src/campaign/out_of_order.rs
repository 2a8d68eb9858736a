//! What a campaign answers to an event that was not due.

use std::fmt;

/// An event that was not due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfOrder {
    /// Its position in the log.
    pub seq: u64,
    /// What happened.
    pub event: &'static str,
    /// What was due.
    pub due: &'static str,
    /// Details, if any.
    pub detail: String,
}

impl fmt::Display for OutOfOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event {} ({}) is out of order: \"{}\" was due", self.seq, self.event, self.due)?;
        if self.detail.is_empty() { Ok(()) } else { write!(f, ": {}", self.detail) }
    }
}

impl std::error::Error for OutOfOrder {}

/// Whether an event was accepted, or why not.
pub(super) type EventResult = Result<(), String>;

pub(super) fn not_due() -> EventResult {
    Err(String::new())
}
