//! `karve watch`: a campaign on the whole terminal, from its log alone.
//!
//! ```text
//! model.rs     what is known: the log read so far, as the payload that all pages show
//! state.rs     what the reader chose: the round, the tab, the filter; and the keys
//! draw.rs      where everything is: header, rounds, details, footer
//! details.rs     the text of the tabs
//! evidence.rs    the charts
//! theme.rs     colors, or none
//! ```
//!
//! It only reads, so it works over ssh, beside a running campaign and after its end.

mod details;
mod draw;
mod evidence;
mod model;
mod state;
mod tabs;
#[cfg(test)]
mod tests;
mod theme;

use crate::session;
use crate::ui::style;
use crate::ui::terminal::{FullScreen, end_without_terminal};
use karve_harness::store::CampaignDir;
use karve_os::clock;
use karve_os::error::{Result, WithContext};
use model::WatchModel;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{self, Event as TerminalEvent, KeyEventKind};
use ratatui::layout::Rect;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use state::{KeyOutcome, WatchState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use theme::Theme;

/// How often the log is looked at.
const POLL: Duration = Duration::from_millis(200);
/// How often the time since the last event is drawn again.
const REDRAW: Duration = Duration::from_secs(1);

/// Panics with the terminal taken, in tests.
const PANIC: &str = "KARVE_TEST_PANIC";

/// Shows a campaign until the reader quits.
pub fn watch(dir: CampaignDir) -> Result<()> {
    let mut model = WatchModel::open(dir)?;
    let mut state = WatchState::default();
    let stop = stop_flag()?;
    let cannot = || "cannot draw on the terminal".to_owned();
    let mut screen = FullScreen::open()?;
    end_without_terminal(Arc::clone(&stop));
    let theme = Theme { color: style::color() };
    let mut drawn = None::<Instant>;
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(session::stopped());
        }
        let is_new = model.poll();
        if is_new || drawn.is_none_or(|drawn| drawn.elapsed() >= REDRAW) {
            let now_ms = clock::now_ms();
            let draw = |frame: &mut ratatui::Frame<'_>| {
                draw::draw(frame, &mut model, &mut state, theme, now_ms);
            };
            screen.terminal.draw(draw).context(cannot)?;
            drawn = Some(Instant::now());
            assert!(std::env::var_os(PANIC).is_none(), "a test asked for this panic");
        }
        let mut wait = if model.is_reading() { Duration::ZERO } else { POLL };
        while event::poll(wait).context(cannot)? {
            wait = Duration::ZERO;
            drawn = None;
            match event::read().context(cannot)? {
                // A terminal that was smaller for a moment has lost what it does not show again.
                TerminalEvent::Resize(columns, rows) => {
                    let all = Rect::new(0, 0, columns, rows);
                    screen.terminal.resize(all).context(cannot)?;
                }
                TerminalEvent::Key(key)
                    if key.kind == KeyEventKind::Press && state.press(key) == KeyOutcome::Quit =>
                {
                    return Ok(());
                }
                _ => {}
            }
        }
    }
}

/// One picture of a campaign as text.
pub fn picture(dir: CampaignDir, (columns, rows): (u16, u16)) -> Result<String> {
    let mut model = WatchModel::open(dir)?;
    while model.poll() && model.is_reading() {}
    let mut state = WatchState::default();
    Ok(render(&mut model, &mut state, (columns, rows), clock::now_ms()))
}

/// The screen as lines of text, without color.
fn render(
    model: &mut WatchModel,
    state: &mut WatchState,
    (columns, rows): (u16, u16),
    now_ms: i64,
) -> String {
    // A terminal in memory cannot fail.
    let Ok(mut terminal) = Terminal::new(TestBackend::new(columns, rows));
    let theme = Theme { color: false };
    let Ok(_) = terminal.draw(|frame| draw::draw(frame, model, state, theme, now_ms));
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    for row in 0..rows {
        let line: String = (0..columns).map(|column| buffer[(column, row)].symbol()).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Set by the signals that end a process.
fn stop_flag() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .context(|| "cannot watch for signals".to_owned())?;
    }
    Ok(stop)
}
