//! What was learned in a round is added to the staged layer, until the user promotes it. What it
//! makes of an entry is decided in `karve_core::knowledge`; repeating it changes nothing, because
//! evidence is identified by its run.

use super::{Layer, LibraryLayers};
use karve_core::campaign::{Event, Record};
use karve_core::knowledge::{
    Evidence, Learning, Scope, became, is_same_measurement, new_entry, with_evidence,
    without_evidence,
};
use karve_harness::store::{self, CampaignDir};
use karve_os::error::Result;
use std::path::Path;

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
    let entry = known.unwrap_or_else(|| new_entry(learning, here));
    let traced = |of: &Evidence| dir.parent().is_some_and(|campaigns| is_traced(campaigns, of));
    let Some(changed) = with_evidence(entry.clone(), learning, here, traced) else {
        // It was written before karve was killed: report the same change again.
        let before = without_evidence(entry.clone(), learning, here);
        return Ok(became(&before, &entry));
    };
    let mut change = layers.change(&held);
    change.put(Layer::Staged, &changed)?;
    change.commit()?;
    Ok(became(&entry, &changed))
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
        Event::Learned { lesson, .. } => {
            let learning = lesson.learning.as_ref();
            learning.is_some_and(|learning| is_same_measurement(&learning.evidence, evidence))
        }
        _ => false,
    };
    dir.exists() && store::read(&dir).is_ok_and(|log| log.records.iter().any(tells))
}

#[cfg(test)]
mod tests {
    use super::*;
    use karve_core::knowledge::{Entry, EntryKind, EntryStatus};

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
        assert_eq!((found.kind, found.evidence.len()), (EntryKind::Optimization, 1));
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
            (EntryKind::Optimization, EntryStatus::Candidate),
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
        assert_eq!(entry(&layers).kind, EntryKind::Optimization);
        after("d/round-2", 1.3, &["y"]);
        assert!(entry(&layers).except.is_empty());
    }
}
