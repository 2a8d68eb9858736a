//! The text of `karve.toml` with the position of every key, so that an error names its line.

use karve_os::error::{CommandError, Result};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The file as text and as a tree with positions.
#[derive(Debug)]
pub(super) struct ConfigSource<'a> {
    /// The file's name, for errors.
    pub(super) name: &'a str,
    /// Its content.
    pub(super) text: &'a str,
    root: Spanned<DeValue<'a>>,
    /// Where each line but the first begins.
    lines: Vec<usize>,
}

/// One step of the path to a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum PathSegment<'a> {
    /// Into a table.
    Key(&'a str),
    /// Into a list.
    Index(usize),
}

impl<'a> ConfigSource<'a> {
    /// Parses the TOML.
    pub(super) fn parse(name: &'a str, text: &'a str) -> Result<Self> {
        match DeTable::parse(text) {
            Ok(table) => {
                let span = table.span();
                let root = Spanned::new(span, DeValue::Table(table.into_inner()));
                let lines = text.match_indices('\n').map(|(at, _)| at + 1).collect();
                Ok(Self { name, text, root, lines })
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

    /// The line on which a span begins, counted from 1.
    pub(super) fn line_of(&self, span: Range<usize>) -> usize {
        1 + self.lines.partition_point(|begin| *begin <= span.start)
    }

    /// The last line, where missing tables can be added.
    pub(super) fn last_line(&self) -> usize {
        self.text.lines().count().max(1)
    }

    /// The line of the key at a dotted path, or of its nearest existing parent table.
    pub(super) fn line(&self, path: &str) -> usize {
        let steps: Vec<PathSegment<'_>> = path.split('.').map(PathSegment::Key).collect();
        self.line_along(&steps)
    }

    /// The line of an item of the list at a dotted path.
    pub(super) fn item_line(&self, path: &str, index: usize) -> usize {
        let mut steps: Vec<PathSegment<'_>> = path.split('.').map(PathSegment::Key).collect();
        steps.push(PathSegment::Index(index));
        self.line_along(&steps)
    }

    /// The line of a value, or of its nearest existing parent.
    pub(super) fn line_along(&self, steps: &[PathSegment<'_>]) -> usize {
        let (mut here, mut line) = (&self.root, None);
        for step in steps {
            let next = match (step, here.get_ref()) {
                (PathSegment::Key(key), DeValue::Table(table)) => {
                    table.get_key_value(*key).map(|(key, value)| (key.span(), value))
                }
                (PathSegment::Index(index), DeValue::Array(items)) => {
                    items.get(*index).map(|item| (item.span(), item))
                }
                (PathSegment::Key(_) | PathSegment::Index(_), _) => None,
            };
            let Some((span, value)) = next else { break };
            line = Some(self.line_of(span));
            here = value;
        }
        line.unwrap_or_else(|| self.last_line())
    }

    /// The keys of the table at a path, in the order of the file.
    pub(super) fn keys_in_order(&self, steps: &[PathSegment<'_>]) -> Vec<String> {
        let mut here = &self.root;
        for step in steps {
            let next = match (step, here.get_ref()) {
                (PathSegment::Key(key), DeValue::Table(table)) => table.get(*key),
                (PathSegment::Index(index), DeValue::Array(items)) => items.get(*index),
                (PathSegment::Key(_) | PathSegment::Index(_), _) => None,
            };
            let Some(next) = next else { return Vec::new() };
            here = next;
        }
        let DeValue::Table(table) = here.get_ref() else {
            return Vec::new();
        };
        let mut keys: Vec<_> = table.keys().map(|key| (key.span().start, key)).collect();
        keys.sort_by_key(|(start, _)| *start);
        keys.into_iter().map(|(_, key)| key.get_ref().to_string()).collect()
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

/// The line of a byte, counted from 1.
fn line_at(text: &str, offset: usize) -> usize {
    let end = offset.min(text.len());
    1 + text.as_bytes()[..end].iter().filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_given_in_the_order_of_the_file() {
        let source = ConfigSource::parse("karve.toml", "[c]\nm = { z = 1, a = 2 }\n").unwrap();
        assert_eq!(
            source.keys_in_order(&[PathSegment::Key("c"), PathSegment::Key("m")]),
            ["z", "a"]
        );
        assert_eq!(source.line("c.m"), 2);
        assert_eq!(source.line("c.x"), 1);
        for (at, line) in [(0, 1), (3, 1), (4, 2), (24, 2), (99, 3)] {
            assert_eq!(source.line_of(at..at), line);
        }
    }
}
