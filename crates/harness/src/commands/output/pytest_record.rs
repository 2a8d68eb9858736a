//! The output of `pytest --print-record`: `Cutile: {'forward': {'mean': 3.79, …}} ms`.
//!
//! The record may follow the test id on its line, or be on a later one. The case is the text in
//! the brackets of the test id, so a failed correctness test fails the benchmark of that id too.
//! Values keep their names, such as `forward.mean` in ms. `rel_std` is in percent at the source;
//! `rel_std_checked` is our own `100 · std / mean` next to it.

use std::collections::{BTreeMap, BTreeSet};

use super::fields::{FieldValue, OutputRows};
use super::json::JsonNode;
use super::{CaseCheck, OutputParseError, OutputRow, ParseSpec, fields, json};

/// How deep a record may be nested.
const MAX_DEPTH: usize = 8;

/// Reads one row per case.
pub(super) fn parse(text: &str, spec: &ParseSpec) -> Result<Vec<OutputRow>, OutputParseError> {
    let mut session = PytestLog::default();
    for (index, line) in text.lines().enumerate() {
        session
            .read_line(line, index + 1, spec)
            .map_err(|reason| OutputParseError::at(text, index + 1, reason))?;
    }
    if let Some(reason) = session.missing_label(spec) {
        return Err(OutputParseError::at_end(text, reason));
    }
    let mut rows = OutputRows::default();
    for case in session.cases {
        let line = case.line;
        rows.add(text, line, case.into_row())?;
    }
    Ok(rows.finish())
}

/// The state after the lines so far.
#[derive(Default)]
struct PytestLog {
    /// The running test, as far as the output shows.
    current: Option<String>,
    labels: BTreeSet<String>,
    cases: Vec<PartialCase>,
    by_case: BTreeMap<Option<String>, usize>,
}

struct PartialCase {
    case: Option<String>,
    line: usize,
    check: CaseCheck,
    record: Option<Vec<(String, f64)>>,
}

impl PytestLog {
    fn read_line(&mut self, line: &str, number: usize, spec: &ParseSpec) -> Result<(), String> {
        let id = find_test_id(line);
        if let Some(id) = &id {
            self.current = Some(case_of(id.text).to_owned());
        }
        let mut rest = line;
        while let Some(found) = find_record(rest, spec.label) {
            if spec.label.is_some_and(|label| !label.eq_ignore_ascii_case(found.label)) {
                self.labels.insert(found.label.to_owned());
                rest = &found.dict[1..];
                continue;
            }
            let mut literal = LiteralReader { rest: found.dict };
            let numbers = numbers_of(&literal.value(0)?)?;
            rest = literal.rest;
            if numbers.iter().any(|(name, _)| last_part(name) == "mean") {
                refuse_other_units(rest)?;
                self.add_label(found.label, spec)?;
                self.case(number).add_record(numbers)?;
            } else if spec.label.is_some() {
                return Err("the record has no mean".into());
            }
        }
        match find_status(line, id, rest) {
            Some(CaseCheck::Fail) => self.case(number).check = CaseCheck::Fail,
            Some(CaseCheck::Pass) => self.mark_passed(),
            Some(CaseCheck::NotStated) | None => {}
        }
        Ok(())
    }

    /// Remembers the label of this record; if no label is configured, all must have the same one.
    fn add_label(&mut self, label: &str, spec: &ParseSpec) -> Result<(), String> {
        self.labels.insert(label.to_owned());
        if spec.label.is_some() || self.labels.len() < 2 {
            return Ok(());
        }
        let all: Vec<&str> = self.labels.iter().map(String::as_str).collect();
        Err(format!("there are records of {}; name one as the label", all.join(" and ")))
    }

    /// The case of the running test, created if it is new.
    fn case(&mut self, line: usize) -> &mut PartialCase {
        let index = *self.by_case.entry(self.current.clone()).or_insert(self.cases.len());
        if index == self.cases.len() {
            let (case, check) = (self.current.clone(), CaseCheck::NotStated);
            self.cases.push(PartialCase { case, line, check, record: None });
        }
        &mut self.cases[index]
    }

    /// A test that passes without a record is not a case of the benchmark.
    fn mark_passed(&mut self) {
        let case = self.by_case.get(&self.current).and_then(|index| self.cases.get_mut(*index));
        if let Some(case) = case
            && case.check == CaseCheck::NotStated
        {
            case.check = CaseCheck::Pass;
        }
    }

    fn missing_label(&self, spec: &ParseSpec) -> Option<String> {
        let label = spec.label?;
        let has_some = self.labels.iter().any(|seen| seen.eq_ignore_ascii_case(label));
        if has_some || self.cases.iter().any(|case| case.check == CaseCheck::Fail) {
            return None;
        }
        let seen: Vec<&str> = self.labels.iter().map(String::as_str).collect();
        let others = if seen.is_empty() { "none".into() } else { seen.join(", ") };
        Some(format!("there is no record of \"{label}\"; there is {others}"))
    }
}

impl PartialCase {
    fn add_record(&mut self, numbers: Vec<(String, f64)>) -> Result<(), String> {
        match self.record.replace(numbers) {
            None => Ok(()),
            Some(_) => Err(format!(
                "there is already a record of {}, first seen on line {}",
                self.case.as_deref().unwrap_or("a test without an id"),
                self.line
            )),
        }
    }

    fn into_row(self) -> Result<OutputRow, String> {
        let (case, check, line) = (self.case, self.check, self.line);
        let mut row = OutputRow::new(case, check, line);
        for (name, number) in self.record.unwrap_or_default() {
            let is_time = matches!(last_part(&name), "mean" | "median" | "min" | "max" | "std");
            if is_time && number < 0.0 && check != CaseCheck::Fail {
                return Err(format!("\"{name}\" is {number}; a time must not be negative"));
            }
            fields::add_value(&mut row, &name, number)?;
        }
        add_checked_spreads(&mut row);
        Ok(row)
    }
}

fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn numbers_of(dict: &JsonNode) -> Result<Vec<(String, f64)>, String> {
    let number = |(name, cell)| match cell {
        FieldValue::Number(number) => Some((name, number)),
        FieldValue::Flag(_) | FieldValue::Text(_) => None,
    };
    Ok(json::flatten(dict)?.into_iter().filter_map(number).collect())
}

/// Adds our own relative spread in percent next to each mean, whatever the record states.
fn add_checked_spreads(row: &mut OutputRow) {
    let checked = row.values.iter().filter_map(|(name, mean)| {
        let group = name.strip_suffix("mean")?;
        let std = row.values.get(&format!("{group}std"))?;
        let percent = 100.0 * std / mean;
        percent.is_finite().then(|| (format!("{group}rel_std_checked"), percent))
    });
    let checked: Vec<_> = checked.collect();
    row.values.extend(checked);
}

/// A label and the dictionary after it.
struct LabeledDict<'a> {
    label: &'a str,
    /// From the opening brace on.
    dict: &'a str,
}

/// The next `Label: {` in the text; unless that label is wanted, a string must follow the brace.
fn find_record<'a>(text: &'a str, wanted: Option<&str>) -> Option<LabeledDict<'a>> {
    let is_label_char = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    text.match_indices(": {").find_map(|(at, _)| {
        let head = &text[..at];
        let label = &head[head.trim_end_matches(is_label_char).len()..];
        let dict = &text[at + 2..];
        let is_wanted = wanted.is_some_and(|wanted| wanted.eq_ignore_ascii_case(label));
        let has_key = dict[1..].trim_start().starts_with(['\'', '"']);
        let is_name = label.starts_with(|c: char| c.is_ascii_alphabetic());
        (is_name && (is_wanted || has_key)).then_some(LabeledDict { label, dict })
    })
}

fn refuse_other_units(behind: &str) -> Result<(), String> {
    let unit = behind.split_whitespace().next().unwrap_or_default();
    match unit {
        "s" | "us" | "µs" | "μs" | "ns" => {
            Err(format!("the record is in {unit}; only records in ms can be read"))
        }
        _ => Ok(()),
    }
}

/// A pytest node id in a line.
struct TestId<'a> {
    before: &'a str,
    text: &'a str,
    after: &'a str,
}

fn find_test_id(line: &str) -> Option<TestId<'_>> {
    const MARK: &str = ".py::";
    let mark = line.find(MARK)?;
    let start = line[..mark].trim_end_matches(|c: char| !c.is_whitespace()).len();
    let mut depth = 0_usize;
    let ends = |c: char| match c {
        '[' => {
            depth += 1;
            false
        }
        ']' => {
            depth = depth.saturating_sub(1);
            depth == 0
        }
        _ => depth == 0 && c.is_whitespace(),
    };
    let name = &line[mark + MARK.len()..];
    let length =
        name.find(ends).map_or(name.len(), |at| at + usize::from(name[at..].starts_with(']')));
    let end = mark + MARK.len() + length;
    Some(TestId { before: &line[..start], text: &line[start..end], after: &line[end..] })
}

/// The text in the brackets, or else the name of the test function.
fn case_of(id: &str) -> &str {
    match id.split_once('[') {
        Some((_, inside)) => inside.strip_suffix(']').unwrap_or(inside),
        None => id.rsplit("::").next().unwrap_or(id),
    }
}

/// The word next to the test id, alone on its line, or after a record.
fn find_status(line: &str, id: Option<TestId<'_>>, behind_record: &str) -> Option<CaseCheck> {
    if let Some(id) = &id {
        let next_to = [id.before.split_whitespace().last(), id.after.split_whitespace().next()];
        if let Some(status) = next_to.into_iter().flatten().find_map(status_word) {
            return Some(status);
        }
    }
    if behind_record.len() < line.len() {
        return behind_record.split_whitespace().find_map(status_word);
    }
    let mut words = line.split_whitespace();
    let status = words.next().and_then(status_word)?;
    let is_alone = words.next().is_none_or(|word| word.starts_with('['));
    (id.is_none() && is_alone).then_some(status)
}

fn status_word(word: &str) -> Option<CaseCheck> {
    match word {
        "PASSED" => Some(CaseCheck::Pass),
        "FAILED" | "ERROR" => Some(CaseCheck::Fail),
        _ => None,
    }
}

/// A reader of Python literals: dictionaries, lists, strings, numbers, True, False, None.
struct LiteralReader<'a> {
    rest: &'a str,
}

impl LiteralReader<'_> {
    fn value(&mut self, depth: usize) -> Result<JsonNode, String> {
        if depth > MAX_DEPTH {
            return Err(format!("the record is nested deeper than {MAX_DEPTH} levels"));
        }
        self.rest = self.rest.trim_start();
        match self.rest.chars().next() {
            None => Err("the record has no closing brace; the output may be truncated".into()),
            Some('{') => self.dict(depth),
            Some('[') => self.list(']', depth),
            Some('(') => self.list(')', depth),
            Some(quote @ ('\'' | '"')) => self.string(quote).map(JsonNode::Text),
            Some(_) => self.atom(depth),
        }
    }

    fn dict(&mut self, depth: usize) -> Result<JsonNode, String> {
        self.rest = &self.rest[1..];
        let mut entries = Vec::new();
        let mut keys = BTreeSet::new();
        while !self.take('}') {
            let key = match self.value(depth + 1)? {
                JsonNode::Text(key) => key,
                JsonNode::Number(key) => key.to_string(),
                JsonNode::Null | JsonNode::Flag(_) | JsonNode::List(_) | JsonNode::Object(_) => {
                    return Err("a key of the record is not a string".into());
                }
            };
            if !self.take(':') {
                return Err(format!("there is no colon after '{key}' in the record"));
            }
            if !keys.insert(key.clone()) {
                return Err(format!("'{key}' appears twice in the record"));
            }
            entries.push((key, self.value(depth + 1)?));
            self.separator('}')?;
        }
        Ok(JsonNode::Object(entries))
    }

    fn list(&mut self, close: char, depth: usize) -> Result<JsonNode, String> {
        self.rest = &self.rest[1..];
        let mut elements = Vec::new();
        while !self.take(close) {
            elements.push(self.value(depth + 1)?);
            self.separator(close)?;
        }
        Ok(JsonNode::List(elements))
    }

    /// Consumes a comma, or stops at the closing bracket.
    fn separator(&mut self, close: char) -> Result<(), String> {
        if self.take(',') || self.rest.starts_with(close) {
            return Ok(());
        }
        match self.rest.chars().next() {
            None => Err("the record has no closing brace; the output may be truncated".into()),
            Some(other) => Err(format!("there is a '{other}' in the record, not a comma")),
        }
    }

    fn take(&mut self, wanted: char) -> bool {
        self.rest = self.rest.trim_start();
        let after = self.rest.strip_prefix(wanted);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn string(&mut self, quote: char) -> Result<String, String> {
        let mut text = String::new();
        let mut chars = self.rest[1..].char_indices();
        while let Some((at, c)) = chars.next() {
            if c == quote {
                self.rest = &self.rest[at + 2..];
                return Ok(text);
            }
            let unescaped =
                if c == '\\' { chars.next().map(|(_, escaped)| escaped) } else { Some(c) };
            text.extend(unescaped);
        }
        Err("a string in the record does not end; the output may be truncated".into())
    }

    /// A number or a word; a number wrapped as in `np.float64(3.79)` counts as that number.
    fn atom(&mut self, depth: usize) -> Result<JsonNode, String> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "+-._".contains(c);
        let after = self.rest.trim_start_matches(is_part);
        let word = &self.rest[..self.rest.len() - after.len()];
        self.rest = after;
        if !word.is_empty() && self.take('(') {
            let inner = self.value(depth + 1)?;
            let is_closed = self.take(')');
            if is_closed && matches!(inner, JsonNode::Number(_)) {
                return Ok(inner);
            }
            return Err(format!("{word}(…) in the record is not one number"));
        }
        match word {
            "None" => Ok(JsonNode::Null),
            "True" => Ok(JsonNode::Flag(true)),
            "False" => Ok(JsonNode::Flag(false)),
            _ => word
                .parse()
                .map(JsonNode::Number)
                .map_err(|_| format!("\"{word}\" in the record is not a number")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{render, spec};
    use super::super::{OutputFormat, parse};
    use super::*;

    fn check(label: Option<&str>, text: &str, want: &str) {
        let spec = ParseSpec { label, ..spec(OutputFormat::PytestRecord) };
        assert_eq!(render(&parse(text, &spec)), want, "{text}");
    }

    #[test]
    fn the_relative_spread_of_the_golden_record_is_0_0447_percent() {
        let text = "Cutile: {'forward': {'mean': 3.790314, 'std': 0.001694, 'rel_std': 0.0447, \
                    'median': 3.79, 'min': 3.788, 'max': 3.793, 'nrep': 13, \
                    'peak_mem_mb': 512.0}} ms\n";
        let rows = parse(text, &spec(OutputFormat::PytestRecord)).unwrap();
        let values = &rows[0].values;
        assert_eq!(format!("{:.4}", values["forward.rel_std_checked"]), "0.0447");
        for (name, want) in [
            ("mean", 3.790314),
            ("std", 0.001694),
            ("rel_std", 0.0447),
            ("median", 3.79),
            ("min", 3.788),
            ("max", 3.793),
            ("nrep", 13.0),
            ("peak_mem_mb", 512.0),
        ] {
            assert_eq!(values[&format!("forward.{name}")], want);
        }
        assert_eq!(values.len(), 9);
    }

    #[test]
    fn a_spread_that_does_not_fit_is_kept_beside_our_own() {
        check(
            None,
            "Cutile: {'f': {'mean': 2.0, 'std': 0.5, 'rel_std': 7}} ms",
            "1 - NotStated [] f.mean=2; f.rel_std=7; f.rel_std_checked=25; f.std=0.5",
        );
    }

    #[test]
    fn the_test_id_is_on_the_line_or_on_an_earlier_one() {
        check(
            None,
            "collected 3 items\n\
             tests/x.py::test_perf[m 1-[2]] Cutile: {'f': {'mean': 1}} ms PASSED [ 33%]\n\
             tests/x.py::TestY::test_perf[b] \nCutile: {'f': {'mean': 2}} ms\nPASSED [ 66%]\n\
             tests/x.py::test_plain\n.Cutile: {'f': {'mean': 3}} ms\n",
            "2 m 1-[2] Pass [] f.mean=1\n4 b Pass [] f.mean=2\n7 test_plain NotStated [] f.mean=3",
        );
    }

    #[test]
    fn a_failed_test_fails_its_case_wherever_it_is_said() {
        let record = "tests/x.py::test_perf[a] Cutile: {'f': {'mean': 1}} ms";
        let want = "1 a Fail [] f.mean=1";
        check(None, &format!("{record} FAILED"), want);
        check(None, &format!("{record}\nFAILED [ 50%]"), want);
        check(None, &format!("{record} PASSED\ntests/x.py::test_op[a] FAILED [100%]"), want);
        check(None, &format!("{record}\n[gw0] [ 50%] FAILED tests/x.py::test_perf[a]"), want);
        check(None, &format!("{record} PASSED\nERROR tests/x.py::test_perf[a] - boom"), want);
        check(
            None,
            &format!("{record} PASSED\nERROR root:x.py:5 a log line"),
            "1 a Pass [] f.mean=1",
        );
        check(None, "tests/x.py::test_perf[a] FAILED", "1 a Fail [] ");
    }

    #[test]
    fn a_test_that_passes_without_a_record_is_no_case() {
        check(
            None,
            "tests/x.py::test_op[z] PASSED\ntests/x.py::test_perf[a] Cutile: {'f': {'mean': 1}} ms",
            "2 a NotStated [] f.mean=1",
        );
    }

    #[test]
    fn the_label_chooses_among_backends() {
        let text = "tests/x.py::test_perf[a] Torch: {'f': {'mean': 9}} ms\n\
                    Cutile: {'f': {'mean': 1}} ms\nPASSED";
        check(Some("Cutile"), text, "2 a Pass [] f.mean=1");
        check(Some("torch"), text, "1 a Pass [] f.mean=9");
        check(None, text, "line 2: there are records of Cutile and Torch; name one as the label");
        check(
            Some("Triton"),
            text,
            "line 3: there is no record of \"Triton\"; there is Cutile, Torch",
        );
        let one_line = "Torch: {'f': {'mean': 9}} ms Cutile: {'f': {'mean': 1}} ms";
        check(Some("Cutile"), one_line, "1 - NotStated [] f.mean=1");
    }

    #[test]
    fn other_dictionaries_in_the_log_are_no_records() {
        check(
            None,
            "config: {'tile': 64}\nnote: {text}\nCutile: {'f': {'mean': 1}} ms",
            "3 - NotStated [] f.mean=1",
        );
        check(Some("Cutile"), "Cutile: {'f': {'min': 1}} ms", "line 1: the record has no mean");
    }

    #[test]
    fn python_values_of_all_kinds_are_read() {
        check(
            None,
            "C: {\"f\": {'mean': np.float64(1.5), 'std': None, 'ok': True, 'l': [1, (2,)], \
             't': 'it\\'s', 7: -1e-3,},} ms",
            "1 - NotStated [] f.7=-0.001; f.mean=1.5",
        );
    }

    #[test]
    fn a_record_that_is_cut_or_malformed_is_refused() {
        let cut = "line 1: the record has no closing brace; the output may be truncated";
        check(None, "Cutile: {'f': {'mean': 3.79", cut);
        check(None, "Cutile: {'f': {'mean': 3.79}", cut);
        check(None, "Cutile: {'f': {'mean':", cut);
        check(
            None,
            "Cutile: {'f': {'me",
            "line 1: a string in the record does not end; the output may be truncated",
        );
        check(None, "Cutile: {'f' 3}", "line 1: there is no colon after 'f' in the record");
        check(None, "Cutile: {'f': 3 4}", "line 1: there is a '4' in the record, not a comma");
        check(None, "Cutile: {'f': 3ms}", "line 1: \"3ms\" in the record is not a number");
        check(None, "Cutile: {'f': 3, 'f': 4}", "line 1: 'f' appears twice in the record");
        check(None, "Cutile: {'f': g([])}", "line 1: g(…) in the record is not one number");
        check(
            None,
            &format!("Cutile: {{'f': {}", "[".repeat(99)),
            "line 1: the record is nested deeper than 8 levels",
        );
    }

    #[test]
    fn numbers_that_make_no_sense_are_refused() {
        check(
            None,
            "Cutile: {'f': {'mean': nan}} ms",
            "line 1: \"f.mean\" is NaN, which only a row that says FAIL may have",
        );
        check(
            None,
            "Cutile: {'f': {'mean': -1}} ms",
            "line 1: \"f.mean\" is -1; a time must not be negative",
        );
        check(
            None,
            "Cutile: {'f': {'mean': 1}} us",
            "line 1: the record is in us; only records in ms can be read",
        );
        let twice = "Cutile: {'f': {'mean': 1}} ms\n".repeat(2);
        check(
            None,
            &twice,
            "line 2: there is already a record of a test without an id, first seen on line 1",
        );
    }
}
