//! Nsight Compute's CSV, the pages `details` and `raw`.
//!
//! The header follows lines of the tool and of the program. On the page `details` each row is
//! one metric or one rule of one launch, and rows of metrics are shorter than rows of rules. On the
//! page `raw` each row is one launch, and the row after the header has the units.

mod details;
mod names;
mod raw;

use super::gather::{KernelLaunch, ProfileNotes, by_kernel, heaviest};
use super::number::{grouped, is_localized, scale};
use super::text::{NumberedLine, cells, noted_lines};
use super::{ParsedProfile, ProfileParseError};
use karve_core::profile::{KernelProfile, ProfileSource, ProfilerRemark};
use names::NcuMetric;
use std::collections::BTreeMap;

const TOOL: &str = "ncu";
/// The most launches of one output.
const LAUNCHES_MAX: usize = 20_000;

/// Whether a line is the header of a table.
pub(super) fn is_header(line: &str) -> bool {
    line.starts_with("\"ID\",\"Process ID\",") && line.contains("\"Kernel Name\",")
}

/// Reads either page.
pub(super) fn parse(text: &str) -> Result<ParsedProfile, ProfileParseError> {
    let (lines, mut notes) = noted_lines(text)?;
    let Some(start) = lines.iter().position(|(_, line)| is_header(line)) else {
        return Err(ProfileParseError::at(1, "there is no table header of ncu --csv"));
    };
    let header = lines[start];
    let rows = table(&lines[start + 1..], header, &mut notes);
    let columns = cells(header)?;
    let sheets = if columns.iter().any(|column| column == "Metric Name") {
        details::sheets(&columns, &rows, &mut notes)?
    } else {
        raw::sheets(header.0, &columns, &rows, &mut notes)?
    };
    let mut launches = Vec::new();
    for sheet in sheets {
        let mut profile = sheet.counters(&mut notes)?;
        profile.remarks = sheet.remarks;
        launches.push(KernelLaunch { name: sheet.kernel, profile });
    }
    if launches.is_empty() {
        return Err(ProfileParseError::at(header.0, "the table has no kernel row"));
    }
    let kernels = by_kernel(launches, TOOL, &mut notes);
    Ok(ParsedProfile {
        kernels: heaviest(kernels, &mut notes),
        timeline: None,
        notes: notes.finish(),
    })
}

/// The rows after a header; other lines are skipped and counted.
fn table<'a>(
    lines: &[NumberedLine<'a>],
    header: NumberedLine<'a>,
    notes: &mut ProfileNotes,
) -> Vec<NumberedLine<'a>> {
    let mut strange = 0;
    let mut rows = Vec::new();
    for line in lines {
        if line.1.starts_with('"') && line.1 != header.1 {
            rows.push(*line);
        } else if !line.1.starts_with("==") && !line.1.is_empty() && line.1 != header.1 {
            strange += 1;
        }
    }
    if strange > 0 {
        notes.add(format!("{strange} lines between the rows of the table are not rows"));
    }
    rows
}

/// A value as written in the file.
#[derive(Clone, Debug)]
struct NcuValue {
    unit: String,
    text: String,
    line: usize,
}

/// The values of one launch.
#[derive(Debug)]
struct NcuLaunch {
    kernel: String,
    names: &'static [NcuMetric],
    /// By the profiler's own names; nothing if two rows contradict each other.
    readings: BTreeMap<String, Option<NcuValue>>,
    remarks: Vec<ProfilerRemark>,
    /// Numbers from rules.
    reported: Vec<(&'static str, f64, ProfileSource)>,
}

impl NcuLaunch {
    fn new(kernel: &str, names: &'static [NcuMetric]) -> Self {
        Self {
            kernel: kernel.to_owned(),
            names,
            readings: BTreeMap::new(),
            remarks: Vec::new(),
            reported: Vec::new(),
        }
    }

    /// Adds a value. If it contradicts another, both are discarded.
    fn take(&mut self, name: &str, reading: NcuValue, notes: &mut ProfileNotes) {
        use std::collections::btree_map::Entry;
        match self.readings.entry(name.to_owned()) {
            Entry::Vacant(entry) => {
                entry.insert(Some(reading));
            }
            Entry::Occupied(mut entry) => {
                let same = |old: &NcuValue| old.text == reading.text && old.unit == reading.unit;
                if !entry.get().as_ref().is_some_and(same) {
                    let line = reading.line;
                    notes.add(format!(
                        "line {line}: {name} appears twice with different values: not read"
                    ));
                    entry.insert(None);
                }
            }
        }
    }

    /// The value of a metric in the unit of its kind, and its source.
    fn value(
        &self,
        name: &str,
        kind: super::number::Quantity,
        notes: &mut ProfileNotes,
    ) -> Result<Option<(f64, ProfileSource)>, ProfileParseError> {
        let Some(Some(reading)) = self.readings.get(name) else {
            return Ok(None);
        };
        let NcuValue { unit, text, line } = reading;
        if is_localized(text) {
            let reason =
                format!("{name} is {text:?}, a number of another locale: profile with LC_ALL=C");
            return Err(ProfileParseError::at(*line, reason));
        }
        if text.is_empty() || text == "no data" {
            return Ok(None);
        }
        let Some(value) = grouped(text) else {
            notes.add(format!("line {line}: {name} is {text:?}, which is not a valid number"));
            return Ok(None);
        };
        let Some(scale) = scale(kind, unit) else {
            notes.add(format!("line {line}: {name} has the unit {unit:?}: not read"));
            return Ok(None);
        };
        let quote = format!("{name} {text} {unit}");
        Ok(Some((value * scale, ProfileSource::at(TOOL, *line, &quote))))
    }

    /// All counters that can be derived from the values.
    fn counters(&self, notes: &mut ProfileNotes) -> Result<KernelProfile, ProfileParseError> {
        let mut profile = KernelProfile::named(&self.kernel);
        for name in self.names {
            if profile.counters.contains_key(name.counter) {
                continue;
            }
            if let Some((value, source)) = self.combined(name, notes)? {
                profile.set(name.counter, value, source);
            }
        }
        self.stalls(&mut profile, notes)?;
        for (counter, value, source) in &self.reported {
            if !profile.counters.contains_key(*counter) {
                profile.set(counter, *value, source.clone());
            }
        }
        Ok(profile)
    }

    /// The value of a counter from one metric or two.
    fn combined(
        &self,
        name: &NcuMetric,
        notes: &mut ProfileNotes,
    ) -> Result<Option<(f64, ProfileSource)>, ProfileParseError> {
        let Some((first, source)) = self.value(name.metric, name.kind, notes)? else {
            return Ok(None);
        };
        let Some((combination, other)) = name.with else {
            return Ok(Some((first, source)));
        };
        let Some((second, other_source)) = self.value(other, name.kind, notes)? else {
            return Ok(None);
        };
        let quote = format!("{}, {}", source.quote, other_source.quote);
        let source = ProfileSource { quote, ..source };
        let value = combination.combine(first, second);
        Ok(value.map(|value| (value, source)))
    }

    /// Why warps wait: each reason as a share of all cycles between two instructions of a warp.
    fn stalls(
        &self,
        profile: &mut KernelProfile,
        notes: &mut ProfileNotes,
    ) -> Result<(), ProfileParseError> {
        let mut reasons = Vec::new();
        for metric in self.readings.keys() {
            let Some(reason) = names::stall_of(metric) else {
                continue;
            };
            let kind = super::number::Quantity::Count;
            // A share needs the total.
            let Some((value, source)) = self.value(metric, kind, notes)? else {
                return Ok(());
            };
            reasons.push((reason, value, source));
        }
        let all: f64 = reasons.iter().map(|(_, value, _)| value).sum();
        for (reason, value, source) in reasons {
            // A selected warp does not wait.
            if all > 0.0 && reason != "selected" {
                let quote = format!("{} of {all:.2} in all reasons", source.quote);
                let source = ProfileSource { quote, ..source };
                profile.set(&format!("stall.{reason}"), 100.0 * value / all, source);
            }
        }
        Ok(())
    }
}

/// Where a column is.
fn column(columns: &[String], name: &str, line: usize) -> Result<usize, ProfileParseError> {
    let mut places = (0..columns.len()).filter(|at| columns[*at] == name);
    match (places.next(), places.next()) {
        (Some(at), None) => Ok(at),
        (None, _) => Err(ProfileParseError::at(line, format!("there is no column {name:?}"))),
        (Some(_), Some(_)) => {
            Err(ProfileParseError::at(line, format!("the column {name:?} appears twice")))
        }
    }
}
