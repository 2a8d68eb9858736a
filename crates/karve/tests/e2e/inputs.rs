//! A task that tells its inputs itself, as those of KernelBench do: the arguments are asked of the
//! unchanged project, frozen, and drawn by karve.

use crate::e2e::lab::{Lab, Said};
use std::process::Command;

const TASK: &str = "
import numpy as np

M, N = 64, 48

def get_inputs():
    return [
        np.random.default_rng(1).random((M, N)).astype(np.float32),
        np.arange(M, dtype=np.int32),
        2.5,
    ]

def reference_fn(x, order, by):
    return by * x[order], x.sum(axis=1)
";

const KERNEL: &str = "
import numpy as np

def kernel_fn(x, order, by):
    y = np.empty_like(x)
    for i, j in enumerate(order):
        y[i] = np.float32(by) * x[j]
    return y, x.sum(axis=1)
";

const FASTER: &str = "
import numpy as np

def kernel_fn(x, order, by):
    return x[order] * np.float32(by), x.sum(axis=1)
";

const CONFIG: &str = r#"
[target]
op = "rows"
backend = "numpy"

[sources]
editable = ["kernel.py"]

[contract]
python = "kernel.py"
interpreter = "/usr/bin/python3"
inputs = "from-module"
reduction = 48

[contract.reference]
python = "reference.py"

[cases]
list = ["as given"]

[policy.accept]
alpha = 0.2
guard_evidence = 2.0
blocks_min = 1

[policy.controls]
every = 0

[limits]
rounds = 1
final_blocks = 4

[device]
pressure_max = 100

[campaign]
name = "toy"

[agent]
name = "script"

[agents.script]
command = "sh agent.sh"
"#;

/// A project with that task, if there is a NumPy.
fn project(task: &str) -> Option<Lab> {
    let mut python = Command::new("/usr/bin/python3");
    let output = python.args(["-c", "import numpy"]).output();
    if !output.is_ok_and(|output| output.status.success()) {
        println!("skipped: /usr/bin/python3 has no NumPy");
        return None;
    }
    let lab = Lab::new("cheats/project");
    lab.write("karve.toml", CONFIG);
    lab.write("kernel.py", KERNEL);
    lab.write("faster.py", FASTER);
    lab.write("reference.py", task);
    lab.script("1", "propose", "claim \"gather\" \"gather\" 2.0").script(
        "1",
        "implement",
        "cp faster.py kernel.py\necho done",
    );
    lab.commit();
    Some(lab)
}

#[test]
fn the_inputs_of_a_module_are_asked_once_and_drawn_by_karve() {
    let Some(lab) = project(TASK) else {
        return;
    };
    lab.karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts(), ["keep"]);
    let args = &lab.events("prepared")[0]["args"];
    let reported: Vec<String> = args
        .as_array()
        .unwrap()
        .iter()
        .map(|arg| format!("{} {} {}", arg["name"], arg["dtype"], arg["kind"]["kind"]))
        .map(|text| text.replace('"', ""))
        .collect();
    let want =
        ["x f32 input", "order i32 input", "by f64 scalar", "out0 f32 output", "out1 f32 output"];
    assert_eq!(reported, want, "{args}");
    assert_eq!(args[0]["kind"]["draw"]["kind"], "uniform");
    assert_eq!(args[1]["kind"]["draw"]["high"], 63);
    // The log tells it again, and so does a command outside the campaign.
    lab.karve(&["verify"]).ends(0);
    lab.karve(&["check"]).ends(0);
}

#[test]
fn a_module_that_does_not_tell_its_inputs_is_said_so() {
    let Some(lab) = project(&TASK.replace("def get_inputs", "def inputs")) else {
        return;
    };
    let said: Said = lab.karve(&["run", "--yes"]);
    said.ends(2).complains(&["does not define `get_inputs`", "contract.reference.python"]);
    lab.replace("karve.toml", "inputs = \"from-module\"\n", "");
    lab.karve(&["check"]).ends(2).complains(&["the key `args` is missing"]);
}

#[test]
fn inputs_without_a_bound_are_refused() {
    let Some(lab) = project(TASK) else {
        return;
    };
    let huge = "return [np.broadcast_to(np.float32(1), (1 << 20, 1 << 22))]\n    return [";
    lab.replace("reference.py", "return [", huge).commit();
    let said = lab.karve(&["doctor"]).ends(1);
    said.shows(&["17592186044416 bytes in total", "get_inputs"]);
    lab.replace("reference.py", "return [np.broad", "while True: pass\n    return [np.broad");
    lab.replace("karve.toml", "rounds = 1\n", "rounds = 1\ncommand_s = 2\n");
    lab.commit();
    let said = lab.karve(&["doctor"]).ends(1);
    said.shows(&["it did not report them within 2 s", "get_inputs"]);
}

/// The function that should be fast fails, and what is done instead is faster anyway.
const GHOST: &str = "
import numpy as np

def fast_path(x, order, by):
    raise NotImplementedError

def kernel_fn(x, order, by):
    try:
        y = fast_path(x, order, by) * 1
    except Exception:
        y = x[order] * np.float32(by)
    return y, x.sum(axis=1)
";

#[test]
fn a_function_whose_errors_are_caught_is_reported_as_a_ghost() {
    let Some(lab) = project(TASK) else {
        return;
    };
    lab.write("faster.py", GHOST);
    lab.commit().karve(&["run", "--yes"]).ends(0);
    assert!(lab.verdicts()[0].starts_with("keep"), "{:?}", lab.verdicts());
    let gated = lab.events("gated");
    let findings = gated.last().unwrap()["findings"].as_array().unwrap().clone();
    assert!(findings.iter().any(|finding| finding["rule"] == "ghost"), "{findings:?}");
}
