//! What a text means, as a style; without color only bold, dim and reversed are used.

use crate::ui::style::Tone;
use ratatui::style::{Color, Modifier, Style};

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
    /// Text that may come from anybody: what controls a terminal is shown as text.
    pub(super) fn new(text: &str) -> Self {
        let text = karve_os::text::visible(text).replace('\n', " ").replace('\t', "    ");
        Self { text, tone: None }
    }

    pub(super) fn toned(text: &str, tone: Tone) -> Self {
        Self { tone: Some(tone), ..Self::new(text) }
    }

    /// The line in pieces of at most `columns` characters, broken at blanks where there are any;
    /// pieces after the first are indented like it.
    pub(super) fn wrapped(&self, columns: usize) -> Vec<Self> {
        let indent: String = self.text.chars().take_while(|c| *c == ' ').collect();
        let indent = if indent.len() * 2 > columns { String::new() } else { indent };
        let room = columns.saturating_sub(indent.len()).max(1);
        let body: Vec<char> = self.text.chars().skip(indent.len()).collect();
        let mut pieces = Vec::new();
        let mut from = 0;
        while body.len() - from > room {
            let blank = body[from..from + room].iter().rposition(|c| *c == ' ');
            let to = from + blank.filter(|at| *at > 0).unwrap_or(room);
            pieces.push(body[from..to].iter().collect::<String>());
            from = to + body[to..].iter().take_while(|c| **c == ' ').count();
        }
        pieces.push(body[from..].iter().collect());
        let pieces = pieces.into_iter().map(|piece| format!("{indent}{piece}"));
        pieces.map(|text| Self { text, tone: self.tone }).collect()
    }
}
