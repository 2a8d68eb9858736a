//! The kill test: dead at any point, and `karve run` comes to the same end.
//!
//! One scripted campaign is killed before, inside and after every record that it writes, and at
//! random times inside its steps. Whatever was killed, the next `karve run` must lead to the log,
//! the refs and the artifacts of the run that nobody disturbed.
//!
//! By default the deaths before and after a record are those at the events in `KEY_EVENTS`, and a
//! death in the middle is tried at the first and at the last record of every event.
//! `KARVE_TEST_ALL=1` tries all, and also kills one campaign of its own at each of these points.

use crate::e2e::harness::in_workspace;
use crate::e2e::lab::{KILLED, Lab, by_default, wait_until};
use crate::e2e::tidy::Remains;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

/// The campaign that nobody disturbed, and how long each of its steps took.
pub(crate) struct Reference {
    pub(crate) remains: Remains,
    spent_ms: Vec<u64>,
}

pub(crate) fn reference() -> &'static Reference {
    static REFERENCE: OnceLock<Reference> = OnceLock::new();
    REFERENCE.get_or_init(|| {
        let lab = Lab::new("gains");
        lab.karve(&["run", "--yes"]).ends(0);
        let spent = |record: &serde_json::Value| record["spent_ms"].as_u64().unwrap();
        Reference { spent_ms: lab.log().iter().map(spent).collect(), remains: Remains::of(&lab) }
    })
}

/// Goes on to the end, which must be that of the reference.
#[track_caller]
fn comes_to_the_same_end(lab: &Lab, after: &str) {
    // By its name, because a plain "run" starts another one when this one is at its end.
    lab.karve(&["run", "--yes", "--campaign", "toy"]).ends(0);
    let difference = reference().remains.difference(&Remains::of(lab));
    assert_eq!(difference, None, "after {after}");
    let verified = lab.karve(&["verify", "--json"]).ends(0).json();
    assert_eq!(verified["differences"], serde_json::json!([]));
    assert_eq!(verified["stale_files"], serde_json::json!([]));
}

/// One campaign that dies once at each of these records, at the same point of it.
fn dies_at(records: &[usize], point: &str) {
    let n = records.len();
    let lab = Lab::new("gains");
    for seq in records {
        lab.dies(&format!("{point}:{seq}"));
        let written = usize::from(point == "after");
        assert_eq!(lab.log().len(), seq + written, "{point}:{seq}");
    }
    // Also when it died after the last one: it has yet to clean up and to report.
    lab.karve(&["run", "--yes"]).ends(0);
    comes_to_the_same_end(&lab, point);
    println!("kill test: {n} boundaries, killed {point} each record: 0 mismatches");
}

/// Every record of a campaign.
fn every(campaign: &Remains) -> Vec<usize> {
    (0..campaign.log.len()).collect()
}

/// The first and the last record of every event.
fn at_the_ends(campaign: &Remains) -> Vec<usize> {
    let kinds = campaign.kinds();
    let is_end = |seq: &usize| {
        let same = |other: &String| *other == kinds[*seq];
        [kinds.iter().position(same), kinds.iter().rposition(same)].contains(&Some(*seq))
    };
    every(campaign).into_iter().filter(is_end).collect()
}

/// The records whose steps change more than the log; all in a full run.
fn telling(campaign: &Remains) -> Vec<usize> {
    let kinds = campaign.kinds();
    let tells = |seq: &usize| KEY_EVENTS.contains(&kinds[*seq].as_str());
    let some = every(campaign).into_iter().filter(tells).collect();
    by_default(some, every(campaign))
}

#[test]
fn killed_before_every_record_it_comes_to_the_same_end() {
    dies_at(&telling(&reference().remains), "before");
}

#[test]
fn killed_in_the_middle_of_every_record_it_comes_to_the_same_end() {
    let campaign = &reference().remains;
    dies_at(&by_default(at_the_ends(campaign), every(campaign)), "torn");
}

#[test]
fn killed_after_every_record_it_comes_to_the_same_end() {
    dies_at(&telling(&reference().remains), "after");
}

#[test]
fn killed_once_and_left_alone_it_comes_to_the_same_end() {
    let kinds = reference().remains.kinds();
    let all = by_default(false, true);
    let mut n_kills = 0;
    for (seq, kind) in kinds.iter().enumerate() {
        let first = kinds.iter().position(|other| other == kind) == Some(seq);
        for point in ["before", "torn", "after"] {
            if all || (first && point == "before" && KEY_EVENTS.contains(&kind.as_str())) {
                let lab = Lab::new("gains");
                let point = format!("{point}:{seq}");
                lab.dies(&point);
                comes_to_the_same_end(&lab, &point);
                n_kills += 1;
            }
        }
    }
    println!("kill test: {n_kills} campaigns killed once at a boundary: 0 mismatches");
}

#[test]
fn killed_in_a_workspace_it_comes_to_the_same_end() {
    let undisturbed = in_workspace();
    undisturbed.karve(&["run", "--yes"]).ends(0);
    let reference = Remains::of(&undisturbed);
    let records = telling(&reference);
    let n = records.len();
    let lab = in_workspace();
    for (at, seq) in records.into_iter().enumerate() {
        let point = ["before", "after"][at % 2];
        lab.dies(&format!("{point}:{seq}"));
    }
    lab.karve(&["run", "--yes"]).ends(0);
    assert_eq!(reference.difference(&Remains::of(&lab)), None);
    lab.karve(&["verify"]).ends(0);
    println!("kill test: {n} boundaries, killed once at each in a workspace: 0 mismatches");
}

/// The events whose steps change more than the log.
const KEY_EVENTS: [&str; 4] = ["prepared", "implemented", "settled", "finished"];

/// Numbers between 0 and 1 that look random and are the same each time.
fn draws(seed: u64) -> impl Iterator<Item = f64> {
    let step = |state: &u64| Some(state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1));
    let states = std::iter::successors(Some(seed), step).skip(4);
    states.map(|state| (state >> 33) as f64 / (1_u64 << 31) as f64)
}

/// One campaign that is killed inside one step after another, each after a step it could finish.
fn dies_inside_steps(seed: u64, kills: &mut BTreeMap<String, u32>) {
    let kinds = reference().remains.kinds();
    let lab = Lab::new("gains");
    let mut draws = draws(seed);
    let mut due = usize::try_from(seed).unwrap() % 2;
    while due < kinds.len() {
        let mut running = lab.start(&["run", "--yes"]);
        wait_until("the step begins", || lab.log().len() >= due || running.has_ended());
        let spent_us = reference().spent_ms[due] * 1_000 + 300;
        let pause_us = spent_us as f64 * draws.next().unwrap();
        std::thread::sleep(Duration::from_micros(pause_us as u64));
        let hit = kinds.get(lab.log().len());
        let killed = running.kill().code == KILLED;
        if let (Some(kind), true) = (hit, killed) {
            *kills.entry(kind.clone()).or_default() += 1;
        }
        due = lab.log().len() + 1;
    }
    comes_to_the_same_end(&lab, &format!("kills inside steps, seed {seed}"));
}

#[test]
fn killed_inside_its_steps_it_comes_to_the_same_end() {
    let campaigns = by_default(1, 40);
    let mut kills = BTreeMap::new();
    for seed in 0..campaigns {
        dies_inside_steps(seed, &mut kills);
    }
    let n: u32 = kills.values().sum();
    println!("kill test: {n} kills inside steps, {campaigns} campaigns: 0 mismatches; {kills:?}");
}
