//! A whole campaign with a scripted agent, and every command that looks at it afterwards.

use crate::e2e::lab::{Lab, source};
use crate::e2e::tidy::Remains;
use serde_json::{Value, json};
use std::fs;

/// The whole campaign on one line per event, as a golden file.
fn render(log: &[Value]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for record in log {
        let event = &record["event"];
        let mut line = event["type"].as_str().unwrap().to_owned();
        for key in ["round", "try_no", "retry", "set", "mutation_check_passed", "same_artifact"] {
            if !event[key].is_null() {
                line.push_str(&format!(" {key}={}", event[key]));
            }
        }
        let reported = [
            &event["hypothesis"]["title"],
            &event["candidate"]["out_of_scope"],
            &event["gate"]["gate"],
            &event["verdict"],
            &event["reason"],
            &event["refusal"],
        ];
        for value in reported.into_iter().filter(|value| !value.is_null()) {
            line.push_str(&format!(" {value}"));
        }
        let readings = event["block"]["pairs"].as_array().into_iter().flatten();
        for pair in readings {
            line.push_str(&format!(" {}:{}", pair["parent"]["value"], pair["candidate"]["value"]));
        }
        lines.push(line);
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Compares with a file of `testdata`; `KARVE_BLESS=1` writes it.
#[track_caller]
fn golden(name: &str, text: &str) {
    let path = source("testdata/golden").join(name);
    if std::env::var_os("KARVE_BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap_or_default(), text, "{name}");
}

#[test]
fn a_whole_campaign_is_kept_in_the_log_and_in_the_repository() {
    let lab = Lab::new("gains");
    let said = lab.karve(&["run", "--yes"]).ends(0);
    let said = said.shows(&["campaign  toy", "baseline  time_us = 100", "speedup", "2.500x"]);
    assert_eq!(said.stderr, "");
    let remains = Remains::of(&lab);
    golden("gains.events.txt", &render(&remains.log));
    let verdicts = ["keep", "regressed", "same_artifact", "no_candidate", "keep"];
    assert_eq!(lab.verdicts(), verdicts);
    // The branch holds the best kernel and nothing else that the agent did.
    let changed = lab.git(&["diff", "--name-only", "main", "optimize/toy"]);
    assert_eq!(changed, "kernel.sh");
    let kernel = lab.git(&["show", "optimize/toy:kernel.sh"]);
    assert!(kernel.contains("TIME=40"), "{kernel}");
    assert_eq!(lab.git(&["log", "--format=%an", "main..optimize/toy"]), "karve\nkarve");
    looking_back_shows_it(&lab);
    versions_are_cloned(&lab);
    derived_files_can_be_rebuilt(&lab);
    applying_makes_a_branch(&lab);
    a_changed_sample_is_noticed(&lab);
}

fn looking_back_shows_it(lab: &Lab) {
    let status = lab.karve(&["status", "--json"]).ends(0).json();
    assert_eq!(status["campaign"], "toy");
    assert_eq!(status["rounds_done"], 5);
    assert_eq!(status["kept"], 2);
    assert_eq!(status["step"], "finished");
    let ratio = status["cumulative_ratio"].as_f64().unwrap();
    assert!((ratio - 2.5).abs() < 1e-9, "{ratio}");
    lab.karve(&["status"]).ends(0).shows(&["5 of 10, 2 kept", "100.0000 us to 40.0000 us"]);
    let log = lab.karve(&["log", "--json"]).ends(0).json();
    assert_eq!(log.as_array().unwrap().len(), 5);
    golden("gains.log.txt", &lab.karve(&["log"]).ends(0).stdout);
    lab.karve(&["show", "1"]).ends(0).shows(&["halve the work"]);
    let round = lab.karve(&["show", "2", "--json"]).ends(0).json();
    assert_eq!(round["title"], "prefetch further ahead");
    lab.karve(&["show", "9"]).ends(2).complains(&["there is no round 9", "karve log"]);
    lab.karve(&["diff"]).ends(0).shows(&["-TIME=100", "+TIME=40"]);
    lab.karve(&["diff", "2"]).ends(0).shows(&["-TIME=50", "+TIME=60"]);
    lab.karve(&["diff", "4"]).ends(2).complains(&["round 4 has no candidate", "karve show 4"]);
    let best = lab.karve(&["best", "--json"]).ends(0).json();
    assert_eq!(best["round"], 5);
    assert_eq!(best["commit"], lab.git(&["rev-parse", "optimize/toy"]));
    let report = lab.karve(&["report"]).ends(0);
    let report = report.shows(&["toy", "2.500", "halve the work", "unroll by four"]);
    assert_eq!(fs::read_to_string(lab.campaign("REPORT.md")).unwrap(), report.stdout);
    lab.karve(&["list"]).ends(0).shows(&["toy", "finished", "5 rounds", "2 kept"]);
    let verified = lab.karve(&["verify", "--json"]).ends(0).json();
    assert_eq!(verified["rounds"], 5);
    assert_eq!(verified["differences"], json!([]));
    lab.karve(&["queue"]).ends(0);
    lab.karve(&["run", "--dry-run"]).ends(0).shows(&["toy-2", "nothing was changed"]);
    assert!(!lab.path(".karve/toy-2").exists());
}

/// Any version is the start of another, and stays as it is.
fn versions_are_cloned(lab: &Lab) {
    let kept = lab.git(&["rev-parse", "refs/karve/toy/round-1"]);
    let place = lab.beside("v1");
    let dir = place.to_str().unwrap();
    let said = lab.karve(&["checkout", "1", dir, "--branch", "toy-v1", "--json"]).ends(0).json();
    assert_eq!((&said["version"], &said["branch"]), (&json!(1), &json!("toy-v1")));
    assert_eq!(said["commit"].as_str().unwrap(), kept.trim());
    let text = fs::read_to_string(place.join("kernel.sh")).unwrap();
    assert_eq!(text.trim(), lab.git(&["show", &format!("{}:kernel.sh", kept.trim())]));
    fs::write(place.join("kernel.sh"), text.replace("TIME=", "TIME=1")).unwrap();
    lab.karve(&["-C", dir, "check"]).ends(0).shows(&["with kernel.sh", "passed"]);
    assert_eq!(lab.git(&["rev-parse", "toy-v1"]), kept);
    let original = lab.beside("v0");
    let original = original.to_str().unwrap();
    lab.karve(&["checkout", "0", original]).ends(0).shows(&["version 0", "on the branch v0"]);
    assert_eq!(lab.git(&["rev-parse", "v0"]), lab.git(&["rev-parse", "HEAD"]));
    lab.karve(&["checkout", "1", dir]).ends(2).complains(&["exists", "karve checkout VERSION DIR"]);
    let other = lab.beside("other");
    let taken = ["checkout", "1", other.to_str().unwrap(), "--branch", "toy-v1"];
    lab.karve(&taken).ends(2).complains(&["already exists", "--branch NAME"]);
    lab.karve(&["checkout", "77", "x"]).ends(2).complains(&["no round 77", "karve log"]);
    for tree in [dir, original] {
        lab.git(&["worktree", "remove", "--force", tree]);
    }
}

fn derived_files_can_be_rebuilt(lab: &Lab) {
    let derived = [
        "REPORT.md",
        "manifest.yaml",
        "logs/optimize.md",
        "logs/performance_trend.md",
        "rounds/round-1/summary.md",
        "rounds/round-1/artifacts/samples.csv",
        "rounds/round-1/kernel_snapshot/kernel.sh",
        "rounds/round-5/artifacts/patch.diff",
    ];
    let read = |path: &str| fs::read_to_string(lab.campaign(path)).unwrap();
    let before: Vec<String> = derived.iter().map(|path| read(path)).collect();
    for path in derived {
        fs::remove_file(lab.campaign(path)).unwrap();
    }
    fs::write(lab.campaign("manifest.yaml"), "nonsense").unwrap();
    lab.karve(&["verify"]).ends(0).shows(&["stale     manifest.yaml"]);
    lab.karve(&["report", "--rebuild"]).ends(0);
    let after: Vec<String> = derived.iter().map(|path| read(path)).collect();
    assert_eq!(before, after);
}

fn applying_makes_a_branch(lab: &Lab) {
    let head = lab.git(&["rev-parse", "HEAD"]);
    lab.karve(&["apply", "--branch", "faster"]).ends(0).shows(&["2.500"]);
    assert!(lab.git(&["show", "faster:kernel.sh"]).contains("TIME=40"));
    lab.karve(&["apply", "--branch", "faster"]).ends(0);
    lab.karve(&["apply", "--branch", "main"]).ends(2).complains(&["already exists", "--branch"]);
    lab.karve(&["apply", "--branch", "a..b"]).ends(2).complains(&["not a valid branch name"]);
    assert_eq!(lab.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
}

/// Who edits a reading, a verdict or a patch is found out.
fn a_changed_sample_is_noticed(lab: &Lab) {
    let log = lab.campaign("events.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    let loss = text.replace("\"value\":60.0", "\"value\":30.0");
    assert_ne!(text, loss);
    fs::write(&log, loss).unwrap();
    lab.karve(&["verify"]).ends(1).shows(&["differs"]).complains(&["error: found ", " difference"]);
    fs::write(&log, &text).unwrap();
    let patch = fs::read_dir(lab.campaign("artifacts")).unwrap().next().unwrap().unwrap();
    fs::write(patch.path(), "another patch").unwrap();
    lab.karve(&["verify"]).ends(1).shows(&["does not match its hash"]);
}

#[test]
fn a_campaign_that_used_its_rounds_goes_on_when_it_gets_more() {
    let lab = Lab::new("gains");
    lab.karve(&["run", "--yes", "--rounds", "1"]).ends(0).shows(&["the only round is used up"]);
    assert_eq!(lab.verdicts(), ["keep"]);
    lab.karve(&["run", "--yes", "--campaign", "toy", "--rounds", "2"]).ends(0);
    assert_eq!(lab.verdicts(), ["keep", "regressed"]);
    assert_eq!(lab.events("extended").len(), 1);
    crate::e2e::tidy::is_tidy(&lab);
    lab.karve(&["verify"]).ends(0);
    // Without a name a new one starts.
    lab.karve(&["run", "--yes", "--rounds", "1"]).ends(0).shows(&["campaign  toy-2"]);
    lab.karve(&["list"]).ends(0).shows(&["toy ", "toy-2"]);
}

#[test]
fn every_record_is_a_line_of_json_on_request() {
    let lab = Lab::new("gains");
    let said = lab.karve(&["run", "--yes", "--json", "--rounds", "1"]).ends(0);
    let records: Vec<Value> =
        said.stdout.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(records, lab.log());
}

#[test]
fn a_recorded_campaign_replays_to_the_same_verdicts() {
    let lab = Lab::new("gains");
    lab.karve(&["run", "--yes"]).ends(0);
    let recorded = lab.verdicts();
    let agent = format!("replay:{}", lab.campaign("").display());
    let agent = agent.trim_end_matches('/');
    lab.karve(&["run", "--yes", "--campaign", "again", "--agent", agent]).ends(0);
    fs::rename(lab.campaign(""), lab.beside("recorded")).unwrap();
    fs::rename(lab.path(".karve/again"), lab.campaign("")).unwrap();
    assert_eq!(lab.verdicts(), recorded);
}

#[test]
fn an_answer_of_a_person_reaches_the_next_brief() {
    let lab = Lab::new("gains");
    lab.script(
        "1",
        "propose",
        r#"
echo '{"title": "ask", "mechanism": "to know", "expected_ratio": 1.1, "question": "which tile?"}'"#,
    );
    lab.script(
        "2",
        "propose",
        r#"
if grep -q 'tiles of 32' "$KARVE_BRIEF"; then title="heard"; else title="not heard"; fi
claim "$title" "somebody said so" 1.1"#,
    );
    lab.commit();
    // It dies when the second round has been proposed without the answer, and unrecorded.
    lab.dies("before:35");
    lab.karve(&["queue"]).ends(0).shows(&["round 1", "which tile?"]);
    lab.karve(&["answer", "tiles of 32 fit"]).ends(0);
    lab.karve(&["answer", " "]).ends(2).complains(&["1 to 4000 characters"]);
    fs::write(lab.campaign("inbox/9.txt"), b"\xff is no text").unwrap();
    lab.karve(&["run", "--yes", "--rounds", "2"]).ends(0);
    lab.karve(&["answer", "too late"]).ends(2).complains(&["is finished"]);
    assert_eq!(lab.events("answered").len(), 1);
    let titles = lab.events("proposed");
    assert_eq!(titles.last().unwrap()["hypothesis"]["title"], "heard");
    let inbox = fs::read_dir(lab.campaign("inbox")).unwrap();
    let left: Vec<_> = inbox.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["9.unreadable"]);
}
