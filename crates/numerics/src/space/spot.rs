//! Finds the value of a knob in a text, and replaces it.
//!
//! ```text
//! value        TILE = 8, #define TILE 8, const TILE: usize = 8;
//! flag         CFLAGS = -O2 -funroll-loops, one flag of which is present or not
//! json         {"gemm": {"tile": 8}}, by the path gemm.tile
//! placeholder  @TILE=8@, in a template from which the build's file is made
//! ```

use super::json;
use std::collections::BTreeMap;
use std::ops::Range;

/// The file name suffix of a template.
pub const TEMPLATE_END: &str = ".in";

/// Where a value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KnobLocation {
    /// In a definition, on this line, from 0.
    Value {
        /// The line.
        line: usize,
    },
    /// One of the words of a list that is defined on this line.
    Flag {
        /// The line.
        line: usize,
        /// The name of the list.
        list: String,
        /// The flag.
        flag: String,
    },
    /// In a JSON file.
    Json {
        /// The dotted path of keys.
        path: String,
    },
    /// Between `@` signs in a template.
    Placeholder,
}

/// The value of a flag that is not in its list, and of one that is.
pub(super) const FLAG: [&str; 2] = ["off", "on"];

/// Characters that end a value.
pub(super) const ENDS: [char; 4] = [';', ',', ')', '"'];

/// Whether a value can be written: one word without a terminating character.
pub fn is_value(value: &str) -> bool {
    !value.is_empty() && !value.contains(|c: char| c.is_whitespace() || ENDS.contains(&c))
}

impl KnobLocation {
    /// The value of `name` in a text, if it is there.
    pub(super) fn read(&self, text: &str, name: &str) -> Option<String> {
        let owned = |range: Range<usize>| text[range].to_owned();
        match self {
            Self::Value { line } => {
                let (at, line) = line_at(text, *line)?;
                find_value(line, name).map(|range| owned(at + range.start..at + range.end))
            }
            Self::Flag { line, list, flag } => {
                let (at, line) = line_at(text, *line)?;
                let range = find_list(line, list)?;
                let stands = text[at + range.start..at + range.end]
                    .split_whitespace()
                    .any(|word| word == flag);
                Some(FLAG[usize::from(stands)].to_owned())
            }
            Self::Json { path } => json::find(text, path).and_then(|at| json::scalar(&text[at])),
            Self::Placeholder => find_marker(text, name).map(owned),
        }
    }

    /// The text with another value of `name`.
    pub(super) fn write(&self, text: &str, name: &str, value: &str) -> Option<String> {
        let (range, new) = match self {
            Self::Value { line } => {
                let (at, line) = line_at(text, *line)?;
                let range = find_value(line, name)?;
                (at + range.start..at + range.end, value.to_owned())
            }
            Self::Flag { line, list, flag } => {
                let (at, line) = line_at(text, *line)?;
                let range = find_list(line, list)?;
                let range = at + range.start..at + range.end;
                let words = text[range.clone()].split_whitespace();
                let mut words: Vec<&str> = words.filter(|word| word != flag).collect();
                if value == FLAG[1] {
                    words.push(flag);
                }
                (range, words.join(" "))
            }
            Self::Json { path } => {
                let range = json::find(text, path)?;
                let quoted = text[range.clone()].starts_with('"') || !json::is_plain(value);
                let escaped = value.replace('\\', "\\\\");
                let new = if quoted { format!("\"{escaped}\"") } else { value.to_owned() };
                (range, new)
            }
            Self::Placeholder => (find_marker(text, name)?, value.to_owned()),
        };
        let mut out = String::with_capacity(text.len() + new.len());
        out.push_str(&text[..range.start]);
        out.push_str(&new);
        out.push_str(&text[range.end..]);
        Some(out)
    }
}

/// A line without its end, and where it starts.
fn line_at(text: &str, number: usize) -> Option<(usize, &str)> {
    let mut at = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if index == number {
            return Some((at, line.trim_end_matches(['\n', '\r'])));
        }
        at += line.len();
    }
    None
}

/// Where the value of `name` is in a line, if the line defines it.
pub(super) fn find_value(line: &str, name: &str) -> Option<Range<usize>> {
    let rests = definitions(line, name);
    rests.into_iter().find_map(|rest| {
        let rest = behind_type(rest).unwrap_or(rest).trim_start_matches('"');
        let length =
            rest.find(|c: char| c.is_whitespace() || ENDS.contains(&c)).unwrap_or(rest.len());
        let at = line.len() - rest.len();
        (length > 0).then_some(at..at + length)
    })
}

/// Where the words of the list `name` are in a line, if the line defines it: up to the closing
/// quote, a comment or the end.
pub(super) fn find_list(line: &str, name: &str) -> Option<Range<usize>> {
    let rest = definitions(line, name).into_iter().next()?;
    let (rest, end) = match rest.strip_prefix('"') {
        Some(inner) => (inner, inner.find('"')?),
        None => (rest, rest.find(['#', ';']).unwrap_or(rest.len())),
    };
    let at = line.len() - rest.len();
    Some(at..at + rest[..end].trim_end().len())
}

/// What follows `name` and an optional sign, wherever the name is a whole word.
fn definitions<'a>(line: &'a str, name: &str) -> Vec<&'a str> {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(offset) = line.get(from..).and_then(|rest| rest.find(name)) {
        if name.is_empty() {
            break;
        }
        let start = from + offset;
        let end = start + name.len();
        from = end;
        let clear_before = !line[..start].ends_with(word);
        let clear_after = !line[end..].starts_with(word);
        if !(clear_before && clear_after) || line[..start].contains("karve: knob") {
            continue;
        }
        let rest = line[end..].trim_start();
        let signs = ["?=", ":=", "+=", "=", ":"];
        let rest = signs.iter().find_map(|sign| rest.strip_prefix(sign)).unwrap_or(rest);
        found.push(rest.trim_start());
    }
    found
}

/// The rest after `usize = ` and the like, if present: a definition may name a type.
fn behind_type(rest: &str) -> Option<&str> {
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    let value = rest[end..].trim_start().strip_prefix('=')?;
    let typed = end > 0 && !value.starts_with('=');
    typed.then(|| value.trim_start())
}

/// Where the value in `@NAME=value@` is.
fn find_marker(text: &str, name: &str) -> Option<Range<usize>> {
    let opening = format!("@{name}=");
    let start = text.find(&opening)? + opening.len();
    let length = text[start..].find('@')?;
    is_value(&text[start..start + length]).then_some(start..start + length)
}

/// A template with `@NAME=value@` and `@NAME@` replaced by the values.
pub fn render_template(text: &str, values: &BTreeMap<String, String>) -> String {
    let mut out = text.to_owned();
    for (name, value) in values {
        if let Some(range) = find_marker(&out, name) {
            let start = range.start - name.len() - 2;
            out.replace_range(start..=range.end, value);
        }
        out = out.replace(&format!("@{name}@"), value);
    }
    out
}
