//! The static audit: what a change adds that no honest kernel needs, found in the syntax tree.
//!
//! Each changed file is parsed before and after the change. A Finding counts if the candidate has
//! it and the parent does not, or has fewer. The files are never run, built or trusted.

mod addresses;
mod analyzed;
mod asm_bytes;
mod asm_reads;
mod asm_text;
mod build_files;
mod c;
mod c_flow;
mod caller_memory;
mod compared;
mod copies;
mod data_flow;
mod flow;
mod groups;
mod highlight;
mod kept_state;
mod keyed;
mod memo;
mod names;
mod numbers;
mod outliving;
mod passing;
mod preprocessor;
mod python;
mod python_flow;
mod python_names;
mod python_state;
mod reading;
mod reflection;
mod rules;
mod rust;
mod rust_flow;
mod same_code;
mod set_up;
mod shadowing;
mod signature;
mod state;
mod steering;
mod symbols;
mod tree;
mod unwritten;

pub use build_files::is_build_file;
pub use copies::{OTHERS_MAX, copies, is_compared};
pub use highlight::{TokenKind, highlight};
pub use rules::rule_names;
pub use same_code::is_same_code;
pub use signature::{Param, ParamType, Signature, SignatureError, signature};
pub use tree::AuditLanguage;

use karve_core::integrity::{AuditFinding, AuditRule, GHOST_RULE, in_order};
use karve_numerics::case::Case;
use names::LanguageFamily;
use reading::{AsmScope, FileFacts, RuleMatch};
use rules::rule;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Maximum number of files of one change that are read.
const FILES_MAX: usize = 256;

/// A file before and after the change.
#[derive(Clone, Debug, Default)]
pub struct FileChange {
    /// Relative to the root of the repository.
    pub path: String,
    /// Its bytes in the parent; `None` if it is new.
    pub before: Option<Vec<u8>>,
    /// Its bytes in the candidate; `None` if it is gone.
    pub after: Option<Vec<u8>>,
}

/// What an audit knows about a campaign.
#[derive(Clone, Copy, Debug)]
pub struct AuditContext<'a> {
    /// The visible cases.
    pub cases: &'a [Case],
    /// The user's settings.
    pub rule: &'a AuditRule,
    /// Names of harness files that a kernel must not use, without directories and extensions.
    pub harness: &'a [String],
    /// Names that the harness reads at compile time.
    pub reads: &'a BTreeSet<String>,
}

/// Audits a change.
pub fn audit(changes: &[FileChange], scene: &AuditContext<'_>) -> Vec<AuditFinding> {
    let mut before = VersionMatches::default();
    let mut after = VersionMatches::default();
    for change in changes.iter().take(FILES_MAX) {
        before.take(&change.path, change.before.as_deref(), scene);
        after.take(&change.path, change.after.as_deref(), scene);
    }
    before.connect();
    after.connect();
    let mut findings = after.beyond(&before);
    findings.extend(changes.iter().filter_map(shadowed));
    if let Some(unread) = changes.get(FILES_MAX) {
        let what = format!("only {FILES_MAX} files of a change are read");
        findings.extend(finding("unaudited", &unread.path, 0, what));
    }
    let weighed = findings.into_iter().filter_map(|found| scene.rule.weigh(found));
    in_order(weighed.collect())
}

/// A new file that is found in place of a module or header that the harness may use.
fn shadowed(change: &FileChange) -> Option<AuditFinding> {
    let path = &change.path;
    let name = path.rsplit('/').find(|part| *part != "__init__.py").unwrap_or(path);
    let is_package = path.ends_with("/__init__.py");
    let module = name.split_once('.').filter(|(_, rest)| ["py", "pyi", "so"].contains(rest));
    let module = module.map(|(stem, _)| stem).or_else(|| is_package.then_some(name));
    let is_known = module.is_some_and(|module| names::is_listed("python-modules", module))
        || names::is_listed("c-headers", name);
    if change.before.is_some() || change.after.is_none() || !is_known {
        return None;
    }
    let what = format!("the new file {name} is found in place of the standard one");
    finding("patching", path, 0, what)
}

/// The finding of a function that has no part in the results, which only running can show.
pub fn ghost(rule: &AuditRule, file: &str, line: u32, what: String) -> Option<AuditFinding> {
    finding(GHOST_RULE, file, line, what).and_then(|found| rule.weigh(found))
}

/// A file, the Finding there, and the hash of its line: a line may be as long as the file and have
/// thousands of Findings.
type FileMatch = (String, RuleMatch, u64);

fn hash_of(line: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    line.hash(&mut hasher);
    hasher.finish()
}

/// All changed files in one version.
#[derive(Debug, Default)]
struct VersionMatches {
    /// By rule and key.
    seen: BTreeMap<(&'static str, String), Vec<FileMatch>>,
    tolerances: BTreeMap<String, (f64, String, u32)>,
    launches: (u32, Option<String>),
    /// By function: the parameters whose contents it changes, with file and line.
    changing: BTreeMap<String, BTreeMap<String, (String, u32)>>,
    /// By file: the state that it writes, and what it asks for that another file may write.
    shared: Vec<(String, BTreeSet<String>, BTreeMap<String, u32>)>,
}

impl VersionMatches {
    fn take(&mut self, path: &str, bytes: Option<&[u8]>, scene: &AuditContext<'_>) {
        let Some(bytes) = bytes else {
            return;
        };
        let text = String::from_utf8_lossy(bytes);
        // Python ends a line, and with it a comment, at a carriage return.
        let ends_lines = path.ends_with(".py") && text.contains('\r');
        let text = match ends_lines {
            true => Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n")),
            false => text,
        };
        let mut reading = FileFacts::of(scene);
        read(path, bytes, &text, scene, &mut reading);
        let lines: Vec<u64> = text.lines().map(|line| hash_of(line.trim())).collect();
        for seen in reading.seen {
            let line = (seen.line as usize).checked_sub(1).and_then(|n| lines.get(n));
            let line = line.copied().unwrap_or_default();
            let key = (seen.rule, seen.key.clone());
            self.seen.entry(key).or_default().push((path.to_owned(), seen, line));
        }
        for (function, params) in reading.functions {
            let params = params.into_iter().map(|(param, line)| (param, (path.to_owned(), line)));
            self.changing.entry(function).or_default().extend(params);
        }
        self.shared.push((path.to_owned(), reading.shared, reading.asked));
        for (name, value, line) in reading.tolerances {
            let place = (value, path.to_owned(), line);
            let known = self.tolerances.entry(name.clone()).or_insert_with(|| place.clone());
            if is_looser(&name, value, known.0) {
                *known = place;
            }
        }
        self.launches.0 += reading.launches;
        if reading.launches > 0 {
            self.launches.1.get_or_insert_with(|| path.to_owned());
        }
    }

    /// Adds the state that one file writes and another decides on.
    fn connect(&mut self) {
        for (path, _, asked) in &self.shared {
            let others = self.shared.iter().filter(|(other, ..)| other != path);
            let written: BTreeSet<&String> = others.flat_map(|(_, shared, _)| shared).collect();
            for (name, line) in asked.iter().filter(|(name, _)| written.contains(name)) {
                let what = format!("{name} decides, and another file writes it in every call");
                let (rule, key, line) = ("static-state", name.clone(), *line);
                let seen = RuleMatch { rule, key: key.clone(), line, what };
                self.seen.entry((rule, key)).or_default().push((path.clone(), seen, 0));
            }
        }
    }

    /// What this version has and the other does not.
    fn beyond(&self, before: &Self) -> Vec<AuditFinding> {
        let mut findings = Vec::new();
        let had_library = before.seen.keys().any(|(rule, _)| *rule == "library-call");
        for ((rule, key), places) in &self.seen {
            let old = before.seen.get(&(*rule, key.clone())).map_or(&[][..], Vec::as_slice);
            if places.len() <= old.len() || (*rule == "library-call" && had_library) {
                continue;
            }
            let old_lines: BTreeSet<u64> = old.iter().map(|(_, _, line)| *line).collect();
            let (known, new): (Vec<_>, Vec<_>) =
                places.iter().partition(|(_, _, line)| old_lines.contains(line));
            let more = places.len() - old.len();
            for (path, seen, _) in new.into_iter().chain(known).take(more) {
                findings.extend(finding(rule, path, seen.line, seen.what.clone()));
            }
        }
        findings.extend(self.looser(before));
        findings.extend(self.newly_changed(before));
        let (old, new) = (before.launches.0, self.launches.0);
        if let (true, Some(path)) = (new > 0 && new < old, &self.launches.1) {
            let what = format!("{new} launches instead of {old}");
            findings.extend(finding("fused-launch", path, 0, what));
        }
        findings
    }

    /// Arguments that a function changes, and did not change before: what it leaves there outlives
    /// the call.
    fn newly_changed(&self, before: &Self) -> Vec<AuditFinding> {
        let mut findings = Vec::new();
        for (function, params) in &self.changing {
            let Some(old) = before.changing.get(function).filter(|old| old.len() < params.len())
            else {
                continue;
            };
            for (param, (path, line)) in params.iter().filter(|(name, _)| !old.contains_key(*name))
            {
                let what =
                    format!("`{function}` changes its argument `{param}`, and did not before");
                findings.extend(finding("replay", path, *line, what));
            }
        }
        findings
    }

    fn looser(&self, before: &Self) -> Vec<AuditFinding> {
        let found = self.tolerances.iter().filter_map(|(name, (value, path, line))| {
            let (rule, what) = match before.tolerances.get(name) {
                None => ("new-tolerance", format!("{name} is {value:e}")),
                Some((old, ..)) if is_looser(name, *value, *old) => {
                    ("tolerance", format!("{name} is {value:e}, was {old:e}"))
                }
                Some(_) => return None,
            };
            finding(rule, path, *line, what)
        });
        found.collect()
    }
}

/// A lower signal-to-noise ratio is looser; everything else is looser when it is higher.
fn is_looser(name: &str, value: f64, than: f64) -> bool {
    if names::words(name).iter().any(|word| word == "snr") { value < than } else { value > than }
}

fn finding(name: &str, file: &str, line: u32, what: String) -> Option<AuditFinding> {
    let rule = rule(name)?;
    Some(AuditFinding {
        rule: rule.name.to_owned(),
        severity: rule.severity,
        bucket: rule.bucket,
        file: file.to_owned(),
        line,
        what,
    })
}

/// Reads one file in one version.
fn read(path: &str, bytes: &[u8], text: &str, scene: &AuditContext<'_>, reading: &mut FileFacts) {
    reading.folders = path.matches('/').count();
    let unread = |reading: &mut FileFacts, what: &str| {
        reading.note("unaudited", path, 0, what.to_owned());
    };
    if bytes.len() > tree::BYTES_MAX {
        return unread(reading, "too large to be read");
    }
    if bytes.contains(&0) {
        return unread(reading, "not a text");
    }
    if build_files::is_build_file(path) {
        build_files::read(text, scene, reading);
    }
    let Some(language) = AuditLanguage::of(path) else {
        let assembler = [".s", ".S", ".asm", ".ptx", ".ll"];
        if assembler.iter().any(|end| path.ends_with(end)) {
            for (line, number) in text.lines().zip(1..) {
                reading.note_asm(LanguageFamily::C, line, number);
                reading.note_symbols(line, AsmScope::File, number);
            }
            reading.note_asm_bytes(text, 0);
        }
        return;
    };
    reading.note_origin(text);
    groups::examine(text, reading);
    let is_c = !matches!(language, AuditLanguage::Python | AuditLanguage::Rust);
    let joined = if is_c { preprocessor::spliced(text) } else { Cow::Borrowed(text) };
    let text = joined.as_ref();
    let weights = &scene.rule.weights;
    let Some(tree) = tree::parse(language, text) else {
        return unread(reading, "took too long to read");
    };
    if let Some(line) = tree.broken {
        let what = "text that does not parse; the rest was read".to_owned();
        reading.note("unparsed", path, line, what);
    }
    match language {
        AuditLanguage::C | AuditLanguage::Cpp | AuditLanguage::Cuda => {
            if !c::read_text(language, text, weights, reading) {
                unread(reading, "took too long to read");
            }
        }
        AuditLanguage::Python => python::read(&tree, weights, reading),
        AuditLanguage::Rust => rust::read(&tree, weights, reading),
    }
}

#[cfg(test)]
mod tests;
