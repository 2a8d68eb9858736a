//! The file of nvbench's `--json`.
//!
//! Each state of a benchmark, one combination of its axes, is one row; its axes are parameters, and
//! `copy/N=1048576,T=I32` is also called `N=1048576,T=I32`. Every summary is a value under its tag,
//! a duration also under its tag with `_s`; the usual ones have shorter names too. A skipped state
//! fails its case.

use std::collections::BTreeSet;

use super::fields::OutputRows;
use super::json::JsonNode;
use super::names::TimeUnit;
use super::{CaseCheck, OutputParseError, OutputRow, ParseSpec, check_label, fields, json};

/// Short names of the times that are shown by default; the first tag that exists is used.
const SHORT: [(&str, &str); 4] = [
    ("nv/cold/time/gpu/mean", "gpu_time"),
    ("nv/cold/time/cpu/mean", "cpu_time"),
    ("nv/cpu_only/time/cpu/mean", "cpu_time"),
    ("nv/batch/time/gpu/mean", "batch_gpu_time"),
];

/// Reads one row per state.
pub(super) fn parse(text: &str, spec: &ParseSpec) -> Result<Vec<OutputRow>, OutputParseError> {
    let (benchmarks, lines) = json::parse_list(text, "benchmarks", "the file of nvbench's --json")?;
    let names: BTreeSet<&str> = benchmarks.iter().filter_map(|b| b.text("name")).collect();
    check_label(&names, spec.label, "benchmark")
        .map_err(|reason| OutputParseError::at(text, 1, reason))?;
    let mut rows = OutputRows::default();
    for (index, benchmark) in benchmarks.iter().enumerate() {
        let line = lines.get(index).copied().unwrap_or(1);
        let refuse = |reason: String| OutputParseError::at(text, line, reason);
        let Some(name) = benchmark.text("name") else {
            return Err(refuse(format!("benchmarks[{index}]: \"name\" is missing")));
        };
        if spec.label.is_some_and(|label| label != name) {
            continue;
        }
        for (at, state) in benchmark.items("states").iter().enumerate() {
            row_of(benchmark, name, state, line)
                .and_then(|row| rows.push(row))
                .map_err(|reason| refuse(format!("benchmarks[{index}].states[{at}]: {reason}")))?;
        }
    }
    Ok(rows.finish())
}

fn row_of(
    benchmark: &JsonNode,
    name: &str,
    state: &JsonNode,
    line: usize,
) -> Result<OutputRow, String> {
    let check = match state.get("is_skipped") {
        Some(JsonNode::Flag(true)) => CaseCheck::Fail,
        Some(JsonNode::Flag(false)) => CaseCheck::NotStated,
        Some(_) | None => return Err("\"is_skipped\" is missing".into()),
    };
    let mut row = OutputRow::new(None, check, line);
    let mut parts = Vec::new();
    for axis in state.items("axis_values") {
        let value = axis.get("value").and_then(JsonNode::scalar);
        let (Some(name), Some(value)) = (axis.text("name"), value) else {
            return Err("an axis has no name or no value".into());
        };
        parts.push(format!("{name}={value}"));
        row.params.insert(name.to_owned(), value);
    }
    if let Some(device) = state.get("device").and_then(JsonNode::scalar) {
        if benchmark.items("devices").len() > 1 {
            parts.push(format!("Device={device}"));
        }
        row.params.insert("Device".to_owned(), device);
    }
    name_row(&mut row, name, &parts.join(","));
    if check == CaseCheck::Fail {
        return Ok(row);
    }
    for (index, summary) in state.items("summaries").iter().enumerate() {
        add_summary(&mut row, summary).map_err(|why| format!("summaries[{index}]: {why}"))?;
    }
    refuse_timeless(&row)?;
    Ok(row)
}

/// Names a row by benchmark and axes, and by the axes alone.
pub(super) fn name_row(row: &mut OutputRow, benchmark: &str, axes: &str) {
    if axes.is_empty() {
        row.case = Some(benchmark.to_owned());
    } else {
        row.case = Some(format!("{benchmark}/{axes}"));
        row.aliases = vec![axes.to_owned(), benchmark.to_owned()];
    }
}

/// A state that ran has a time.
pub(super) fn refuse_timeless(row: &OutputRow) -> Result<(), String> {
    let has_time = SHORT.iter().any(|(_, short)| row.values.contains_key(&format!("{short}_s")));
    if has_time {
        return Ok(());
    }
    Err("it has no mean time, although it was not skipped".into())
}

fn add_summary(row: &mut OutputRow, summary: &JsonNode) -> Result<(), String> {
    let Some(tag) = summary.text("tag") else {
        return Err("\"tag\" is missing".into());
    };
    let is_value = |entry: &&JsonNode| entry.text("name") == Some("value");
    let Some(entry) = summary.items("data").iter().find(is_value) else {
        return Ok(());
    };
    if entry.text("type") == Some("string") {
        return Ok(());
    }
    let written = entry.get("value").and_then(JsonNode::scalar);
    let written = written.ok_or_else(|| format!("\"{tag}\" has no value"))?;
    let number: f64 = written
        .parse()
        .map_err(|_| format!("\"{tag}\" is \"{written}\", which is not a number"))?;
    let hint = summary.text("hint").unwrap_or_default();
    if hint == "percentage" && !number.is_finite() {
        // The noise of a single sample.
        return Ok(());
    }
    let short = SHORT.iter().find(|(known, _)| *known == tag);
    match (hint, short) {
        (_, Some((_, short))) => {
            fields::add_time(row, tag, (number, TimeUnit::Seconds))?;
            fields::add_time(row, short, (number, TimeUnit::Seconds))?;
        }
        ("duration", None) => fields::add_span(row, tag, (number, TimeUnit::Seconds))?,
        (_, None) => {}
    }
    fields::add_value(row, tag, number)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{render, spec};
    use super::super::{OutputFormat, parse};
    use super::*;

    const SAMPLE: &str = include_str!("../../../../../testdata/formats/nvbench.json");

    fn read(text: &str, label: Option<&str>) -> Result<Vec<OutputRow>, OutputParseError> {
        let spec = ParseSpec { label, ..spec(OutputFormat::Nvbench) };
        parse(text, &spec)
    }

    #[test]
    fn a_state_is_a_row_with_its_axes_as_parameters() {
        let rows = read(SAMPLE, None).unwrap();
        let names: Vec<_> = rows.iter().filter_map(|row| row.case.as_deref()).collect();
        assert_eq!(names, ["copy/N=1048576,T=I32", "copy/N=16777216,T=I32", "fill"]);
        assert_eq!(rows[0].aliases[0], "N=1048576,T=I32");
        assert_eq!(rows[0].params["N"], "1048576");
        let values = &rows[0].values;
        assert_eq!(values["gpu_time_s"], 7.821e-06);
        assert_eq!(values["nv/cold/time/gpu/mean_s"], 7.821e-06);
        assert_eq!(values["nv/cold/time/gpu/mean"], 7.821e-06);
        assert_eq!(values["batch_gpu_time_s"], 5.5e-06);
        assert_eq!(values["cpu_time_s"], 1.3e-05);
        assert_eq!(values["nv/cold/bw/global/bytes_per_second"], 1.0725e12);
        assert!(!values.contains_key("nv/cold/time/cpu/stdev/relative"));
    }

    #[test]
    fn a_skipped_state_fails_its_case() {
        let rows = read(SAMPLE, None).unwrap();
        assert_eq!(rows[1].check, CaseCheck::Fail);
        assert_eq!(rows[2].check, CaseCheck::NotStated);
    }

    #[test]
    fn the_label_names_the_benchmark() {
        assert_eq!(read(SAMPLE, Some("fill")).unwrap().len(), 1);
        let got = render(&read(SAMPLE, Some("x")));
        assert_eq!(got, "line 1: there is no benchmark \"x\"; there are copy, fill");
    }

    #[test]
    fn what_is_missing_or_no_time_is_refused_with_its_place() {
        let check = |from: &str, to: &str, want: &str| {
            let text = SAMPLE.replacen(from, to, 1);
            assert_ne!(text, SAMPLE);
            let got = render(&read(&text, None));
            assert!(got.contains(want), "{got}");
        };
        let zero = "benchmarks[0].states[0]: summaries[3]: \"nv/cold/time/gpu/mean\" is 0";
        check("\"7.821e-06\"", "\"0\"", zero);
        check("\"7.821e-06\"", "\"-1\"", "is -1; a time must be above 0");
        check("\"7.821e-06\"", "\"nan\"", "is NaN; a time must be above 0");
        check("\"7.821e-06\"", "\"fast\"", "is \"fast\", which is not a number");
        check("\"is_skipped\": false", "\"x\": 1", "\"is_skipped\" is missing");
        check("\"2.5e-06\"", "null", "\"nv/cold/time/gpu/mean\" has no value");
        let cut = &SAMPLE[..SAMPLE.len() / 2];
        assert!(render(&read(cut, None)).contains("ends before it is complete"));
        let bare = SAMPLE.replace("time/gpu/mean", "x").replace("time/cpu/mean", "y");
        assert!(render(&read(&bare, None)).contains("it has no mean time"));
    }
}
