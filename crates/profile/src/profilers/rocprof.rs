//! rocprofv3's CSV, with timestamps in nanoseconds: the kernel trace has a row per launch, the
//! counter collection a row per counter and launch.

use super::gather::ProfileNotes;
use super::number::{plain, whole};
use super::text::{NumberedLine, cells, full_row, noted_lines};
use super::timeline::{TimeSpan, TimelineRecorder};
use super::{ParsedProfile, ProfileParseError};
use karve_core::profile::{KernelProfile, ProfileSource};
use std::collections::{BTreeMap, BTreeSet};

const TOOL: &str = "rocprofv3";

/// Columns that are counters; the other names are from other versions.
const COLUMNS: &[(&[&str], &str)] = &[
    (&["VGPR_Count", "Arch_VGPR_Count"], "registers"),
    (&["LDS_Block_Size", "LDS_Block_Size_Bytes", "Group_Segment_Size"], "shared_bytes"),
    (&["Scratch_Size", "Private_Segment_Size"], "spill_bytes"),
];

/// Counters of a collection that karve uses, in percent.
const COLLECTED: [(&str, &str); 5] = [
    ("OccupancyPercent", "occupancy_pct"),
    ("MfmaUtil", "tensor_pct"),
    ("VALUBusy", "fma_pct"),
    ("L2CacheHit", "l2_hit_pct"),
    ("LDSBankConflict", "bank_conflict_pct"),
];

/// Whether a line is the header of the trace or the collection.
pub(super) fn is_header(line: &str) -> bool {
    line.contains("Kernel_Name")
        && line.contains("Start_Timestamp")
        && line.contains("End_Timestamp")
}

/// The required columns.
struct RocprofTable {
    columns: Vec<String>,
    name: usize,
    from: usize,
    to: usize,
    launch: Option<usize>,
    /// Name and value of a counter, in a collection.
    counter: Option<(usize, usize)>,
}

/// A launch that was seen: its line, and those with its counters.
struct RocprofLaunch<'a> {
    line: &'a str,
    row: Vec<String>,
    lines: Vec<usize>,
    counters: BTreeSet<String>,
}

impl RocprofTable {
    fn of(header: NumberedLine<'_>) -> Result<Self, ProfileParseError> {
        let columns = cells(header)?;
        let needed = |name: &str| {
            let reason = format!("there is no single column {name:?}");
            place_of(&columns, name).ok_or_else(|| ProfileParseError::at(header.0, reason))
        };
        let (name, from) = (needed("Kernel_Name")?, needed("Start_Timestamp")?);
        let to = needed("End_Timestamp")?;
        let counter = place_of(&columns, "Counter_Name").zip(place_of(&columns, "Counter_Value"));
        let launch = match counter {
            Some(_) => Some(needed("Dispatch_Id")?),
            None => place_of(&columns, "Dispatch_Id"),
        };
        Ok(Self { name, from, to, launch, counter, columns })
    }

    fn launch_from<'a>(&self, line: &'a str, row: Vec<String>, at: usize) -> RocprofLaunch<'a> {
        let counter = self.counter.map(|(counter, _)| row[counter].clone());
        RocprofLaunch { line, row, lines: vec![at], counters: counter.into_iter().collect() }
    }

    /// The counter that a row adds to a known launch, if nothing else differs.
    fn more<'r>(&self, row: &'r [String], seen: &[String]) -> Option<&'r String> {
        let (counter, value) = self.counter?;
        let mut cells = row.iter().zip(seen).enumerate();
        let same = cells.all(|(at, (now, was))| [counter, value].contains(&at) || now == was);
        same.then(|| &row[counter])
    }

    /// Source and values of a launch, from its own line and those of its counters.
    fn launch_profile(
        &self,
        first: NumberedLine<'_>,
        more: &[NumberedLine<'_>],
    ) -> (ProfileSource, KernelProfile) {
        // The rows were parsed before, so they can be parsed again.
        let row = full_row(first, &self.columns).unwrap_or_default();
        if row.is_empty() {
            return (ProfileSource::at(TOOL, first.0, ""), KernelProfile::default());
        }
        let (to, from) = (&row[self.to], &row[self.from]);
        let quote = format!("End_Timestamp {to} - Start_Timestamp {from}");
        let mut profile = values(&self.columns, &row, first.0, &mut ProfileNotes::default());
        for line in more {
            let row = full_row(*line, &self.columns).unwrap_or_default();
            let found = self.collected(&row);
            if let Some((counter, value, quote)) = found {
                profile.set(counter, value, ProfileSource::at(TOOL, line.0, &quote));
            }
        }
        (ProfileSource::at(TOOL, first.0, &quote), profile)
    }

    /// The counter of a collection row, if karve uses it.
    fn collected(&self, row: &[String]) -> Option<(&'static str, f64, String)> {
        let (name, value) = self.counter?;
        let (name, text) = (row.get(name)?, row.get(value)?);
        let (_, counter) = COLLECTED.iter().find(|(theirs, _)| theirs == name)?;
        let value = plain(text).filter(|value| (0.0..=100.5).contains(value))?;
        Some((counter, value.min(100.0), format!("{name} {text}")))
    }
}

/// Reads all launches.
pub(super) fn parse(text: &str) -> Result<ParsedProfile, ProfileParseError> {
    let (lines, mut notes) = noted_lines(text)?;
    let Some(start) = lines.iter().position(|(_, line)| is_header(line)) else {
        return Err(ProfileParseError::at(1, "there is no kernel trace header"));
    };
    let table = RocprofTable::of(lines[start])?;
    let mut launches: BTreeMap<String, RocprofLaunch<'_>> = BTreeMap::new();
    let mut first: BTreeMap<usize, String> = BTreeMap::new();
    let mut recorder: TimelineRecorder<usize> = TimelineRecorder::new(TOOL);
    for (at, line) in lines.iter().enumerate().skip(start + 1) {
        if line.1.trim().is_empty() {
            continue;
        }
        let row = full_row(*line, &table.columns)?;
        let id = table.launch.map(|launch| row[launch].clone());
        if let Some(seen) = id.as_ref().and_then(|id| launches.get_mut(id)) {
            if seen.line == line.1 {
                notes.add(format!("line {}: the row appears twice", line.0));
            } else if let Some(counter) = table.more(&row, &seen.row)
                && seen.counters.insert(counter.clone())
            {
                seen.lines.push(at);
            } else {
                let reason = "a launch appears twice with different values";
                return Err(ProfileParseError::at(line.0, reason));
            }
            continue;
        }
        values(&table.columns, &row, line.0, &mut notes);
        let span = TimeSpan::of(&row[table.from], &row[table.to]);
        let span = span.map_err(|e| ProfileParseError::at(line.0, e))?;
        recorder.kernel(&row[table.name], span, line.0, at)?;
        if let Some(id) = id {
            first.insert(at, id.clone());
            launches.insert(id, table.launch_from(line.1, row, at));
        }
    }
    recorder.parsed(notes, lines[start].0, |at| {
        let seen = first.get(at).and_then(|id| launches.get(id));
        let more = seen.map_or(&[][..], |seen| &seen.lines);
        let more = more.iter().map(|at| lines[*at]);
        table.launch_profile(lines[*at], &more.collect::<Vec<_>>())
    })
}

/// The only column of that name.
fn place_of(columns: &[String], name: &str) -> Option<usize> {
    let mut places = (0..columns.len()).filter(|at| columns[*at] == name);
    let first = places.next();
    first.filter(|_| places.next().is_none())
}

/// The values of a row besides its time.
fn values(
    columns: &[String],
    row: &[String],
    line: usize,
    notes: &mut ProfileNotes,
) -> KernelProfile {
    let mut profile = KernelProfile::default();
    for (names, counter) in COLUMNS {
        let Some(at) = names.iter().find_map(|name| place_of(columns, name)) else {
            continue;
        };
        let quote = format!("{} {}", columns[at], row[at]);
        match whole(&row[at]).and_then(|n| u32::try_from(n).ok()) {
            Some(value) => {
                profile.set(counter, f64::from(value), ProfileSource::at(TOOL, line, &quote));
            }
            None => notes.add(format!("line {line}: {quote:?} is not a valid number")),
        }
    }
    sizes(&mut profile, columns, row, line);
    profile
}

/// Threads per block and blocks of the launch: products of three columns.
fn sizes(profile: &mut KernelProfile, columns: &[String], row: &[String], line: usize) {
    let product = |name: &str| {
        let mut product = 1_u64;
        if let Some(at) = place_of(columns, name) {
            // A collection already has the product.
            product = whole(&row[at])?;
        } else {
            for axis in ["X", "Y", "Z"] {
                let at = place_of(columns, &format!("{name}_{axis}"))?;
                product = product.checked_mul(whole(&row[at])?)?;
            }
        }
        u32::try_from(product).ok().filter(|product| *product > 0)
    };
    let Some(threads) = product("Workgroup_Size") else {
        return;
    };
    let quote = format!("Workgroup_Size {threads}");
    let source = ProfileSource::at(TOOL, line, &quote);
    profile.set("threads_per_block", f64::from(threads), source);
    // The grid is in threads here.
    if let Some(grid) = product("Grid_Size").filter(|grid| grid % threads == 0) {
        let quote = format!("Grid_Size {grid}, Workgroup_Size {threads}");
        let source = ProfileSource::at(TOOL, line, &quote);
        profile.set("blocks", f64::from(grid / threads), source);
    }
}
