//! Color, only on terminals. `NO_COLOR` is respected.

use karve_os::text;
use std::io::IsTerminal;

/// Whether standard output supports color.
pub fn color() -> bool {
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

/// The text in its tone, if `color` is set.
pub fn toned(text: &str, tone: Tone, color: bool) -> String {
    if !color {
        return text.to_owned();
    }
    format!("\x1b[{}m{text}\x1b[0m", code(tone))
}

fn code(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "32",
        Tone::Bad => "31",
        Tone::Dim => "2",
        Tone::Strong => "1",
    }
}

/// Text in which nothing controls a terminal, except for tones.
pub(super) fn visible_toned(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let mut shown = text::visible(parts.next().unwrap_or_default());
    let tones = [Tone::Good, Tone::Bad, Tone::Dim, Tone::Strong].map(code);
    for part in parts {
        let (number, rest) = part.split_once('m').unwrap_or(("", part));
        match tones.contains(&number) || number == "0" {
            true => shown.push_str(&format!("\x1b[{number}m{}", text::visible(rest))),
            false => shown.push_str(&text::visible(&format!("\x1b[{part}"))),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tones_control_the_terminal() {
        let own = toned("good", Tone::Good, true);
        assert_eq!(visible_toned(&own), own);
        for hostile in ["\x1b[2Jm", "\x1b[31;5mx", "\x1b]0;x\x07", "\u{9b}31m", "\x1b["] {
            let shown = visible_toned(&format!("{own}{hostile}"));
            assert!(shown.starts_with(&own) && shown.contains("\\u00"), "{shown:?}");
        }
    }
}
