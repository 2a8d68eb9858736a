//! Tests of what an import writes.

mod suites;

use super::*;

/// Files of a checkout.
pub(super) fn checkout(files: &[(&str, &str)]) -> TaskFiles {
    let files = files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
    TaskFiles { root: "/data".into(), files: files.collect(), unread: Vec::new() }
}

/// The text of a file of a task.
#[track_caller]
pub(super) fn part<'t>(task: &'t ImportedTask, path: &str) -> &'t str {
    let file = task.files.iter().find(|file| file.path == path);
    std::str::from_utf8(&file.unwrap_or_else(|| panic!("no {path}")).bytes).unwrap()
}

/// The only task of a checkout.
#[track_caller]
pub(super) fn only(
    format: TaskFormat,
    files: &[(&str, &str)],
    options: &ImportOptions,
) -> ImportedTask {
    let mut result = import_tasks(format, &checkout(files), options);
    assert_eq!((result.imported.len(), &result.refused), (1, &Vec::new()));
    result.imported.remove(0)
}

/// Why the only task of a checkout is refused.
#[track_caller]
pub(super) fn refused(format: TaskFormat, files: &[(&str, &str)]) -> String {
    let mut result = import_tasks(format, &checkout(files), &ImportOptions::default());
    assert_eq!((result.imported.len(), result.refused.len()), (0, 1), "{result:?}");
    result.refused.remove(0).why
}

#[track_caller]
pub(super) fn has(text: &str, pieces: &[&str]) {
    for piece in pieces {
        assert!(text.contains(piece), "{piece} in\n{text}");
    }
}

const TASK: &str = "
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, features, eps=1e-5):
        super(Model, self).__init__()
        self.norm = nn.BatchNorm1d(features)

    def forward(self, x, mask):
        return self.norm(x) * mask

rows, features = 2 ** 5, 64

def get_inputs():
    return [torch.rand(rows, features) * 2 - 1, torch.randint(0, 2, (rows, 1)).bool()]

def get_init_inputs():
    return [features]
";

#[test]
fn a_model_with_plain_draws_becomes_a_contract() {
    let files = [("level1/7_Norm_.py", TASK), ("level1/notes.py", "x = 1\n")];
    let task = only(TaskFormat::Kernelbench, &files, &ImportOptions::default());
    assert_eq!((&*task.name, task.has_contract, task.n_cases), ("level1-7_Norm", true, 1));
    has(
        part(&task, "karve.toml"),
        &[
            "op = \"7_norm_\"",
            "style = \"models\"",
            "inputs = \"from-module\"",
            "tolerance = { absolute = 0.0001, relative = 0.0001 }",
            "{ name = \"x\", kind = \"input\", dtype = \"f32\", shape = [32, 64], \
             draw = { kind = \"uniform\", high = 1.0, low = -1.0 } }",
            "{ name = \"mask\", kind = \"input\", dtype = \"bool\", shape = [32, 1]",
            "editable = [\"kernel.py\"]",
            "[baselines.eager]\npython = \"reference.py\"",
            "[baselines.compile]\ncompile = \"default\"",
        ],
    );
    has(part(&task, "kernel.py"), &["ModelNew.eval = lambda", "super(ModelNew, self)"]);
    has(part(&task, "reference.py"), &["Model.eval = lambda self: self", "in training mode"]);
    has(part(&task, "README.md"), &["statistics of the batch", "`level1/7_Norm_.py`"]);
}

#[test]
fn a_type_is_applied_to_inputs_and_weights() {
    let options = ImportOptions { dtype: Some(Dtype::Bf16), ..ImportOptions::default() };
    let task = only(TaskFormat::Kernelbench, &[("a.py", TASK)], &options);
    let config = part(&task, "karve.toml");
    has(config, &["dtype = \"bf16\"", "dtype = \"bool\"", "absolute = 0.01, relative = 0.01"]);
    has(
        part(&task, "reference.py"),
        &["Model.__init__ = init_converted", "task_get_inputs = get_inputs"],
    );
    has(part(&task, "kernel.py"), &["self.to(torch.bfloat16)"]);
}

#[test]
fn inputs_that_only_code_makes_stay_with_the_task() {
    let text = TASK.replace("torch.rand(rows, features) * 2 - 1", "torch.triu(torch.rand(4, 4))");
    let files = [("norm/layer.py", text.as_str())];
    let task = only(TaskFormat::Multikernelbench, &files, &ImportOptions::default());
    assert!(!task.has_contract);
    has(
        part(&task, "karve.toml"),
        &[
            "No contract",
            "test = \"python3 karve/run.py test\"",
            "bench = \"python3 karve/run.py bench {case}\"",
            "name = \"as-given\"",
        ],
    );
    has(part(&task, "karve/task.json"), &["\"form\": \"models\"", "\"relative\": 0.0001"]);
    has(part(&task, "karve/run.py"), &["def compare"]);
}

#[test]
fn sizes_that_reading_does_not_show_are_asked_later() {
    let text = TASK.replace("rows, features = 2 ** 5, 64", "rows = config.rows\nfeatures = 64");
    let task = only(TaskFormat::Kernelbench, &[("a.py", &text)], &ImportOptions::default());
    assert!(task.has_contract && !part(&task, "karve.toml").contains("args"));
    has(&task.notes.join(" "), &["Not determined by reading: `config.rows`"]);
}

#[test]
fn a_broken_model_is_refused_with_the_reason() {
    let broken = TASK.replace("def get_inputs():", "def get_inputs(:");
    assert_eq!(refused(TaskFormat::Kernelbench, &[("a.py", &broken)]), "it is not valid Python");
    let inner = TASK.replace("def get_inputs", "class X:\n  pass\n  def get_inputs");
    let inner = inner.replace("    return [torch.rand", "      return [torch.rand");
    let why = refused(TaskFormat::Kernelbench, &[("a.py", &inner)]);
    assert_eq!(why, "it does not define get_inputs at its top");
}

#[test]
fn equal_names_get_numbers() {
    let files = checkout(&[("a/x/t.py", TASK), ("b/x/t.py", TASK)]);
    let result = import_tasks(TaskFormat::Kernelbench, &files, &ImportOptions::default());
    let names: Vec<&str> = result.imported.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["x-t", "x-t-2"]);
}

#[test]
fn several_sets_of_inputs_are_several_cases() {
    let text = TASK.replace("def get_inputs():", "def get_input_groups():");
    let files = [("level0/10_relu.py", text.as_str()), ("level0/10_relu.json", "{}\n{}\n\n")];
    let task = only(TaskFormat::Multikernelbench, &files, &ImportOptions::default());
    assert_eq!((task.has_contract, task.n_cases), (false, 2));
    assert_eq!(part(&task, "10_relu.json"), "{}\n{}\n\n");
    has(part(&task, "karve/task.json"), &["\"group\": 1", "\"name\": \"group0\""]);
    let why = refused(TaskFormat::Multikernelbench, &files[..1]);
    assert_eq!(why, "it does not define get_inputs at its top");
}

const TASK_YML: &str = r#"
# name: scale
files:
  - {"name": "submission.py", "source": "@SUBMISSION@"}
  - {"name": "task.py", "source": "task.py"}
  - {"name": "eval.py", "source": "../eval.py"}
  - {"name": "reference.py", "source": "reference.py"}
lang: "py"
description: |
  Scale the rows.

  More words.
config:
  main: "eval.py"
templates:
  Python: "template.py"
test_timeout: 60
ranked_timeout: 90
tests:
  - {"size": 5, "seed": 1, "nomask": True, "kind": "normal"}
  - {"size": 6, "seed": 2, "nomask": False, "kind": "normal"}
benchmarks:
  - {"size": 100, "seed": 3, "nomask": False, "kind": "normal"}
  - {"size": 100, "seed": 4, "nomask": False, "kind": "normal"}
"#;

const REFERENCE: &str = "def generate_input(size, seed, nomask, kind): pass\n\
    def ref_kernel(data): pass\ndef check_implementation(data, output): return True, ''\n";

fn gpumode(yml: &str) -> Vec<(String, String)> {
    let files = [
        ("set/scale_py/task.yml", yml),
        ("set/scale_py/task.py", "x = 1\n"),
        ("set/scale_py/reference.py", REFERENCE),
        ("set/scale_py/template.py", "def custom_kernel(data):\n    pass\n"),
        ("set/eval.py", "import re\nre.match(a, b)\n"),
    ];
    files.map(|(path, text)| (path.to_owned(), text.to_owned())).to_vec()
}

fn borrowed(files: &[(String, String)]) -> Vec<(&str, &str)> {
    files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect()
}

#[test]
fn a_contest_task_keeps_its_tests_as_the_gate_and_its_benchmarks_as_the_score() {
    let files = gpumode(TASK_YML);
    let task = only(TaskFormat::Gpumode, &borrowed(&files), &ImportOptions::default());
    assert_eq!((&*task.name, task.has_contract, task.n_cases), ("set-scale_py", false, 2));
    has(
        part(&task, "karve.toml"),
        &[
            "{ name = \"size=100,nomask=false,kind=normal\", kind = \"normal\", \
             nomask = \"false\", size = 100 }",
            "name = \"size=100,nomask=false,kind=normal#2\"",
            "command_s = 150",
            "constraints = [\"Scale the rows.\"]",
            "reads nomask as a string",
            "counts only the last benchmark",
            "calls the reference",
        ],
    );
    let listed = part(&task, "karve/task.json");
    has(listed, &["\"name\": \"test:size=6,nomask=false,kind=normal\"", "\"nomask\": false"]);
    has(part(&task, "submission.py"), &["return ref_kernel(data)"]);
    assert_eq!(part(&task, "eval.py"), "import re\nre.match(a, b)\n");
}

#[test]
fn a_submission_that_works_is_the_start() {
    let mut files = gpumode(&TASK_YML.replace("lang:", "ranking_by: geom\nlang:"));
    let own = "def custom_kernel(data):\n    return data[0]\n";
    files.push(("set/scale_py/submission.py".into(), own.into()));
    let task = only(TaskFormat::Gpumode, &borrowed(&files), &ImportOptions::default());
    assert_eq!(part(&task, "submission.py"), own);
    assert!(!task.notes.iter().any(|note| note.contains("last benchmark")));
}

#[test]
fn a_task_on_several_devices_is_run_by_its_own_evaluation() {
    let files = gpumode(&TASK_YML.replace("lang:", "multi_gpu: true\nlang:"));
    let task = only(TaskFormat::Gpumode, &borrowed(&files), &ImportOptions::default());
    has(part(&task, "karve.toml"), &["karve/popcorn.py bench {case}", "official eval.py"]);
    has(part(&task, "karve/popcorn.py"), &["POPCORN_FD"]);
}

#[test]
fn malformed_contest_tasks_say_what_is_wrong() {
    let of = |from: &str, to: &str| {
        refused(TaskFormat::Gpumode, &borrowed(&gpumode(&TASK_YML.replace(from, to))))
    };
    has(&of("files:", "fils:"), &["task.yml:", "files"]);
    has(&of("lang: \"py\"", "lang: \"cu\""), &["only `lang: py`"]);
    has(&of("../eval.py", "../none.py"), &["its file `../none.py` is not there"]);
    has(&of("\"task.py\", \"source\"", "\"../task.py\", \"source\""), &["cannot be used"]);
    has(&of("@SUBMISSION@", "task.py"), &["no file has the source @SUBMISSION@"]);
    has(&of("benchmarks:", "benches:"), &["1 to 200 benchmarks"]);
    has(&of("tests:\n  -", "tests: 3\nx:\n  -"), &["task.yml:"]);
    let mut files = gpumode(TASK_YML);
    files[2].1 = "def ref_kernel(data): pass\n".into();
    has(&refused(TaskFormat::Gpumode, &borrowed(&files)), &["does not define generate_input"]);
}
