//! Valgrind's cachegrind and callgrind: the cost of each function, in simulated events.
//!
//! Both files contain the total cost of all functions. The lines must add up to it, so that a
//! lost, duplicated or misread line is detected. A program that starts others leaves a file per
//! process; of these, the process that runs the kernel counts.

pub(super) mod cachegrind;
pub(super) mod callgrind;

use super::editable::{EditableFiles, plain_name};
use super::gather::{ProfileNotes, WeightedKernel, heaviest};
use super::number::whole;
use super::vectors::{FunctionCode, KernelCode};
use super::{PROGRAM, ParsedProfile, ProfileParseError};
use karve_core::profile::{KernelProfile, ProfileSource};
use std::collections::{BTreeMap, BTreeSet};

/// The most events of a file.
const EVENTS_MAX: usize = 64;
/// The most functions of a file.
const FUNCTIONS_MAX: usize = 500_000;
/// The most instructions whose counts are kept individually.
const INSTRUCTIONS_MAX: usize = 2_000_000;
/// The most processes of one output.
const PROCESSES_MAX: usize = 1_000;
/// Functions with a smaller share of the instructions are not listed, in percent.
const SHARE_PCT_MIN: f64 = 0.5;
/// A share is reported only for events that happen at least once in this many instructions.
const SELDOM: u64 = 1_000;
/// The note if the kernel was not found.
pub const UNSEEN: &str = "no function of the editable files was seen (it may be inlined \
    elsewhere, or have no name; build with -g): the first figures are for the whole program";
/// The note if only launcher programs ran.
pub const NO_KERNEL: &str = "only programs that start others were seen, but no kernel";
/// Programs that start or build others; they are not kernels.
const STARTERS: [&str; 30] = [
    "sh", "bash", "dash", "zsh", "env", "make", "gmake", "cmake", "ninja", "cargo", "rustc", "cc",
    "c++", "gcc", "g++", "clang", "clang++", "cc1", "cc1plus", "collect2", "as", "ld", "nice",
    "taskset", "timeout", "time", "xargs", "git", "numactl", "stdbuf",
];

/// The cost of a function.
#[derive(Debug, Default)]
struct FunctionCost {
    /// The line where it is first named.
    line: usize,
    /// One count per event, without its callees.
    counts: Vec<u64>,
    /// The cost of its callees, if the file has it.
    called: Vec<u64>,
    /// How much of the first event is in each source file.
    files: BTreeMap<String, u64>,
    /// How much of it is in each instruction, by object and address, if the file has it.
    code: BTreeMap<(u64, u64), u64>,
    /// The functions that it calls.
    calls: BTreeSet<String>,
}

/// The costs of all functions of a process.
#[derive(Debug, Default)]
struct ProcessCosts {
    /// The command of the process.
    command: String,
    events: Vec<String>,
    functions: BTreeMap<String, FunctionCost>,
    /// Names of objects by their numbers.
    objects: BTreeMap<u64, String>,
    /// Instructions whose counts are kept.
    n_instructions: usize,
}

impl FunctionCost {
    /// The file that contains most of it.
    fn file(&self) -> &str {
        let most = self.files.iter().max_by_key(|(_, count)| **count);
        most.map_or("", |(file, _)| file)
    }

    /// Including its callees.
    fn whole(&self) -> Vec<u64> {
        let mut whole = self.counts.clone();
        for (sum, count) in whole.iter_mut().zip(&self.called) {
            *sum = sum.saturating_add(*count);
        }
        whole
    }
}

impl ProcessCosts {
    /// Reads the names of events.
    fn name_events(&mut self, names: &str, line: usize) -> Result<(), ProfileParseError> {
        let events: Vec<String> = names.split_whitespace().map(str::to_owned).collect();
        let mut sorted = events.clone();
        sorted.sort();
        sorted.dedup();
        let usable = !events.is_empty() && events.len() <= EVENTS_MAX;
        if !usable || sorted.len() != events.len() || !self.events.is_empty() {
            return Err(ProfileParseError::at(line, "the event names are not unique"));
        }
        self.events = events;
        Ok(())
    }

    /// Adds counts to a function; missing counts are zero.
    fn add(
        &mut self,
        function: &str,
        file: &str,
        counts: &[u64],
        line: usize,
    ) -> Result<(), ProfileParseError> {
        let cost = self.cost(function, counts, line)?;
        add_counts(&mut cost.counts, counts, line)?;
        let first = counts.first().copied().unwrap_or(0);
        let sum = cost.files.entry(file.to_owned()).or_default();
        *sum = sum.saturating_add(first);
        Ok(())
    }

    /// Adds the cost of a callee to its caller.
    fn add_call(
        &mut self,
        function: &str,
        callee: &str,
        counts: &[u64],
        line: usize,
    ) -> Result<(), ProfileParseError> {
        let cost = self.cost(function, counts, line)?;
        cost.calls.insert(callee.to_owned());
        add_counts(&mut cost.called, counts, line)
    }

    /// Adds how often an instruction of a function ran.
    fn add_instruction(&mut self, function: &str, at: (u64, u64), count: u64) {
        let Some(cost) = self.functions.get_mut(function) else {
            return;
        };
        if let Some(sum) = cost.code.get_mut(&at) {
            *sum = sum.saturating_add(count);
        } else if self.n_instructions < INSTRUCTIONS_MAX {
            self.n_instructions += 1;
            cost.code.insert(at, count);
        }
    }

    /// How often each instruction of a kernel ran, including its callees; nothing if the file does
    /// not have it, or has too many.
    fn code_of(&self, kernel: &str) -> Option<KernelCode> {
        if self.n_instructions == 0 || self.n_instructions == INSTRUCTIONS_MAX {
            return None;
        }
        let mut held: BTreeSet<&str> = BTreeSet::new();
        let mut open: Vec<&str> = match kernel {
            PROGRAM => self.functions.keys().map(String::as_str).collect(),
            kernel => vec![kernel],
        };
        while let Some(name) = open.pop() {
            if let Some((name, cost)) = self.functions.get_key_value(name)
                && held.insert(name)
            {
                open.extend(cost.calls.iter().map(String::as_str));
            }
        }
        let mut parts: BTreeMap<(&str, u64), BTreeMap<u64, u64>> = BTreeMap::new();
        for name in held {
            for ((object, address), count) in self.functions.get(name).iter().flat_map(|c| &c.code)
            {
                let part = parts.entry((name, *object)).or_default();
                part.insert(*address, *count);
            }
        }
        let part = |((name, object), counts): ((&str, u64), BTreeMap<u64, u64>)| FunctionCode {
            function: name.to_owned(),
            object: self.objects.get(&object).cloned().unwrap_or_default(),
            counts,
        };
        Some(KernelCode::of(kernel, parts.into_iter().map(part).collect()))
    }

    fn cost(
        &mut self,
        function: &str,
        counts: &[u64],
        line: usize,
    ) -> Result<&mut FunctionCost, ProfileParseError> {
        let n = self.events.len();
        if counts.len() > n {
            let reason = format!("there are more than {n} counts");
            return Err(ProfileParseError::at(line, reason));
        }
        let known = self.functions.contains_key(function);
        if !known && self.functions.len() == FUNCTIONS_MAX {
            return Err(ProfileParseError::at(line, "there are too many functions"));
        }
        Ok(self.functions.entry(function.to_owned()).or_insert_with(|| FunctionCost {
            line,
            counts: vec![0; n],
            called: vec![0; n],
            ..FunctionCost::default()
        }))
    }

    /// Checks that the costs of all functions add up to the total of the file.
    fn check(&self, totals: &[u64], line: usize) -> Result<(), ProfileParseError> {
        for (at, event) in self.events.iter().enumerate() {
            let parts = self.functions.values().map(|cost| cost.counts[at]);
            let sum = parts.fold(0_u64, u64::saturating_add);
            let total = totals.get(at).copied().unwrap_or(0);
            if sum != total {
                let reason = format!(
                    "the file says the total of {event} is {total}, but its lines add up to {sum}"
                );
                return Err(ProfileParseError::at(line, reason));
            }
        }
        Ok(())
    }

    /// Instructions of all functions, or of those in some files.
    fn instructions(&self, ir: usize, of: impl Fn(&str, &FunctionCost) -> bool) -> u64 {
        let functions = self.functions.iter();
        let held = functions.filter(|(name, cost)| of(name, cost));
        held.fold(0, |sum, (_, cost)| sum.saturating_add(cost.counts[ir]))
    }

    /// The name of the program.
    fn program(&self) -> &str {
        let program = self.command.split_whitespace().next().unwrap_or_default();
        program.rsplit('/').next().unwrap_or_default()
    }

    /// Whether the process only starts others.
    fn is_starter(&self) -> bool {
        STARTERS.contains(&self.program())
    }

    /// How likely the kernel runs in the process: an interpreter may start it or contain it.
    fn rank(&self) -> u8 {
        match self.program() {
            _ if self.is_starter() => 0,
            program if program.starts_with("python") => 1,
            _ => 2,
        }
    }

    /// The functions as kernels: those of the editable files including their callees, then those
    /// with the most instructions of their own.
    fn parsed(
        &self,
        tool: &str,
        editable: &EditableFiles,
        mut notes: ProfileNotes,
    ) -> Result<ParsedProfile, ProfileParseError> {
        let ir = self.ir()?;
        let all = self.instructions(ir, |_, _| true);
        let mut kernels = Vec::new();
        let (mut few, mut few_sum) = (0, 0_u64);
        let mut whole =
            FunctionCost { counts: vec![0; self.events.len()], ..FunctionCost::default() };
        for (name, cost) in &self.functions {
            let own = editable.holds(name, cost.file());
            add_counts(&mut whole.counts, &cost.counts, cost.line)?;
            if !own && float(cost.counts[ir]) * 100.0 < SHARE_PCT_MIN * float(all) {
                few += 1;
                few_sum = few_sum.saturating_add(cost.counts[ir]);
                continue;
            }
            let counts = if own { cost.whole() } else { cost.counts.clone() };
            let shown = FunctionCost { line: cost.line, counts, ..FunctionCost::default() };
            let mut profile = self.kernel_profile(tool, name, &shown, all);
            profile.editable = own;
            // The driver of the kernel may be in the same file.
            let first = own && plain_name(name) != "main";
            let weight = float(shown.counts[ir]) + if first { float(all) } else { 0.0 };
            kernels.push(WeightedKernel { name: name.clone(), weight, profile });
        }
        if few > 0 {
            let share = 100.0 * float(few_sum) / float(all.max(1));
            notes.add(format!(
                "{few} functions with less than {SHARE_PCT_MIN}% of the instructions each are not \
                 shown; together they have {share:.1}%"
            ));
        }
        if !editable.is_empty() && !kernels.iter().any(|kernel| kernel.profile.editable) {
            notes.add(UNSEEN);
            kernels.push(WeightedKernel {
                name: PROGRAM.to_owned(),
                weight: 2.0 * float(all),
                profile: self.kernel_profile(tool, PROGRAM, &whole, all),
            });
        }
        notes.add("the events are simulated; functions of the same name are merged");
        Ok(ParsedProfile {
            kernels: heaviest(kernels, &mut notes),
            timeline: None,
            notes: notes.finish(),
        })
    }

    fn ir(&self) -> Result<usize, ProfileParseError> {
        let found = self.events.iter().position(|event| event == "Ir");
        found.ok_or_else(|| ProfileParseError::at(1, "the file does not count instructions (Ir)"))
    }

    /// Counters of a function, or of the whole program.
    fn kernel_profile(
        &self,
        tool: &str,
        name: &str,
        cost: &FunctionCost,
        all: u64,
    ) -> KernelProfile {
        let mut profile = KernelProfile::named(name);
        let said = |quote: &str| ProfileSource::at(tool, cost.line, quote);
        let sum = |names: &[&str]| sum(&self.events, &cost.counts, names);
        let instructions = sum(&["Ir"]).unwrap_or(0);
        let quote = format!("Ir {instructions}");
        profile.set("instructions", float(instructions), said(&quote));
        if all > 0 {
            let quote = format!("Ir {instructions} of {all}");
            let share = 100.0 * float(instructions.min(all)) / float(all);
            profile.set("inst_share_pct", share, said(&quote));
        }
        for (counter, parts, wholes) in RATIOS {
            if let (Some(part), Some(whole @ 1..)) = (sum(parts), sum(wholes))
                && whole >= instructions / SELDOM
            {
                let (parts, wholes) = (parts.join(" + "), wholes.join(" + "));
                let quote = format!("{parts} = {part}, {wholes} = {whole}");
                profile.set(counter, 100.0 * float(part) / float(whole), said(&quote));
            }
        }
        profile
    }
}

/// The function of the kernel that the benchmark calls.
pub(super) struct KernelEntry {
    /// Its name, as valgrind writes it.
    pub(super) function: String,
    /// Instructions of all processes.
    pub(super) instructions: u64,
}

impl KernelEntry {
    /// The function of the editable files with the most instructions, including its callees.
    fn of(processes: &[ProcessCosts], editable: &EditableFiles) -> Result<Self, ProfileParseError> {
        let mut best: Option<(u64, &str)> = None;
        let mut instructions = 0_u64;
        for costs in processes {
            let ir = costs.ir()?;
            instructions = instructions.saturating_add(costs.instructions(ir, |_, _| true));
            for (name, cost) in &costs.functions {
                let is_own = editable.holds(name, cost.file()) && plain_name(name) != "main";
                let whole = cost.whole()[ir];
                if is_own && best.is_none_or(|(most, _)| whole > most) {
                    best = Some((whole, name));
                }
            }
        }
        let (_, function) = best.ok_or_else(|| ProfileParseError::at(1, UNSEEN))?;
        Ok(Self { function: function.to_owned(), instructions })
    }
}

/// The process that runs the kernel, and the code of its first kernel: the process with the most
/// work in functions of the editable files, else the busiest that does not only start others.
fn of_processes(
    mut processes: Vec<ProcessCosts>,
    tool: &str,
    editable: &EditableFiles,
) -> Result<(ParsedProfile, Option<KernelCode>), ProfileParseError> {
    let mut notes = ProfileNotes::default();
    let n = processes.len();
    let weight = |costs: &ProcessCosts| {
        let ir = costs.ir().ok()?;
        let own = costs.instructions(ir, |name, cost| editable.holds(name, cost.file()));
        Some((own, costs.rank(), costs.instructions(ir, |_, _| true)))
    };
    let best = (0..n).max_by_key(|at| weight(&processes[*at]));
    let Some(best) = best else {
        return Err(ProfileParseError::at(1, "there is no process in the file"));
    };
    let costs = processes.swap_remove(best);
    if n > 1 {
        let command: String = costs.command.chars().take(120).collect();
        notes.add(format!("of {n} processes, this one is reported: {command}"));
    }
    if costs.is_starter()
        && !editable.is_empty()
        && weight(&costs).is_some_and(|(own, ..)| own == 0)
    {
        notes.add(NO_KERNEL);
    }
    let parsed = costs.parsed(tool, editable, notes)?;
    let first = parsed.kernels.first();
    let code = first.and_then(|kernel| costs.code_of(&kernel.name));
    Ok((parsed, code))
}

/// Adds counts; missing counts are zero.
fn add_counts(to: &mut [u64], counts: &[u64], line: usize) -> Result<(), ProfileParseError> {
    for (sum, count) in to.iter_mut().zip(counts) {
        let too_large = || ProfileParseError::at(line, "the counts are too large");
        *sum = sum.checked_add(*count).ok_or_else(too_large)?;
    }
    Ok(())
}

/// Counters that are some events as a percentage of others.
const RATIOS: &[(&str, &[&str], &[&str])] = &[
    ("l1_miss_pct", &["D1mr"], &["Dr"]),
    ("llc_miss_pct", &["DLmr", "DLmw"], &["D1mr", "D1mw"]),
    ("branch_miss_pct", &["Bcm", "Bim"], &["Bc", "Bi"]),
];

/// The sum of some events of a function, if all are counted.
fn sum(events: &[String], counts: &[u64], names: &[&str]) -> Option<u64> {
    let mut found = names.iter().map(|name| {
        let at = events.iter().position(|event| event == name)?;
        counts.get(at).copied()
    });
    found.try_fold(0_u64, |sum, count| sum.checked_add(count?))
}

/// The counts on a line.
fn counts<'a>(
    words: impl Iterator<Item = &'a str>,
    line: usize,
) -> Result<Vec<u64>, ProfileParseError> {
    let wrong = |word: &str| ProfileParseError::at(line, format!("{word:?} is not a count"));
    words.take(EVENTS_MAX + 1).map(|word| whole(word).ok_or_else(|| wrong(word))).collect()
}

#[allow(clippy::cast_precision_loss, reason = "a share of a count does not need more digits")]
fn float(n: u64) -> f64 {
    n as f64
}
