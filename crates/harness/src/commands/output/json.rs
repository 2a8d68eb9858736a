//! JSON: one document with the rows, or one object per line.
//!
//! Read into our own tree, which refuses a duplicate key, since of two times for one kernel
//! neither can be trusted.

use std::fmt;

use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};

use super::fields::{FieldValue, OutputRows, RowLayout};
use super::{OutputParseError, OutputRow, ParseSpec};

/// How deep objects may be nested in a row; a row of numbers needs no more.
const MAX_DEPTH: usize = 4;

/// Keys of a document that may hold the rows; the first one with an array is used.
const CONTAINERS: [&str; 3] = ["results", "cases", "benchmarks"];

/// A value of JSON, or of a Python literal.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum JsonNode {
    Null,
    Flag(bool),
    Number(f64),
    Text(String),
    List(Vec<JsonNode>),
    /// Keys in the order of the text, each once.
    Object(Vec<(String, JsonNode)>),
}

impl JsonNode {
    /// The value of a key of an object.
    pub(super) fn get(&self, key: &str) -> Option<&JsonNode> {
        self.entries().iter().find(|(k, _)| k == key).map(|(_, node)| node)
    }

    /// The text of a key of an object.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        let Self::Text(text) = self.get(key)? else {
            return None;
        };
        Some(text)
    }

    /// The number of a key of an object, which must exist.
    pub(super) fn number(&self, key: &str) -> Result<f64, String> {
        match self.get(key) {
            Some(Self::Number(number)) => Ok(*number),
            Some(other) => Err(format!("\"{key}\" is {}, not a number", other.kind())),
            None => Err(format!("\"{key}\" is missing")),
        }
    }

    /// Whether the value of a key of an object is true.
    pub(super) fn is_set(&self, key: &str) -> bool {
        self.get(key) == Some(&Self::Flag(true))
    }

    /// The entries of an object; empty for anything else.
    pub(super) fn entries(&self) -> &[(String, JsonNode)] {
        let Self::Object(entries) = self else {
            return &[];
        };
        entries
    }

    /// The items of the list under a key; empty for anything else.
    pub(super) fn items(&self, key: &str) -> &[JsonNode] {
        self.get(key).and_then(list_of).unwrap_or_default()
    }

    /// A text, number or flag as a parameter is written.
    pub(super) fn scalar(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Number(number) => Some(number.to_string()),
            Self::Flag(flag) => Some(flag.to_string()),
            Self::Null | Self::List(_) | Self::Object(_) => None,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Flag(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "an array",
            Self::Object(_) => "an object",
        }
    }
}

/// Reads the rows of one document.
pub(super) fn parse_document(
    text: &str,
    spec: &ParseSpec,
) -> Result<Vec<OutputRow>, OutputParseError> {
    let document = parse_node(text)?;
    let container = CONTAINERS
        .into_iter()
        .find_map(|key| Some((key, list_of(document.get(key)?)?)))
        .map(|(key, list)| (Some(key), list));
    let (key, list) = match (&document, container) {
        (JsonNode::List(list), _) => (None, list.as_slice()),
        (JsonNode::Object(_), Some(container)) => container,
        (JsonNode::Object(_), None) => {
            let (mut rows, line) = (OutputRows::default(), first_line(text));
            rows.add(text, line, parse_row(&document, spec, line))?;
            return Ok(rows.finish());
        }
        (JsonNode::Null | JsonNode::Flag(_) | JsonNode::Number(_) | JsonNode::Text(_), _) => {
            let reason = format!("the document is {}, not rows of objects", document.kind());
            return Err(OutputParseError::at(text, first_line(text), reason));
        }
    };
    let lines = element_lines(text, key);
    let mut rows = OutputRows::default();
    for (index, node) in list.iter().enumerate() {
        let line = lines.get(index).copied().unwrap_or(1);
        parse_row(node, spec, line)
            .and_then(|row| rows.push(row))
            .map_err(|reason| format!("row {}: {reason}", index + 1))
            .map_err(|reason| OutputParseError::at(text, line, reason))?;
    }
    Ok(rows.finish())
}

/// Reads one object per line; lines that do not start with a brace are log lines.
pub(super) fn parse_lines(
    text: &str,
    spec: &ParseSpec,
) -> Result<Vec<OutputRow>, OutputParseError> {
    let mut rows = OutputRows::default();
    for (index, object) in text.lines().enumerate() {
        if !object.trim_start().starts_with('{') {
            continue;
        }
        let line = index + 1;
        let node = parse_node(object).map_err(|inner| OutputParseError { line, ..inner })?;
        rows.add(text, line, parse_row(&node, spec, line))?;
    }
    Ok(rows.finish())
}

fn list_of(node: &JsonNode) -> Option<&[JsonNode]> {
    let JsonNode::List(list) = node else {
        return None;
    };
    Some(list)
}

fn first_line(text: &str) -> usize {
    text.lines().position(|line| !line.trim().is_empty()).map_or(1, |index| index + 1)
}

fn parse_row(node: &JsonNode, spec: &ParseSpec, line: usize) -> Result<OutputRow, String> {
    let (names, cells) = flatten(node)?.into_iter().unzip();
    let cells: Vec<FieldValue> = cells;
    RowLayout::of(names, spec)?.row(&cells, line)
}

/// The numbers, flags and strings of an object, nested names joined with dots; lists are left out.
pub(super) fn flatten(node: &JsonNode) -> Result<Vec<(String, FieldValue)>, String> {
    let JsonNode::Object(entries) = node else {
        return Err(format!("this is {}, not an object", node.kind()));
    };
    let mut fields = Vec::new();
    flatten_into(&mut fields, "", entries, 1)?;
    Ok(fields)
}

fn flatten_into(
    fields: &mut Vec<(String, FieldValue)>,
    prefix: &str,
    entries: &[(String, JsonNode)],
    depth: usize,
) -> Result<(), String> {
    for (key, node) in entries {
        let name = format!("{prefix}{key}");
        let cell = match node {
            JsonNode::Null => FieldValue::Text(String::new()),
            JsonNode::Flag(flag) => FieldValue::Flag(*flag),
            JsonNode::Number(number) => FieldValue::Number(*number),
            JsonNode::Text(text) => FieldValue::Text(text.clone()),
            JsonNode::List(_) => continue,
            JsonNode::Object(_) if depth >= MAX_DEPTH => {
                return Err(format!("\"{name}\" is nested deeper than {MAX_DEPTH} levels"));
            }
            JsonNode::Object(inner) => {
                flatten_into(fields, &format!("{name}."), inner, depth + 1)?;
                continue;
            }
        };
        fields.push((name, cell));
    }
    Ok(())
}

/// Parses a whole text as one JSON value.
pub(super) fn parse_node(text: &str) -> Result<JsonNode, OutputParseError> {
    serde_json::from_str(text).map_err(|error| refusal_of(text, &error))
}

/// Parses one JSON value after the other, each with the line on which it starts.
pub(super) fn parse_nodes(text: &str) -> Result<Vec<(usize, JsonNode)>, OutputParseError> {
    let mut nodes = Vec::new();
    let (mut line, mut from) = (1, 0);
    let mut values = serde_json::Deserializer::from_str(text).into_iter();
    while let Some(value) = values.next() {
        let node = value.map_err(|error| refusal_of(text, &error))?;
        let (end, rest) = (values.byte_offset(), text.get(from..).unwrap_or_default());
        let blank = rest.len() - rest.trim_start().len();
        line += text[from..from + blank].matches('\n').count();
        nodes.push((line, node));
        line += text[from + blank..end].matches('\n').count();
        from = end;
    }
    Ok(nodes)
}

/// The list under a key of a document, with the lines on which its objects start.
pub(super) fn parse_list(
    text: &str,
    key: &str,
    give: &str,
) -> Result<(Vec<JsonNode>, Vec<usize>), OutputParseError> {
    let document = parse_node(text)?;
    let lines = element_lines(text, Some(key));
    if let JsonNode::Object(entries) = document
        && let Some((_, JsonNode::List(list))) = entries.into_iter().find(|(name, _)| name == key)
    {
        return Ok((list, lines));
    }
    let reason = format!("there is no \"{key}\" array; use {give}");
    Err(OutputParseError::at(text, first_line(text), reason))
}

fn refusal_of(text: &str, error: &serde_json::Error) -> OutputParseError {
    if error.is_eof() {
        let reason = "the JSON ends before it is complete; the output was truncated, or the \
        program died while printing";
        return OutputParseError::at_end(text, reason);
    }
    let message = error.to_string();
    let what = message.split(" at line ").next().unwrap_or_default();
    let line = error.line().max(1);
    let mut refusal = OutputParseError::near(text, line, error.column(), "");
    let is_nan = ["NaN", "Infinity"].iter().any(|word| refusal.excerpt.contains(word));
    let hint = if is_nan { "; NaN and Infinity are not JSON, write null" } else { "" };
    refusal.reason = format!("this is not usable JSON: {what}{hint}");
    refusal
}

/// The lines on which the objects of the array of rows start, in a text known to be JSON.
///
/// The array is the document, or is under `key` in it. serde does not report a value's position.
pub(super) fn element_lines(text: &str, key: Option<&str>) -> Vec<usize> {
    let row_depth = 1 + usize::from(key.is_some());
    let (mut lines, mut line, mut depth) = (Vec::new(), 1, 0_usize);
    let mut is_in_rows = key.is_none();
    let mut last_string = "";
    let mut bytes = text.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'\n' => line += 1,
            b'"' => {
                let mut end = at + 1;
                while let Some((inner_at, inner)) = bytes.next()
                    && inner != b'"'
                {
                    end = inner_at + 1;
                    if inner == b'\\' {
                        bytes.next();
                    }
                }
                last_string = text.get(at + 1..end).unwrap_or_default();
            }
            b'[' | b'{' => {
                if is_in_rows && depth == row_depth && byte == b'{' {
                    lines.push(line);
                } else if depth == 1 && key.is_some() {
                    is_in_rows = byte == b'[' && key == Some(last_string);
                }
                depth += 1;
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    lines
}

impl<'de> Deserialize<'de> for JsonNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonNodeVisitor)
    }
}

struct JsonNodeVisitor;

impl<'de> Visitor<'de> for JsonNodeVisitor {
    type Value = JsonNode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<JsonNode, E> {
        Ok(JsonNode::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<JsonNode, E> {
        Ok(JsonNode::Flag(flag))
    }

    // Counters above 2^53 lose their last digits; no measurement has that many.
    fn visit_i64<E>(self, number: i64) -> Result<JsonNode, E> {
        Ok(JsonNode::Number(number as f64))
    }

    fn visit_u64<E>(self, number: u64) -> Result<JsonNode, E> {
        Ok(JsonNode::Number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<JsonNode, E> {
        Ok(JsonNode::Number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<JsonNode, E> {
        Ok(JsonNode::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<JsonNode, A::Error> {
        let mut list = Vec::new();
        while let Some(node) = elements.next_element()? {
            list.push(node);
        }
        Ok(JsonNode::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonNode, A::Error> {
        let mut entries = Vec::new();
        let mut keys = std::collections::BTreeSet::new();
        while let Some((key, node)) = map.next_entry::<String, JsonNode>()? {
            if !keys.insert(key.clone()) {
                return Err(de::Error::custom(format_args!("the key \"{key}\" appears twice")));
            }
            entries.push((key, node));
        }
        Ok(JsonNode::Object(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{render, spec};
    use super::super::{OutputFormat, parse};
    use super::*;

    fn check(format: OutputFormat, text: &str, want: &str) {
        assert_eq!(render(&parse(text, &spec(format))), want, "{text}");
    }

    #[test]
    fn rows_lie_in_an_array_or_under_a_known_key_or_alone() {
        let want = "1 a Pass [M=256] Forward Time (ms)=1.5";
        let row = r#"{"case": "a", "M": 256, "correct": true, "fwd_ms": 1.5}"#;
        check(OutputFormat::Json, &format!("[{row}]"), want);
        check(OutputFormat::Json, row, want);
        for key in CONTAINERS {
            check(OutputFormat::Json, &format!("{{\"device\": \"x\", \"{key}\": [{row}]}}"), want);
        }
    }

    #[test]
    fn the_row_knows_its_line() {
        let text = "{\n \"cases\": {\"x\": 1},\n \"cfg\": [{\"a\": 1}],\n \"results\": [\n  \
                    {\"case\": \"a]{\\\"\",\n   \"in\": {\"ms\": 1}},\n  {\"case\": \"b\"}]}";
        check(OutputFormat::Json, text, "5 a]{\" NotStated [] in.ms=1\n7 b NotStated [] ");
        check(OutputFormat::Json, "\n[\n1]", "line 1: row 1: this is a number, not an object");
        check(OutputFormat::Json, "\n\n{\"ms\": 1}", "3 - NotStated [] ms=1");
    }

    #[test]
    fn nested_numbers_are_named_with_dots_and_other_values_are_left_out() {
        check(
            OutputFormat::Json,
            r#"{"a": {"b": {"c": {"d": 1}}}, "li": [1], "te": "x", "nu": null, "M": true}"#,
            "1 M=true NotStated [M=true] a.b.c.d=1",
        );
        check(
            OutputFormat::Json,
            r#"{"a": {"b": {"c": {"d": {"e": 1}}}}}"#,
            "line 1: \"a.b.c.d\" is nested deeper than 4 levels",
        );
        check(
            OutputFormat::Json,
            r#"{"x.y": 1, "x": {"y": 2}}"#,
            "line 1: the column \"x.y\" appears twice",
        );
    }

    #[test]
    fn a_cut_document_is_refused() {
        let cut = "the JSON ends before it is complete; the output was truncated, or the program \
        died while printing";
        check(OutputFormat::Json, "[{\"a1\": 1},\n{\"a1\": ", &format!("line 2: {cut}"));
        check(OutputFormat::JsonLines, "{\"a1\": 1}\nlog\n{\"a1\": 2", &format!("line 3: {cut}"));
    }

    #[test]
    fn text_that_is_not_json_is_refused_with_a_hint() {
        let not_json = "line 1: this is not usable JSON: ";
        check(OutputFormat::Json, "[{\"x1\": NaN}]", &{
            format!("{not_json}expected value; NaN and Infinity are not JSON, write null")
        });
        check(OutputFormat::Json, "[] done", &format!("{not_json}trailing characters"));
        check(OutputFormat::Json, r#"{"ms": 1, "ms": 2}"#, &{
            format!("{not_json}the key \"ms\" appears twice")
        });
        check(OutputFormat::Json, "7", "line 1: the document is a number, not rows of objects");
    }

    #[test]
    fn one_object_a_line_is_read_between_log_lines() {
        check(
            OutputFormat::JsonLines,
            "start\n\n{\"case\": \"a\", \"ms\": 1}\r\n[info] x\n  {\"case\": \"b\", \"ms\": 2}",
            "3 a NotStated [] ms=1\n5 b NotStated [] ms=2",
        );
        check(
            OutputFormat::JsonLines,
            "{\"case\": \"a\"}\n{\"case\": \"a\"}",
            "line 2: the case \"a\" is already on line 1; each case may appear once",
        );
        check(
            OutputFormat::JsonLines,
            "{\"case\": \"a\"} {}",
            "line 1: this is not usable JSON: trailing characters",
        );
    }

    #[test]
    fn configured_names_may_have_dots_and_must_be_there() {
        let spec = ParseSpec {
            case_column: Some("shape.id"),
            check_column: Some("ok.out"),
            ..spec(OutputFormat::Json)
        };
        let text = r#"[{"shape": {"id": 7}, "ok": {"out": false}, "ms": null}]"#;
        assert_eq!(render(&parse(text, &spec)), "1 7 Fail [] ");
        let text = r#"[{"shape": {"id": 7}, "ms": 1}]"#;
        let want = "line 1: row 1: there is no column \"ok.out\", the check column";
        assert_eq!(render(&parse(text, &spec)), want);
    }

    #[test]
    fn a_deep_document_is_refused_without_overflow() {
        let deep = "[".repeat(100_000);
        assert!(parse(&deep, &spec(OutputFormat::Json)).is_err());
    }
}
