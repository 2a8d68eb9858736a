//! The JSON of Google Benchmark, as `--benchmark_format=json` prints it.
//!
//! A benchmark is one row. With repetitions its median counts; the single runs are only checked
//! for completeness. `BM_dot/n:64/real_time` is also called `BM_dot/n:64` and has the
//! parameter `n=64`; an argument without a name is `arg0`, `arg1` and so on.

use std::collections::{BTreeMap, BTreeSet};

use super::fields::OutputRows;
use super::json::JsonNode;
use super::names::TimeUnit;
use super::{CaseCheck, OutputParseError, OutputRow, ParseSpec, check_label, fields, json};

/// Parts of a name that say how it was measured, not what.
const MODIFIERS: [&str; 3] = ["real_time", "process_time", "manual_time"];

/// The same, followed by a colon and a number.
const NUMBERED_MODIFIERS: [&str; 4] = ["min_time", "min_warmup_time", "iterations", "repeats"];

/// Aggregates over a family; they are not benchmarks themselves.
const FITS: [&str; 2] = ["BigO", "RMS"];

/// Numbers that say nothing about the kernel.
const COUNTS: [&str; 5] =
    ["family_index", "per_family_instance_index", "repetitions", "repetition_index", "threads"];

/// One entry of the list.
struct BenchmarkEntry<'a> {
    index: usize,
    line: usize,
    node: &'a JsonNode,
}

/// The line of an entry, and why it is refused.
type EntryError = (usize, String);

impl BenchmarkEntry<'_> {
    fn refuse(&self, reason: impl std::fmt::Display) -> EntryError {
        (self.line, format!("benchmarks[{}]: {reason}", self.index))
    }

    fn aggregate(&self) -> Option<&str> {
        let is_aggregate = self.node.text("run_type") == Some("aggregate");
        is_aggregate.then(|| self.node.text("aggregate_name").unwrap_or_default())
    }
}

/// Reads one row per benchmark.
pub(super) fn parse(text: &str, spec: &ParseSpec) -> Result<Vec<OutputRow>, OutputParseError> {
    let give = "the output of --benchmark_format=json";
    let (list, lines) = json::parse_list(text, "benchmarks", give)?;
    let mut order = Vec::new();
    let mut groups: BTreeMap<&str, Vec<BenchmarkEntry>> = BTreeMap::new();
    for (index, node) in list.iter().enumerate() {
        let line = lines.get(index).copied().unwrap_or(1);
        let entry = BenchmarkEntry { index, line, node };
        let Some(name) = node.text("run_name").or_else(|| node.text("name")) else {
            let (_, reason) = entry.refuse("\"name\" is missing");
            return Err(OutputParseError::at(text, line, reason));
        };
        if entry.aggregate().is_some_and(|name| FITS.contains(&name)) {
            continue;
        }
        let group = groups.entry(name).or_default();
        if group.is_empty() {
            order.push(name);
        }
        group.push(entry);
    }
    let families: BTreeSet<&str> = order.iter().map(|name| family(name)).collect();
    check_label(&families, spec.label, "benchmark")
        .map_err(|reason| OutputParseError::at(text, 1, reason))?;
    let mut rows = OutputRows::default();
    for name in order {
        if spec.label.is_some_and(|label| label != family(name)) {
            continue;
        }
        let row = row_of(name, &groups[name])
            .map_err(|(line, reason)| OutputParseError::at(text, line, reason))?;
        rows.add(text, row.line, Ok(row))?;
    }
    Ok(rows.finish())
}

fn family(name: &str) -> &str {
    name.split('/').next().unwrap_or(name)
}

fn row_of(name: &str, group: &[BenchmarkEntry]) -> Result<OutputRow, EntryError> {
    let entry = entry_of(name, group)?;
    let failed = |entry: &BenchmarkEntry| {
        entry.node.is_set("error_occurred")
            || entry.node.is_set("skipped")
            || entry.node.text("error_message").is_some()
    };
    let check = if group.iter().any(failed) { CaseCheck::Fail } else { CaseCheck::NotStated };
    let mut row = OutputRow::new(Some(name.to_owned()), check, entry.line);
    name_parts(&mut row, name);
    if check != CaseCheck::Fail {
        add_numbers(&mut row, entry.node).map_err(|reason| entry.refuse(reason))?;
        add_spread(&mut row, group).map_err(|reason| entry.refuse(reason))?;
    }
    Ok(row)
}

/// The entry whose numbers count: the median of repetitions, or the only run.
fn entry_of<'a>(
    name: &str,
    group: &'a [BenchmarkEntry<'a>],
) -> Result<&'a BenchmarkEntry<'a>, EntryError> {
    let runs: Vec<&BenchmarkEntry> = group.iter().filter(|e| e.aggregate().is_none()).collect();
    let first = &group[0];
    if let (Some(run), Ok(repetitions)) = (runs.first(), first.node.number("repetitions")) {
        // A repetition count is far below the point where the conversion loses precision.
        #[allow(clippy::cast_precision_loss)]
        let n_runs = runs.len() as f64;
        if n_runs != repetitions {
            return Err(run.refuse(format!("\"{name}\" has {n_runs} of {repetitions} repetitions")));
        }
    }
    let is_median = |entry: &&BenchmarkEntry| entry.aggregate() == Some("median");
    match (group.iter().find(is_median), &runs[..]) {
        (Some(median), _) => Ok(median),
        (None, [run]) if group.len() == 1 => Ok(run),
        (None, [run, ..]) if run.node.is_set("error_occurred") => Ok(run),
        (None, _) => Err(first.refuse(format!("\"{name}\" has repetitions, but no median"))),
    }
}

/// The parameters in a name, and the name without what says how it was measured.
fn name_parts(row: &mut OutputRow, name: &str) {
    let mut bare = vec![family(name)];
    let mut n_unnamed = 0;
    for part in name.split('/').skip(1) {
        let named = part.split_once(':');
        let is_modifier = MODIFIERS.contains(&part)
            || named.is_some_and(|(name, _)| NUMBERED_MODIFIERS.contains(&name));
        if is_modifier {
            continue;
        }
        bare.push(part);
        let (name, value) = match named {
            Some((name, value)) => (name.to_owned(), value),
            None => {
                n_unnamed += 1;
                (format!("arg{}", n_unnamed - 1), part)
            }
        };
        row.params.insert(name, value.to_owned());
    }
    row.aliases.push(bare.join("/"));
}

fn add_numbers(row: &mut OutputRow, node: &JsonNode) -> Result<(), String> {
    let Some(word) = node.text("time_unit") else {
        return Err("\"time_unit\" is missing".into());
    };
    let unit = TimeUnit::by_word(word)
        .ok_or_else(|| format!("\"time_unit\" is \"{word}\", not ns, us, ms or s"))?;
    fields::add_time(row, "real_time", node.number("real_time")?, unit)?;
    fields::add_span(row, "cpu_time", node.number("cpu_time")?, unit)?;
    for (name, value) in node.entries() {
        let is_taken = matches!(name.as_str(), "real_time" | "cpu_time");
        if let (JsonNode::Number(number), false) =
            (value, is_taken || COUNTS.contains(&name.as_str()))
        {
            fields::add_value(row, name, *number)?;
        }
    }
    Ok(())
}

/// The coefficient of variation over the repetitions.
fn add_spread(row: &mut OutputRow, group: &[BenchmarkEntry]) -> Result<(), String> {
    let Some(cv) = group.iter().find(|entry| entry.aggregate() == Some("cv")) else {
        return Ok(());
    };
    let spread = cv.node.number("real_time")?;
    fields::add_value(row, "real_time_s_rel_std", spread)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{render, spec};
    use super::super::{OutputFormat, parse};
    use super::*;

    const PLAIN: &str = include_str!("../../../../../testdata/formats/google-benchmark.json");
    const REPEATED: &str =
        include_str!("../../../../../testdata/formats/google-benchmark-repeated.json");

    fn read(text: &str, label: Option<&str>) -> Result<Vec<OutputRow>, OutputParseError> {
        let spec = ParseSpec { label, ..spec(OutputFormat::GoogleBenchmark) };
        parse(text, &spec)
    }

    #[test]
    fn a_benchmark_is_a_row_with_times_in_seconds_and_its_counters() {
        let rows = read(PLAIN, None).unwrap();
        let names: Vec<_> = rows.iter().filter_map(|row| row.case.as_deref()).collect();
        let want = ["BM_dot/n:64/real_time", "BM_dot/n:4096/real_time", "BM_plain/8", "BM_bad/8"];
        assert_eq!(names, want);
        assert_eq!(rows[1].aliases, ["BM_dot/n:4096"]);
        assert_eq!(rows[1].params["n"], "4096");
        assert_eq!(rows[1].values["real_time_ns"], 5865.385177722228);
        assert!((rows[1].values["real_time_s"] - 5.865385177722228e-6).abs() < 1e-18);
        assert_eq!(rows[1].values["flops"], 1396668718.5548644);
        assert_eq!(rows[2].params["arg0"], "8");
        assert!((rows[2].values["real_time_s"] - 6.179715750771405e-10).abs() < 1e-22);
    }

    #[test]
    fn a_benchmark_that_says_error_fails_its_case() {
        let rows = read(PLAIN, None).unwrap();
        assert_eq!(rows[3].check, CaseCheck::Fail);
        assert!(rows[3].values.is_empty());
        assert_eq!(rows[0].check, CaseCheck::NotStated);
    }

    #[test]
    fn the_median_counts_when_there_are_repetitions() {
        let rows = read(REPEATED, Some("BM_dot")).unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].values["real_time_ns"], 50.288406078595905);
        assert_eq!(rows[0].values["real_time_s_rel_std"], 0.08021316546147535);
        assert_eq!(rows[0].line, 77);
    }

    #[test]
    fn a_repetition_that_is_missing_is_noticed() {
        let cut = REPEATED.replacen("\"repetitions\": 3", "\"repetitions\": 4", 1);
        let want = "line 12: benchmarks[0]: \"BM_dot/n:64/real_time\" has 3 of 4 repetitions";
        assert_eq!(render(&read(&cut, None)), want);
        let no_median = REPEATED.replace("\"median\"", "\"p50\"");
        let got = render(&read(&no_median, None));
        assert!(got.contains("has repetitions, but no median"), "{got}");
    }

    #[test]
    fn the_label_names_the_function() {
        assert_eq!(read(PLAIN, Some("BM_dot")).unwrap().len(), 2);
        let got = render(&read(PLAIN, Some("BM_x")));
        let want = "line 1: there is no benchmark \"BM_x\"; there are BM_bad, BM_dot, BM_plain";
        assert_eq!(got, want);
    }

    #[test]
    fn numbers_that_no_kernel_has_are_refused_with_their_place() {
        let check = |from: &str, to: &str, want: &str| {
            let text = PLAIN.replacen(from, to, 1);
            assert_ne!(text, PLAIN);
            let got = render(&read(&text, None));
            assert!(got.contains(want), "{got}");
        };
        let time = "\"real_time\": 5.5170378146706739e+01";
        let zero = "line 12: benchmarks[0]: \"real_time\" is 0; a time must be above 0";
        check(time, "\"real_time\": 0", zero);
        let below = "line 12: benchmarks[0]: \"real_time\" is -1; a time must be above 0";
        check(time, "\"real_time\": -1", below);
        check(time, "\"real_time\": NaN", "NaN and Infinity are not JSON");
        check(time, "\"real\": 1", "benchmarks[0]: \"real_time\" is missing");
        let unit = "benchmarks[0]: \"time_unit\" is \"min\"";
        check("\"time_unit\": \"ns\"", "\"time_unit\": \"min\"", unit);
        let cut = &PLAIN[..PLAIN.len() / 2];
        assert!(render(&read(cut, None)).contains("ends before it is complete"));
        assert!(render(&read("{}", None)).contains("no \"benchmarks\" array"));
        let twice = PLAIN.replace("BM_plain/8", "BM_dot/n:64/real_time");
        assert!(render(&read(&twice, None)).contains("has 2 of 1 repetitions"));
    }
}
