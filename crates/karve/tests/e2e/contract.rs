//! What a user gets wrong in a contract, and what karve says of it.

use crate::e2e::lab::{Lab, Said, wait_until};
use std::process::Command;

/// Makes a project of a template.
fn made(template: &str) -> Lab {
    let lab = Lab::empty();
    lab.karve(&["new", "--template", template, "."]).ends(0);
    lab.configure("[device]\npressure_max = 100\n");
    // A matrix that a call takes little time for; e2e/new.rs has the templates as they are.
    let config = lab.read("karve.toml");
    lab.write("karve.toml", &config.replace("M=192,N=192,K=192", "M=48,N=48,K=48"));
    lab
}

/// What a doctor says of a project that has something to fix, but for what is fine.
fn doctor(lab: &Lab) -> Vec<String> {
    lab.commit();
    let said = lab.karve(&["doctor", "--json"]).ends(1);
    let findings = said.json();
    let bad = |finding: &&serde_json::Value| finding["level"] == "failed";
    let findings = findings.as_array().unwrap().iter().filter(bad);
    findings
        .map(|finding| format!("{} {} {}", finding["what"], finding["detail"], finding["hint"]))
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
    said.complains(&["error: stopped by the user"]);
}

#[test]
fn a_change_that_starts_threads_is_refused_where_one_is_allowed() {
    let lab = made("c");
    lab.commit();
    let kernel = lab.read("kernel.c");
    let starts = format!("{kernel}#pragma omp parallel for\nvoid more(void) {{}}\n");
    lab.write("kernel.c", &starts);
    let why = ["forbidden kernel.c", "the contract allows one thread (contract.threads)"];
    lab.karve(&["audit"]).ends(1).shows(&why);
    lab.write("kernel.c", &kernel);
    lab.replace("karve.toml", "[contract]\n", "[contract]\nthreads = 2\n").commit();
    lab.write("kernel.c", &starts);
    lab.karve(&["audit"]).ends(0).shows(&["advice    kernel.c"]);
}

#[test]
fn a_kernel_sees_the_variables_of_the_list_and_no_others() {
    let lab = made("c");
    let asks = "  extern char *getenv(const char *);\n  \
                if (getenv(\"A_TOKEN_OF_THE_USER\") || !getenv(\"PATH\")) c[0] += 1;\n}\n";
    let kernel = lab.read("kernel.c");
    let (body, _) = kernel.rsplit_once('}').unwrap();
    lab.write("kernel.c", &format!("{body}{asks}"));
    lab.commit();
    let check = |lab: &Lab| {
        let mut command = lab.command(&["check"]);
        command.env("A_TOKEN_OF_THE_USER", "1").output().unwrap()
    };
    let said = check(&lab);
    assert!(said.status.success(), "{said:?}");
    lab.configure("[sandbox]\nenv = [\"A_TOKEN_OF_THE_USER\"]\n").commit();
    assert_eq!(check(&lab).status.code(), Some(1));
}

#[test]
fn a_reference_that_cannot_be_loaded_is_one_failed_check() {
    let lab = made("c");
    lab.replace("karve.toml", "\"sgemm_reference\"", "\"sgemm_refrence\"");
    let findings = doctor(&lab);
    assert_eq!(findings.len(), 1, "{findings:?}");
    let repair = "contract.reference.library and .entry in karve.toml";
    says(&findings[0], &["test", "sgemm_refrence", "build/reference.so", repair]);
}

#[test]
fn a_reference_that_is_not_made_is_named_with_its_key() {
    let lab = made("c");
    lab.replace("karve.toml", "library = \"build/reference.so\"", "library = \"build/ref.so\"");
    let findings = doctor(&lab);
    assert_eq!(findings.len(), 1, "{findings:?}");
    says(&findings[0], &["build/ref.so", "contract.reference.library"]);
}

#[test]
fn nothing_passes_where_no_file_is_editable() {
    let lab = made("c");
    lab.replace("karve.toml", "editable = [\"kernel.c\"]", "editable = [\"kernl.c\"]");
    let findings = doctor(&lab);
    says(&findings[0], &["editable", "kernl.c", "sources.editable in karve.toml"]);
    let said = lab.karve(&["check"]).ends(2);
    said.complains(&["no committed file matches sources.editable (kernl.c)", "hint: "]);
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
        "hint: write and commit reference.py, or fix contract.reference.python in karve.toml";
    for command in [&["check"][..], &["run", "--yes"]] {
        lab.commit();
        let said = lab.karve(command).ends(2);
        said.complains(&["error: there is no reference reference.py", hint]);
    }
}

#[test]
fn several_realizations_are_examined_and_read_in_the_ring() {
    let lab = made("c");
    let kernel = lab.read("kernel.c").replace("// karve: knob", "//");
    lab.write("kernel.c", &kernel);
    let agent = "case $KARVE_TASK$KARVE_VARIANT in
propose*) echo '{\"title\": \"blocks\", \"mechanism\": \"reuse\", \"expected_ratio\": 2}' ;;
implement1) sed -i 's/+= x/-= x/' kernel.c ;;
implement2) sed -i 's/BLOCK 4/BLOCK 64/; s/COLUMNS 8/COLUMNS 256/' kernel.c ;;
implement3) sed -i 's/BLOCK 4/BLOCK 8/' kernel.c ;;
esac\n";
    lab.write("agent.sh", agent);
    let limits = "rounds = 1\nfinal_blocks = 4";
    lab.unprofiled().replace("karve.toml", "rounds = 8", limits).configure(
        "[agent]\nname = \"mine\"\n[agents.mine]\ncommand = \"sh agent.sh\"\n\
         [policy]\nbest_of = 3\n[policy.accept]\nalpha = 0.2\nguard_evidence = 2.0\n\
         blocks_min = 1\n[policy.controls]\nblocks = 8\n[campaign]\nname = \"toy\"\n",
    );
    lab.commit();
    let said = lab.karve(&["run", "--yes"]);
    assert!([0, 1].contains(&said.code), "{said:#?}");
    let chosen = &lab.events("chosen")[0];
    let gates: Vec<&str> =
        (0..3).filter_map(|at| chosen["tryouts"][at]["gate"]["gate"].as_str()).collect();
    assert_eq!(gates, ["wrong_result", "passed", "passed"], "{chosen:#}");
    for at in [1, 2] {
        let values = chosen["tryouts"][at]["values"].as_array().unwrap();
        assert_eq!(values.len(), 3, "{chosen:#}");
    }
    assert_ne!(chosen["first"], 0);
    assert_eq!(lab.events("settled").len(), 1);
    lab.karve(&["verify"]).ends(0);
}
