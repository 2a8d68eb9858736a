//! Tests of definitions and workloads of our own.

use super::super::tests::{checkout, has, only, part, refused};
use super::super::{ImportOptions, TaskFormat, import_tasks};

const GEMM: &str = r#"{"name": "gemm_n64_k32", "op_type": "gemm", "description": "a product",
    "axes": {"M": {"type": "var"}, "N": {"type": "const", "value": 64},
             "K": {"type": "const", "value": 32}},
    "inputs": {"B": {"shape": ["N", "K"], "dtype": "float16"},
               "A": {"shape": ["M", "K"], "dtype": "float16"},
               "scale": {"shape": null, "dtype": "float32"}},
    "outputs": {"C": {"shape": ["M", "N"], "dtype": "float16"}},
    "tags": ["status:ok"], "constraints": ["M > 0"],
    "reference": "import torch\n\ndef run(B, A, scale):\n    return scale * (A @ B.T)"}"#;

/// Two workloads, each on one line, and one of another definition.
fn lines() -> String {
    let of = |scale: &str| {
        let text = r#"{"definition": "gemm_n64_k32", "solution": null, "evaluation": null,
            "workload": {"uuid": "a", "axes": {"M": 8}, "inputs": {"A": {"type": "random"},
            "B": {"type": "random"}, "scale": {"type": "scalar", "value": SCALE}}}}"#;
        text.replace("SCALE", scale).replace('\n', " ")
    };
    let other = r#"{"definition": "other", "workload": {"uuid": "c", "axes": {}, "inputs": {}}}"#;
    format!("{}\n{}\n{other}\n", of("0.5"), of("2"))
}

fn trace(definition: &str) -> [(&'static str, String); 2] {
    [
        ("definitions/gemm/gemm_n64_k32.json", definition.to_owned()),
        ("workloads/gemm/gemm_n64_k32.jsonl", lines()),
    ]
}

#[test]
fn a_definition_with_random_inputs_becomes_a_contract() {
    let files = trace(GEMM);
    let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
    let task = only(TaskFormat::Flashinfer, &files, &ImportOptions::default());
    assert_eq!((&*task.name, task.has_contract, task.n_cases), ("gemm_n64_k32", true, 2));
    has(
        part(&task, "karve.toml"),
        &[
            "op = \"gemm\"",
            "constraints = [\"M > 0\"]",
            "shapes = \"listed\"",
            "reduction = \"32\"",
            "flops = \"2*M*64*32\"",
            "bytes = \"2*64*32 + 2*M*32 + 2*M*64\"",
            "  { name = \"B\", kind = \"input\", dtype = \"f16\", shape = [\"64\", \"32\"]",
            "{ name = \"scale\", kind = \"scalar\", dtype = \"f32\", value = \"scale\" }",
            "{ name = \"C\", kind = \"output\", dtype = \"f16\", shape = [\"M\", \"64\"] }",
            "{ name = \"M=8\", M = 8, scale = 0.5 }",
            "{ name = \"M=8#2\", M = 8, scale = 2 }",
            "precision = \"native\"",
            "tolerance = { absolute = 0.01, relative = 0.01 }",
        ],
    );
    has(part(&task, "kernel.py"), &["def run(B, A, scale)", "def kernel_fn(*args)"]);
    has(part(&task, "reference.py"), &["def reference_fn(*args)"]);
}

#[test]
fn tensors_from_files_stay_where_they_are() {
    let [definition, (path, lines)] = trace(GEMM);
    let file = r#"{"type": "safetensors", "path": "blob/a.safetensors", "tensor_key": "A"}"#;
    let lines = lines.replacen("{\"type\": \"random\"}", file, 1);
    let files = [(definition.0, definition.1.as_str()), (path, lines.as_str())];
    let task = only(TaskFormat::Flashinfer, &files, &ImportOptions::default());
    assert!(!task.has_contract);
    has(part(&task, "karve.toml"), &["read = [\"/data/blob/a.safetensors\"]", "comes from a file"]);
    has(part(&task, "karve/task.json"), &["\"rule\": \"both\"", "\"/data/blob/a.safetensors\""]);
    let outside = lines.replace("blob/a", "../../secret/a");
    let files = [(definition.0, definition.1.as_str()), (path, outside.as_str())];
    has(&refused(TaskFormat::Flashinfer, &files), &["outside the trace"]);
}

const SOL: &str = r#"{"name": "pool", "hf_id": "x", "axes": {"rows": {"type": "var"},
    "width": {"type": "const", "value": 16}, "all": {"type": "expr", "expression": "rows * width"},
    "twice": {"type": "expr", "expression": "all // 8"}},
    "inputs": {"x": {"shape": ["all"], "dtype": "bfloat16"}},
    "outputs": {"y": {"shape": ["twice"], "dtype": "bfloat16"}},
    "constraints": null, "custom_inputs_entrypoint": "make",
    "reference": "def run(x):\n    return x\n"}"#;

fn sol(input: &str) -> Vec<(&'static str, String)> {
    let line = format!(
        r#"{{"uuid": "u", "axes": {{"rows": 4}}, "inputs": {{"x": {{"type": "{input}"}}}},
        "tolerance": {{"max_atol": 0.001, "max_rtol": 0.02, "required_matched_ratio": 0.99}}}}"#
    );
    vec![
        ("L1/pool/definition.json", SOL.to_owned()),
        ("L1/pool/workload.jsonl", line.replace('\n', " ")),
        ("L1/pool/reference.py", "def run(x):\n    return x[::8]\n".to_owned()),
    ]
}

#[test]
fn computed_axes_and_tolerances_of_a_workload_are_kept() {
    let files = sol("random");
    let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (*p, t.as_str())).collect();
    let task = only(TaskFormat::SolExecbench, &files, &ImportOptions::default());
    assert!(task.has_contract);
    has(
        part(&task, "karve.toml"),
        &[
            "shape = [\"(rows * 16)\"]",
            "shape = [\"((rows * 16) // 8)\"]",
            "tolerance = { absolute = 0.001, relative = 0.02 }",
            "{ name = \"rows=4\", rows = 4 }",
        ],
    );
    has(part(&task, "reference.py"), &["x[::8]"]);
}

#[test]
fn inputs_of_a_custom_function_are_made_by_the_script() {
    let files = sol("custom");
    let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (*p, t.as_str())).collect();
    let task = only(TaskFormat::SolExecbench, &files, &ImportOptions::default());
    assert!(!task.has_contract);
    has(part(&task, "karve/task.json"), &["\"custom\": \"make\"", "\"all\": 64", "\"twice\": 8"]);
}

#[test]
fn malformed_definitions_say_what_is_wrong() {
    let of = |from: &str, to: &str| {
        let files = trace(&GEMM.replace(from, to));
        let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
        refused(TaskFormat::Flashinfer, &files)
    };
    has(&of("\"const\"", "\"constant\""), &["the definition", "unknown variant `constant`"]);
    has(&of("def run(", "def go("), &["its reference does not define run"]);
    has(&of("[\"M\", \"N\"]", "[\"M\", \"X\"]"), &["there is no axis `X`"]);
    has(&of("\"name\": \"gemm_n64_k32\"", "\"name\": \"x\""), &["it has no workloads"]);
    has(&of("\"N\": {", "\"Q\": {\"type\": \"var\"}, \"N\": {"), &["does not give the axis `Q`"]);
    let only_definition = checkout(&[("a/definition.json", SOL)]);
    let options = ImportOptions::default();
    let result = import_tasks(TaskFormat::SolExecbench, &only_definition, &options);
    has(&result.refused[0].why, &["there is no workload.jsonl"]);
}
