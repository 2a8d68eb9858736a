//! The readings of one version in the columns of primus's `benchmark.csv`.

use super::figures::ReportFigures;
use super::source::ReportSource;
use karve_core::measurement::{PassRates, Sample};
use karve_numerics::case::Case;
use karve_numerics::contract::CaseTensorError;
use karve_numerics::stats;
use std::collections::BTreeMap;

/// The columns, which primus freezes: a reader knows them by these names and this order.
const HEADER: &str = "label,B,M,N,K,Check,Forward TFLOPS,Forward TFLOPS_stddev,\
                      Backward TFLOPS,Backward TFLOPS_stddev,Forward Time (ms),\
                      Backward Time (ms),out_snr,da_snr,db_snr\n";
/// The parameters that have a column.
const SHAPE: [&str; 4] = ["B", "M", "N", "K"];
/// The share of a step's work that is in its forward pass.
const FORWARD_SHARE: f64 = 1.0 / 3.0;

/// What is known about one version of the kernel.
pub(super) struct VersionReadings<'a> {
    /// Readings by case.
    pub(super) samples: BTreeMap<usize, Vec<Sample>>,
    /// Whether its results are right.
    pub(super) passed: bool,
    /// Its errors against the reference, under a contract.
    pub(super) errors: &'a [CaseTensorError],
}

/// One row for each visible case that was measured, or for all of them with FAIL.
pub(super) fn render(source: &ReportSource<'_>, version: &VersionReadings<'_>) -> String {
    let figures = ReportFigures::of(source);
    let visible = source.charter.visible_cases().into_iter();
    let rows = visible.filter_map(|index| {
        let samples = version.samples.get(&index).filter(|_| version.passed);
        if version.passed && samples.is_none() {
            return None;
        }
        let case = source.campaign.case(index)?;
        let rates = samples.map(|samples| pass_columns(source, &figures, index, samples));
        Some(row(version, &case, &rates.unwrap_or_default()))
    });
    HEADER.to_owned() + &rows.collect::<String>()
}

/// The columns of both passes.
#[derive(Default)]
struct PassColumns {
    forward: Option<PassColumn>,
    backward: Option<PassColumn>,
}

struct PassColumn {
    tflops: Option<f64>,
    stddev: Option<f64>,
    time_ms: Option<f64>,
}

fn pass_columns(
    source: &ReportSource<'_>,
    figures: &ReportFigures<'_>,
    case: usize,
    samples: &[Sample],
) -> PassColumns {
    let of = |pick: &dyn Fn(&Sample) -> Option<f64>, share: f64| -> Option<PassColumn> {
        let values: Option<Vec<f64>> = samples.iter().map(pick).collect();
        let values = values.filter(|values| !values.is_empty())?;
        let rates: Option<Vec<f64>> =
            values.iter().map(|value| figures.tflops(case, *value)).collect();
        let tflops = rates.as_deref().and_then(stats::median);
        let time_of_work = figures
            .operations(case)
            .zip(tflops)
            .map(|(work, tflops)| work * share / (tflops * 1e12) * 1e3);
        let time = || figures.case_latency_ms(case, stats::median(&values)?);
        Some(PassColumn {
            tflops,
            stddev: rates.as_deref().map(deviation),
            time_ms: time_of_work.or_else(time),
        })
    };
    if source.charter.metric.passes.is_some() {
        let pass = |pick: fn(PassRates) -> f64| move |sample: &Sample| sample.passes.map(pick);
        return PassColumns {
            forward: of(&pass(|rates| rates.forward), FORWARD_SHARE),
            backward: of(&pass(|rates| rates.backward), 1.0 - FORWARD_SHARE),
        };
    }
    let whole = of(&|sample| Some(sample.value), 1.0);
    match source.charter.metric.is_backward() {
        true => PassColumns { forward: None, backward: whole },
        false => PassColumns { forward: whole, backward: None },
    }
}

/// The standard deviation of all readings, as primus computes it, and not of a sample.
fn deviation(rates: &[f64]) -> f64 {
    let n = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / n;
    (rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / n).sqrt()
}

fn row(version: &VersionReadings<'_>, case: &Case, rates: &PassColumns) -> String {
    let mut cells = vec![quoted(&case.name)];
    cells.extend(SHAPE.map(|name| match case.params.get(name) {
        Some(value) => quoted(value),
        // The batch of a product is 1 unless it has one.
        None if name == "B" => "1".to_owned(),
        None => String::new(),
    }));
    cells.push(if version.passed { "PASS" } else { "FAIL" }.to_owned());
    for pass in [&rates.forward, &rates.backward] {
        cells.push(figure(pass.as_ref().and_then(|pass| pass.tflops)));
        cells.push(figure(pass.as_ref().and_then(|pass| pass.stddev)));
    }
    for pass in [&rates.forward, &rates.backward] {
        cells.push(figure(pass.as_ref().and_then(|pass| pass.time_ms)));
    }
    cells.extend(["out", "da", "db"].map(|tensor| figure(snr(version, &case.name, tensor))));
    cells.join(",") + "\n"
}

/// The smallest signal-to-noise ratio of a tensor on a case; other outputs count as `out`.
fn snr(version: &VersionReadings<'_>, case: &str, tensor: &str) -> Option<f64> {
    let of_case = version.errors.iter().filter(|error| error.case == case);
    let of_tensor = of_case.filter(|error| {
        let name = error.tensor.to_lowercase();
        let known = ["da", "db"].into_iter().find(|known| *known == name);
        known.unwrap_or("out") == tensor
    });
    of_tensor.map(|error| error.error.snr_db).reduce(f64::min)
}

/// The table with the signal-to-noise ratios that the project's own benchmark printed in these
/// columns, where karve measured none itself.
pub fn with_reported_snr(table: &str, raw: &str) -> String {
    let cells = |line: &str| -> Vec<String> {
        line.split(',').map(|cell| cell.trim().trim_matches('"').to_owned()).collect()
    };
    let mut lines = raw.lines().skip_while(|line| !line.contains("_snr"));
    let head = cells(lines.next().unwrap_or_default());
    let rows: BTreeMap<String, Vec<String>> = lines
        .map(cells)
        .filter(|row| row.len() == head.len())
        .map(|row| (row[0].clone(), row))
        .collect();
    let printed = |label: &str, name: &str| -> Option<f64> {
        let at = head.iter().position(|column| column == name)?;
        rows.get(label)?.get(at)?.parse().ok()
    };
    let mut text = String::new();
    for line in table.lines() {
        let own = line.strip_suffix(",nan,nan,nan").filter(|own| own.contains(",PASS,"));
        let label = own.and_then(|own| own.split(',').next()).unwrap_or_default();
        let snr = ["out_snr", "da_snr", "db_snr"].map(|name| printed(label, name));
        match own.filter(|_| snr.iter().any(Option::is_some)) {
            Some(own) => text.push_str(&format!("{own},{}", snr.map(figure).join(","))),
            None => text.push_str(line),
        }
        text.push('\n');
    }
    text
}

fn figure(value: Option<f64>) -> String {
    value.map_or_else(|| "nan".to_owned(), |value| value.to_string())
}

fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"").replace('\n', " ")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_that_the_benchmark_printed_are_taken_over() {
        let table = format!(
            "{HEADER}small,1,2,2,2,PASS,3,0,4,0,1,2,nan,nan,nan\n\
             large,1,4,4,4,PASS,3,0,4,0,1,2,nan,nan,nan\n\
             other,1,4,4,4,FAIL,nan,nan,nan,nan,nan,nan,nan,nan,nan\n"
        );
        let raw = "[standard output, 99 bytes]\nlabel,M,out_snr,da_snr\nsmall,2,31.5,30.5\n\
                   other,4,9,9\n[standard error, 0 bytes]\n";
        let want = table.replace(
            "small,1,2,2,2,PASS,3,0,4,0,1,2,nan,nan,nan",
            "small,1,2,2,2,PASS,3,0,4,0,1,2,31.5,30.5,nan",
        );
        assert_eq!(with_reported_snr(&table, raw), want);
        assert_eq!(with_reported_snr(&table, ""), table);
    }
}
