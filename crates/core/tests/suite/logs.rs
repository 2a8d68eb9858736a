//! Every log ever written loads: `testdata/logs` holds one of each format.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "core touches no file, but its test reads the stored logs, and fails loudly"
)]

use karve_core::campaign::{Campaign, Record, StopReason};
use std::fs;
use std::path::{Path, PathBuf};

fn logs() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/logs");
    let entries = fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    paths.sort();
    paths
}

/// Folds a log, with every verdict judged again from its readings.
fn load(path: &Path) -> Campaign {
    let mut campaign = Campaign::new();
    for (number, line) in (1..).zip(fs::read_to_string(path).unwrap().lines()) {
        let at = format!("{}:{number}", path.display());
        let record: Record = serde_json::from_str(line).unwrap_or_else(|e| panic!("{at}: {e}"));
        let taken = campaign.record(&record);
        taken.unwrap_or_else(|error| panic!("{at}: {error}"));
    }
    campaign
}

#[test]
fn every_stored_log_loads_and_is_judged_as_it_was() {
    let paths = logs();
    assert!(!paths.is_empty());
    for path in paths {
        let campaign = load(&path);
        assert!(campaign.n_events() > 0, "{}", path.display());
        assert_eq!(campaign.view(), campaign.view());
    }
}

#[test]
fn the_small_log_tells_the_same_story() {
    let small = logs().into_iter().find(|path| path.ends_with("v3-small.jsonl"));
    let campaign = load(&small.unwrap());
    let words: Vec<&str> = campaign.rounds().iter().map(|r| r.verdict.word()).collect();
    assert_eq!(words, ["keep", "drop", "drop", "drop", "keep"]);
    let after: Vec<u32> = campaign.controls().iter().map(|c| c.control.after).collect();
    assert_eq!(after, [0, 3]);
    assert!(campaign.is_finished());
}

#[test]
fn a_log_of_agents_in_roles_tells_the_same_story() {
    let agents = logs().into_iter().find(|path| path.ends_with("v3-agents.jsonl"));
    let path = agents.unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let records: Vec<Record> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // Every turn was written down: proposing, two realizations, a review, a lesson; twice.
    let said = records.iter().filter(|r| r.event.session_log().is_some());
    let names: Vec<&str> = said.map(|record| record.event.name()).collect();
    let turns = ["proposed", "implemented", "implemented", "reviewed", "learned"];
    assert_eq!(names, [turns, turns].concat());
    let campaign = load(&path);
    assert_eq!(campaign.unknown_events(), 0);
    let through = StopReason::AgendaThrough { kept: 2, items: 2 };
    assert_eq!(campaign.stop_reason(), Some(&through));
    for round in campaign.rounds() {
        assert_eq!(round.verdict.word(), "keep");
        assert_eq!((round.variants.len(), round.chosen), (2, Some(1)));
        let route = round.route.as_ref().unwrap();
        assert_eq!(route.role, "designer");
        let lesson = round.lesson.learning.as_ref().unwrap();
        assert!(!lesson.words.is_empty());
    }
    let tasks: Vec<&str> = campaign.rounds().iter().filter_map(|r| r.task.as_deref()).collect();
    assert_eq!(tasks, ["half", "naps"]);
    // What is read is written again as it was, so that an older karve reads it too.
    for (line, record) in text.lines().zip(&records) {
        let again: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_value(record).unwrap(), again);
    }
}
