//! Which language a file speaks, and whether that is what its author was asked for.

use super::{Book, Language};
use crate::measurement::Stray;

/// Lines of a file that are looked at.
const LINES_MAX: usize = 20_000;
/// Characters of a line that is quoted.
const QUOTE_CHARS: usize = 80;

/// The line by which a text is known to speak a language.
fn shown_by<'a>(language: &Language, text: &'a str) -> Option<&'a str> {
    let begins = |line: &&str| {
        let line = line.trim_start();
        language.marks.iter().any(|mark| {
            let rest = line.strip_prefix(mark.as_str());
            let ends = |c: char| !(c.is_alphanumeric() || c == '_');
            rest.is_some_and(|rest| rest.chars().next().is_none_or(ends))
        })
    };
    text.lines().take(LINES_MAX).find(begins)
}

/// The changed files that speak another language than the one that was asked for, although they
/// did not before: path, what was there, what is there now.
pub fn strays(book: &Book, asked: &str, files: &[(String, String, String)]) -> Vec<Stray> {
    let Some(own) = book.language(asked).filter(|own| !own.marks.is_empty()) else {
        return Vec::new();
    };
    let is_near = |other: &Language| {
        other.name == own.name
            || own.built_on.as_ref() == Some(&other.name)
            || other.marks == own.marks
    };
    let mut found = Vec::new();
    for (path, before, after) in files {
        for other in book.language.iter().filter(|other| !is_near(other)) {
            if shown_by(other, before).is_some() {
                continue;
            }
            if let Some(line) = shown_by(other, after) {
                found.push(Stray {
                    path: path.clone(),
                    speaks: other.name.clone(),
                    asked: own.name.clone(),
                    line: line.trim().chars().take(QUOTE_CHARS).collect(),
                });
            }
        }
    }
    found
}
