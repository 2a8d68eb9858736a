//! Checks a document against the schema of `karve.toml`: keys, types, words and ranges.
//!
//! This runs before deserialization and finds everything that could fail there, so every message
//! is ours: it names the line, the key, and what is allowed there.

use super::source::ConfigSource;
use karve_os::error::{CommandError, Result};
use karve_os::text::{shown, suggestion};
use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Rejects a document that does not match the schema; reports the first error by line.
pub(super) fn check(source: &ConfigSource<'_>, schema: &Value) -> Result<()> {
    let mut checker = ShapeChecker { source, errors: Vec::new() };
    checker.value(schema, source.root(), "");
    checker.errors.sort_by_key(|fault| fault.line);
    match checker.errors.into_iter().next() {
        Some(fault) => Err(fault.error),
        None => Ok(()),
    }
}

struct ShapeError {
    line: usize,
    error: CommandError,
}

struct ShapeChecker<'a> {
    source: &'a ConfigSource<'a>,
    errors: Vec<ShapeError>,
}

impl ShapeChecker<'_> {
    fn push_error(&mut self, line: usize, message: &str, hint: String) {
        let error = self.source.error(line, message).hint(hint);
        self.errors.push(ShapeError { line, error });
    }

    fn value(&mut self, schema: &Value, value: &Spanned<DeValue<'_>>, path: &str) {
        let line = self.source.line_of(value.span());
        let branches = branches(schema);
        let fitting: Vec<&Value> =
            branches.iter().copied().filter(|branch| fits(branch, value.get_ref())).collect();
        if fitting.is_empty() {
            let message =
                format!("`{path}` must be {}, not {}", wanted(&branches), kind_of(value.get_ref()));
            return self.push_error(line, &message, format!("write {}", example(path, &branches)));
        }
        match value.get_ref() {
            DeValue::String(text) => self.text(&fitting, text, line, path),
            DeValue::Integer(number) => {
                let number = i64::from_str_radix(number.as_str(), number.radix());
                match number {
                    // Ranges are far below the point where the conversion loses precision.
                    #[allow(clippy::cast_precision_loss)]
                    Ok(number) => self.number(&fitting, number as f64, line, path),
                    Err(_) => self.push_error(
                        line,
                        &format!("the number in `{path}` is too large"),
                        format!("write a smaller number for `{path}`"),
                    ),
                }
            }
            DeValue::Float(number) => {
                let number = number.as_str().parse().unwrap_or(f64::NAN);
                self.number(&fitting, number, line, path);
            }
            DeValue::Array(items) => {
                let schema = fitting[0];
                self.length(schema, items.len(), line, path);
                for (index, item) in items.iter().enumerate() {
                    self.value(&schema["items"], item, &format!("{path}[{index}]"));
                }
            }
            DeValue::Table(table) => self.table(&fitting, table, line, path),
            DeValue::Boolean(_) | DeValue::Datetime(_) => {}
        }
    }

    fn text(&mut self, branches: &[&Value], text: &str, line: usize, path: &str) {
        let words: Vec<&str> = branches.iter().flat_map(|branch| words(branch)).collect();
        if words.is_empty() {
            if branches[0]["minLength"].as_u64() > Some(0) && text.trim().is_empty() {
                self.push_error(
                    line,
                    &format!("`{path}` is empty"),
                    format!("set `{path}`, or leave the key out if it is optional"),
                );
            }
            if text.contains('\0') {
                let message = format!("`{path}` contains a null character");
                self.push_error(line, &message, format!("remove it from `{path}`"));
            }
            return;
        }
        if !words.contains(&text) {
            let message = format!("`{}` is not a value of `{path}`", shown(text));
            let hint = suggestion(text, words, &format!("`{path}` may be"));
            self.push_error(line, &message, hint);
        }
    }

    fn number(&mut self, branches: &[&Value], number: f64, line: usize, path: &str) {
        let schema = branches[0];
        let (min, max) = (schema["minimum"].as_f64(), schema["maximum"].as_f64());
        let inside = min.is_none_or(|min| number >= min) && max.is_none_or(|max| number <= max);
        if number.is_finite() && inside {
            return;
        }
        let range = match (min, max) {
            (Some(min), Some(max)) => format!("between {min} and {max}"),
            (Some(min), None) => format!("at least {min}"),
            (None, Some(max)) => format!("at most {max}"),
            (None, None) => "a finite number".to_owned(),
        };
        let message = format!("`{path}` must be {range}, not {number}");
        self.push_error(line, &message, format!("write {}", example(path, branches)));
    }

    fn length(&mut self, schema: &Value, length: usize, line: usize, path: &str) {
        let length = length as u64;
        if schema["minItems"].as_u64().is_some_and(|min| length < min) {
            let hint = format!("name at least one item in `{path}`");
            self.push_error(line, &format!("`{path}` is empty"), hint);
        }
        if let Some(max) = schema["maxItems"].as_u64().filter(|max| length > *max) {
            let hint = format!("shorten `{path}`");
            self.push_error(line, &format!("`{path}` has more than {max} items"), hint);
        }
    }

    fn table(&mut self, branches: &[&Value], table: &DeTable<'_>, line: usize, path: &str) {
        let schema = branch_of(branches, table);
        if let Some(max) = schema["maxProperties"].as_u64().filter(|max| table.len() as u64 > *max)
        {
            let hint = format!("remove some of [{path}.NAME]");
            return self.push_error(line, &format!("[{path}] has more than {max} tables"), hint);
        }
        let mut known: Vec<&str> = branches.iter().flat_map(|branch| keys(branch)).collect();
        known.sort_unstable();
        let mut all_known = true;
        for (key, value) in table {
            let inner = join(path, key.get_ref());
            if let Some(schema) = schema["properties"].get(key.get_ref().as_ref()) {
                self.value(schema, value, &inner);
            } else if schema["additionalProperties"].is_object() {
                self.value(&schema["additionalProperties"], value, &inner);
            } else {
                all_known = false;
                let line = self.source.line_of(key.span());
                let message = format!("unknown key `{}`{}", shown(key.get_ref()), inside(path));
                let hint = match table_of(schema, key.get_ref()) {
                    Some(table) => format!("it is a key of [{}]", join(path, table)),
                    None => suggestion(key.get_ref(), known.iter().copied(), "known keys there"),
                };
                self.push_error(line, &message, hint);
            }
        }
        // A misspelled key may be the one that is missing.
        for key in required(schema).filter(|_| all_known) {
            if !table.contains_key(key) {
                self.missing(&schema["properties"][key], key, line, path);
            }
        }
    }

    fn missing(&mut self, schema: &Value, key: &str, line: usize, path: &str) {
        let full = join(path, key);
        if schema["type"] == "object" {
            let line = if path.is_empty() { self.source.last_line() } else { line };
            let keys = required(schema).collect::<Vec<_>>().join(", ");
            let with = if keys.is_empty() { String::new() } else { format!(" with {keys}") };
            let hint = format!("add [{full}]{with} to {}, or run \"karve init\"", self.source.name);
            return self.push_error(line, &format!("the table [{full}] is missing"), hint);
        }
        let message = format!("the key `{key}` is missing{}", inside(path));
        self.push_error(line, &message, format!("add {}", example(&full, &branches(schema))));
    }
}

/// The table inside one with this schema that has a key.
fn table_of<'a>(schema: &'a Value, key: &str) -> Option<&'a str> {
    let mut inner = schema["properties"].as_object()?.iter();
    let has =
        |inner: &Value| branches(inner).iter().any(|one| one["properties"].get(key).is_some());
    inner.find(|(_, inner)| has(inner)).map(|(name, _)| name.as_str())
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { shown(key) } else { format!("{path}.{}", shown(key)) }
}

fn inside(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!(" in [{path}]") }
}

/// The alternatives of a schema; itself if it has none.
fn branches(schema: &Value) -> Vec<&Value> {
    let alternatives = ["anyOf", "oneOf"].iter().find_map(|key| schema[key].as_array());
    match alternatives {
        Some(list) => list.iter().flat_map(branches).collect(),
        None => vec![schema],
    }
}

/// The alternative that matches a table: the one that has its key, otherwise the first.
fn branch_of<'s>(branches: &[&'s Value], table: &DeTable<'_>) -> &'s Value {
    let means = |branch: &&&Value| required(branch).any(|key| table.contains_key(key));
    branches.iter().find(means).unwrap_or(&branches[0])
}

fn types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn fits(schema: &Value, value: &DeValue<'_>) -> bool {
    let types = types(schema);
    let has = |name: &str| types.contains(&name);
    match value {
        DeValue::String(_) => has("string"),
        DeValue::Integer(_) => has("integer") || has("number"),
        DeValue::Float(_) => has("number"),
        DeValue::Boolean(_) => has("boolean"),
        DeValue::Datetime(_) => false,
        DeValue::Array(_) => has("array"),
        DeValue::Table(_) => has("object"),
    }
}

/// The words a string may be; none if it is free text.
fn words(schema: &Value) -> Vec<&str> {
    match (&schema["const"], &schema["enum"]) {
        (Value::String(word), _) => vec![word],
        (_, Value::Array(words)) => words.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn keys(schema: &Value) -> impl Iterator<Item = &str> {
    schema["properties"].as_object().into_iter().flatten().map(|(key, _)| key.as_str())
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

fn wanted(branches: &[&Value]) -> String {
    let mut words = Vec::new();
    for name in branches.iter().flat_map(|branch| types(branch)) {
        let word = match name {
            "string" => "a string in quotes",
            "integer" => "a whole number",
            "number" => "a number",
            "boolean" => "true or false",
            "array" => "a list in [ ]",
            _ => "a table",
        };
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words.join(" or ")
}

/// An example of how to write a value.
fn example(path: &str, branches: &[&Value]) -> String {
    let key = path.rsplit('.').next().unwrap_or(path);
    let schema = branches[0];
    let text =
        |schema: &Value| words(schema).first().map_or("\"…\"".into(), |w| format!("{w:?}"));
    let value = match types(schema).first().copied().unwrap_or("object") {
        "string" => text(schema),
        "integer" | "number" => {
            schema["minimum"].as_f64().map_or(1.0, |min| min.max(1.0)).to_string()
        }
        "boolean" => "true".into(),
        "array" if types(&schema["items"]).first() == Some(&"object") => {
            return format!("a [[{path}]] table for each");
        }
        "array" => "[\"…\"]".to_owned(),
        _ => return format!("it as a table: [{path}]"),
    };
    let (key, value) = match key.split_once('[') {
        Some((list, _)) => (list, format!("[{value}]")),
        None => (key, value),
    };
    let inside = path.rsplit_once('.').map_or(String::new(), |(table, _)| format!(" in [{table}]"));
    format!("{key} = {value}{inside}")
}
