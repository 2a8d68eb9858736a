//! `karve profile` on files of real profilers, and on a project with the tools that are there.

use crate::lab::{Lab, source};
use std::fs;

fn file(name: &str) -> String {
    let path = source("testdata/profiles").join(name);
    path.to_string_lossy().into_owned()
}

#[test]
fn the_four_kernels_of_a_real_profile_are_explained_and_each_gets_an_entry() {
    let lab = Lab::empty();
    let found = lab
        .karve(&["profile", &file("ncu_details.csv"), "--json"])
        .ends(0)
        .json();
    let kernels = found["kernels"].as_array().unwrap();
    let of = |name: &str| {
        let is = |k: &&serde_json::Value| k["kernel"]["name"].as_str().unwrap().contains(name);
        kernels.iter().find(is).unwrap()
    };
    for (name, cause, entry) in [
        ("sgemm_naive", "registers", "register-tiling"),
        ("sgemm_tiled", "registers", "register-tiling"),
        ("copyk", "fewer bytes", "fuse-passes"),
        ("strided", "neighbouring", "coalesced-access"),
    ] {
        let kernel = of(name);
        assert_eq!(kernel["diagnosis"]["bottleneck"], "memory", "{name}");
        let root = kernel["diagnosis"]["root_cause"].as_str().unwrap();
        assert!(root.contains(cause), "{name}: {root}");
        let entries = kernel["entries"].as_array().unwrap();
        let ids: Vec<&str> = entries.iter().map(|e| e["id"].as_str().unwrap()).collect();
        assert!(ids.contains(&entry), "{name}: {ids:?}");
    }
    let naive = of("sgemm_naive");
    let counter = &naive["kernel"]["counters"]["compute_pct"];
    assert_eq!(counter["value"], 64.84);
    assert!(
        counter["source"]["quote"]
            .as_str()
            .unwrap()
            .contains("64.84")
    );
}

#[test]
fn rules_and_forms_of_others_are_told_by_name() {
    let lab = Lab::empty();
    let ncu = file("ncu_details.csv");
    lab.karve(&[
        "profile",
        &ncu,
        "--rules",
        "hyper-mla",
        "--form",
        "hyper-mla",
    ])
    .ends(0)
    .shows(&[
        "## Profile:",
        "| Stage | Duration (us) | TC% | DRAM% | Occ% | Bottleneck | Key Issue |",
        "### Bottleneck: ",
        "### Top 3 Opportunities",
        "1. coalesce global accesses — est. 78% gain — trigger: wasted_sectors_pct=77.78",
    ]);
    lab.karve(&["profile", &ncu, "--form", "coordinator"])
        .ends(0)
        .shows(&[
            "## Summary",
            "## Metrics",
            "## Findings",
            "1. [High] coalesce",
        ]);
    lab.karve(&["profile", &ncu, "--form", "primus"])
        .ends(0)
        .shows(&["bottleneck_class: memory"]);
    lab.karve(&["profile", &ncu, "--rules", "nobody"])
        .ends(2)
        .complains(&["hyper-mla"]);
}

#[test]
fn several_outputs_are_taken_together_and_garbage_is_refused() {
    let lab = Lab::empty();
    for name in [
        "perf.csv",
        "cachegrind.out",
        "callgrind.out",
        "rocprofv3.csv",
        "torch_trace.json",
    ] {
        lab.karve(&["profile", &file(name)])
            .ends(0)
            .shows(&["kernel    "]);
    }
    fs::write(lab.path("garbage.txt"), "nothing of a profiler\n").unwrap();
    lab.karve(&["profile", "garbage.txt"])
        .ends(2)
        .complains(&["no output of a profiler", "--tool"]);
    let text = fs::read_to_string(file("ncu_details.csv")).unwrap();
    let odd = text.replace("\"64.84\"", "\"64,84\"");
    fs::write(lab.path("odd.csv"), odd).unwrap();
    let said = lab.karve(&["profile", "odd.csv", "--json"]);
    assert!(
        !said.stdout.contains("6484"),
        "a localized number became another one"
    );
}

#[test]
fn a_project_is_profiled_with_the_tools_that_are_there() {
    let lab = Lab::new("gains");
    let said = lab.karve(&["profile"]);
    if said.code == 0 {
        said.shows(&["profile   the worktree, n=1", "kernel    "]);
    } else {
        println!("skipped: neither perf nor valgrind works here");
        said.ends(3).complains(&["no profiler gave a profile"]);
    }
    lab.karve(&["profile", "--case", "n=9"])
        .ends(2)
        .complains(&["no visible case"]);
    lab.karve(&["profile", "no-such-revision"])
        .ends(2)
        .complains(&["no-such-revision"]);
}
