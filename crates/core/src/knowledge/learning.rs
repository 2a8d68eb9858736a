//! What a round taught: in numbers by us, in words by the agent; and what it makes of an entry.
//!
//! Nothing is deleted: an entry that a measurement contradicts is narrowed, refuted or inverted by
//! that evidence.

use super::standing::{EvidenceEffect, effect_of, is_of, narrowed, spent_after};
use super::{
    Entry, EntryBasis, EntryKind, EntrySection, EntryStatus, Evidence, Scope, VOUCHED, assess,
};
use crate::hypothesis::PartShare;
use crate::profile::compare::{CounterChange, ExpectationResult};
use crate::profile::counters::known;
use crate::profile::{Bottleneck, CounterValues};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The section that says where else an entry holds.
const GENERALIZATION: &str = "Generalization";
/// How a generalization begins that follows from the evidence alone.
const BY_EVIDENCE: &str = "By the evidence it";
/// Most related entries of one kind.
const RELATED_MAX: usize = 12;
/// Most evidence of one entry; the newest is kept.
const EVIDENCE_MAX: usize = 60;
/// Two runs that are slower by at least this turn an optimization into an anti-pattern.
const SLOWER_RATIO: f64 = 0.97;
/// A round that gained nothing and measured this or less is a clear loss.
const CLEAR_LOSS_RATIO: f64 = 0.9;
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
    /// The candidate's counters that pages show, if it was profiled.
    #[serde(default, skip_serializing_if = "CounterValues::is_empty")]
    pub seen: CounterValues,
    /// What limits the candidate, if it was profiled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bottleneck: Option<Bottleneck>,
    /// Counters that the hypothesis predicted to move, and whether they did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub predicted: Vec<PredictedCounter>,
    /// What each part of a kept bundle is worth, if that was measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<PartShare>,
}

impl Lesson {
    /// Adds what the parts of the change are worth.
    pub fn add_shares(&mut self, shares: Vec<PartShare>) {
        for share in &shares {
            self.text = format!("{}; {}", self.text, share.describe());
        }
        self.shares = shares;
    }
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
    /// What limited the kernel, in the proposer's words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub bottleneck: String,
    /// The language that the finding is about; empty if it is about the algorithm.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub language: String,
    /// Counters that moved, before and after, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<String>,
    /// Entries that the kernel had already.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<String>,
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
    relate(&mut entry, learning);
    quote(&mut entry, learning);
    entry.evidence.push(learning.evidence.clone());
    let excess = entry.evidence.len().saturating_sub(EVIDENCE_MAX);
    entry.evidence.drain(..excess);
    if entry.except.iter().all(|scope| !scope.after.is_empty()) {
        invert(&mut entry);
        entry.status = assess(&entry).status;
    }
    generalize(&mut entry);
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

/// What the evidence says about the entry next to others: it gained on top of them, or it did not
/// although it gains without them.
fn relate(entry: &mut Entry, learning: &Learning) {
    let known: Vec<String> = entry.interactions.ids().cloned().collect();
    let is_new = |id: &&String| **id != entry.id && !known.contains(id);
    let others: Vec<String> = learning.beside.iter().filter(is_new).cloned().collect();
    let gains_alone = entry.evidence.iter().any(|e| effect_of(e) == EvidenceEffect::Supports);
    let list = match effect_of(&learning.evidence) {
        EvidenceEffect::Supports => &mut entry.interactions.composes_with,
        EvidenceEffect::Refutes if gains_alone && others.len() == 1 => {
            &mut entry.interactions.incompatible_with
        }
        EvidenceEffect::Refutes | EvidenceEffect::Open => return,
    };
    list.extend(others);
    list.truncate(RELATED_MAX);
}

/// Writes what the evidence says about other devices and operations; a text by hand stays.
fn generalize(entry: &mut Entry) {
    let is_own = |text: &str| text.starts_with(BY_EVIDENCE);
    if entry.section(GENERALIZATION).is_some_and(|text| !is_own(text)) {
        return;
    }
    let claims = match entry.kind {
        EntryKind::AntiPattern => EvidenceEffect::Refutes,
        _ => EvidenceEffect::Supports,
    };
    let Some(text) = generalization(&entry.evidence, claims) else {
        return;
    };
    entry.sections.retain(|section| section.heading != GENERALIZATION);
    entry.sections.push(EntrySection { heading: GENERALIZATION.to_owned(), text });
}

/// The rule that the evidence supports, without figures: where it holds, where it does not, and
/// whether it depends on the device.
fn generalization(evidence: &[Evidence], claims: EvidenceEffect) -> Option<String> {
    let places = |wanted: &dyn Fn(EvidenceEffect) -> bool| {
        let of = evidence.iter().filter(|e| e.disputed.is_empty() && wanted(effect_of(e)));
        let (mut devices, mut ops) = (BTreeSet::new(), BTreeSet::new());
        for evidence in of {
            devices.insert(evidence.device.split(" (").next().unwrap_or_default().to_owned());
            ops.insert(evidence.workload.split(' ').next().unwrap_or_default().to_owned());
        }
        (devices, ops)
    };
    let named = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(", ");
    let (devices, ops) = places(&|effect| effect == claims);
    let (not, _) = places(&|effect| effect != claims && effect != EvidenceEffect::Open);
    if devices.is_empty() {
        return None;
    }
    let mut text = format!("{BY_EVIDENCE} holds for {} on {}", named(&ops), named(&devices));
    let only_not: BTreeSet<String> = not.difference(&devices).cloned().collect();
    text.push_str(&match (devices.len(), only_not.is_empty()) {
        (1, true) => "; other devices were not measured.".to_owned(),
        (_, true) => "; it does not depend on the device.".to_owned(),
        (_, false) => format!("; not on {}.", named(&only_not)),
    });
    Some(text)
}

/// A finding that no entry covers yet: a gain is an optimization, a clear loss an anti-pattern, and
/// an assumption that did not hold a tip. The device belongs to the evidence, not to the scope.
pub fn new_entry(learning: &Learning, here: &Scope) -> Entry {
    let e = &learning.evidence;
    // A duel ends as soon as a gain is ruled out, before its interval shows how large a loss is.
    let is_slower = e.high.is_some_and(|high| high < SLOWER_RATIO);
    let is_clear = !e.failed && (is_slower || (e.not_faster && e.ratio <= CLEAR_LOSS_RATIO));
    let kind = match effect_of(e) {
        EvidenceEffect::Supports => EntryKind::Optimization,
        EvidenceEffect::Refutes if is_clear => EntryKind::AntiPattern,
        EvidenceEffect::Refutes | EvidenceEffect::Open => EntryKind::Tip,
    };
    let is_shared = learning.language.is_empty();
    let scope = match kind {
        EntryKind::Tip => here.clone(),
        _ => Scope {
            device: Vec::new(),
            backend: if is_shared { Vec::new() } else { here.backend.clone() },
            language: (!is_shared).then(|| learning.language.clone()).into_iter().collect(),
            ..here.clone()
        },
    };
    let sections = match kind {
        EntryKind::Optimization => optimization_sections(learning, &scope),
        EntryKind::AntiPattern => anti_pattern_sections(learning, &scope),
        _ => tip_sections(learning, here),
    };
    Entry {
        id: learning.entry.clone(),
        kind,
        title: learning.title.clone(),
        basis: EntryBasis::SingleObservation,
        scope,
        date: e.date.clone(),
        sections: sections
            .into_iter()
            .map(|(heading, text)| EntrySection { heading: heading.to_owned(), text })
            .collect(),
        ..Entry::default()
    }
}

/// Headings with their texts.
type NewSections = Vec<(&'static str, String)>;

/// Where a finding was made, as conditions.
fn context_lines(learning: &Learning, scope: &Scope) -> String {
    let limit = match learning.bottleneck.trim() {
        "" => String::new(),
        limit => format!("\n- the kernel is limited by {limit}"),
    };
    format!("- {}{limit}{}", scope.describe(), metric_condition(learning))
}

/// What the counters read before the change, for those that have a share of a peak.
fn metric_condition(learning: &Learning) -> String {
    let read = learning.moved.iter().filter_map(|moved| {
        let mut words = moved.split_whitespace();
        let counter = words.next().filter(|name| name.ends_with("_pct"))?;
        Some(format!("{counter}={}", words.next()?))
    });
    match read.collect::<Vec<_>>().join(", ") {
        read if read.is_empty() => read,
        read => format!("\n- seen at {read}"),
    }
}

/// The counters that moved, or the metric alone.
fn metric_lines(learning: &Learning) -> String {
    let lines = [format!("- {}", learning.evidence.metric)].into_iter();
    let moved = learning.moved.iter().map(|moved| format!("- {moved}"));
    lines.chain(moved).collect::<Vec<_>>().join("\n")
}

fn optimization_sections(learning: &Learning, scope: &Scope) -> NewSections {
    let (title, run) = (&learning.title, &learning.evidence.run);
    vec![
        ("When to apply", context_lines(learning, scope)),
        ("Mechanism", learning.mechanism.clone()),
        ("Affected metrics", metric_lines(learning)),
        ("Recipe", format!("{title}. The change is that of {run}.")),
        ("Pitfalls", "None was seen.".to_owned()),
    ]
}

fn anti_pattern_sections(learning: &Learning, scope: &Scope) -> NewSections {
    let (title, mechanism) = (&learning.title, &learning.mechanism);
    vec![
        ("Failure mode", format!("{title}: it is slower, although it was expected: {mechanism}")),
        ("When to apply", context_lines(learning, scope)),
        ("How it shows", metric_lines(learning)),
        ("Instead", "Leave it out, or first remove what limits the kernel.".to_owned()),
    ]
}

fn tip_sections(learning: &Learning, here: &Scope) -> NewSections {
    let e = &learning.evidence;
    let interval = match (e.low, e.high) {
        (Some(low), Some(high)) => format!(" [{low:.3}, {high:.3}]"),
        _ => String::new(),
    };
    let signal = format!("{:.3}x{interval} over its parent, {} blocks; {}", e.ratio, e.n, e.note);
    vec![
        ("Context", format!("{} on {}", e.workload, e.device)),
        ("Signal", signal),
        ("Takeaway", learning.mechanism.clone()),
        ("Applicability", here.describe()),
    ]
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
        let mut entry = new_entry(&learning("a/round-1", 1.3), &here());
        let mut on = |run: &str, parent: &str| {
            let mut learning = learning(run, 1.3);
            learning.evidence.parent = parent.into();
            learn(&mut entry, &learning, &here())
        };
        assert_eq!((on("a/round-1", "p"), on("a/round-2", "p")).1, "");
        assert_eq!(on("a/round-3", "q"), "x is verified by rule now: replicated in 2 runs");
        assert_eq!(on("b/round-1", "r"), "");
        assert_eq!((entry.kind, entry.status), (EntryKind::Optimization, EntryStatus::Verified));
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
        let mut entry = new_entry(&elsewhere, &Scope::default());
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
        let mut entry = new_entry(&learning("a/round-1", 1.3), &here());
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
    fn a_gain_is_an_optimization_a_loss_an_anti_pattern_and_nothing_a_tip() {
        let found = |ratio: f64, not_faster: bool| {
            let mut learning = learning("a/round-1", ratio);
            learning.mechanism = "fewer loads".into();
            learning.bottleneck = "memory".into();
            learning.moved = vec!["dram_pct 90 to 40 (-55.6%)".into()];
            learning.evidence.not_faster = not_faster;
            learning.evidence.metric = "time_ms".into();
            learning.evidence.toolchain = "cc".into();
            let entry = new_entry(&learning, &here());
            let entry = with_evidence(entry, &learning, &here(), |_| true).unwrap();
            assert_eq!(super::super::lint(&entry, "2026-11-16"), Vec::new());
            entry
        };
        let gain = found(1.3, false);
        assert_eq!(gain.kind, EntryKind::Optimization);
        // The device is in the evidence, and what it means elsewhere is told apart from it.
        assert_eq!((gain.scope.device.len(), gain.evidence[0].device.as_str()), (0, "cpu"));
        assert!(gain.section("When to apply").unwrap().contains("limited by memory"));
        assert!(gain.section("Affected metrics").unwrap().contains("dram_pct 90 to 40"));
        let rule = gain.section(GENERALIZATION).unwrap();
        assert!(rule.ends_with("holds for softmax on cpu; other devices were not measured."));
        let loss = found(0.8, true);
        assert_eq!(loss.kind, EntryKind::AntiPattern);
        assert!(loss.section("How it shows").unwrap().contains("dram_pct 90 to 40"));
        assert!(loss.section("Failure mode").unwrap().contains("fewer loads"));
        assert_eq!(found(0.99, true).kind, EntryKind::Tip);
    }

    #[test]
    fn other_devices_make_a_rule_and_other_entries_an_interaction() {
        let mut entry = new_entry(&learning("a/round-1", 1.3), &here());
        let on = |device: &str, run: &str, ratio: f64, beside: &[&str]| {
            let mut learning = learning(run, ratio);
            learning.evidence.device = format!("{device} (a host)");
            learning.evidence.not_faster = ratio < 1.0;
            learning.beside = beside.iter().map(|id| (*id).to_owned()).collect();
            (learning, Scope { device: vec![device.into()], ..here() })
        };
        let mut add = |(learning, here): (Learning, Scope)| {
            entry = with_evidence(entry.clone(), &learning, &here, |_| true).unwrap();
            let rule = entry.section(GENERALIZATION).unwrap().to_owned();
            (rule, entry.interactions.clone())
        };
        add(on("cpu", "a/round-1", 1.3, &[]));
        let (rule, relations) = add(on("gpu", "b/round-1", 1.2, &["tiles", "x"]));
        assert!(rule.ends_with("on cpu, gpu; it does not depend on the device."), "{rule}");
        assert_eq!(relations.composes_with, ["tiles"]);
        let (rule, relations) = add(on("tpu", "c/round-1", 0.8, &["unroll"]));
        assert!(rule.ends_with("on cpu, gpu; not on tpu."), "{rule}");
        assert_eq!(relations.incompatible_with, ["unroll"]);
        // A rule that a person wrote stays.
        entry.sections.retain(|section| section.heading != GENERALIZATION);
        entry.sections.push(EntrySection {
            heading: GENERALIZATION.into(),
            text: "Wherever loads are not coalesced.".into(),
        });
        let (learning, here) = on("npu", "d/round-1", 1.2, &[]);
        let entry = with_evidence(entry, &learning, &here, |_| true).unwrap();
        assert_eq!(entry.section(GENERALIZATION).unwrap(), "Wherever loads are not coalesced.");
    }

    #[test]
    fn claims_and_evidence_are_bounded() {
        let mut entry = new_entry(&learning("a/round-0", 1.3), &here());
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
