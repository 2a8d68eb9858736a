//! Messages as Markdown: a title, and sections in order.

use super::form::{FieldKind, Message, MessageErrors, MessageField, MessageFormat, MessageSection};
use karve_core::markdown;
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

/// A line with one spelling for dashes and arrows, and without spaces around it.
fn spelled(line: &str) -> String {
    let line = line.replace("-->", "->").replace('→', "->").replace(" – ", " — ");
    line.replace(" -- ", " — ").trim().to_owned()
}

/// The fields of a line that matches a pattern such as `{name} — {rationale}`.
fn fields_in(pattern: &str, fields: &[MessageField], line: &str) -> Option<Map<String, Value>> {
    let (pattern, line) = (spelled(pattern), spelled(line));
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

/// The text behind a heading, if it is the heading of a section: `Files: k.py` has one.
fn opened<'a>(section: &MessageSection, heading: &'a str) -> Option<&'a str> {
    let rest = heading.strip_prefix(section.heading.as_str())?;
    match rest.strip_prefix(':') {
        Some(behind) => Some(behind.trim()),
        None => rest.is_empty().then_some(""),
    }
}

/// The items of a list: numbered, with dashes, or plain lines. An indented line joins its item.
fn items(lines: &[&str]) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for line in lines {
        let text = line.trim();
        let text = markdown::numbered_item(text).map_or(text, |(_, text)| text);
        let text = text.strip_prefix("- ").or_else(|| text.strip_prefix("* ")).unwrap_or(text);
        match items.last_mut() {
            Some(item) if line.starts_with([' ', '\t']) => {
                item.push_str(" / ");
                item.push_str(text.trim());
            }
            _ => items.push(text.trim().to_owned()),
        }
    }
    items
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
    let mut before = before.iter().map(|(_, line)| *line).filter(|line| !line.trim().is_empty());
    let Some(title) = before.next().and_then(|line| line.strip_prefix("## ")) else {
        return Err(vec!["the message must begin with \"## \"".to_owned()]);
    };
    let mut values = fields_in(&message.title, &message.field, title).unwrap_or_else(|| {
        let title = shown(&message.title);
        faults.add("the title", &format!("must have the form \"## {title}\""));
        Map::new()
    });
    let lines: Vec<&str> = before.collect();
    values.extend(read_labels(&message.labels, &message.field, &lines, &mut faults));
    let mut due = message.section.iter();
    for part in &parts {
        let found = due.find_map(|section| Some((section, opened(section, part.heading)?)));
        let Some((section, behind)) = found else {
            let heading: String = part.heading.chars().take(80).collect();
            let at = format!("the section {heading:?}");
            faults.add(&at, "is unknown, repeated or out of order");
            due = message.section.iter();
            continue;
        };
        let mut lines: Vec<&str> = part.filled().into_iter().map(|(_, line)| line).collect();
        if !behind.is_empty() {
            lines.insert(0, behind);
        }
        values.extend(read_labels(&section.labels, &message.field, &lines, &mut faults));
        if let Some(field) = message.field.iter().find(|field| field.name == section.body) {
            values.insert(field.name.clone(), read_body(field, section, &lines, &mut faults));
        }
    }
    let value = Value::Object(values);
    faults.0.extend(message.check(&value));
    match faults.0.is_empty() {
        true => Ok(value),
        false => Err(faults.0),
    }
}

/// The fields of lines that each have their own form; none are read where there are no forms.
fn read_labels(
    labels: &[String],
    fields: &[MessageField],
    lines: &[&str],
    faults: &mut MessageErrors,
) -> Map<String, Value> {
    let mut values = Map::new();
    let items = items(lines);
    for (n, label) in labels.iter().enumerate() {
        match items.get(n).and_then(|line| fields_in(label, fields, line)) {
            Some(of) => values.extend(of),
            None => faults.add("a line", &format!("must have the form \"{}\"", shown(label))),
        }
    }
    values
}

fn read_body(
    field: &MessageField,
    section: &MessageSection,
    lines: &[&str],
    faults: &mut MessageErrors,
) -> Value {
    match field.kind {
        FieldKind::Rows if !section.columns.is_empty() => read_table(field, section, lines, faults),
        FieldKind::Rows | FieldKind::Lines if matches!(lines, ["none" | "None"]) => {
            Value::Array(Vec::new())
        }
        FieldKind::Rows => {
            let mut rows = Vec::new();
            for (n, item) in items(lines).iter().enumerate() {
                match fields_in(&section.row, &field.field, item) {
                    Some(values) => rows.push(Value::Object(values)),
                    None => {
                        let form = format!("must have the form \"{}\"", shown(&section.row));
                        faults.add(&format!("{}[{n}]", field.name), &form);
                    }
                }
            }
            Value::Array(rows)
        }
        FieldKind::Lines => items(lines).into_iter().map(Value::String).collect(),
        FieldKind::Text => lines.join("\n").into(),
        kind => match lines {
            [line] => value_in(kind, line.trim()),
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
