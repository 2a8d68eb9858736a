//! `karve bench --load`: a file that does not agree with itself is refused.

use crate::e2e::lab::Lab;
use serde_json::{Value, json};

/// A bench of two commands, saved.
fn saved(options: &[&str], commands: [&str; 2]) -> (Lab, Value) {
    let lab = Lab::unversioned("gains");
    let mut args = vec!["bench", "--save", "saved.json", "--pairs", "12"];
    args.extend(options);
    args.push("--");
    args.extend(commands);
    lab.karve(&args).ends(0);
    let text = lab.read("saved.json");
    (lab, serde_json::from_str(&text).unwrap())
}

/// Loads the bench with an edit, which must be noticed.
#[track_caller]
fn refused((lab, saved): &(Lab, Value), edit: impl FnOnce(&mut Value), why: &str) {
    let mut edited = saved.clone();
    edit(&mut edited);
    lab.write("edited.json", &edited.to_string());
    lab.karve(&["bench", "--load", "edited.json"]).ends(2).complains(&[
        why,
        "hint: ",
        "--save FILE",
    ]);
}

#[test]
fn what_is_no_plain_file_is_refused() {
    let lab = Lab::empty();
    lab.command_of("mkfifo").arg("pipe").status().unwrap();
    for path in ["pipe", ".", "/dev/zero"] {
        let said = lab.karve(&["bench", "--load", path]);
        said.ends(2).complains(&["not a plain file", "--save FILE"]);
    }
}

/// The reading of B in the last block.
fn last(saved: &mut Value) -> &mut Value {
    let blocks = saved["blocks"].as_array_mut().unwrap();
    &mut blocks.last_mut().unwrap()["pairs"][0]["candidate"]
}

#[test]
fn a_reading_must_agree_with_the_clock_that_took_it() {
    let wall = saved(&[], ["sleep 0.01", "sleep 0.01"]);
    wall.0.karve(&["bench", "--load", "saved.json"]).ends(0);
    refused(&wall, |s| last(s)["value"] = json!(1.0), "wall_time is 1 ms, but wall_us is");
    refused(&wall, |s| last(s)["wall_us"] = json!(3), "but wall_us is 3");
    refused(&wall, |s| last(s)["wall_us"] = json!(0), "wall_us is 0");
    refused(&wall, |s| last(s)["cpu_us"] = json!(0), "cpu_us is 0");
    let cpu = saved(&["--metric", "cpu_time"], ["true", "true"]);
    refused(&cpu, |s| last(s)["value"] = json!(0.001), "but cpu_us is");
    let reported = saved(&["--metric", "t_us"], ["echo METRIC t_us=10", "echo METRIC t_us=9"]);
    let long = |s: &mut Value| last(s)["value"] = json!(9e9);
    refused(&reported, long, "but the whole command took");
}

#[test]
fn blocks_must_be_those_that_the_rule_took() {
    let reported = saved(&["--metric", "t_us"], ["echo METRIC t_us=10", "echo METRIC t_us=10"]);
    let blocks = |s: &mut Value| s["blocks"].as_array().unwrap().clone();
    let copy = |s: &mut Value| {
        let mut all = blocks(s);
        all.push(all[3].clone());
        s["blocks"] = all.into();
    };
    refused(&reported, copy, "is a copy of block 3");
    let many = |s: &mut Value| {
        let mut all = blocks(s);
        for seed in 0..20 {
            let mut more = all.last().unwrap().clone();
            more["seed"] = json!(seed + 0x8000_0000_u64);
            all.push(more);
        }
        s["blocks"] = all.into();
    };
    refused(&reported, many, "but its rule allows 12");
    refused(&reported, |s| s["blocks"] = json!([]), "it has no blocks");
    refused(&reported, |s| s["blocks"][2]["pairs"] = json!([]), "block 2 is empty");
    refused(&reported, |s| s["cases"] = json!([]), "it has no cases");
    let left_out = |s: &mut Value| {
        let all = s["blocks"].as_array_mut().unwrap();
        all.last_mut().unwrap()["discarded"] = json!("warm_up");
    };
    refused(
        &reported,
        left_out,
        "is left out as warm-up, but by its readings it should be counted",
    );
    let counted = |s: &mut Value| s["blocks"][0]["discarded"] = Value::Null;
    refused(&reported, counted, "block 0 is counted");
    refused(&reported, |s| s["rule"]["alpha"] = json!(0.9), "thresholds are inconsistent");
    refused(&reported, |s| s["rule"]["second"] = json!("cpu"), "other clocks");
}

#[test]
fn what_is_no_file_is_wrong_use() {
    let lab = Lab::unversioned("gains");
    for name in [".", "nowhere", "karve.toml"] {
        lab.karve(&["bench", "--load", name]).ends(2).complains(&["--save FILE"]);
    }
}
