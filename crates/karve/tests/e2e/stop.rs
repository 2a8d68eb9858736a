//! Ctrl-C: once finishes the step, twice stops at once; both go on later, and nobody is left.

use crate::e2e::lab::{Lab, Running, wait_until};
use crate::e2e::tidy::{is_tidy, processes_of};
use std::fs;
use std::process::{Command, Stdio};

/// A campaign whose agent waits in its first round, with a orphan that left its session.
fn waiting() -> (Lab, Running) {
    let lab = Lab::new("gains");
    let wait = "setsid sleep 1000 &\n(sleep 1000 &)\ntouch ../../waiting\n\
                while [ ! -e ../../enough ]; do sleep 0.01; done\n\
                claim \"halve the work\" \"half of it is not needed\" 2.0";
    lab.script("1", "propose", wait).unconfined().commit();
    let running = lab.start(&["run", "--yes"]);
    wait_until("the agent waits", || lab.campaign("waiting").exists());
    (lab, running)
}

#[test]
fn one_ctrl_c_finishes_the_step_and_the_campaign_goes_on_later() {
    let (lab, running) = waiting();
    let before = lab.log().len();
    assert!(processes_of(&lab).len() >= 3, "{:?}", processes_of(&lab));
    running.interrupt("finishing this step");
    fs::write(lab.campaign("enough"), "").unwrap();
    let said = running.wait().ends(130);
    said.complains(&["finishing this step", "stopped by the user", "hint: resume with"]);
    assert_eq!(lab.log().len(), before + 1, "the step was finished, and no other one");
    assert_eq!(processes_of(&lab), Vec::<String>::new());
    is_tidy(&lab);
    lab.karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts().len(), 5);
}

#[test]
fn two_ctrl_c_stop_at_once_and_the_campaign_goes_on_later() {
    let (lab, running) = waiting();
    let before = lab.log();
    running.interrupt("finishing this step");
    running.interrupt("stopping immediately");
    running.wait().ends(130).complains(&["stopped immediately", "hint: resume with"]);
    assert_eq!(lab.log(), before, "what was cut short is no result");
    is_tidy(&lab);
    fs::write(lab.campaign("enough"), "").unwrap();
    lab.karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts().len(), 5);
}

#[test]
fn two_ctrl_c_during_a_measurement_are_no_fault_of_the_host() {
    let lab = Lab::new("gains");
    let bench = lab.read("bench.sh");
    let slow = "if [ -e ../../slow ]; then touch ../../measuring; sleep 1000; fi\n";
    lab.write("bench.sh", &format!("{slow}{bench}"));
    lab.script("1", "repair", "edit '/^BROKEN/d'\ntouch ../../slow\necho repaired");
    lab.unconfined().commit();
    let running = lab.start(&["run", "--yes"]);
    wait_until("a block is measured", || lab.campaign("measuring").exists());
    let before = lab.log();
    running.interrupt("finishing this step");
    running.interrupt("stopping immediately");
    running.wait().ends(130).complains(&["stopped immediately"]);
    assert_eq!(lab.log(), before);
    fs::remove_file(lab.campaign("slow")).unwrap();
    lab.karve(&["run", "--yes"]).ends(0);
    is_tidy(&lab);
}

/// As with `karve run | head`: the campaign continues to its end, and says so.
#[test]
fn a_campaign_that_nobody_reads_is_finished() {
    let lab = Lab::new("gains");
    let mut command = lab.command(&["run", "--yes"]);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(said.matches("nobody reads standard output").count(), 1, "{said}");
    assert_eq!(lab.verdicts().len(), 5);
}

#[test]
fn sigterm_and_sighup_are_as_good_as_ctrl_c() {
    for signal in ["TERM", "HUP"] {
        // Below "nohup" these tests and karve inherit that it is passed over.
        if signal == "HUP" && karve_os::process::ignores(1) {
            eprintln!("skipped: SIGHUP is ignored here");
            continue;
        }
        let (lab, running) = waiting();
        running.signal(signal);
        fs::write(lab.campaign("enough"), "").unwrap();
        running.wait().ends(130).complains(&["resume with"]);
        is_tidy(&lab);
        lab.karve(&["run", "--yes"]).ends(0);
    }
}

#[test]
fn one_signal_ends_what_cannot_be_resumed() {
    let commands: [&[&str]; 4] =
        [&["doctor"], &["check"], &["noise", "--quick"], &["bench", "--no-test", ".", "."]];
    for (command, signal) in commands.into_iter().zip(["TERM", "INT", "TERM", "INT"]) {
        let lab = Lab::new("gains");
        let measuring = lab.beside("measuring");
        let slow = format!("touch '{}'\nsleep 1000\n", measuring.display());
        lab.write("bench.sh", &slow);
        lab.unconfined().commit();
        let running = lab.start(command);
        wait_until("the benchmark runs", || measuring.exists());
        running.signal(signal);
        let said = running.wait().ends(130);
        said.complains(&["stopping", "error: stopped by the user"]);
    }
}

#[test]
fn under_nohup_a_closed_terminal_is_passed_over() {
    let lab = Lab::unversioned("gains");
    let karve = env!("CARGO_BIN_EXE_karve");
    let line = "touch begun; while [ ! -e enough ]; do sleep 0.01; done";
    let args = ["--pairs", "8", "--", line, "true"];
    let mut command = lab.command_of("sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" bench \"$@\"", karve]).args(args);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("a run begins", || lab.path("begun").exists());
    let pid = child.id().to_string();
    Command::new("kill").args(["-s", "HUP", &pid]).status().unwrap();
    lab.write("enough", "");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
