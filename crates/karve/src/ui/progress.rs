//! Progress: a spinner on a terminal, a few plain lines elsewhere.
//!
//! Both go to standard error, so that standard output has only the result.

use super::note;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// The wait before the first plain line; it doubles for each further line.
const FIRST_LINE: Duration = Duration::from_secs(5);

/// A spinner on standard error, if that is a terminal.
pub(super) fn spinner() -> Option<ProgressBar> {
    std::io::stderr().is_terminal().then(|| {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed:.dim}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(120));
        bar
    })
}

/// Shows progress.
#[derive(Debug)]
pub struct Progress {
    spinner: Option<ProgressBar>,
    started: Instant,
    next_line: Duration,
}

impl Progress {
    /// A spinner if standard error is a terminal.
    pub fn new() -> Self {
        Self { spinner: spinner(), started: Instant::now(), next_line: FIRST_LINE }
    }

    /// A new stage begins.
    pub fn start_phase(&self, text: &str) {
        match &self.spinner {
            Some(spinner) => spinner.set_message(text.to_owned()),
            None => note(text),
        }
    }

    /// Updates the progress; if not on a terminal, it is printed rarely.
    pub fn at(&mut self, text: impl FnOnce() -> String) {
        if let Some(spinner) = &self.spinner {
            spinner.set_message(text());
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

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }
}
