//! KernelBench, and suites of the same form: one Python file with `Model`, `get_inputs` and
//! `get_init_inputs`. Inputs that are plain draws become those of a contract.

use super::draft::{
    ContractDraft, JudgedBy, ProjectDraft, ProjectPart, RUN_PATH, arg, draw_value, task_file,
    tolerance, tolerance_json,
};
use super::names::{dir_of, plain_name, stem_of};
use super::python::{PyValue, PythonSource, StaticReader};
use super::{FoundTask, ImportOptions, TaskFiles};
use crate::detect;
use karve_numerics::tensor::Dtype;
use serde_json::{Value as Json, json};
use toml::{Table, Value};

/// The one case of a task.
pub(super) const CASE: &str = "as given";
/// The name of the same case where a command prints it.
const PRINTED_CASE: &str = "as-given";

/// The function that returns several sets of inputs, and the most that are measured.
const GROUPS: &str = "def get_input_groups";
const GROUPS_MAX: usize = 200;

/// Several sets of inputs, which a file next to the task lists.
struct InputGroups {
    n: usize,
    file: ProjectPart,
}

/// What the inputs of a task are.
pub(super) enum TaskInputs {
    /// Draws, with all that karve needs.
    Drawn(Vec<Table>),
    /// Draws whose sizes are known only when the file is run: why.
    Asked(String),
    /// Something that only the task's code makes: what.
    Made(String),
}

/// All tasks of some files.
pub(super) fn find(files: &TaskFiles, options: &ImportOptions, suite: &str) -> Vec<FoundTask> {
    let is_task = |text: &str| {
        text.contains("class Model") && ["def get_inputs", GROUPS].iter().any(|n| text.contains(n))
    };
    let tasks = files.ending(".py").filter(|(_, text)| is_task(text));
    tasks
        .map(|(path, text)| {
            let name = name_of(path);
            let groups = groups_of(files, path, text);
            let draft = draft_of(path, text, groups, options);
            FoundTask { title: format!("`{path}` of {suite}."), draft, name }
        })
        .collect()
}

/// The sets of inputs of a task that has several: one for each line of a file next to it.
fn groups_of(files: &TaskFiles, path: &str, text: &str) -> Option<InputGroups> {
    if !text.contains(GROUPS) {
        return None;
    }
    let listed = format!("{}.json", path.trim_end_matches(".py"));
    let lines = files.text(&listed)?;
    let n = lines.lines().filter(|line| !line.trim().is_empty()).count().min(GROUPS_MAX);
    let name = listed.rsplit_once('/').map_or(listed.as_str(), |(_, name)| name);
    (n > 0).then(|| InputGroups { n, file: ProjectPart::text(name, lines) })
}

/// `level1/23_Softmax.py` is `level1-23_Softmax`.
fn name_of(path: &str) -> String {
    let dir = dir_of(path);
    let dir = dir.rsplit_once('/').map_or(dir, |(_, last)| last);
    match dir {
        "" => plain_name(stem_of(path)),
        dir => plain_name(&format!("{dir}-{}", plain_name(stem_of(path)))),
    }
}

fn draft_of(
    path: &str,
    text: &str,
    groups: Option<InputGroups>,
    options: &ImportOptions,
) -> Result<ProjectDraft, String> {
    let name = &name_of(path);
    let source = PythonSource::parse(text).ok_or("it cannot be parsed")?;
    if !source.is_whole() {
        return Err("it is not valid Python".into());
    }
    let has_inputs = groups.is_some() || source.function("get_inputs").is_some();
    let parts = [(source.class("Model").is_some(), "class Model"), (has_inputs, "get_inputs")];
    for (found, what) in parts {
        if !found {
            return Err(format!("it does not define {what} at its top"));
        }
    }
    let mut notes = notes_on(text, options);
    let mut files = parts_of(text, options);
    let inputs = match &groups {
        Some(_) => TaskInputs::Made(format!("`{GROUPS}`")),
        None => inputs_of(&source, options),
    };
    let cases = groups.as_ref().map_or_else(
        || json!([{ "name": PRINTED_CASE }]),
        |groups| {
            (0..groups.n).map(|n| json!({ "name": format!("group{n}"), "group": n })).collect()
        },
    );
    files.extend(groups.map(|groups| groups.file));
    let [atol, rtol] = usual_tolerance(options.dtype);
    let task = json!({
        "form": "models", "reference": "reference.py", "kernel": "kernel.py",
        "device": options.device_name(), "tolerance": tolerance_json(atol, rtol),
        "tests": [], "cases": cases,
    });
    let mut draft = match &inputs {
        TaskInputs::Made(what) => {
            notes.push(format!(
                "No contract: the inputs are made by the task's own code, {what}, and karve has \
                 no draw for that. {RUN_PATH} makes them in a process of its own."
            ));
            ProjectDraft::by_script(name, options, &task)
        }
        TaskInputs::Asked(why) => {
            notes.push(format!(
                "Not determined by reading: {why}. Types, shapes and ranges of the inputs are \
                 asked of the file when a campaign starts."
            ));
            contract_draft(name, contract_of(text, &[], options), &task)
        }
        TaskInputs::Drawn(args) => contract_draft(name, contract_of(text, args, options), &task),
    };
    notes.push(format!(
        "The task's tolerance, {atol:e} + {rtol:e} * |reference|, is the loosest that is \
         accepted; a candidate's error is also compared with the incumbent's."
    ));
    draft.op = detect::operation_of(path);
    draft.editable = vec!["kernel.py".into()];
    draft.notes = notes;
    draft.files.extend(files);
    Ok(draft)
}

/// The contract of a model, with declared arguments if they are known.
pub(super) fn contract_of(text: &str, args: &[Table], options: &ImportOptions) -> JudgedBy {
    let [atol, rtol] = usual_tolerance(options.dtype);
    JudgedBy::Contract(ContractDraft {
        python: "kernel.py".into(),
        keys: vec![
            ("style", Value::String("models".into())),
            ("inputs", Value::String("from-module".into())),
            ("tolerance", tolerance(atol, rtol)),
        ],
        args: args.to_vec(),
        reference: "reference.py".into(),
        is_native: names_types(text),
    })
}

/// A project whose one case is called by karve.
pub(super) fn contract_draft(name: &str, judged: JudgedBy, task: &Json) -> ProjectDraft {
    ProjectDraft {
        name: name.to_owned(),
        op: name.to_owned(),
        backend: ["pytorch".into(), "Python".into()],
        constraints: Vec::new(),
        editable: Vec::new(),
        judged,
        cases: vec![super::draft::CaseDraft { name: CASE.into(), params: Vec::new() }],
        command_s: None,
        notes: Vec::new(),
        files: vec![task_file(task)],
    }
}

/// The tolerance that KernelBench has for a type.
pub(super) fn usual_tolerance(dtype: Option<Dtype>) -> [f64; 2] {
    match dtype {
        None | Some(Dtype::F32 | Dtype::F64) => [1e-4, 1e-4],
        Some(_) => [1e-2, 1e-2],
    }
}

/// What a reader of the results must know.
fn notes_on(text: &str, options: &ImportOptions) -> Vec<String> {
    let mut notes = Vec::new();
    if keeps_mode(text) {
        notes.push(
            "The models stay in training mode, as KernelBench measures them: BatchNorm uses the \
             statistics of the batch."
                .into(),
        );
    }
    if text.contains("Dropout") {
        notes.push(
            "It has Dropout, which is random in training mode: it is off here, while KernelBench \
             leaves it on."
                .into(),
        );
    }
    if text.contains("from_pretrained") {
        notes.push(
            "It loads weights from a hub: they must be in a cache that sandbox.read names.".into(),
        );
    }
    if let Some(dtype) = options.dtype {
        notes.push(format!("Inputs and weights are converted to {}.", torch_name(dtype)));
    }
    notes
}

/// Whether the mode of a model matters and is not random.
fn keeps_mode(text: &str) -> bool {
    text.contains("BatchNorm") && !text.contains("Dropout")
}

/// Whether a file converts between types itself, so that it cannot compute in float64.
fn names_types(text: &str) -> bool {
    let words = ["float32", "float16", "bfloat16", ".half(", ".float(", "from_pretrained"];
    let in_model = text.split("def get_inputs").next().unwrap_or(text);
    words.iter().any(|word| in_model.contains(word))
}

/// `reference.py` and `kernel.py`.
fn parts_of(text: &str, options: &ImportOptions) -> Vec<ProjectPart> {
    let text = text.trim_end();
    let end = |class: &str| trailer(text, class, options);
    let kernel = detect::model_as_kernel(text);
    vec![
        ProjectPart::text("reference.py", format!("{text}\n{}", end("Model"))),
        ProjectPart::text("kernel.py", format!("{kernel}\n{}", end("ModelNew"))),
    ]
}

/// What is added to a file: the type, and the mode.
fn trailer(text: &str, class: &str, options: &ImportOptions) -> String {
    let dtype = options.dtype.map(torch_name);
    if dtype.is_none() && !keeps_mode(text) {
        return String::new();
    }
    // The class keeps its name: its own code may refer to it by that.
    let mut out = String::from("\n\n# Added by \"karve import\".\n");
    if keeps_mode(text) {
        out.push_str("# As KernelBench measures it: in training mode.\n");
        out.push_str(&format!("{class}.eval = lambda self: self\n"));
    }
    if let Some(dtype) = dtype {
        out.push_str(&format!(
            "task_init = {class}.__init__\n\n\ndef init_converted(self, *args, **kwargs):\n    \
             task_init(self, *args, **kwargs)\n    self.to(torch.{dtype})\n\n\n\
             {class}.__init__ = init_converted\n"
        ));
        if class == "Model" {
            out.push_str(&format!(
                "task_get_inputs = get_inputs\n\n\ndef get_inputs():\n    \
                 is_number = lambda x: hasattr(x, \"is_floating_point\") and \
                 x.is_floating_point()\n    \
                 return [x.to(torch.{dtype}) if is_number(x) else x for x in task_get_inputs()]\n"
            ));
        }
    }
    out
}

/// The name that PyTorch has for a type.
pub(super) fn torch_name(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::F64 => "float64",
        Dtype::F32 => "float32",
        Dtype::F16 => "float16",
        Dtype::Bf16 => "bfloat16",
        Dtype::F8E4m3 => "float8_e4m3fn",
        Dtype::F8E5m2 => "float8_e5m2",
        other => other.name(),
    }
}

/// The inputs that `get_inputs` returns, as far as reading it shows them.
fn inputs_of(source: &PythonSource<'_>, options: &ImportOptions) -> TaskInputs {
    let values = match StaticReader::new(source).result_of("get_inputs", &[]) {
        PyValue::List(values) => values,
        PyValue::Tensor(one) => vec![PyValue::Tensor(one)],
        other => return TaskInputs::Made(other.reason()),
    };
    let forward = source.method("Model", "forward");
    let mut names = forward.map(|one| source.parameters(one)).unwrap_or_default();
    names.retain(|name| name != "self");
    args_of(&values, &names, options.dtype)
}

/// The arguments of a contract for some values.
pub(super) fn args_of(values: &[PyValue], names: &[String], dtype: Option<Dtype>) -> TaskInputs {
    let mut args: Vec<Table> = Vec::new();
    let mut vague = None;
    for (at, value) in values.iter().enumerate() {
        let own = names.get(at).filter(|name| !name.starts_with('*'));
        let name = own.cloned().unwrap_or_else(|| format!("in{at}"));
        match value {
            PyValue::Tensor(tensor) => {
                let to = dtype.filter(|_| tensor.dtype.is_float());
                let dtype = to.unwrap_or(tensor.dtype);
                if tensor.draw.complaint(dtype).is_some() || tensor.shape.is_empty() {
                    vague = Some(format!("the draw of `{name}`"));
                    continue;
                }
                let mut table = arg(&name, "input", dtype.name());
                let shape = tensor.shape.iter().map(|n| Value::Integer(*n as i64)).collect();
                table.insert("shape".into(), Value::Array(shape));
                table.insert("draw".into(), draw_value(&tensor.draw));
                args.push(table);
            }
            PyValue::Int(_) | PyValue::Float(_) | PyValue::Bool(_) => {
                let (dtype, text) = match value {
                    PyValue::Float(number) => ("f64", format!("{number:?}")),
                    PyValue::Int(number) => ("i64", number.to_string()),
                    other => ("i64", i64::from(*other == PyValue::Bool(true)).to_string()),
                };
                let mut table = arg(&name, "scalar", dtype);
                table.insert("value".into(), Value::String(text));
                args.push(table);
            }
            PyValue::Vague(why) => vague = Some(why.clone()),
            other => return TaskInputs::Made(other.reason()),
        }
    }
    match vague {
        Some(why) => TaskInputs::Asked(why),
        None => TaskInputs::Drawn(args),
    }
}
