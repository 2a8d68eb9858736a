//! Callgrind's file: names are written once and then as `(1)`, positions are relative, and the
//! line after `calls=` is the cost of the callee, which is not part of the caller's own cost.

use super::super::editable::EditableFiles;
use super::super::number::whole;
use super::super::text::{ENDS_EARLY, Lines};
use super::super::vectors::KernelCode;
use super::{
    FUNCTIONS_MAX, KernelEntry, PROCESSES_MAX, ParsedProfile, ProcessCosts, ProfileParseError,
    counts, of_processes,
};
use std::collections::BTreeMap;

const TOOL: &str = "callgrind";
/// Keys of lines that are not about the cost of a function itself.
const SILENT: [&str; 4] = ["cfi=", "cfl=", "jump=", "jcnd="];
/// The first line of the file of a process.
const BEGINS: &str = "# callgrind format";

/// What has been read of a process so far.
#[derive(Default)]
struct CallgrindReader {
    costs: ProcessCosts,
    /// Names of functions by their numbers.
    names: BTreeMap<u64, String>,
    /// Names of files by theirs.
    files: BTreeMap<u64, String>,
    function: Option<String>,
    /// The file that the lines belong to.
    file: String,
    /// The function that is called next.
    callee: String,
    /// The object that the lines belong to.
    object: u64,
    /// Words before the counts on a line.
    positions: usize,
    /// The address of the last line, if the first word is one.
    address: Option<u64>,
    /// Whether the next line is the cost of a callee.
    after_calls: bool,
    totals: Option<(Vec<u64>, usize)>,
}

/// Reads the files of all processes, or fails.
pub(in super::super) fn parse(
    text: &str,
    editable: &EditableFiles,
) -> Result<ParsedProfile, ProfileParseError> {
    parse_code(text, editable).map(|(parsed, _)| parsed)
}

/// The same, with how often each instruction of the first kernel ran, if the files have it.
pub(in super::super) fn parse_code(
    text: &str,
    editable: &EditableFiles,
) -> Result<(ParsedProfile, Option<KernelCode>), ProfileParseError> {
    of_processes(processes_in(text)?, TOOL, editable)
}

/// The function of the kernel that the benchmark calls, and the instructions of all processes.
pub(in super::super) fn entry(
    text: &str,
    editable: &EditableFiles,
) -> Result<KernelEntry, ProfileParseError> {
    KernelEntry::of(&processes_in(text)?, editable)
}

/// The costs of all processes.
fn processes_in(text: &str) -> Result<Vec<ProcessCosts>, ProfileParseError> {
    let lines = Lines::of(text)?;
    let mut processes = Vec::new();
    let mut reader = CallgrindReader::new();
    for (number, line) in &lines.whole {
        let is_over = reader.totals.is_some();
        if is_over && line.starts_with(BEGINS) && processes.len() < PROCESSES_MAX {
            let before = std::mem::replace(&mut reader, CallgrindReader::new());
            processes.extend(before.finish()?);
        } else if is_over && !line.trim().is_empty() {
            return Err(ProfileParseError::at(*number, "something follows the totals"));
        }
        reader.take(line, *number)?;
    }
    let Some(last) = reader.finish()? else {
        let reason = if lines.cut { ENDS_EARLY } else { "the file ends before its totals" };
        return Err(ProfileParseError::at(lines.whole.len().max(1), reason));
    };
    processes.push(last);
    Ok(processes)
}

impl CallgrindReader {
    fn new() -> Self {
        Self { positions: 1, ..Self::default() }
    }

    /// The costs of the process, if its file is complete and adds up.
    fn finish(self) -> Result<Option<ProcessCosts>, ProfileParseError> {
        let Some((totals, line)) = self.totals else {
            return Ok(None);
        };
        self.costs.check(&totals, line)?;
        Ok(Some(self.costs))
    }

    fn take(&mut self, line: &str, number: usize) -> Result<(), ProfileParseError> {
        let is_cost = line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c));
        if self.after_calls {
            self.after_calls = false;
            return if is_cost {
                self.take_call(line, number)
            } else {
                Err(ProfileParseError::at(number, "a cost line must follow a call"))
            };
        }
        if is_cost {
            return self.take_cost(line, number);
        }
        if let Some(name) = line.strip_prefix("fn=") {
            self.function = Some(without_level(&self.name(name, number)?).to_owned());
        } else if let Some(name) = line.strip_prefix("cfn=") {
            self.callee = without_level(&self.name(name, number)?).to_owned();
        } else if let Some(name) =
            ["fl=", "fi=", "fe="].iter().find_map(|key| line.strip_prefix(key))
        {
            self.file = self.file_name(name);
        } else if let Some(name) = line.strip_prefix("ob=") {
            self.object = self.object_of(name);
        } else if let Some(name) = line.strip_prefix("cob=") {
            self.object_of(name);
        } else if let Some(command) = line.strip_prefix("cmd:") {
            self.costs.command = command.trim().to_owned();
        } else if line.starts_with("calls=") {
            self.after_calls = true;
        } else if let Some(names) = line.strip_prefix("events:") {
            self.costs.name_events(names, number)?;
        } else if let Some(words) = line.strip_prefix("positions:") {
            self.positions = words.split_whitespace().count();
            self.address = words.trim_start().starts_with("instr").then_some(0);
        } else if let Some(totals) = line.strip_prefix("totals:") {
            self.totals = Some((counts(totals.split_whitespace(), number)?, number));
        } else if !is_silent(line) {
            return Err(ProfileParseError::at(number, "this is not a line of callgrind"));
        }
        Ok(())
    }

    /// Where a line is: `0x1360`, or `+3`, `-3` or `*` from the line before.
    fn go_to(&mut self, line: &str, number: usize) -> Result<(), ProfileParseError> {
        let (Some(last), Some(word)) = (self.address, line.split_whitespace().next()) else {
            return Ok(());
        };
        let address = match (word.strip_prefix('+'), word.strip_prefix('-')) {
            (Some(more), _) => whole(more).and_then(|more| last.checked_add(more)),
            (_, Some(less)) => whole(less).and_then(|less| last.checked_sub(less)),
            _ if word == "*" => Some(last),
            _ => word.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok()),
        };
        let wrong = || ProfileParseError::at(number, format!("{word:?} is not an address"));
        self.address = Some(address.ok_or_else(wrong)?);
        Ok(())
    }

    /// `(1) name` names an object, `(1)` refers to one already named.
    fn object_of(&mut self, text: &str) -> u64 {
        let Some((id, name)) = numbered(text) else {
            return 0;
        };
        if !name.is_empty() && self.costs.objects.len() < FUNCTIONS_MAX {
            self.costs.objects.insert(id, name.to_owned());
        }
        id
    }

    /// `+3 16 0 1`: positions, then counts; zeros at the end are not written.
    fn take_cost(&mut self, line: &str, number: usize) -> Result<(), ProfileParseError> {
        self.go_to(line, number)?;
        let Some(function) = &self.function else {
            return Err(ProfileParseError::at(number, "the line does not belong to a function"));
        };
        let words = line.split_whitespace().skip(self.positions);
        let row = counts(words, number)?;
        self.costs.add(function, &self.file, &row, number)?;
        if let (Some(address), Some(count)) = (self.address, row.first()) {
            let at = (self.object, address);
            self.costs.add_instruction(function, at, *count);
        }
        Ok(())
    }

    /// The cost of a callee also belongs to its caller, unless the function calls itself.
    fn take_call(&mut self, line: &str, number: usize) -> Result<(), ProfileParseError> {
        self.go_to(line, number)?;
        let Some(function) = self.function.as_ref().filter(|f| **f != self.callee) else {
            return Ok(());
        };
        let row = counts(line.split_whitespace().skip(self.positions), number)?;
        self.costs.add_call(function, &self.callee, &row, number)
    }

    /// `(1) name` names a file, `(1)` refers to one already named; one without a name is unknown.
    fn file_name(&mut self, text: &str) -> String {
        let Some((id, name)) = numbered(text) else {
            return text.trim().to_owned();
        };
        if !name.is_empty() && self.files.len() < FUNCTIONS_MAX {
            self.files.insert(id, name.to_owned());
        }
        self.files.get(&id).cloned().unwrap_or_default()
    }

    /// `(1) name` names a function, `(1)` refers to one already named.
    fn name(&mut self, text: &str, line: usize) -> Result<String, ProfileParseError> {
        let Some((id, name)) = numbered(text) else {
            return Ok(text.trim().to_owned());
        };
        match self.names.get(&id) {
            Some(known) if name.is_empty() || known == name => Ok(known.clone()),
            None if !name.is_empty() && self.names.len() < FUNCTIONS_MAX => {
                self.names.insert(id, name.to_owned());
                Ok(name.to_owned())
            }
            Some(_) => Err(ProfileParseError::at(line, format!("function ({id}) has two names"))),
            None => Err(ProfileParseError::at(line, format!("function ({id}) has no name"))),
        }
    }
}

/// The number and the name of `(1) name`; the name of `(1)` is empty.
fn numbered(text: &str) -> Option<(u64, &str)> {
    let (id, name) = text.strip_prefix('(')?.split_once(')')?;
    Some((whole(id)?, name.trim()))
}

/// Whether a line has no costs: a comment, a header key, a file or an object.
fn is_silent(line: &str) -> bool {
    let is_head = line
        .split_once(':')
        .is_some_and(|(key, _)| !key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase()));
    line.trim().is_empty()
        || line.starts_with('#')
        || SILENT.iter().any(|key| line.starts_with(key))
        || is_head
}

/// `depth'2` is a recursive call of `depth`.
fn without_level(name: &str) -> &str {
    match name.rsplit_once('\'') {
        Some((name, level)) if whole(level).is_some() && !name.is_empty() => name,
        Some(_) | None => name,
    }
}
