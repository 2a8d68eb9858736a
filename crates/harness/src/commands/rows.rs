//! From rows of a benchmark's output to one value for each case.

use super::output;
use super::output::{CaseCheck, OutputFormat, OutputRow, ParseSpec};
use karve_core::charter::{Metric, OutputRule};
use karve_core::measurement::{FailureCategory, Gate, PassRates};
use karve_numerics::case::Case;
use karve_numerics::expr::parse_expr;
use std::slice;

/// Maximum number of characters in a row's name.
const NAME_CHARS: usize = 60;

/// The format with that name, if there is one.
pub(super) fn format_by_name(name: &str) -> Option<OutputFormat> {
    serde_json::from_value(serde_json::Value::from(name)).ok()
}

/// Whether there is an output format with that name.
pub fn knows_format(name: &str) -> bool {
    format_by_name(name).is_some()
}

/// What a row says about a case.
#[derive(Debug)]
pub(super) struct RowReading {
    /// The metric.
    pub(super) value: f64,
    /// The rates of the two passes, if the metric has them.
    pub(super) passes: Option<PassRates>,
    /// The least signal-to-noise ratio, in decibels, if it has any.
    pub(super) snr_db: Option<f64>,
}

/// One reading for each case, in order; refuses missing, failed or unreadable rows.
pub(super) fn values(
    text: &str,
    output: &OutputRule,
    metric: &Metric,
    cases: &[Case],
) -> Result<Vec<RowReading>, Gate> {
    let first = cases.first().map_or("the benchmark", |case| case.name.as_str());
    let rows = rows(text, output).map_err(|why| unreadable(first, why))?;
    // The name that a tool gives its only row does not identify the case.
    let names_its_rows = format_by_name(&output.format).is_some_and(OutputFormat::names_its_rows);
    let may_be_only = names_its_rows && output.case_column.is_none();
    let reading = |case: &Case| {
        let only = match (&rows[..], cases.len()) {
            ([row], 1) if row.case.is_none() || may_be_only => Some(row),
            (_, _) => None,
        };
        let row = row_of(&rows, case, only)?;
        let value = value_of(row, metric, case)?;
        let snr_db = snr_of(row, output, case)?;
        Ok(RowReading { value, passes: passes_of(row, metric, case), snr_db })
    };
    let named = |case| reading(case).map_err(|gate: Gate| gate.on(slice::from_ref(case)));
    cases.iter().map(named).collect()
}

/// The rows of a benchmark's output, or why they cannot be read.
pub(super) fn rows(text: &str, output: &OutputRule) -> Result<Vec<OutputRow>, String> {
    let Some(format) = format_by_name(&output.format) else {
        return Err(format!("there is no output format {:?}", output.format));
    };
    let spec = ParseSpec {
        format,
        case_column: output.case_column.as_deref(),
        check_column: output.check_column.as_deref(),
        label: output.label.as_deref(),
        pattern: output.pattern.as_deref(),
    };
    output::parse(text, &spec)
        .map_err(|error| format!("cannot read the benchmark's output: {error}"))
}

fn value_of(row: &OutputRow, metric: &Metric, case: &Case) -> Result<f64, Gate> {
    if row.check == CaseCheck::Fail {
        return Err(Gate::WrongResult {
            case: case.name.clone(),
            category: FailureCategory::SnrFail,
            excerpt: format!("the benchmark's own check says FAIL (line {})", row.line),
        });
    }
    let lookup = lookup(row, case);
    let missing = |name: &str| {
        let names: Vec<&str> = row.values.keys().map(String::as_str).collect();
        let why = format!("line {} has no {name}; it has {}", row.line, names.join(", "));
        unreadable(&case.name, why)
    };
    let Some(text) = &metric.expr else {
        let column = row.values.get(&metric.name).copied();
        return column.ok_or_else(|| missing(&metric.name));
    };
    let expr = parse_expr(text).map_err(|error| unreadable(&case.name, error.to_string()))?;
    if let Some(name) = expr.names().into_iter().find(|name| lookup(name).is_none()) {
        return Err(missing(name));
    }
    expr.evaluate(&lookup).map_err(|why| unreadable(&case.name, why))
}

/// The value of a column, or of a parameter of the case.
fn lookup<'a>(row: &'a OutputRow, case: &'a Case) -> impl Fn(&str) -> Option<f64> + 'a {
    |name| {
        let column = row.values.get(name).copied();
        column.or_else(|| case.params.get(name)?.parse().ok())
    }
}

/// The least signal-to-noise ratio of a row's columns; refuses one below the limit.
fn snr_of(row: &OutputRow, output: &OutputRule, case: &Case) -> Result<Option<f64>, Gate> {
    let columns = row.values.iter().filter(|(name, _)| {
        let mut words = name.split(|c: char| !c.is_alphanumeric());
        words.any(|word| word.eq_ignore_ascii_case("snr"))
    });
    let least = columns.min_by(|one, other| one.1.total_cmp(other.1));
    match (least, output.snr_db_min) {
        (Some((name, snr_db)), Some(limit)) if snr_db.is_nan() || *snr_db < limit => {
            Err(Gate::WrongResult {
                case: case.name.clone(),
                category: FailureCategory::SnrFail,
                excerpt: format!("{name} is {snr_db} dB, and at least {limit} dB are required"),
            })
        }
        (least, _) => Ok(least.map(|(_, snr_db)| *snr_db)),
    }
}

/// The rates of the two passes, if the metric has them.
fn passes_of(row: &OutputRow, metric: &Metric, case: &Case) -> Option<PassRates> {
    let rate = |text: &str| {
        let value = parse_expr(text).ok()?.evaluate(&lookup(row, case)).ok()?;
        Some(value).filter(|value| value.is_finite() && *value > 0.0)
    };
    let passes = metric.passes.as_ref()?;
    Some(PassRates { forward: rate(&passes.forward)?, backward: rate(&passes.backward)? })
}

/// The row of a case: by name, by a shorter name, by parameters, or the only one there is.
fn row_of<'a>(
    rows: &'a [OutputRow],
    case: &Case,
    only: Option<&'a OutputRow>,
) -> Result<&'a OutputRow, Gate> {
    let named = |row: &&OutputRow| row.case.as_deref() == Some(&case.name);
    let nicknamed = |row: &&OutputRow| row.aliases.contains(&case.name);
    let same = |row: &&OutputRow| {
        let equal = |(name, value): (&String, &String)| {
            row.params.get(name).is_some_and(|found| same_value(found, value))
        };
        !case.params.is_empty() && case.params.iter().all(equal)
    };
    // Of two rows that could be the case, neither can be trusted.
    let mut found: Vec<&OutputRow> = rows.iter().filter(named).collect();
    if found.is_empty() {
        found = rows.iter().filter(nicknamed).collect();
    }
    if found.is_empty() {
        found = rows.iter().filter(same).collect();
    }
    if found.is_empty() {
        found.extend(only.filter(|row| !contradicts(row, case)));
    }
    match found[..] {
        [row] => Ok(row),
        [] => {
            // The names of several other rows are not shown: a hidden case may be among them. A
            // single row is the benchmark's result for the case that was requested.
            let others = match rows {
                [row] => match &row.case {
                    Some(name) => {
                        format!("one for {:?}", name.chars().take(NAME_CHARS).collect::<String>())
                    }
                    None => format!("one without a name on line {}", row.line),
                },
                rows => format!("{} other rows", rows.len()),
            };
            let why = format!("the benchmark's output has no row for {}, but {others}", case.name);
            Err(unreadable(&case.name, why))
        }
        [one, other, ..] => {
            let why = format!(
                "the rows on lines {} and {} of the benchmark's output could both be {}",
                one.line, other.line, case.name
            );
            Err(unreadable(&case.name, why))
        }
    }
}

/// Whether a row states another value for a parameter of the case.
fn contradicts(row: &OutputRow, case: &Case) -> bool {
    case.params
        .iter()
        .any(|(name, value)| row.params.get(name).is_some_and(|found| !same_value(found, value)))
}

fn same_value(a: &str, b: &str) -> bool {
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
}

pub(super) fn unreadable(case: &str, excerpt: String) -> Gate {
    Gate::WrongResult { case: case.to_owned(), category: FailureCategory::Other, excerpt }
}

#[cfg(test)]
mod tests {
    use super::*;
    use karve_numerics::case::CaseSet;

    const GOOGLE: &str = include_str!("../../../../testdata/formats/google-benchmark.json");

    fn case(name: &str, params: &[(&str, &str)]) -> Case {
        let params = params.iter();
        Case {
            name: name.to_owned(),
            params: params.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            set: CaseSet::Full,
            minor: false,
            halve: None,
        }
    }

    fn output(format: &str) -> OutputRule {
        OutputRule { format: format.to_owned(), from_file: false, ..OutputRule::default() }
    }

    /// Reads the cases, and compares the values or a part of what is wrong.
    fn check(
        text: &str,
        output: &OutputRule,
        expr: &str,
        cases: &[Case],
        want: Result<&[f64], &str>,
    ) {
        let metric =
            Metric { name: "m".to_owned(), expr: Some(expr.to_owned()), ..Metric::default() };
        match (values(text, output, &metric, cases), want) {
            (Ok(got), Ok(want)) => {
                assert_eq!(got.iter().map(|row| row.value).collect::<Vec<_>>(), want);
            }
            (Err(gate), Err(want)) => {
                assert!(gate.describe().contains(want), "{}", gate.describe());
            }
            (got, want) => panic!("{got:?}, not {want:?}"),
        }
    }

    #[test]
    fn a_case_is_found_by_its_name_a_shorter_one_or_its_parameters() {
        let google = output("google-benchmark");
        let time = [5865.385177722228];
        for found in [
            case("BM_dot/n:4096/real_time", &[]),
            case("BM_dot/n:4096", &[]),
            case("n=4096", &[("n", "4096")]),
        ] {
            check(GOOGLE, &google, "real_time_ns", &[found], Ok(&time));
        }
        let both = [case("a", &[("n", "4096")]), case("b", &[("n", "64")])];
        let times = [5865.385177722228, 55.17037814670674];
        check(GOOGLE, &google, "real_time_ns", &both, Ok(&times));
    }

    #[test]
    fn a_case_that_is_gone_or_failed_is_said_so() {
        let google = output("google-benchmark");
        let gone = [case("n=8192", &[("n", "8192")])];
        let want = "the benchmark's output has no row for n=8192, but 4 other rows";
        check(GOOGLE, &google, "real_time_ns", &gone, Err(want));
        let failed = [case("BM_bad/8", &[])];
        let want = "the benchmark's own check says FAIL (line 58)";
        check(GOOGLE, &google, "real_time_ns", &failed, Err(want));
    }

    #[test]
    fn two_rows_that_could_be_the_case_are_refused() {
        let two = "{\"benchmarks\": [{\"name\": \"t_a[1]\", \"param\": \"1\", \"stats\":
                   {\"min\": 1, \"max\": 1, \"mean\": 1, \"median\": 1}},
                   {\"name\": \"t_b[1]\", \"param\": \"1\", \"stats\":
                   {\"min\": 1, \"max\": 1, \"mean\": 1, \"median\": 1}}]}";
        let pytest = output("pytest-benchmark");
        let want = "the rows on lines 1 and 3 of the benchmark's output could both be 1";
        check(two, &pytest, "median_s", &[case("1", &[])], Err(want));
        let labeled = OutputRule { label: Some("t_b".to_owned()), ..pytest };
        check(two, &labeled, "median_s", &[case("1", &[])], Ok(&[1.0]));
    }

    #[test]
    fn the_only_row_of_a_tool_is_the_only_case_unless_it_says_otherwise() {
        let one = "running 1 test\ntest sum ... bench: 12 ns/iter (+/- 3)\n\
                   test result: ok. 0 passed; 0 failed; 0 ignored; 1 measured; 0 filtered out\n";
        let small = case("n=64", &[("n", "64")]);
        check(one, &output("libtest"), "time_ns", std::slice::from_ref(&small), Ok(&[12.0]));
        let two = [small.clone(), case("n=1", &[("n", "1")])];
        check(
            one,
            &output("libtest"),
            "time_ns",
            &two,
            Err("no row for n=64, but one for \"sum\""),
        );
        let other = "{\"benchmarks\": [{\"name\": \"BM/n:8\", \"real_time\": 1,
                     \"cpu_time\": 1, \"time_unit\": \"ns\"}]}";
        let want = Err("no row for n=64, but one for \"BM/n:8\"");
        check(other, &output("google-benchmark"), "real_time_ns", &[small], want);
    }

    #[test]
    fn a_column_that_an_expression_lacks_is_named_with_those_that_are_there() {
        let google = output("google-benchmark");
        let cases = [case("n=64", &[("n", "64")])];
        let want = "line 12 has no gpu_time_s; it has cpu_time_ns, cpu_time_s, flops";
        check(GOOGLE, &google, "2*n/gpu_time_s", &cases, Err(want));
        check(GOOGLE, &google, "n+0*real_time_s", &cases, Ok(&[64.0]));
    }
}
