//! The file of `pytest --benchmark-json`.
//!
//! A benchmark is one row, named by its full test id; the name of the test and the text in its
//! brackets are shorter names for it. Times are in seconds, under the names of the file and again
//! with `_s`.

use std::collections::BTreeSet;

use super::fields::OutputRows;
use super::json::JsonNode;
use super::names::TimeUnit;
use super::{CaseCheck, OutputParseError, OutputRow, ParseSpec, check_label, fields, json};

/// Times that every benchmark has and that are above 0.
const TIMES: [&str; 4] = ["min", "max", "mean", "median"];

/// Spans of time that may be 0.
const SPANS: [&str; 7] = ["stddev", "iqr", "q1", "q3", "ld15iqr", "hd15iqr", "total"];

/// Reads one row per benchmark.
pub(super) fn parse(text: &str, spec: &ParseSpec) -> Result<Vec<OutputRow>, OutputParseError> {
    let give = "the file of pytest --benchmark-json";
    let (list, lines) = json::parse_list(text, "benchmarks", give)?;
    let functions: BTreeSet<&str> = list.iter().filter_map(function).collect();
    check_label(&functions, spec.label, "test")
        .map_err(|reason| OutputParseError::at(text, 1, reason))?;
    let mut rows = OutputRows::default();
    for (index, node) in list.iter().enumerate() {
        if spec.label.is_some() && function(node) != spec.label {
            continue;
        }
        let line = lines.get(index).copied().unwrap_or(1);
        let row = row_of(node, line).and_then(|row| rows.push(row));
        row.map_err(|reason| format!("benchmarks[{index}]: {reason}"))
            .map_err(|reason| OutputParseError::at(text, line, reason))?;
    }
    Ok(rows.finish())
}

/// The name of a test without its parameters.
fn function(node: &JsonNode) -> Option<&str> {
    node.text("name")?.split('[').next()
}

fn row_of(node: &JsonNode, line: usize) -> Result<OutputRow, String> {
    let Some(name) = node.text("name") else {
        return Err("\"name\" is missing".into());
    };
    let full = node.text("fullname").unwrap_or(name);
    let mut row = OutputRow::new(Some(full.to_owned()), CaseCheck::NotStated, line);
    row.aliases.push(name.to_owned());
    row.aliases.extend(node.text("param").map(str::to_owned));
    for (name, value) in node.get("params").map(JsonNode::entries).unwrap_or_default() {
        row.params.extend(value.scalar().map(|value| (name.clone(), value)));
    }
    let Some(stats) = node.get("stats") else {
        return Err("\"stats\" is missing".into());
    };
    for name in TIMES {
        let time = stats.number(name).map_err(|why| format!("stats: {why}"))?;
        fields::add_time(&mut row, name, time, TimeUnit::Seconds)
            .map_err(|why| format!("stats: {why}"))?;
    }
    for (name, value) in stats.entries() {
        let JsonNode::Number(number) = value else {
            continue;
        };
        if SPANS.contains(&name.as_str()) {
            fields::add_span(&mut row, name, *number, TimeUnit::Seconds)?;
        }
        fields::add_value(&mut row, name, *number)?;
    }
    let extra = node.get("extra_info").map(JsonNode::entries);
    for (name, value) in extra.unwrap_or_default() {
        if let JsonNode::Number(number) = value {
            fields::add_value(&mut row, &format!("extra_info.{name}"), *number)?;
        }
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{render, spec};
    use super::super::{OutputFormat, parse};
    use super::*;

    const SAMPLE: &str = include_str!("../../../../../testdata/formats/pytest-benchmark.json");

    fn read(text: &str, label: Option<&str>) -> Result<Vec<OutputRow>, OutputParseError> {
        let spec = ParseSpec { label, ..spec(OutputFormat::PytestBenchmark) };
        parse(text, &spec)
    }

    #[test]
    fn a_benchmark_is_a_row_with_times_in_seconds() {
        let rows = read(SAMPLE, None).unwrap();
        assert_eq!(rows.len(), 5);
        assert_eq!(rows[1].case.as_deref(), Some("test_b.py::test_dot[4096]"));
        assert_eq!(rows[1].aliases, ["test_dot[4096]", "4096"]);
        assert_eq!(rows[1].params["n"], "4096");
        assert_eq!(rows[1].values["median_s"], 7.34269997337833e-05);
        assert_eq!(rows[1].values["median"], 7.34269997337833e-05);
        assert_eq!(rows[1].values["rounds"], 647.0);
        assert_eq!(rows[2].params["dtype"], "f32");
        assert_eq!(rows[2].values["extra_info.flops"], 100.0);
        assert!(rows[4].params.is_empty());
    }

    #[test]
    fn the_label_names_the_test() {
        assert_eq!(read(SAMPLE, Some("test_two")).unwrap().len(), 2);
        let got = render(&read(SAMPLE, Some("test_x")));
        assert!(got.contains("there are test_dot, test_one, test_two"), "{got}");
    }

    #[test]
    fn numbers_that_no_kernel_has_are_refused_with_their_place() {
        let check = |from: &str, to: &str, want: &str| {
            let text = SAMPLE.replacen(from, to, 1);
            assert_ne!(text, SAMPLE);
            let got = render(&read(&text, None));
            assert!(got.contains(want), "{got}");
        };
        let median = "\"median\": 7.149249995563879e-07";
        let zero = "benchmarks[0]: stats: \"median\" is 0; a time must be above 0";
        check(median, "\"median\": 0", zero);
        check(median, "\"median\": NaN", "NaN and Infinity are not JSON");
        let gone = "benchmarks[0]: stats: \"median\" is missing";
        check(median, "\"other\": 1", gone);
        check(median, "\"median\": null", "\"median\" is null, not a number");
        check("test_b.py::test_dot[4096]", "test_b.py::test_dot[64]", "may appear once");
        let cut = &SAMPLE[..SAMPLE.len() / 2];
        assert!(render(&read(cut, None)).contains("ends before it is complete"));
    }
}
