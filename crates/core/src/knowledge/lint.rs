//! What is wrong with an entry: its template, its evidence, and claims without a basis.

mod evidence;
mod never;
mod relations;
mod shown;
mod triggers;

use super::standing::{EvidenceEffect, effect_of};
use super::{Action, Entry, EntryKind, EntryStatus, Risk, is_id};
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LintSeverity {
    /// The entry should not be used in this state.
    Error,
    /// It could be better.
    Warning,
}

names!(LintSeverity { Error => "error", Warning => "warning" });

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LintFinding {
    /// The entry.
    pub id: String,
    /// How bad it is.
    pub severity: LintSeverity,
    /// What is wrong.
    pub what: String,
}

/// Sections that an entry must have, by kind.
fn required(kind: EntryKind) -> &'static [&'static str] {
    match kind {
        EntryKind::Optimization => &["When to apply", "Mechanism", "Recipe", "Pitfalls"],
        EntryKind::AntiPattern => &["Failure mode", "How it shows", "Instead"],
        EntryKind::Case => &["Applies when", "Mechanism", "Verify"],
        EntryKind::Tip => &["Context", "Signal", "Takeaway", "Applicability"],
        EntryKind::Technique => &["When to apply", "Recipe"],
    }
}

/// Sections that no entry may have: they describe a moment in time and become outdated.
const BANNED_SECTIONS: &[&str] = &["current state", "open ideas", "tried", "track record", "todo"];

/// A speedup above this is treated as an error: a unit, a case that did nothing, or a forgery.
const RATIO_MAX: f64 = 1_000.0;
/// Maximum length of a title, in characters.
const TITLE_MAX: usize = 100;
/// Maximum length of an entry's text, in characters.
const TEXT_MAX: usize = 20_000;

/// What is wrong with a single entry. `today` is a day as `YYYY-MM-DD`: dates after it are
/// rejected.
pub fn lint(entry: &Entry, today: &str) -> Vec<LintFinding> {
    let mut list = LintFindings { id: &entry.id, list: Vec::new() };
    lint_head(entry, today, &mut list);
    shown::lint(entry, &mut list);
    lint_sections(entry, &mut list);
    triggers::lint(entry, &mut list);
    for (number, of) in entry.evidence.iter().enumerate() {
        evidence::lint(number + 1, of, today, &mut list);
    }
    lint_claims(entry, &mut list);
    list.list
}

struct LintFindings<'a> {
    id: &'a str,
    list: Vec<LintFinding>,
}

impl LintFindings<'_> {
    fn add(&mut self, grave: LintSeverity, what: impl Into<String>) {
        self.list.push(LintFinding { id: self.id.to_owned(), severity: grave, what: what.into() });
    }

    fn error(&mut self, what: impl Into<String>) {
        self.add(LintSeverity::Error, what);
    }

    fn warning(&mut self, what: impl Into<String>) {
        self.add(LintSeverity::Warning, what);
    }
}

fn lint_head(entry: &Entry, today: &str, list: &mut LintFindings<'_>) {
    if !is_id(&entry.id) {
        list.error("the id must be lower-case letters, digits and hyphens");
    }
    if entry.title.trim().is_empty() {
        list.error("there is no title");
    } else if entry.title.chars().count() > TITLE_MAX {
        list.warning(format!("the title is longer than {TITLE_MAX} characters"));
    }
    if entry.date.is_empty() {
        list.error("there is no date");
    } else if !is_date(&entry.date) {
        list.error(format!("{:?} is not a date such as 2026-11", entry.date));
    } else if is_after(&entry.date, today) {
        list.error(format!("its date {} is in the future", entry.date));
    }
    if let Some(impact) = entry.impact
        && !(impact.low > 0.0 && impact.low <= impact.high && impact.high.is_finite())
    {
        list.error("the impact must be two positive ratios, the lower one first");
    } else if entry.impact.is_some_and(|impact| impact.high > RATIO_MAX) {
        list.error(format!("the impact is above {RATIO_MAX}x, which no kernel change achieves"));
    }
    if entry.status == EntryStatus::Superseded && entry.superseded_by.is_none() {
        list.error("it is superseded, but does not say by which entry");
    }
    for action in &entry.apply {
        lint_action(action, list);
    }
}

fn lint_action(action: &Action, list: &mut LintFindings<'_>) {
    let (empty, files) = match action {
        Action::Knob { name, values } => (name.is_empty() || values.is_empty(), None),
        Action::Top { line, files } | Action::BeforeInnerLoops { line, files } => {
            (line.is_empty(), Some(files))
        }
        Action::Rewrite { pattern, files, .. } => (pattern.is_empty(), Some(files)),
        Action::Flag { flag, variable, files } => {
            (flag.is_empty() || variable.is_empty(), Some(files))
        }
    };
    if empty || files.is_some_and(Vec::is_empty) {
        list.error("an action of \"apply\" is not complete");
    }
    for glob in files.into_iter().flatten() {
        let outside = glob.starts_with(['/', '~']) || glob.split('/').any(|part| part == "..");
        if outside || glob.trim().is_empty() {
            list.error(format!(
                "an action of \"apply\" names {glob:?}; files must be inside the project, such as \
                *.c or src/*.c"
            ));
        }
    }
}

/// `YYYY-MM` or `YYYY-MM-DD`.
fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let number = |part: &str, digits: usize, to: u32| {
        part.len() == digits && part.parse().is_ok_and(|n: u32| n >= 1 && n <= to)
    };
    match parts.as_slice() {
        [year, month] => number(year, 4, 9_999) && number(month, 2, 12),
        [year, month, day] => number(year, 4, 9_999) && number(month, 2, 12) && number(day, 2, 31),
        _ => false,
    }
}

/// Whether a date is after a day; the current month is not.
fn is_after(date: &str, today: &str) -> bool {
    let day = today.get(..date.len()).unwrap_or(today);
    is_date(today) && date > day
}

fn lint_sections(entry: &Entry, list: &mut LintFindings<'_>) {
    for heading in required(entry.kind) {
        match entry.section(heading) {
            None => list.error(format!("the section \"{heading}\" is missing")),
            Some(text) if text.trim().is_empty() => {
                list.error(format!("the section \"{heading}\" is empty"));
            }
            Some(_) => {}
        }
    }
    for section in &entry.sections {
        if BANNED_SECTIONS.contains(&section.heading.to_lowercase().as_str()) {
            list.error(format!(
                "the section \"{}\" describes a moment in time; put figures into evidence",
                section.heading
            ));
        }
    }
    let length: usize = entry.sections.iter().map(|s| s.text.len()).sum();
    if length > TEXT_MAX {
        list.warning(format!("the text is longer than {TEXT_MAX} bytes"));
    }
}

fn lint_claims(entry: &Entry, list: &mut LintFindings<'_>) {
    let measured = entry.evidence.iter().any(|e| effect_of(e) != EvidenceEffect::Open);
    if entry.status == EntryStatus::Verified
        && !measured
        && entry.basis == super::EntryBasis::Measured
    {
        list.error("it claims to be verified by measurement, but has no evidence");
    }
    if entry.risk == Risk::Lossy && entry.section("Accuracy").is_none() {
        list.error("it is lossy: the section \"Accuracy\" must say how much, and when to undo it");
    }
    // One device model: a fact about it, not a rule, unless it was measured there.
    let names_model = entry.scope.device.iter().any(|d| d.chars().any(|c| c.is_ascii_digit()));
    let rests = measured || entry.basis == super::EntryBasis::SourceSemantics;
    if names_model && !rests {
        list.error("it is about one device, but has no evidence from it (device folklore)");
    }
}

/// What is wrong with entries together: duplicate or unknown ids, and what they say about each
/// other.
pub fn lint_all(entries: &[Entry], today: &str) -> Vec<LintFinding> {
    let mut all: Vec<LintFinding> = Vec::new();
    all.extend(entries.iter().flat_map(|entry| lint(entry, today)));
    all.extend(relations::lint(entries));
    let ids: HashSet<&str> = entries.iter().map(|entry| entry.id.as_str()).collect();
    let out = entries.iter().filter(|entry| super::assess(entry).is_out());
    let out: HashSet<&str> = out.map(|entry| entry.id.as_str()).collect();
    let mut seen: HashMap<&str, u32> = HashMap::new();
    for entry in entries {
        *seen.entry(&entry.id).or_default() += 1;
        let mut list = LintFindings { id: &entry.id, list: Vec::new() };
        let named = entry.interactions.ids().chain(&entry.superseded_by);
        for id in named {
            if id == &entry.id {
                list.error("it names itself");
            } else if !ids.contains(id.as_str()) {
                list.error(format!("it names {id}, which does not exist"));
            }
        }
        let rests_on_out = entry.interactions.depends_on.iter().any(|id| out.contains(id.as_str()));
        if rests_on_out && !out.contains(entry.id.as_str()) {
            list.warning("it depends on an entry that is refuted or superseded");
        }
        all.extend(list.list);
    }
    for (id, times) in seen {
        if times > 1 {
            all.push(LintFinding {
                id: id.to_owned(),
                severity: LintSeverity::Error,
                what: format!("the id is used {times} times"),
            });
        }
    }
    all.sort_by(|a, b| (a.severity, &a.id, &a.what).cmp(&(b.severity, &b.id, &b.what)));
    all
}
