//! What one run of a project's benchmark shows: how it is called, its format, metric and cases.
//!
//! ```text
//! proposal ──▶ attempts ──▶ (run one) ──▶ read_output ──▶ proposal with cases that exist
//! ```

use super::printed::MetricGuess;
use super::{CASES_MAX, ConfigProposal, printed};
use karve_core::charter::Better;
use karve_harness::commands::output::{self, CaseCheck, OutputFormat, OutputRow, ParseSpec};

/// Formats that a benchmark may print although nothing in the project shows it.
const OTHERS: [OutputFormat; 4] = [
    OutputFormat::MetricLines,
    OutputFormat::GoogleBenchmark,
    OutputFormat::JsonLines,
    OutputFormat::Csv,
];

/// One way to call the benchmark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BenchAttempt {
    /// The command.
    pub bench: String,
    /// The cases that it is called with.
    pub cases: Vec<String>,
}

/// The ways in which the benchmark of a proposal may be called, the likeliest first.
pub fn attempts(proposal: &ConfigProposal) -> Vec<BenchAttempt> {
    let (bench, cases) = (&proposal.bench, &proposal.cases);
    let as_guessed = BenchAttempt { bench: bench.clone(), cases: cases.clone() };
    let plain = without_case(bench);
    if plain == *bench {
        return vec![as_guessed];
    }
    let lower = cases.iter().map(|case| case.to_lowercase()).collect();
    let in_lower_case = BenchAttempt { bench: bench.clone(), cases: lower };
    let alone = BenchAttempt { bench: plain, cases: vec!["default".to_owned()] };
    let mut all = vec![as_guessed, in_lower_case, alone];
    all.dedup();
    all
}

/// A command without the arguments that select a case.
pub fn without_case(command: &str) -> String {
    let words = command.split(' ').filter(|word| !word.contains("{case}") && *word != "{seed}");
    words.collect::<Vec<_>>().join(" ")
}

/// Takes format, metric and cases from the output of one run, or says why it cannot be used.
pub fn read_output(
    proposal: &mut ConfigProposal,
    attempt: &BenchAttempt,
    text: &str,
) -> Result<(), String> {
    let own = serde_json::from_value(proposal.format.as_str().into()).ok();
    let formats = own.into_iter().chain(OTHERS);
    let mut why = None;
    for format in formats {
        match rows_in(proposal, format, text) {
            Ok(rows) => match metric_of(proposal, format, &rows) {
                Some(metric) => return take(proposal, attempt, (format, metric, rows)),
                None => why.get_or_insert("its rows have no time and no rate".to_owned()),
            },
            Err(error) => why.get_or_insert(error),
        };
    }
    let Some(found) = printed::find(text) else {
        return Err(why.unwrap_or_default());
    };
    let guessed = ConfigProposal { pattern: Some(found.pattern), ..proposal.clone() };
    let rows = rows_in(&guessed, OutputFormat::Text, text)?;
    proposal.pattern = guessed.pattern;
    take(proposal, attempt, (OutputFormat::Text, found.metric, rows))
}

/// The rows of an output, read as a proposal says.
pub(super) fn parse_rows(
    proposal: &ConfigProposal,
    format: OutputFormat,
    text: &str,
) -> Result<Vec<OutputRow>, String> {
    let spec = ParseSpec {
        format,
        case_column: None,
        check_column: None,
        label: proposal.label.as_deref(),
        pattern: proposal.pattern.as_deref(),
    };
    output::parse(text, &spec).map_err(|error| error.to_string())
}

/// The name of the case that a row is about; empty if it has none.
pub(super) fn case_name(row: &OutputRow) -> String {
    let params = row.params.iter().map(|(name, value)| format!("{name}={value}"));
    row.case.clone().unwrap_or_else(|| params.collect::<Vec<_>>().join(","))
}

fn rows_in(
    proposal: &ConfigProposal,
    format: OutputFormat,
    text: &str,
) -> Result<Vec<OutputRow>, String> {
    let mut rows = parse_rows(proposal, format, text)?;
    // A case that fails on the unchanged kernel proves nothing.
    rows.retain(|row| row.check != CaseCheck::Fail);
    if rows.is_empty() { Err("its own check fails on every case".to_owned()) } else { Ok(rows) }
}

/// The proposed metric if all rows have it, otherwise the first time or rate that they have.
fn metric_of(
    proposal: &ConfigProposal,
    format: OutputFormat,
    rows: &[OutputRow],
) -> Option<MetricGuess> {
    let proposed = MetricGuess {
        name: proposal.metric_name.clone(),
        unit: proposal.metric_unit.clone(),
        better: proposal.better,
    };
    let have = |name: &str| rows.iter().all(|row| row.values.contains_key(name));
    let is_derived = proposed.name == "latency" && format.time_column().is_some_and(have);
    if is_derived || have(&proposed.name) || proposed.name.starts_with("Combined") {
        return Some(proposed);
    }
    if format.time_column().is_some_and(have) {
        return Some(MetricGuess {
            name: "latency".to_owned(),
            unit: "us".to_owned(),
            better: Better::Lower,
        });
    }
    let names = rows.first()?.values.keys();
    names.filter(|name| have(name)).find_map(|name| super::recipe::metric_by_name(name))
}

/// Takes what was read, if it belongs to the cases that were asked for.
fn take(
    proposal: &mut ConfigProposal,
    attempt: &BenchAttempt,
    (format, metric, rows): (OutputFormat, MetricGuess, Vec<OutputRow>),
) -> Result<(), String> {
    if attempt.bench.contains("{case}") || attempt.bench.contains(" {") {
        let is_asked = |row: &OutputRow| {
            let name = case_name(row);
            name.is_empty() || attempt.cases.contains(&name)
        };
        if rows.len() != 1 || !rows.iter().all(is_asked) {
            return Err("it does not measure the case that it is called with".to_owned());
        }
        proposal.cases.clone_from(&attempt.cases);
    } else {
        let names: Vec<String> = rows.iter().map(case_name).take(CASES_MAX).collect();
        proposal.cases = match &names[..] {
            [one] if one.is_empty() => vec!["default".to_owned()],
            names if names.iter().any(String::is_empty) => {
                return Err("its rows have no names".to_owned());
            }
            names => names.to_vec(),
        };
    }
    proposal.bench.clone_from(&attempt.bench);
    proposal.format = format.name().to_owned();
    if format != OutputFormat::Text {
        proposal.pattern = None;
    }
    proposal.metric_name = metric.name;
    proposal.metric_unit = metric.unit;
    proposal.better = metric.better;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::found;
    use super::super::{ConfigProposal, propose};
    use super::*;

    fn proposal() -> ConfigProposal {
        let make = "test: t.o\n\tcc -o $@ $<\nbench: b.o\n\tcc -o $@ $<\n";
        propose(&found(&[("Makefile", make), ("dot.c", "for (;;) s += a[i];")]))
    }

    fn check(at: usize, text: &str, want: Result<[&str; 4], &str>) {
        let mut proposal = proposal();
        let attempt = attempts(&proposal).remove(at);
        let read = read_output(&mut proposal, &attempt, text);
        let cases = proposal.cases.join(" ");
        let got = [&*proposal.bench, &*proposal.format, &*proposal.metric_name, &*cases];
        let got = read.as_ref().map(|()| got).map_err(String::as_str);
        match (got, want) {
            (Err(got), Err(want)) => assert!(got.contains(want), "{got}"),
            (got, want) => assert_eq!(got, want, "{text}"),
        }
    }

    #[test]
    fn a_benchmark_is_called_with_a_case_then_alone() {
        let tried = attempts(&proposal());
        let said: Vec<(&str, &str)> =
            tried.iter().map(|one| (one.bench.as_str(), one.cases[0].as_str())).collect();
        let with = "./bench {case} {seed}";
        assert_eq!(said, [(with, "N=65536"), (with, "n=65536"), ("./bench", "default")]);
    }

    #[test]
    fn cases_are_those_that_the_benchmark_prints() {
        let metric = "METRIC time_us=3 case=a\nMETRIC time_us=4 case=b check=FAIL\n";
        check(2, metric, Ok(["./bench", "metric", "time_us", "a"]));
        let text = "dot 10: 3.5 us\ndot 20: 4.5 us\n";
        check(2, text, Ok(["./bench", "text", "time_us", "10 20"]));
        let csv = "case,time_ms\nx,1\ny,2\n";
        check(2, csv, Ok(["./bench", "csv", "time_ms", "x y"]));
        check(2, "METRIC time_us=3\n", Ok(["./bench", "metric", "time_us", "default"]));
        check(2, "done\n", Err("no rows"));
    }

    #[test]
    fn a_benchmark_that_ignores_its_case_is_called_alone() {
        let with = "./bench {case} {seed}";
        check(
            0,
            "METRIC time_us=3 case=N=65536\n",
            Ok([with, "metric", "time_us", "N=65536 N=1048576"]),
        );
        check(0, "dot 10: 3.5 us\ndot 20: 4.5 us\n", Err("the case that it is called with"));
    }
}
