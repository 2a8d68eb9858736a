//! Screens. They read the campaign's view and decide nothing.

pub mod gauges;
mod jsonl;
mod live;
mod panel;
mod plain;
mod progress;
mod step_text;
mod steps;
pub mod style;
pub mod template;
pub mod terminal;

pub use jsonl::JsonLinesScreen;
use karve_os::error::CommandError;
use karve_os::text;
pub use plain::PlainScreen;
pub use progress::Progress;
pub use step_text::describe_step;
pub use steps::StepLines;

use karve_core::campaign::{Campaign, Record, Step};
use karve_os::device::{Notice, NoticeSink};
use std::io::{IsTerminal, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a campaign says when nobody reads its output any more.
const UNREAD: &str = "note: nobody reads standard output; the campaign continues until it is \
                      finished or stopped: \"karve status\" shows it";
/// Most characters of a notice.
const NOTICE_CHARS: usize = 200;

/// Something that shows a running campaign.
pub trait Screen {
    /// A step begins.
    fn starts(&mut self, campaign: &Campaign, step: &Step);
    /// A record was made durable and applied.
    fn saw(&mut self, campaign: &Campaign, record: &Record);
    /// Where messages go that explain a pause; standard error unless the screen has a better place.
    fn notices(&self) -> NoticeSink {
        notices()
    }
}

/// Notices on standard error: only lasting ones, no transient progress.
pub fn notices() -> NoticeSink {
    NoticeSink::new(|said| match said {
        Notice::Passing(_) => {}
        Notice::Lasting(text) => note(&format!("note: {}", text::safe(text, NOTICE_CHARS))),
    })
}

/// Shows nothing.
#[derive(Debug, Default)]
pub struct SilentScreen;

impl Screen for SilentScreen {
    fn starts(&mut self, _: &Campaign, _: &Step) {}
    fn saw(&mut self, _: &Campaign, _: &Record) {}
    fn notices(&self) -> NoticeSink {
        NoticeSink::default()
    }
}

/// Writes to standard output. A closed pipe is not an error: `karve log | head`. What would control
/// a terminal is shown as text, whoever wrote it.
pub fn out(text: &str) {
    let text = text::visible(text);
    let _ = live::above(|| std::io::stdout().lock().write_all(text.as_bytes()));
}

/// The same for text with karve's own tones.
pub fn out_toned(text: &str) {
    let _ = write_toned(text);
}

/// The same for a line of a running campaign, which continues without a reader: who waits for
/// `karve run | head` to end learns once why it does not.
fn out_line(text: &str) {
    static TOLD: Once = Once::new();
    if write_toned(&format!("{text}\n")).is_err() {
        TOLD.call_once(|| note(UNREAD));
    }
}

fn write_toned(text: &str) -> std::io::Result<()> {
    let text = style::visible_toned(text);
    live::above(|| std::io::stdout().lock().write_all(text.as_bytes()))
}

/// Passes on what a command on another machine printed; a terminal gets nothing that controls it.
pub fn pass_on_output(bytes: &[u8]) {
    pass_on(bytes, std::io::stdout().lock());
}

/// The same for what it printed on standard error.
pub fn pass_on_errors(bytes: &[u8]) {
    pass_on(bytes, std::io::stderr().lock());
}

fn pass_on(bytes: &[u8], mut to: impl Write + IsTerminal) {
    let shown = to.is_terminal().then(|| text::visible(&String::from_utf8_lossy(bytes)));
    let _ = to.write_all(shown.as_ref().map_or(bytes, String::as_bytes));
}

/// Standard output, where it is the line to another karve.
pub fn line() -> std::io::Stdout {
    std::io::stdout()
}

/// Writes a line to standard output.
pub fn outln(text: &str) {
    out(&format!("{text}\n"));
}

/// Prints a prompt on standard output, flushed and without a newline.
pub fn prompt(text: &str) {
    out(text);
    let _ = std::io::stdout().flush();
}

/// Writes a line to standard error.
pub fn note(text: &str) {
    let text = text::visible(text);
    let _ = live::above(|| std::io::stderr().lock().write_all(format!("{text}\n").as_bytes()));
}

/// Whether steps can be shown where they begin.
pub fn has_live_area() -> bool {
    std::io::stderr().is_terminal()
}

/// Says what to do next, to a person at a terminal.
pub fn next_step(text: &str) {
    if has_live_area() {
        note(&format!("next: {text}"));
    }
}

/// Whether a JSON document is on standard output: it is then the answer, also of a failed check.
static ANSWERED: AtomicBool = AtomicBool::new(false);

/// Writes a value as JSON to standard output.
pub fn out_json<T: serde::Serialize>(value: &T) {
    if let Ok(text) = serde_json::to_string_pretty(value) {
        ANSWERED.store(true, Ordering::Relaxed);
        outln(&text);
    }
}

/// Writes an error as a line of JSON to standard output, unless the answer is there.
pub fn out_json_error(error: &CommandError) {
    if ANSWERED.load(Ordering::Relaxed) {
        return;
    }
    let CommandError { kind, message, causes, hints } = error;
    let error = serde_json::json!({
        "kind": kind.name(),
        "exit_code": kind.exit_code(),
        "message": message,
        "causes": causes,
        "hints": hints,
    });
    outln(&serde_json::json!({ "error": error }).to_string());
}
