//! The tables of `rocprof-compute analyze`: a row for each metric, cells between bars.

use super::gather::Notes;
use super::number::{Kind, plain, scale};
use super::text::{ENDS_EARLY, Lines};
use super::{Parsed, Unreadable};
use karve_core::profile::{KernelProfile, Source};
use std::collections::BTreeMap;

const TOOL: &str = "rocprof-compute";
/// The name under which all analyzed launches are reported.
const ANALYZED: &str = "the analyzed kernels";

/// Which cell of a row is a counter.
#[derive(Clone, Copy)]
enum Cell {
    /// The average, in a unit of this kind.
    Average(Kind),
    /// The share of the peak, in percent.
    OfPeak,
}

/// Metrics that are counters.
const METRICS: &[(&str, Cell, &str)] = &[
    ("VALU Utilization", Cell::Average(Kind::Percent), "fma_pct"),
    (
        "MFMA Utilization",
        Cell::Average(Kind::Percent),
        "tensor_pct",
    ),
    ("IPC", Cell::Average(Kind::Count), "ipc"),
    ("Wavefront Occupancy", Cell::OfPeak, "occupancy_pct"),
    (
        "LDS Bank Conflicts/Access",
        Cell::OfPeak,
        "bank_conflict_pct",
    ),
    ("Theoretical LDS Bandwidth", Cell::OfPeak, "shared_pct"),
    (
        "vL1D Cache Hit Rate",
        Cell::Average(Kind::Percent),
        "l1_hit_pct",
    ),
    ("vL1D Cache BW", Cell::OfPeak, "l1_pct"),
    (
        "L2 Cache Hit Rate",
        Cell::Average(Kind::Percent),
        "l2_hit_pct",
    ),
    ("L2 Cache BW", Cell::OfPeak, "l2_pct"),
    ("HBM Bandwidth", Cell::OfPeak, "dram_pct"),
];

/// Where the cells of a table are.
struct Columns {
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

fn columns(cells: &[&str]) -> Option<Columns> {
    let place = |names: &[&str]| cells.iter().position(|cell| names.contains(cell));
    Some(Columns {
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
pub(super) fn parse(text: &str) -> Result<Parsed, Unreadable> {
    let lines = Lines::of(text)?;
    let mut notes = Notes::default();
    if lines.cut {
        notes.add(ENDS_EARLY);
    }
    let mut table: Option<Columns> = None;
    let mut found: BTreeMap<&str, Option<(f64, Source)>> = BTreeMap::new();
    for (number, line) in &lines.whole {
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
            return Err(Unreadable::at(*number, reason));
        }
        let name = row[columns.metric];
        let Some((_, cell, counter)) = METRICS.iter().find(|(metric, ..)| *metric == name) else {
            continue;
        };
        let Some(value) = value(&row, columns, *cell, *number, &mut notes) else {
            continue;
        };
        let quote = row.join(" ");
        let read = (value, Source::at(TOOL, *number, &quote));
        match found.get(counter) {
            None => {
                found.insert(counter, Some(read));
            }
            Some(Some((old, _))) if old.total_cmp(&value).is_eq() => {}
            Some(_) => {
                notes.add(format!(
                    "{name} appears twice with different values: not read"
                ));
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
        return Err(Unreadable::at(
            1,
            "there is no table with a metric that karve knows",
        ));
    }
    notes.add("the values cover all analyzed kernels: choose one with -k");
    Ok(Parsed {
        kernels: vec![kernel],
        timeline: None,
        notes: notes.finish(),
    })
}

fn value(
    row: &[&str],
    columns: &Columns,
    cell: Cell,
    line: usize,
    notes: &mut Notes,
) -> Option<f64> {
    let (at, unit) = match cell {
        Cell::Average(kind) => (columns.average, scale(kind, row[columns.unit])),
        Cell::OfPeak => (columns.of_peak?, Some(1.0)),
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
            notes.add(format!(
                "line {line}: {name} has the unit {unit:?}: not read"
            ));
            None
        }
        (None, _) => {
            notes.add(format!(
                "line {line}: {name} is {text:?}, which is not a valid number"
            ));
            None
        }
    }
}
