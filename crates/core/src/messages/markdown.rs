//! Messages as Markdown: a title, and sections in order. A message that could not be read back
//! unchanged is not written.

use super::{
    Datum, FieldKind, Message, MessageErrors, MessageField, MessageFormat, MessageSection,
};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Maximum number of lines read from a message.
const LINES_MAX: usize = 2_000;
/// The text of a cell without a value.
const NONE: &str = "-";

/// The names in braces, in their order.
pub(super) fn names_in(pattern: &str) -> Vec<String> {
    let parts = pattern.split('{').skip(1);
    let names = parts.filter_map(|part| part.split_once('}').map(|(name, _)| name.to_owned()));
    names.collect()
}

/// A pattern with its fields filled in.
fn fill(pattern: &str, values: &BTreeMap<String, Datum>) -> String {
    let mut text = pattern.to_owned();
    for name in names_in(pattern) {
        let value = values.get(&name).map_or_else(String::new, inline);
        text = text.replacen(&format!("{{{name}}}"), &value, 1);
    }
    text
}

/// A value on one line.
fn inline(value: &Datum) -> String {
    match value {
        Datum::Text(text) => text.clone(),
        Datum::Number(number) => format!("{number}"),
        Datum::Truth(true) => "yes".to_owned(),
        Datum::Truth(false) => "no".to_owned(),
        Datum::Null | Datum::List(_) | Datum::Fields(_) => String::new(),
    }
}

/// A value from its line.
fn from_inline(kind: FieldKind, text: &str) -> Datum {
    let number = || text.parse().map_or_else(|_| Datum::text(text), Datum::Number);
    match (kind, text) {
        (FieldKind::Number | FieldKind::Count, _) => number(),
        (FieldKind::Truth, "yes") => Datum::Truth(true),
        (FieldKind::Truth, "no") => Datum::Truth(false),
        _ => Datum::text(text),
    }
}

/// The fields of a line that matches a pattern.
fn unfill(pattern: &str, fields: &[MessageField], line: &str) -> Option<BTreeMap<String, Datum>> {
    let mut values = BTreeMap::new();
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
            values.insert(name.to_owned(), from_inline(field.kind, value));
        }
        rest = after;
    }
    rest.is_empty().then_some(values)
}

fn row_of(cells: &[String]) -> String {
    format!("| {} |", cells.join(" | "))
}

/// The text of a message, or everything that is wrong with it.
pub fn render_markdown(message: &Message, datum: &Datum) -> Result<String, Vec<String>> {
    let faults = message.check(datum);
    if !faults.is_empty() {
        return Err(faults);
    }
    let Datum::Fields(values) = datum else {
        return Err(vec!["the message must be an object".to_owned()]);
    };
    let mut text = format!("## {}\n", fill(&message.title, values));
    for section in &message.section {
        let Some(body) = values.get(&section.body).filter(|of| **of != Datum::Null) else {
            continue;
        };
        let _ = write!(text, "\n### {}\n", fill(&section.heading, values));
        push_body(&mut text, message, section, body);
    }
    // A value may look like the separator before the next one.
    match parse_markdown(message, &text) {
        Ok(again) if again == without_nulls(datum) => Ok(text),
        Ok(_) => Err(vec![
            "a value contains the separator before the next one, so it could not be read back"
                .to_owned(),
        ]),
        Err(faults) => Err(faults),
    }
}

fn without_nulls(datum: &Datum) -> Datum {
    match datum {
        Datum::Fields(fields) => Datum::Fields(
            fields
                .iter()
                .filter(|(_, value)| **value != Datum::Null)
                .map(|(name, value)| (name.clone(), without_nulls(value)))
                .collect(),
        ),
        Datum::List(items) => Datum::List(items.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}

fn push_body(text: &mut String, message: &Message, section: &MessageSection, body: &Datum) {
    match body {
        Datum::List(items) if !section.columns.is_empty() => {
            let field = message.field.iter().find(|field| field.name == section.body);
            let columns = &section.columns;
            let _ = writeln!(text, "{}", row_of(columns));
            let _ = writeln!(text, "{}", row_of(&vec!["---".to_owned(); columns.len()]));
            for item in items {
                let inner = field.map_or(&[][..], |field| &field.field);
                let cell =
                    |of: &MessageField| item.get(&of.name).map_or_else(|| NONE.to_owned(), inline);
                let cells: Vec<String> = inner.iter().map(cell).collect();
                let _ = writeln!(text, "{}", row_of(&cells));
            }
        }
        Datum::List(items) if items.is_empty() => text.push_str("none\n"),
        Datum::List(items) => {
            for (n, item) in items.iter().enumerate() {
                let _ = match item {
                    Datum::Fields(values) => {
                        writeln!(text, "{}. {}", n + 1, fill(&section.row, values))
                    }
                    other => writeln!(text, "- {}", inline(other)),
                };
            }
        }
        other => {
            let _ = writeln!(text, "{}", inline(other));
        }
    }
}

/// Parses a message, or names everything that is wrong with it.
pub fn parse_markdown(message: &Message, text: &str) -> Result<Datum, Vec<String>> {
    let mut faults = MessageErrors::default();
    if message.form != MessageFormat::Markdown {
        return Err(vec![format!("{} is not written as Markdown", message.name)]);
    }
    let mut lines = text.lines().skip_while(|line| line.trim().is_empty());
    let mut values = match lines.next().and_then(|line| line.strip_prefix("## ")) {
        Some(title) => match unfill(&message.title, &message.field, title) {
            Some(values) => values,
            None => {
                let title = message.title.replace(['{', '}'], "`");
                faults.add("the title", &format!("must have the form \"## {title}\""));
                BTreeMap::new()
            }
        },
        None => return Err(vec!["the message must begin with \"## \"".to_owned()]),
    };
    let mut parts: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in lines.take(LINES_MAX) {
        match (line.strip_prefix("### "), parts.last_mut()) {
            (Some(heading), _) => parts.push((heading, Vec::new())),
            (None, Some((_, body))) => body.push(line),
            (None, None) if line.trim().is_empty() => {}
            (None, None) => faults.add("a line", "comes before the first section"),
        }
    }
    let mut due = message.section.iter();
    for (heading, body) in &parts {
        let opened = |section: &&MessageSection| unfill(&section.heading, &message.field, heading);
        let found = due.find_map(|section| Some((section, opened(&section)?)));
        match found {
            Some((section, in_heading)) => {
                values.extend(in_heading);
                let field = message.field.iter().find(|field| field.name == section.body);
                if let Some(field) = field {
                    let body = read_body(field, section, body, &mut faults);
                    values.insert(section.body.clone(), body);
                }
            }
            None => {
                let heading: String = heading.chars().take(80).collect();
                let at = format!("the section {heading:?}");
                faults.add(&at, "is unknown, repeated or out of order");
                due = message.section.iter();
            }
        }
    }
    let datum = Datum::Fields(values);
    faults.0.extend(message.check(&datum));
    match faults.0.is_empty() {
        true => Ok(datum),
        false => Err(faults.0),
    }
}

fn read_body(
    field: &MessageField,
    section: &MessageSection,
    body: &[&str],
    faults: &mut MessageErrors,
) -> Datum {
    let kept = body.iter().copied();
    let filled: Vec<&str> = kept.clone().filter(|line| !line.trim().is_empty()).collect();
    match field.kind {
        FieldKind::Rows if !section.columns.is_empty() => {
            read_table(field, section, &filled, faults)
        }
        FieldKind::Rows | FieldKind::Lines if filled == ["none"] => Datum::List(Vec::new()),
        FieldKind::Rows => {
            let mut rows = Vec::new();
            for (n, line) in filled.iter().enumerate() {
                let row = line.strip_prefix(&format!("{}. ", n + 1));
                match row.and_then(|row| unfill(&section.row, &field.field, row)) {
                    Some(values) => rows.push(Datum::Fields(values)),
                    None => {
                        let form = section.row.replace(['{', '}'], "`");
                        let at = format!("{}[{n}]", field.name);
                        faults.add(&at, &format!("must have the form \"{}. {form}\"", n + 1));
                    }
                }
            }
            Datum::List(rows)
        }
        FieldKind::Lines => {
            let mut items = Vec::new();
            for (n, line) in filled.iter().enumerate() {
                match line.strip_prefix("- ") {
                    Some(item) => items.push(Datum::text(item)),
                    None => faults.add(&format!("{}[{n}]", field.name), "must begin with \"- \""),
                }
            }
            Datum::List(items)
        }
        FieldKind::Text => {
            let text = kept.collect::<Vec<_>>().join("\n");
            Datum::text(text.trim_matches('\n'))
        }
        kind => match filled.as_slice() {
            [line] => from_inline(kind, line),
            _ => {
                faults.add(&field.name, "must be one line");
                Datum::Null
            }
        },
    }
}

fn read_table(
    field: &MessageField,
    section: &MessageSection,
    lines: &[&str],
    faults: &mut MessageErrors,
) -> Datum {
    let cells = |line: &str| -> Option<Vec<String>> {
        let inner = line.trim().strip_prefix("| ")?.strip_suffix(" |")?;
        Some(inner.split(" | ").map(|cell| cell.trim().to_owned()).collect())
    };
    let head = lines.first().and_then(|line| cells(line));
    if head.as_ref() != Some(&section.columns) {
        let columns = section.columns.join(" | ");
        faults.add(&field.name, &format!("must be a table with the columns {columns}"));
        return Datum::Null;
    }
    let is_rule = |cell: &String| !cell.is_empty() && cell.chars().all(|c| "-:".contains(c));
    let rule = lines.get(1).and_then(|line| cells(line));
    if !rule.is_some_and(|cells| cells.iter().all(is_rule)) {
        faults.add(&field.name, "has no separator line below its columns");
    }
    let mut rows = Vec::new();
    for (n, line) in lines.iter().enumerate().skip(2) {
        let at = format!("{}[{}]", field.name, n - 2);
        let Some(cells) = cells(line).filter(|cells| cells.len() == field.field.len()) else {
            faults.add(&at, &format!("must have {} cells", field.field.len()));
            continue;
        };
        let values = field.field.iter().zip(cells);
        let values = values.filter(|(of, cell)| !(cell == NONE && of.optional));
        let values = values.map(|(of, cell)| (of.name.clone(), from_inline(of.kind, &cell)));
        rows.push(Datum::Fields(values.collect()));
    }
    Datum::List(rows)
}
