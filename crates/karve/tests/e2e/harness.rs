//! The harness: mutation check, cases that do not fit, output formats, workspaces, presets.

use crate::e2e::forms::files_below;
use crate::e2e::lab::{Lab, wait_until};
use crate::e2e::tidy::is_tidy;
use std::fs;

#[test]
fn a_harness_that_ignores_the_kernel_is_refused_before_any_work() {
    let lab = Lab::new("gains");
    lab.write("test.sh", "true\n");
    lab.commit();
    let said = lab.karve(&["run", "--yes"]).ends(1);
    let parts = ["the tests do not exercise the editable kernel", "hint: look at commands.test"];
    said.complains(&parts);
    assert_eq!(lab.events("proposed").len(), 0);
    assert_eq!(lab.events("baseline_measured").len(), 0);
    assert_eq!(lab.events("mutation_checked")[0]["mutation_check_passed"], false);
    let said = lab.karve(&["doctor"]).ends(1);
    said.shows(&["FAILED  mutation", "the test missed"]).complains(&["1 check failed"]);
    is_tidy(&lab);
}

#[test]
fn a_kernel_that_fails_its_own_test_is_refused() {
    let lab = Lab::new("gains");
    lab.replace("kernel.sh", "2 * 3", "2 * 4").commit();
    let said = lab.karve(&["run", "--yes"]).ends(1);
    said.complains(&["the unchanged kernel does not pass its own test", "mismatch", "hint: "]);
    lab.karve(&["doctor"]).ends(1).shows(&["FAILED  test", "mismatch"]);
    assert_eq!(lab.events("proposed").len(), 0);
    is_tidy(&lab);
}

#[test]
fn a_healthy_project_passes_the_doctor_and_a_check() {
    let lab = Lab::new("gains");
    let said = lab.karve(&["doctor"]).ends(0);
    said.shows(&["ok      mutation", "ok      noise", "1 case and 1 hidden"]);
    lab.karve(&["check"]).ends(0).shows(&["100"]);
    assert!(!lab.path(".karve/toy").exists(), "neither starts a campaign");
    assert_eq!(lab.git(&["worktree", "list"]).lines().count(), 1);
    assert_eq!(lab.git(&["for-each-ref"]).lines().count(), 1);
}

#[test]
fn a_case_that_does_not_fit_is_halved_until_it_does() {
    let lab = Lab::new("gains");
    lab.replace("karve.toml", "list = [\"n=1\"]", "halve = \"n\"\nmatrix = { n = [4, 64] }");
    lab.replace("kernel.sh", "TIME=100", "TIME=100\nMEMORY=10").commit();
    lab.karve(&["run", "--yes", "--rounds", "1"]).ends(0);
    let halved = lab.events("baseline_measured")[0]["halved"].clone();
    assert_eq!(halved, serde_json::json!([{"case": 1, "params": {"n": "8"}}]));
    assert_eq!(lab.verdicts(), ["keep"]);
    is_tidy(&lab);
}

/// One kept round with another bench command and output format.
fn reads(bench: &str, output: &str, command: &str) -> Lab {
    let lab = Lab::new("gains");
    lab.write("bench.sh", &format!(". ./build/kernel.sh\n{bench}\n"));
    lab.replace("karve.toml", "sh bench.sh {case}", command);
    let format = "format = \"metric\"\ncase_column = \"case\"\ncheck_column = \"check\"";
    lab.replace("karve.toml", format, output);
    lab.replace("karve.toml", "list = [\"n=1\"]", "list = [\"n=1\", \"n=2\"]");
    lab.commit().karve(&["run", "--yes", "--rounds", "1"]).ends(0);
    assert_eq!(lab.verdicts(), ["keep"]);
    is_tidy(&lab);
    lab
}

#[test]
fn a_table_of_all_cases_is_read_at_once() {
    let bench = "echo 'warming up'; echo 'case,time_us,Check'\n\
        for n in 1 2 3; do echo \"n=$n,$((TIME * n / 10)),PASS\"; done";
    let csv = "format = \"csv\"\ncase_column = \"case\"\ncheck_column = \"Check\"";
    let bench = bench.replace("echo 'warming up'; ", "");
    let lab = reads(&bench, csv, "sh bench.sh");
    let pairs = lab.events("block_measured")[0]["block"]["pairs"].clone();
    assert_eq!(pairs[1]["parent"]["value"], 20.0);
}

#[test]
fn a_result_file_is_read_where_the_command_is_told_to_write_it() {
    let bench = "echo 'METRIC time_us=1 case=all'\n\
        printf '{\"case\": \"%s\", \"time_us\": %s}\\n' \"$2\" \"$TIME\" >\"$1\"";
    let output = "format = \"jsonl\"\ncase_column = \"case\"";
    let lab = reads(bench, output, "sh bench.sh {out} {case}");
    let pairs = lab.events("block_measured")[0]["block"]["pairs"].clone();
    assert_eq!(pairs[0]["parent"]["value"], 100.0);
}

#[test]
fn the_export_of_hyperfine_is_read() {
    let bench = "t=$TIME; cat >\"$1\" <<END\n\
        {\"results\": [{\"command\": \"kernel\", \"mean\": 0.000${t}, \"stddev\": 0.0,\n\
        \"median\": 0.000${t}, \"user\": 0.0, \"system\": 0.0, \"min\": 0.000${t},\n\
        \"max\": 0.000${t}, \"times\": [0.000${t}, 0.000${t}]}]}\nEND";
    let lab = Lab::new("gains");
    // Three digits, so that the text of the number is its value.
    lab.replace("kernel.sh", "TIME=100", "TIME=200");
    lab.replace("script/round-1/implement.sh", "TIME=50", "TIME=100");
    lab.write("bench.sh", &format!(". ./build/kernel.sh\n{bench}\n"));
    lab.replace("karve.toml", "sh bench.sh {case}", "sh bench.sh {out} {case}");
    let format = "format = \"metric\"\ncase_column = \"case\"\ncheck_column = \"check\"";
    lab.replace("karve.toml", format, "format = \"hyperfine\"");
    let metric = "name = \"time_us\"\nunit = \"us\"";
    lab.replace("karve.toml", metric, "name = \"median\"\nunit = \"s\"\nbetter = \"lower\"");
    lab.commit().karve(&["run", "--yes", "--rounds", "1"]).ends(0);
    assert_eq!(lab.verdicts(), ["keep"]);
}

#[test]
fn google_benchmark_is_read_and_latency_is_known_by_name() {
    let bench = "rows=\nfor n in 1 2 3; do\n\
        rows=\"$rows$comma{\\\"name\\\": \\\"BM_toy/n:$n/real_time\\\",\n\
        \\\"real_time\\\": $((TIME * n)),\n\
        \\\"cpu_time\\\": 1, \\\"time_unit\\\": \\\"ns\\\"}\"; comma=,\ndone\n\
        echo \"{\\\"context\\\": {}, \\\"benchmarks\\\": [$rows]}\"";
    // A gain of nanoseconds is too small for karve's own clock to contradict it.
    let lab = Lab::new("gains");
    lab.write("bench.sh", &format!(". ./build/kernel.sh\n{bench}\n"));
    lab.replace("karve.toml", "sh bench.sh {case}", "sh bench.sh");
    let format = "format = \"metric\"\ncase_column = \"case\"\ncheck_column = \"check\"";
    lab.replace("karve.toml", format, "format = \"google-benchmark\"");
    lab.replace("karve.toml", "name = \"time_us\"", "name = \"latency\"");
    lab.replace("karve.toml", "[\"n=1\"]", "[\"n=1\", \"n=2\"]");
    lab.commit().karve(&["run", "--yes", "--rounds", "1"]).ends(0);
    assert_eq!(lab.verdicts(), ["keep"], "{:?}", lab.events("settled"));
    let pairs = lab.events("block_measured")[0]["block"]["pairs"].clone();
    let value = pairs[1]["parent"]["value"].as_f64().unwrap();
    assert!((value - 0.2).abs() < 1e-6, "{value}");
}

#[test]
fn every_preset_runs_a_campaign() {
    let ends = [
        ("strict", 0, "nothing is left to try"),
        // It asks again for as long as the agent is of use.
        ("primus", 1, "the agent produced no candidate in 3 rounds in a row"),
        ("tilegym", 0, "no gain in 2 rounds in a row"),
        ("trtllm", 0, "nothing is left to try"),
        ("hyper-mla", 0, "nothing is left to try"),
    ];
    for (preset, code, end) in ends {
        let lab = Lab::new("gains");
        let table = format!("[policy]\npreset = \"{preset}\"\n\n[policy.accept]");
        lab.replace("karve.toml", "[policy.accept]", &table);
        let profile = "build = \"sh build.sh\"\nprofile = \"echo Bottleneck: Memory-bound\"";
        lab.replace("karve.toml", "build = \"sh build.sh\"", profile).commit();
        lab.karve(&["run", "--yes"]).ends(code).shows(&[end]);
        // The agent's first attempt does not build; tilegym reverts it at once.
        let first = if preset == "tilegym" { "build_failed" } else { "keep" };
        assert_eq!(lab.verdicts()[0], first, "{preset}");
        lab.karve(&["verify"]).ends(0);
        has_no_broken_page(&lab);
        is_tidy(&lab);
    }
}

/// Every page of a campaign was rendered, also without a contract.
fn has_no_broken_page(lab: &Lab) {
    for path in files_below(&lab.campaign("")) {
        let page = fs::read(lab.campaign(&path)).unwrap();
        let text = String::from_utf8_lossy(&page);
        assert!(!text.contains("karve has a bug in this page"), "{path}: {text}");
    }
}

/// The toy in workspace mode: one file of the repository is not extracted.
pub(crate) fn in_workspace() -> Lab {
    let lab = Lab::new("gains");
    lab.configure(
        "[workspace]\nfiles = [\"kernel.sh\", \"build.sh\", \"test.sh\", \"bench.sh\", \
         \"agent.sh\", \"script/**\"]\n\n[workspace.integration]\nbuild = \"sh build.sh\"\n\
         test = \"sh test.sh {n} && test -e whole\"\nbench = \"sh bench.sh {case}\"",
    );
    lab.write("whole", "only in the whole repository\n");
    lab.commit();
    lab
}

#[test]
fn a_workspace_comes_back_only_through_the_integration_gate() {
    let lab = in_workspace();
    lab.karve(&["run", "--yes"]).ends(0).shows(&["2.500x"]);
    assert!(!lab.campaign("workspace/whole").exists());
    assert!(lab.campaign("workspace/kernel.sh").exists());
    is_tidy(&lab);
    lab.karve(&["verify"]).ends(0);
    lab.karve(&["diff"]).ends(0).shows(&["+TIME=40"]);
    lab.karve(&["apply", "--branch", "faster"]).ends(0).shows(&["2.500"]);
    assert!(lab.git(&["show", "faster:kernel.sh"]).contains("TIME=40"));
    assert_eq!(lab.git(&["diff", "--name-only", "main", "faster"]), "kernel.sh");
    assert_eq!(lab.git(&["rev-parse", "faster~1"]), lab.git(&["rev-parse", "main"]));
    is_tidy(&lab);
}

#[test]
fn a_rate_that_the_clock_contradicts_is_refused() {
    let lab = Lab::new("gains");
    lab.replace("karve.toml", "unit = \"us\"", "unit = \"GFLOPS\"\nwork = \"n*1e9\"");
    lab.replace("bench.sh", "time_us=", "time_us=0.00");
    lab.commit();
    lab.karve(&["check"])
        .ends(1)
        .shows(&["GFLOPS, which is ", "by metric.work, but the whole command took"]);
}

#[test]
fn the_final_duel_of_a_workspace_repeats_as_often_as_the_rounds() {
    let lab = in_workspace();
    lab.replace("karve.toml", "bench.sh {case}", "bench.sh {case} {repeats}");
    let bench = lab.read("bench.sh");
    let note = lab.beside("calls");
    let line = format!("[ -e whole ] && echo $2 >> {}\n", note.display());
    // As long as that many calls take.
    let bench = bench.replace("%06d \"$TIME\"", "%06d $((TIME * $2))");
    lab.write("bench.sh", &format!("{line}{bench}"));
    lab.unconfined().commit();
    lab.karve(&["run", "--yes"]).ends(0).shows(&["2.500x"]);
    let chosen = lab.events("baseline_measured")[0]["repeats"][0]["calls"].clone();
    assert!(chosen.as_u64().unwrap() > 1, "{chosen}");
    let calls = std::fs::read_to_string(note).unwrap();
    let chosen = chosen.to_string();
    let visible = calls.lines().filter(|line| *line == chosen);
    assert!(visible.count() >= 4, "{chosen}: {calls}");
}

#[test]
fn a_benchmark_that_prints_a_gigabyte_costs_little_memory() {
    let lab = Lab::new("gains");
    let flood = "if [ -e ../../flood ]; then\n    head -c 1000000000 /dev/zero\n\
        \x20   touch ../../flooded\n    sleep 1000\nfi\n";
    let bench = lab.read("bench.sh");
    lab.write("bench.sh", &format!("{flood}{bench}"));
    lab.script("1", "propose", "touch ../../flood\nclaim flood \"it is a lot\" 1.1");
    lab.script("1", "repair", "edit '/^BROKEN/d'\necho done");
    lab.unconfined().commit();
    let running = lab.start(&["run", "--yes"]);
    wait_until("a gigabyte is printed", || lab.campaign("flooded").exists());
    let status = fs::read_to_string(format!("/proc/{}/status", running.pid())).unwrap();
    let kib = |name: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    // Without the pages of the program itself, which is large in a test build.
    let used = kib("VmHWM:") - kib("RssFile:");
    println!("a benchmark that printed 1 GB: karve used {used} KiB at most");
    assert!(used < 32 << 10, "{used} KiB");
    running.kill();
}

#[test]
fn a_kernel_that_fails_in_the_whole_repository_does_not_come_back() {
    let lab = in_workspace();
    lab.replace("karve.toml", "test -e whole", "grep -q TIME=100 kernel.sh");
    lab.commit().karve(&["run", "--yes", "--rounds", "1"]).ends(0);
    assert_eq!(lab.verdicts(), ["keep"]);
    assert_eq!(lab.events("block_failed").len(), 1);
    let said = lab.karve(&["apply", "--branch", "faster"]).ends(1);
    said.complains(&["does not pass the integration gate", "hint: see workspace.integration"]);
    assert_eq!(lab.git(&["branch", "--list", "faster"]), "");
    is_tidy(&lab);
}

/// A call of 100 us is repeated until a sample takes a millisecond, for both arms alike.
#[test]
fn short_calls_are_repeated_as_the_incumbent_needs_it() {
    let lab = Lab::new("gains");
    let line = "bench = \"sh bench.sh {case}\"";
    lab.replace("karve.toml", line, "bench = \"sh bench.sh {case} {repeats}\"");
    lab.commit();
    lab.karve(&["run", "--yes", "--rounds", "1"]).ends(0);
    let repeats = &lab.events("baseline_measured")[0]["repeats"];
    let ten = |case: u32| serde_json::json!({"case": case, "calls": 10});
    assert_eq!(*repeats, serde_json::json!([ten(0), ten(1)]));
}

/// Crates of a registry are built once for all processes of a project, and nothing that a candidate
/// built reaches another build.
#[test]
fn what_cargo_built_of_the_unchanged_project_is_kept_for_later_processes() {
    let lab = Lab::new("gains");
    fs::remove_dir_all(lab.path("script")).unwrap();
    lab.script("1", "propose", "claim \"less\" \"it is not needed\" 2.0").script(
        "1",
        "implement",
        "edit s/TIME=.*/TIME=50/\necho done",
    );
    lab.write("Cargo.lock", "[[package]]\nname = \"criterion\"\nsource = \"registry\"\n");
    lab.write(".gitignore", "target/\nbuild/\n");
    let cargo = "\nif grep -q TIME=50 kernel.sh; then [ -e target/crate ] || exit 7; fi\n\
                 [ -e target/crate ] || { mkdir -p target/criterion; echo >target/crate; }\n\
                 echo '{\"rustc_fingerprint\":1,\"outputs\":{}}' >target/.rustc_info.json\n\
                 if grep -q TIME=50 kernel.sh; then echo >target/candidate; fi\n";
    lab.write("build.sh", &format!("{}{cargo}", lab.read("build.sh")));
    lab.commit();
    lab.karve(&["doctor"]).ends(0);
    let kept = lab.path(".karve/cargo-seed/target");
    assert!(kept.join("crate").exists() && !kept.join("criterion").exists());
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
    fs::remove_file(kept.join("crate")).unwrap();
    fs::write(kept.join("crate"), "of another process").unwrap();
    lab.karve(&["run", "--yes", "--rounds", "1"]).ends(0);
    assert_eq!(lab.verdicts(), ["keep"]);
    assert!(!kept.join("candidate").exists());
    assert_eq!(fs::read_to_string(kept.join("crate")).unwrap(), "of another process");
}
