//! The no-op test: an agent that only edits comments never gets anything kept.

use crate::lab::{Lab, copy, source};
use crate::tidy::is_tidy;
use std::collections::BTreeMap;

/// A C kernel whose agent only edits a comment, in every round another one.
fn comments_only(artifacts: &str) -> Lab {
    let lab = Lab::new("noop");
    lab.replace("karve.toml", "artifacts = []", artifacts)
        .commit();
    lab
}

fn tally(lab: &Lab) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for verdict in lab.verdicts() {
        *counts.entry(verdict).or_default() += 1;
    }
    counts
}

#[test]
fn forty_rounds_of_edited_comments_keep_nothing() {
    let lab = comments_only("artifacts = []");
    lab.karve(&["run", "--yes"]).ends(0);
    let counts = tally(&lab);
    let blocks = lab.events("block_measured").len();
    println!("no-op test: 40 rounds, {blocks} blocks, 0 kept; {counts:?}");
    assert_eq!(counts.values().sum::<u32>(), 40);
    assert_eq!(counts.get("keep"), None);
    assert!(blocks > 40, "the duel decided");
    is_tidy(&lab);
    lab.karve(&["verify"]).ends(0);
}

#[test]
fn edited_comments_build_the_same_artifact() {
    let lab = comments_only("artifacts = [\"build/kernel.o\"]");
    lab.replace("karve.toml", "rounds = 40", "rounds = 5")
        .commit();
    lab.karve(&["run", "--yes"]).ends(0);
    assert_eq!(
        tally(&lab),
        BTreeMap::from([("same_artifact".to_owned(), 5)])
    );
    assert_eq!(lab.events("block_measured").len(), 0);
    is_tidy(&lab);
}

#[test]
fn the_example_is_engaged() {
    let lab = Lab::unversioned("noop");
    std::fs::remove_dir_all(lab.path("")).unwrap();
    copy(&source("examples/matmul"), &lab.path(""));
    lab.git(&["init", "-q", "-b", "main"]);
    lab.commit();
    let said = lab.karve(&["doctor"]).ends(0);
    said.shows(&["ok      engagement", "ok      test"]);
}
