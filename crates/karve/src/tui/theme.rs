//! What a text means, as a style; without color only bold, dim and reversed are used.

use crate::ui::style::Tone;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;

/// Characters of a line that are shown.
const LINE_CHARS_MAX: usize = 2_000;
/// Marks without a width that one character may have.
const MARKS_MAX: usize = 4;

/// Whether there is color.
#[derive(Clone, Copy, Debug)]
pub(super) struct Theme {
    pub(super) color: bool,
}

impl Theme {
    /// The style of a tone.
    pub(super) fn tone(self, tone: Tone) -> Style {
        match (tone, self.color) {
            (Tone::Good, true) => Style::new().fg(Color::Green),
            (Tone::Bad, true) => Style::new().fg(Color::Red),
            (Tone::Good | Tone::Strong, _) => Style::new().add_modifier(Modifier::BOLD),
            (Tone::Dim, _) => Style::new().add_modifier(Modifier::DIM),
            (Tone::Bad, false) => Style::new(),
        }
    }

    /// What is selected.
    pub(super) fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// A line of a chart.
    pub(super) fn series(self, color: Color) -> Style {
        match self.color {
            true => Style::new().fg(color),
            false => Style::new(),
        }
    }
}

/// A line of text with its tone. The text is safe for a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TonedLine {
    pub(super) text: String,
    pub(super) tone: Option<Tone>,
}

impl TonedLine {
    /// Text that may come from anybody: what controls a terminal is shown as text, a long one is
    /// cut off, and no more marks are put on one character than a language needs.
    pub(super) fn new(text: &str) -> Self {
        let cut: String = text.chars().take(LINE_CHARS_MAX).collect();
        let text = karve_os::text::visible(&cut).replace('\n', " ").replace('\t', "    ");
        let mut marks = 0;
        let is_shown = |c: &char| {
            marks = if width(*c) == 0 { marks + 1 } else { 0 };
            marks <= MARKS_MAX
        };
        Self { text: text.chars().filter(is_shown).collect(), tone: None }
    }

    pub(super) fn toned(text: &str, tone: Tone) -> Self {
        Self { tone: Some(tone), ..Self::new(text) }
    }

    /// The line in pieces of at most so many columns, broken at blanks where there are any; pieces
    /// after the first are indented like it.
    pub(super) fn wrapped(&self, columns: usize) -> Vec<Self> {
        let indent: String = self.text.chars().take_while(|c| *c == ' ').collect();
        let indent = if indent.len() * 2 > columns { String::new() } else { indent };
        let room = columns.saturating_sub(indent.len()).max(1);
        let body: Vec<char> = self.text.chars().skip(indent.len()).collect();
        let mut pieces = Vec::new();
        let mut from = 0;
        loop {
            let fits = fitting(&body[from..], room);
            if from + fits == body.len() {
                break;
            }
            let blank = body[from..from + fits].iter().rposition(|c| *c == ' ');
            let to = from + blank.filter(|at| *at > 0).unwrap_or(fits);
            pieces.push(body[from..to].iter().collect::<String>());
            from = to + body[to..].iter().take_while(|c| **c == ' ').count();
        }
        pieces.push(body[from..].iter().collect());
        let pieces = pieces.into_iter().map(|piece| format!("{indent}{piece}"));
        pieces.map(|text| Self { text, tone: self.tone }).collect()
    }
}

/// How many of the characters fit into so many columns; at least one, if there is any.
fn fitting(body: &[char], room: usize) -> usize {
    let mut used = 0;
    let over = body.iter().position(|c| {
        used += width(*c);
        used > room
    });
    over.map_or(body.len(), |at| at.max(1))
}

/// The columns that a character takes.
fn width(c: char) -> usize {
    match c.is_ascii() {
        true => 1,
        false => Span::raw(c.encode_utf8(&mut [0; 4]) as &str).width(),
    }
}
