//! `METRIC name=number key=value …` lines among any other output.
//!
//! The first pair is the metric; of the others, one names the case, one states the check, and the
//! axes and numbers are parameters. Lines of the same case make one row.

use std::collections::BTreeMap;

use super::fields::{FieldValue, OutputRows, RowLayout};
use super::{CaseCheck, MAX_ROWS, OutputParseError, OutputRow, ParseSpec, fields, names};

/// Reads all METRIC lines.
pub(super) fn parse(text: &str, spec: &ParseSpec) -> Result<Vec<OutputRow>, OutputParseError> {
    let mut cases = MetricLineCases::default();
    for (index, line) in text.lines().enumerate() {
        let mut words = line.split_whitespace();
        if words.next() != Some("METRIC") {
            continue;
        }
        parse_line(words, spec)
            .and_then(|metric| cases.add(metric, index + 1))
            .map_err(|reason| OutputParseError::at(text, index + 1, reason))?;
    }
    let mut rows = OutputRows::default();
    for case in cases.in_order {
        let line = case.line;
        rows.add(text, line, case.into_row(spec))?;
    }
    Ok(rows.finish())
}

/// The contents of one line.
#[derive(Default)]
struct MetricLine {
    /// Absent when the line only states the check.
    metric: Option<(String, f64)>,
    case: Option<String>,
    check: Option<CaseCheck>,
    params: BTreeMap<String, String>,
}

fn parse_line<'a>(
    mut words: impl Iterator<Item = &'a str>,
    spec: &ParseSpec,
) -> Result<MetricLine, String> {
    let first = words.next().ok_or("METRIC has nothing after it; write METRIC name=number")?;
    let (name, value) = split_pair(first)?;
    let mut line = MetricLine::default();
    if is_check(name, spec) {
        line.check = Some(parse_check(name, value)?);
    } else if is_case(name, spec) || names::names_case(name) || names::is_axis(name) {
        let reason = "names the case, but the metric must come first: METRIC name=number";
        return Err(format!("\"{name}\" {reason}"));
    } else {
        let number = value.parse();
        let number = number.map_err(|_| format!("\"{first}\" is not name=number"))?;
        line.metric = Some((name.to_owned(), number));
    }
    let mut case_name = None;
    for word in words {
        let (key, value) = split_pair(word)?;
        if is_case(key, spec) {
            if let Some(other) = case_name.replace(key) {
                return Err(format!("both \"{other}\" and \"{key}\" name the case"));
            }
            line.case = Some(value.to_owned());
            if !names::is_axis(key) {
                continue;
            }
        } else if is_check(key, spec) {
            line.check = worse(line.check, Some(parse_check(key, value)?));
            continue;
        }
        let is_kept = names::is_axis(key) || value.parse::<f64>().is_ok();
        if is_kept && line.params.insert(key.to_owned(), value.to_owned()).is_some() {
            return Err(format!("\"{key}\" is given twice on this line"));
        }
    }
    match (spec.case_column, &line.case) {
        (Some(wanted), None) => Err(format!("the line has no {wanted}=…, which names its case")),
        (Some(_), Some(_)) | (None, _) => Ok(line),
    }
}

fn split_pair(word: &str) -> Result<(&str, &str), String> {
    match word.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok((name, value)),
        Some(_) | None => Err(format!("\"{word}\" is not of the form name=value")),
    }
}

fn is_case(name: &str, spec: &ParseSpec) -> bool {
    spec.case_column.map_or_else(|| names::names_case(name), |column| column == name)
}

fn is_check(name: &str, spec: &ParseSpec) -> bool {
    spec.check_column.map_or_else(|| names::states_check(name), |column| column == name)
}

fn parse_check(name: &str, value: &str) -> Result<CaseCheck, String> {
    fields::parse_check(name, &FieldValue::Text(value.to_owned()))
}

/// One FAIL overrides any PASS.
fn worse(one: Option<CaseCheck>, other: Option<CaseCheck>) -> Option<CaseCheck> {
    if one == Some(CaseCheck::Fail) { one } else { other.or(one) }
}

/// The cases seen so far.
#[derive(Default)]
struct MetricLineCases {
    in_order: Vec<MetricLineCase>,
    by_key: BTreeMap<Option<String>, usize>,
}

/// The combined lines of one case.
#[derive(Default)]
struct MetricLineCase {
    key: Option<String>,
    line: usize,
    check: Option<CaseCheck>,
    /// Parameters with the line that gave them.
    params: BTreeMap<String, (String, usize)>,
    metrics: Vec<(String, f64)>,
    /// Canonical names with the line that gave them.
    metric_lines: BTreeMap<String, usize>,
}

impl MetricLineCases {
    fn add(&mut self, said: MetricLine, line: usize) -> Result<(), String> {
        let key = said.case.clone().or_else(|| names::axes_key(&said.params));
        let index = match self.by_key.get(&key) {
            Some(index) => *index,
            None if self.in_order.len() >= MAX_ROWS => {
                return Err(format!("there are more than {MAX_ROWS} rows"));
            }
            None => {
                self.by_key.insert(key.clone(), self.in_order.len());
                self.in_order.push(MetricLineCase::new(key, line));
                self.in_order.len() - 1
            }
        };
        self.in_order[index].add(said, line)
    }
}

impl MetricLineCase {
    fn new(key: Option<String>, line: usize) -> Self {
        Self { key, line, ..Self::default() }
    }

    fn add(&mut self, said: MetricLine, line: usize) -> Result<(), String> {
        self.check = worse(self.check, said.check);
        for (name, value) in said.params {
            let (first, first_line) =
                self.params.entry(name.clone()).or_insert_with(|| (value.clone(), line));
            if *first != value {
                return Err(format!(
                    "{name}={value} contradicts {name}={first} of the same case on line \
                     {first_line}; a measured number needs its own METRIC line"
                ));
            }
        }
        let Some((name, number)) = said.metric else {
            return Ok(());
        };
        let canonical = names::canonical(&name).unwrap_or(&name).to_owned();
        if let Some(first) = self.metric_lines.insert(canonical, line) {
            return Err(format!("\"{name}\" of the same case is already on line {first}"));
        }
        self.metrics.push((name, number));
        Ok(())
    }

    fn into_row(self, spec: &ParseSpec) -> Result<OutputRow, String> {
        if let (Some(wanted), None) = (spec.check_column, self.check) {
            return Err(format!("no METRIC line of this case has {wanted}=…, which is its check"));
        }
        let (mut names, cells): (Vec<String>, Vec<FieldValue>) = self
            .metrics
            .into_iter()
            .map(|(name, number)| (name, FieldValue::Number(number)))
            .unzip();
        let mut cells = cells;
        let check_name = spec.check_column.unwrap_or("check");
        if let Some(check) = self.check {
            names.push(check_name.to_owned());
            cells.push(FieldValue::Flag(check == CaseCheck::Pass));
        }
        let check_column = self.check.map(|_| check_name);
        let layout = RowLayout::of(names, &ParseSpec { case_column: None, check_column, ..*spec })?;
        let mut row = layout.row(&cells, self.line)?;
        row.case = self.key;
        row.params = self.params.into_iter().map(|(name, (value, _))| (name, value)).collect();
        Ok(row)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{render, spec};
    use super::super::{OutputFormat, parse};
    use super::*;

    fn check(text: &str, want: &str) {
        assert_eq!(render(&parse(text, &spec(OutputFormat::MetricLines))), want, "{text}");
    }

    #[test]
    fn a_metric_line_gives_a_row_with_case_check_and_params() {
        check(
            "log\n  METRIC time_ms=1.25 case=small check=PASS M=256 reps=20 dtype=bf16\r\nend",
            "2 small Pass [M=256 reps=20] time_ms=1.25",
        );
        check("METRIC x1=1", "1 - NotStated [] x1=1");
        check("METRIC x1=1 N=2 M=3", "1 M=3,N=2 NotStated [M=3 N=2] x1=1");
    }

    #[test]
    fn lines_of_the_same_case_make_one_row() {
        check(
            "METRIC fwd_ms=2 case=a M=1\nMETRIC fwd_ms=5 case=b\nMETRIC fwd_ms_std=0.5 case=a\n\
             METRIC check=FAIL case=b\nMETRIC x1=3 case=a correct=1",
            "1 a Pass [M=1] Forward Time (ms)=2; Forward Time (ms)_rel_std=0.25; x1=3\n\
             2 b Fail [] Forward Time (ms)=5",
        );
    }

    #[test]
    fn one_fail_outweighs_every_pass() {
        let fail = "METRIC x1=1 case=a check=FAIL\n";
        let pass = "METRIC x2=1 case=a check=PASS\n";
        check(&format!("{fail}{pass}"), "1 a Fail [] x1=1; x2=1");
        check(&format!("{pass}{fail}"), "1 a Fail [] x1=1; x2=1");
    }

    #[test]
    fn the_same_metric_twice_for_a_case_is_refused() {
        let twice = "line 2: \"forward_ms_mean\" of the same case is already on line 1";
        check("METRIC fwd_ms=1 case=a\nMETRIC forward_ms_mean=1 case=a", twice);
        check(
            "METRIC x1=1 case=a M=1\nMETRIC x2=1 case=a M=2",
            "line 2: M=2 contradicts M=1 of the same case on line 1; \
             a measured number needs its own METRIC line",
        );
    }

    #[test]
    fn garbage_behind_metric_is_refused_on_its_line() {
        check("x\nMETRIC", "line 2: METRIC has nothing after it; write METRIC name=number");
        check("METRIC time_ms", "line 1: \"time_ms\" is not of the form name=value");
        check("METRIC time_ms=fast", "line 1: \"time_ms=fast\" is not name=number");
        check("METRIC time_ms=1.2ms", "line 1: \"time_ms=1.2ms\" is not name=number");
        check("METRIC time_ms=1 ms", "line 1: \"ms\" is not of the form name=value");
        check("METRIC x1=1 M=1 M=2", "line 1: \"M\" is given twice on this line");
        check("METRIC x1=1 case=a name=b", "line 1: both \"case\" and \"name\" name the case");
        check(
            "METRIC M=256 time_ms=1",
            "line 1: \"M\" names the case, but the metric must come first: METRIC name=number",
        );
        check("METRIC x1=1 check=perhaps", "line 1: \"check\" is \"perhaps\", not PASS or FAIL");
    }

    #[test]
    fn a_nan_or_a_negative_time_needs_a_fail() {
        check(
            "METRIC x1=nan case=a",
            "line 1: \"x1\" is NaN, which only a row that says FAIL may have",
        );
        check("METRIC x1=nan case=a check=FAIL", "1 a Fail [] ");
        check("METRIC t_ms=-1 case=a", "line 1: \"t_ms\" is -1; it must not be negative");
    }

    #[test]
    fn other_words_that_begin_like_metric_are_log_lines() {
        check("METRICS a b\nMETRIC: x\nmy METRIC y\nMETRIC x1=1", "4 - NotStated [] x1=1");
    }

    #[test]
    fn configured_names_must_be_given() {
        let spec = ParseSpec {
            case_column: Some("M"),
            check_column: Some("right"),
            ..spec(OutputFormat::MetricLines)
        };
        let check = |text: &str, want: &str| assert_eq!(render(&parse(text, &spec)), want);
        check("METRIC x1=1 M=4 right=ok", "1 4 Pass [M=4] x1=1");
        check("METRIC x1=1 N=4", "line 1: the line has no M=…, which names its case");
        check(
            "METRIC x1=1 M=4 check=1",
            "line 1: no METRIC line of this case has right=…, which is its check",
        );
    }
}
