//! `ptxas -v`: registers, spills, stack and shared memory of each entry function.
//!
//! A line refers to the function that an earlier line names, so the lines must be in order: an
//! entry, its properties, its stack, the resources used.

use super::gather::{ProfileNotes, WeightedKernel, heaviest};
use super::number::whole;
use super::text::noted_lines;
use super::{ParsedProfile, ProfileParseError};
use karve_core::profile::{KernelProfile, ProfileSource};
use std::collections::BTreeMap;

const TOOL: &str = "ptxas";
/// The most functions of one output.
const FUNCTIONS_MAX: usize = 20_000;

/// An entry function, as far as it was reported.
struct EntryFunction {
    name: String,
    arch: String,
    profile: KernelProfile,
    /// Whether the line with registers was seen.
    used: bool,
}

/// Reads the report.
pub(super) fn parse(text: &str) -> Result<ParsedProfile, ProfileParseError> {
    let (lines, mut notes) = noted_lines(text)?;
    let mut entries: Vec<EntryFunction> = Vec::new();
    // The function whose properties come on the next line.
    let mut properties: Option<String> = None;
    for (number, line) in lines {
        let said = line.strip_prefix("ptxas info");
        let said = said.and_then(|rest| rest.trim_start().strip_prefix(": "));
        if let Some(frame) = properties.take() {
            if let Some(entry) = entries.last_mut().filter(|entry| entry.name == frame) {
                take_frame(entry, line, number)?;
            }
            continue;
        }
        let Some(said) = said else {
            continue;
        };
        if let Some(rest) = said.strip_prefix("Compiling entry function '") {
            entries.push(begin(rest, number)?);
        } else if let Some(name) = said.strip_prefix("Function properties for ") {
            properties = Some(name.trim().to_owned());
        } else if said.starts_with("Used ") {
            let open =
                |entry: &&mut EntryFunction| !entry.used && entry.profile.counters.len() == 2;
            let Some(entry) = entries.last_mut().filter(open) else {
                let reason = "no entry function with its properties precedes this line";
                return Err(ProfileParseError::at(number, reason));
            };
            take_used(entry, said, number)?;
        }
        if entries.len() > FUNCTIONS_MAX {
            let reason = format!("there are more than {FUNCTIONS_MAX} functions");
            return Err(ProfileParseError::at(number, reason));
        }
    }
    let kernels = kernels(entries, &mut notes);
    if kernels.is_empty() {
        return Err(ProfileParseError::at(1, "no entry function is reported completely"));
    }
    Ok(ParsedProfile {
        kernels: heaviest(kernels, &mut notes),
        timeline: None,
        notes: notes.finish(),
    })
}

/// `NAME' for 'sm_90'`.
fn begin(rest: &str, line: usize) -> Result<EntryFunction, ProfileParseError> {
    let parts = rest.split_once("' for '");
    let parts = parts.and_then(|(name, rest)| Some((name, rest.trim_end().strip_suffix('\'')?)));
    let Some((name, arch)) = parts else {
        return Err(ProfileParseError::at(line, "it does not name a function and an architecture"));
    };
    Ok(EntryFunction {
        name: name.to_owned(),
        arch: arch.to_owned(),
        profile: KernelProfile::default(),
        used: false,
    })
}

/// `0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads`.
fn take_frame(
    entry: &mut EntryFunction,
    line: &str,
    number: usize,
) -> Result<(), ProfileParseError> {
    let strange =
        || ProfileParseError::at(number, "a stack frame must follow the function properties");
    let mut bytes = [0.0_f64; 3];
    let words = [" bytes stack frame", " bytes spill stores", " bytes spill loads"];
    let mut parts = line.trim().split(", ");
    for (value, words) in bytes.iter_mut().zip(words) {
        let part = parts.next().and_then(|part| part.strip_suffix(words));
        *value = part.and_then(count).ok_or_else(strange)?;
    }
    if parts.next().is_some() || entry.profile.counters.contains_key("stack_bytes") {
        return Err(strange());
    }
    let source = ProfileSource::at(TOOL, number, line);
    entry.profile.set("stack_bytes", bytes[0], source.clone());
    entry.profile.set("spill_bytes", bytes[1] + bytes[2], source);
    Ok(())
}

/// `Used 32 registers, used 1 barriers, 2048 bytes smem, 380 bytes cmem[0]`.
fn take_used(
    entry: &mut EntryFunction,
    said: &str,
    number: usize,
) -> Result<(), ProfileParseError> {
    let source = ProfileSource::at(TOOL, number, said);
    let mut shared = 0.0;
    let mut registers = None;
    for part in said.trim().split(", ") {
        let wrong = || ProfileParseError::at(number, format!("{part:?} is not a valid number"));
        let part_of = |end: &str| part.strip_suffix(end);
        if let Some(n) = part_of(" registers").and_then(|n| n.strip_prefix("Used ")) {
            registers = Some(count(n).ok_or_else(wrong)?);
        } else if let Some(n) = part_of(" bytes smem") {
            shared = count(n).ok_or_else(wrong)?;
        }
    }
    let Some(registers) = registers else {
        return Err(ProfileParseError::at(number, "it does not say how many registers are used"));
    };
    entry.used = true;
    entry.profile.set("registers", registers, source.clone());
    entry.profile.set("shared_bytes", shared, source);
    Ok(())
}

fn count(text: &str) -> Option<f64> {
    whole(text).and_then(|n| u32::try_from(n).ok()).map(f64::from)
}

/// One kernel for each function; the architecture is shown if there are several.
fn kernels(entries: Vec<EntryFunction>, notes: &mut ProfileNotes) -> Vec<WeightedKernel> {
    let several = entries.windows(2).any(|pair| pair[0].arch != pair[1].arch);
    let mut found: BTreeMap<(String, String), Option<KernelProfile>> = BTreeMap::new();
    for entry in entries {
        let (name, arch) = (entry.name, entry.arch);
        if !entry.used {
            notes.add(format!("the report of {name} is incomplete: not read"));
            continue;
        }
        let values = entry.profile.values();
        let same = |old: &KernelProfile| old.values() == values;
        let key = (name, arch);
        match found.get(&key) {
            None => {
                found.insert(key, Some(entry.profile));
            }
            Some(old) if old.as_ref().is_some_and(same) => {}
            Some(_) => {
                let name = &key.0;
                notes.add(format!("{name} is reported twice with different values: not read"));
                found.insert(key, None);
            }
        }
    }
    // Functions that differ only in their arguments keep their full names.
    let mut users: BTreeMap<(String, String), usize> = BTreeMap::new();
    for (name, arch) in found.keys() {
        *users.entry((demangled(name), arch.clone())).or_default() += 1;
    }
    let whole = found.into_iter().filter_map(|((name, arch), profile)| {
        let profile = profile?;
        let plain = demangled(&name);
        let alone = users.get(&(plain.clone(), arch.clone())) == Some(&1);
        let name = if alone { plain } else { name };
        let name = if several { format!("{name} for {arch}") } else { name };
        // There is no time here; the function with more registers comes first.
        let weight = profile.value("registers").unwrap_or(0.0);
        Some(WeightedKernel { name, weight, profile })
    });
    whole.collect()
}

/// The name in `_Z11sgemm_naivePKfS0_Pfi`, if it is a plain function; others are unchanged.
fn demangled(name: &str) -> String {
    let plain = || {
        let rest = name.strip_prefix("_Z")?;
        let (part, rest) = identifier(rest)?;
        // A template keeps its full name: its arguments identify it.
        (!rest.starts_with('I')).then(|| part.to_owned())
    };
    plain().unwrap_or_else(|| name.to_owned())
}

/// `11sgemm_naive...`: the length, then as many characters.
fn identifier(text: &str) -> Option<(&str, &str)> {
    let n_digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let length: usize = text.get(..n_digits)?.parse().ok()?;
    let rest = text.get(n_digits..)?;
    (length > 0).then_some(())?;
    Some((rest.get(..length)?, rest.get(length..)?))
}
