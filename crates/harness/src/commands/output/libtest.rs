//! The lines of `cargo bench` with Rust's own harness.
//!
//! ```text
//! test sum_64 ... bench:         115.34 ns/iter (+/- 36.64) = 4320 MB/s
//! ```
//!
//! Each program ends with a line that counts what it measured; without it, or with another count,
//! the output is incomplete. A quiet run prints letters before the first `test`.

use super::fields::OutputRows;
use super::names::TimeUnit;
use super::{CaseCheck, OutputParseError, OutputRow, ParseSpec, fields};

/// The text between the name of a benchmark and its numbers.
const BENCH: &str = " ... bench:";

/// Marks that a quiet run prints for tests, without ending the line.
const MARKS: [char; 3] = ['.', 'i', 'F'];

/// Reads one row per benchmark.
pub(super) fn parse(text: &str, _: &ParseSpec) -> Result<Vec<OutputRow>, OutputParseError> {
    let mut rows = OutputRows::default();
    let (mut n_begun, mut n_ended, mut n_since) = (0, 0, 0_u64);
    for (index, line) in text.lines().enumerate() {
        let refuse = |reason: String| OutputParseError::at(text, index + 1, reason);
        if is_beginning(line) {
            n_begun += 1;
        } else if let Some(result) = line.strip_prefix("test result:") {
            n_ended += 1;
            let n_measured = measured(result).map_err(refuse)?;
            if n_measured != n_since {
                return Err(refuse(format!(
                    "{n_measured} benchmarks were measured, but {n_since} were found"
                )));
            }
            n_since = 0;
        } else if let Some(row) = row_of(line, index + 1).map_err(refuse)? {
            n_since += u64::from(row.check != CaseCheck::Fail);
            rows.push(row).map_err(refuse)?;
        }
    }
    let rows = rows.finish();
    if n_begun > n_ended || n_since > 0 {
        let reason = "the output ends before its \"test result\" line; the program died, or the \
                      output was truncated";
        return Err(OutputParseError::at_end(text, reason));
    }
    Ok(rows)
}

/// Whether the line is one like `running 5 tests`.
fn is_beginning(line: &str) -> bool {
    let count = line.strip_prefix("running ").and_then(|rest| rest.split_once(" test"));
    count.is_some_and(|(count, _)| count.parse::<u64>().is_ok())
}

/// The count of benchmarks in what follows `test result:`.
fn measured(result: &str) -> Result<u64, String> {
    let part = result.split(';').find_map(|part| part.trim().strip_suffix(" measured"));
    part.and_then(|count| count.parse().ok())
        .ok_or_else(|| "the line does not say how many were measured".into())
}

fn row_of(line: &str, at: usize) -> Result<Option<OutputRow>, String> {
    let unmarked = line.trim_start_matches(MARKS);
    if let Some((name, result)) =
        unmarked.strip_prefix("test ").and_then(|line| line.split_once(BENCH))
    {
        let mut row = named(name.trim(), CaseCheck::NotStated, at);
        add_numbers(&mut row, result.trim())?;
        return Ok(Some(row));
    }
    let failed =
        unmarked.strip_prefix("test ").and_then(|line| line.trim_end().strip_suffix(" ... FAILED"));
    Ok(failed.map(|name| named(name.trim(), CaseCheck::Fail, at)))
}

/// A row that can also be named by the last part of its path.
fn named(name: &str, check: CaseCheck, at: usize) -> OutputRow {
    let mut row = OutputRow::new(Some(name.to_owned()), check, at);
    row.aliases.extend(name.rsplit_once("::").map(|(_, last)| last.to_owned()));
    row
}

/// `115.34 ns/iter (+/- 36.64) = 4320 MB/s`, where the rate is optional.
fn add_numbers(row: &mut OutputRow, text: &str) -> Result<(), String> {
    let usage = "a benchmark must look like 1,234 ns/iter (+/- 56)";
    let (time, rest) = text.split_once(" ns/iter (+/- ").ok_or(usage)?;
    let (range, rest) = rest.split_once(')').ok_or(usage)?;
    let (time, range) = (number(time)?, number(range)?);
    fields::add_time(row, "time", time, TimeUnit::Nanoseconds)?;
    fields::add_span(row, "range", range, TimeUnit::Nanoseconds)?;
    match rest.trim() {
        "" => Ok(()),
        rate => {
            let rate =
                rate.strip_prefix("= ").and_then(|rate| rate.strip_suffix(" MB/s")).ok_or(usage)?;
            fields::add_value(row, "mb_per_s", number(rate)?)
        }
    }
}

fn number(text: &str) -> Result<f64, String> {
    let plain: String = text.trim().chars().filter(|c| *c != ',').collect();
    plain.parse().map_err(|_| format!("\"{}\" is not a number", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{render, spec};
    use super::super::{OutputFormat, parse};
    use super::*;

    const SAMPLE: &str = include_str!("../../../../../testdata/formats/libtest.txt");

    fn check(text: &str, want: &str) {
        let got = render(&parse(text, &spec(OutputFormat::Libtest)));
        assert!(got.contains(want), "{got}");
    }

    #[test]
    fn a_line_is_a_row_in_nanoseconds() {
        let rows = parse(SAMPLE, &spec(OutputFormat::Libtest)).unwrap();
        let names: Vec<_> = rows.iter().filter_map(|row| row.case.as_deref()).collect();
        assert_eq!(names, ["sum_1m", "sum_4096", "sum_64"]);
        assert_eq!(rows[0].values["time_ns"], 142781.63);
        assert_eq!(rows[0].values["range_ns"], 85690.34);
        assert_eq!(rows[1].values["mb_per_s"], 4320.0);
        assert!((rows[2].values["time_s"] - 115.34e-9).abs() < 1e-20);
    }

    #[test]
    fn whole_numbers_and_paths_are_read_too() {
        let text = "running 1 test\n\
                    test tests::dot ... bench:       1,234 ns/iter (+/- 56)\n\
                    test result: ok. 0 passed; 0 failed; 0 ignored; 1 measured; 0 filtered out\n";
        let rows = parse(text, &spec(OutputFormat::Libtest)).unwrap();
        assert_eq!(rows[0].values["time_ns"], 1234.0);
        assert_eq!(rows[0].aliases, ["dot"]);
    }

    #[test]
    fn output_that_is_not_whole_is_refused() {
        let (body, _) = SAMPLE.rsplit_once("test result:").unwrap();
        check(body, "the output ends before its \"test result\" line");
        let lost = SAMPLE.replace("test sum_64 ", "sum_64 ");
        check(&lost, "3 benchmarks were measured, but 2 were found");
        let twice = SAMPLE.replace("test sum_64 ", "test sum_4096 ");
        check(&twice, "the case \"sum_4096\" is already on line");
    }

    #[test]
    fn numbers_that_no_kernel_has_are_refused() {
        let zero = SAMPLE.replace("115.34", "0.00");
        check(&zero, "\"time\" is 0; a time must be above 0");
        check(&SAMPLE.replace("115.34", "NaN"), "\"time\" is NaN");
        check(&SAMPLE.replace("115.34", "-1"), "\"time\" is -1");
        check(&SAMPLE.replace("115.34", "fast"), "\"fast\" is not a number");
        check(&SAMPLE.replace("115.34 ns", "115.34 s"), "must look like 1,234 ns/iter");
    }

    #[test]
    fn a_benchmark_that_failed_fails_its_case() {
        let failed = SAMPLE
            .replace(
                "test sum_64   ... bench:         115.34 ns/iter (+/- 36.64)",
                "test sum_64   ... FAILED",
            )
            .replace("3 measured", "2 measured");
        let rows = parse(&failed, &spec(OutputFormat::Libtest)).unwrap();
        assert_eq!(rows[2].check, CaseCheck::Fail);
    }
}
