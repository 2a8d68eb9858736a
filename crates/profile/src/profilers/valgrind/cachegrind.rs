//! Cachegrind's file: `fl=`, `fn=`, then a line for each line of source with its counts.

use super::super::editable::EditableFiles;
use super::super::text::{ENDS_EARLY, Lines};
use super::{PROCESSES_MAX, ParsedProfile, ProcessCosts, ProfileParseError, counts, of_processes};

const TOOL: &str = "cachegrind";

/// The first line of the file of a process.
const BEGINS: &str = "desc: I1 cache:";

/// Reads the files of all processes, or fails.
pub(in super::super) fn parse(
    text: &str,
    editable: &EditableFiles,
) -> Result<ParsedProfile, ProfileParseError> {
    let lines = Lines::of(text)?;
    let mut processes = Vec::new();
    let mut costs = ProcessCosts::default();
    let mut function: Option<&str> = None;
    let mut file = "";
    let mut summed = false;
    for (number, line) in &lines.whole {
        if summed && line.starts_with(BEGINS) && processes.len() < PROCESSES_MAX {
            processes.push(std::mem::take(&mut costs));
            (function, file, summed) = (None, "", false);
        }
        if summed {
            return Err(ProfileParseError::at(*number, "something follows the summary"));
        }
        if line.starts_with("desc:") || line.trim().is_empty() {
            continue;
        }
        if let Some(command) = line.strip_prefix("cmd:") {
            costs.command = command.trim().to_owned();
            continue;
        }
        if let Some(names) = line.strip_prefix("events:") {
            costs.name_events(names, *number)?;
        } else if let Some(name) =
            ["fl=", "fi=", "fe="].iter().find_map(|key| line.strip_prefix(key))
        {
            // The function continues until another one is named.
            file = name;
        } else if let Some(name) = line.strip_prefix("fn=") {
            function = Some(name);
        } else if let Some(totals) = line.strip_prefix("summary:") {
            costs.check(&counts(totals.split_whitespace(), *number)?, *number)?;
            summed = true;
        } else {
            let Some(function) = function else {
                return Err(ProfileParseError::at(
                    *number,
                    "the line does not belong to a function",
                ));
            };
            // The first number is the line of the source.
            let row = counts(line.split_whitespace(), *number)?;
            if row.len() != costs.events.len() + 1 {
                let n = costs.events.len();
                let reason = format!("a source line does not have {n} counts");
                return Err(ProfileParseError::at(*number, reason));
            }
            costs.add(function, file, &row[1..], *number)?;
        }
    }
    if !summed {
        let reason = if lines.cut { ENDS_EARLY } else { "the file ends before its summary" };
        return Err(ProfileParseError::at(lines.whole.len().max(1), reason));
    }
    processes.push(costs);
    of_processes(processes, TOOL, editable).map(|(parsed, _)| parsed)
}
