//! `karve profile` on files of real profilers, and on a project with the tools that are there.

use crate::e2e::lab::{Lab, source};
use std::fs;

fn file(name: &str) -> String {
    let path = source("testdata/profiles").join(name);
    path.to_string_lossy().into_owned()
}

#[test]
fn the_four_kernels_of_a_real_profile_are_explained_and_each_gets_an_entry() {
    let lab = Lab::empty();
    let found = lab.karve(&["profile", &file("ncu_details.csv"), "--json"]).ends(0).json();
    let kernels = found["kernels"].as_array().unwrap();
    let of = |name: &str| {
        let is = |k: &&serde_json::Value| k["kernel"]["name"].as_str().unwrap().contains(name);
        kernels.iter().find(is).unwrap()
    };
    for (name, cause, entry) in [
        ("sgemm_naive", "registers", "register-tiling"),
        ("sgemm_tiled", "registers", "register-tiling"),
        ("copyk", "fewer bytes", "fuse-passes"),
        ("strided", "neighboring", "coalesced-access"),
    ] {
        let kernel = of(name);
        assert_eq!(kernel["diagnosis"]["bottleneck"], "memory", "{name}");
        let root = kernel["diagnosis"]["root_cause"].as_str().unwrap();
        assert!(root.contains(cause), "{name}: {root}");
        let entries = kernel["entries"].as_array().unwrap();
        let ids: Vec<&str> = entries.iter().map(|e| e["id"].as_str().unwrap()).collect();
        assert!(ids.contains(&entry), "{name}: {ids:?}");
        let tries = kernel["diagnosis"]["opportunities"].as_array().unwrap();
        let reported = tries.iter().any(|t| t["entry"] == entry);
        assert!(reported, "{name}: {tries:?}");
    }
    let naive = of("sgemm_naive");
    let counter = &naive["kernel"]["counters"]["compute_pct"];
    assert_eq!(counter["value"], 64.84);
    assert!(counter["source"]["quote"].as_str().unwrap().contains("64.84"));
}

#[test]
fn rules_and_forms_of_others_are_told_by_name() {
    let lab = Lab::empty();
    let ncu = file("ncu_details.csv");
    lab.karve(&["profile", &ncu, "--rules", "hyper-mla", "--form", "hyper-mla"]).ends(0).shows(&[
        "## Profile:",
        "| Stage | Duration (us) | TC% | DRAM% | Occ% | Bottleneck | Key Issue |",
        "### Bottleneck: ",
        "### Top 3 Opportunities",
        "1. coalesce global accesses — est. 78% gain — trigger: wasted_sectors_pct=77.78",
    ]);
    lab.karve(&["profile", &ncu, "--form", "trtllm"]).ends(0).shows(&[
        "## Summary",
        "## Metrics",
        "## Findings",
        "1. [High] coalesce",
    ]);
    lab.karve(&["profile", &ncu, "--form", "primus"]).ends(0).shows(&["bottleneck_class: memory"]);
    lab.karve(&["profile", &ncu, "--rules", "nobody"]).ends(2).complains(&["hyper-mla"]);
}

/// Every sample that `karve profile` reads from a file.
const SAMPLES: [&str; 8] = [
    "ncu_details.csv",
    "ncu_raw.csv",
    "ptxas.txt",
    "perf.csv",
    "cachegrind.out",
    "callgrind.out",
    "rocprofv3.csv",
    "torch_trace.json",
];

#[test]
fn reports_of_the_contract_are_written_and_checked_in_both_variants() {
    let lab = Lab::empty();
    for (form, place) in [
        ("hyper-mla", "for       b=32, s=1 (after the title)"),
        ("hyper-mla-table", "for       b=32, s=1 (in a table)"),
    ] {
        for name in SAMPLES {
            let args = ["profile", &file(name), "--form", form, "--case", "b=32,s=1"];
            let said = lab.karve(&args).ends(0);
            lab.write("REPORT.md", &said.stdout);
            lab.karve(&["profile", "--check", "REPORT.md"]).ends(0).shows(&[
                "valid     ",
                place,
                "stage     ",
                "limit     ",
                "cause     ",
            ]);
        }
    }
    let read = lab.karve(&["profile", "--check", "REPORT.md", "--json"]);
    let read = read.ends(0).json();
    assert_eq!(read["valid"], true);
    assert_eq!(read["report"]["configuration"][0][1], "32");
}

#[test]
fn every_fault_of_a_report_is_listed() {
    let lab = Lab::empty();
    let ncu = file("ncu_details.csv");
    let said = lab.karve(&["profile", &ncu, "--form", "hyper-mla"]).ends(0);
    let broken = said.stdout.replace("-bound", "-ish").replace("est. ", "");
    lab.write("REPORT.md", &broken);
    lab.karve(&["profile", "--check", "REPORT.md"])
        .ends(2)
        .shows(&["error     line ", "is not one of Memory, Compute, Latency", "X% gain"])
        .complains(&["does not follow the profiler report format", "docs/profile.md"]);
    let said = lab.karve(&["profile", "--check", "REPORT.md", "--json"]);
    let said = said.ends(2).json();
    assert_eq!(said["valid"], false);
    assert!(said["faults"].as_array().unwrap().len() >= 3, "{said}");
    lab.karve(&["profile", "--check", "nowhere.md"]).complains(&["cannot read nowhere.md"]);
    let above = said_again(&lab, &ncu).replace("| 57.93 |", "| 105.1 |");
    lab.write("REPORT.md", &above);
    lab.karve(&["profile", "--check", "REPORT.md"]).ends(2).shows(&["error     line 6", "105.1"]);
}

fn said_again(lab: &Lab, file: &str) -> String {
    let args = ["profile", file, "--form", "hyper-mla"];
    lab.karve(&args).ends(0).stdout
}

#[test]
fn two_profiles_are_compared_kernel_by_kernel() {
    let lab = Lab::empty();
    let text = fs::read_to_string(file("ncu_details.csv")).unwrap();
    // The same run, with the longest kernel twice as fast.
    let faster = text.replace("\"6,548,672\"", "\"3,274,336\"");
    lab.write("after.csv", &faster);
    let before = file("ncu_details.csv");
    let compared = ["profile", "after.csv", "--against", &before];
    let said = lab.karve(&[&compared[..], &["--json"]].concat()).ends(0);
    let said = said.json();
    let time = |kernel: &serde_json::Value| {
        let all = kernel["against"]["counters"].as_array().unwrap();
        let mut all = all.iter();
        all.find(|c| c["counter"] == "duration_us").unwrap().clone()
    };
    assert_eq!(said["against"], before);
    let kernels = said["kernels"].as_array().unwrap();
    let strided =
        kernels.iter().find(|k| k["kernel"]["name"].as_str().unwrap().contains("strided"));
    let strided = time(strided.unwrap());
    assert_eq!(strided["change_pct"], -50.0, "{strided}");
    assert_eq!(strided["is_better"], true);
    for kernel in kernels {
        assert_eq!(kernel["against"]["kernel"], kernel["kernel"]["name"]);
    }
    lab.karve(&compared).ends(0).shows(&[
        "against   ",
        "moved     duration_us: ",
        "(-50.0%), better",
        "unchanged ",
    ]);
    for form in ["hyper-mla", "hyper-mla-table"] {
        let said = lab.karve(&[&compared[..], &["--form", form]].concat());
        lab.write("REPORT.md", &said.ends(0).stdout);
        lab.karve(&["profile", "--check", "REPORT.md"]).ends(0).shows(&["moved     duration_us: "]);
    }
    // Figures of different tools are not compared.
    lab.karve(&["profile", "after.csv", "--against", &file("perf.csv")])
        .ends(0)
        .shows(&["nothing to compare"]);
}

#[test]
fn a_profile_of_a_project_tells_how_near_it_is_to_the_ceiling_and_what_moved() {
    let lab = Lab::new("gains");
    let karve = |args: &[&str]| {
        let mut command = lab.command(args);
        command.env("XDG_CACHE_HOME", lab.beside("cache"));
        crate::e2e::lab::Said::of(&command.output().unwrap())
    };
    lab.replace(
        "karve.toml",
        "unit = \"us\"",
        "unit = \"us\"\nwork = \"1000*n\"\nbytes = \"100*n\"",
    );
    lab.commit();
    let unmeasured = karve(&["profile"]);
    let reported = format!("{}{}", unmeasured.stdout, unmeasured.stderr);
    assert!(reported.contains("with \"karve roofline\""), "{reported}");
    karve(&["roofline"]).ends(0);
    let found = karve(&["profile", "--json"]).ends(0).json();
    let counters = &found["kernels"][0]["kernel"]["counters"];
    assert_eq!(counters["intensity"]["value"], 10.0);
    for name in ["ridge", "ceiling_pct", "duration_us"] {
        assert!(counters[name]["value"].as_f64().unwrap() > 0.0, "{counters}");
    }
    let notes = found["notes"].to_string();
    assert!(notes.contains("one core of this host"), "{notes}");
    // Half the time is twice as near.
    lab.replace("kernel.sh", "TIME=100", "TIME=50");
    karve(&["profile", "--against", "HEAD"]).ends(0).shows(&[
        "profile   the worktree, n=1",
        "against   HEAD, n=1",
        "once      ceiling_pct: ",
        "(+100.0%), only one reading each: not comparable",
    ]);
}

#[test]
fn several_outputs_are_taken_together_and_garbage_is_refused() {
    let lab = Lab::empty();
    for name in ["perf.csv", "cachegrind.out", "callgrind.out", "rocprofv3.csv", "torch_trace.json"]
    {
        lab.karve(&["profile", &file(name)]).ends(0).shows(&["kernel    "]);
    }
    // The same output twice says nothing more.
    let ncu = file("ncu_details.csv");
    let once = lab.karve(&["profile", &ncu, "--json"]).ends(0).json();
    let twice = lab.karve(&["profile", &ncu, &ncu, "--json"]).ends(0).json();
    for (once, twice) in [0, 1].map(|at| (&once["kernels"][at], &twice["kernels"][at])) {
        let remarks = |kernel: &serde_json::Value| {
            let all = kernel["kernel"]["remarks"].as_array();
            all.map_or(0, Vec::len)
        };
        assert_eq!(remarks(once), remarks(twice));
    }
    fs::create_dir(lab.path("traces")).unwrap();
    lab.karve(&["profile", &ncu, "traces"]).ends(2).complains(&["\"traces\" is not a file"]);
    fs::write(lab.path("garbage.txt"), "nothing of a profiler\n").unwrap();
    lab.karve(&["profile", "garbage.txt"])
        .ends(2)
        .complains(&["not the output of a profiler", "--tool"]);
    let text = fs::read_to_string(file("ncu_details.csv")).unwrap();
    let odd = text.replace("\"64.84\"", "\"64,84\"");
    fs::write(lab.path("odd.csv"), odd).unwrap();
    let said = lab.karve(&["profile", "odd.csv", "--json"]);
    assert!(!said.stdout.contains("6484"), "a localized number became another one");
}

#[test]
fn a_project_is_profiled_with_the_tools_that_are_there() {
    let lab = Lab::new("gains");
    let said = lab.karve(&["profile"]);
    if said.code == 0 {
        said.shows(&["profile   the worktree, n=1", "kernel    "]);
    } else {
        println!("skipped: neither perf nor valgrind works here");
        said.ends(3).complains(&["no profiler produced a profile"]);
    }
    lab.karve(&["profile", "--case", "n=9"]).ends(2).complains(&["no visible case"]);
    lab.karve(&["profile", "no-such-revision"]).ends(2).complains(&["no-such-revision"]);
}

/// A kernel that calls a function of a library, and a benchmark of it that is started by make.
const SOFTMAX: &str = "#include <math.h>
void softmax(const float *x, float *y, int n) {
    float sum = 0.0f;
    for (int i = 0; i < n; i++) { y[i] = expf(x[i]); sum += y[i]; }
    for (int i = 0; i < n; i++) { y[i] /= sum; }
}
";
const BENCH: &str = "#include <stdio.h>
void softmax(const float *x, float *y, int n);
int main(void) {
    static float x[1000], y[1000];
    for (int i = 0; i < 100; i++) { softmax(x, y, 1000); }
    printf(\"METRIC time_us=100 case=n=1 check=PASS first=%d\\n\", (int)(y[0] * 1e6f));
}
";

#[test]
fn a_benchmark_that_make_starts_is_profiled_and_not_make() {
    let lab = Lab::new("gains");
    lab.write("kernel.c", SOFTMAX);
    lab.write("bench.c", BENCH);
    lab.write("Makefile", "bench:\n\t@./prog\n");
    let build = "build = \"cc -O2 -fno-inline -o prog bench.c kernel.c -lm\"";
    lab.replace("karve.toml", "build = \"sh build.sh\"", build);
    lab.replace("karve.toml", "bench = \"sh bench.sh {case}\"", "bench = \"make -s bench\"");
    lab.replace("karve.toml", "[\"kernel.sh\"]", "[\"kernel.c\"]");
    lab.replace("karve.toml", "[\"build/kernel.sh\"]", "[\"prog\"]");
    lab.replace("karve.toml", "backend = \"sh\"", "backend = \"c\"");
    lab.commit();
    let said = lab.karve(&["profile", "--tool", "callgrind", "--json"]);
    if said.code != 0 {
        println!("skipped: valgrind, make or cc does not work here: {}", said.stderr);
        return;
    }
    let found = said.json();
    let first = &found["kernels"][0]["kernel"];
    assert_eq!(first["name"], "softmax", "{found}");
    assert_eq!(first["editable"], true);
    // With what it calls, that is nearly all there is.
    let share = first["counters"]["inst_share_pct"]["value"].as_f64().unwrap();
    assert!(share > 50.0, "{first}");
    let notes = found["notes"].to_string();
    assert!(notes.contains("this one is reported: ./prog"), "{notes}");
    // It is compiled without vectors, so that what helps against that is told.
    let vectors = &first["counters"]["vector_pct"];
    if vectors["value"].is_null() {
        println!("skipped: objdump does not work here: {notes}");
        assert!(notes.contains("vector_pct was not read"), "{notes}");
    } else {
        assert!(vectors["value"].as_f64().unwrap() < 20.0, "{vectors}");
        assert_eq!(vectors["source"]["tool"], "callgrind+objdump");
        let entries = found["kernels"][0]["entries"].to_string();
        assert!(entries.contains("vector_pct"), "{entries}");
    }
    // The same tool on the same code finds the same.
    let said = lab.karve(&["profile", "--tool", "callgrind", "--against", "HEAD"]);
    let said = said.ends(0).shows(&["unchanged "]);
    assert!(!said.stdout.contains("moved     "), "{}", said.stdout);
}

/// A program that leaves its results where criterion does, and prints something else.
const CRITERION: &str = "#include <stdio.h>
#include <stdlib.h>
void softmax(const float *x, float *y, int n);
static void put(const char *home, const char *name, const char *text) {
    char path[4096];
    snprintf(path, sizeof path, \"%s/n/new/%s\", home, name);
    FILE *file = fopen(path, \"w\");
    if (!file) exit(9);
    fputs(text, file);
    fclose(file);
}
int main(void) {
    static float x[1000], y[1000];
    for (int i = 0; i < 100; i++) { softmax(x, y, 1000); }
    const char *home = getenv(\"CRITERION_HOME\");
    char command[4096];
    snprintf(command, sizeof command, \"mkdir -p '%s/n/new'\", home);
    if (system(command)) exit(8);
    put(home, \"benchmark.json\", \"{\\\"full_id\\\": \\\"n\\\"}\");
    put(home, \"estimates.json\", \"{\\\"mean\\\": {\\\"point_estimate\\\": 9e4}, \"
        \"\\\"median\\\": {\\\"point_estimate\\\": 9e4}}\");
    printf(\"n  time: [1 us 2 us 3 us]\\n\");
}
";

#[test]
fn a_benchmark_whose_results_are_in_criterions_files_is_profiled() {
    let lab = Lab::new("noop");
    lab.write("kernel.c", SOFTMAX);
    lab.write("main.c", CRITERION);
    let toml = lab.read("karve.toml");
    let toml = toml.replace(
        "format = \"metric\"\ncase_column = \"case\"\ncheck_column = \"check\"",
        "format = \"criterion\"",
    );
    let toml =
        toml.replace("name = \"time_us\"", "name = \"latency\"").replace("\"sum\"]", "\"n\"]");
    lab.write("karve.toml", &toml);
    lab.commit();
    let said = lab.karve(&["profile", "--tool", "callgrind", "--json"]);
    if said.stderr.contains("install valgrind") {
        println!("skipped: valgrind does not work here: {}", said.stderr);
        return;
    }
    let found = said.ends(0).json();
    assert_eq!(found["kernels"][0]["kernel"]["name"], "softmax", "{found}");
}

#[test]
fn a_kernel_under_a_contract_is_profiled_by_playing_one_case() {
    for (template, kernel) in [("c", "sgemm"), ("rust", "sgemm"), ("python-numpy", "")] {
        let lab = Lab::empty();
        lab.karve(&["new", "--template", template, "."]).ends(0);
        // As small as shows the kernel first: callgrind takes fifty times as long as a call.
        let config = lab.read("karve.toml").replace("M=192,N=192,K=192", "M=96,N=96,K=96");
        lab.write("karve.toml", &config.replace("M=512,N=256", "M=64,N=64"));
        lab.commit();
        let said = lab.karve(&["profile", "--tool", "callgrind", "--json"]);
        if said.code != 0 {
            println!("skipped: {template}: {}", said.stderr);
            assert!(said.stderr.contains("hint: "), "{}", said.stderr);
            continue;
        }
        let found = said.json();
        let first = &found["kernels"][0]["kernel"];
        assert!(first["counters"]["instructions"]["value"].as_f64().unwrap() > 1e6, "{found}");
        if !kernel.is_empty() {
            assert!(first["name"].as_str().unwrap().contains(kernel), "{first}");
            assert_eq!(first["editable"], true, "{first}");
        }
        assert_eq!(lab.git(&["status", "--short"]), "", "{template}");
    }
}

#[test]
fn a_profiler_that_was_asked_for_and_is_not_there_is_an_error() {
    let lab = Lab::new("gains");
    lab.karve(&["profile", "--tool", "rocprofv3"]).ends(3).complains(&[
        "rocprofv3 produced no profile",
        "not installed",
        "install rocprofv3",
    ]);
}

#[test]
fn a_compiler_s_report_joins_the_kernels_of_a_profiler_and_files_are_named() {
    let lab = Lab::empty();
    let files = [&file("ncu_details.csv"), &file("ptxas.txt")];
    let said = lab.karve(&["profile", files[0], files[1], "--json"]).ends(0);
    let found = said.json();
    let kernels = found["kernels"].as_array().unwrap();
    assert_eq!(kernels.len(), 4, "{found}");
    for kernel in kernels {
        let counters = &kernel["kernel"]["counters"];
        let stack = &counters["stack_bytes"]["source"];
        assert_eq!(stack["tool"], "ptxas", "{counters}");
        assert_eq!(stack["file"], "ptxas.txt");
        assert_eq!(counters["compute_pct"]["source"]["file"], "ncu_details.csv");
    }
}

/// Prints what perf would, of a kernel whose misses go with its time.
const PERF: &str = "t=$(sed -n 's/^TIME=//p' kernel.sh)
printf '# started on Sun Nov 15 22:57:09 2026\\n\\n'
echo \"1000000,,instructions,276829,100.00,,\"
echo \"$((t * 10000)),,cycles,276829,100.00,,\"
echo \"100000,,L1-dcache-loads,276829,100.00,,\"
echo \"$((t * 200)),,L1-dcache-load-misses,276829,100.00,,\"
";

/// An entry of the project that fires on those misses, in words of what there is to try.
const ROWS: &str = "---
id: wombat-rows
title: Block loops so that data stays in the first-level cache
scope: {device: [cpu]}
triggers: ['l1_miss_pct > 1']
date: 2026-11
---
# Block loops so that data stays in the first-level cache

## Mechanism

Block the loops, so that data is used again while it is in the cache.
";

#[test]
fn a_hypothesis_is_told_whether_the_counters_moved_that_it_named() {
    let lab = Lab::new("gains");
    fs::remove_dir_all(lab.path("script")).unwrap();
    lab.replace("karve.toml", "artifacts = ", "profile = \"sh profile.sh\"\nartifacts = ");
    fs::write(lab.path("profile.sh"), PERF).unwrap();
    fs::create_dir_all(lab.path("knowledge")).unwrap();
    fs::write(lab.path("knowledge/wombat-rows.md"), ROWS).unwrap();
    let claim = |title: &str| {
        format!(
            "echo '{{\"title\": \"{title}\", \"mechanism\": \"fewer misses\", \"expected_ratio\": \
             2, \"counters\": [\"l1_miss_pct down\", \"waves up\"]}}'"
        )
    };
    lab.script("1", "propose", &claim("halve the work"));
    lab.script("1", "implement", "edit s/TIME=.*/TIME=50/\necho done");
    lab.script("2", "propose", &claim("spend twice as much"));
    lab.script("2", "implement", "edit s/TIME=.*/TIME=90/\necho done");
    lab.commit().karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts()[0], "keep");
    let learned = lab.events("learned");
    let came = |round: usize| {
        let all = learned[round]["lesson"]["predicted"].as_array().unwrap();
        let came = all.iter().map(|f| f["result"].as_str().unwrap().to_owned());
        came.collect::<Vec<_>>()
    };
    assert_eq!(came(0), ["true", "unread"]);
    assert_eq!(came(1), ["opposite", "unread"]);
    // Nothing is profiled twice: the kept candidate was looked at when its round was over.
    assert_eq!(lab.events("profiled").len(), 2);
    // What there is to try names the entry that tells more of it.
    let seen = &lab.events("profiled")[0]["profile"]["diagnosis"]["opportunities"];
    let tries = seen.as_array().unwrap().iter();
    let named = tries.filter(|of| of["entry"] == "wombat-rows");
    assert!(named.count() > 0, "{seen}");
    let report = lab.read(".karve/toy/REPORT.md");
    for part in [
        "## Profile",
        "; see `wombat-rows`",
        "Round 1 predicted: l1_miss_pct",
        "moved as predicted",
        "Round 2 predicted: l1_miss_pct",
        "moved the other way",
        "## Knowledge",
        "new finding",
    ] {
        assert!(report.contains(part), "{part}: {report}");
    }
}

#[test]
fn a_campaign_runs_the_profilers_that_are_there() {
    let lab = Lab::new("gains");
    lab.replace("karve.toml", "artifacts = ", "profile = \"auto\"\nartifacts = ");
    lab.commit().karve(&["run", "--yes", "--rounds", "1"]).ends(0);
    let profiled = &lab.events("profiled")[0]["profile"];
    match profiled["artifact"].as_str() {
        Some(artifact) => {
            let raw = fs::read(lab.campaign("artifacts").join(artifact)).unwrap();
            assert!(!raw.is_empty());
            let digest = profiled["digest"].as_str().unwrap();
            assert!(digest.contains("kernel    "), "{digest}");
        }
        None => {
            println!("skipped: neither perf nor valgrind works here");
            assert!(!profiled["skipped"].as_str().unwrap().is_empty());
        }
    }
}

/// The files that a mode left, without the directory of its time; each with its text.
fn tree(lab: &Lab, mode: &str) -> Vec<(String, String)> {
    let kernel = lab.path("out/profiles").join(mode).join("toy/n=1");
    let times: Vec<_> = fs::read_dir(&kernel).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(times.len(), 1, "{times:?}");
    let mut files = Vec::new();
    let mut left = times.clone();
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let name = path.strip_prefix(&times[0]).unwrap().display().to_string();
        files.push((name, fs::read_to_string(&path).unwrap()));
    }
    files.sort();
    files
}

fn names(files: &[(String, String)]) -> Vec<&str> {
    files.iter().map(|(name, _)| name.as_str()).collect()
}

#[test]
fn each_mode_of_hyper_mla_leaves_its_tree() {
    let lab = Lab::new("gains");
    let ncu = format!(
        "#!/bin/sh\nwhile [ \"$1\" != --log-file ]; do shift; done\ncp {} \"$2\"\n\
         shift 2\nexec \"$@\"\n",
        file("ncu_raw.csv")
    );
    lab.write("bin/ncu", &ncu);
    let made = std::process::Command::new("chmod").arg("755").arg(lab.path("bin/ncu")).status();
    assert!(made.unwrap().success());
    lab.unconfined();
    let path = format!("{}:{}", lab.path("bin").display(), std::env::var("PATH").unwrap());
    lab.replace(
        "karve.toml",
        "[output]\n",
        &format!("env = {{ PATH = \"{path}\" }}\n\n[output]\n"),
    );
    lab.replace("karve.toml", "device = \"cpu\"", "device = \"H200\"");
    lab.write(
        "kernel.sh",
        &format!("# karve: knob TILE in 4,8\nTILE=8\n{}", lab.read("kernel.sh")),
    );
    lab.write(".karve/tune/a.jsonl", "{\"setting\": {\"TILE\": \"4\"}, \"value\": 3.5}\n");
    lab.commit();

    lab.karve(&["profile", "--mode", "disabled"]).ends(0).shows(&["the kernel is right on n=1"]);
    assert!(!lab.path("out").exists());

    lab.replace("kernel.sh", "TIME=100", "TIME=80");
    lab.karve(&["profile", "--mode", "event", "--against", "HEAD"]).ends(0).shows(&["duration_us"]);
    lab.commit();
    let event = tree(&lab, "event");
    let common = ["compiled/toy/assembly.txt", "params.json", "report.md"];
    let tiling = ["tiling/kernel.json", "tiling/kernel/autotuning.json"];
    assert_eq!(names(&event), [&common[..], &tiling[..]].concat());
    let json = |at: usize| -> serde_json::Value { serde_json::from_str(&event[at].1).unwrap() };
    assert_eq!((&json(1)["config"]["n"], &json(1)["mode"]), (&"1".into(), &"event".into()));
    assert_eq!((&json(1)["kernel"], &json(1)["against"]), (&"toy".into(), &"HEAD, n=1".into()));
    assert!(event[2].1.starts_with("## Profile: toy worktree | n=1\n"), "{}", event[2].1);
    let moved = "| duration_us | 100 | 80 | -20.0% |";
    assert!(event[2].1.contains(moved), "{}", event[2].1);
    assert_eq!((&json(3)["TILE"], &json(4)[0]["value"]), (&"8".into(), &3.5.into()));

    lab.karve(&["profile", "--mode", "ncu", "--rules", "hyper-mla"]).ends(0);
    let deep = tree(&lab, "ncu");
    let more = ["raw/ncu", "report-verbose.md", "report.md", "source/kernel.sh"];
    assert_eq!(names(&deep), [&common[..2], &more[..], &tiling[..]].concat());
    assert!(deep[2].1 == fs::read_to_string(file("ncu_raw.csv")).unwrap());
    assert!(deep[4].1.contains("| sgemm_naive") && deep[3].1.contains("kernel    sgemm_naive"));
    // The reports are in the form that karve itself checks.
    let at = fs::read_dir(lab.path("out/profiles/ncu/toy/n=1")).unwrap().next().unwrap().unwrap();
    let report = at.path().join("report.md").display().to_string();
    lab.karve(&["profile", "--check", &report]).ends(0);

    lab.karve(&["profile", "--mode", "nsys"]).ends(3).complains(&["nsys produced no profile"]);
    let said = lab.karve(&["profile", "--mode", "event", &file("ncu_raw.csv")]);
    said.ends(2).complains(&["--mode profiles a version, not files"]);
    assert_eq!(lab.git(&["status", "--short"]), "");
}

/// A linked program has far more code than is read of it.
#[test]
fn a_function_is_found_in_a_program_of_thousands() {
    let lab = Lab::new("gains");
    lab.write(
        "gen.sh",
        "i=0; while [ $i -lt 3000 ]; do echo \"double g$i(double x) { for (int i = 0; i < 9; i++) \
         x = x * x + $i; return x > $i ? x / 3 : x - 7; }\"; i=$((i+1)); done\n",
    );
    lab.write(
        "kernel.c",
        "double product(double x) { for (int i = 0; i < 99; i++) x *= x; return x; }\n\
         int main(void) { return product(1) > 2; }\n",
    );
    // Only the kernel is optimized: that of the others takes the compiler far longer.
    lab.write("build.sh", "sh gen.sh > all.c && cc -O1 -c kernel.c && cc -o prog all.c kernel.o\n");
    let text = lab.read("karve.toml");
    let line = text.lines().find(|line| line.starts_with("artifacts")).unwrap().to_owned();
    lab.replace("karve.toml", &line, "artifacts = [\"prog\"]");
    let line = text.lines().find(|line| line.starts_with("editable")).unwrap().to_owned();
    lab.replace("karve.toml", &line, "editable = [\"kernel.c\"]");
    lab.commit();
    let said = lab.karve(&["explain"]).ends(0);
    said.shows(&["product in the worktree: ", "1 innermost loop, marked"]);
    lab.karve(&["explain", "--function", "g2999"]).ends(0).shows(&["g2999 in the worktree"]);
    let said = lab.karve(&["explain", "--function", "nowhere"]).ends(2);
    said.complains(&["is named like \"nowhere\"", "functions there: "]);
}
