//! What a round taught: in numbers by us, in words by the agent; and what it makes of an entry.
//!
//! Nothing is deleted: an entry that a measurement contradicts is narrowed, refuted or inverted by
//! that evidence.

use super::standing::{EvidenceEffect, effect_of, is_of, narrowed, spent_after};
use super::{
    Entry, EntryBasis, EntryKind, EntrySection, EntryStatus, Evidence, Scope, VOUCHED, assess,
};
use crate::profile::compare::{CounterChange, ExpectationResult};
use crate::profile::counters::known;
use serde::{Deserialize, Serialize};

/// Most evidence of one entry; the newest is kept.
const EVIDENCE_MAX: usize = 60;
/// Two runs that are slower by at least this turn an optimization into an anti-pattern.
const SLOWER_RATIO: f64 = 0.97;
/// The section with claims that agents made about rounds.
pub const CLAIMS: &str = "Claims";
/// Most claims of one entry; the newest are kept, and the logs have all of them.
const CLAIMS_MAX: usize = 24;
/// Two ratios of the same run are one measurement if they differ by less than this share.
const SAME_RATIO: f64 = 1e-3;

/// What a round taught, in words and numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lesson {
    /// One or two sentences.
    pub text: String,
    /// What the library learns from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learning: Option<Box<Learning>>,
    /// Counters of the parent and of the candidate, where both were profiled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<CounterChange>,
    /// Counters that the hypothesis predicted to move, and whether they did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub predicted: Vec<PredictedCounter>,
}

/// What the library learns from a round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Learning {
    /// The entry that the round applied, or a new one.
    pub entry: String,
    /// Whether it is a new entry.
    pub is_new: bool,
    /// The change, in one line.
    pub title: String,
    /// What the proposer expected of it, in the proposer's words.
    pub mechanism: String,
    /// What was measured.
    pub evidence: Evidence,
    /// The agent's comments: claims, never figures.
    #[serde(skip_serializing_if = "LessonNotes::is_empty")]
    pub words: LessonNotes,
    /// Why the agent did not comment, if it was asked.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub unsaid: String,
    /// The new status of the entry, if it changed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub became: String,
}

/// An agent's comments after a round. All of them may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LessonNotes {
    /// Why the change had the effect that was measured.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mechanism: String,
    /// When it applies, or does not.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub condition: String,
    /// What to look out for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pitfall: String,
}

impl LessonNotes {
    /// Whether there are no comments.
    pub fn is_empty(&self) -> bool {
        self.named().is_empty()
    }

    /// The comments, with the name of each part.
    pub fn named(&self) -> Vec<(&'static str, &str)> {
        let parts = [
            ("mechanism", self.mechanism.as_str()),
            ("condition", self.condition.as_str()),
            ("pitfall", self.pitfall.as_str()),
        ];
        let said = parts.into_iter().filter(|(_, text)| !text.is_empty());
        said.collect()
    }
}

/// A counter that was predicted to move.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PredictedCounter {
    /// The counter.
    pub counter: String,
    /// What happened to it.
    pub result: ExpectationResult,
    /// Before and after, in words; empty if it was not measured twice.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub values: String,
}

impl PredictedCounter {
    /// In words.
    pub fn describe(&self) -> String {
        let what = match self.values.as_str() {
            "" if known(&self.counter).is_none() => {
                return format!("\"{}\" was not read: no counter has that name", self.counter);
            }
            "" => &self.counter,
            values => values,
        };
        format!("{what} {}", self.result.words())
    }
}

/// An entry with the evidence of a round; none if it already has it. `is_traced` says whether a
/// campaign here measured a piece of evidence.
pub fn with_evidence(
    mut entry: Entry,
    learning: &Learning,
    here: &Scope,
    is_traced: impl Fn(&Evidence) -> bool,
) -> Option<Entry> {
    let run = &learning.evidence.run;
    if entry.evidence.iter().any(|evidence| evidence.run == *run) {
        return None;
    }
    match effect_of(&learning.evidence) {
        EvidenceEffect::Refutes => {
            // Evidence for the same target that no campaign here measured no longer counts.
            for of in &mut entry.evidence {
                let against = effect_of(of) == EvidenceEffect::Supports && is_of(of, here);
                if against && !is_traced(of) {
                    run.clone_into(&mut of.disputed);
                }
            }
            // It holds elsewhere, so it is narrowed here and unchanged there.
            let scope = narrowed(&entry, here).filter(|scope| !entry.except.contains(scope));
            entry.except.extend(scope);
        }
        EvidenceEffect::Supports => {
            let after = &learning.evidence.on_top_of;
            let same = |scope: &Scope| scope.whatever_it_has() == *here && scope.after == *after;
            entry.except.retain(|scope| scope != here && !same(scope));
        }
        EvidenceEffect::Open => {
            // No further gain after an entry with the same effect: a condition, not a refutation.
            let scope = spent_after(&learning.evidence, here);
            let new = scope.filter(|scope| !entry.except.contains(scope));
            entry.except.extend(new);
        }
    }
    quote(&mut entry, learning);
    entry.evidence.push(learning.evidence.clone());
    let excess = entry.evidence.len().saturating_sub(EVIDENCE_MAX);
    entry.evidence.drain(..excess);
    if entry.except.iter().all(|scope| !scope.after.is_empty()) {
        invert(&mut entry);
        entry.status = assess(&entry).status;
    }
    entry.date.clone_from(&learning.evidence.date);
    Some(entry)
}

/// An entry as it was before it got the evidence of a round.
#[must_use]
pub fn without_evidence(mut entry: Entry, learning: &Learning, here: &Scope) -> Entry {
    let run = &learning.evidence.run;
    entry.evidence.retain(|evidence| evidence.run != *run);
    let spent = spent_after(&learning.evidence, here);
    let place = spent.as_ref().unwrap_or(here);
    entry.except.retain(|scope| scope != place);
    let by_evidence = matches!(entry.status, EntryStatus::Verified | EntryStatus::Refuted);
    if by_evidence && entry.section(VOUCHED).is_none() {
        entry.status = EntryStatus::Candidate;
    }
    for evidence in entry.evidence.iter_mut().filter(|e| e.disputed == *run) {
        evidence.disputed.clear();
    }
    entry
}

/// Whether two records are of the same measurement.
pub fn is_same_measurement(a: &Evidence, b: &Evidence) -> bool {
    a.run == b.run && (a.ratio - b.ratio).abs() <= SAME_RATIO * b.ratio
}

/// How the status of an entry changed; empty if it did not.
pub fn became(before: &Entry, now: &Entry) -> String {
    let (was, is) = (assess(before), assess(now));
    let disputed = |entry: &Entry| {
        let of = entry.evidence.iter();
        of.filter(|e| !e.disputed.is_empty()).count()
    };
    let id = &now.id;
    let mut facts = Vec::new();
    let mut excepted = now.except.iter();
    if let Some(place) = excepted.find(|scope| !before.except.contains(scope)) {
        facts.push(format!("{id} does not hold for {} now", place.describe()));
    } else if was.status != is.status {
        let by = match is.status {
            EntryStatus::Verified => " by rule",
            EntryStatus::Candidate | EntryStatus::Refuted | EntryStatus::Superseded => "",
        };
        facts.push(format!("{id} is {}{by} now: {}", is.status.name(), is.why));
    }
    match disputed(now).saturating_sub(disputed(before)) {
        0 => {}
        1 => facts.push("1 piece of evidence for it is disputed".to_owned()),
        n => facts.push(format!("{n} pieces of evidence for it are disputed")),
    }
    facts.join("; ")
}

/// Adds an agent's statement to the claims of an entry: quoted, with its round.
fn quote(entry: &mut Entry, learning: &Learning) {
    let run = &learning.evidence.run;
    let said = learning.words.named().into_iter();
    let said: Vec<String> =
        said.map(|(part, text)| format!("- {run}, {part}: \"{text}\"")).collect();
    if said.is_empty() {
        return;
    }
    let is = |section: &&mut EntrySection| section.heading == CLAIMS;
    let mut lines: Vec<String> = match entry.sections.iter_mut().find(is) {
        Some(claims) => claims.text.lines().map(str::to_owned).collect(),
        None => Vec::new(),
    };
    lines.retain(|line| !line.trim().is_empty());
    lines.extend(said);
    lines.drain(..lines.len().saturating_sub(CLAIMS_MAX));
    entry.sections.retain(|section| section.heading != CLAIMS);
    entry.sections.push(EntrySection { heading: CLAIMS.to_owned(), text: lines.join("\n") });
}

/// An optimization that was slower in two runs and faster in none is an anti-pattern.
fn invert(entry: &mut Entry) {
    let standing = assess(entry);
    let slower = entry
        .evidence
        .iter()
        .filter(|e| !e.failed && e.on_top_of.is_empty())
        .filter(|e| e.high.is_some_and(|high| high < SLOWER_RATIO));
    let mut runs: Vec<&str> = slower.map(|e| e.run.as_str()).collect();
    runs.sort_unstable();
    runs.dedup();
    if entry.kind != EntryKind::Optimization || standing.n_for > 0 || runs.len() < 2 {
        return;
    }
    entry.kind = EntryKind::AntiPattern;
    let list = runs.join(" and ");
    let parts = [
        ("Failure mode", format!("{} makes kernels slower.", entry.title)),
        ("How it shows", format!("It was slower in {list}; see the evidence.")),
        ("Instead", "Leave it out.".to_owned()),
    ];
    for (heading, text) in parts {
        entry.sections.push(EntrySection { heading: heading.to_owned(), text });
    }
}

/// A finding that no entry covers yet.
pub fn new_tip(learning: &Learning, here: &Scope) -> Entry {
    let e = &learning.evidence;
    let interval = match (e.low, e.high) {
        (Some(low), Some(high)) => format!(" [{low:.3}, {high:.3}]"),
        _ => String::new(),
    };
    let signal = format!("{:.3}x{interval} over its parent, {} blocks; {}", e.ratio, e.n, e.note);
    let section = |heading: &str, text: String| EntrySection { heading: heading.to_owned(), text };
    Entry {
        id: learning.entry.clone(),
        kind: EntryKind::Tip,
        title: learning.title.clone(),
        basis: EntryBasis::SingleObservation,
        scope: here.clone(),
        date: e.date.clone(),
        sections: vec![
            section("Context", format!("{} on {}", e.workload, e.device)),
            section("Signal", signal),
            section("Takeaway", learning.mechanism.clone()),
            section("Applicability", here.describe()),
        ],
        ..Entry::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> Scope {
        Scope { device: vec!["cpu".into()], op: vec!["softmax".into()], ..Scope::default() }
    }

    fn learning(run: &str, ratio: f64) -> Learning {
        Learning {
            entry: "x".into(),
            title: "do x".into(),
            evidence: Evidence {
                ratio,
                low: Some(ratio - 0.01),
                high: Some(ratio + 0.01),
                device: "cpu".into(),
                workload: "softmax n=8".into(),
                run: run.into(),
                date: "2026-11-15".into(),
                n: 12,
                ..Evidence::default()
            },
            ..Learning::default()
        }
    }

    /// Adds a round to an entry; says how its status changed.
    fn learn(entry: &mut Entry, learning: &Learning, here: &Scope) -> String {
        let now = with_evidence(entry.clone(), learning, here, |_| false).unwrap();
        let text = became(entry, &now);
        // A karve that was killed before recording that reports the same again.
        assert_eq!(became(&without_evidence(now.clone(), learning, here), &now), text);
        assert_eq!(with_evidence(now.clone(), learning, here, |_| false), None);
        *entry = now;
        text
    }

    #[test]
    fn a_finding_is_verified_when_another_parent_replicates_it() {
        let mut entry = new_tip(&learning("a/round-1", 1.3), &here());
        let mut on = |run: &str, parent: &str| {
            let mut learning = learning(run, 1.3);
            learning.evidence.parent = parent.into();
            learn(&mut entry, &learning, &here())
        };
        assert_eq!((on("a/round-1", "p"), on("a/round-2", "p")).1, "");
        assert_eq!(on("a/round-3", "q"), "x is verified by rule now: replicated in 2 runs");
        assert_eq!(on("b/round-1", "r"), "");
        assert_eq!((entry.kind, entry.status), (EntryKind::Tip, EntryStatus::Verified));
    }

    #[test]
    fn two_slower_runs_make_an_anti_pattern_and_a_little_slower_ones_do_not() {
        let claimed = Entry { id: "x".into(), title: "Do x".into(), ..Entry::default() };
        let after = |ratios: [f64; 2]| {
            let mut entry = claimed.clone();
            learn(&mut entry, &learning("a/round-1", ratios[0]), &here());
            assert_eq!(entry.kind, EntryKind::Optimization);
            learn(&mut entry, &learning("b/round-1", ratios[1]), &here());
            (entry.kind, entry.status, entry.section("Instead").is_some())
        };
        let turned = (EntryKind::AntiPattern, EntryStatus::Verified, true);
        assert_eq!(after([0.8, 0.95]), turned);
        assert_eq!(after([0.8, 0.97]), (EntryKind::Optimization, EntryStatus::Refuted, false));
    }

    #[test]
    fn what_holds_elsewhere_is_excepted_here_until_it_gains_here() {
        let mut elsewhere = learning("a/round-1", 1.4);
        elsewhere.evidence.workload = "gemm n=8".into();
        let mut entry = new_tip(&elsewhere, &Scope::default());
        learn(&mut entry, &elsewhere, &Scope::default());
        let text = learn(&mut entry, &learning("b/round-1", 0.8), &here());
        assert_eq!(text, "x does not hold for device cpu; op softmax now");
        assert_eq!(entry.except, [here()]);
        assert_ne!(entry.status, EntryStatus::Refuted);
        learn(&mut entry, &learning("c/round-1", 1.4), &here());
        assert!(entry.except.is_empty());
    }

    #[test]
    fn only_evidence_that_no_log_has_is_disputed() {
        let mut entry = new_tip(&learning("a/round-1", 1.3), &here());
        learn(&mut entry, &learning("a/round-1", 1.3), &here());
        let against = learning("b/round-1", 0.8);
        let traced = with_evidence(entry.clone(), &against, &here(), |_| true).unwrap();
        assert_eq!(traced.evidence[0].disputed, "");
        let text = learn(&mut entry, &against, &here());
        assert_eq!(entry.evidence[0].disputed, "b/round-1");
        assert!(text.ends_with("; 1 piece of evidence for it is disputed"), "{text}");
        assert!(is_same_measurement(&entry.evidence[0], &learning("a/round-1", 1.301).evidence));
        assert!(!is_same_measurement(&entry.evidence[0], &learning("a/round-1", 1.31).evidence));
    }

    #[test]
    fn claims_and_evidence_are_bounded() {
        let mut entry = new_tip(&learning("a/round-0", 1.3), &here());
        for number in 0..EVIDENCE_MAX + 3 {
            let mut learning = learning(&format!("a/round-{number}"), 1.3);
            learning.words.pitfall = "mind the ends, 9x".into();
            entry = with_evidence(entry, &learning, &here(), |_| true).unwrap();
        }
        assert_eq!(entry.evidence.len(), EVIDENCE_MAX);
        let claims = entry.section(CLAIMS).unwrap();
        assert_eq!(claims.lines().count(), CLAIMS_MAX);
        let last = claims.lines().next_back().unwrap();
        assert_eq!(last, "- a/round-62, pitfall: \"mind the ends, 9x\"");
        assert!((entry.expected_ratio() - 1.3).abs() < 1e-9);
    }
}
