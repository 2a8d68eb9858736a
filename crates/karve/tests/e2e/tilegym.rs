//! The example of tilegym (TileGym improve-cutile-kernel-perf), from setup to report, and every
//! file that it leaves.

use crate::e2e::external::propose_as;
use crate::e2e::forms::files_below;
use crate::e2e::lab::Lab;
use crate::e2e::tidy::is_tidy;
use std::fs;

#[test]
fn the_example_of_tilegym_follows_every_decision_rule() {
    let lab = Lab::new("tilegym");
    lab.karve(&["run", "--yes"]).ends(0).shows(&["the last gain was small"]);
    // More than 5%: kept. Wrong: reverted at once. 2 to 5%: kept. Below 2%: kept, and the end.
    assert_eq!(lab.verdicts(), ["keep", "wrong_result", "keep", "keep"]);
    assert_eq!(lab.events("implemented").len(), 4);
    let want = "\
| iteration | optimization       | latency_ms | correctness | status |
|----------:|:-------------------|-----------:|:------------|-------:|
| 0         | baseline           |   0.820000 | PASS        | keep   |
| 1         | TMA replace gather |   0.390000 | PASS        | keep   |
| 2         | fewer registers    |          - | FAIL        | revert |
| 3         | latency hints      |   0.375000 | PASS        | keep   |
| 4         | plain store        |   0.371000 | PASS        | keep   |
";
    assert_eq!(lab.read(".karve/toy/sandbox/perf_results.md"), want);
    assert_eq!(files_below(&lab.campaign("sandbox")), ["perf_results.md"]);
    // The agent has its sandbox in every iteration, and nothing of it is committed.
    assert!(lab.read(".karve/toy/sandbox-files/ir.txt").contains("dumped IR"));
    let files = lab.git(&["ls-tree", "-r", "--name-only", "refs/karve/toy/best"]);
    assert!(!files.contains("sandbox"), "{files}");
    // The root cause of round 2 goes to the user, and the profiler is asked after it.
    lab.karve(&["queue"]).ends(0).shows(&["the root cause is \"scheduling\""]);
    let profiled = lab.events("profiled");
    let rounds: Vec<u64> = profiled.iter().filter_map(|event| event["round"].as_u64()).collect();
    assert_eq!(rounds, [3]);
    // Every iteration is a commit, and the kept ones are on the branch.
    let branches =
        lab.git(&["branch", "--list", "cutile-perf-rms_norm-*", "--format=%(refname:short)"]);
    let date = branches.trim().strip_prefix("cutile-perf-rms_norm-").unwrap();
    assert!(date.len() == 8 && date.chars().all(|c| c.is_ascii_digit()), "{branches}");
    let kept = lab.git(&["log", "--format=%s", &format!("main..{}", branches.trim())]);
    assert_eq!(kept.lines().count(), 3, "{kept}");
    lab.git(&["rev-parse", "--verify", "refs/karve/toy/round-2"]);
    lab.karve(&["verify"]).ends(0);
    is_tidy(&lab);
}

#[test]
fn an_external_agent_finds_its_sandbox_again() {
    let lab = Lab::new("tilegym");
    let workspace = lab.campaign("agent-workspace");
    let sandbox = |name: &str| fs::read_to_string(workspace.join("sandbox").join(name));
    let propose = |title: &str, entry: &str| {
        propose_as(
            &lab,
            &format!(
                "{{\"title\": \"{title}\", \"mechanism\": \"whole tiles are loaded\", \
                 \"expected_ratio\": 2.0, \"entry\": \"{entry}\"}}"
            ),
        );
    };
    let leave = |name: &str| fs::write(workspace.join("sandbox").join(name), name).unwrap();
    lab.karve(&["next", "--yes"]).ends(0);
    assert!(sandbox("perf_results.md").unwrap().contains("| 0         | baseline"));
    leave("at-first.txt");
    propose("whole tiles", "cutile-tma-loads");
    let kernel = workspace.join("src/tilegym/ops/cutile/rms_norm.py");
    let text = fs::read_to_string(&kernel).unwrap();
    fs::write(&kernel, text.replace("LATENCY = 0.82", "LATENCY = 0.39")).unwrap();
    leave("ir.txt");
    let turn = lab.karve(&["submit", "--json"]).ends(0).json();
    assert_eq!(turn["last"]["verdict"], "keep", "{turn}");
    // It is there in the next round, also if nothing was handed in, and is never a change.
    propose("other tiles", "cutile-tile-size");
    leave("given-up.txt");
    // Notes alone are no change, and cost no round.
    let said = lab.karve(&["submit"]).ends(1);
    said.complains(&["round 2 is still waiting", "nothing that can be edited differs", "rms_norm"]);
    assert_eq!(lab.karve(&["next", "--json"]).ends(0).json()["turn"], "implement");
    lab.karve(&["submit", "--give-up", "no idea"]).ends(0);
    for name in ["at-first.txt", "ir.txt", "given-up.txt"] {
        assert_eq!(sandbox(name).unwrap(), name);
    }
    assert!(sandbox("perf_results.md").unwrap().contains("| 1         | whole tiles"));
    let files = lab.git(&["ls-tree", "-r", "--name-only", "refs/karve/toy/best"]);
    assert!(!files.contains("sandbox"), "{files}");
}

#[test]
fn tilegym_asks_for_its_gpu_before_anything_runs() {
    let lab = Lab::new("tilegym");
    lab.replace("karve.toml", "gpu = \"elsewhere\"", "").commit();
    let said = lab.karve(&["run", "--yes"]);
    said.ends(3).complains(&["no GPU answers here, and the target is B200", "device.gpu"]);
    assert!(!lab.path(".karve/toy").exists());
}

#[test]
fn init_in_a_tree_of_tilegym_finds_the_kernel_its_tests_and_its_cases() {
    let lab = Lab::new("tilegym");
    fs::remove_file(lab.path("karve.toml")).unwrap();
    // The stand-in for python3 passes everything on to the stand-in for pytest.
    lab.write("tools/python3", "#!/bin/sh\nshift 2\nexec sh bin/pytest \"$@\"\n");
    let mut command = lab.command(&["init", "rms_norm", "--yes"]);
    let tools = lab.path("tools");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(tools.join("python3"), mode).unwrap();
    let path = format!("{}:{}", tools.display(), crate::e2e::lab::PATH);
    let said = crate::e2e::lab::Said::of(&command.env("PATH", path).output().unwrap()).ends(0);
    said.complains(&["@ct.kernel: _rms_norm_kernel.", "ct.launch in line 15"]);
    let text = lab.read("karve.toml");
    for part in [
        "op = \"rms_norm\"",
        "editable = [\"src/tilegym/ops/cutile/rms_norm.py\"]",
        "-k \\\"test_ and cutile and not test_perf\\\" -v",
        "-k \\\"test_perf and cutile\\\" --print-record -v",
        "label = \"Cutile\"",
        "list = [\"cutile-static_persistent-4096-float16\"]",
        "preset = \"tilegym\"",
        "rounds = 25",
    ] {
        assert!(
            text.contains(part) || text.contains(&part.replace("\\\"", "\"")),
            "no {part} in {text}"
        );
    }
    lab.karve(&["init", "nothing", "--print"])
        .ends(2)
        .complains(&["no kernel is named \"nothing\""]);
}
