//! rocprofv3's kernel trace: a row of CSV for each launch, with its timestamps in nanoseconds.

use super::gather::Notes;
use super::number::whole;
use super::text::{ENDS_EARLY, Lines, cells};
use super::timeline::{Recorder, Span};
use super::{Parsed, Unreadable};
use karve_core::profile::{KernelProfile, Source};
use std::collections::BTreeMap;

const TOOL: &str = "rocprofv3";

/// Columns that are counters; a second name is the one of newer versions.
const COLUMNS: &[(&[&str], &str)] = &[
    (&["VGPR_Count", "Arch_VGPR_Count"], "registers"),
    (&["LDS_Block_Size", "LDS_Block_Size_Bytes"], "shared_bytes"),
    (&["Scratch_Size", "Private_Segment_Size"], "spill_bytes"),
];

/// Whether a line is the header of the trace.
pub(super) fn is_header(line: &str) -> bool {
    line.contains("Kernel_Name")
        && line.contains("Start_Timestamp")
        && line.contains("End_Timestamp")
}

/// Reads all launches.
pub(super) fn parse(text: &str) -> Result<Parsed, Unreadable> {
    let lines = Lines::of(text)?;
    let mut notes = Notes::default();
    if lines.cut {
        notes.add(ENDS_EARLY);
    }
    let Some(start) = lines.whole.iter().position(|(_, line)| is_header(line)) else {
        return Err(Unreadable::at(1, "there is no header of a kernel trace"));
    };
    let header_line = lines.whole[start].0;
    let columns = cells(lines.whole[start])?;
    let place = |name: &str| place_of(&columns, name);
    let needed = |name: &str| {
        let reason = format!("there is no single column {name:?}");
        place(name).ok_or_else(|| Unreadable::at(header_line, reason))
    };
    let (name, from) = (needed("Kernel_Name")?, needed("Start_Timestamp")?);
    let to = needed("End_Timestamp")?;
    let launch = place("Dispatch_Id");
    let mut launches: BTreeMap<String, &str> = BTreeMap::new();
    let mut recorder: Recorder<usize> = Recorder::new(TOOL);
    for line in &lines.whole[start + 1..] {
        if line.1.trim().is_empty() {
            continue;
        }
        let row = cells(*line)?;
        if row.len() != columns.len() {
            let (has, wants) = (row.len(), columns.len());
            let reason = format!("the row has {has} cells, and the header {wants}");
            return Err(Unreadable::at(line.0, reason));
        }
        let before = launch.and_then(|at| launches.insert(row[at].clone(), line.1));
        if before == Some(line.1) {
            notes.add(format!("line {}: the row is there twice", line.0));
            continue;
        }
        if before.is_some() {
            let reason = "a launch is there twice with other values";
            return Err(Unreadable::at(line.0, reason));
        }
        values(&columns, &row, line.0, &mut notes);
        let span = Span::of(&row[from], &row[to]).map_err(|e| Unreadable::at(line.0, e))?;
        recorder.kernel(&row[name], span, line.0, line.0)?;
    }
    recorder.parsed(notes, header_line, |number| {
        // The row was read before, so that it can be read again.
        let at = lines.whole.binary_search_by_key(number, |(of, _)| *of);
        let row = at.ok().and_then(|at| cells(lines.whole[at]).ok());
        let row = row.unwrap_or_default();
        if row.len() != columns.len() {
            return (Source::at(TOOL, *number, ""), KernelProfile::default());
        }
        let quote = format!("End_Timestamp {} - Start_Timestamp {}", row[to], row[from]);
        let source = Source::at(TOOL, *number, &quote);
        (
            source,
            values(&columns, &row, *number, &mut Notes::default()),
        )
    })
}

/// The only column of that name.
fn place_of(columns: &[String], name: &str) -> Option<usize> {
    let mut places = (0..columns.len()).filter(|at| columns[*at] == name);
    let first = places.next();
    first.filter(|_| places.next().is_none())
}

/// What the columns of a row tell besides its time.
fn values(columns: &[String], row: &[String], line: usize, notes: &mut Notes) -> KernelProfile {
    let mut profile = KernelProfile::default();
    for (names, counter) in COLUMNS {
        let Some(at) = names.iter().find_map(|name| place_of(columns, name)) else {
            continue;
        };
        let quote = format!("{} {}", columns[at], row[at]);
        match whole(&row[at]).and_then(|n| u32::try_from(n).ok()) {
            Some(value) => {
                profile.set(counter, f64::from(value), Source::at(TOOL, line, &quote));
            }
            None => notes.add(format!("line {line}: {quote:?} is no clear number")),
        }
    }
    sizes(&mut profile, columns, row, line);
    profile
}

/// Threads of a block and blocks of the launch: products of three columns.
fn sizes(profile: &mut KernelProfile, columns: &[String], row: &[String], line: usize) {
    let product = |name: &str| {
        let mut product = 1_u64;
        for axis in ["X", "Y", "Z"] {
            let column = format!("{name}_{axis}");
            let at = columns.iter().position(|c| *c == column)?;
            product = product.checked_mul(whole(&row[at])?)?;
        }
        u32::try_from(product).ok().filter(|product| *product > 0)
    };
    let Some(threads) = product("Workgroup_Size") else {
        return;
    };
    let quote = format!("Workgroup_Size {threads}");
    let source = Source::at(TOOL, line, &quote);
    profile.set("threads_per_block", f64::from(threads), source);
    // A grid is told in threads here.
    if let Some(grid) = product("Grid_Size").filter(|grid| grid % threads == 0) {
        let quote = format!("Grid_Size {grid}, Workgroup_Size {threads}");
        let source = Source::at(TOOL, line, &quote);
        profile.set("blocks", f64::from(grid / threads), source);
    }
}
