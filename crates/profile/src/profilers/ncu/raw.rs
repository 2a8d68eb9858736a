//! The page `raw`: a row for each launch, a column for each metric, the units in the first row.

use super::super::gather::ProfileNotes;
use super::super::text::{NumberedLine, full_row};
use super::names::{RAW, is_wanted};
use super::{LAUNCHES_MAX, NcuLaunch, NcuValue, ProfileParseError, column};
use std::collections::BTreeMap;

/// Columns that name a launch, before those of metrics.
const NAMING: usize = 11;

/// The values of each launch.
pub(super) fn sheets(
    header_line: usize,
    columns: &[String],
    rows: &[NumberedLine<'_>],
    notes: &mut ProfileNotes,
) -> Result<Vec<NcuLaunch>, ProfileParseError> {
    let id = column(columns, "ID", header_line)?;
    let process = column(columns, "Process ID", header_line)?;
    let kernel = column(columns, "Kernel Name", header_line)?;
    let wanted: Vec<usize> =
        (0..columns.len()).filter(|at| is_wanted(&RAW, &columns[*at])).collect();
    for at in &wanted {
        column(columns, &columns[*at], header_line)?;
    }
    let Some((units_line, rows)) = rows.split_first() else {
        return Err(ProfileParseError::at(header_line, "there is nothing after the header"));
    };
    let units = full_row(*units_line, columns)?;
    if !units.iter().take(NAMING.min(kernel + 1)).all(String::is_empty) {
        let reason = "the row after the header has no units";
        return Err(ProfileParseError::at(units_line.0, reason));
    }
    let mut seen: BTreeMap<(String, String), &str> = BTreeMap::new();
    let mut sheets = Vec::new();
    for line in rows {
        let row = full_row(*line, columns)?;
        if row[id].is_empty() || row[kernel].is_empty() {
            return Err(ProfileParseError::at(line.0, "the row does not name a kernel"));
        }
        let key = (row[process].clone(), row[id].clone());
        match seen.insert(key, line.1) {
            None => {}
            Some(before) if before == line.1 => {
                notes.add(format!("line {}: the row appears twice", line.0));
                continue;
            }
            Some(_) => {
                let reason = format!("launch {} appears twice with other values", row[id]);
                return Err(ProfileParseError::at(line.0, reason));
            }
        }
        let mut sheet = NcuLaunch::new(&row[kernel], &RAW);
        for at in &wanted {
            let reading =
                NcuValue { unit: units[*at].clone(), text: row[*at].clone(), line: line.0 };
            sheet.take(&columns[*at], reading, notes);
        }
        sheets.push(sheet);
        if sheets.len() > LAUNCHES_MAX {
            let reason = format!("there are more than {LAUNCHES_MAX} launches");
            return Err(ProfileParseError::at(line.0, reason));
        }
    }
    Ok(sheets)
}
