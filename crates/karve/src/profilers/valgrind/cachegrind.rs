//! Cachegrind's file: `fl=`, `fn=`, then a line for each line of source with its counts.

use super::super::gather::Notes;
use super::super::text::{ENDS_EARLY, Lines};
use super::{Costs, Parsed, Unreadable, counts};

const TOOL: &str = "cachegrind";

/// Reads the whole file, or nothing of it.
pub(in super::super) fn parse(text: &str) -> Result<Parsed, Unreadable> {
    let lines = Lines::of(text)?;
    let mut costs = Costs::default();
    let mut function: Option<&str> = None;
    let mut summed = false;
    for (number, line) in &lines.whole {
        if summed {
            return Err(Unreadable::at(*number, "something follows the summary"));
        }
        if line.starts_with("desc:") || line.starts_with("cmd:") || line.trim().is_empty() {
            continue;
        }
        if let Some(names) = line.strip_prefix("events:") {
            costs.name_events(names, *number)?;
        } else if line.starts_with("fl=") || line.starts_with("fi=") || line.starts_with("fe=") {
            // The function goes on until another one is named.
        } else if let Some(name) = line.strip_prefix("fn=") {
            function = Some(name);
        } else if let Some(totals) = line.strip_prefix("summary:") {
            costs.check(&counts(totals.split_whitespace(), *number)?, *number)?;
            summed = true;
        } else {
            let Some(function) = function else {
                return Err(Unreadable::at(*number, "the line belongs to no function"));
            };
            // The first number is the line of the source.
            let row = counts(line.split_whitespace(), *number)?;
            if row.len() != costs.events.len() + 1 {
                let n = costs.events.len();
                let reason = format!("a line of source has no {n} counts");
                return Err(Unreadable::at(*number, reason));
            }
            costs.add(function, &row[1..], *number)?;
        }
    }
    if !summed {
        let reason = if lines.cut {
            ENDS_EARLY
        } else {
            "the file ends before its summary"
        };
        return Err(Unreadable::at(lines.whole.len().max(1), reason));
    }
    costs.parsed(TOOL, Notes::default())
}
