//! Messages as Markdown: a title, and sections in order.

use super::form::{FieldKind, Message, MessageErrors, MessageField, MessageFormat, MessageSection};
use karve_core::markdown::{self, MarkdownSection};
use serde_json::{Map, Number, Value};

/// The text of a cell without a value.
const NONE: &str = "-";

/// A value from its line.
fn value_in(kind: FieldKind, text: &str) -> Value {
    let float = || Number::from_f64(text.parse().ok()?);
    let number = || text.parse::<u64>().ok().map(Number::from).or_else(float);
    match (kind, text) {
        (FieldKind::Number | FieldKind::Count, _) => number().map_or(text.into(), Value::Number),
        (FieldKind::Truth, "yes") => Value::Bool(true),
        (FieldKind::Truth, "no") => Value::Bool(false),
        _ => text.into(),
    }
}

/// The fields of a line that matches a pattern such as `{name} — {rationale}`.
fn fields_in(pattern: &str, fields: &[MessageField], line: &str) -> Option<Map<String, Value>> {
    let mut values = Map::new();
    let mut parts = pattern.split('{');
    let mut rest = line.strip_prefix(parts.next()?)?;
    for part in parts {
        let (name, literal) = part.split_once('}')?;
        let (value, after) = match literal {
            "" => (rest, ""),
            literal => rest.split_once(literal)?,
        };
        let field = fields.iter().find(|field| field.name == name)?;
        if !(value.is_empty() && field.optional) {
            values.insert(name.to_owned(), value_in(field.kind, value));
        }
        rest = after;
    }
    rest.is_empty().then_some(values)
}

/// A pattern as an error shows it.
fn shown(pattern: &str) -> String {
    pattern.replace(['{', '}'], "`")
}

/// Parses a message, or names everything that is wrong with it.
pub(super) fn parse_markdown(message: &Message, text: &str) -> Result<Value, Vec<String>> {
    let mut faults = MessageErrors::default();
    if message.form != MessageFormat::Markdown {
        return Err(vec![format!("{} is not written as Markdown", message.name)]);
    }
    let (before, parts) = markdown::sections(text, |line| line.strip_prefix("### "));
    let mut before = before.iter().filter(|(_, line)| !line.trim().is_empty());
    let Some(title) = before.next().and_then(|(_, line)| line.strip_prefix("## ")) else {
        return Err(vec!["the message must begin with \"## \"".to_owned()]);
    };
    let mut values = fields_in(&message.title, &message.field, title).unwrap_or_else(|| {
        let title = shown(&message.title);
        faults.add("the title", &format!("must have the form \"## {title}\""));
        Map::new()
    });
    for _ in before {
        faults.add("a line", "comes before the first section");
    }
    let mut due = message.section.iter();
    for part in &parts {
        let opened =
            |section: &&MessageSection| fields_in(&section.heading, &message.field, part.heading);
        let Some((section, in_heading)) =
            due.find_map(|section| Some((section, opened(&section)?)))
        else {
            let heading: String = part.heading.chars().take(80).collect();
            let at = format!("the section {heading:?}");
            faults.add(&at, "is unknown, repeated or out of order");
            due = message.section.iter();
            continue;
        };
        values.extend(in_heading);
        if let Some(field) = message.field.iter().find(|field| field.name == section.body) {
            values.insert(field.name.clone(), read_body(field, section, part, &mut faults));
        }
    }
    let value = Value::Object(values);
    faults.0.extend(message.check(&value));
    match faults.0.is_empty() {
        true => Ok(value),
        false => Err(faults.0),
    }
}

fn read_body(
    field: &MessageField,
    section: &MessageSection,
    part: &MarkdownSection<'_>,
    faults: &mut MessageErrors,
) -> Value {
    let filled: Vec<&str> = part.filled().into_iter().map(|(_, line)| line).collect();
    match field.kind {
        FieldKind::Rows if !section.columns.is_empty() => {
            read_table(field, section, &filled, faults)
        }
        FieldKind::Rows | FieldKind::Lines if filled == ["none"] => Value::Array(Vec::new()),
        FieldKind::Rows => {
            let mut rows = Vec::new();
            for (n, line) in filled.iter().enumerate() {
                let row = line.strip_prefix(&format!("{}. ", n + 1));
                match row.and_then(|row| fields_in(&section.row, &field.field, row)) {
                    Some(values) => rows.push(Value::Object(values)),
                    None => {
                        let form =
                            format!("must have the form \"{}. {}\"", n + 1, shown(&section.row));
                        faults.add(&format!("{}[{n}]", field.name), &form);
                    }
                }
            }
            Value::Array(rows)
        }
        FieldKind::Lines => {
            let mut items: Vec<Value> = Vec::new();
            for (n, line) in filled.iter().enumerate() {
                match line.strip_prefix("- ") {
                    Some(item) => items.push(item.into()),
                    None => faults.add(&format!("{}[{n}]", field.name), "must begin with \"- \""),
                }
            }
            Value::Array(items)
        }
        FieldKind::Text => part.text().trim_matches('\n').into(),
        kind => match filled.as_slice() {
            [line] => value_in(kind, line),
            _ => {
                faults.add(&field.name, "must be one line");
                Value::Null
            }
        },
    }
}

fn read_table(
    field: &MessageField,
    section: &MessageSection,
    lines: &[&str],
    faults: &mut MessageErrors,
) -> Value {
    let cells = |line: &&str| markdown::cells(line).filter(|_| markdown::is_closed(line));
    if lines.first().and_then(cells).as_ref() != Some(&section.columns) {
        let columns = section.columns.join(" | ");
        faults.add(&field.name, &format!("must be a table with the columns {columns}"));
        return Value::Null;
    }
    if !lines.get(1).and_then(cells).is_some_and(|cells| markdown::is_rule(&cells)) {
        faults.add(&field.name, "has no separator line below its columns");
    }
    let mut rows = Vec::new();
    for (n, line) in lines.iter().skip(2).enumerate() {
        let Some(cells) = cells(line).filter(|cells| cells.len() == field.field.len()) else {
            let wanted = format!("must have {} cells", field.field.len());
            faults.add(&format!("{}[{n}]", field.name), &wanted);
            continue;
        };
        let values = field.field.iter().zip(cells);
        let values = values.filter(|(of, cell)| !(cell == NONE && of.optional));
        let values = values.map(|(of, cell)| (of.name.clone(), value_in(of.kind, &cell)));
        rows.push(Value::Object(values.collect()));
    }
    Value::Array(rows)
}
