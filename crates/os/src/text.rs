//! Text for people: safe for a terminal, bounded, with its plural.

pub use karve_core::text::counted;
use std::fmt::Write;

/// Text from outside, safe for a terminal: no control characters, bounded.
pub fn safe(text: &str, chars_max: usize) -> String {
    bounded(&one_line(text, usize::MAX), chars_max)
}

/// The words of a text on one line, cut off after `chars_max` characters.
pub fn one_line(text: &str, chars_max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(chars_max).collect()
}

/// The same, line by line.
pub fn safe_lines(text: &str, lines_max: usize, chars_max: usize) -> Vec<String> {
    let all = text.trim_end().lines();
    let mut lines: Vec<String> =
        all.take(lines_max + 1).map(|line| bounded(line.trim_end(), chars_max)).collect();
    if lines.len() > lines_max {
        lines.truncate(lines_max);
        lines.push("…".to_owned());
    }
    lines
}

/// Text from outside as text of karve: without control characters and without what changes its
/// direction or cannot be seen. Line breaks and tabs stay.
pub fn plain(text: &str) -> String {
    text.chars().filter(|c| !is_unseen(*c) || matches!(c, '\n' | '\t')).collect()
}

/// Text for a terminal: what would control it, turn around what follows, or not be seen is shown as
/// an escape, which in JSON is the same text. Line breaks and tabs stay.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut units = [0; 2];
    for c in text.chars() {
        if !is_unseen(c) || matches!(c, '\n' | '\t') {
            shown.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut units) {
            let _ = write!(shown, "\\u{unit:04x}");
        }
    }
    shown
}

/// Controls, marks that change the direction and could disguise a text, and what has no width.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'
            | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

fn bounded(text: &str, chars_max: usize) -> String {
    let clean: String = text.chars().filter(|c| !is_unseen(*c)).collect();
    if clean.chars().count() <= chars_max {
        return clean;
    }
    let mut cut: String = clean.chars().take(chars_max.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// Characters of a piece of a file in a message.
const SHOWN_MAX: usize = 60;

/// An excerpt of the file for a message: bounded, and without control characters.
pub fn shown(text: &str) -> String {
    let mut short: String =
        text.chars().take(SHOWN_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(SHOWN_MAX).is_some() {
        short.push('…');
    }
    short
}

/// How many letters may differ for a word to be suggested.
const DISTANCE_MAX: usize = 3;

/// `did you mean …?` if a known word is similar, and always the known words.
pub fn suggestion<'w>(word: &str, known: impl IntoIterator<Item = &'w str>, noun: &str) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let list = known.iter().map(|word| format!("`{}`", shown(word))).collect::<Vec<_>>();
    let list = if list.is_empty() { "none".to_owned() } else { list.join(", ") };
    match nearest(word, &known) {
        Some(near) => format!("did you mean `{near}`? {noun}: {list}"),
        None => format!("{noun}: {list}"),
    }
}

/// The known word that differs least from a word, if it differs little.
pub fn nearest<'w>(word: &str, known: &[&'w str]) -> Option<&'w str> {
    let word = word.to_lowercase();
    let letters = word.chars().count();
    known
        .iter()
        .map(|candidate| (strsim::osa_distance(&word, &candidate.to_lowercase()), *candidate))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= DISTANCE_MAX && *distance * 2 <= letters.max(2))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_controls_a_terminal_or_hides_is_shown_as_text_or_left_out() {
        let hostile = [
            ("\u{1b}[31mred", "\\u001b[31mred"),
            ("\u{1b}]52;c;aGk=\u{7}", "\\u001b]52;c;aGk=\\u0007"),
            ("\u{1b}]8;;http://x\u{1b}\\y", "\\u001b]8;;http://x\\u001b\\y"),
            ("\u{9b}31m", "\\u009b31m"),
            ("a\rb", "a\\u000db"),
            ("a\u{202e}b\u{2066}c", "a\\u202eb\\u2066c"),
            ("\u{e0041}x", "\\udb40\\udc41x"),
            ("two\n\tlines — ü", "two\n\tlines — ü"),
        ];
        for (text, want) in hostile {
            assert_eq!(visible(text), want);
            assert!(!plain(text).contains(|c: char| is_unseen(c) && c != '\n' && c != '\t'));
        }
        let json = serde_json::to_string("a\u{202e}\u{9b}b").unwrap();
        let back: String = serde_json::from_str(&visible(&json)).unwrap();
        assert_eq!(back, "a\u{202e}\u{9b}b");
    }

    #[test]
    fn the_nearest_word_is_found_and_a_distant_one_is_not() {
        let known = ["build", "test", "bench", "profile"];
        assert_eq!(nearest("biuld", &known), Some("build"));
        assert_eq!(nearest("Bench", &known), Some("bench"));
        assert_eq!(nearest("benhc", &known), Some("bench"));
        assert_eq!(nearest("x", &known), None);
        assert_eq!(nearest("warmup", &known), None);
    }
}
