//! Text for people: safe for a terminal, bounded, with its plural.

pub use karve_core::text::counted;

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

fn bounded(text: &str, chars_max: usize) -> String {
    // Marks that change the text direction could disguise it.
    let turns = |c: char| {
        let marks = ['\u{200e}', '\u{200f}'];
        marks.contains(&c) || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let clean: String = text.chars().filter(|c| !c.is_control() && !turns(*c)).collect();
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

fn nearest<'w>(word: &str, known: &[&'w str]) -> Option<&'w str> {
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
    fn the_nearest_word_is_found_and_a_distant_one_is_not() {
        let known = ["build", "test", "bench", "profile"];
        assert_eq!(nearest("biuld", &known), Some("build"));
        assert_eq!(nearest("Bench", &known), Some("bench"));
        assert_eq!(nearest("benhc", &known), Some("bench"));
        assert_eq!(nearest("x", &known), None);
        assert_eq!(nearest("warmup", &known), None);
    }
}
