//! The no-op test: an agent that only renames a variable never gets anything kept.

use crate::e2e::lab::{Lab, by_default, copy, source};
use crate::e2e::tidy::is_tidy;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A C kernel whose agent only renames a variable, in every round to another name.
fn names_only(artifacts: &str) -> Lab {
    let lab = Lab::new("noop");
    lab.replace("karve.toml", "artifacts = []", artifacts).commit();
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
fn rounds_of_renamed_variables_keep_nothing() {
    let rounds = by_default(10, 40);
    let lab = names_only("artifacts = []");
    lab.replace("karve.toml", "rounds = 40", &format!("rounds = {rounds}")).commit();
    lab.karve(&["run", "--yes"]).ends(0);
    let counts = tally(&lab);
    let blocks = lab.events("block_measured").len();
    println!("no-op test: {rounds} rounds, {blocks} blocks, 0 kept; {counts:?}");
    assert_eq!(counts.values().sum::<u32>(), rounds);
    assert_eq!(counts.get("keep"), None);
    assert!(blocks > rounds as usize, "the duel decided");
    is_tidy(&lab);
    lab.karve(&["verify"]).ends(0);
}

/// A process that keeps a core busy for as long as it stands.
struct Load(std::process::Child);

impl Load {
    fn new() -> Self {
        let busy = ["-c", "while :; do :; done"];
        Self(std::process::Command::new("sh").args(busy).spawn().unwrap())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn rounds_by_the_clock_of_the_whole_command_keep_nothing_under_load() {
    let rounds = by_default(5, 60);
    let lab = names_only("artifacts = []");
    by_wall_time(&lab, &format!("rounds = {rounds}"));
    let _load = [Load::new(), Load::new()];
    lab.karve(&["run", "--yes"]).ends(0);
    let counts = tally(&lab);
    let blocks = lab.events("block_measured").len();
    println!("no-op test under load: {rounds} rounds, {blocks} blocks, 0 kept; {counts:?}");
    assert_eq!(counts.values().sum::<u32>(), rounds);
    assert_eq!(counts.get("keep"), None);
    lab.karve(&["verify"]).ends(0);
}

/// The same campaign, timed by karve around the whole command.
fn by_wall_time(lab: &Lab, rounds: &str) {
    let own = "name = \"wall_time\"\nunit = \"ms\"";
    lab.replace("karve.toml", "name = \"time_us\"\nunit = \"us\"", own)
        .replace("karve.toml", "rounds = 40", rounds)
        .commit();
}

#[test]
fn renamed_variables_build_the_same_artifact() {
    is_not_measured(&names_only("artifacts = [\"build/kernel.o\"]"));
}

#[test]
fn edited_comments_are_not_measured_where_no_artifact_is_named() {
    let lab = names_only("artifacts = []");
    let edit = "edit \"s/Comment [0-9]*/Comment $round/\" kernel.c\necho done";
    lab.write("script/every/implement.sh", edit);
    is_not_measured(&lab);
}

fn is_not_measured(lab: &Lab) {
    lab.replace("karve.toml", "rounds = 40", "rounds = 5").commit();
    lab.karve(&["run", "--yes"]).ends(0);
    assert_eq!(tally(lab), BTreeMap::from([("same_artifact".to_owned(), 5)]));
    let blocks = lab.events("block_measured");
    let of_rounds = |event: &&Value| event["duel"]["duel"] == "round";
    assert_eq!(blocks.iter().filter(of_rounds).count(), 0);
    is_tidy(lab);
}

/// With karve's own clock a slower copy follows the equal one, and the report says what both were.
#[test]
fn the_measurement_is_checked_before_the_first_round() {
    let lab = names_only("artifacts = [\"build/kernel.o\"]");
    by_wall_time(&lab, "rounds = 1");
    lab.replace("karve.toml", "main bench\"", "main bench {repeats}\"");
    lab.replace("karve.toml", "[policy]", "[policy]\nfirst_verdict = \"after_checks\"").commit();
    lab.karve(&["run", "--yes"]).ends(0);
    // How many is a matter of the clock; e2e/harness.rs checks the count where it is not.
    let repeats = &lab.events("baseline_measured")[0]["repeats"];
    assert_eq!(repeats.as_array().unwrap().len(), 1, "{repeats}");
    let kinds: Vec<Value> =
        lab.events("block_measured").iter().map(|event| event["duel"]["kind"].clone()).collect();
    assert!(kinds.contains(&json!("same")) && kinds.contains(&json!("slower")), "{kinds:?}");
    let report = lab.read(".karve/toy/REPORT.md");
    assert!(report.contains("Controls: the A/A test of the incumbent"), "{report}");
    assert!(report.contains("Positive control: 3% more work measured as"), "{report}");
    lab.karve(&["verify"]).ends(0);
}

#[test]
fn the_examples_are_engaged() {
    let mut seen = 0;
    for entry in std::fs::read_dir(source("examples")).unwrap() {
        let example = entry.unwrap().path();
        if !example.join("karve.toml").is_file() {
            continue;
        }
        let lab = Lab::unversioned("noop");
        std::fs::remove_dir_all(lab.path("")).unwrap();
        copy(&example, &lab.path(""));
        lab.git(&["init", "-q", "-b", "main"]);
        lab.commit();
        let said = lab.karve(&["doctor"]).ends(0);
        said.shows(&["ok      mutation", "ok      test"]);
        seen += 1;
    }
    assert!(seen >= 3, "{seen} examples");
}
