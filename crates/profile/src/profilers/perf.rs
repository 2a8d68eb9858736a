//! `perf stat -x,`: a line per event, with its value, unit, name and how long it was counted.

use super::gather::ProfileNotes;
use super::number::{plain, whole};
use super::text::noted_lines;
use super::{PROGRAM, ParsedProfile, ProfileParseError};
use karve_core::profile::{KernelProfile, ProfileSource};
use std::collections::BTreeMap;

const TOOL: &str = "perf";
/// What perf writes if the host cannot count an event.
const UNSUPPORTED: &str = "<not supported>";
/// Why that happens, and what to do.
pub const NO_COUNTERS: &str = "perf has no hardware counters here, as in most virtual \
    machines: profile on a host that has them, or with --tool callgrind, which simulates some";
/// Units that perf writes.
const UNITS: [&str; 7] = ["", "msec", "ns", "Joules", "Bytes", "MiB", "%"];

/// One event line.
struct PerfRow<'a> {
    value: &'a str,
    unit: &'a str,
    event: &'a str,
    /// For how much of the time it was counted, in percent.
    counted_pct: f64,
    /// A derived value and its name.
    derived: Option<(&'a str, &'a str)>,
}

/// A count and its source.
#[derive(Clone)]
struct PerfCount {
    value: f64,
    unit: String,
    source: ProfileSource,
}

/// Whether a line is an event line.
pub(super) fn is_row(line: &str) -> bool {
    row(line).is_some_and(|row| !row.event.is_empty())
}

/// The parts of a line, if it is an event or only adds a derived value.
fn row(line: &str) -> Option<PerfRow<'_>> {
    let mut cells: Vec<&str> = line.split(',').collect();
    // With -r the spread comes after the name.
    if cells.get(3).is_some_and(|cell| cell.ends_with('%')) {
        cells.remove(3);
    }
    let (n, mut cells) = (cells.len(), cells.into_iter());
    if !(5..=7).contains(&n) {
        return None;
    }
    let mut next = || cells.next().unwrap_or_default();
    let (value, unit, event, runtime, counted) = (next(), next(), next(), next(), next());
    let (derived_value, derived_name) = (next(), next());
    let derived = (!derived_name.is_empty()).then_some((derived_value, derived_name));
    if value.is_empty() && event.is_empty() {
        return derived.is_some().then_some(PerfRow {
            value,
            unit,
            event,
            counted_pct: 100.0,
            derived,
        });
    }
    let is_value = plain(value).is_some() || value.starts_with("<not ");
    let is_name = event.starts_with(|c: char| c.is_ascii_alphabetic()) && !UNITS.contains(&event);
    let counted_pct = plain(counted).filter(|pct| *pct <= 100.0)?;
    let fits = is_value && is_name && UNITS.contains(&unit) && whole(runtime).is_some();
    fits.then_some(PerfRow { value, unit, event, counted_pct, derived })
}

/// Reads all events.
pub(super) fn parse(text: &str) -> Result<ParsedProfile, ProfileParseError> {
    let (lines, mut notes) = noted_lines(text)?;
    let mut counts: BTreeMap<String, Option<PerfCount>> = BTreeMap::new();
    let mut profile = KernelProfile::named(PROGRAM);
    let mut any = false;
    let mut missing = Vec::new();
    for (number, line) in lines {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let Some(row) = row(line) else {
            // The output of the program may precede its lines.
            if any {
                let reason = "this is not a line of perf stat -x, with LC_ALL=C";
                return Err(ProfileParseError::at(number, reason));
            }
            continue;
        };
        any |= !row.event.is_empty();
        let source = ProfileSource::at(TOOL, number, line);
        take(&mut counts, &row, source, &mut missing, &mut notes);
        take_derived(&mut profile, &row, number, &mut notes);
    }
    if !any {
        return Err(ProfileParseError::at(1, "there is no line of perf stat -x,"));
    }
    let counts = counts.into_iter();
    let counts = counts.filter_map(|(event, count)| Some((event, count?)));
    note_missing(&missing, &mut notes);
    derive(&mut profile, &PerfCounts(counts.collect()), &mut notes);
    Ok(ParsedProfile { kernels: vec![profile], timeline: None, notes: notes.finish() })
}

fn take(
    counts: &mut BTreeMap<String, Option<PerfCount>>,
    row: &PerfRow<'_>,
    source: ProfileSource,
    missing: &mut Vec<(String, String)>,
    notes: &mut ProfileNotes,
) {
    if row.event.is_empty() {
        return;
    }
    // `cycles:u` counts the program alone; `cpu_atom/cycles/` is an event of its own.
    let event = row.event.split(':').next().unwrap_or_default();
    let Some(value) = plain(row.value) else {
        missing.push((event.to_owned(), row.value.to_owned()));
        return;
    };
    if row.counted_pct < 100.0 {
        let pct = row.counted_pct;
        notes.add(format!("{event} was counted {pct}% of the time, so perf scaled its value"));
    }
    let count = PerfCount { value, unit: row.unit.to_owned(), source };
    let same = |old: &PerfCount| old.value.total_cmp(&value).is_eq() && old.unit == row.unit;
    match counts.get(event) {
        None => {
            counts.insert(event.to_owned(), Some(count));
        }
        Some(old) if old.as_ref().is_some_and(same) => {}
        Some(_) => {
            notes.add(format!("{event} appears twice with different values: not read"));
            counts.insert(event.to_owned(), None);
        }
    }
}

/// One note for all events that were not counted for the same reason.
fn note_missing(missing: &[(String, String)], notes: &mut ProfileNotes) {
    let of = |reason: &str| {
        let same = missing.iter().filter(|(_, why)| why == reason);
        let names: Vec<&str> = same.map(|(event, _)| event.as_str()).collect();
        names.join(", ")
    };
    let unsupported = of(UNSUPPORTED);
    if !unsupported.is_empty() {
        notes.add(format!("{NO_COUNTERS}; not supported: {unsupported}"));
    }
    let mut reasons: Vec<&String> = missing.iter().map(|(_, why)| why).collect();
    reasons.sort();
    reasons.dedup();
    for reason in reasons.into_iter().filter(|why| *why != UNSUPPORTED) {
        notes.add(format!("{reason}: {}", of(reason)));
    }
}

/// The pipeline slots that perf derives, such as `12.3,%  tma_backend_bound`.
fn take_derived(
    profile: &mut KernelProfile,
    row: &PerfRow<'_>,
    line: usize,
    notes: &mut ProfileNotes,
) {
    let Some((value, name)) = row.derived else {
        return;
    };
    let counter = match name.trim_start_matches('%').trim() {
        "tma_frontend_bound" => "frontend_bound_pct",
        "tma_backend_bound" => "backend_bound_pct",
        "tma_bad_speculation" => "bad_speculation_pct",
        _ => return,
    };
    match plain(value.trim()) {
        Some(_) if profile.counters.contains_key(counter) => {
            profile.counters.remove(counter);
            notes.add(format!("{name} appears twice: not read"));
        }
        Some(value) => {
            let source = ProfileSource::at(TOOL, line, &format!("{value} {name}"));
            profile.set(counter, value, source);
        }
        None => notes.add(format!("line {line}: {name} is not a valid number")),
    }
}

/// Counts by event.
struct PerfCounts(BTreeMap<String, PerfCount>);

impl PerfCounts {
    /// The first of some events that was counted.
    fn first(&self, events: &[&str]) -> Option<&PerfCount> {
        events.iter().find_map(|event| self.0.get(*event))
    }
}

/// Counts that are used as counters directly.
const SAME: &[(&[&str], &str)] = &[
    (&["instructions"], "instructions"),
    (&["cycles", "cpu-cycles"], "cycles"),
    (&["page-faults", "faults"], "page_faults"),
    (&["context-switches", "cs"], "context_switches"),
    (&["cpu-migrations", "migrations"], "migrations"),
];

/// Counters that are one count as a percentage of another.
const SHARES: &[(&[&str], &[&str], &str)] = &[
    (&["L1-dcache-load-misses"], &["L1-dcache-loads"], "l1_miss_pct"),
    (&["LLC-load-misses"], &["LLC-loads"], "llc_miss_pct"),
    (&["cache-misses"], &["cache-references"], "llc_miss_pct"),
    (&["branch-misses"], &["branches", "branch-instructions"], "branch_miss_pct"),
    (&["dTLB-load-misses"], &["dTLB-loads"], "tlb_miss_pct"),
];

/// Floating-point operations of one instruction of each event; vectorized from the third on.
const OPERATIONS: [(&str, f64); 8] = [
    ("fp_arith_inst_retired.scalar_single", 1.0),
    ("fp_arith_inst_retired.scalar_double", 1.0),
    ("fp_arith_inst_retired.128b_packed_double", 2.0),
    ("fp_arith_inst_retired.128b_packed_single", 4.0),
    ("fp_arith_inst_retired.256b_packed_double", 4.0),
    ("fp_arith_inst_retired.256b_packed_single", 8.0),
    ("fp_arith_inst_retired.512b_packed_double", 8.0),
    ("fp_arith_inst_retired.512b_packed_single", 16.0),
];

fn derive(profile: &mut KernelProfile, counts: &PerfCounts, notes: &mut ProfileNotes) {
    for (events, counter) in SAME {
        if let Some(count) = counts.first(events) {
            profile.set(counter, count.value, count.source.clone());
        }
    }
    for (part, all, counter) in SHARES {
        let known = profile.counters.contains_key(*counter);
        if let (false, Some(part), Some(all)) = (known, counts.first(part), counts.first(all))
            && !ratio(profile, counter, 100.0, part, all)
            && all.value > 0.0
        {
            notes.add(format!("{counter} would be above 100%: not read"));
        }
    }
    let cycles = counts.first(&["cycles", "cpu-cycles"]);
    if let (Some(instructions), Some(cycles)) = (counts.first(&["instructions"]), cycles) {
        ratio(profile, "ipc", 1.0, instructions, cycles);
    }
    let wall = counts.first(&["duration_time"]).filter(|c| c.unit == "ns");
    let busy = counts.first(&["task-clock", "cpu-clock"]).filter(|c| c.unit == "msec");
    if let Some(wall) = wall {
        profile.set("duration_us", wall.value / 1e3, wall.source.clone());
    }
    if let (Some(busy), Some(wall)) = (busy, wall) {
        ratio(profile, "cpu_busy_pct", 1e6 * 100.0, busy, wall);
    }
    if let (Some(cycles), Some(busy)) = (cycles, busy) {
        ratio(profile, "clock_hz", 1e3, cycles, busy);
    }
    vectors(profile, counts);
}

/// Sets a counter to one count over another.
fn ratio(
    profile: &mut KernelProfile,
    counter: &str,
    by: f64,
    part: &PerfCount,
    all: &PerfCount,
) -> bool {
    let quote = format!("{} / {}", part.source.quote, all.source.quote);
    let source = ProfileSource::at(TOOL, part.source.line as usize, &quote);
    all.value > 0.0 && profile.set(counter, by * part.value / all.value, source)
}

/// How much of the arithmetic is vectorized, if all its events were counted.
fn vectors(profile: &mut KernelProfile, counts: &PerfCounts) {
    let mut operations = [0.0; OPERATIONS.len()];
    let mut line = 0;
    for (value, (event, each)) in operations.iter_mut().zip(OPERATIONS) {
        let Some(count) = counts.0.get(event) else {
            return;
        };
        line = line.max(count.source.line);
        *value = each * count.value;
    }
    let all: f64 = operations.iter().sum();
    let in_vectors: f64 = operations.iter().skip(2).sum();
    if all > 0.0 {
        let quote = format!("{in_vectors} of {all} operations in vectors, fp_arith_inst_retired.*");
        let source = ProfileSource::at(TOOL, line as usize, &quote);
        profile.set("vector_pct", 100.0 * in_vectors / all, source);
    }
}
