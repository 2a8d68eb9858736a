//! The page `details`: a row for each metric and each rule of a launch.

use super::super::gather::ProfileNotes;
use super::super::number::plain;
use super::super::text::{NumberedLine, cells};
use super::names::{DETAILS, RATE, STALL_WORDS, is_wanted};
use super::{LAUNCHES_MAX, NcuLaunch, NcuValue, ProfileParseError, TOOL, column};
use karve_core::profile::{ProfileSource, ProfilerRemark};
use std::collections::BTreeMap;

/// The most remarks of one kernel.
const REMARKS_MAX: usize = 32;
/// The most characters of a remark.
const REMARK_CHARS: usize = 600;

/// The columns of the table.
struct NcuColumns {
    n: usize,
    id: usize,
    process: usize,
    kernel: usize,
    metric: usize,
    unit: usize,
    value: usize,
    rule: Option<RuleColumns>,
}

/// The columns of a rule; old versions have none.
struct RuleColumns {
    name: usize,
    text: usize,
    /// The kind of the expected gain, and the gain.
    gain: Option<(usize, usize)>,
}

/// The values of each launch.
pub(super) fn sheets(
    columns: &[String],
    rows: &[NumberedLine<'_>],
    notes: &mut ProfileNotes,
) -> Result<Vec<NcuLaunch>, ProfileParseError> {
    let line = rows.first().map_or(1, |row| row.0.saturating_sub(1));
    let columns = NcuColumns::of(columns, line)?;
    let mut launches: BTreeMap<(String, String), NcuLaunch> = BTreeMap::new();
    for line in rows {
        let row = columns.row(*line)?;
        let key = (row[columns.process].clone(), row[columns.id].clone());
        let kernel = &row[columns.kernel];
        let sheet = launches.entry(key).or_insert_with(|| NcuLaunch::new(kernel, &DETAILS));
        if sheet.kernel != *kernel || kernel.is_empty() {
            let reason = format!("launch {} has two names", row[columns.id]);
            return Err(ProfileParseError::at(line.0, reason));
        }
        if !row[columns.metric].is_empty() {
            take_metric(sheet, &columns, &row, line.0, notes);
        } else if let Some(rule) = &columns.rule {
            take_rule(sheet, rule, &row, line.0, notes);
        }
        if launches.len() > LAUNCHES_MAX {
            let reason = format!("there are more than {LAUNCHES_MAX} launches");
            return Err(ProfileParseError::at(line.0, reason));
        }
    }
    Ok(launches.into_values().collect())
}

impl NcuColumns {
    fn of(columns: &[String], line: usize) -> Result<Self, ProfileParseError> {
        let has = |name: &str| columns.iter().any(|column| column == name);
        let rule = if has("Rule Name") {
            let gain = if has("Estimated Speedup") {
                let kind = column(columns, "Estimated Speedup Type", line)?;
                Some((kind, column(columns, "Estimated Speedup", line)?))
            } else {
                None
            };
            Some(RuleColumns {
                name: column(columns, "Rule Name", line)?,
                text: column(columns, "Rule Description", line)?,
                gain,
            })
        } else {
            None
        };
        Ok(Self {
            n: columns.len(),
            id: column(columns, "ID", line)?,
            process: column(columns, "Process ID", line)?,
            kernel: column(columns, "Kernel Name", line)?,
            metric: column(columns, "Metric Name", line)?,
            unit: column(columns, "Metric Unit", line)?,
            value: column(columns, "Metric Value", line)?,
            rule,
        })
    }

    /// A row of a metric, which ends after its value and a comma, or a whole one.
    fn row(&self, line: NumberedLine<'_>) -> Result<Vec<String>, ProfileParseError> {
        let mut row = cells(line)?;
        let last = self.value + 2;
        let is_short = row.len() == last && row.last().is_some_and(String::is_empty);
        if is_short {
            row.resize(self.n.max(last), String::new());
        } else if row.len() != self.n {
            let (has, wants) = (row.len(), self.n);
            let reason = format!("the row has {has} cells, not {last} or {wants}");
            return Err(ProfileParseError::at(line.0, reason));
        }
        Ok(row)
    }
}

fn take_metric(
    sheet: &mut NcuLaunch,
    columns: &NcuColumns,
    row: &[String],
    line: usize,
    notes: &mut ProfileNotes,
) {
    let (name, unit) = (&row[columns.metric], &row[columns.unit]);
    let name = if unit.ends_with("/s") || unit.ends_with("/second") {
        format!("{name}{RATE}")
    } else {
        name.clone()
    };
    if is_wanted(&DETAILS, &name) {
        let reading = NcuValue { unit: unit.clone(), text: row[columns.value].clone(), line };
        sheet.take(&name, reading, notes);
    }
}

fn take_rule(
    sheet: &mut NcuLaunch,
    columns: &RuleColumns,
    row: &[String],
    line: usize,
    notes: &mut ProfileNotes,
) {
    let (rule, text) = (&row[columns.name], &row[columns.text]);
    if rule.is_empty() {
        return;
    }
    let mut gain_pct = None;
    let mut quote = rule.clone();
    if let Some((kind, gain)) = columns.gain {
        // A local gain is for a part of the device, not for the run time.
        if row[kind] == "global" {
            gain_pct = plain(&row[gain]);
            quote = format!("{rule} Estimated Speedup {}", row[gain]);
            if gain_pct.is_none() {
                notes.add(format!("line {line}: the estimated speedup is not a valid number"));
            }
        }
    }
    for (counter, value) in counters_in_text(text) {
        let source = ProfileSource::at(TOOL, line, &format!("{rule}: {text}"));
        sheet.reported.push((counter, value, source));
    }
    let remark = ProfilerRemark {
        rule: rule.clone(),
        text: text.chars().take(REMARK_CHARS).collect(),
        gain_pct,
        source: ProfileSource::at(TOOL, line, &quote),
    };
    let same = |old: &ProfilerRemark| old.rule == remark.rule && old.text == remark.text;
    if sheet.remarks.len() < REMARKS_MAX && !sheet.remarks.iter().any(same) {
        sheet.remarks.push(remark);
    }
}

/// Counters that appear only in the text of a rule.
fn counters_in_text(text: &str) -> Vec<(&'static str, f64)> {
    let mut reported_value = Vec::new();
    // "... a total of 234881024 excessive sectors (78% of the total 301989888 sectors)."
    let wasted = number_before(text, " excessive sectors (");
    let all = after(text, "% of the total ").and_then(|rest| number_before(rest, " sectors)"));
    let uncoalesced = text.contains("uncoalesced global accesses");
    if let (true, Some(wasted), Some(all)) = (uncoalesced, wasted, all)
        && all > 0.0
        && wasted <= all
    {
        reported_value.push(("wasted_sectors_pct", 100.0 * wasted / all));
    }
    // "... bank conflicts, which represent 50.00% of the overall 33554432 wavefronts for ..."
    if text.contains("bank conflict") && text.contains("wavefronts for shared loads") {
        let share = after(text, "which represent ").and_then(|rest| first_number(rest, "%"));
        reported_value.extend(share.map(|share| ("bank_conflict_pct", share)));
    }
    // "This stall type represents about 39.4% of the total average of 41.9 cycles ..."
    let share = after(text, "This stall type represents about ");
    if let Some(share) = share.and_then(|rest| first_number(rest, "% of the total average")) {
        let reason = STALL_WORDS.iter().find(|(words, _)| text.contains(words));
        reported_value.extend(reason.map(|(_, counter)| (*counter, share)));
    }
    reported_value
}

fn after<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    text.split_once(words).map(|(_, rest)| rest)
}

/// The number at the start of a text, if these words follow it.
fn first_number(text: &str, words: &str) -> Option<f64> {
    plain(text.split_once(words)?.0)
}

/// The number right before some words.
fn number_before(text: &str, words: &str) -> Option<f64> {
    let before = text.split_once(words)?.0;
    plain(before.rsplit(' ').next().unwrap_or_default())
}
