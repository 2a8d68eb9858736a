//! Finds a value in a JSON text without parsing more than the path to it.
//!
//! The text around the value stays the same, byte for byte, so it is scanned instead of being
//! parsed into a tree and written again. Keys with escapes are not found.

use std::ops::Range;

/// Maximum nesting of objects.
const DEPTH_MAX: usize = 64;

/// The position of the value at this dotted path. A key may contain a dot itself.
pub(super) fn find(text: &str, path: &str) -> Option<Range<usize>> {
    let mut at = skip_space(text, 0);
    let mut keys = path;
    for _ in 0..DEPTH_MAX {
        if let Some(range) = member(text, at, keys) {
            return Some(range);
        }
        let (key, rest) = keys.split_once('.')?;
        at = member(text, at, key)?.start;
        keys = rest;
    }
    None
}

/// The word, number or truth value at that position.
pub(super) fn scalar(raw: &str) -> Option<String> {
    if let Some(inner) = raw.strip_prefix('"') {
        let inner = inner.strip_suffix('"')?;
        return (!inner.contains('\\')).then(|| inner.to_owned());
    }
    is_plain(raw).then(|| raw.to_owned())
}

/// Whether a value has the same meaning without quotes: a number or a truth value.
pub(super) fn is_plain(value: &str) -> bool {
    let digits = value.strip_prefix('-').unwrap_or(value);
    let leading = digits.starts_with('0') && digits.starts_with(|c: char| c.is_ascii_digit());
    let padded = leading && digits[1..].starts_with(|c: char| c.is_ascii_digit());
    let number = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.ends_with(|c: char| c.is_ascii_digit())
        && value.parse::<f64>().is_ok_and(f64::is_finite);
    (number && !padded) || value == "true" || value == "false"
}

/// The value of a key of the object that starts at `start`.
fn member(text: &str, start: usize, key: &str) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    if bytes.get(start) != Some(&b'{') {
        return None;
    }
    let mut at = skip_space(text, start + 1);
    while bytes.get(at) == Some(&b'"') {
        let name = at + 1..end_of_string(text, at)? - 1;
        at = skip_space(text, name.end + 1);
        if bytes.get(at) != Some(&b':') {
            return None;
        }
        let from = skip_space(text, at + 1);
        let to = end_of_value(text, from)?;
        if text.get(name) == Some(key) {
            return Some(from..to);
        }
        at = skip_space(text, to);
        if bytes.get(at) != Some(&b',') {
            return None;
        }
        at = skip_space(text, at + 1);
    }
    None
}

fn skip_space(text: &str, from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    from + rest.len() - rest.trim_start().len()
}

/// The position after the closing quote of the string that starts at `start`.
fn end_of_string(text: &str, start: usize) -> Option<usize> {
    let mut escaped = false;
    for (offset, byte) in text.as_bytes().get(start + 1..)?.iter().enumerate() {
        match byte {
            b'\\' if !escaped => escaped = true,
            b'"' if !escaped => return Some(start + offset + 2),
            _ => escaped = false,
        }
    }
    None
}

/// The position after the value that starts at `start`.
fn end_of_value(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut at = start;
    loop {
        match bytes.get(at)? {
            b'"' => at = end_of_string(text, at)?,
            b'{' | b'[' => (depth, at) = (depth + 1, at + 1),
            b'}' | b']' if depth == 0 => break,
            b'}' | b']' => (depth, at) = (depth - 1, at + 1),
            b',' | b' ' | b'\t' | b'\r' | b'\n' if depth == 0 => break,
            _ => at += 1,
        }
        if depth == 0 && matches!(bytes.get(at - 1), Some(b'"' | b'}' | b']')) {
            break;
        }
    }
    (at > start).then_some(at)
}
