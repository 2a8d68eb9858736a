//! What is wrong with an entry: its template, its evidence, and claims that rest on nothing.

use super::standing::{Effect, effect_of};
use super::{Action, Entry, Evidence, Kind, Risk, Status};
use crate::profile::Predicate;
use crate::profile::counters::known;
use std::collections::{HashMap, HashSet};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grave {
    /// The entry should not be used like this.
    Error,
    /// It could be better.
    Warning,
}

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// The entry.
    pub id: String,
    /// How bad it is.
    pub grave: Grave,
    /// What is wrong.
    pub what: String,
}

/// Sections that an entry must have, by kind.
fn required(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Optimization => &["When to apply", "Mechanism", "Recipe", "Pitfalls"],
        Kind::AntiPattern => &["Failure mode", "How it shows", "Instead"],
        Kind::Case => &["Applies when", "Mechanism", "Verify"],
        Kind::Tip => &["Context", "Signal", "Takeaway", "Applicability"],
        Kind::Technique => &["When to apply", "Recipe"],
    }
}

/// Sections that no entry may have: they tell of a moment, and age.
const BANNED_SECTIONS: &[&str] = &[
    "current state",
    "open ideas",
    "tried",
    "track record",
    "todo",
];

/// Results that are kept between calls for what changes between calls: no gain in real use.
const FORBIDDEN_GAINS: &[&str] = &[
    "cache the activation",
    "cache activations",
    "activation cache",
    "cache grad_out",
    "grad_out cache",
    "memoize the result",
    "memoise the result",
    "keyed on data_ptr",
    "keyed on the pointer",
    "cache keyed on pointers",
    "reuse the quantized activation",
];

/// Words that speak against a practice that is named.
const WARNINGS: &[&str] = &[
    "never",
    "forbidden",
    "do not",
    "not allowed",
    "must not",
    "w2",
    "w3",
];

/// How far the quotient of the middles may lie outside of the interval of the ratio.
const MIDDLES_APART: f64 = 1.1;
/// Characters of a title at most.
const TITLE_MAX: usize = 100;
/// Characters of an entry's text at most.
const TEXT_MAX: usize = 20_000;

/// What is wrong with one entry by itself.
pub fn lint(entry: &Entry) -> Vec<Complaint> {
    let mut list = Complaints {
        id: &entry.id,
        list: Vec::new(),
    };
    lint_head(entry, &mut list);
    lint_sections(entry, &mut list);
    lint_triggers(entry, &mut list);
    for (number, evidence) in entry.evidence.iter().enumerate() {
        lint_evidence(number + 1, evidence, &mut list);
        lint_middles(number + 1, evidence, &mut list);
    }
    lint_claims(entry, &mut list);
    list.list
}

struct Complaints<'a> {
    id: &'a str,
    list: Vec<Complaint>,
}

impl Complaints<'_> {
    fn add(&mut self, grave: Grave, what: impl Into<String>) {
        self.list.push(Complaint {
            id: self.id.to_owned(),
            grave,
            what: what.into(),
        });
    }

    fn error(&mut self, what: impl Into<String>) {
        self.add(Grave::Error, what);
    }

    fn warning(&mut self, what: impl Into<String>) {
        self.add(Grave::Warning, what);
    }
}

fn lint_head(entry: &Entry, list: &mut Complaints<'_>) {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if entry.id.is_empty() || !entry.id.chars().all(plain) || entry.id.len() > TITLE_MAX {
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
        list.error(format!("{:?} is no date such as 2026-11", entry.date));
    }
    if let Some(impact) = entry.impact
        && !(impact.low > 0.0 && impact.low <= impact.high && impact.high.is_finite())
    {
        list.error("the impact must be two positive ratios, the lower one first");
    }
    if entry.status == Status::Superseded && entry.superseded_by.is_none() {
        list.error("it is superseded, and does not say by what");
    }
    for action in &entry.apply {
        lint_action(action, list);
    }
}

fn lint_action(action: &Action, list: &mut Complaints<'_>) {
    let (empty, files) = match action {
        Action::Knob { name, values } => (name.is_empty() || values.is_empty(), None),
        Action::Top { line, files } | Action::BeforeInnerLoops { line, files } => {
            (line.is_empty(), Some(files))
        }
        Action::Rewrite { pattern, files, .. } => (pattern.is_empty(), Some(files)),
        Action::Flag {
            flag,
            variable,
            files,
        } => (flag.is_empty() || variable.is_empty(), Some(files)),
    };
    if empty || files.is_some_and(Vec::is_empty) {
        list.error("an action of \"apply\" is not complete");
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

fn lint_sections(entry: &Entry, list: &mut Complaints<'_>) {
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
                "the section \"{}\" tells of a moment; put figures into evidence",
                section.heading
            ));
        }
    }
    let length: usize = entry.sections.iter().map(|s| s.text.len()).sum();
    if length > TEXT_MAX {
        list.warning(format!("the text is longer than {TEXT_MAX} bytes"));
    }
}

fn lint_triggers(entry: &Entry, list: &mut Complaints<'_>) {
    let acts = matches!(entry.kind, Kind::Optimization | Kind::AntiPattern);
    if acts && entry.triggers.is_empty() && entry.scope.is_everywhere() {
        list.error("it has neither a trigger nor a scope, so it would be told always");
    }
    for trigger in &entry.triggers {
        match Predicate::parse(trigger) {
            Err(reason) => list.error(format!("the trigger {trigger:?} cannot be read: {reason}")),
            Ok(predicate) => {
                for name in predicate.names() {
                    if known(name).is_none() {
                        let what = format!("{trigger:?} asks for {name}, which is no counter");
                        list.error(format!("the trigger {what}"));
                    }
                }
            }
        }
    }
}

fn lint_evidence(number: usize, evidence: &Evidence, list: &mut Complaints<'_>) {
    let texts = [
        ("metric", &evidence.metric),
        ("device", &evidence.device),
        ("workload", &evidence.workload),
        ("run", &evidence.run),
        ("date", &evidence.date),
        ("toolchain", &evidence.toolchain),
    ];
    let missing: Vec<&str> = texts
        .iter()
        .filter(|(_, text)| text.trim().is_empty())
        .map(|(name, _)| *name)
        .collect();
    if !missing.is_empty() {
        list.error(format!("evidence {number} lacks {}", missing.join(", ")));
    }
    if !evidence.date.is_empty() && !is_date(&evidence.date) {
        list.error(format!("evidence {number}: {:?} is no date", evidence.date));
    }
    if evidence.n == 0 {
        list.error(format!(
            "evidence {number} does not say how many readings it rests on (n)"
        ));
    }
    let has_ratio = evidence.ratio.is_finite() && evidence.ratio > 0.0;
    if !(evidence.failed || has_ratio) {
        list.error(format!("evidence {number} has no ratio"));
    }
    if let (Some(low), Some(high)) = (evidence.low, evidence.high)
        && !(low <= evidence.ratio && evidence.ratio <= high)
    {
        list.error(format!(
            "evidence {number}: the ratio is outside its interval"
        ));
    }
}

/// The speedup is estimated from readings in pairs, before and after are middles of their own: they
/// may differ by what the interval allows, and a little more.
fn lint_middles(number: usize, evidence: &Evidence, list: &mut Complaints<'_>) {
    let quotient = evidence.before / evidence.after;
    let usable = |value: f64| value.is_finite() && value > 0.0;
    if !(usable(evidence.before) && usable(evidence.after) && usable(evidence.ratio)) {
        return;
    }
    let low = evidence.low.filter(|low| usable(*low));
    let high = evidence.high.filter(|high| usable(*high));
    let low = low.unwrap_or(evidence.ratio) / MIDDLES_APART;
    let high = high.unwrap_or(evidence.ratio) * MIDDLES_APART;
    if quotient < low || quotient > high {
        list.warning(format!(
            "evidence {number}: before and after give {quotient:.2}x, and the ratio is {:.2}x; say \
             in its note why",
            evidence.ratio
        ));
    }
}

fn lint_claims(entry: &Entry, list: &mut Complaints<'_>) {
    let measured = entry.evidence.iter().any(|e| effect_of(e) != Effect::Open);
    if entry.status == Status::Verified && !measured && entry.basis == super::Basis::Measured {
        list.error("it is verified as measured, and no evidence shows it");
    }
    if entry.risk == Risk::Lossy && entry.section("Accuracy").is_none() {
        list.error("it is lossy: the section \"Accuracy\" must say how much, and when to undo it");
    }
    // One device by its model: a fact about it, not a rule, unless somebody measured there.
    let names_model = entry
        .scope
        .device
        .iter()
        .any(|d| d.chars().any(|c| c.is_ascii_digit()));
    let rests = measured || entry.basis == super::Basis::SourceSemantics;
    if names_model && !rests {
        list.error("it speaks of one device without evidence from it (device folklore)");
    }
    if entry.kind == Kind::AntiPattern || entry.status == Status::Refuted {
        return;
    }
    for section in &entry.sections {
        for sentence in section.text.split(['.', '\n']) {
            let lower = sentence.to_lowercase();
            let praised = FORBIDDEN_GAINS.iter().find(|words| lower.contains(**words));
            let warned = WARNINGS.iter().any(|word| lower.contains(word));
            if let (Some(words), false) = (praised, warned) {
                list.error(format!(
                    "it praises a gain that real use does not have (W2 or W3): \"{words}\""
                ));
            }
        }
    }
}

/// What is wrong with entries together: ids that are there twice, or that nobody has.
pub fn lint_all(entries: &[Entry]) -> Vec<Complaint> {
    let mut all: Vec<Complaint> = entries.iter().flat_map(lint).collect();
    let ids: HashSet<&str> = entries.iter().map(|entry| entry.id.as_str()).collect();
    let out = entries.iter().filter(|entry| super::assess(entry).is_out());
    let out: HashSet<&str> = out.map(|entry| entry.id.as_str()).collect();
    let mut seen: HashMap<&str, u32> = HashMap::new();
    for entry in entries {
        *seen.entry(&entry.id).or_default() += 1;
        let mut list = Complaints {
            id: &entry.id,
            list: Vec::new(),
        };
        let named = entry.interactions.ids().chain(&entry.superseded_by);
        for id in named {
            if id == &entry.id {
                list.error("it names itself");
            } else if !ids.contains(id.as_str()) {
                list.error(format!("it names {id}, which is not there"));
            }
        }
        let rests_on_out = entry
            .interactions
            .depends_on
            .iter()
            .any(|id| out.contains(id.as_str()));
        if rests_on_out && !out.contains(entry.id.as_str()) {
            list.warning("it depends on an entry that is refuted or superseded");
        }
        all.extend(list.list);
    }
    for (id, times) in seen {
        if times > 1 {
            all.push(Complaint {
                id: id.to_owned(),
                grave: Grave::Error,
                what: format!("the id is there {times} times"),
            });
        }
    }
    all.sort_by(|a, b| (a.grave, &a.id, &a.what).cmp(&(b.grave, &b.id, &b.what)));
    all
}
