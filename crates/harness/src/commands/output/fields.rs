//! From named cells to a row: which name is the case, the check, an axis, a metric or its spread.
//!
//! A [`RowLayout`] gives each name its role once; the rows of a CSV share one. Metric names have
//! aliases, so two columns may mean the same; that is refused, never resolved.

use std::collections::{BTreeMap, BTreeSet};

use super::names::{SpreadUnit, TimeUnit, canonical, is_axis, is_snr};
use super::{CaseCheck, MAX_ROWS, OutputParseError, OutputRow, ParseSpec, names};

/// The stored value of an infinite signal-to-noise ratio (no error at all), in dB.
///
/// A finite number keeps every value finite; no float format reaches it (f64 ends near 320 dB).
const SNR_EXACT_DB: f64 = 1000.0;

/// The maximum number of names in one row.
const MAX_FIELDS: usize = 1_000;

/// The value of a name.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum FieldValue {
    Number(f64),
    Flag(bool),
    /// Empty text means that there is no value.
    Text(String),
}

impl FieldValue {
    fn text(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Flag(flag) => flag.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}

/// Whether text under a metric's name is a mistake or just not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strictness {
    KnownMetric,
    AnyColumn,
}

#[derive(Clone, Debug, PartialEq)]
enum FieldRole {
    Case,
    Check,
    Axis,
    /// A column without a name, such as the index that pandas writes.
    Unnamed,
    Metric {
        target: String,
        strictness: Strictness,
    },
    /// A spread; an absolute one is divided by the mean in that other column.
    Spread {
        target: String,
        mean: Option<usize>,
    },
}

/// The roles of the names of a row.
#[derive(Clone, Debug)]
pub(super) struct RowLayout {
    names: Vec<String>,
    roles: Vec<FieldRole>,
}

impl RowLayout {
    /// Gives each name its role, or reports why the names contradict each other or the spec.
    pub(super) fn of(names: Vec<String>, spec: &ParseSpec) -> Result<Self, String> {
        if names.len() > MAX_FIELDS {
            return Err(format!("there are more than {MAX_FIELDS} columns"));
        }
        let mut seen = BTreeSet::new();
        if let Some(twice) = names.iter().find(|name| !seen.insert(name.as_str())) {
            return Err(format!("the column \"{twice}\" appears twice"));
        }
        let case = case_index(&names, spec)?;
        let check = check_index(&names, spec)?;
        if case.is_some() && case == check {
            return Err("one column cannot be both the case and the check".into());
        }
        let means = means_of(&names);
        let role = |(index, name): (usize, &String)| match index {
            _ if Some(index) == case => FieldRole::Case,
            _ if Some(index) == check => FieldRole::Check,
            _ if is_axis(name) => FieldRole::Axis,
            _ if name.is_empty() => FieldRole::Unnamed,
            _ => metric_role(name, &names, &means),
        };
        let roles: Vec<FieldRole> = names.iter().enumerate().map(role).collect();
        refuse_shared_targets(&names, &roles)?;
        Ok(Self { names, roles })
    }

    /// How many cells a row must have.
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// Builds the row from these cells, one for each name.
    pub(super) fn row(&self, cells: &[FieldValue], line: usize) -> Result<OutputRow, String> {
        let check = self.check(cells)?;
        let mut row = OutputRow::new(None, check, line);
        for ((name, role), cell) in self.names.iter().zip(&self.roles).zip(cells) {
            match role {
                FieldRole::Case => {
                    row.case = Some(case_text(name, cell)?);
                    if is_axis(name) {
                        row.params.insert(name.clone(), cell.text());
                    }
                }
                FieldRole::Check | FieldRole::Unnamed => {}
                FieldRole::Axis => {
                    let text = cell.text();
                    if !text.trim().is_empty() {
                        row.params.insert(name.clone(), text);
                    }
                }
                FieldRole::Metric { target, strictness } => {
                    if let Some(number) = tolerate(number(name, cell, *strictness), check)? {
                        add_value(&mut row, target, number)?;
                    }
                }
                FieldRole::Spread { target, mean } => {
                    let spread = tolerate(self.relative_spread(name, cell, *mean, cells), check)?;
                    if let Some(spread) = spread {
                        add_value(&mut row, target, spread)?;
                    }
                }
            }
        }
        row.case = row.case.or_else(|| names::axes_key(&row.params));
        Ok(row)
    }

    fn check(&self, cells: &[FieldValue]) -> Result<CaseCheck, String> {
        let Some(index) = self.roles.iter().position(|role| *role == FieldRole::Check) else {
            return Ok(CaseCheck::NotStated);
        };
        match cells.get(index) {
            Some(cell) => parse_check(&self.names[index], cell),
            None => Ok(CaseCheck::NotStated),
        }
    }

    fn relative_spread(
        &self,
        name: &str,
        cell: &FieldValue,
        mean: Option<usize>,
        cells: &[FieldValue],
    ) -> Result<Option<f64>, String> {
        let Some(spread) = number(name, cell, Strictness::KnownMetric)? else {
            return Ok(None);
        };
        if spread < 0.0 {
            return Err(format!("\"{name}\" is {spread}; a spread must not be negative"));
        }
        let Some(mean) = mean else {
            return Ok(Some(spread / 100.0));
        };
        let mean_cell = cells.get(mean).unwrap_or(&FieldValue::Number(f64::NAN));
        let Some(mean) = number(&self.names[mean], mean_cell, Strictness::KnownMetric)? else {
            return Ok(None);
        };
        match (spread, mean) {
            (0.0, 0.0) => Ok(Some(0.0)),
            (_, 0.0) => Err(format!("\"{name}\" cannot be made relative because its mean is 0")),
            (_, _) => Ok(Some(spread / mean.abs())),
        }
    }
}

fn case_index(names: &[String], spec: &ParseSpec) -> Result<Option<usize>, String> {
    let Some(wanted) = spec.case_column else {
        let position = |known: &&str| names.iter().position(|n| n.eq_ignore_ascii_case(known));
        return Ok(names::CASE_NAMES.iter().find_map(position));
    };
    if is_snr(wanted) {
        return Err(format!("\"{wanted}\" is a measured value and cannot name the case"));
    }
    find_column(names, wanted, "case").map(Some)
}

fn check_index(names: &[String], spec: &ParseSpec) -> Result<Option<usize>, String> {
    if let Some(wanted) = spec.check_column {
        return find_column(names, wanted, "check").map(Some);
    }
    let mut stating = names.iter().enumerate().filter(|(_, name)| names::states_check(name));
    let first = stating.next();
    match (first, stating.next()) {
        (Some((_, one)), Some((_, other))) => {
            Err(format!("both \"{one}\" and \"{other}\" state the check; name one of them"))
        }
        (first, _) => Ok(first.map(|(index, _)| index)),
    }
}

fn find_column(names: &[String], wanted: &str, what: &str) -> Result<usize, String> {
    names
        .iter()
        .position(|name| name == wanted)
        .ok_or_else(|| format!("there is no column \"{wanted}\", the {what} column"))
}

/// The name under which a spread looks for its mean: the metric itself, or without `_mean`.
fn means_of(names: &[String]) -> BTreeMap<&str, usize> {
    let mut means = BTreeMap::new();
    for (index, name) in names.iter().enumerate() {
        if let Some(base) = name.strip_suffix("_mean") {
            means.entry(base).or_insert(index);
        }
    }
    for (index, name) in names.iter().enumerate() {
        means.insert(canonical(name).unwrap_or(name), index);
    }
    means
}

fn metric_role(name: &str, all: &[String], means: &BTreeMap<&str, usize>) -> FieldRole {
    if let Some((base, unit)) = names::split_spread(name) {
        let base_target = canonical(base).unwrap_or(base);
        let mean = means.get(base_target).copied();
        let metric = mean.map_or(base_target, |m| canonical(&all[m]).unwrap_or(&all[m]));
        let target = format!("{metric}_rel_std");
        match (unit, mean) {
            (SpreadUnit::Percent, _) => return FieldRole::Spread { target, mean: None },
            (SpreadUnit::Absolute, Some(_)) => return FieldRole::Spread { target, mean },
            // Without its mean it cannot be made relative and remains an ordinary value.
            (SpreadUnit::Absolute, None) => {}
        }
    }
    let known = canonical(name);
    let strictness = if known.is_some() || is_snr(name) {
        Strictness::KnownMetric
    } else {
        Strictness::AnyColumn
    };
    FieldRole::Metric { target: known.unwrap_or(name).to_owned(), strictness }
}

fn refuse_shared_targets(names: &[String], roles: &[FieldRole]) -> Result<(), String> {
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, role) in names.iter().zip(roles) {
        let target = match role {
            FieldRole::Metric { target, .. } | FieldRole::Spread { target, .. } => target,
            FieldRole::Case | FieldRole::Check | FieldRole::Axis | FieldRole::Unnamed => continue,
        };
        if let Some(other) = seen.insert(target, name) {
            return Err(format!("the columns \"{other}\" and \"{name}\" both mean \"{target}\""));
        }
    }
    Ok(())
}

fn case_text(name: &str, cell: &FieldValue) -> Result<String, String> {
    let text = cell.text();
    if text.trim().is_empty() {
        return Err(format!("\"{name}\" is empty, but it names the case"));
    }
    Ok(text)
}

/// Parses a statement of correctness.
pub(super) fn parse_check(name: &str, cell: &FieldValue) -> Result<CaseCheck, String> {
    let text = match cell {
        FieldValue::Flag(true) | FieldValue::Number(1.0) => return Ok(CaseCheck::Pass),
        FieldValue::Flag(false) | FieldValue::Number(0.0) => return Ok(CaseCheck::Fail),
        FieldValue::Number(_) | FieldValue::Text(_) => cell.text(),
    };
    match text.trim().to_ascii_lowercase().as_str() {
        "pass" | "passed" | "ok" | "true" | "1" | "1.0" => Ok(CaseCheck::Pass),
        "fail" | "failed" | "error" | "false" | "0" | "0.0" => Ok(CaseCheck::Fail),
        _ => Err(format!("\"{name}\" is \"{}\", not PASS or FAIL", shorten(&text))),
    }
}

fn number(name: &str, cell: &FieldValue, strictness: Strictness) -> Result<Option<f64>, String> {
    let text = match cell {
        FieldValue::Number(number) => return Ok(Some(*number)),
        FieldValue::Flag(_) => return Ok(None),
        FieldValue::Text(text) => text.trim(),
    };
    if text.is_empty() {
        return Ok(None);
    }
    if let Ok(number) = text.parse() {
        return Ok(Some(number));
    }
    if names::has_unit(text) {
        let (text, hint) = (shorten(text), "put the unit into the column name");
        return Err(format!("\"{name}\" is \"{text}\", a number with a unit; {hint}"));
    }
    match strictness {
        Strictness::KnownMetric => {
            Err(format!("\"{name}\" is \"{}\", which is not a number", shorten(text)))
        }
        Strictness::AnyColumn => Ok(None),
    }
}

fn shorten(text: &str) -> String {
    text.chars().take(40).collect()
}

/// A failed row may have anything in place of its numbers; that counts as missing.
fn tolerate(read: Result<Option<f64>, String>, check: CaseCheck) -> Result<Option<f64>, String> {
    match check {
        CaseCheck::Fail => Ok(read.unwrap_or_default()),
        CaseCheck::Pass | CaseCheck::NotStated => read,
    }
}

/// Adds a number to the row if it is one that such a row may have.
pub(super) fn add_value(row: &mut OutputRow, name: &str, number: f64) -> Result<(), String> {
    let number = if is_snr(name) && number == f64::INFINITY { SNR_EXACT_DB } else { number };
    match row.check {
        CaseCheck::Fail if !number.is_finite() => return Ok(()),
        CaseCheck::Fail => {}
        CaseCheck::Pass | CaseCheck::NotStated => refuse_nonsense(name, number)?,
    }
    row.values.insert(name.to_owned(), number);
    Ok(())
}

/// Adds a time under `<name>_s`, and in its own unit under that name too; it must be above zero.
pub(super) fn add_time(
    row: &mut OutputRow,
    name: &str,
    time: f64,
    unit: TimeUnit,
) -> Result<(), String> {
    if row.check != CaseCheck::Fail && !(time.is_finite() && time > 0.0) {
        return Err(format!("\"{name}\" is {time}; a time must be above 0"));
    }
    add_span(row, name, time, unit)
}

/// Adds a span of time, such as a spread, that may be 0.
pub(super) fn add_span(
    row: &mut OutputRow,
    name: &str,
    time: f64,
    unit: TimeUnit,
) -> Result<(), String> {
    if unit != TimeUnit::Seconds {
        add_value(row, &format!("{name}_{}", unit.word()), time)?;
    }
    add_value(row, &format!("{name}_s"), time * unit.seconds())
}

fn refuse_nonsense(name: &str, number: f64) -> Result<(), String> {
    if !number.is_finite() {
        return Err(format!("\"{name}\" is {number}, which only a row that says FAIL may have"));
    }
    if number < 0.0 && names::is_never_negative(name) {
        return Err(format!("\"{name}\" is {number}; it must not be negative"));
    }
    Ok(())
}

/// The rows read so far, each case once.
#[derive(Debug, Default)]
pub(super) struct OutputRows {
    rows: Vec<OutputRow>,
    lines: BTreeMap<Option<String>, usize>,
}

impl OutputRows {
    /// Adds what was read from a line of the text, or refuses that line.
    pub(super) fn add(
        &mut self,
        text: &str,
        line: usize,
        row: Result<OutputRow, String>,
    ) -> Result<(), OutputParseError> {
        let added = row.and_then(|row| self.push(row));
        added.map_err(|reason| OutputParseError::at(text, line, reason))
    }

    /// Adds a row, or reports why it is refused.
    pub(super) fn push(&mut self, row: OutputRow) -> Result<(), String> {
        if self.rows.len() >= MAX_ROWS {
            return Err(format!("there are more than {MAX_ROWS} rows"));
        }
        if let Some(line) = self.lines.insert(row.case.clone(), row.line) {
            return Err(match &row.case {
                Some(case) => format!(
                    "the case \"{}\" is already on line {line}; each case may appear once",
                    shorten(case)
                ),
                None => format!(
                    "neither this row nor the one on line {line} names its case; \
                     add a case column or geometry columns"
                ),
            });
        }
        self.rows.push(row);
        Ok(())
    }

    /// All rows in the order of the text.
    pub(super) fn finish(self) -> Vec<OutputRow> {
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::super::OutputFormat;
    use super::*;

    const SPEC: ParseSpec<'static> = ParseSpec {
        format: OutputFormat::Csv,
        case_column: None,
        check_column: None,
        label: None,
        pattern: None,
    };

    type Want<'a> = Result<(Option<&'a str>, &'a [(&'a str, f64)]), &'a str>;

    /// Builds one row from `name=cell` pairs and compares its case and values, or the refusal.
    fn check(pairs: &[(&str, &str)], want: Want) {
        let names = pairs.iter().map(|(name, _)| (*name).to_owned()).collect();
        let cells: Vec<FieldValue> =
            pairs.iter().map(|(_, c)| FieldValue::Text((*c).to_owned())).collect();
        let got = RowLayout::of(names, &SPEC).and_then(|layout| layout.row(&cells, 1));
        let got = got.map(|row| (row.case, row.values));
        let want = want.map_err(str::to_owned).map(|(case, values)| {
            let values = values.iter().map(|(name, value)| ((*name).to_owned(), *value));
            (case.map(str::to_owned), values.collect::<BTreeMap<_, _>>())
        });
        assert_eq!(got, want);
    }

    #[test]
    fn every_alias_is_stored_under_its_canonical_metric() {
        for (metric, aliases) in names::METRICS {
            for alias in aliases {
                check(&[(alias, "2")], Ok((None, &[(metric, 2.0)])));
            }
            check(&[(&metric.to_uppercase(), "2")], Ok((None, &[(metric, 2.0)])));
        }
    }

    #[test]
    fn every_way_to_say_pass_or_fail_is_understood() {
        for (said, want) in [
            ("true", CaseCheck::Pass),
            ("1", CaseCheck::Pass),
            ("Pass", CaseCheck::Pass),
            ("OK", CaseCheck::Pass),
            ("False", CaseCheck::Fail),
            ("0", CaseCheck::Fail),
            ("FAIL", CaseCheck::Fail),
        ] {
            assert_eq!(parse_check("Check", &FieldValue::Text(said.into())), Ok(want));
        }
        assert_eq!(parse_check("c", &FieldValue::Flag(false)), Ok(CaseCheck::Fail));
        assert_eq!(parse_check("c", &FieldValue::Number(1.0)), Ok(CaseCheck::Pass));
        let unclear = Err("\"c\" is \"maybe\", not PASS or FAIL".to_owned());
        assert_eq!(parse_check("c", &FieldValue::Text("maybe".into())), unclear);
        for name in ["correct", "check", "check_pass", "Correctness"] {
            check(&[(name, "PASS"), ("ms", "1")], Ok((None, &[("ms", 1.0)])));
        }
    }

    #[test]
    fn spreads_become_relative_to_their_mean() {
        let mean = ("fwd_tflops_mean", "200");
        let want: &[(&str, f64)] = &[("Forward TFLOPS", 200.0), ("Forward TFLOPS_rel_std", 0.01)];
        for spread in [
            ("fwd_tflops_std", "2"),
            ("fwd_tflops_stddev", "2"),
            ("Forward TFLOPS_stddev", "2"),
            ("fwd_tflops_mean_std_pct", "1"),
            ("Forward TFLOPS_stddev_pct", "1"),
        ] {
            check(&[mean, spread], Ok((None, want)));
        }
    }

    #[test]
    fn a_spread_of_an_unknown_metric_finds_its_mean_by_name() {
        let want: &[(&str, f64)] = &[("lat_mean", -4.0), ("lat_mean_rel_std", 0.5)];
        check(&[("lat_mean", "-4"), ("lat_std", "2")], Ok((None, want)));
        check(&[("alone_std", "2")], Ok((None, &[("alone_std", 2.0)])));
        check(&[("alone_std_pct", "2")], Ok((None, &[("alone_rel_std", 0.02)])));
    }

    #[test]
    fn a_spread_that_makes_no_sense_is_refused() {
        let zero = "\"xx_std\" cannot be made relative because its mean is 0";
        check(&[("xx", "0"), ("xx_std", "1")], Err(zero));
        check(&[("xx", "0"), ("xx_std", "0")], Ok((None, &[("xx", 0.0), ("xx_rel_std", 0.0)])));
        let negative = "\"xx_std\" is -1; a spread must not be negative";
        check(&[("xx", "1"), ("xx_std", "-1")], Err(negative));
    }

    #[test]
    fn two_columns_that_mean_the_same_are_refused() {
        let both =
            "the columns \"fwd_ms\" and \"Forward Time (ms)\" both mean \"Forward Time (ms)\"";
        check(&[("fwd_ms", "1"), ("Forward Time (ms)", "1")], Err(both));
        let checks = "both \"check\" and \"correct\" state the check; name one of them";
        check(&[("check", "1"), ("correct", "1")], Err(checks));
        check(&[("a1", "1"), ("a1", "1")], Err("the column \"a1\" appears twice"));
    }

    #[test]
    fn a_number_with_its_unit_is_refused_and_other_text_is_not_a_number() {
        let unit =
            "\"took\" is \"3.2 ms\", a number with a unit; put the unit into the column name";
        check(&[("took", "3.2 ms")], Err(unit));
        check(&[("took", "2 stages"), ("cfg", "64x64"), ("n1", "1e3")], Ok((None, &[("n1", 1e3)])));
        let text = "\"fwd_ms\" is \"OOM\", which is not a number";
        check(&[("fwd_ms", "OOM")], Err(text));
        check(&[("fwd_ms", "OOM"), ("check", "FAIL")], Ok((None, &[])));
        check(&[("fwd_ms", "")], Ok((None, &[])));
    }

    #[test]
    fn a_nan_is_left_out_of_a_failed_row_and_refused_in_any_other() {
        let nan = "\"Forward Time (ms)\" is NaN, which only a row that says FAIL may have";
        check(&[("fwd_ms", "nan"), ("check", "PASS")], Err(nan));
        check(&[("fwd_ms", "nan")], Err(nan));
        check(&[("fwd_ms", "nan"), ("xx", "2"), ("check", "0")], Ok((None, &[("xx", 2.0)])));
        let inf = "\"xx\" is inf, which only a row that says FAIL may have";
        check(&[("xx", "inf")], Err(inf));
    }

    #[test]
    fn a_negative_time_is_refused_and_a_negative_ratio_is_not() {
        for name in ["fwd_ms", "total_time", "latency", "mean_s", "fwd_tflops"] {
            let metric = canonical(name).unwrap_or(name);
            let reason = format!("\"{metric}\" is -1; it must not be negative");
            check(&[(name, "-1")], Err(&reason));
        }
        check(&[("gain_db", "-1"), ("ops", "-2")], Ok((None, &[("gain_db", -1.0), ("ops", -2.0)])));
    }

    #[test]
    fn an_infinite_snr_means_exact_and_stays_finite() {
        check(&[("out_snr", "inf")], Ok((None, &[("out_snr", SNR_EXACT_DB)])));
        let nan = "\"out_snr\" is NaN, which only a row that says FAIL may have";
        check(&[("out_snr", "nan")], Err(nan));
        check(&[("da_snr", "-3.5")], Ok((None, &[("da_snr", -3.5)])));
    }

    #[test]
    fn the_axes_make_the_case_in_a_fixed_order() {
        let pairs = [("head_dim", "64"), ("s", "9"), ("K", "3"), ("out_snr", "1"), ("B", "1")];
        check(&pairs, Ok((Some("B=1,K=3,head_dim=64,s=9"), &[("out_snr", 1.0)])));
        check(&[("name", "x"), ("B", "1")], Ok((Some("x"), &[])));
        check(&[("name", "x"), ("label", "y")], Ok((Some("y"), &[])));
    }

    #[test]
    fn a_configured_column_must_be_there() {
        let of = |case_column, check_column| {
            let names = vec!["M".to_owned(), "out_snr".to_owned(), "ok".to_owned()];
            RowLayout::of(names, &ParseSpec { case_column, check_column, ..SPEC }).map(|l| l.len())
        };
        assert_eq!(of(Some("M"), Some("ok")), Ok(3));
        assert_eq!(of(Some("m"), None), Err("there is no column \"m\", the case column".into()));
        assert_eq!(of(None, Some("c")), Err("there is no column \"c\", the check column".into()));
        let snr = "\"out_snr\" is a measured value and cannot name the case";
        assert_eq!(of(Some("out_snr"), None), Err(snr.into()));
        let both = "one column cannot be both the case and the check";
        assert_eq!(of(Some("ok"), Some("ok")), Err(both.into()));
    }

    #[test]
    fn a_case_or_a_nameless_row_may_appear_once() {
        let row = |case: Option<&str>, line| {
            OutputRow::new(case.map(str::to_owned), CaseCheck::NotStated, line)
        };
        let mut rows = OutputRows::default();
        assert_eq!(rows.push(row(Some("a"), 2)), Ok(()));
        let twice = "the case \"a\" is already on line 2; each case may appear once";
        assert_eq!(rows.push(row(Some("a"), 5)), Err(twice.into()));
        assert_eq!(rows.push(row(None, 6)), Ok(()));
        assert!(rows.push(row(None, 7)).unwrap_err().contains("the one on line 6 names its case"));
        assert_eq!(rows.finish().len(), 2);
    }
}
