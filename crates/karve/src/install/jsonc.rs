//! JSON with comments and trailing commas, changed without touching the rest.
//!
//! Comments and trailing commas are replaced by blanks, byte for byte, so that offsets in the plain
//! JSON are offsets in the original text.

use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::ser::PrettyFormatter;
use serde_json::{Deserializer, Serializer, Value};
use std::ops::Range;

/// A parsed text.
#[derive(Debug)]
pub(super) struct JsoncDocument<'a> {
    text: &'a str,
    plain: String,
    /// Its value.
    pub(super) value: Value,
}

/// A member of an object: where it starts, and where its value is.
#[derive(Clone, Debug)]
struct JsonMember {
    key: String,
    start: usize,
    value: Range<usize>,
}

impl<'a> JsoncDocument<'a> {
    /// Reads an object.
    pub(super) fn read(text: &'a str) -> Result<Self, String> {
        let plain = plain(text)?;
        let value: Value = serde_json::from_str(&plain).map_err(|error| error.to_string())?;
        match value.is_object() {
            true => Ok(Self { text, plain, value }),
            false => Err("it is not a JSON object".to_owned()),
        }
    }

    /// The text with an entry in an object of the root, which is created if it is missing; and what
    /// was inserted, right after the brace that opens an object.
    pub(super) fn with(
        &self,
        within: &str,
        key: &str,
        value: &Value,
    ) -> Result<(String, String), String> {
        let root = self.open();
        let Some(member) = self.member(root, within)? else {
            let inner = Value::from_iter([(key.to_owned(), value.clone())]);
            return Ok(self.put_first(root, "", within, &inner));
        };
        let open = member.value.start;
        if !self.plain[open..].starts_with('{') {
            return Err(format!("{within} is not an object"));
        }
        match self.member(open, key)? {
            Some(_) => Err(format!("{within} already has {key}")),
            None => Ok(self.put_first(open, &self.unit().unwrap_or_default(), key, value)),
        }
    }

    /// The text without an entry, and without the object around it if that is now empty and `made`
    /// says that it was created for the entry.
    pub(super) fn without(&self, within: &str, key: &str, made: bool) -> Result<String, String> {
        let root = self.open();
        let Some(outer) = self.member(root, within)? else {
            return Ok(self.text.to_owned());
        };
        let is_alone = self.value[within].as_object().is_some_and(|o| o.len() == 1);
        match is_alone && made {
            true => self.cut(root, within),
            false => self.cut(outer.value.start, key),
        }
    }

    fn open(&self) -> usize {
        self.plain.find('{').unwrap_or(0)
    }

    /// The indentation: that of the first member, if it is on its own line.
    fn unit(&self) -> Option<String> {
        let open = self.open();
        let members = self.members(open);
        let Some(first) = members.first() else {
            return Some("  ".to_owned());
        };
        let line = self.text[..first.start].rfind('\n')?;
        (line > open).then(|| {
            let lead = &self.text[line + 1..first.start];
            let blank: String = lead.chars().take_while(|c| c.is_whitespace()).collect();
            if blank.is_empty() { "  ".to_owned() } else { blank }
        })
    }

    /// The text with a new first member in the object that opens there, whose brace is in a line
    /// with this indentation; and what was inserted.
    fn put_first(&self, open: usize, indent: &str, key: &str, value: &Value) -> (String, String) {
        let is_empty = self.members(open).is_empty();
        let key = Value::from(key);
        let mut put = match self.unit() {
            None => format!("{key}: {value}"),
            Some(unit) => {
                // No string in JSON contains a newline.
                let line = format!("\n{indent}{unit}");
                format!("{line}{key}: {}", pretty(value, &unit).replace('\n', &line))
            }
        };
        match (is_empty, self.unit()) {
            (false, None) => put.push_str(", "),
            (false, Some(_)) => put.push(','),
            (true, None) => {}
            (true, Some(_)) => {
                let close = self.plain[open..].find('}').map_or(open, |at| open + at);
                if !self.text[open..close].contains('\n') {
                    put.push('\n');
                    put.push_str(indent);
                }
            }
        }
        let text = format!("{}{put}{}", &self.text[..=open], &self.text[open + 1..]);
        (text, put)
    }

    /// The text without a member; the text around it stays.
    fn cut(&self, open: usize, key: &str) -> Result<String, String> {
        let members = self.members(open);
        let Some(at) = members.iter().position(|member| member.key == key) else {
            return Ok(self.text.to_owned());
        };
        let member = &members[at];
        let text = self.text;
        if let Some(next) = members.get(at + 1) {
            let between = &self.plain[member.value.end..next.start];
            let comma = member.value.end + between.find(',').unwrap_or(0);
            let rest = &text[comma + 1..];
            let rest = &text[comma + 1 + (rest.len() - rest.trim_start().len())..];
            let kept = &text[member.value.end..comma];
            return Ok(format!("{}{kept}{rest}", &text[..member.start]));
        }
        let before = match at.checked_sub(1).map(|at| &members[at]) {
            None => format!("{}{}", &text[..=open], comment_in(&text[open + 1..member.start])),
            Some(last) => {
                let between = &self.plain[last.value.end..member.start];
                let comma = last.value.end + between.find(',').unwrap_or(0);
                let kept = comment_in(&text[comma + 1..member.start]);
                format!("{}{kept}", &text[..comma])
            }
        };
        let rest = &text[member.value.end..];
        // A comma after the last one belongs to it.
        let blank = rest.len() - rest.trim_start().len();
        let rest = match rest[blank..].strip_prefix(',') {
            Some(rest) => rest,
            None => rest,
        };
        Ok(format!("{before}{rest}"))
    }

    fn member(&self, open: usize, key: &str) -> Result<Option<JsonMember>, String> {
        let members = self.members(open);
        let mut found = members.into_iter().filter(|member| member.key == key);
        let first = found.next();
        match found.next() {
            Some(_) => Err(format!("{key} occurs twice")),
            None => Ok(first),
        }
    }

    /// The members of the object that opens there. The text is known to be well formed.
    fn members(&self, open: usize) -> Vec<JsonMember> {
        let plain = self.plain.as_str();
        let bytes = plain.as_bytes();
        let mut members = Vec::new();
        let mut at = after_space(plain, open + 1);
        while bytes.get(at) == Some(&b'"') {
            let start = at;
            let end = end_of_value(plain, at);
            let key = serde_json::from_str(&plain[start..end]).unwrap_or_default();
            // After the colon.
            let from = after_space(plain, after_space(plain, end) + 1);
            let to = end_of_value(plain, from);
            members.push(JsonMember { key, start, value: from..to });
            at = after_space(plain, to);
            if bytes.get(at) == Some(&b',') {
                at = after_space(plain, at + 1);
            }
        }
        members
    }
}

/// What is between two members, if it is not only blanks: a comment, up to the end of its line.
fn comment_in(between: &str) -> &str {
    match between.trim().is_empty() {
        true => "",
        false => between,
    }
}

/// A value on several lines, indented by a unit.
pub(super) fn pretty(value: &Value, unit: &str) -> String {
    let mut text = Vec::new();
    let format = PrettyFormatter::with_indent(unit.as_bytes());
    let _ = value.serialize(&mut Serializer::with_formatter(&mut text, format));
    String::from_utf8(text).unwrap_or_default()
}

fn after_space(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + (rest.len() - rest.trim_start().len())
}

/// The offset after the value that starts there; the end of the text if it is not one.
fn end_of_value(text: &str, start: usize) -> usize {
    let mut values = Deserializer::from_str(&text[start..]).into_iter::<IgnoredAny>();
    match values.next() {
        Some(Ok(_)) => start + values.byte_offset(),
        Some(Err(_)) | None => text.len(),
    }
}

/// The text with blanks for comments, for commas before a closing bracket and for a byte order
/// mark.
fn plain(text: &str) -> Result<String, String> {
    let mut bytes = text.as_bytes().to_vec();
    if text.starts_with('\u{feff}') {
        bytes[..3].fill(b' ');
    }
    let mut at = 0;
    let mut comma = None;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at = end_of_value(text, at);
                comma = None;
                continue;
            }
            b'/' => {
                let end = end_of_comment(text, at)?;
                let blanked = bytes[at..end].iter_mut().filter(|byte| **byte != b'\n');
                blanked.for_each(|byte| *byte = b' ');
                at = end;
                continue;
            }
            b',' => comma = Some(at),
            b'}' | b']' => {
                if let Some(comma) = comma.take() {
                    bytes[comma] = b' ';
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        at += 1;
    }
    String::from_utf8(bytes).map_err(|error| error.to_string())
}

fn end_of_comment(text: &str, start: usize) -> Result<usize, String> {
    let rest = &text[start..];
    if rest.starts_with("//") {
        return Ok(rest.find('\n').map_or(text.len(), |at| start + at));
    }
    let line = text[..start].lines().count().max(1);
    match rest.strip_prefix("/*").and_then(|inner| inner.find("*/")) {
        Some(at) => Ok(start + 2 + at + 2),
        None => Err(format!("a comment does not end, at line {line}")),
    }
}
