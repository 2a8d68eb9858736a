//! kill -9: nothing that karve started lives on, and nothing that it made is left.

use crate::e2e::lab::{Lab, Running, git_in, wait_until};
use crate::e2e::tidy::processes_of;
use std::fs;
use std::path::Path;

/// A line whose work is done by a grandchild of karve, which says its process id.
const DEEP: &str = "sh -c 'echo $$ >> pids; touch begun; sleep 1000'; true";

/// A bench of plain commands that is at its first run.
fn measuring(lab: &Lab) -> Running {
    let running = lab.start(&["bench", "--", DEEP, DEEP]);
    wait_until("a run begins", || lab.path("begun").exists());
    running
}

/// A bench of two revisions that is at the build of its first side.
fn building(lab: &Lab) -> Running {
    let begun = lab.beside("begun");
    let line = format!("touch {}; sleep 1000; sh build.sh", begun.display());
    lab.replace("karve.toml", "sh build.sh", &line);
    lab.unconfined().commit();
    let running = lab.start(&["bench", "HEAD", "."]);
    wait_until("a build begins", || begun.exists());
    assert_eq!(worktrees(lab), 2, "the first side has a worktree");
    running
}

fn worktrees(lab: &Lab) -> usize {
    lab.git(&["worktree", "list"]).lines().count()
}

fn left_in(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Those of the pids in a file that live.
fn alive(lab: &Lab) -> Vec<String> {
    let pids = fs::read_to_string(lab.path("pids")).unwrap_or_default();
    let lives = |pid: &&str| {
        fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| !stat.rsplit_once(')').unwrap().1.starts_with(" Z"))
    };
    pids.lines().filter(lives).map(str::to_owned).collect()
}

/// The process that clears up after a karve.
fn reaper_of(karve: &Running) -> String {
    let pid = karve.pid();
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let reaps = |child: &&str| {
        let line = fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains("\0reap\0")
    };
    list.split_whitespace().find(reaps).unwrap().to_owned()
}

/// kill -9 of both, so that only the next karve can clear up.
fn kill_with_reaper(running: Running) {
    let reaper = reaper_of(&running);
    let mut kill = std::process::Command::new("kill");
    kill.args(["-9", &reaper]).status().unwrap();
    running.kill();
}

#[test]
fn a_killed_bench_takes_the_grandchild_of_its_line_along() {
    let lab = Lab::unversioned("gains");
    let running = measuring(&lab);
    assert_eq!(alive(&lab).len(), 1);
    running.kill();
    wait_until("nobody lives", || alive(&lab).is_empty());
    wait_until("nothing is left", || left_in(&lab.beside("tmp")).is_empty());
}

#[test]
fn a_killed_bench_of_revisions_leaves_no_worktree() {
    let lab = Lab::new("gains");
    building(&lab).kill();
    wait_until("no worktree is left", || worktrees(&lab) == 1);
    wait_until("nothing is left", || left_in(&lab.beside("tmp")).is_empty());
    assert!(left_in(&lab.path(".git/worktrees")).is_empty());
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_killed_campaign_takes_the_orphans_of_its_agent_along() {
    let lab = Lab::new("gains");
    let wait = "setsid sleep 1000 &\n(sleep 1000 &)\ntouch ../../waiting\nsleep 1000";
    lab.script("1", "propose", wait).unconfined().commit();
    let running = lab.start(&["run", "--yes"]);
    wait_until("the agent waits", || lab.campaign("waiting").exists());
    assert!(processes_of(&lab).len() >= 3);
    running.kill();
    wait_until("nobody lives", || processes_of(&lab).is_empty());
}

#[test]
fn what_nobody_could_clear_up_is_swept_by_the_next_bench() {
    let lab = Lab::new("gains");
    kill_with_reaper(building(&lab));
    assert_eq!(worktrees(&lab), 2);
    assert_eq!(left_in(&lab.beside("tmp")).len(), 1);
    // What looks alike but has no owner that is known to be dead stays.
    let alien = lab.beside("tmp/karve-bench-alien");
    fs::create_dir(&alien).unwrap();
    let commit = lab.git(&["rev-parse", "HEAD"]);
    let own = lab.beside("own");
    git_in(&lab.path(""), &["worktree", "add", "-q", "--detach", own.to_str().unwrap(), &commit]);
    lab.karve(&["bench", "--pairs", "8", "--", "true", "true"]).ends(0);
    assert_eq!(worktrees(&lab), 2, "the user's own worktree stays");
    assert_eq!(left_in(&lab.beside("tmp")), ["karve-bench-alien"]);
    assert!(alive(&lab).is_empty());
}

#[test]
fn an_entry_whose_directory_is_gone_is_swept_by_the_next_bench() {
    let lab = Lab::new("gains");
    kill_with_reaper(building(&lab));
    fs::remove_dir_all(lab.beside("tmp")).unwrap();
    fs::create_dir(lab.beside("tmp")).unwrap();
    assert_eq!(worktrees(&lab), 2);
    lab.replace("karve.toml", "sleep 1000; ", "").commit();
    lab.karve(&["bench", "HEAD", "."]).ends(0);
    assert_eq!(worktrees(&lab), 1);
}

#[test]
fn a_bench_that_lives_is_not_swept() {
    let lab = Lab::unversioned("gains");
    let running = measuring(&lab);
    let before = left_in(&lab.beside("tmp"));
    let other = ["bench", "--metric", "t_us", "--pairs", "8", "--", "x", "y"];
    // It waits for the device in vain, but cleans up first.
    let mut waiting = lab.command(&other);
    let mut waiting = waiting.stderr(std::process::Stdio::null()).spawn().unwrap();
    wait_until("the other has its directory", || left_in(&lab.beside("tmp")).len() == 2);
    assert_eq!(alive(&lab).len(), 1);
    assert!(left_in(&lab.beside("tmp")).contains(&before[0]));
    waiting.kill().unwrap();
    waiting.wait().unwrap();
    wait_until("the other is gone", || left_in(&lab.beside("tmp")) == before);
    assert_eq!(alive(&lab).len(), 1);
    running.kill();
}

#[test]
fn a_directory_without_an_owner_yet_is_removed_by_the_reaper_of_its_karve_alone() {
    let lab = Lab::unversioned("gains");
    let begun = ["karve-bench-7-abc-x", "karve-tune-7-abc-y"];
    let others = ["karve-bench-17-abc-x", "karve-bench-7-ab-x", "else-7-abc-x"];
    for name in begun.iter().chain(&others) {
        fs::create_dir(lab.beside("tmp").join(name)).unwrap();
    }
    fs::write(lab.beside("tmp").join(begun[1]).join("owner"), "").unwrap();
    // Its input is at its end, as when a karve is killed.
    lab.karve(&["reap", "999999999", "5-def-0/7-abc"]).ends(0);
    let mut left = left_in(&lab.beside("tmp"));
    left.sort();
    assert_eq!(left, ["else-7-abc-x", "karve-bench-17-abc-x", "karve-bench-7-ab-x"]);
}
