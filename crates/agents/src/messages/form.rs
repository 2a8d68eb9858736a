//! The form of each message as data, and what is wrong with a message.
//!
//! A message is data in a declared shape. It is written as a JSON object, or as Markdown in the
//! form that its workflow publishes. Every message is checked completely, whoever wrote it, and
//! every error is named.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Maximum length of a line, in characters.
const LINE_CHARS: usize = 2_000;
/// Maximum length of a text, in characters.
const TEXT_CHARS: usize = 4_000;
/// Maximum length of a list, unless its form allows fewer entries.
const LIST_MAX: usize = 64;
/// Maximum number of errors that are named.
const ERRORS_MAX: usize = 30;
/// The largest number that is accepted.
const NUMBER_MAX: f64 = 1e15;

/// How a message is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageFormat {
    /// An object of names and values.
    #[default]
    Object,
    /// Markdown with a title and sections.
    Markdown,
    /// A text with a reader of its own.
    Own,
}

/// The kind of value in a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldKind {
    /// One line.
    #[default]
    Line,
    /// Several lines.
    Text,
    /// A number.
    Number,
    /// A number without a fraction, at least 0.
    Count,
    /// True or false.
    Truth,
    /// One of the named words.
    Choice,
    /// A list of lines.
    Lines,
    /// A list of records.
    Rows,
    /// A record.
    Record,
}

/// A field of a message or of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MessageField {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: FieldKind,
    /// Whether it may be left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// The words of a choice.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub of: Vec<String>,
    /// The fields of a record, or of each of the rows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub field: Vec<MessageField>,
    /// Minimum number of entries of a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least: Option<usize>,
    /// Maximum number of entries of a list, or of sentences of a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most: Option<usize>,
    /// What it means.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub about: String,
}

/// A section of a message in Markdown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MessageSection {
    /// Its heading; `{name}` is replaced by a field.
    pub heading: String,
    /// The field shown below it; none if it has labels.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// The lines below it, each with the form of its fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// The columns of rows that are a table, in the order of their fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// The form of rows that are a list; `{name}` is replaced by a field.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub row: String,
}

/// The form of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Message {
    /// Its name.
    pub name: String,
    /// The published workflow it belongs to.
    pub system: String,
    /// Its purpose.
    pub about: String,
    /// How it is written.
    pub form: MessageFormat,
    /// Its title in Markdown; `{name}` is replaced by a field.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// The lines below its title, each with the form of its fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Its fields.
    pub field: Vec<MessageField>,
    /// Its sections in Markdown, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub section: Vec<MessageSection>,
    /// A message of this form, where its reader is not data.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub example: String,
}

/// Errors as they are found, up to a limit.
#[derive(Debug, Default)]
pub(super) struct MessageErrors(pub(super) Vec<String>);

impl MessageErrors {
    pub(super) fn add(&mut self, at: &str, what: &str) {
        if self.0.len() < ERRORS_MAX {
            self.0.push(format!("{at} {what}"));
        }
    }
}

impl Message {
    /// Everything that is wrong with a message of this form; empty if it conforms.
    pub fn check(&self, value: &Value) -> Vec<String> {
        let mut faults = MessageErrors::default();
        match value {
            Value::Object(values) => check_fields(&self.field, values, "", &mut faults),
            _ => faults.add("the message", "must be an object"),
        }
        faults.0
    }
}

fn check_fields(
    fields: &[MessageField],
    values: &Map<String, Value>,
    at: &str,
    faults: &mut MessageErrors,
) {
    for field in fields {
        let at = format!("{at}{}", field.name);
        match values.get(&field.name) {
            Some(Value::Null) | None if field.optional => {}
            // An optional text may be empty instead of absent.
            Some(Value::String(text)) if field.optional && text.is_empty() => {}
            Some(Value::Null) | None => faults.add(&at, "is missing"),
            Some(value) => check_value(field, value, &at, faults),
        }
    }
    for name in values.keys() {
        if !fields.iter().any(|field| field.name == *name) {
            let name: String = name.chars().filter(|c| !c.is_control()).take(40).collect();
            faults.add(&format!("{at}{name}"), "is not a field of this message");
        }
    }
}

fn check_value(field: &MessageField, value: &Value, at: &str, faults: &mut MessageErrors) {
    match (field.kind, value) {
        (FieldKind::Line, Value::String(text)) => check_line(text, at, faults),
        (FieldKind::Text, Value::String(text)) => check_text(field, text, at, faults),
        (FieldKind::Number, Value::Number(number)) => {
            if !number.as_f64().is_some_and(|number| number.abs() <= NUMBER_MAX) {
                faults.add(at, "is too large a number");
            }
        }
        (FieldKind::Count, Value::Number(number)) => {
            let is_count = |n: f64| n.fract() == 0.0 && (0.0..=NUMBER_MAX).contains(&n);
            if !number.as_f64().is_some_and(is_count) {
                faults.add(at, "must be a whole number of at least 0");
            }
        }
        (FieldKind::Truth, Value::Bool(_)) => {}
        (FieldKind::Choice, Value::String(text)) if field.of.contains(text) => {}
        (FieldKind::Choice, _) => {
            faults.add(at, &format!("must be one of {}", field.of.join(", ")));
        }
        (FieldKind::Lines, Value::Array(items)) => {
            check_length(field, items.len(), at, faults);
            for (n, item) in items.iter().enumerate().take(LIST_MAX) {
                let at = format!("{at}[{n}]");
                match item {
                    Value::String(text) => check_line(text, &at, faults),
                    _ => faults.add(&at, "must be a line of text"),
                }
            }
        }
        (FieldKind::Rows, Value::Array(items)) => {
            check_length(field, items.len(), at, faults);
            for (n, item) in items.iter().enumerate().take(LIST_MAX) {
                let at = format!("{at}[{n}]");
                match item {
                    Value::Object(values) => {
                        check_fields(&field.field, values, &format!("{at}."), faults);
                    }
                    _ => faults.add(&at, "must be an object"),
                }
            }
        }
        (FieldKind::Record, Value::Object(values)) => {
            check_fields(&field.field, values, &format!("{at}."), faults);
        }
        (kind, _) => faults.add(at, expected_value(kind)),
    }
}

fn expected_value(kind: FieldKind) -> &'static str {
    match kind {
        FieldKind::Line => "must be a line of text",
        FieldKind::Text => "must be a text",
        FieldKind::Number | FieldKind::Count => "must be a number",
        FieldKind::Truth => "must be true or false",
        FieldKind::Choice => "must be one of its words",
        FieldKind::Lines => "must be a list of lines",
        FieldKind::Rows => "must be a list of objects",
        FieldKind::Record => "must be an object",
    }
}

fn check_line(text: &str, at: &str, faults: &mut MessageErrors) {
    if text.trim().is_empty() {
        faults.add(at, "is empty");
    } else if text.chars().count() > LINE_CHARS {
        faults.add(at, &format!("is longer than {LINE_CHARS} characters"));
    } else if text.chars().any(char::is_control) || text.trim() != text {
        faults.add(at, "must be one line, without spaces around it");
    }
}

fn check_text(field: &MessageField, text: &str, at: &str, faults: &mut MessageErrors) {
    let control = |c: char| c.is_control() && c != '\n';
    if text.trim().is_empty() {
        faults.add(at, "is empty");
    } else if text.chars().count() > TEXT_CHARS {
        faults.add(at, &format!("is longer than {TEXT_CHARS} characters"));
    } else if text.chars().any(control) {
        faults.add(at, "contains a control character");
    } else if let Some(most) = field.most
        && sentences(text) > most
    {
        faults.add(at, &format!("has more than {most} sentences"));
    }
}

/// How many sentences a text has: each ends with a period, question mark or exclamation mark
/// before a space or the end.
fn sentences(text: &str) -> usize {
    let mut n = 0;
    let mut open = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let ends = matches!(c, '.' | '!' | '?');
        let apart = chars.peek().is_none_or(|next| next.is_whitespace());
        if ends && apart {
            n += usize::from(open);
            open = false;
        } else if !c.is_whitespace() {
            open = true;
        }
    }
    n + usize::from(open)
}

fn check_length(field: &MessageField, n: usize, at: &str, faults: &mut MessageErrors) {
    let (least, most) = (field.least.unwrap_or(0), field.most.unwrap_or(LIST_MAX));
    if n < least {
        faults.add(at, &format!("needs at least {least} entries"));
    }
    if n > most.min(LIST_MAX) {
        faults.add(at, &format!("has more than {} entries", most.min(LIST_MAX)));
    }
}
