//! What a round taught becomes evidence of an entry, staged until somebody promotes it.
//!
//! Doing it again changes nothing: evidence is known by its run. Nothing is deleted; what a
//! measurement speaks against is narrowed, refuted or turned around by its own evidence.

use super::{Layer, Shelves};
use crate::error::{Context, Result};
use karve_core::knowledge::{
    Basis, Effect, Entry, Kind, Learning, Scope, Section, assess, effect_of, narrowed,
};
use std::fs::{self, File};

/// Evidence of one entry at most; the newest stays.
const EVIDENCE_MAX: usize = 60;
/// Two runs that are slower by at least this turn an optimization into an anti-pattern.
const SLOWER_RATIO: f64 = 0.97;

/// Adds what a round taught to the staged layer.
pub fn take_in(shelves: &Shelves, learning: &Learning, here: &Scope) -> Result<()> {
    let Some(dir) = shelves.dir(Layer::Staged) else {
        return Ok(());
    };
    fs::create_dir_all(dir).context(|| format!("cannot make {}", dir.display()))?;
    let lock = dir.join(".lock");
    let held = File::create(&lock).context(|| format!("cannot write {}", lock.display()))?;
    // Two campaigns may learn about the same entry at the same time.
    held.lock()
        .context(|| format!("cannot lock {}", lock.display()))?;
    let stock = shelves.load()?;
    let known = stock.placed.get(&learning.entry).map(|p| p.entry.clone());
    let entry = known.unwrap_or_else(|| new_tip(learning, here));
    if let Some(changed) = with_evidence(entry, learning, here) {
        shelves.write(Layer::Staged, &changed)?;
    }
    Ok(())
}

/// The entry with what a round showed; nothing if it has that already.
fn with_evidence(mut entry: Entry, learning: &Learning, here: &Scope) -> Option<Entry> {
    let run = &learning.evidence.run;
    if entry.evidence.iter().any(|evidence| evidence.run == *run) {
        return None;
    }
    let against = effect_of(&learning.evidence) == Effect::Refutes;
    if against && let Some(scope) = narrowed(&entry, here) {
        // It holds elsewhere, so it is narrowed here and stays as it is there.
        if !entry.except.contains(&scope) {
            entry.except.push(scope);
        }
    }
    entry.evidence.push(learning.evidence.clone());
    let excess = entry.evidence.len().saturating_sub(EVIDENCE_MAX);
    entry.evidence.drain(..excess);
    if entry.except.is_empty() {
        turn_around(&mut entry);
        entry.status = assess(&entry).status;
    }
    entry.date.clone_from(&learning.evidence.date);
    Some(entry)
}

/// An optimization that was slower in two runs and faster in none is an anti-pattern.
fn turn_around(entry: &mut Entry) {
    let standing = assess(entry);
    let slower = entry
        .evidence
        .iter()
        .filter(|e| !e.failed && e.high.is_some_and(|high| high < SLOWER_RATIO));
    let mut runs: Vec<&str> = slower.map(|e| e.run.as_str()).collect();
    runs.sort_unstable();
    runs.dedup();
    if entry.kind != Kind::Optimization || standing.n_for > 0 || runs.len() < 2 {
        return;
    }
    entry.kind = Kind::AntiPattern;
    let list = runs.join(" and ");
    let parts = [
        (
            "Failure mode",
            format!("{} makes kernels slower.", entry.title),
        ),
        (
            "How it shows",
            format!("It was slower in {list}; see the evidence."),
        ),
        ("Instead", "Leave it out.".to_owned()),
    ];
    for (heading, text) in parts {
        entry.sections.push(Section {
            heading: heading.to_owned(),
            text,
        });
    }
}

/// A finding that no entry tells of yet.
fn new_tip(learning: &Learning, here: &Scope) -> Entry {
    let e = &learning.evidence;
    let interval = match (e.low, e.high) {
        (Some(low), Some(high)) => format!(" [{low:.3}, {high:.3}]"),
        _ => String::new(),
    };
    let foretold = learning.foretold.iter();
    let foretold: Vec<String> = foretold
        .map(|f| format!("{} {}", f.counter, f.came.words()))
        .collect();
    let signal = format!(
        "{:.3}x{interval} over its parent, {} blocks; {}",
        e.ratio,
        e.n,
        match foretold.is_empty() {
            true => "no counter was foretold".to_owned(),
            false => foretold.join(", "),
        }
    );
    let section = |heading: &str, text: String| Section {
        heading: heading.to_owned(),
        text,
    };
    Entry {
        id: learning.entry.clone(),
        kind: Kind::Tip,
        title: learning.title.clone(),
        basis: Basis::SingleObservation,
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
    use karve_core::knowledge::{Evidence, Status};

    fn here() -> Scope {
        Scope {
            device: vec!["cpu".into()],
            op: vec!["softmax".into()],
            ..Scope::default()
        }
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
            foretold: Vec::new(),
        }
    }

    fn staged(dir: &std::path::Path) -> Shelves {
        let mut shelves = Shelves::default();
        shelves.put(Layer::Staged, dir.join("staged"));
        shelves.put(Layer::Project, dir.join("project"));
        shelves
    }

    fn entry(shelves: &Shelves) -> Entry {
        shelves.load().unwrap().get("x").unwrap().entry.clone()
    }

    #[test]
    fn a_finding_is_staged_once_and_verified_when_replicated() {
        let dir = tempfile::tempdir().unwrap();
        let shelves = staged(dir.path());
        for _ in 0..3 {
            take_in(&shelves, &learning("a/round-1", 1.3), &here()).unwrap();
        }
        let found = entry(&shelves);
        assert_eq!((found.kind, found.evidence.len()), (Kind::Tip, 1));
        assert_eq!(found.status, Status::Candidate);
        assert!(karve_core::knowledge::lint(&found).is_empty());
        take_in(&shelves, &learning("b/round-4", 1.2), &here()).unwrap();
        assert_eq!(entry(&shelves).status, Status::Verified);
    }

    #[test]
    fn what_is_measured_against_is_refuted_then_turned_around() {
        let dir = tempfile::tempdir().unwrap();
        let shelves = staged(dir.path());
        let claimed = Entry {
            id: "x".into(),
            title: "Do x".into(),
            date: "2026-11".into(),
            ..Entry::default()
        };
        shelves.write(Layer::Project, &claimed).unwrap();
        take_in(&shelves, &learning("a/round-1", 0.8), &here()).unwrap();
        let refuted = entry(&shelves);
        assert_eq!(
            (refuted.kind, refuted.status),
            (Kind::Optimization, Status::Refuted)
        );
        take_in(&shelves, &learning("b/round-1", 0.7), &here()).unwrap();
        let turned = entry(&shelves);
        assert_eq!(
            (turned.kind, turned.status),
            (Kind::AntiPattern, Status::Verified)
        );
        assert!(turned.section("Instead").is_some());
        // The project's own file is as it was.
        let own = dir.path().join("project/x.md");
        assert!(super::super::read_entry(&own).unwrap().evidence.is_empty());
    }

    #[test]
    fn what_holds_elsewhere_is_excepted_here() {
        let dir = tempfile::tempdir().unwrap();
        let shelves = staged(dir.path());
        let mut elsewhere = learning("a/round-1", 1.4);
        elsewhere.evidence.workload = "gemm n=8".into();
        take_in(&shelves, &elsewhere, &Scope::default()).unwrap();
        take_in(&shelves, &learning("b/round-1", 0.8), &here()).unwrap();
        let narrowed = entry(&shelves);
        assert_eq!(narrowed.except, [here()]);
        assert_ne!(narrowed.status, Status::Refuted);
    }
}
