//! Progress: a line that moves on a terminal, a few plain lines elsewhere.
//!
//! Both go to standard error, so that standard output has only the result.

use super::live::{LiveArea, StepExtent};
use super::note;
use std::time::{Duration, Instant};

/// The wait before the first plain line; it doubles for each further line.
const FIRST_LINE: Duration = Duration::from_secs(5);

/// Shows progress.
#[derive(Debug)]
pub struct Progress {
    area: Option<LiveArea>,
    started: Instant,
    next_line: Duration,
}

impl Progress {
    /// A moving line if standard error is a terminal.
    pub fn new() -> Self {
        Self { area: LiveArea::open(), started: Instant::now(), next_line: FIRST_LINE }
    }

    /// A new stage begins.
    pub fn start_phase(&self, text: &str) {
        match &self.area {
            Some(area) => area.begin(text, StepExtent::Open),
            None => note(text),
        }
    }

    /// Updates the progress; if not on a terminal, it is printed rarely.
    pub fn at(&mut self, text: impl FnOnce() -> String) {
        if let Some(area) = &self.area {
            area.mention(&text());
        } else if self.started.elapsed() >= self.next_line {
            self.next_line *= 2;
            note(&text());
        }
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}
