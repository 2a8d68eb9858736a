//! Tasks of other projects: `karve import` reads them as data, whatever they hold.
//!
//! One input is a whole directory: each line that starts with `@@ ` names the next file.

use super::readers::{format_and_text, of_format};
use karve::tasks::{ImportOptions, TaskFiles, TaskFormat, import_tasks};

const FORMATS: [TaskFormat; 11] = [
    TaskFormat::Kernelbench,
    TaskFormat::Multikernelbench,
    TaskFormat::Gpumode,
    TaskFormat::Flashinfer,
    TaskFormat::SolExecbench,
    TaskFormat::RobustKbench,
    TaskFormat::Computeeval,
    TaskFormat::Autoresearch,
    TaskFormat::Openevolve,
    TaskFormat::Shinka,
    TaskFormat::Tritonbench,
];

const MODEL: &str = "@@ level1/1_scale.py
import torch
N = 64
class Model(torch.nn.Module):
    def __init__(self, features, eps=1e-5):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(features))
    def forward(self, x, by):
        return x * self.w * by
def get_inputs():
    return [torch.randn(2 * N, N), torch.rand(N) + 1]
def get_init_inputs():
    return [N]
";

const CONTEST: &str = "@@ scale_py/task.yml
files:
  - {\"name\": \"submission.py\", \"source\": \"@SUBMISSION@\"}
  - {\"name\": \"eval.py\", \"source\": \"../eval.py\"}
  - {\"name\": \"reference.py\", \"source\": \"reference.py\"}
lang: \"py\"
description: |
  Scale the rows.
config:
  main: \"eval.py\"
templates:
  Python: \"template.py\"
test_timeout: 60
tests:
  - {\"size\": 5, \"seed\": 1, \"nomask\": True, \"kind\": \"normal\"}
benchmarks:
  - {\"size\": 100, \"seed\": 3, \"nomask\": False, \"kind\": \"normal\"}
@@ scale_py/reference.py
def generate_input(size, seed, nomask, kind): pass
def ref_kernel(data): pass
def check_implementation(data, output): return True, ''
@@ scale_py/template.py
def custom_kernel(data):
    pass
@@ eval.py
import re
";

const DEFINITION: &str = r#"{"name": "scale", "op_type": "norm", "axes": {"batch": {"type": "var"},
"hidden": {"type": "const", "value": 64}}, "inputs": {"x": {"shape": ["batch", "hidden"],
"dtype": "bfloat16"}, "eps": {"shape": null, "dtype": "float32"}}, "outputs": {"y": {"shape":
["batch", "hidden"], "dtype": "bfloat16"}},
"reference": "import torch\n\ndef run(x, eps):\n    return x * eps\n"}"#;

const WORKLOAD: &str = r#"{"definition": "scale", "workload": {"uuid": "a", "axes": {"batch": 7},
"inputs": {"x": {"type": "random"}, "eps": {"type": "scalar", "value": 1e-5}}}}"#;

const ROBUST: &str = "@@ tasks/own/scale/func_forward.py
import torch
def forward_fn(x, w, eps):
    return x * w + eps
class Model(torch.nn.Module):
    def __init__(self, features=4):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(features))
    def forward(self, x, fn=forward_fn):
        return fn(x, self.w, 1e-5)
def get_inputs(rows: int = 2, features: int = 4):
    return [torch.randn(rows, features)]
input_names = ['x']
@@ tasks/own/scale/config_forward.json
{\"single_input_configs\": [{\"rows\": 8}], \"single_init_configs\": [{}],
\"single_shared_configs\": [{\"features\": 16}], \"multi_input_configs\": [{\"rows\": 1}, {}],
\"multi_init_configs\": [{}, {}], \"multi_shared_configs\": [{}, {}]}
";

const PROBLEM: &str = r#"{"task_id": "CUDA/31", "schema_version": 2, "prompt": "Add.",
"context_files": [{"path": "a.h", "content": "void add();"}],
"test_files": [{"path": "test/main.cu", "content": "int main() {}"}],
"build_command": "nvcc -o test.out solution.cu", "test_command": "./test.out",
"benchmark_command": "./test.out --perf", "timeout_seconds": 60.0,
"baseline_solution": {"type": "file", "files": [{"path": "solution.cu", "content": "x"}]}}"#;

const PROGRAM: &str = "import os
# EVOLVE-BLOCK-START
x = 1
# EVOLVE-BLOCK-END
y = 2
";

const OPERATOR: &str = "@@ add.py
import torch
import triton
def add(a, b):
    return a + b

@RULE@

def test_add():
    a = torch.randn(4, device='cuda')
    return {'test_case_1': add(a, a)}

result_gold = test_add()
";

pub(super) fn task_seeds() -> Vec<Vec<u8>> {
    let line = |text: &str| text.replace('\n', " ");
    let flashinfer = format!(
        "@@ definitions/norm/scale.json\n{DEFINITION}\n@@ workloads/norm/scale.jsonl\n{}\n",
        line(WORKLOAD)
    );
    let sol = format!(
        "@@ scale/definition.json\n{DEFINITION}\n@@ scale/workload.jsonl\n{}\n",
        line(
            r#"{"uuid": "a", "axes": {"batch": 7}, "inputs": {"x": {"type": "random"},
            "eps": {"type": "scalar", "value": 1e-5}},
            "tolerance": {"max_atol": 0.001, "max_rtol": 0.02}}"#
        )
    );
    let problem = format!("@@ 2026-1/problems.jsonl\n{}\n", line(PROBLEM));
    let research = "@@ a/program.md\nGo on.\n@@ a/train.py\nprint(1)\n@@ a/prepare.py\nx = 1\n";
    let evaluator = "@@ c/evaluator.py\ndef evaluate(program_path):\n    return {'score': 1.0}\n";
    let evolve = format!(
        "{evaluator}@@ c/initial_program.py\n{PROGRAM}@@ c/config.yaml\nevaluator:\n  timeout: 9\n"
    );
    let shinka = format!(
        "@@ c/evaluate.py\ndef main(program, results):\n    pass\n@@ c/initial.py\n{PROGRAM}"
    );
    let texts =
        [MODEL, MODEL, CONTEST, &flashinfer, &sol, ROBUST, &problem, research, &evolve, &shinka];
    let operator = OPERATOR.replace("@RULE@", &"#".repeat(100));
    texts
        .into_iter()
        .chain([&*operator])
        .enumerate()
        .map(|(at, text)| of_format(at, text))
        .collect()
}

pub(super) fn imported_task(bytes: &[u8]) -> bool {
    let (format, text) = format_and_text(bytes, &FORMATS);
    let mut files = TaskFiles { root: "/checkout".to_owned(), ..TaskFiles::default() };
    for part in text.split("@@ ").skip(1) {
        let (path, content) = part.split_once('\n').unwrap_or((part, ""));
        files.files.insert(path.to_owned(), content.as_bytes().to_vec());
    }
    !import_tasks(format, &files, &ImportOptions::default()).imported.is_empty()
}
