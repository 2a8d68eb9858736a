//! `karve export`: what a campaign found leaves in the formats of others, and comes back.

use crate::e2e::lab::{Lab, source};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

const PYTHON: &str = "/usr/bin/python3";

/// As little evidence as the rules allow, a scripted agent, and others at work beside the test.
const QUICK: &str = r#"
[policy.accept]
warm_up = "first"
alpha = 0.2
guard_evidence = 2.0
blocks_min = 1

[policy.controls]
every = 0

[limits]
rounds = 1
final_blocks = 2

[device]
pressure_max = 100

[campaign]
name = "toy"

[agent]
name = "script"

[agents.script]
command = "sh agent.sh"
"#;

const MODEL: &str = "
import numpy as np

class Model:
    def __init__(self, factor):
        self.factor = np.float32(factor)

    def forward(self, x):
        out = np.empty_like(x)
        for row in range(x.shape[0]):
            out[row] = self.factor * x[row]
        return out

def get_inputs():
    return [np.random.rand(512, 64).astype(np.float32)]

def get_init_inputs():
    return [1.5]
";

/// What the agent changes.
const SLOW: &str = "for row in range(x.shape[0]):";

fn has_numpy() -> bool {
    let output = Command::new(PYTHON).args(["-c", "import numpy"]).output();
    let has = output.is_ok_and(|output| output.status.success());
    if !has {
        println!("skipped: {PYTHON} has no NumPy");
    }
    has
}

/// A task of another project, imported, and one round in which its loop becomes one line.
fn played(format: &str, files: &[(&str, &str)], dir: &str) -> Lab {
    let lab = Lab::empty();
    for (path, text) in files {
        lab.write(&format!("../checkout/{path}"), text);
    }
    let args = ["import", format, "../checkout", "--device", "cpu", "--python", PYTHON];
    lab.karve(&args).ends(0);
    let config = lab.read(&format!("{dir}/karve.toml"));
    lab.write(&format!("{dir}/karve.toml"), &(config + QUICK));
    let agent = fs::read_to_string(source("testing/toy/agent.sh")).unwrap();
    // An agent starts at the top of the repository.
    lab.write("tasks/agent.sh", &agent);
    let round = "tasks/script/round-1";
    lab.write(&format!("{round}/propose.sh"), "claim 'whole rows' 'a loop in Python' 2.0\n");
    let kernel = format!("{}/kernel.py", dir.trim_start_matches("tasks/"));
    let edit = format!("edit 's/in range(.*):/in [slice(None)]:/' {kernel}\n");
    lab.write(&format!("{round}/implement.sh"), &format!("{edit}echo '{{\"summary\": \"done\"}}'"));
    let git = |args: &[&str]| crate::e2e::lab::git_in(&lab.path("tasks"), args);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "an agent"]);
    let there = lab.path(dir);
    let said = lab.karve(&["-C", there.to_str().unwrap(), "run", "--yes"]).ends(0);
    let best = lab.karve(&["-C", there.to_str().unwrap(), "best", "--json"]).ends(0).json();
    assert_eq!(best["round"], 1, "{said:#?}");
    lab
}

fn export(lab: &Lab, dir: &str, args: &[&str]) -> crate::e2e::lab::Said {
    let there = lab.path(dir);
    let whole = [&["-C", there.to_str().unwrap(), "export"], args].concat();
    lab.karve(&whole)
}

fn json_of(lab: &Lab, path: &str) -> Value {
    serde_json::from_str(&lab.read(path)).unwrap()
}

#[test]
fn a_model_leaves_as_one_file_and_comes_back_as_the_kernel_to_start_from() {
    if !has_numpy() {
        return;
    }
    let dir = "tasks/scale";
    let lab = played("kernelbench", &[("scale.py", MODEL)], dir);
    let out = lab.path("new.py");
    export(&lab, dir, &["kernelbench", "--out", out.to_str().unwrap()]).ends(0);
    let text = lab.read("new.py");
    assert!(text.contains("class ModelNew") && text.contains("[slice(None)]"), "{text}");
    let original = export(&lab, dir, &["kernelbench", "--round", "0"]).ends(0);
    assert!(original.stdout.contains(SLOW), "{original:#?}");
    let again = ["import", "kernelbench", "../checkout", "--out", "again", "--kernel", "new.py"];
    lab.karve(&[&again[..], &["--device", "cpu", "--python", PYTHON]].concat()).ends(0);
    assert_eq!(lab.read("again/scale/kernel.py"), text);
    let there = lab.path("again/scale");
    lab.karve(&["-C", there.to_str().unwrap(), "check"]).ends(0);
    lab.write("bare.py", "x = 1\n");
    lab.karve(&["import", "kernelbench", "../checkout", "--out", "b", "--kernel", "bare.py"])
        .ends(1)
        .complains(&["does not define class ModelNew"]);
    // A model is no function, and round 7 does not exist.
    export(&lab, dir, &["flashinfer", "--out", "x"]).ends(2).complains(&["hint:"]);
    export(&lab, dir, &["kernelbench", "--round", "7"]).ends(2).complains(&["karve log"]);
    export(&lab, dir, &["shinka"]).ends(2).complains(&["--out DIR"]);
}

#[test]
fn a_solution_leaves_with_its_traces_and_its_score_and_comes_back() {
    if !has_numpy() {
        return;
    }
    let reference = "import numpy as np\n\ndef run(x):\n    out = np.empty_like(x)\n    \
                     for row in range(x.shape[0]):\n        out[row] = 2 * x[row]\n    \
                     return out\n";
    let definition = json!({
        "name": "scale_d64", "op_type": "rmsnorm",
        "axes": { "n": { "type": "var" }, "d": { "type": "const", "value": 64 } },
        "inputs": { "x": { "shape": ["n", "d"], "dtype": "float32" } },
        "outputs": { "y": { "shape": ["n", "d"], "dtype": "float32" } },
        "reference": reference,
    });
    let inputs = json!({ "x": { "type": "random" } });
    let workload = json!({ "uuid": "0001", "axes": { "n": 512 }, "inputs": inputs });
    let line = json!({ "definition": "scale_d64", "workload": workload });
    let files = [
        ("definitions/norm/scale_d64.json", &*definition.to_string()),
        ("workloads/norm/scale_d64.jsonl", &*format!("{line}\n")),
    ];
    let dir = "tasks/scale_d64";
    let lab = played("flashinfer", &files, dir);
    let out = lab.path("trace");
    export(&lab, dir, &["flashinfer", "--out", out.to_str().unwrap()]).ends(0);
    let name = fs::read_dir(lab.path("trace/solutions")).unwrap().next().unwrap().unwrap();
    let name = name.file_name().to_string_lossy().into_owned();
    let solution = json_of(&lab, &format!("trace/solutions/{name}"));
    assert_eq!(solution["definition"], "scale_d64");
    assert_eq!(solution["spec"]["entry_point"], "kernel.py::kernel_fn");
    assert_eq!(solution["spec"]["destination_passing_style"], false);
    let trace = json_of(&lab, "trace/traces/scale_d64.jsonl");
    assert_eq!((&trace["solution"], &trace["workload"]), (&solution["name"], &workload));
    let evaluation = &trace["evaluation"];
    assert_eq!((&evaluation["status"], evaluation["log"].is_string()), (&json!("PASSED"), true));
    assert!(evaluation["correctness"]["max_absolute_error"].as_f64().unwrap() < 1e-6);
    let figures = &evaluation["performance"];
    assert!(figures["speedup_factor"].as_f64().unwrap() > 1.5, "{figures}");
    assert!(figures["latency_ms"].as_f64() < figures["reference_latency_ms"].as_f64());
    // The same for SOL-ExecBench, with a score file.
    let out = lab.path("sol");
    export(&lab, dir, &["sol-execbench", "--out", out.to_str().unwrap()]).ends(0);
    assert_eq!(json_of(&lab, "sol/solution.json")["spec"]["languages"], json!(["pytorch"]));
    let score = json_of(&lab, "sol/score.json");
    assert_eq!(score["workloads"][0]["workload"], "0001", "{score}");
    assert!(score["score"].as_f64().is_some_and(|score| score > 0.5), "{score}");
    without_bytes_there_is_no_score(&lab, dir);
    // And back.
    let file = format!("trace/solutions/{name}");
    let again = ["import", "flashinfer", "../checkout", "--out", "again", "--kernel", &file];
    lab.karve(&[&again[..], &["--device", "cpu", "--python", PYTHON]].concat()).ends(0);
    let kernel = lab.read("again/scale_d64/kernel.py");
    assert!(kernel.contains("[slice(None)]"), "{kernel}");
    wrapped_functions_leave_as_models_and_submissions(&lab, dir);
}

/// A function in the forms that want a class, or a function of one tree.
fn without_bytes_there_is_no_score(lab: &Lab, dir: &str) {
    let campaigns = fs::read_dir(lab.path(&format!("{dir}/.karve"))).unwrap().flatten();
    let logs = campaigns.map(|campaign| campaign.path().join("events.jsonl"));
    let log = logs.into_iter().find(|log| log.is_file()).unwrap();
    let whole = fs::read_to_string(&log).unwrap();
    let (first, rest) = whole.split_once('\n').unwrap();
    let mut first: Value = serde_json::from_str(first).unwrap();
    let contract = first["event"]["charter"]["contract"].as_object_mut().unwrap();
    assert!(contract.remove("work").is_some());
    fs::write(&log, format!("{first}\n{rest}")).unwrap();
    let out = lab.path("bare");
    let said = export(lab, dir, &["sol-execbench", "--out", out.to_str().unwrap()]).ends(0);
    drop(said.complains(&["there is no score.json", "contract.flops"]));
    assert!(lab.path("bare/traces.jsonl").is_file() && !lab.path("bare/score.json").exists());
    fs::write(&log, whole).unwrap();
}

fn wrapped_functions_leave_as_models_and_submissions(lab: &Lab, dir: &str) {
    let out = lab.path("model.py");
    export(lab, dir, &["kernelbench", "--out", out.to_str().unwrap()]).ends(0);
    let out = lab.path("submission.py");
    let args = ["gpumode", "--leaderboard", "scale", "--gpu", "H100", "--out"];
    export(lab, dir, &[&args[..], &[out.to_str().unwrap()]].concat()).ends(0);
    let head = "#!POPCORN leaderboard scale\n#!POPCORN gpus H100\n";
    assert!(lab.read("submission.py").starts_with(head));
    // A stand-in for the class that PyTorch has.
    lab.write("torch.py", "class nn:\n    class Module:\n        pass\n");
    let script = "import numpy as np, model, submission\nx = np.ones((4, 64), np.float32)\n\
                  assert (model.ModelNew(1, 2).forward(x) == 2).all()\n\
                  assert (submission.custom_kernel((x,)) == 2).all()\n";
    lab.write("use.py", script);
    let output = Command::new(PYTHON).arg("use.py").current_dir(lab.path("")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn rounds_leave_as_a_table_and_the_best_as_metrics() {
    let lab = Lab::new("gains");
    lab.karve(&["run", "--yes"]).ends(0);
    let table = lab.karve(&["export", "autoresearch"]).ends(0).stdout;
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows[0], ["commit", "time_us", "memory_gb", "status", "description"]);
    assert!(rows.iter().all(|row| row.len() == 5), "{table}");
    let status: Vec<&str> = rows[1..].iter().map(|row| row[3]).collect();
    assert_eq!(status, ["keep", "keep", "discard", "crash", "crash", "keep"], "{table}");
    assert_eq!((rows[1][1], rows[2][1], rows[4][1]), ("100.000000", "50.000000", "0.000000"));
    assert_eq!((rows[1][4], rows[1][0].len()), ("baseline", 7));
    let metrics = lab.karve(&["export", "openevolve"]).ends(0).json();
    assert!((metrics["combined_score"].as_f64().unwrap() - 2.5).abs() < 1e-9, "{metrics}");
    assert_eq!(metrics["combined_score"], metrics["speedup_over_original"]);
    assert_eq!(metrics["time_us n=1"], 40.0, "{metrics}");
    // Hidden cases stay hidden.
    assert!(!metrics.to_string().contains("n=3"), "{metrics}");
    let args = ["export", "shinka", "--out", "results", "--round", "1"];
    lab.karve(&args).ends(0);
    lab.write("results/correct.json", "mine");
    lab.karve(&args).ends(2).complains(&["results/metrics.json exists", "--force"]);
    assert_eq!(lab.read("results/correct.json"), "mine");
    lab.karve(&[&args[..], &["--force"]].concat()).ends(0);
    let metrics = json_of(&lab, "results/metrics.json");
    assert!((metrics["combined_score"].as_f64().unwrap() - 2.0).abs() < 1e-9, "{metrics}");
    assert_eq!(json_of(&lab, "results/correct.json"), json!({ "correct": true, "error": null }));
    let all = lab.karve(&["export", "openevolve", "--json"]).ends(0).json();
    assert_eq!((&all["round"], &all["files"][0]["path"]), (&json!(5), &json!("metrics.json")));
    lab.karve(&["export", "kernelbench"]).ends(2).complains(&["hint: write a [contract]"]);
    lab.karve(&["export", "openevolve", "--round", "3"]).ends(2).complains(&["not measured"]);
    lab.karve(&["export", "openevolve", "--round", "4"]).ends(2).complains(&["karve why 4"]);
}
