//! The estimates that criterion writes, of one benchmark or of several.
//!
//! One file is one benchmark and does not name it. If there are several, the `benchmark.json`
//! that criterion writes next to each comes before it and names it. Times are in nanoseconds;
//! `typical` is what criterion prints: the slope, or the mean if there is none.

use std::collections::BTreeSet;

use super::fields::OutputRows;
use super::json::JsonNode;
use super::names::TimeUnit;
use super::{CaseCheck, OutputParseError, OutputRow, ParseSpec, check_label, fields, json};

/// Estimates of the time of one call.
const TIMES: [&str; 3] = ["mean", "median", "slope"];

/// Estimates of a spread, which may be 0.
const SPREADS: [&str; 2] = ["std_dev", "median_abs_dev"];

/// The contents of a `benchmark.json`.
struct CriterionBenchmark {
    line: usize,
    full_id: String,
    group: String,
    aliases: Vec<String>,
    params: Vec<(String, String)>,
}

/// Reads one row for each set of estimates.
pub(super) fn parse(text: &str, spec: &ParseSpec) -> Result<Vec<OutputRow>, OutputParseError> {
    let mut pending: Option<CriterionBenchmark> = None;
    let mut groups = BTreeSet::new();
    let mut rows = OutputRows::default();
    for (line, node) in json::parse_nodes(text)? {
        if let Some(named) = CriterionBenchmark::of(&node, line) {
            groups.insert(named.group.clone());
            if let Some(before) = pending.replace(named) {
                return Err(before.without_estimates(text));
            }
            continue;
        }
        let named = pending.take();
        let is_meant = match (spec.label, &named) {
            (Some(label), Some(named)) => named.group == label,
            (Some(_) | None, _) => true,
        };
        if is_meant {
            rows.add(text, line, row_of(&node, named, line))?;
        }
    }
    if let Some(named) = pending {
        return Err(named.without_estimates(text));
    }
    let groups: BTreeSet<&str> = groups.iter().map(String::as_str).collect();
    let label = spec.label.filter(|_| !groups.is_empty());
    check_label(&groups, label, "group").map_err(|reason| OutputParseError::at(text, 1, reason))?;
    Ok(rows.finish())
}

impl CriterionBenchmark {
    fn of(node: &JsonNode, line: usize) -> Option<Self> {
        let full_id = node.text("full_id")?.to_owned();
        let keys = [("group", "group_id"), ("function", "function_id"), ("value", "value_str")];
        let params = keys.iter().filter_map(|(name, key)| {
            let value = node.text(key)?.to_owned();
            Some(((*name).to_owned(), value))
        });
        let aliases = [node.text("directory_name"), node.text("value_str")];
        Some(Self {
            line,
            full_id,
            group: node.text("group_id").unwrap_or_default().to_owned(),
            aliases: aliases.into_iter().flatten().map(str::to_owned).collect(),
            params: params.collect(),
        })
    }

    fn without_estimates(&self, text: &str) -> OutputParseError {
        let reason = format!("the estimates of \"{}\" are missing after it", self.full_id);
        OutputParseError::at(text, self.line, reason)
    }
}

fn row_of(
    node: &JsonNode,
    named: Option<CriterionBenchmark>,
    line: usize,
) -> Result<OutputRow, String> {
    let mut row = OutputRow::new(None, CaseCheck::NotStated, line);
    if let Some(named) = named {
        row.case = Some(named.full_id);
        row.aliases = named.aliases;
        row.params = named.params.into_iter().collect();
    }
    if node.get("mean").is_none() || node.get("median").is_none() {
        return Err("this is neither criterion's estimates.json nor its benchmark.json".into());
    }
    for name in TIMES {
        if let Some(time) = point(node, name)? {
            fields::add_time(&mut row, name, time, TimeUnit::Nanoseconds)?;
            add_bounds(&mut row, node, name)?;
        }
    }
    for name in SPREADS {
        if let Some(spread) = point(node, name)? {
            fields::add_span(&mut row, name, spread, TimeUnit::Nanoseconds)?;
        }
    }
    let typical = match point(node, "slope")? {
        Some(slope) => Some(slope),
        None => point(node, "mean")?,
    };
    if let Some(typical) = typical {
        fields::add_time(&mut row, "typical", typical, TimeUnit::Nanoseconds)?;
    }
    Ok(row)
}

/// The point estimate with that name; a slope may be null or missing.
fn point(node: &JsonNode, name: &str) -> Result<Option<f64>, String> {
    let estimate = match node.get(name) {
        None | Some(JsonNode::Null) if name != "mean" && name != "median" => return Ok(None),
        None => return Err(format!("\"{name}\" is missing")),
        Some(estimate) => estimate,
    };
    estimate.number("point_estimate").map(Some).map_err(|why| format!("{name}: {why}"))
}

fn add_bounds(row: &mut OutputRow, node: &JsonNode, name: &str) -> Result<(), String> {
    let interval = node.get(name).and_then(|estimate| estimate.get("confidence_interval"));
    let Some(interval) = interval else {
        return Ok(());
    };
    for (key, side) in [("lower_bound", "lower"), ("upper_bound", "upper")] {
        let bound =
            interval.number(key).map_err(|why| format!("{name}.confidence_interval: {why}"))?;
        fields::add_span(row, &format!("{name}_{side}"), bound, TimeUnit::Nanoseconds)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{render, spec};
    use super::super::{OutputFormat, parse};
    use super::*;

    const ONE: &str = include_str!("../../../../../testdata/formats/criterion-estimates.json");
    const SEVERAL: &str = include_str!("../../../../../testdata/formats/criterion-several.json");

    fn read(text: &str, label: Option<&str>) -> Result<Vec<OutputRow>, OutputParseError> {
        let spec = ParseSpec { label, ..spec(OutputFormat::Criterion) };
        parse(text, &spec)
    }

    #[test]
    fn one_file_is_one_row_without_a_name() {
        let rows = read(ONE, None).unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].case, None);
        assert_eq!(rows[0].values["median_ns"], 1318.3780356593913);
        assert!((rows[0].values["median_s"] - 1.3183780356593913e-6).abs() < 1e-18);
        assert_eq!(rows[0].values["mean_lower_ns"], 1314.5743538656625);
        assert_eq!(rows[0].values["typical_ns"], rows[0].values["mean_ns"]);
        assert!(!rows[0].values.contains_key("slope_ns"));
    }

    #[test]
    fn a_benchmark_file_names_the_estimates_behind_it() {
        let rows = read(SEVERAL, None).unwrap();
        let names: Vec<_> = rows.iter().filter_map(|row| row.case.as_deref()).collect();
        assert_eq!(names, ["sum/flat", "sum/naive/4096", "sum/naive/64"]);
        assert_eq!(rows[1].aliases, ["sum/naive/4096", "4096"]);
        assert_eq!(rows[1].params["function"], "naive");
        assert_eq!(rows[1].values["typical_ns"], rows[1].values["slope_ns"]);
        assert_eq!(read(SEVERAL, Some("sum")).unwrap().len(), 3);
        let got = render(&read(SEVERAL, Some("dot")));
        assert_eq!(got, "line 1: there is no group \"dot\"; there are sum");
    }

    #[test]
    fn what_is_missing_or_cut_is_refused() {
        let check = |text: &str, want: &str| {
            let got = render(&read(text, None));
            assert!(got.contains(want), "{got}");
        };
        check(&ONE[..ONE.len() - 20], "ends before it is complete");
        let unnamed = format!("{ONE}\n{ONE}");
        check(&unnamed, "neither this row nor the one on line 1 names its case");
        let (first, _) = SEVERAL.split_once('\n').unwrap();
        let twice = format!("{first}\n{first}\n");
        check(&twice, "line 1: the estimates of \"sum/flat\" are missing after it");
        check(first, "line 1: the estimates of \"sum/flat\" are missing after it");
        check("{\"a\": 1}", "neither criterion's estimates.json nor its benchmark.json");
        check("{\"mean\": {}, \"median\": {}}", "mean: \"point_estimate\" is missing");
        let zero = ONE.replace("1318.3780356593913", "0");
        check(&zero, "\"median\" is 0; a time must be above 0");
        let below = ONE.replace("1318.3780356593913", "-3");
        check(&below, "\"median\" is -3; a time must be above 0");
        let nan = ONE.replace("1318.3780356593913", "NaN");
        check(&nan, "NaN and Infinity are not JSON");
    }
}
