//! The whole terminal, for as long as a screen needs it; it is given back as it was, whatever ends
//! the process: the end of the screen, a panic, or a signal that its loop notices.

use karve_os::error::{CommandError, ErrorKind, Result, WithContext};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use std::io::{IsTerminal, Stdout, stdin, stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;
use std::{panic, thread};

/// How often the terminal is looked for.
const LOOK: Duration = Duration::from_millis(500);
/// How long a screen may take to end by itself.
const GRACE: Duration = Duration::from_secs(2);

/// The terminal in raw mode, with a screen of its own.
#[derive(Debug)]
pub struct FullScreen {
    /// What is drawn on.
    pub terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl FullScreen {
    /// Takes the terminal.
    pub fn open() -> Result<Self> {
        let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
        let refused = match (stdout().is_terminal() && !dumb, stdin().is_terminal()) {
            (true, true) => None,
            (true, false) => Some("standard input is not a terminal to read keys from"),
            (false, _) => Some("standard output is not a terminal to draw on"),
        };
        if let Some(why) = refused {
            return Err(CommandError::usage(why)
                .hint("\"karve watch --once\" prints one picture, \"karve status\" the progress"));
        }
        restore_on_panic();
        let cannot = || "cannot draw on the terminal".to_owned();
        enable_raw_mode().context(cannot)?;
        // From here on, dropping it gives the terminal back.
        let mut own = stdout();
        let entered = execute!(own, EnterAlternateScreen, Hide);
        let opened = entered.and_then(|()| Terminal::new(CrosstermBackend::new(own)));
        opened.map(|terminal| Self { terminal }).inspect_err(|_| restore()).context(cannot)
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back; doing so twice is harmless.
fn restore() {
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}

/// Ends the process when a signal asked for it and the screen does not notice, or when the terminal
/// is gone: a library that waits for keys there would wait for ever, and not idly.
pub fn end_without_terminal(stop: Arc<AtomicBool>) {
    thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) && stdin().is_terminal() {
            thread::sleep(LOOK);
        }
        thread::sleep(GRACE);
        restore();
        std::process::exit(ErrorKind::Interrupted.exit_code().into());
    });
}

/// The message of a panic is for the usual screen.
fn restore_on_panic() {
    static SET: Once = Once::new();
    SET.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            restore();
            before(info);
        }));
    });
}

/// The size of the terminal, in columns and rows; none if standard output is not one.
pub fn size() -> Option<(u16, u16)> {
    if !stdout().is_terminal() {
        return None;
    }
    ratatui::crossterm::terminal::size().ok()
}
