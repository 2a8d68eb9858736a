//! The log under bad conditions: torn, damaged, held by another, dated in the future.

use crate::e2e::lab::{Lab, source, wait_until};
use crate::e2e::tidy::is_tidy;
use karve_os::error::ErrorKind;
use std::fs;

/// A campaign that stands after its first round.
fn paused() -> Lab {
    let lab = Lab::new("gains");
    lab.dies("after:30");
    assert_eq!(lab.log().len(), 31);
    lab
}

#[test]
fn a_torn_last_line_is_cut_off_and_reported() {
    let tails: [&[u8]; 4] = [
        b"{\"v\":3,\"seq\":31,\"at_ms\":17",
        b"\x00\x00\x00\x00",
        b"\xff\xfe garbage \x07\n",
        b"{\"v\":3}\n",
    ];
    let lab = paused();
    let good = fs::read(lab.campaign("events.jsonl")).unwrap();
    for tail in tails {
        fs::write(lab.campaign("events.jsonl"), [&good[..], tail].concat()).unwrap();
        let note = format!("incomplete ({} bytes)", tail.len());
        lab.karve(&["status"]).ends(0).complains(&[&note]);
        lab.karve(&["verify"]).ends(0).complains(&[&note]).shows(&["in 31 records"]);
    }
    let said = lab.karve(&["run", "--yes"]).ends(0);
    said.complains(&["cut off an incomplete last line of the log (8 bytes)"]);
    assert_eq!(lab.verdicts().len(), 5);
    is_tidy(&lab);
}

#[test]
fn a_campaign_of_another_host_is_not_continued() {
    let lab = paused();
    let path = lab.campaign("events.jsonl");
    let own = fs::read_to_string(&path).unwrap();
    let mut records: Vec<serde_json::Value> = lab.log();
    let facts = &mut records[1]["event"]["environment"]["facts"];
    let cpu = facts["cpu"].as_str().unwrap().to_owned();
    facts["cpu"] = "another CPU".into();
    facts["load"] = "99 99 99".into();
    facts["hipcc"] = "hipcc 0.1".into();
    let lines: Vec<String> = records.iter().map(ToString::to_string).collect();
    let foreign = format!("{}\n", lines.join("\n"));
    fs::write(&path, &foreign).unwrap();
    lab.karve(&["run", "--yes"]).ends(3).complains(&[
        "the campaign toy was measured on another host or with other tools",
        &format!("cpu: another CPU, now {cpu}"),
        "hipcc: hipcc 0.1, now ",
        "karve run --new",
    ]);
    assert_eq!(fs::read_to_string(&path).unwrap(), foreign);
    // How busy the host was is no reason.
    let busy = own.replacen("\"load\":\"", "\"load\":\"9", 1);
    fs::write(&path, busy).unwrap();
    lab.karve(&["run", "--yes"]).ends(0);
    // A finished campaign is read anywhere, and measures nothing.
    let mut records = lab.log();
    records[1]["event"]["environment"]["facts"]["cpu"] = "another CPU".into();
    let lines: Vec<String> = records.iter().map(ToString::to_string).collect();
    fs::write(&path, format!("{}\n", lines.join("\n"))).unwrap();
    lab.karve(&["run", "--yes", "--campaign", "toy", "--rounds", "9"])
        .ends(3)
        .complains(&["was measured on another host"]);
    lab.karve(&["report"]).ends(0);
}

#[test]
fn damage_in_the_middle_is_named_and_nothing_is_changed() {
    let lab = paused();
    let path = lab.campaign("events.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines[11] = "{\"v\":1,";
    let damaged = format!("{}\n", lines.join("\n"));
    fs::write(&path, &damaged).unwrap();
    for args in [&["run", "--yes"][..], &["status"], &["report"]] {
        let parts = ["events.jsonl is damaged at line 12", "hint: keep a copy", "head -n 11"];
        lab.karve(args).ends(3).complains(&parts);
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), damaged);
    // A line that is gone is damage too.
    lines.remove(11);
    fs::write(&path, format!("{}\n", lines.join("\n"))).unwrap();
    lab.karve(&["run", "--yes"]).ends(3).complains(&["damaged at line 12", "number should be 11"]);
    // What the hint says works.
    fs::write(&path, format!("{}\n", lines[..11].join("\n"))).unwrap();
    lab.karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts().len(), 5);
}

#[test]
fn a_clock_that_went_back_does_no_harm() {
    let lab = paused();
    let path = lab.campaign("events.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"at_ms\":1", "\"at_ms\":9")).unwrap();
    lab.karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts().len(), 5);
    lab.karve(&["verify"]).ends(0);
    lab.karve(&["report"]).ends(0);
}

#[test]
fn a_campaign_that_is_being_run_is_left_alone() {
    let lab = Lab::new("gains");
    lab.script("1", "propose", "touch ../../proposing\nsleep 1000").unconfined().commit();
    let first = lab.start(&["run", "--yes"]);
    wait_until("the agent is asked", || lab.campaign("proposing").exists());
    let before = lab.log();
    let holder = format!("held by process {}", first.pid());
    let parts =
        ["the campaign is already running", &holder, "hint: watch it with \"karve status\""];
    lab.karve(&["run", "--yes"]).ends(4).complains(&parts);
    lab.karve(&["status"]).ends(0).shows(&["round 1"]);
    assert_eq!(lab.log(), before);
    first.kill();
    // The lock died with its holder, and so did the agent.
    lab.replace("script/round-1/propose.sh", "sleep 1000", "claim idea reason 1.1");
    lab.commit();
    lab.karve(&["run", "--yes", "--campaign", "toy", "--agent", "builtin"]).ends(0);
    fs::remove_file(lab.campaign("proposing")).unwrap();
    is_tidy(&lab);
}

#[test]
fn a_lock_that_a_killed_git_left_does_not_stop_a_campaign() {
    let lab = paused();
    fs::write(lab.path(".git/refs/heads/optimize/toy.lock"), "").unwrap();
    fs::write(lab.path(".git/refs/karve/toy/round-2.lock"), "").unwrap();
    fs::write(lab.path(".git/refs/karve/toy/best.lock"), "").unwrap();
    lab.karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts().len(), 5);
    is_tidy(&lab);
}

#[test]
fn a_campaign_that_died_before_its_first_record_can_be_looked_at_and_started() {
    for point in ["before:0", "torn:0"] {
        let lab = Lab::new("gains");
        lab.dies(point);
        for command in ["status", "log", "best", "report", "list", "verify", "queue"] {
            let said = lab.karve(&[command]);
            assert!([0, 1, 2].contains(&said.code), "{command}: {said:?}");
        }
        lab.karve(&["diff"]).ends(2).complains(&["no baseline yet"]);
        lab.karve(&["apply", "--branch", "x"]).ends(2).complains(&["no charter yet"]);
        lab.karve(&["run", "--yes", "--rounds", "1"]).ends(0);
        assert_eq!(lab.verdicts(), ["keep"]);
    }
}

#[test]
fn a_campaign_that_cannot_start_removes_only_what_it_made() {
    let lab = paused();
    let outside = lab.beside("outside");
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("mine"), "mine").unwrap();
    let absolute = outside.to_string_lossy().into_owned();
    for name in ["", ".", "..", "../src", "../../outside", &absolute, "a/b", "x.lock", "a b"] {
        let said = lab.karve(&["run", "--yes", "--new", "--campaign", name]).ends(2);
        said.complains(&["the name of a campaign has letters, digits"]);
    }
    assert_eq!(fs::read_to_string(outside.join("mine")).unwrap(), "mine");
    assert!(lab.path("karve.toml").is_file() && lab.path(".git").is_dir());
    // A log that somebody emptied is not the start of a new campaign.
    lab.karve(&["run", "--yes"]).ends(0);
    fs::write(lab.campaign("events.jsonl"), "").unwrap();
    for args in [&["run", "--yes"][..], &["status"], &["report"], &["next"]] {
        let parts = ["events.jsonl has no records, but artifacts", "karve clean toy"];
        lab.karve(args).ends(3).complains(&parts);
    }
    assert!(lab.campaign("artifacts").is_dir(), "the artifacts are gone");
}

#[test]
fn every_command_ends_with_the_documented_code() {
    let documented = fs::read_to_string(source("docs/report.md")).unwrap();
    let kinds = [
        ErrorKind::Negative,
        ErrorKind::Usage,
        ErrorKind::Environment,
        ErrorKind::Busy,
        ErrorKind::Bug,
        ErrorKind::Interrupted,
    ];
    for code in kinds.map(ErrorKind::exit_code) {
        assert!(documented.contains(&format!("\n| {code} | ")), "{code}");
    }
    let lab = Lab::new("gains");
    let of_a_campaign: [&[&str]; 15] = [
        &["status"],
        &["log"],
        &["show", "1"],
        &["why"],
        &["diff", "1"],
        &["best"],
        &["report"],
        &["verify"],
        &["queue"],
        &["answer", "yes"],
        &["apply"],
        &["next"],
        &["submit"],
        &["checkout", "1", "there"],
        &["run", "--hours", "x"],
    ];
    for words in of_a_campaign {
        let other = [words, &["--campaign", "no-such-campaign"]].concat();
        // There is none yet, and no terminal to agree to one.
        lab.karve(&other).ends(2);
        let elsewhere = [words, &["-C", "/"]].concat();
        lab.karve(&elsewhere).ends(2);
    }
    lab.karve(&["no-such-command"]).ends(2);
    lab.karve(&["list"]).ends(0);
    lab.karve(&["list", "-C", "/no/such/directory"]).ends(3);
}
