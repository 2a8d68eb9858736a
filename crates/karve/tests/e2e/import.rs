//! `karve import`: tasks of our own in the forms of others become projects that work.

use crate::e2e::lab::Lab;
use std::process::Command;

const PYTHON: &str = "/usr/bin/python3";

/// A task in the form of KernelBench, with NumPy.
const MODEL: &str = "
import numpy as np

class Model:
    def __init__(self, factor):
        self.factor = np.float32(factor)

    def forward(self, x, weights):
        return self.factor * x * weights[:, None]

rows = 32

def get_inputs():
    x = np.random.rand(rows, 64).astype(np.float32)
    return [x, np.random.randn(rows).astype(np.float32)]

def get_init_inputs():
    return [1.5]
";

fn has_numpy() -> bool {
    let output = Command::new(PYTHON).args(["-c", "import numpy"]).output();
    let has = output.is_ok_and(|output| output.status.success());
    if !has {
        println!("skipped: {PYTHON} has no NumPy");
    }
    has
}

/// A directory with one task, imported into the project's own directory.
fn imported(format: &str, files: &[(&str, &str)]) -> Lab {
    let lab = Lab::empty();
    for (path, text) in files {
        lab.write(&format!("../checkout/{path}"), text);
    }
    let args = ["import", format, "../checkout", "--device", "cpu", "--python", PYTHON];
    lab.karve(&args).ends(0).shows(&["imported 1 of 1 tasks to tasks"]);
    lab
}

/// Runs the script of a task, and returns whether it passed and what it said.
fn script(lab: &Lab, dir: &str, args: &[&str]) -> (bool, String) {
    let mut python = Command::new(PYTHON);
    python.arg("karve/run.py").args(args).current_dir(lab.path(dir)).env("KARVE_SEED", "77");
    let output = python.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn a_model_with_plain_draws_is_checked_under_its_contract() {
    if !has_numpy() {
        return;
    }
    let lab = imported("kernelbench", &[("level1/7_Scale.py", MODEL)]);
    let dir = lab.path("tasks/level1-7_Scale");
    let said = lab.karve(&["-C", dir.to_str().unwrap(), "check"]);
    said.ends(0);
}

#[test]
fn a_model_whose_inputs_have_a_structure_is_tested_by_its_script() {
    if !has_numpy() {
        return;
    }
    let text = MODEL.replace("x = np.random.rand(rows, 64)", "x = np.triu(np.random.rand(32, 64))");
    let lab = imported("kernelbench", &[("tri.py", &text)]);
    let (good, said) = script(&lab, "tasks/tri", &["test"]);
    assert!(good && said.contains("PASS as-given"), "{said}");
    let (good, said) = script(&lab, "tasks/tri", &["bench", "as-given"]);
    assert!(good && said.contains("METRIC time_us=") && said.contains("check=PASS"), "{said}");
    // Right in every place that is not zero, and the process that judges is not the kernel's.
    let wrong = "return self.factor * x * weights[:, None]";
    lab.replace(
        "tasks/tri/kernel.py",
        wrong,
        "return self.factor * (x + 0.001) * weights[:, None]",
    );
    let (good, said) = script(&lab, "tasks/tri", &["test"]);
    assert!(!good && said.contains("FAIL as-given: result 0:"), "{said}");
    lab.replace("tasks/tri/kernel.py", "import numpy as np", "import numpy as np, os\nos._exit(0)");
    let (good, said) = script(&lab, "tasks/tri", &["test"]);
    assert!(!good, "{said}");
}

const CONTEST: &str = r#"
files:
  - {"name": "submission.py", "source": "@SUBMISSION@"}
  - {"name": "utils.py", "source": "../utils.py"}
  - {"name": "reference.py", "source": "reference.py"}
lang: "py"
tests:
  - {"size": 5, "seed": 1, "masked": False}
  - {"size": 6, "seed": 2, "masked": True}
benchmarks:
  - {"size": 100, "seed": 3, "masked": True}
"#;

const CONTEST_REFERENCE: &str = "
import numpy as np
from utils import close

def generate_input(size, seed, masked):
    rng = np.random.default_rng(seed)
    mask = rng.integers(0, 2, size).astype(bool) if masked is True else np.ones(size, bool)
    return {'x': rng.random(size), 'mask': mask, 'config': {'by': 2.0}}

def ref_kernel(data):
    return (data['x'] * data['mask'] * data['config']['by'],)

def check_implementation(data, output):
    return close(output[0], ref_kernel(data)[0])
";

#[test]
fn a_contest_task_is_judged_by_its_own_check_in_another_process() {
    if !has_numpy() {
        return;
    }
    let utils = "def close(a, b):\n    return bool(abs(a - b).max() < 1e-9), 'mismatch'\n";
    let files = [
        ("set/scale/task.yml", CONTEST),
        ("set/scale/reference.py", CONTEST_REFERENCE),
        ("set/utils.py", utils),
    ];
    let lab = imported("gpumode", &files);
    let dir = "tasks/set-scale";
    let (good, said) = script(&lab, dir, &["test"]);
    assert!(good && said.matches("PASS").count() == 3, "{said}");
    let (good, said) = script(&lab, dir, &["bench", "size=100,masked=true"]);
    assert!(good && said.contains("case=size=100,masked=true check=PASS"), "{said}");
    let ignores = "def custom_kernel(data):\n    return (data['x'] * 2.0,)\n";
    lab.write(&format!("{dir}/submission.py"), ignores);
    let (good, said) = script(&lab, dir, &["test"]);
    assert!(!good && said.contains("FAIL test:size=6,masked=true: mismatch"), "{said}");
}

#[test]
fn a_program_is_scored_by_its_evaluator_and_changes_in_its_block_only() {
    if !has_numpy() {
        return;
    }
    let evaluator = "
import importlib.util

def evaluate(path):
    spec = importlib.util.spec_from_file_location('program', path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return {'combined_score': program.x + program.y, 'other': 9}
";
    let program = "# EVOLVE-BLOCK-START\nx = 1\n# EVOLVE-BLOCK-END\ny = 2\n";
    let files = [("sum/evaluator.py", evaluator), ("sum/initial_program.py", program)];
    let lab = imported("openevolve", &files);
    let score = |what: &str| {
        let mut python = Command::new(PYTHON);
        python.args(["karve/score.py", what]).current_dir(lab.path("tasks/sum"));
        let output = python.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    };
    let (good, said) = score("bench");
    assert!(good && said.contains("METRIC score=3 case=as-given"), "{said}");
    lab.replace("tasks/sum/initial_program.py", "x = 1", "x = 5");
    assert!(score("check").0 && score("test").0);
    lab.replace("tasks/sum/initial_program.py", "y = 2", "y = 20");
    let (good, said) = score("test");
    assert!(!good && said.contains("changed outside its EVOLVE blocks"), "{said}");
}

/// What `karve lint-task` finds in the only imported task.
fn findings(lab: &Lab, dir: &str, code: i32) -> Vec<String> {
    let dir = lab.path(dir);
    let args = ["-C", dir.to_str().unwrap(), "lint-task", "--json", "--python", PYTHON];
    let said = lab.karve(&args).ends(code).json();
    assert!(said["examined"].as_u64().unwrap() > 0, "{said}");
    let rules = said["findings"].as_array().unwrap().iter();
    rules.map(|one| one["rule"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_lint_finds_nothing_in_sound_tasks() {
    if !has_numpy() {
        return;
    }
    let lab = imported("kernelbench", &[("sound.py", MODEL)]);
    assert_eq!(findings(&lab, "tasks/sound", 0), [""; 0]);
    let utils = "def close(a, b):\n    return bool(abs(a - b).max() < 1e-9), 'mismatch'\n";
    let files = [
        ("set/scale/task.yml", CONTEST),
        ("set/scale/reference.py", CONTEST_REFERENCE),
        ("set/utils.py", utils),
    ];
    let lab = imported("gpumode", &files);
    assert_eq!(findings(&lab, "tasks/set-scale", 0), [""; 0]);
}

#[test]
fn the_lint_names_what_a_weak_check_lets_through() {
    if !has_numpy() {
        return;
    }
    // All results are far below the tolerance.
    let small = MODEL.replace("self.factor * x", "np.float32(1e-6) * x");
    let lab = imported("kernelbench", &[("small.py", &small)]);
    let rules = findings(&lab, "tasks/small", 1);
    for rule in ["zeros", "constant", "half-precision", "previous-output", "trivial-range"] {
        assert!(rules.iter().any(|one| one == rule), "{rule} in {rules:?}");
    }
    // A mask that is never used, and an evaluation that reads False as a word.
    let yml = CONTEST.replace("\"masked\": True", "\"masked\": False");
    let yml = yml.replace("lang:", "  - {\"name\": \"eval.py\", \"source\": \"eval.py\"}\nlang:");
    let utils = "def close(a, b):\n    return bool(abs(a - b).max() < 1e-9), 'mismatch'\n";
    let files = [
        ("set/scale/task.yml", yml.as_str()),
        ("set/scale/reference.py", CONTEST_REFERENCE),
        ("set/scale/eval.py", "import re\nre.match(a, b)\n"),
        ("set/utils.py", utils),
    ];
    let lab = imported("gpumode", &files);
    let rules = findings(&lab, "tasks/set-scale", 1);
    assert_eq!(rules, ["ignored-mask", "boolean-words"]);
}

#[test]
fn a_doctor_and_a_campaign_say_what_the_check_of_a_task_lets_through() {
    if !has_numpy() {
        return;
    }
    let small = MODEL.replace("self.factor * x", "np.float32(1e-6) * x");
    let lab = imported("kernelbench", &[("small.py", &small)]);
    let config = lab.read("tasks/small/karve.toml");
    let more = "\n[limits]\nrounds = 1\nfinal_blocks = 4\n[agent]\nname = \"mine\"\n\
                [agents.mine]\ncommand = \"true\"\n[campaign]\nname = \"toy\"\n\
                [device]\npressure_max = 100\n[policy.controls]\nblocks = 8\n";
    lab.write("tasks/small/karve.toml", &(config + more));
    lab.git(&["init", "-q"]);
    lab.commit();
    let dir = lab.path("tasks/small");
    let dir = dir.to_str().unwrap();
    let said = lab.karve(&["-C", dir, "doctor", "--json"]).json();
    let notes = said.as_array().unwrap().iter().filter(|found| found["what"] == "task");
    let notes: Vec<_> = notes.collect();
    assert!(!notes.is_empty(), "{said}");
    assert!(notes.iter().all(|found| found["level"] == "note"), "{notes:?}");
    let zeros =
        |found: &&serde_json::Value| found["detail"].as_str().unwrap().starts_with("zeros:");
    assert!(notes.iter().any(zeros), "{notes:?}");
    let ran = lab.karve(&["-C", dir, "run", "--yes"]);
    assert!([0, 1].contains(&ran.code), "{ran:#?}");
    ran.shows(&["task      zeros: "]);
    let status = lab.karve(&["-C", dir, "status", "--json"]).ends(0).json();
    let lines = status["task_findings"].as_array().unwrap();
    let is_zeros = |line: &serde_json::Value| line.as_str().unwrap().starts_with("zeros: ");
    assert!(lines.iter().any(is_zeros), "{status}");
    let report = lab.read("tasks/small/.karve/toy/REPORT.md");
    assert!(report.contains("The check of the imported task"), "{report}");
    assert!(report.contains("- zeros: "), "{report}");
}

#[test]
fn only_an_imported_task_can_be_linted() {
    let lab = Lab::new("cheats/project");
    lab.karve(&["lint-task"]).ends(2).complains(&["karve/task.json", "karve import"]);
}

#[test]
fn what_cannot_be_imported_ends_with_a_reason_and_a_hint() {
    let lab = Lab::empty();
    lab.write("empty/notes.txt", "no task\n");
    lab.write("broken/t.py", "class Model(:\n  pass\ndef get_inputs(): pass\n");
    lab.karve(&["import", "kernelbench", "empty"])
        .ends(2)
        .complains(&["there is no task of kernelbench in empty", "karve help import"]);
    lab.karve(&["import", "kernelbench", "broken"])
        .ends(1)
        .complains(&["could be imported", "it is not valid Python"]);
    lab.karve(&["import", "kernelbench", "none"]).ends(3).complains(&["cannot read", "PATH"]);
    lab.karve(&["import", "kernelbench", "broken", "--out", "empty"])
        .ends(2)
        .complains(&["empty is not empty", "--force"]);
    lab.karve(&["import", "gpumode", "broken", "--dtype", "bf16"])
        .ends(2)
        .complains(&["have their own types", "--dtype"]);
}
