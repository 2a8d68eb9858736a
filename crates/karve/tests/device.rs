//! Leases and cleanup processes across processes, some of which are killed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "these are tests")]

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;
use std::{env, fs, thread};

use karve_os::device::lease::LeaseRequest;
use karve_os::device::{NoticeSink, lease};
use karve_os::process::{self, CleanupProcess, StopFlag, end_tagged};

use crate::inner::{INNER, lives, start, wait_until};

fn inner_dir() -> Option<PathBuf> {
    env::var_os(INNER).map(PathBuf::from)
}

#[test]
fn a_lease_dies_with_its_holder_whatever_the_holder_started() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    let mut holder = start("device::inner_hold", dir.path());
    wait_until("the first has it", || file("orphan").exists());
    let _waiter = start("device::inner_take", dir.path());
    wait_until("the second waits", || file("told").exists());
    let reported = fs::read_to_string(file("told")).unwrap();
    let pid = holder.0.id();
    assert!(reported.contains(&format!("first (process {pid})")), "{reported}");
    assert!(!file("got").exists());
    holder.kill();
    wait_until("the second has it", || file("got").exists());
    let orphan = fs::read_to_string(file("orphan")).unwrap();
    assert!(lives(&orphan), "a child of the first is still there");
    assert_eq!(end_tagged(dir.path().to_str().unwrap()), 1);
}

#[test]
#[ignore = "started by a_lease_dies_with_its_holder_whatever_the_holder_started"]
fn inner_hold() {
    let Some(dir) = inner_dir() else { return };
    let _lease = lease::try_take("cpu", "first").unwrap().unwrap();
    let line = "setsid sh -c 'echo $$ > new; mv new orphan; exec sleep 1000' & exec sleep 1000";
    let command = process::Command::shell(line, &dir).tag(dir.to_str().unwrap());
    process::run(&command, &StopFlag::new()).unwrap();
}

#[test]
#[ignore = "started by a_lease_dies_with_its_holder_whatever_the_holder_started"]
fn inner_take() {
    let Some(dir) = inner_dir() else { return };
    let wish = LeaseRequest { device: "cpu", holder: "second", limit: Duration::from_secs(120) };
    let reported = dir.join("told");
    let notices = NoticeSink::new(move |said| {
        let new = reported.with_extension("new");
        fs::write(&new, said.text()).unwrap();
        let _ = fs::rename(new, &reported);
    });
    let (_lease, _waited) = lease::take(&wish, &StopFlag::new(), &notices).unwrap();
    fs::write(dir.join("got"), "").unwrap();
}

#[test]
fn a_cleanup_runs_its_line_when_karve_lets_go() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    fs::write(file("note"), "").unwrap();
    let held = File::create(file("held")).unwrap();
    held.lock().unwrap();
    let line = "echo undone >> undone; echo noise";
    let cleanup = CleanupProcess::start(line, dir.path(), &file("note"), &held).unwrap();
    assert!(!file("undone").exists());
    assert!(cleanup.finish(Duration::from_secs(60)));
    assert_eq!(fs::read_to_string(file("undone")).unwrap(), "undone\n");
    assert!(!file("note").exists());
    assert_eq!(fs::read_to_string(file("held")).unwrap(), "", "no noise");
}

#[test]
fn a_cleanup_whose_line_fails_leaves_the_note() {
    let dir = tempfile::tempdir().unwrap();
    let note = dir.path().join("note");
    fs::write(&note, "").unwrap();
    let held = File::create(dir.path().join("held")).unwrap();
    let cleanup = CleanupProcess::start("exit 3", dir.path(), &note, &held).unwrap();
    assert!(cleanup.finish(Duration::from_secs(60)));
    assert!(note.exists());
}

#[test]
fn a_cleanup_runs_its_line_when_karve_is_killed_and_holds_the_lock() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    let mut karve = start("device::inner_guarded", dir.path());
    wait_until("it is guarded", || file("ready").exists());
    karve.kill();
    wait_until("the line has begun", || file("begun").exists());
    let held = File::open(file("held")).unwrap();
    assert!(held.try_lock().is_err(), "the cleanup process holds it");
    fs::write(file("go"), "").unwrap();
    wait_until("the cleanup process has ended", || held.try_lock().is_ok());
    assert!(file("undone").exists() && !file("note").exists());
}

#[test]
#[ignore = "started by a_cleanup_runs_its_line_when_karve_is_killed_and_holds_the_lock"]
fn inner_guarded() {
    let Some(dir) = inner_dir() else { return };
    fs::write(dir.join("note"), "").unwrap();
    let held = File::create(dir.join("held")).unwrap();
    held.lock().unwrap();
    let line = "touch begun; until [ -e go ]; do sleep 0.01; done; touch undone";
    let _cleanup = CleanupProcess::start(line, &dir, &dir.join("note"), &held).unwrap();
    // Other commands come and go, and are ended with their orphans, and the tag is cleaned up.
    let tag = dir.to_str().unwrap();
    let command = process::Command::shell("setsid sleep 1000 & exit 0", &dir).tag(tag);
    assert_eq!(process::run(&command, &StopFlag::new()).unwrap().orphans, 1);
    assert_eq!(end_tagged(tag), 0);
    fs::write(dir.join("ready"), "").unwrap();
    thread::sleep(Duration::from_secs(1000));
}
