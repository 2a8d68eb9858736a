//! `karve suite`: many tasks, one of them broken, killed in the middle and resumed.

use crate::e2e::lab::{Lab, copy, git_in, source, wait_until};
use serde_json::Value;
use std::fs;

/// A project of the toy in a repository of its own.
fn project(lab: &Lab, dir: &str) {
    let path = lab.path(dir);
    copy(&source("testing/toy"), &path);
    copy(&source("testdata/gains"), &path);
    let config = fs::read_to_string(path.join("karve.toml")).unwrap();
    let config = config.replace("final_blocks = 2", "final_blocks = 12");
    fs::write(path.join("karve.toml"), config).unwrap();
    git_in(&path, &["init", "-q", "-b", "main"]);
    git_in(&path, &["add", "-A"]);
    git_in(&path, &["commit", "-q", "-m", "the project"]);
}

fn log_of(lab: &Lab, task: &str) -> Vec<u8> {
    fs::read(lab.path(&format!("all/{task}/.karve/suite-{task}/events.jsonl"))).unwrap_or_default()
}

/// Whether a process of the suite still runs: the reaper ends them after a kill.
fn is_running(lab: &Lab) -> bool {
    let mark = lab.path("all").to_string_lossy().into_owned();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let is_own = |path: &std::path::Path| {
        fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd.to_string_lossy().starts_with(&mark))
    };
    processes.map(|entry| entry.path()).any(|path| is_own(&path))
}

fn row<'a>(page: &'a Value, task: &str) -> &'a Value {
    page["rows"].as_array().unwrap().iter().find(|row| row["task"] == task).unwrap()
}

#[test]
fn a_killed_suite_resumes_and_a_broken_task_stops_no_other() {
    let lab = Lab::empty();
    for dir in ["all/a", "all/c"] {
        project(&lab, dir);
    }
    lab.write("all/b/karve.toml", "[target\n");
    let running = lab.start(&["suite", "all"]);
    wait_until("the third task is under way", || {
        log_of(&lab, "c").iter().filter(|byte| **byte == b'\n').count() > 6
    });
    running.kill();
    wait_until("its processes are gone", || !is_running(&lab));
    let first = log_of(&lab, "a");
    assert!(!first.is_empty());
    // The page of a killed suite has what was finished.
    let page: Value = serde_json::from_str(&lab.read("suite/suite.json")).unwrap();
    assert_eq!(row(&page, "a")["state"], "finished", "{page}");
    assert_eq!(row(&page, "b")["state"], "failed", "{page}");

    let said = lab.karve(&["suite", "all"]).ends(1);
    let said = said.complains(&["1 task failed", "suite/suite.md says why"]);
    assert!(!said.stdout.contains(" a: started"), "{said:#?}");
    let said =
        said.shows(&["[3/3] c: resumed", "[3/3] c: 2.500x", "2 of 3 tasks finished, 1 failed"]);
    drop(said.shows(&["[2/3] b: failed: ", "geometric mean 2.500x over 2", "fast_1 0.67"]));
    assert_eq!(log_of(&lab, "a"), first, "a finished task was run again");
    let begun = String::from_utf8(log_of(&lab, "c")).unwrap();
    assert_eq!(begun.matches("\"seq\":0,").count(), 1, "it began once");

    let page = lab.karve(&["suite", "all", "--report", "--json"]).ends(0).json();
    let figures = &row(&page, "c")["figures"];
    assert_eq!((figures["rounds"].as_u64(), figures["kept"].as_u64()), (Some(5), Some(2)));
    assert!((figures["start"].as_f64().unwrap() - 100.0).abs() < 1e-9, "{figures}");
    assert_eq!((&figures["unit"], &figures["confirmed"]), (&"us".into(), &true.into()));
    assert!(figures["device_min"].as_f64().unwrap() > 0.0, "{figures}");
    assert!((figures["speedup"]["ratio"].as_f64().unwrap() - 2.5).abs() < 1e-9, "{figures}");
    assert_eq!(row(&page, "b")["state"], "waiting", "nothing was run");
    let text = lab.read("suite/suite.md");
    assert!(text.contains("| a | finished | start 100.0 us | 40.00 us | 2.500x "), "{text}");
    let html = lab.read("suite/suite.html");
    assert!(html.contains("<td>a</td>") && !html.contains("<script src"), "{html}");
}

#[test]
fn tasks_of_one_repository_and_of_a_list_have_campaigns_of_their_own() {
    let lab = Lab::empty();
    copy(&source("testing/toy"), &lab.path(""));
    for dir in ["x", "y"] {
        copy(&source("testing/toy"), &lab.path(dir));
        let config = fs::read_to_string(source("testdata/gains/karve.toml")).unwrap();
        let agent = format!("env TASK_DIR={dir} sh agent.sh");
        lab.write(&format!("{dir}/karve.toml"), &config.replace("sh agent.sh", &agent));
    }
    // An agent starts at the top of the repository.
    lab.write("script/every/propose.sh", "claim 'half the work' 'it is not needed' 2.0\n");
    let edit =
        "edit 's/^TIME=.*/TIME=50/' \"$TASK_DIR/kernel.sh\"\necho '{\"summary\": \"done\"}'\n";
    lab.write("script/every/implement.sh", edit);
    lab.write("tasks.txt", "# both\nx\ny\ngone\n");
    lab.git(&["init", "-q", "-b", "main"]);
    lab.commit();
    let args = ["suite", "tasks.txt", "--name", "two", "--rounds", "1", "--out", "../page"];
    let said = lab.karve(&args).ends(1);
    drop(said.shows(&["[1/3] x: 2.000x", "[2/3] y: 2.000x", "[3/3] gone: failed: there is no"]));
    assert!(lab.path("x/.karve/two-x/events.jsonl").is_file());
    assert!(lab.path("y/.karve/two-y/events.jsonl").is_file());
    let branches = lab.git(&["branch", "--list"]);
    assert!(branches.contains("two-x") && branches.contains("two-y"), "{branches}");
    // The campaign of one task is not that of another.
    copy(&lab.path("x/.karve/two-x"), &lab.path("y/.karve/cross-y"));
    let why = "not of this task: it was measured in x, and this is y";
    lab.karve(&["suite", "tasks.txt", "--name", "cross", "--report", "--out", "../page"]).ends(1);
    let page: Value = serde_json::from_str(&lab.read("../page/suite.json")).unwrap();
    assert!(row(&page, "y")["why"].as_str().is_some_and(|said| said.contains(why)), "{page}");
    let there = lab.path("y");
    let status = ["-C", there.to_str().unwrap(), "status", "--campaign", "cross-y", "--json"];
    let error = lab.karve(&status).ends(2).json();
    assert!(error["error"]["message"].as_str().unwrap().contains("is not of this project"));
    // Nor does it count once the task is another one.
    lab.replace("x/karve.toml", "[target]\nop = \"", "[target]\nop = \"other-");
    let page = lab.karve(
        &[&args[..2], &["--name", "two", "--report", "--json", "--out", "../page"]].concat(),
    );
    let page = page.ends(1).json();
    let why = row(&page, "x")["why"].as_str().unwrap_or_default().to_owned();
    assert!(why.contains("with another [target] of karve.toml"), "{page}");
}

#[test]
fn devices_take_tasks_side_by_side_and_a_campaign_stays_where_it_began() {
    let lab = Lab::empty();
    let pool = |name: &str| format!("\n[[tune.pool]]\ndevice = \"{name}\"\n");
    for task in ["a", "b", "c"] {
        let dir = format!("all/{task}");
        project(&lab, &dir);
        let config = lab.read(&format!("{dir}/karve.toml"));
        lab.write(&format!("{dir}/karve.toml"), &(config + &pool("one") + &pool("two")));
        git_in(&lab.path(&dir), &["commit", "-q", "-am", "two devices"]);
    }
    // One task has begun on a device before.
    let there = lab.path("all/a");
    let begun = ["-C", there.to_str().unwrap(), "run", "--yes", "--campaign", "suite-a"];
    let mut command = lab.command(&[&begun[..], &["--on", "two"]].concat());
    command.env("KARVE_TEST_DIE", "after:9");
    assert!(!command.output().unwrap().status.success());
    let args = ["suite", "all", "--rounds", "1", "--on", "one", "--on", "two"];
    let said = lab.karve(&args).ends(0).shows(&["a: resumed on two", "3 of 3 tasks finished"]);
    let started = |on: &str| said.stdout.matches(&format!(" on {on}\n")).count();
    assert_eq!(started("one") + started("two"), 3, "{said:#?}");
    let page: Value = serde_json::from_str(&lab.read("suite/suite.json")).unwrap();
    assert_eq!(row(&page, "a")["figures"]["device"], "two", "{page}");
}

#[test]
fn what_is_no_suite_ends_with_a_hint() {
    let lab = Lab::empty();
    lab.karve(&["suite", "."]).ends(2).complains(&["there is no karve.toml below", "karve import"]);
    lab.write("kernel.c", "int f(void) { return 1; }\n");
    lab.karve(&["suite", "kernel.c"]).ends(2).complains(&["kernel.c is not a list of tasks"]);
    lab.karve(&["suite", "gone"]).ends(3).complains(&["cannot read gone"]);
    lab.karve(&["suite", ".", "--hours", "-1"]).ends(2);
}
