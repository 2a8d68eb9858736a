//! Screens. They read the campaign's view and decide nothing.

mod jsonl;
mod plain;
mod progress;
pub mod style;

pub use jsonl::JsonLines;
use karve_os::text;
pub use plain::Plain;
pub use progress::Progress;

use karve_core::campaign::{Campaign, Record, Step};
use karve_os::device::{Notice, Notices};
use std::io::Write;

/// Characters of a notice.
const NOTICE_CHARS: usize = 200;

/// Something that shows a running campaign.
pub trait Screen {
    /// A step begins.
    fn starts(&mut self, campaign: &Campaign, step: &Step);
    /// A record was made durable and taken in.
    fn saw(&mut self, campaign: &Campaign, record: &Record);
    /// Where it is said why nothing seems to happen; standard error unless there is a better place.
    fn notices(&self) -> Notices {
        notices()
    }
}

/// Notices on standard error, where nothing passes: only what is to be kept in sight.
pub fn notices() -> Notices {
    Notices::new(|said| match said {
        Notice::Passing(_) => {}
        Notice::Lasting(text) => note(&format!("note: {}", text::safe(text, NOTICE_CHARS))),
    })
}

/// Shows nothing.
#[derive(Debug, Default)]
pub struct Silent;

impl Screen for Silent {
    fn starts(&mut self, _: &Campaign, _: &Step) {}
    fn saw(&mut self, _: &Campaign, _: &Record) {}
    fn notices(&self) -> Notices {
        Notices::default()
    }
}

/// Writes to standard output. A reader that went away is no error: `karve log | head`.
pub fn out(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

/// Writes a line to standard output.
pub fn outln(text: &str) {
    out(&format!("{text}\n"));
}

/// Asks on standard output, at once and without a line end.
pub fn prompt(text: &str) {
    out(text);
    let _ = std::io::stdout().flush();
}

/// Writes a line to standard error.
pub fn note(text: &str) {
    let _ = std::io::stderr()
        .lock()
        .write_all(format!("{text}\n").as_bytes());
}

/// Writes a value as JSON to standard output.
pub fn out_json<T: serde::Serialize>(value: &T) {
    if let Ok(text) = serde_json::to_string_pretty(value) {
        outln(&text);
    }
}
