//! The tables of `rocprof-compute analyze`: a row for each metric, cells between bars.

use super::gather::ProfileNotes;
use super::number::{Quantity, plain, scale};
use super::text::noted_lines;
use super::{ParsedProfile, ProfileParseError};
use karve_core::profile::{KernelProfile, ProfileSource};
use std::collections::BTreeMap;

const TOOL: &str = "rocprof-compute";
/// The name under which all analyzed launches are reported.
const ANALYZED: &str = "the analyzed kernels";

/// Which cell of a row is a counter.
#[derive(Clone, Copy)]
enum CounterCell {
    /// The average, in a unit of this kind.
    Average(Quantity),
    /// The share of the peak, in percent.
    OfPeak,
}

/// Metrics that are counters.
const METRICS: &[(&str, CounterCell, &str)] = &[
    ("VALU Utilization", CounterCell::Average(Quantity::Percent), "fma_pct"),
    ("MFMA Utilization", CounterCell::Average(Quantity::Percent), "tensor_pct"),
    ("IPC", CounterCell::Average(Quantity::Count), "ipc"),
    ("Wavefront Occupancy", CounterCell::OfPeak, "occupancy_pct"),
    ("LDS Bank Conflicts/Access", CounterCell::OfPeak, "bank_conflict_pct"),
    ("Theoretical LDS Bandwidth", CounterCell::OfPeak, "shared_pct"),
    ("vL1D Cache Hit Rate", CounterCell::Average(Quantity::Percent), "l1_hit_pct"),
    ("vL1D Cache BW", CounterCell::OfPeak, "l1_pct"),
    ("L2 Cache Hit Rate", CounterCell::Average(Quantity::Percent), "l2_hit_pct"),
    ("L2 Cache BW", CounterCell::OfPeak, "l2_pct"),
    ("HBM Bandwidth", CounterCell::OfPeak, "dram_pct"),
];

/// Where the cells of a table are.
struct RocprofColumns {
    metric: usize,
    average: usize,
    unit: usize,
    of_peak: Option<usize>,
    n: usize,
}

/// The cells of a line between bars.
fn cells(line: &str) -> Option<Vec<&str>> {
    let bar = |c: char| c == '│' || c == '|';
    let line = line.trim();
    let inner = line.strip_prefix(bar)?.strip_suffix(bar)?;
    Some(inner.split(bar).map(str::trim).collect())
}

fn columns(cells: &[&str]) -> Option<RocprofColumns> {
    let place = |names: &[&str]| cells.iter().position(|cell| names.contains(cell));
    Some(RocprofColumns {
        metric: place(&["Metric"])?,
        average: place(&["Avg", "Value"])?,
        unit: place(&["Unit"])?,
        of_peak: place(&["Pct of Peak", "PoP", "Pct-of-Peak"]),
        n: cells.len(),
    })
}

/// Whether a line is the header of a table of metrics.
pub(super) fn is_header(line: &str) -> bool {
    cells(line).is_some_and(|cells| columns(&cells).is_some())
}

/// Reads all tables of metrics.
pub(super) fn parse(text: &str) -> Result<ParsedProfile, ProfileParseError> {
    let (lines, mut notes) = noted_lines(text)?;
    let mut table: Option<RocprofColumns> = None;
    let mut found: BTreeMap<&str, Option<(f64, ProfileSource)>> = BTreeMap::new();
    for (number, line) in &lines {
        let Some(row) = cells(line) else {
            let is_rule = line.trim().starts_with(['╒', '╞', '├', '╘', '+']);
            if !is_rule {
                table = None;
            }
            continue;
        };
        if let Some(columns) = columns(&row) {
            table = Some(columns);
            continue;
        }
        let Some(columns) = &table else {
            continue;
        };
        if row.len() != columns.n {
            let (has, wants) = (row.len(), columns.n);
            let reason = format!("the row has {has} cells, but its header has {wants}");
            return Err(ProfileParseError::at(*number, reason));
        }
        let name = row[columns.metric];
        let Some((_, cell, counter)) = METRICS.iter().find(|(metric, ..)| *metric == name) else {
            continue;
        };
        let Some(value) = value(&row, columns, *cell, *number, &mut notes) else {
            continue;
        };
        let quote = row.join(" ");
        let read = (value, ProfileSource::at(TOOL, *number, &quote));
        match found.get(counter) {
            None => {
                found.insert(counter, Some(read));
            }
            Some(Some((old, _))) if old.total_cmp(&value).is_eq() => {}
            Some(_) => {
                notes.add(format!("{name} appears twice with different values: not read"));
                found.insert(counter, None);
            }
        }
    }
    let mut kernel = KernelProfile::named(ANALYZED);
    for (counter, read) in found {
        if let Some((value, source)) = read {
            kernel.set(counter, value, source);
        }
    }
    if kernel.counters.is_empty() {
        return Err(ProfileParseError::at(1, "there is no table with a metric that karve knows"));
    }
    notes.add("the values cover all analyzed kernels: choose one with -k");
    Ok(ParsedProfile { kernels: vec![kernel], timeline: None, notes: notes.finish() })
}

fn value(
    row: &[&str],
    columns: &RocprofColumns,
    cell: CounterCell,
    line: usize,
    notes: &mut ProfileNotes,
) -> Option<f64> {
    let (at, unit) = match cell {
        CounterCell::Average(kind) => (columns.average, scale(kind, row[columns.unit])),
        CounterCell::OfPeak => (columns.of_peak?, Some(1.0)),
    };
    let (text, name) = (row[at], row[columns.metric]);
    // A device that cannot measure it leaves the cell empty.
    if text.is_empty() {
        return None;
    }
    match (plain(text), unit) {
        (Some(value), Some(scale)) => Some(value * scale),
        (Some(_), None) => {
            let unit = row[columns.unit];
            notes.add(format!("line {line}: {name} has the unit {unit:?}: not read"));
            None
        }
        (None, _) => {
            notes.add(format!("line {line}: {name} is {text:?}, which is not a valid number"));
            None
        }
    }
}
