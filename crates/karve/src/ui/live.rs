//! A few lines below everything else on a terminal that show what is under way: the step with how
//! much is left of it, and what a command adds.
//!
//! There is one such area for the process, on standard error. Whatever else `ui` writes goes above
//! it: the area is removed, the text is written, and the area is drawn again. A thread keeps its
//! clock running. It needs no raw mode, so a process that is killed leaves the terminal usable.

use super::gauges::{bar, time_text};
use super::style::{self, Tone, toned};
use karve_os::sync::locked;
use karve_os::text;
use ratatui::crossterm::terminal;
use ratatui::text::Span;
use std::io::{IsTerminal, Write, stderr};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// How often the area is drawn.
const TICK: Duration = Duration::from_millis(120);
/// What turns while something is under way.
const TURNS: [char; 8] = ['⠋', '⠙', '⠸', '⠴', '⠦', '⠧', '⠇', '⠏'];
/// Characters of a step.
const STEP_CHARS_MAX: usize = 300;
/// Columns of the bar.
const BAR_COLUMNS: usize = 16;
/// A step that takes longer than it usually does is never shown as done.
const SHARE_MAX: f64 = 0.99;

/// The area of this process.
static AREA: Mutex<AreaState> = Mutex::new(AreaState::new());

/// How much of a step is done.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum StepExtent {
    /// Unknown.
    #[default]
    Open,
    /// This share of it, at least.
    Share(f64),
    /// It took this many seconds before.
    Usually(f64),
}

/// What the area shows.
#[derive(Debug)]
struct AreaState {
    /// Who wants it; nobody sees it without.
    owners: usize,
    /// Which opening of the area it is: the clock of an earlier one ends.
    opening: usize,
    step: String,
    extent: StepExtent,
    since: Option<Instant>,
    panel: Vec<String>,
    turn: usize,
    /// The widths of the lines on the terminal.
    drawn: Vec<usize>,
}

/// The area while somebody holds it.
#[derive(Debug)]
pub(super) struct LiveArea;

impl LiveArea {
    /// Opens the area; none if standard error is not a terminal that can be drawn on.
    pub(super) fn open() -> Option<Self> {
        let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
        if !stderr().is_terminal() || dumb {
            return None;
        }
        let mut area = locked(&AREA);
        area.owners += 1;
        if area.owners == 1 {
            area.opening += 1;
            let opening = area.opening;
            thread::spawn(move || keep_drawing(opening));
        }
        Some(Self)
    }

    /// A step begins; blocks of one duel are one step.
    pub(super) fn begin(&self, step: &str, extent: StepExtent) {
        let mut area = locked(&AREA);
        let continues = duel_of(step).is_some_and(|duel| duel_of(&area.step) == Some(duel));
        if !continues || area.since.is_none() {
            area.since = Some(Instant::now());
        }
        area.step = text::safe(step, STEP_CHARS_MAX);
        area.extent = extent;
        area.draw();
    }

    /// What the step does now.
    pub(super) fn mention(&self, text: &str) {
        let mut area = locked(&AREA);
        area.since.get_or_insert_with(Instant::now);
        area.extent = share_in(text).map_or(area.extent, StepExtent::Share);
        area.step = text::safe(text, STEP_CHARS_MAX);
        area.draw();
    }

    /// The lines below the step.
    pub(super) fn panel(&self, lines: Vec<String>) {
        let mut area = locked(&AREA);
        area.panel = lines;
        area.draw();
    }
}

impl Drop for LiveArea {
    fn drop(&mut self) {
        let mut area = locked(&AREA);
        area.owners = area.owners.saturating_sub(1);
        if area.owners == 0 {
            area.remove();
            area.step.clear();
            area.panel.clear();
            area.since = None;
        }
    }
}

/// Writes something above the area. It must not write by way of `ui`.
pub(super) fn above<T>(write: impl FnOnce() -> T) -> T {
    let mut area = locked(&AREA);
    area.remove();
    let written = write();
    area.draw();
    written
}

fn keep_drawing(opening: usize) {
    loop {
        thread::sleep(TICK);
        let mut area = locked(&AREA);
        if area.owners == 0 || area.opening != opening {
            return;
        }
        area.turn += 1;
        area.draw();
    }
}

/// The duel that a step measures a block of.
fn duel_of(step: &str) -> Option<&str> {
    step.split_once(", block ").map(|(duel, _)| duel)
}

impl AreaState {
    const fn new() -> Self {
        Self {
            owners: 0,
            opening: 0,
            step: String::new(),
            extent: StepExtent::Open,
            since: None,
            panel: Vec::new(),
            turn: 0,
            drawn: Vec::new(),
        }
    }

    fn draw(&mut self) {
        let (columns, rows) = terminal::size().unwrap_or((80, 24));
        if self.owners == 0 || self.step.is_empty() || columns < 2 {
            return;
        }
        let elapsed = self.since.map_or(Duration::ZERO, |since| since.elapsed());
        let mut lines = vec![step_line(&self.step, self.extent, elapsed, self.turn)];
        lines.extend(self.panel.iter().cloned());
        lines.truncate(usize::from(rows.saturating_sub(1).max(1)));
        let lines: Vec<String> =
            lines.iter().map(|line| fitted(line, usize::from(columns) - 1)).collect();
        let text = removed(&self.drawn, columns.into()) + &toned_lines(&lines, style::color());
        self.drawn = lines.iter().map(|line| Span::raw(line.as_str()).width()).collect();
        let _ = stderr().lock().write_all(text.as_bytes());
    }

    fn remove(&mut self) {
        let (columns, _) = terminal::size().unwrap_or((80, 24));
        let text = removed(&std::mem::take(&mut self.drawn), columns.into());
        let _ = stderr().lock().write_all(text.as_bytes());
    }
}

/// The step, how much of it is done, and how long it has taken.
fn step_line(step: &str, extent: StepExtent, elapsed: Duration, turn: usize) -> String {
    let elapsed_s = elapsed.as_secs_f64();
    let (share, left) = match extent {
        StepExtent::Open => (None, None),
        StepExtent::Share(share) => (Some(share), None),
        StepExtent::Usually(usual_s) => {
            let left = Some(usual_s - elapsed_s).filter(|left| *left >= 1.0);
            (Some((elapsed_s / usual_s.max(1e-3)).min(SHARE_MAX)), left)
        }
    };
    let mut line = format!("{} {step}", TURNS[turn % TURNS.len()]);
    if let Some(share) = share {
        line.push_str(&format!("  {} {:.0}%", bar(share, BAR_COLUMNS), share * 100.0));
    }
    if let Some(left) = left {
        line.push_str(&format!(", about {} left", time_text(left.floor())));
    }
    format!("{line}  {}", time_text(elapsed_s.floor()))
}

/// What removes lines of these widths, from the end of the last one. In a terminal that became
/// narrower since, a line has several rows.
fn removed(widths: &[usize], columns: usize) -> String {
    let rows: usize = widths.iter().map(|width| width.div_ceil(columns.max(1)).max(1)).sum();
    match rows {
        0 => String::new(),
        n => format!("\r{}\u{1b}[J", "\u{1b}[1A".repeat(n - 1)),
    }
}

/// The lines as they are written: the step, and the rest less prominent.
fn toned_lines(lines: &[String], color: bool) -> String {
    let shown = lines.iter().enumerate().map(|(at, line)| match at {
        0 => line.clone(),
        _ => toned(line, Tone::Dim, color),
    });
    shown.collect::<Vec<_>>().join("\n")
}

/// The share in a text such as `setting 7 of 40`.
fn share_in(text: &str) -> Option<f64> {
    let number = |word: &str| word.trim_end_matches(',').parse::<u32>().ok();
    let words: Vec<&str> = text.split(' ').collect();
    words.windows(3).find_map(|words| match (number(words[0]), words[1], number(words[2])) {
        (Some(done), "of", Some(all)) if all > 0 => Some(f64::from(done) / f64::from(all)),
        _ => None,
    })
}

/// A line cut to a number of columns; nothing in it controls the terminal.
fn fitted(line: &str, columns: usize) -> String {
    let line = text::visible(line).replace(['\n', '\t'], " ");
    let mut width = 0;
    let fits = |c: &char| {
        width += Span::raw(c.to_string()).width();
        width <= columns
    };
    line.chars().take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_is_drawn_over_itself_and_never_wider_than_the_terminal() {
        assert_eq!(fitted("one\u{1b}[2J", 7), "one\\u00");
        assert_eq!(fitted("二二二二", 7), "二二二");
        let lines = ["one".to_owned(), "two".to_owned()];
        assert_eq!(toned_lines(&lines, false), "one\ntwo");
        assert_eq!(removed(&[], 80), "");
        assert_eq!(removed(&[3], 80), "\r\u{1b}[J");
        assert_eq!(removed(&[3, 0], 80), "\r\u{1b}[1A\u{1b}[J");
        // Two lines of 70 columns are four rows of a terminal of 40.
        assert_eq!(removed(&[70, 70], 40).matches("\u{1b}[1A").count(), 3);
    }

    #[test]
    fn a_step_says_how_much_is_left_of_it() {
        let line = |extent, s| step_line("round 2: gate", extent, Duration::from_secs(s), 0);
        assert_eq!(line(StepExtent::Open, 75), "⠋ round 2: gate  1 min 15 s");
        let half = line(StepExtent::Share(0.5), 3);
        assert_eq!(half, "⠋ round 2: gate  ████████░░░░░░░░ 50%  3 s");
        let usual = line(StepExtent::Usually(20.0), 5);
        assert!(usual.ends_with("25%, about 15 s left  5 s"), "{usual}");
        assert!(line(StepExtent::Usually(20.0), 90).ends_with("99%  1 min 30 s"));
        let blocks = ["round 2: measure, block 3 of at most 9", "round 2: measure, block 4"];
        assert_eq!(duel_of(blocks[0]), duel_of(blocks[1]));
        assert_eq!(duel_of("round 2: gate"), None);
        assert_eq!(share_in("round 1: tune, coarse, setting 10 of 40, the best"), Some(0.25));
        assert_eq!(share_in("waiting 1 of at most 3 s"), None);
    }
}
