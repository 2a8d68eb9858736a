//! The parsers of benchmark output: text in, rows of numbers out, nothing else touched.
//!
//! ```text
//! text ──▶ csv │ json │ metric_lines ──▶ fields (names, units, checks) ──▶ rows
//!      └─▶ hyperfine │ pytest_record │ one file for each other tool ───▶ rows
//! ```
//!
//! A referee must not guess, so output is read completely or refused with a line and a reason.
//! Every value that leaves here is finite: a failed row leaves its NaN out, any other row with a
//! NaN is refused. The caller checks whether a required metric or case is present.

mod criterion;
mod csv;
mod fields;
mod google_benchmark;
mod hyperfine;
mod json;
mod libtest;
mod line_pattern;
mod metric_lines;
mod names;
mod nvbench;
mod nvbench_csv;
mod pytest_benchmark;
mod pytest_record;
mod triton;

pub use line_pattern::LinePattern;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The maximum number of rows; more is a runaway print loop, not a benchmark.
pub const MAX_ROWS: usize = 100_000;

/// The longest text that is parsed, in bytes; 100 000 rows of canonical CSV are about 20 MiB.
pub const MAX_TEXT_BYTES: usize = 64 * 1024 * 1024;

/// The longest excerpt an [`OutputParseError`] carries, in characters.
pub const MAX_EXCERPT_CHARS: usize = 120;

/// The maximum number of names that a reason lists.
const NAMES_SHOWN_MAX: usize = 20;

/// How the numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OutputFormat {
    /// A header and one row per case.
    Csv,
    /// One JSON document that holds the rows.
    Json,
    /// One JSON object per line.
    #[serde(rename = "jsonl")]
    JsonLines,
    /// `METRIC name=number key=value` lines within other output.
    #[serde(rename = "metric")]
    MetricLines,
    /// The file written by `hyperfine --export-json`.
    Hyperfine,
    /// `pytest --print-record`.
    #[serde(rename = "pytest")]
    PytestRecord,
    /// `--benchmark_format=json` of Google Benchmark.
    GoogleBenchmark,
    /// The file written by nvbench's `--json`.
    Nvbench,
    /// The table written by nvbench's `--csv`.
    NvbenchCsv,
    /// The file written by `pytest --benchmark-json`.
    PytestBenchmark,
    /// Criterion's `estimates.json`, one or several with their `benchmark.json` before them.
    Criterion,
    /// The output of `cargo bench` with Rust's own harness.
    Libtest,
    /// The tables that Triton's `perf_report` prints or saves.
    Triton,
    /// Lines of plain text that match `output.pattern`.
    Text,
}

/// The names of the formats in `karve.toml`, in that order.
pub const NAMES: [&str; 14] = [
    "csv",
    "json",
    "jsonl",
    "metric",
    "hyperfine",
    "pytest",
    "google-benchmark",
    "nvbench",
    "nvbench-csv",
    "pytest-benchmark",
    "criterion",
    "libtest",
    "triton",
    "text",
];

impl OutputFormat {
    /// All of them, in the order of their names.
    pub const ALL: [Self; 14] = [
        Self::Csv,
        Self::Json,
        Self::JsonLines,
        Self::MetricLines,
        Self::Hyperfine,
        Self::PytestRecord,
        Self::GoogleBenchmark,
        Self::Nvbench,
        Self::NvbenchCsv,
        Self::PytestBenchmark,
        Self::Criterion,
        Self::Libtest,
        Self::Triton,
        Self::Text,
    ];

    /// Its name in `karve.toml`.
    pub fn name(self) -> &'static str {
        NAMES[self as usize]
    }

    /// The column with the time of one call, if a tool always reports one.
    pub fn time_column(self) -> Option<&'static str> {
        match self {
            Self::Hyperfine | Self::PytestBenchmark | Self::Criterion => Some("median_s"),
            Self::GoogleBenchmark => Some("real_time_s"),
            Self::Nvbench | Self::NvbenchCsv => Some("gpu_time_s"),
            Self::Libtest => Some("time_s"),
            Self::Csv | Self::Json | Self::JsonLines | Self::MetricLines => None,
            Self::PytestRecord | Self::Triton | Self::Text => None,
        }
    }

    /// Whether the tool names the rows after its own functions, so that a single row with a
    /// different name than the case can be the requested one.
    pub fn names_its_rows(self) -> bool {
        match self {
            Self::Hyperfine | Self::PytestBenchmark | Self::Criterion | Self::Libtest => true,
            Self::GoogleBenchmark | Self::Nvbench | Self::NvbenchCsv => true,
            Self::Csv | Self::Json | Self::JsonLines | Self::MetricLines => false,
            Self::PytestRecord | Self::Triton | Self::Text => false,
        }
    }
}

/// What to look for in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseSpec<'a> {
    /// How the text is written.
    pub format: OutputFormat,
    /// The column, key or hyperfine parameter that names the case; if set, it must exist.
    pub case_column: Option<&'a str>,
    /// The column or key that states correctness; if set, it must exist.
    pub check_column: Option<&'a str>,
    /// The record, function, group or table to read, such as `Cutile`; by default the only one.
    pub label: Option<&'a str>,
    /// What the lines of [`OutputFormat::Text`] look like.
    pub pattern: Option<&'a str>,
}

/// One case with its numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputRow {
    /// The name of the case, or its geometry as `B=1,M=256`; unique in the output.
    pub case: Option<String>,
    /// Shorter names of the case; others may have the same.
    pub aliases: Vec<String>,
    /// Geometry axes and other parameters, as written.
    pub params: BTreeMap<String, String>,
    /// Finite numbers by canonical metric name; a spread is `<metric>_rel_std`, a ratio.
    pub values: BTreeMap<String, f64>,
    /// What the benchmark itself says about correctness.
    pub check: CaseCheck,
    /// The line on which the row starts, from 1.
    pub line: usize,
}

impl OutputRow {
    /// A row without numbers.
    fn new(case: Option<String>, check: CaseCheck, line: usize) -> Self {
        Self {
            case,
            aliases: Vec::new(),
            params: BTreeMap::new(),
            values: BTreeMap::new(),
            check,
            line,
        }
    }
}

/// What the benchmark says about the correctness of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseCheck {
    /// It says the result is right.
    Pass,
    /// It says the result is wrong, or that the case did not run.
    Fail,
    /// It says nothing.
    NotStated,
}

/// Why the output cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputParseError {
    /// The line that could not be read, from 1.
    pub line: usize,
    /// Why, in a sentence without a full stop.
    pub reason: String,
    /// An excerpt, at most [`MAX_EXCERPT_CHARS`] characters, without control characters.
    pub excerpt: String,
}

impl OutputParseError {
    /// A refusal of one line of `text`.
    fn at(text: &str, line: usize, reason: impl Into<String>) -> Self {
        let excerpt = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
        Self { line, reason: reason.into(), excerpt: bounded_excerpt(excerpt) }
    }

    /// A refusal near a byte of a line, for lines too long to show in full.
    fn near(text: &str, line: usize, column: usize, reason: impl Into<String>) -> Self {
        let whole = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
        let start = whole.floor_char_boundary(column.saturating_sub(MAX_EXCERPT_CHARS / 2));
        Self { line, reason: reason.into(), excerpt: bounded_excerpt(&whole[start..]) }
    }

    /// A refusal of the whole text, shown at its last non-blank line.
    fn at_end(text: &str, reason: impl Into<String>) -> Self {
        let last = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).last();
        Self::at(text, last.map_or(1, |(index, _)| index + 1), reason)
    }
}

impl Display for OutputParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)?;
        if self.excerpt.is_empty() { Ok(()) } else { write!(f, ": {}", self.excerpt) }
    }
}

impl std::error::Error for OutputParseError {}

fn bounded_excerpt(line: &str) -> String {
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    let shown: String = line.trim().chars().take(MAX_EXCERPT_CHARS + 1).map(printable).collect();
    if shown.chars().count() <= MAX_EXCERPT_CHARS {
        return shown;
    }
    shown.chars().take(MAX_EXCERPT_CHARS - 1).chain(['…']).collect()
}

/// Refuses a label that does not occur in the output.
fn check_label(found: &BTreeSet<&str>, label: Option<&str>, what: &str) -> Result<(), String> {
    match label {
        Some(label) if !found.contains(label) => {
            let there: Vec<&str> = found.iter().copied().take(NAMES_SHOWN_MAX).collect();
            Err(format!("there is no {what} \"{label}\"; there are {}", there.join(", ")))
        }
        Some(_) | None => Ok(()),
    }
}

/// Reads the rows of a benchmark's output, all of them or none.
///
/// # Errors
///
/// The output is truncated, contradicts itself, or has no rows; the line and the reason are given.
pub fn parse(text: &str, spec: &ParseSpec) -> Result<Vec<OutputRow>, OutputParseError> {
    if text.len() > MAX_TEXT_BYTES {
        let reason = format!("the output is longer than {} MiB", MAX_TEXT_BYTES / 1024 / 1024);
        return Err(OutputParseError::at(text, 1, reason));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (parser, looked_for) = parser_of(spec.format);
    let rows = parser(text, spec)?;
    if rows.is_empty() {
        let reason = format!("the output has no rows; looked for {looked_for}");
        return Err(OutputParseError::at_end(text, reason));
    }
    Ok(rows)
}

/// Reads text into rows.
type OutputParser = fn(&str, &ParseSpec) -> Result<Vec<OutputRow>, OutputParseError>;

/// The parser of a format, and what it looks for.
fn parser_of(format: OutputFormat) -> (OutputParser, &'static str) {
    match format {
        OutputFormat::Csv => (csv::parse, "a header line with rows under it"),
        OutputFormat::Json => (json::parse_document, "an array of objects"),
        OutputFormat::JsonLines => (json::parse_lines, "lines that start with {"),
        OutputFormat::MetricLines => {
            (metric_lines::parse, "lines like METRIC time_ms=1.25 case=small")
        }
        OutputFormat::Hyperfine => (hyperfine::parse, "entries in results"),
        OutputFormat::PytestRecord => {
            (pytest_record::parse, "lines like Cutile: {'forward': {…}} ms")
        }
        OutputFormat::GoogleBenchmark => (google_benchmark::parse, "entries in benchmarks"),
        OutputFormat::Nvbench => (nvbench::parse, "states in benchmarks"),
        OutputFormat::NvbenchCsv => (nvbench_csv::parse, "rows under the header"),
        OutputFormat::PytestBenchmark => (pytest_benchmark::parse, "entries in benchmarks"),
        OutputFormat::Criterion => (criterion::parse, "an object with mean and median"),
        OutputFormat::Libtest => {
            (libtest::parse, "lines like test name ... bench: 12 ns/iter (+/- 3)")
        }
        OutputFormat::Triton => (triton::parse, "a table with rows numbered from 0"),
        OutputFormat::Text => (line_pattern::parse, "lines that match output.pattern"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    pub(super) fn spec(format: OutputFormat) -> ParseSpec<'static> {
        ParseSpec { format, case_column: None, check_column: None, label: None, pattern: None }
    }

    /// The same texts in every run, and no files of past failures next to the source.
    pub(super) fn fixed_seed() -> ProptestConfig {
        ProptestConfig {
            rng_seed: RngSeed::Fixed(20260),
            failure_persistence: None,
            ..ProptestConfig::default()
        }
    }

    /// Rows as `line case check [params] values`, a refusal as `line N: reason`.
    pub(super) fn render(result: &Result<Vec<OutputRow>, OutputParseError>) -> String {
        match result {
            Ok(rows) => rows.iter().map(render_row).collect::<Vec<_>>().join("\n"),
            Err(unreadable) => format!("line {}: {}", unreadable.line, unreadable.reason),
        }
    }

    fn render_row(row: &OutputRow) -> String {
        let case = row.case.as_deref().unwrap_or("-");
        let params: Vec<_> = row.params.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let values: Vec<_> = row.values.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let (params, values) = (params.join(" "), values.join("; "));
        format!("{} {case} {:?} [{params}] {values}", row.line, row.check)
    }

    /// Parses with a plain spec and compares the line and a part of the reason.
    fn check(format: OutputFormat, text: &str, want: (usize, &str)) {
        let got = parse(text, &spec(format)).expect_err("the text must be refused");
        assert_eq!(got.line, want.0, "{got}");
        assert!(got.reason.contains(want.1), "{got}");
    }

    #[test]
    fn empty_output_is_refused_in_every_format() {
        for format in [
            OutputFormat::Csv,
            OutputFormat::JsonLines,
            OutputFormat::MetricLines,
            OutputFormat::PytestRecord,
            OutputFormat::NvbenchCsv,
            OutputFormat::Criterion,
            OutputFormat::Libtest,
            OutputFormat::Triton,
        ] {
            check(format, "", (1, "no rows"));
            check(format, "\n\n", (1, "no rows"));
        }
        check(OutputFormat::Json, "", (1, "ends before it is complete"));
        check(OutputFormat::Json, "[]", (1, "no rows"));
        check(OutputFormat::Hyperfine, r#"{"results": []}"#, (1, "no rows"));
    }

    #[test]
    fn a_text_without_rows_is_refused_at_its_last_line() {
        check(OutputFormat::MetricLines, "building\nrunning\n\n", (2, "METRIC time_ms=1.25"));
    }

    #[test]
    fn the_formats_are_stored_by_their_short_names() {
        let names: Vec<String> =
            OutputFormat::ALL.iter().map(|f| serde_json::to_string(f).unwrap()).collect();
        assert_eq!(names, NAMES.map(|name| format!("\"{name}\"")));
        for (name, format) in names.iter().zip(OutputFormat::ALL) {
            assert_eq!(format!("\"{}\"", format.name()), *name);
            assert_eq!(serde_json::from_str::<OutputFormat>(name).unwrap(), format);
        }
    }

    #[test]
    fn an_excerpt_is_bounded_and_has_no_control_characters() {
        let line = format!("\u{1b}[31m{}", "é".repeat(500));
        let excerpt = bounded_excerpt(&line);
        assert_eq!(excerpt.chars().count(), MAX_EXCERPT_CHARS);
        assert!(excerpt.ends_with('…') && !excerpt.contains('\u{1b}'), "{excerpt}");
        assert_eq!(bounded_excerpt(&"x".repeat(MAX_EXCERPT_CHARS)).len(), MAX_EXCERPT_CHARS);
    }

    #[test]
    fn an_excerpt_near_a_column_shows_that_column() {
        let text = format!("{}HERE{}", "é".repeat(300), "é".repeat(300));
        let got = OutputParseError::near(&text, 1, 600, "x");
        assert!(got.excerpt.contains("HERE"), "{got}");
    }

    #[test]
    fn more_rows_than_the_limit_are_refused() {
        let mut csv = String::from("case,time_ms\n");
        for row in 0..=MAX_ROWS {
            csv.push_str(&format!("c{row},1.0\n"));
        }
        check(OutputFormat::Csv, &csv, (MAX_ROWS + 2, "more than 100000 rows"));
        let json_lines: String =
            (0..=MAX_ROWS).map(|row| format!("{{\"case\":\"c{row}\"}}\n")).collect();
        check(OutputFormat::JsonLines, &json_lines, (MAX_ROWS + 1, "more than 100000 rows"));
        let metrics: String =
            (0..=MAX_ROWS).map(|row| format!("METRIC ms=1 case=c{row}\n")).collect();
        check(OutputFormat::MetricLines, &metrics, (MAX_ROWS + 1, "more than 100000 rows"));
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_output() {
        for (format, text) in [
            (OutputFormat::Csv, "\u{feff}case,ms\na,1\n"),
            (OutputFormat::Json, "\u{feff}[{\"case\":\"a\",\"ms\":1}]"),
            (OutputFormat::MetricLines, "\u{feff}METRIC ms=1 case=a"),
        ] {
            let rows = parse(text, &spec(format)).unwrap();
            assert_eq!(rows[0].case.as_deref(), Some("a"));
            assert_eq!(rows[0].values["ms"], 1.0);
        }
    }

    /// Pieces that the parsers act on, so that noise gets past the first branch.
    fn noise() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("label,B,Check,fwd_ms,fwd_ms_std\n".to_owned()),
            Just("METRIC ms=1 case=".to_owned()),
            Just("tests/x.py::test_perf[a-é] ".to_owned()),
            Just("Cutile: {'forward': {'mean': 3.7, 'std': ".to_owned()),
            Just("{\"results\":[{\"command\":\"x\",\"mean\":1,\"exit_codes\":[".to_owned()),
            Just("}} ms PASSED\n".to_owned()),
            Just("{\"benchmarks\":[{\"name\":\"a/n:1\",\"run_name\":\"a/n:1\",".to_owned()),
            Just("\"real_time\":1,\"cpu_time\":1,\"time_unit\":\"ns\"}]}".to_owned()),
            Just("\"states\":[{\"is_skipped\":false,\"summaries\":[".to_owned()),
            Just("\"stats\":{\"median\":1,\"mean\":1}}]}".to_owned()),
            Just("{\"mean\":{\"point_estimate\":1},\"median\":{\"point_estimate\":".to_owned()),
            Just("test a ... bench:   1,2 ns/iter (+/- 3) = 4 MB/s\ntest result:".to_owned()),
            Just("Benchmark,N,Skipped,Noise,GPU Time (sec)\nb,1,No,,".to_owned()),
            Just("plot:\n   N  Triton\n0  1  2\n1  ".to_owned()),
            Just("{\"case\":\"a\",\"n\":{\"x\":".to_owned()),
            "[\\[\\]{}(),:\"'=\r\n \\\\]{1,4}",
            "(NaN|inf|-1e999|0|1.5|PASS|FAIL|np\\.float64\\(|3\\.2 ms|é|\u{feff})",
            any::<String>(),
        ];
        proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(fixed_seed())]

        #[test]
        fn no_text_makes_a_parser_panic_and_every_value_is_finite(
            text in noise(),
            column in proptest::option::of("(case|M|label|é)"),
            label in proptest::option::of("(Cutile|é)"),
        ) {
            for format in OutputFormat::ALL {
                let (case_column, label) = (column.as_deref(), label.as_deref());
                let spec = ParseSpec { case_column, label, ..spec(format) };
                match parse(&text, &spec) {
                    Ok(rows) => {
                        prop_assert!(!rows.is_empty());
                        prop_assert!(rows.iter().flat_map(|r| r.values.values())
                            .all(|value| value.is_finite()));
                    }
                    Err(unreadable) => {
                        prop_assert!(unreadable.line >= 1);
                        prop_assert!(unreadable.excerpt.chars().count() <= MAX_EXCERPT_CHARS);
                    }
                }
            }
        }
    }
}
