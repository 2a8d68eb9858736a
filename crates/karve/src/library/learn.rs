//! What was learned in a round becomes evidence of an entry, staged until the user promotes it.
//!
//! Repeating it changes nothing: evidence is identified by its run. Nothing is deleted; an entry
//! that a measurement contradicts is narrowed, refuted or inverted by that evidence. Where a
//! measurement contradicts evidence for the same target that no campaign here measured, that
//! evidence is disputed: it stays, with the run that contradicts it, and no longer counts.

use super::{Layer, LibraryLayers};
use karve_core::campaign::{Event, Record};
use karve_core::knowledge::{
    Entry, EntryBasis, EntryKind, EntrySection, EntryStatus, Evidence, EvidenceEffect, Learning,
    Scope, VOUCHED, anti_pattern_runs, assess, effect_of, is_of, narrowed, spent_after,
};
use karve_harness::store::{self, CampaignDir};
use karve_os::error::Result;
use std::path::Path;

/// Most evidence of one entry; the newest is kept.
const EVIDENCE_MAX: usize = 60;
/// The section with claims that agents made about rounds.
pub const CLAIMS: &str = "Claims";
/// Most claims of one entry; the newest are kept, and the logs have all of them.
const CLAIMS_MAX: usize = 24;
/// Ratios of a log and of a file are equal if they differ by less than this share.
const SAME_RATIO: f64 = 1e-3;

/// Adds what was learned in a round to the staged layer; returns how the status of the entry
/// changed, if it did.
pub fn take_in(layers: &LibraryLayers, learning: &Learning, here: &Scope) -> Result<String> {
    let Some(dir) = layers.dir(Layer::Staged) else {
        return Ok(String::new());
    };
    // Two campaigns may learn about the same entry at the same time.
    let held = layers.hold(&[Layer::Staged])?;
    let library = layers.load()?;
    let known = library.placed.get(&learning.entry).map(|p| p.entry.clone());
    let entry = known.unwrap_or_else(|| new_tip(learning, here));
    let run = &learning.evidence.run;
    if let Some(changed) = with_evidence(entry.clone(), learning, (here, dir.parent())) {
        let mut change = layers.change(&held);
        change.put(Layer::Staged, &changed)?;
        change.commit()?;
        return Ok(became(&entry, &changed));
    }
    // It was written before karve was killed: report the same change again.
    let mut before = entry.clone();
    before.evidence.retain(|evidence| evidence.run != *run);
    let place = spent_after(&learning.evidence, here);
    let place = place.as_ref().unwrap_or(here);
    before.except.retain(|scope| scope != place);
    let by_evidence = matches!(before.status, EntryStatus::Verified | EntryStatus::Refuted);
    if by_evidence && before.section(VOUCHED).is_none() {
        before.status = EntryStatus::Candidate;
    }
    for evidence in before.evidence.iter_mut().filter(|e| e.disputed == *run) {
        evidence.disputed.clear();
    }
    Ok(became(&before, &entry))
}

/// How the status of an entry changed; empty if it did not.
fn became(before: &Entry, now: &Entry) -> String {
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

/// The entry with the evidence of a round; none if it already has it.
fn with_evidence(
    mut entry: Entry,
    learning: &Learning,
    (here, campaigns): (&Scope, Option<&Path>),
) -> Option<Entry> {
    let run = &learning.evidence.run;
    if entry.evidence.iter().any(|evidence| evidence.run == *run) {
        return None;
    }
    match effect_of(&learning.evidence) {
        EvidenceEffect::Refutes => {
            dispute(&mut entry.evidence, run, (here, campaigns));
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

/// Supporting evidence no longer counts if a run has just shown the opposite for the same target
/// and no campaign here measured it.
fn dispute(evidence: &mut [Evidence], run: &str, (here, campaigns): (&Scope, Option<&Path>)) {
    for of in evidence {
        let against = effect_of(of) == EvidenceEffect::Supports && is_of(of, here);
        if against && !campaigns.is_some_and(|campaigns| is_traced(campaigns, of)) {
            run.clone_into(&mut of.disputed);
        }
    }
}

/// Whether the log of a campaign here contains a piece of evidence.
fn is_traced(campaigns: &Path, evidence: &Evidence) -> bool {
    let Some((name, _)) = evidence.run.rsplit_once("/round-") else {
        return false;
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if !name.chars().all(plain) || name.starts_with('.') {
        return false;
    }
    let dir = CampaignDir::new(campaigns, name);
    let tells = |record: &Record| match &record.event {
        Event::Learned { lesson, .. } => lesson.learning.as_ref().is_some_and(|learning| {
            let (reported, of) = (&learning.evidence, evidence);
            reported.run == of.run && (reported.ratio - of.ratio).abs() <= SAME_RATIO * of.ratio
        }),
        _ => false,
    };
    dir.exists() && store::read(&dir).is_ok_and(|log| log.records.iter().any(tells))
}

/// Turns an optimization that makes kernels slower into an anti-pattern.
fn invert(entry: &mut Entry) {
    let Some(runs) = anti_pattern_runs(entry) else {
        return;
    };
    let list = runs.join(" and ");
    entry.kind = EntryKind::AntiPattern;
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
fn new_tip(learning: &Learning, here: &Scope) -> Entry {
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
            is_new: true,
            title: "do x".into(),
            mechanism: "I expect it".into(),
            evidence: Evidence {
                metric: "time_ms".into(),
                ratio,
                low: Some(ratio - 0.01),
                high: Some(ratio + 0.01),
                device: "cpu".into(),
                workload: "softmax n=8".into(),
                run: run.into(),
                date: "2026-11-15".into(),
                toolchain: "cc".into(),
                n: 12,
                ..Evidence::default()
            },
            ..Learning::default()
        }
    }

    fn staged(dir: &std::path::Path) -> LibraryLayers {
        let mut layers = LibraryLayers::default();
        layers.put(Layer::Staged, dir.join("staged"));
        layers.put(Layer::Project, dir.join("project"));
        layers
    }

    fn entry(layers: &LibraryLayers) -> Entry {
        layers.load().unwrap().get("x").unwrap().entry.clone()
    }

    #[test]
    fn a_finding_is_staged_once_and_verified_when_replicated() {
        let dir = tempfile::tempdir().unwrap();
        let layers = staged(dir.path());
        for _ in 0..3 {
            take_in(&layers, &learning("a/round-1", 1.3), &here()).unwrap();
        }
        let found = entry(&layers);
        assert_eq!((found.kind, found.evidence.len()), (EntryKind::Tip, 1));
        assert_eq!(found.status, EntryStatus::Candidate);
        assert!(karve_core::knowledge::lint(&found, "2026-11-16").is_empty());
        let became = take_in(&layers, &learning("b/round-4", 1.2), &here()).unwrap();
        assert_eq!(entry(&layers).status, EntryStatus::Verified);
        assert_eq!(became, "x is verified by rule now: replicated in 2 runs");
        // A karve that was killed before recording that reports it again.
        let again = take_in(&layers, &learning("b/round-4", 1.2), &here()).unwrap();
        assert_eq!(again, became);
        let more = take_in(&layers, &learning("c/round-1", 1.2), &here()).unwrap();
        assert_eq!(more, "");
    }

    #[test]
    fn two_rounds_on_one_parent_do_not_promote_an_entry() {
        let dir = tempfile::tempdir().unwrap();
        let layers = staged(dir.path());
        let on = |run: &str, parent: &str| {
            let mut learning = learning(run, 1.3);
            learning.evidence.parent = parent.into();
            take_in(&layers, &learning, &here()).unwrap()
        };
        assert_eq!((on("a/round-1", "p"), on("a/round-2", "p")).1, "");
        assert_eq!(entry(&layers).status, EntryStatus::Candidate);
        assert!(on("a/round-3", "q").starts_with("x is verified by rule now"));
    }

    #[test]
    fn what_is_measured_against_is_refuted_then_turned_around() {
        let dir = tempfile::tempdir().unwrap();
        let layers = staged(dir.path());
        let claimed = Entry {
            id: "x".into(),
            title: "Do x".into(),
            date: "2026-11".into(),
            ..Entry::default()
        };
        layers.write(Layer::Project, &claimed).unwrap();
        take_in(&layers, &learning("a/round-1", 0.8), &here()).unwrap();
        let refuted = entry(&layers);
        assert_eq!((refuted.kind, refuted.status), (EntryKind::Optimization, EntryStatus::Refuted));
        take_in(&layers, &learning("b/round-1", 0.7), &here()).unwrap();
        let turned = entry(&layers);
        assert_eq!((turned.kind, turned.status), (EntryKind::AntiPattern, EntryStatus::Verified));
        assert!(turned.section("Instead").is_some());
        // The project's own file is unchanged.
        let own = dir.path().join("project/x.md");
        assert!(super::super::read_entry(&own).unwrap().evidence.is_empty());
    }

    #[test]
    fn what_holds_elsewhere_is_excepted_here() {
        let dir = tempfile::tempdir().unwrap();
        let layers = staged(dir.path());
        let mut elsewhere = learning("a/round-1", 1.4);
        elsewhere.evidence.workload = "gemm n=8".into();
        take_in(&layers, &elsewhere, &Scope::default()).unwrap();
        let became = take_in(&layers, &learning("b/round-1", 0.8), &here()).unwrap();
        let narrowed = entry(&layers);
        assert_eq!(narrowed.except, [here()]);
        assert_ne!(narrowed.status, EntryStatus::Refuted);
        assert_eq!(became, "x does not hold for device cpu; op softmax now");
        // A later gain here reverts that.
        take_in(&layers, &learning("c/round-1", 1.4), &here()).unwrap();
        assert!(entry(&layers).except.is_empty());
    }

    #[test]
    fn what_gives_nothing_more_after_another_way_is_narrowed_by_that_and_not_refuted() {
        let dir = tempfile::tempdir().unwrap();
        let layers = staged(dir.path());
        let after = |run: &str, ratio: f64, on_top_of: &[&str]| {
            let mut learning = learning(run, ratio);
            learning.evidence.not_faster = ratio <= 1.0;
            learning.evidence.on_top_of = on_top_of.iter().map(|id| (*id).to_owned()).collect();
            take_in(&layers, &learning, &here()).unwrap()
        };
        after("a/round-1", 1.3, &[]);
        let became = after("b/round-2", 0.8, &["y"]);
        assert_eq!(became, "x does not hold for device cpu; op softmax; after y now");
        assert_eq!(after("b/round-2", 0.8, &["y"]), became, "reported again after a kill");
        let found = entry(&layers);
        assert_eq!(found.except[0].after, ["y"]);
        assert_eq!(
            (found.kind, found.status),
            (EntryKind::Tip, EntryStatus::Candidate),
            "{found:?}"
        );
        let library = layers.load().unwrap();
        let at = super::super::situation::of_words("softmax", "c", "c", "cpu");
        let known = super::super::recall::known_in(&library, &at);
        let known = known.iter().find(|known| known.id == "x").unwrap();
        assert_ne!(known.status, EntryStatus::Refuted);
        assert_eq!(known.spent_after, ["y"]);
        // Being slower again after it does not make it an anti-pattern; a gain there reverts it.
        after("c/round-2", 0.7, &["y"]);
        assert_eq!(entry(&layers).kind, EntryKind::Tip);
        after("d/round-2", 1.3, &["y"]);
        assert!(entry(&layers).except.is_empty());
    }

    #[test]
    fn claims_are_quoted_and_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let layers = staged(dir.path());
        for number in 0..CLAIMS_MAX + 3 {
            let mut learning = learning(&format!("a/round-{number}"), 1.3);
            learning.words.pitfall = "mind the ends, 9x".into();
            take_in(&layers, &learning, &here()).unwrap();
        }
        let found = entry(&layers);
        let claims = found.section(CLAIMS).unwrap();
        assert_eq!(claims.lines().count(), CLAIMS_MAX);
        let last = claims.lines().next_back().unwrap();
        assert_eq!(last, "- a/round-26, pitfall: \"mind the ends, 9x\"");
        assert!((found.expected_ratio() - 1.3).abs() < 1e-9);
    }
}
