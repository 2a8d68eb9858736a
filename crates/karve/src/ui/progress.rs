//! How far something is: a moving line on a terminal, a few plain lines elsewhere.
//!
//! Both go to standard error, so that standard output holds the result and nothing else.

use super::note;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// The first plain line comes after this long, the next after twice as long, and so on.
const FIRST_LINE: Duration = Duration::from_secs(5);

/// A moving line on standard error, if that is a terminal.
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

/// Shows how far something is.
#[derive(Debug)]
pub struct Progress {
    spinner: Option<ProgressBar>,
    started: Instant,
    next_line: Duration,
}

impl Progress {
    /// A moving line if standard error is a terminal.
    pub fn new() -> Self {
        Self {
            spinner: spinner(),
            started: Instant::now(),
            next_line: FIRST_LINE,
        }
    }

    /// A new stage begins.
    pub fn stage(&self, text: &str) {
        match &self.spinner {
            Some(spinner) => spinner.set_message(text.to_owned()),
            None => note(text),
        }
    }

    /// This is how far it is; elsewhere than on a terminal it is said seldom.
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
