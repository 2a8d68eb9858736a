//! Tests of suites with commands, programs and scores.

use super::*;

const FUNC: &str = "
import torch
import torch.nn as nn

def forward_fn(x, weight, eps):
    return x * weight + eps

class Model(nn.Module):
    def __init__(self, features=4, init_method='standard'):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))

    def forward(self, x, fn=forward_fn):
        return fn(x, self.weight, 1e-5)

def get_inputs(rows: int = 2, features: int = 4):
    return [torch.randn(rows, features)]

input_names = ['x']
";

const SINGLE: &str = r#"{"single_input_configs": [{"rows": 8}], "single_init_configs": [{}],
    "single_shared_configs": [{"features": 16}], "multi_input_configs": [{}],
    "multi_init_configs": [{}], "multi_shared_configs": [{}]}"#;

fn robust(config: &str) -> Vec<(&str, &str)> {
    vec![
        ("tasks/own/layernorm/func_forward.py", FUNC),
        ("tasks/own/layernorm/config_forward.json", config),
    ]
}

#[test]
fn one_configuration_becomes_a_contract_and_several_become_tests() {
    let options = ImportOptions::default();
    let task = only(TaskFormat::RobustKbench, &robust(SINGLE), &options);
    assert_eq!((&*task.name, task.has_contract), ("own-layernorm", true));
    has(part(&task, "karve.toml"), &["shape = [8, 16]", "kind = \"normal\"", "name = \"x\""]);
    let end = "task_init(self, **json.loads(\"{\\\"features\\\":16}\"))";
    has(part(&task, "kernel.py"), &["ModelNew = Model\n", end]);
    has(part(&task, "reference.py"), &["task_get_inputs(**json.loads("]);
    let several = SINGLE.replace(
        "\"multi_input_configs\": [{}]",
        "\"multi_input_configs\": [{\"rows\": 1}, {\"rows\": 2}]",
    );
    let several = several.replace(
        "\"multi_shared_configs\": [{}]",
        "\"multi_shared_configs\": [{\"features\": 3}, {\"features\": 5}]",
    );
    let task = only(TaskFormat::RobustKbench, &robust(&several), &options);
    assert_eq!((task.has_contract, task.n_cases), (false, 1));
    let listed: serde_json::Value = serde_json::from_str(part(&task, "karve/task.json")).unwrap();
    assert_eq!(listed["tests"].as_array().unwrap().len(), 4);
    assert_eq!(listed["cases"][0]["init"]["features"], 16);
}

#[test]
fn malformed_configurations_say_what_is_wrong() {
    let of = |files: Vec<(&str, &str)>| refused(TaskFormat::RobustKbench, &files);
    has(&of(robust("{\"single_input_configs\": 3}")), &["config_forward.json:"]);
    has(&of(robust(SINGLE)[..1].to_vec()), &["there is no config_forward.json beside it"]);
    let text = FUNC.replace("forward_fn", "go");
    let files = vec![("a/func_forward.py", text.as_str()), ("a/config_forward.json", SINGLE)];
    has(&of(files), &["does not define forward_fn"]);
}

const PROBLEM: &str = r#"{"type": "cuda_cpp", "schema_version": 2, "task_id": "CUDA/31",
    "prompt": "Add.", "group": "cccl", "metadata": {"tags": []},
    "context_files": [{"path": "include/add.h", "content": "void add();"}],
    "test_files": [{"path": "test/test_main.cu", "content": "int main() {}"}],
    "build_command": "nvcc -o test.out solution.cu ${FLAGS} {a}", "test_command": "./test.out",
    "benchmark_command": "./test.out --perf", "timeout_seconds": 60.0,
    "timing_mode": {"type": "region", "include": ["bench_region"]},
    "baseline_solution": {"type": "file", "files": [{"path": "solution.cu", "content": "x"}]}}"#;

#[test]
fn a_problem_with_commands_keeps_them() {
    let line = PROBLEM.replace('\n', " ");
    let files = [("2026-1/problems.jsonl", line.as_str())];
    let task = only(TaskFormat::Computeeval, &files, &ImportOptions::default());
    assert_eq!((&*task.name, task.has_contract), ("CUDA-31", false));
    has(
        part(&task, "karve.toml"),
        &[
            "build = \"nvcc -o test.out solution.cu ${FLAGS} {{a}}\"",
            "bench = \"./test.out --perf\"",
            "name = \"wall_time\"",
            "command_s = 60",
            "editable = [\"solution.cu\"]",
            "that of a part, `region`",
        ],
    );
    assert_eq!(part(&task, "include/add.h"), "void add();");
    let spec = "task_id: CUDA/7\nproblem_type: cuda_python\ntest_command: python test/main.py\n";
    let files = [
        ("CUDA-7/problem-spec.yaml", spec),
        ("CUDA-7/context/lib.py", "a"),
        ("CUDA-7/test/main.py", "b"),
        ("CUDA-7/solution/solution.py", "c"),
    ];
    let task = only(TaskFormat::Computeeval, &files, &ImportOptions::default());
    has(part(&task, "karve.toml"), &["editable = [\"solution.py\"]", "the test is measured"]);
    assert_eq!((part(&task, "lib.py"), part(&task, "test/main.py")), ("a", "b"));
}

#[test]
fn malformed_problems_say_what_is_wrong() {
    let of = |from: &str, to: &str| {
        let line = PROBLEM.replace('\n', " ").replace(from, to);
        refused(TaskFormat::Computeeval, &[("problems.jsonl", &line)])
    };
    has(&of("\"test_command\"", "\"tests\""), &["missing field `test_command`"]);
    has(&of("include/add.h", "../../etc/x"), &["the path `../../etc/x` cannot be used"]);
    has(&of("\"baseline_solution\"", "\"baseline\""), &["no solution to start from"]);
}

const EVALUATOR: &str = "def evaluate(program_path):\n    return {'combined_score': 1.0}\n";
const PROGRAM: &str = "import os\n# EVOLVE-BLOCK-START\nx = 1\n# EVOLVE-BLOCK-END\ny = 2\n";

#[test]
fn a_program_may_change_in_its_blocks_only() {
    let files = [
        ("circle/evaluator.py", EVALUATOR),
        ("circle/initial_program.py", PROGRAM),
        ("circle/README.md", "words\n"),
        ("circle/config.yaml", "max_iterations: 3\nevaluator:\n  timeout: 90\n"),
    ];
    let task = only(TaskFormat::Openevolve, &files, &ImportOptions::default());
    assert_eq!(&*task.name, "circle");
    has(
        part(&task, "karve.toml"),
        &[
            "build = \"python3 karve/score.py check\"",
            "better = \"higher\"",
            "editable = [\"initial_program.py\"]",
            "command_s = 90",
            "Only the 1 EVOLVE block(s)",
        ],
    );
    assert_eq!((part(&task, "karve/original"), part(&task, "TASK.md")), (PROGRAM, "words\n"));
    let files = [("go/evaluate.py", "main()\n"), ("go/initial.go", "// EVOLVE-BLOCK-START\n")];
    has(&refused(TaskFormat::Shinka, &files), &["its last EVOLVE block is not closed"]);
    has(&refused(TaskFormat::Shinka, &files[..1]), &["there is no initial.* beside it"]);
    let text = "! EVOLVE-BLOCK-START\n! EVOLVE-BLOCK-END\n";
    let files = [("f/evaluate.py", "main()\n"), ("f/initial.f90", text)];
    let task = only(TaskFormat::Shinka, &files, &ImportOptions::default());
    has(part(&task, "karve/task.json"), &["\"form\": \"shinka\"", "\"blocks\": true"]);
}

#[test]
fn research_has_one_file_and_one_number() {
    let files = [("program.md", "prose\n"), ("train.py", "x\n"), ("prepare.py", "y\n")];
    let task = only(TaskFormat::Autoresearch, &files, &ImportOptions::default());
    has(
        part(&task, "karve.toml"),
        &["editable = [\"train.py\"]", "better = \"lower\"", "command_s = 600"],
    );
    has(part(&task, "karve/task.json"), &["\"metric\": \"val_bpb\"", "uv run train.py"]);
    has(&refused(TaskFormat::Autoresearch, &files[..2]), &["there is no prepare.py"]);
    let manifest = "target_file = \"a.py\"\neval_command = \"python3 a.py\"\n\
        metric_name = \"score\"\nmetric_direction = \"maximize\"\ntime_budget = 30\n";
    let files = [("autoresearch.toml", manifest), ("a.py", "z\n")];
    let task = only(TaskFormat::Autoresearch, &files, &ImportOptions::default());
    has(part(&task, "karve.toml"), &["better = \"higher\"", "command_s = 30"]);
    let wrong = manifest.replace("maximize", "sideways");
    let files = [("autoresearch.toml", wrong.as_str()), ("a.py", "z\n")];
    has(&refused(TaskFormat::Autoresearch, &files), &["`sideways` is not a direction"]);
    let files = [("autoresearch.toml", "target_file = 3"), ("a.py", "z\n")];
    has(&refused(TaskFormat::Autoresearch, &files), &["autoresearch.toml:"]);
}

#[test]
fn an_operator_with_its_test_is_split() {
    let rule = "#".repeat(146);
    let text = format!(
        "import torch\n\ndef add(x): return x\n\n{rule}\n\ndef test_add():\n    \
         return {{'a': add(1)}}\n\nresult_gold = test_add()\n"
    );
    let files = [("G/add_example.py", text.as_str()), ("G/other.py", "x = 1\n")];
    let task = only(TaskFormat::Tritonbench, &files, &ImportOptions::default());
    assert_eq!((&*task.name, task.has_contract), ("add_example", false));
    assert_eq!(part(&task, "kernel.py"), "import torch\n\ndef add(x): return x\n");
    assert!(!part(&task, "tests.py").contains("result_gold"));
    has(part(&task, "karve/task.json"), &["\"entry\": \"test_add\"", "\"form\": \"suite\""]);
    let text = text.replace("def test_add", "def check_add");
    has(&refused(TaskFormat::Tritonbench, &[("a.py", &text)]), &["there is no test function"]);
}
