//! From rows of a benchmark's output to one value for each case.

use super::output::{self, Check, Format, Row, Spec};
use super::{Gated, unreadable};
use karve_core::charter::{Case, Metric, Output};
use karve_core::expr::parse_expr;
use karve_core::measurement::{FailureCategory, Gate};

/// The format of that name, if there is one.
pub(super) fn format_by_name(name: &str) -> Option<Format> {
    serde_json::from_value(serde_json::Value::from(name)).ok()
}

/// One value for each case, in order; refuses what is missing, failed or not readable.
pub(super) fn values(
    text: &str,
    output: &Output,
    metric: &Metric,
    cases: &[Case],
) -> Gated<Vec<f64>> {
    let first = cases
        .first()
        .map_or("the benchmark", |case| case.name.as_str());
    let Some(format) = format_by_name(&output.format) else {
        return Err(unreadable(
            first,
            format!("there is no output format {:?}", output.format),
        ));
    };
    let spec = Spec {
        format,
        case_column: output.case_column.as_deref(),
        check_column: output.check_column.as_deref(),
        label: output.label.as_deref(),
    };
    let mut rows = output::parse(text, &spec).map_err(|error| {
        unreadable(
            first,
            format!("cannot read the benchmark's output: {error}"),
        )
    })?;
    if let (Format::Hyperfine, None, [row]) = (format, spec.case_column, &mut rows[..]) {
        // The command line that hyperfine ran does not say which case that was.
        row.case = row
            .case
            .take()
            .filter(|name| cases.iter().any(|c| c.name == *name));
    }
    cases
        .iter()
        .map(|case| value_of(&rows, metric, case, cases.len()))
        .collect()
}

fn value_of(rows: &[Row], metric: &Metric, case: &Case, n_cases: usize) -> Gated<f64> {
    let Some(row) = row_of(rows, case, n_cases) else {
        let why = format!("the benchmark's output has no row for {}", case.name);
        return Err(unreadable(&case.name, why));
    };
    if row.check == Check::Fail {
        return Err(Gate::WrongResult {
            case: case.name.clone(),
            category: FailureCategory::SnrFail,
            excerpt: format!("the benchmark's own check says FAIL (line {})", row.line),
        });
    }
    let value = match &metric.expr {
        None => row.values.get(&metric.name).copied(),
        Some(text) => parse_expr(text).ok().and_then(|expr| {
            let lookup = |name: &str| {
                row.values
                    .get(name)
                    .copied()
                    .or_else(|| case.params.get(name)?.parse().ok())
            };
            expr.evaluate(&lookup).ok()
        }),
    };
    value.ok_or_else(|| {
        let names: Vec<&str> = row.values.keys().map(String::as_str).collect();
        let why = format!(
            "line {} has no {}; it has {}",
            row.line,
            metric.name,
            names.join(", ")
        );
        unreadable(&case.name, why)
    })
}

/// The row of a case: by name, by parameters, or the only one there is.
fn row_of<'a>(rows: &'a [Row], case: &Case, n_cases: usize) -> Option<&'a Row> {
    let named = rows
        .iter()
        .find(|row| row.case.as_deref() == Some(&case.name));
    let same = |row: &&Row| {
        let equal = |(name, value): (&String, &String)| {
            row.params
                .get(name)
                .is_some_and(|found| same_value(found, value))
        };
        !case.params.is_empty() && case.params.iter().all(equal)
    };
    let only = (n_cases == 1 && rows.len() == 1 && rows[0].case.is_none()).then(|| &rows[0]);
    named.or_else(|| rows.iter().find(same)).or(only)
}

fn same_value(a: &str, b: &str) -> bool {
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
}
