//! The text of `karve.toml` with the place of every key, so that an error names its line.

use crate::error::{CommandError, Result};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// How many letters may differ for a word to be meant by another.
const DISTANCE_MAX: usize = 3;
/// The longest piece of the file that an error shows, in characters.
const SHOWN_MAX: usize = 60;

/// The file as text and as a tree with places.
#[derive(Debug)]
pub(super) struct Source<'a> {
    /// The file's name, for errors.
    pub(super) name: &'a str,
    /// What stands in it.
    pub(super) text: &'a str,
    root: Spanned<DeValue<'a>>,
}

/// One step of the way to a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum At<'a> {
    /// Into a table.
    Key(&'a str),
    /// Into a list.
    Index(usize),
}

impl<'a> Source<'a> {
    /// Reads the syntax.
    pub(super) fn parse(name: &'a str, text: &'a str) -> Result<Self> {
        match DeTable::parse(text) {
            Ok(table) => {
                let span = table.span();
                let root = Spanned::new(span, DeValue::Table(table.into_inner()));
                Ok(Self { name, text, root })
            }
            Err(error) => {
                let line = line_at(text, error.span().unwrap_or_default().start);
                let reason = error.message();
                Err(CommandError::usage(format!("{name}:{line}: {reason}"))
                    .hint(format!("{name} must be TOML: see line {line} of the file")))
            }
        }
    }

    /// The whole document.
    pub(super) fn root(&self) -> &Spanned<DeValue<'a>> {
        &self.root
    }

    /// The line on which a span begins, from 1.
    pub(super) fn line_of(&self, span: Range<usize>) -> usize {
        line_at(self.text, span.start)
    }

    /// The last line, where something missing can be added.
    pub(super) fn last_line(&self) -> usize {
        self.text.lines().count().max(1)
    }

    /// The line of the key at a dotted path, or of the nearest table above it that is there.
    pub(super) fn line(&self, path: &str) -> usize {
        let steps: Vec<At<'_>> = path.split('.').map(At::Key).collect();
        self.line_along(&steps)
    }

    /// The line of an item of the list at a dotted path.
    pub(super) fn item_line(&self, path: &str, index: usize) -> usize {
        let mut steps: Vec<At<'_>> = path.split('.').map(At::Key).collect();
        steps.push(At::Index(index));
        self.line_along(&steps)
    }

    /// The line of a value, or of the nearest one above it that is there.
    pub(super) fn line_along(&self, steps: &[At<'_>]) -> usize {
        let (mut here, mut line) = (&self.root, None);
        for step in steps {
            let next = match (step, here.get_ref()) {
                (At::Key(key), DeValue::Table(table)) => table
                    .get_key_value(*key)
                    .map(|(key, value)| (key.span(), value)),
                (At::Index(index), DeValue::Array(items)) => {
                    items.get(*index).map(|item| (item.span(), item))
                }
                (At::Key(_) | At::Index(_), _) => None,
            };
            let Some((span, value)) = next else { break };
            line = Some(self.line_of(span));
            here = value;
        }
        line.unwrap_or_else(|| self.last_line())
    }

    /// The keys of the table at the end of a way, in the order of the file.
    pub(super) fn keys_in_order(&self, steps: &[At<'_>]) -> Vec<String> {
        let mut here = &self.root;
        for step in steps {
            let next = match (step, here.get_ref()) {
                (At::Key(key), DeValue::Table(table)) => table.get(*key),
                (At::Index(index), DeValue::Array(items)) => items.get(*index),
                (At::Key(_) | At::Index(_), _) => None,
            };
            let Some(next) = next else { return Vec::new() };
            here = next;
        }
        let DeValue::Table(table) = here.get_ref() else {
            return Vec::new();
        };
        let mut keys: Vec<_> = table.keys().map(|key| (key.span().start, key)).collect();
        keys.sort_by_key(|(start, _)| *start);
        keys.into_iter()
            .map(|(_, key)| key.get_ref().to_string())
            .collect()
    }

    /// An error at a line of the file.
    pub(super) fn error(&self, line: usize, message: impl AsRef<str>) -> CommandError {
        CommandError::usage(format!("{}:{line}: {}", self.name, message.as_ref()))
    }

    /// An error at the key of a dotted path.
    pub(super) fn error_at(&self, path: &str, message: impl AsRef<str>) -> CommandError {
        self.error(self.line(path), message)
    }
}

/// The line of a byte, from 1.
fn line_at(text: &str, offset: usize) -> usize {
    let end = offset.min(text.len());
    1 + text.as_bytes()[..end]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
}

/// A piece of the file for a message: bounded, and without control characters.
pub(super) fn shown(text: &str) -> String {
    let mut short: String = text
        .chars()
        .take(SHOWN_MAX)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().nth(SHOWN_MAX).is_some() {
        short.push('…');
    }
    short
}

/// `did you mean …?` if a known word is near, and always the known words.
pub(super) fn suggestion<'w>(
    word: &str,
    known: impl IntoIterator<Item = &'w str>,
    noun: &str,
) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let list = known
        .iter()
        .map(|word| format!("`{}`", shown(word)))
        .collect::<Vec<_>>();
    let list = if list.is_empty() {
        "none".to_owned()
    } else {
        list.join(", ")
    };
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
        .map(|candidate| (distance(&word, &candidate.to_lowercase()), *candidate))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= DISTANCE_MAX && *distance * 2 <= letters.max(2))
        .map(|(_, candidate)| candidate)
}

/// Letters that must be inserted, removed, replaced or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(SHOWN_MAX).collect();
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    let mut previous = None;
    for (row, letter) in a.chars().take(SHOWN_MAX).enumerate() {
        let mut current = vec![row + 1];
        for (column, other) in b.iter().enumerate() {
            let replaced = above[column] + usize::from(letter != *other);
            let mut best = replaced.min(above[column + 1] + 1).min(current[column] + 1);
            let swapped = column > 0 && previous == Some(*other) && b[column - 1] == letter;
            if swapped {
                best = best.min(before[column - 1] + 1);
            }
            current.push(best);
        }
        before = std::mem::replace(&mut above, current);
        previous = Some(letter);
    }
    above.last().copied().unwrap_or(0)
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

    #[test]
    fn distance_counts_single_edits() {
        for (a, b, want) in [
            ("", "", 0),
            ("ab", "ba", 1),
            ("abc", "abd", 1),
            ("", "xy", 2),
        ] {
            assert_eq!(distance(a, b), want, "{a} {b}");
            assert_eq!(distance(b, a), want, "{b} {a}");
        }
    }

    #[test]
    fn keys_are_given_in_the_order_of_the_file() {
        let source = Source::parse("karve.toml", "[c]\nm = { z = 1, a = 2 }\n").unwrap();
        assert_eq!(
            source.keys_in_order(&[At::Key("c"), At::Key("m")]),
            ["z", "a"]
        );
        assert_eq!(source.line("c.m"), 2);
        assert_eq!(source.line("c.x"), 1);
    }
}
