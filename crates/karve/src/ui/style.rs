//! Colour for terminals, and for nobody else. `NO_COLOR` is respected.

use std::io::IsTerminal;

/// Whether standard output takes colour.
pub fn colour() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
    std::io::stdout().is_terminal() && !refused && !dumb
}

/// What a text means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// A gain.
    Good,
    /// A loss or a failure.
    Bad,
    /// Less important.
    Dim,
    /// A heading.
    Strong,
}

/// The text in its tone, if `colour` says so.
pub fn toned(text: &str, tone: Tone, colour: bool) -> String {
    if !colour {
        return text.to_owned();
    }
    let code = match tone {
        Tone::Good => "32",
        Tone::Bad => "31",
        Tone::Dim => "2",
        Tone::Strong => "1",
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

/// So many of something with a plain plural: "1 case", "2 cases".
pub fn counted(n: usize, what: &str) -> String {
    match n {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}

/// Text from outside, safe for a terminal: no control characters, bounded.
pub fn safe(text: &str, chars_max: usize) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    bounded(&one_line, chars_max)
}

/// The same, line by line.
pub fn safe_lines(text: &str, lines_max: usize, chars_max: usize) -> Vec<String> {
    let all = text.trim_end().lines();
    let mut lines: Vec<String> = all
        .take(lines_max + 1)
        .map(|line| bounded(line.trim_end(), chars_max))
        .collect();
    if lines.len() > lines_max {
        lines.truncate(lines_max);
        lines.push("…".to_owned());
    }
    lines
}

fn bounded(text: &str, chars_max: usize) -> String {
    // Marks that turn the direction of text could show it as something else.
    let turns = |c: char| {
        let marks = ['\u{200e}', '\u{200f}'];
        marks.contains(&c) || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let clean: String = text
        .chars()
        .filter(|c| !c.is_control() && !turns(*c))
        .collect();
    if clean.chars().count() <= chars_max {
        return clean;
    }
    let mut cut: String = clean.chars().take(chars_max.saturating_sub(1)).collect();
    cut.push('…');
    cut
}
