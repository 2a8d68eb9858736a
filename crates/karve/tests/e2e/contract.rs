//! What a user gets wrong in a contract, and what karve says of it.

use crate::lab::{Lab, Said, wait_until};
use std::process::Command;

/// Makes a project of a template.
fn made(template: &str) -> Lab {
    let lab = Lab::empty();
    lab.karve(&["new", "--template", template, "."]).ends(0);
    lab.configure("[device]\npressure_max = 100\n");
    lab
}

/// What a doctor says of a project that has something to mend, but for what is fine.
fn doctor(lab: &Lab) -> Vec<String> {
    lab.commit();
    let said = lab.karve(&["doctor", "--json"]).ends(1);
    let findings = said.json();
    let bad = |finding: &&serde_json::Value| finding["level"] == "failed";
    let findings = findings.as_array().unwrap().iter().filter(bad);
    findings
        .map(|finding| {
            format!(
                "{} {} {}",
                finding["what"], finding["detail"], finding["hint"]
            )
        })
        .collect()
}

/// Says all of this, in one finding.
#[track_caller]
fn says(finding: &str, parts: &[&str]) {
    for part in parts {
        assert!(finding.contains(part), "{part} is not in {finding}");
    }
    assert!(!finding.contains("/tmp/"), "{finding}");
    assert!(!finding.contains("karve doctor"), "{finding}");
}

#[test]
fn one_signal_ends_a_doctor_whose_kernel_never_comes_back() {
    let lab = made("c");
    let kernel = "void sgemm(void) { for (;;) __asm__ volatile(\"\"); }\n";
    lab.write("kernel.c", kernel);
    lab.commit();
    let running = lab.start(&["doctor"]);
    wait_until("the kernel is built", || running.shows("ok      build"));
    running.signal("TERM");
    let said: Said = running.wait().ends(130);
    said.complains(&["error: stopped as you asked"]);
}

#[test]
fn a_reference_that_cannot_be_loaded_is_one_failed_check() {
    let lab = made("c");
    lab.replace("karve.toml", "\"sgemm_reference\"", "\"sgemm_refrence\"");
    let findings = doctor(&lab);
    assert_eq!(findings.len(), 1, "{findings:?}");
    let mend = "contract.reference.library and .entry in karve.toml";
    says(
        &findings[0],
        &["test", "sgemm_refrence", "build/reference.so", mend],
    );
}

#[test]
fn a_reference_that_is_not_made_is_named_with_its_key() {
    let lab = made("c");
    lab.replace(
        "karve.toml",
        "library = \"build/reference.so\"",
        "library = \"build/ref.so\"",
    );
    let findings = doctor(&lab);
    assert_eq!(findings.len(), 1, "{findings:?}");
    says(
        &findings[0],
        &["build/ref.so", "contract.reference.library"],
    );
}

#[test]
fn nothing_passes_where_no_file_is_granted() {
    let lab = made("c");
    lab.replace(
        "karve.toml",
        "granted = [\"kernel.c\"]",
        "granted = [\"kernl.c\"]",
    );
    let findings = doctor(&lab);
    says(
        &findings[0],
        &["granted", "kernl.c", "sources.granted in karve.toml"],
    );
    let said = lab.karve(&["check"]).ends(2);
    said.complains(&[
        "no committed file matches sources.granted (kernl.c)",
        "hint: ",
    ]);
}

#[test]
fn a_reference_that_is_not_there_is_named_with_its_key() {
    let mut python = Command::new("/usr/bin/python3");
    let output = python.args(["-c", "import numpy"]).output();
    if !output.is_ok_and(|output| output.status.success()) {
        println!("skipped: /usr/bin/python3 has no NumPy");
        return;
    }
    let lab = made("python-numpy");
    let python = "interpreter = \"/usr/bin/python3\"\npython = \"kernel.py\"";
    lab.replace("karve.toml", "python = \"kernel.py\"", python);
    lab.git(&["rm", "-q", "reference.py"]);
    let hint =
        "hint: write and commit reference.py, or mend contract.reference.python in karve.toml";
    for command in [&["check"][..], &["run", "--yes"]] {
        lab.commit();
        let said = lab.karve(command).ends(2);
        said.complains(&["error: there is no reference reference.py", hint]);
    }
}
