//! The table of nvbench's `--csv`.
//!
//! The columns before `Skipped` are axes. `Noise` follows the time it belongs to and may appear
//! several times; so may other columns, and then the second has ` 2` after its name. The times
//! have the same short names as for nvbench's JSON.

use std::collections::{BTreeMap, BTreeSet};

use super::csv::{check_count, next_record};
use super::fields::OutputRows;
use super::names::TimeUnit;
use super::nvbench::{name_row, refuse_timeless};
use super::{CaseCheck, OutputParseError, OutputRow, ParseSpec, check_label, fields};
use crate::csv::CsvRecords;

/// Short names of the mean time columns.
const SHORT: [(&str, &str); 3] = [
    ("GPU Time (sec)", "gpu_time"),
    ("CPU Time (sec)", "cpu_time"),
    ("Batch GPU (sec)", "batch_gpu_time"),
];

/// What a column is.
enum ColumnRole {
    Benchmark,
    Device,
    DeviceName,
    Skipped,
    /// An axis that always exists.
    Axis(String),
    /// The same axis, written as a power of two.
    Pretty,
    /// A summary, or an axis of a later benchmark.
    Value(String),
    /// The spread of that column.
    Noise(String),
}

/// Reads one row per state.
pub(super) fn parse(text: &str, spec: &ParseSpec) -> Result<Vec<OutputRow>, OutputParseError> {
    let (rest, line) = from_header(text);
    let mut records = CsvRecords { rest, line };
    let Some(header) = next_record(&mut records, text)? else {
        return Ok(Vec::new());
    };
    let roles = roles_of(&header.cells)
        .map_err(|reason| OutputParseError::at(text, header.line, reason))?;
    let mut benchmarks = BTreeSet::new();
    let mut rows = OutputRows::default();
    while let Some(record) = next_record(&mut records, text)? {
        check_count(&record, roles.len(), &records, text)?;
        let benchmark =
            cell_of(&roles, &record.cells, |role| matches!(role, ColumnRole::Benchmark));
        benchmarks.insert(benchmark.to_owned());
        if spec.label.is_some_and(|label| label != benchmark) {
            continue;
        }
        rows.add(text, record.line, row_of(&roles, &record.cells, record.line))?;
    }
    let benchmarks: BTreeSet<&str> = benchmarks.iter().map(String::as_str).collect();
    check_label(&benchmarks, spec.label, "benchmark")
        .map_err(|reason| OutputParseError::at(text, header.line, reason))?;
    Ok(rows.finish())
}

/// The text from the header on, and its line; log lines may precede it.
fn from_header(text: &str) -> (&str, usize) {
    let mut from = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if line.starts_with("Benchmark,") {
            return (&text[from..], index + 1);
        }
        from += line.len();
    }
    (text, 1)
}

fn roles_of(header: &[String]) -> Result<Vec<ColumnRole>, String> {
    let skipped = header.iter().position(|name| name == "Skipped");
    let (Some(skipped), Some(0)) = (skipped, header.iter().position(|n| n == "Benchmark")) else {
        return Err("this is not the header of nvbench's --csv, which starts with Benchmark".into());
    };
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut roles = Vec::with_capacity(header.len());
    let mut before = "";
    for (index, name) in header.iter().enumerate() {
        let n_seen = seen.entry(name).or_default();
        *n_seen += 1;
        roles.push(match name.as_str() {
            "Benchmark" => ColumnRole::Benchmark,
            "Device" => ColumnRole::Device,
            "Device Name" => ColumnRole::DeviceName,
            "Skipped" => ColumnRole::Skipped,
            "Noise" => ColumnRole::Noise(before.to_owned()),
            _ if name.ends_with(" (pow2)") => ColumnRole::Pretty,
            _ if index < skipped => ColumnRole::Axis(name.clone()),
            _ if *n_seen > 1 => ColumnRole::Value(format!("{name} {n_seen}")),
            _ => ColumnRole::Value(name.clone()),
        });
        before = name;
    }
    Ok(roles)
}

fn cell_of<'a>(roles: &[ColumnRole], cells: &'a [String], is: fn(&ColumnRole) -> bool) -> &'a str {
    let at = roles.iter().position(is);
    at.and_then(|at| cells.get(at)).map_or("", String::as_str)
}

fn row_of(roles: &[ColumnRole], cells: &[String], line: usize) -> Result<OutputRow, String> {
    let check = match cell_of(roles, cells, |role| matches!(role, ColumnRole::Skipped)) {
        "No" => CaseCheck::NotStated,
        "Yes" => CaseCheck::Fail,
        other => return Err(format!("\"Skipped\" is \"{other}\", not Yes or No")),
    };
    let mut row = OutputRow::new(None, check, line);
    let mut parts = Vec::new();
    for (role, cell) in roles.iter().zip(cells) {
        match role {
            ColumnRole::Benchmark
            | ColumnRole::DeviceName
            | ColumnRole::Skipped
            | ColumnRole::Pretty => {}
            ColumnRole::Device => {
                row.params.insert("Device".to_owned(), cell.clone());
            }
            // Another benchmark of the same table has this axis.
            ColumnRole::Axis(_) if cell.is_empty() => {}
            ColumnRole::Axis(name) => {
                parts.push(format!("{name}={cell}"));
                row.params.insert(name.clone(), cell.clone());
            }
            ColumnRole::Value(name) => add_value(&mut row, name, cell)?,
            ColumnRole::Noise(of) => add_noise(&mut row, of, cell)?,
        }
    }
    let benchmark = cell_of(roles, cells, |role| matches!(role, ColumnRole::Benchmark));
    name_row(&mut row, benchmark, &parts.join(","));
    if check != CaseCheck::Fail {
        refuse_timeless(&row)?;
    }
    Ok(row)
}

fn add_value(row: &mut OutputRow, name: &str, cell: &str) -> Result<(), String> {
    if cell.is_empty() {
        return Ok(());
    }
    let number = cell.parse::<f64>().ok();
    let short = SHORT.iter().find(|(column, _)| *column == name);
    match (number, short) {
        (Some(number), Some((_, short))) => {
            fields::add_time(row, short, number, TimeUnit::Seconds)?;
        }
        (None, Some(_)) => return Err(format!("\"{name}\" is \"{cell}\", not a number")),
        // The axes of a later benchmark come after the summaries of the first.
        (_, None) => {
            row.params.insert(name.to_owned(), cell.to_owned());
        }
    }
    match number {
        Some(number) => fields::add_value(row, name, number),
        None => Ok(()),
    }
}

fn add_noise(row: &mut OutputRow, of: &str, cell: &str) -> Result<(), String> {
    match cell.parse::<f64>() {
        Ok(noise) if noise.is_finite() => fields::add_value(row, &format!("{of}_rel_std"), noise),
        // The noise of a single sample is infinite.
        Ok(_) => Ok(()),
        Err(_) if cell.is_empty() => Ok(()),
        Err(_) => Err(format!("\"Noise\" is \"{cell}\", not a number")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{render, spec};
    use super::super::{OutputFormat, parse};
    use super::*;

    const SAMPLE: &str = include_str!("../../../../../testdata/formats/nvbench.csv");

    fn read(text: &str, label: Option<&str>) -> Result<Vec<OutputRow>, OutputParseError> {
        let spec = ParseSpec { label, ..spec(OutputFormat::NvbenchCsv) };
        parse(text, &spec)
    }

    #[test]
    fn a_line_is_a_row_with_its_axes_as_parameters() {
        let rows = read(SAMPLE, None).unwrap();
        let names: Vec<_> = rows.iter().filter_map(|row| row.case.as_deref()).collect();
        assert_eq!(names, ["copy/N=1048576,T=I32", "copy/N=16777216,T=I32", "fill"]);
        let values = &rows[0].values;
        assert_eq!(values["gpu_time_s"], 7.821e-06);
        assert_eq!(values["GPU Time (sec)"], 7.821e-06);
        assert_eq!(values["GPU Time (sec)_rel_std"], 0.02);
        assert_eq!(values["Samples"], 65536.0);
        assert_eq!(values["Samples 2"], 94208.0);
        assert_eq!(rows[1].check, CaseCheck::Fail);
        assert_eq!(rows[2].params["Block"], "256");
        assert_eq!(read(SAMPLE, Some("fill")).unwrap().len(), 1);
    }

    #[test]
    fn log_lines_before_the_header_are_skipped() {
        let rows = read(&format!("Run: [1/2] copy\n{SAMPLE}"), None).unwrap();
        assert_eq!(rows[0].line, 3);
    }

    #[test]
    fn what_is_missing_or_no_time_is_refused_with_its_line() {
        let check = |from: &str, to: &str, want: &str| {
            let text = SAMPLE.replacen(from, to, 1);
            assert_ne!(text, SAMPLE);
            let got = render(&read(&text, None));
            assert!(got.contains(want), "{got}");
        };
        check("7.821e-06", "0", "line 2: \"gpu_time\" is 0; a time must be above 0");
        check("7.821e-06", "nan", "line 2: \"gpu_time\" is NaN");
        check("7.821e-06", "-1", "line 2: \"gpu_time\" is -1");
        check("7.821e-06", "fast", "is \"fast\", not a number");
        check(",No,", ",Perhaps,", "\"Skipped\" is \"Perhaps\"");
        check("Benchmark,", "Bench,", "not the header of nvbench's --csv");
        let cut = &SAMPLE[..SAMPLE.len() - 12];
        let got = render(&read(cut, None));
        assert!(got.contains("the output ends inside this row"), "{got}");
    }
}
