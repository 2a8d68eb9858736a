//! Color, only on terminals. `NO_COLOR` is respected.

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
    let code = match tone {
        Tone::Good => "32",
        Tone::Bad => "31",
        Tone::Dim => "2",
        Tone::Strong => "1",
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}
