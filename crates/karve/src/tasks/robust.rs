//! robust-kbench: `func_forward.py` with `forward_fn`, `Model` and `get_inputs`, and
//! `config_forward.json` with the configurations that are scored and those that are only tested.

use super::draft::{JudgedBy, ProjectDraft, ProjectPart, RUN_PATH, tolerance_json};
use super::kernelbench::{TaskInputs, args_of, contract_draft, contract_of};
use super::names::{dir_of, plain_name};
use super::python::{PyValue, PythonSource, StaticReader};
use super::{FoundTask, ImportOptions, TaskFiles};
use karve_os::text::one_line;
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};

const SOURCE: &str = "func_forward.py";
const CONFIG: &str = "config_forward.json";
/// The tolerance of robust-kbench, absolute and relative.
const TOLERANCE: f64 = 1e-5;
/// Most combinations of configurations.
const COMBINATIONS_MAX: usize = 200;

/// Lists of settings; the cases are all combinations.
#[derive(Debug, Deserialize)]
struct RobustConfig {
    #[serde(default)]
    single_input_configs: Vec<Map<String, Json>>,
    #[serde(default)]
    single_init_configs: Vec<Map<String, Json>>,
    #[serde(default)]
    single_shared_configs: Vec<Map<String, Json>>,
    #[serde(default)]
    multi_input_configs: Vec<Map<String, Json>>,
    #[serde(default)]
    multi_init_configs: Vec<Map<String, Json>>,
    #[serde(default)]
    multi_shared_configs: Vec<Map<String, Json>>,
}

/// One combination: what goes to `get_inputs`, and to `Model`.
#[derive(Clone, Debug, PartialEq)]
struct RobustCase {
    inputs: Map<String, Json>,
    init: Map<String, Json>,
}

/// All tasks of some files.
pub(super) fn find(files: &TaskFiles, options: &ImportOptions) -> Vec<FoundTask> {
    let mut found = Vec::new();
    for (path, text) in files.ending(SOURCE) {
        let dir = dir_of(path);
        let parts: Vec<&str> = dir.rsplitn(3, '/').take(2).collect();
        let name = plain_name(&parts.into_iter().rev().collect::<Vec<_>>().join("-"));
        let config = files.text(&super::names::joined(dir, CONFIG));
        let draft = config
            .ok_or_else(|| format!("there is no {CONFIG} beside it"))
            .and_then(|config| draft_of(&name, text, config, options));
        found.push(FoundTask { title: format!("`{path}` of robust-kbench."), draft, name });
    }
    found
}

fn draft_of(
    name: &str,
    text: &str,
    config: &str,
    options: &ImportOptions,
) -> Result<ProjectDraft, String> {
    let source = PythonSource::parse(text).filter(PythonSource::is_whole);
    let source = source.ok_or("func_forward.py is not valid Python")?;
    for what in ["forward_fn", "get_inputs"] {
        if source.function(what).is_none() {
            return Err(format!("func_forward.py does not define {what}"));
        }
    }
    if source.class("Model").is_none() {
        return Err("func_forward.py does not define class Model".into());
    }
    let config: RobustConfig = serde_json::from_str(config)
        .map_err(|error| format!("{CONFIG}: {}", one_line(&error.to_string(), 200)))?;
    let c = &config;
    let single =
        product(&c.single_input_configs, &c.single_init_configs, &c.single_shared_configs)?;
    let multi = product(&c.multi_input_configs, &c.multi_init_configs, &c.multi_shared_configs)?;
    let tests: Vec<RobustCase> = multi.into_iter().filter(|one| !single.contains(one)).collect();
    let drawn = match &single[..] {
        [one] if tests.is_empty() || tests == [RobustCase::default()] => inputs_of(&source, one),
        _ => TaskInputs::Made("it is tested with several configurations".into()),
    };
    match (drawn, options.dtype) {
        (TaskInputs::Drawn(args), None) => {
            let judged = contract_of(text, &args, options);
            Ok(by_contract(name, text, judged, &single))
        }
        (TaskInputs::Made(why) | TaskInputs::Asked(why), _) => {
            Ok(by_script(name, text, &why, ([&single, &tests], options)))
        }
        (TaskInputs::Drawn(_), Some(_)) => {
            Ok(by_script(name, text, "inputs are converted", ([&single, &tests], options)))
        }
    }
}

impl RobustCase {
    fn default() -> Self {
        Self { inputs: Map::new(), init: Map::new() }
    }
}

/// All combinations; a list without any is one without settings.
fn product(
    inputs: &[Map<String, Json>],
    inits: &[Map<String, Json>],
    shared: &[Map<String, Json>],
) -> Result<Vec<RobustCase>, String> {
    let or_one = |list: &[Map<String, Json>]| match list {
        [] => vec![Map::new()],
        list => list.to_vec(),
    };
    let (inputs, inits, shared) = (or_one(inputs), or_one(inits), or_one(shared));
    if inputs.len().saturating_mul(inits.len()).saturating_mul(shared.len()) > COMBINATIONS_MAX {
        return Err(format!("{CONFIG} has more than {COMBINATIONS_MAX} combinations"));
    }
    let mut cases = Vec::new();
    for init in &inits {
        for input in &inputs {
            for both in &shared {
                let mut case = RobustCase { inputs: input.clone(), init: init.clone() };
                case.inputs.extend(both.clone());
                case.init.extend(both.clone());
                cases.push(case);
            }
        }
    }
    Ok(cases)
}

fn inputs_of(source: &PythonSource<'_>, case: &RobustCase) -> TaskInputs {
    let given: Vec<(String, PyValue)> =
        case.inputs.iter().map(|(name, value)| (name.clone(), value_of(value))).collect();
    let values = match StaticReader::new(source).result_of("get_inputs", &given) {
        PyValue::List(values) => values,
        other => return TaskInputs::Made(other.reason()),
    };
    let forward = source.method("Model", "forward");
    let mut names = forward.map(|one| source.parameters(one)).unwrap_or_default();
    names.retain(|name| name != "self");
    args_of(&values, &names, None)
}

fn value_of(value: &Json) -> PyValue {
    match (value, value.as_i64(), value.as_f64()) {
        (_, Some(n), _) => PyValue::Int(n),
        (_, None, Some(n)) => PyValue::Float(n),
        (Json::Bool(is), _, _) => PyValue::Bool(*is),
        (Json::String(text), _, _) => PyValue::Str(text.clone()),
        (Json::Array(list), _, _) => PyValue::List(list.iter().map(value_of).collect()),
        (other, _, _) => PyValue::Unknown(format!("`{}`", one_line(&other.to_string(), 60))),
    }
}

/// A contract: the one configuration is built into the files.
fn by_contract(name: &str, text: &str, judged: JudgedBy, single: &[RobustCase]) -> ProjectDraft {
    let case = single.first().cloned().unwrap_or_else(RobustCase::default);
    let task = json!({
        "form": "models", "reference": "reference.py", "kernel": "kernel.py", "device": "cuda",
        "tolerance": tolerance_json(1e-4, 1e-4), "tests": [], "cases": [{ "name": "as-given" }],
    });
    let mut draft = contract_draft(name, judged, &task);
    // JSON in quotes is a Python string as well.
    let quoted = |map: &Map<String, Json>| {
        let text = Json::Object(map.clone()).to_string();
        format!("json.loads({})", Json::String(text))
    };
    let end = |class: &str| {
        let renamed = if class == "Model" { "" } else { "ModelNew = Model\n" };
        format!(
            "\n\n# Added by \"karve import\": the configuration that is scored.\nimport json\n\n\
             task_init = Model.__init__\ntask_get_inputs = get_inputs\n\n\n\
             def init_configured(self):\n    task_init(self, **{})\n\n\n\
             def get_inputs():\n    return task_get_inputs(**{})\n\n\n\
             def get_init_inputs():\n    return []\n\n\n\
             Model.__init__ = init_configured\nModel.eval = lambda self: self\n{renamed}",
            quoted(&case.init),
            quoted(&case.inputs)
        )
    };
    let text = text.trim_end();
    draft.files.push(ProjectPart::text("reference.py", format!("{text}\n{}", end("Model"))));
    draft.files.push(ProjectPart::text("kernel.py", format!("{text}\n{}", end("ModelNew"))));
    draft.editable = vec!["kernel.py".into()];
    draft.notes = vec![
        "Change forward_fn in kernel.py; a kernel in CUDA can be loaded there.".into(),
        "The task compares float32 results within 1e-5; here it is 1e-4 with a reference in \
         float64, and the error is compared with the incumbent's."
            .into(),
    ];
    draft
}

fn by_script(
    name: &str,
    text: &str,
    why: &str,
    ([single, tests], options): ([&[RobustCase]; 2], &ImportOptions),
) -> ProjectDraft {
    let listed = |cases: &[RobustCase], prefix: &str| -> Json {
        let of = |(n, case): (usize, &RobustCase)| {
            let name = format!("{prefix}{n}");
            json!({ "name": name, "inputs": case.inputs, "init": case.init })
        };
        cases.iter().enumerate().map(of).collect()
    };
    let task = json!({
        "form": "functional", "reference": "reference.py", "kernel": "kernel.py",
        "device": options.device_name(), "dtype": options.dtype.map(super::kernelbench::torch_name),
        "tolerance": tolerance_json(TOLERANCE, TOLERANCE),
        "tests": listed(tests, "test"), "cases": listed(single, "config"),
    });
    let mut draft = ProjectDraft::by_script(name, options, &task);
    draft.files.push(ProjectPart::text("reference.py", text));
    draft.files.push(ProjectPart::text("kernel.py", text));
    draft.editable = vec!["kernel.py".into()];
    draft.notes = vec![
        "Change forward_fn in kernel.py; a kernel in CUDA can be loaded there.".into(),
        format!("No contract: {why}. {RUN_PATH} makes the inputs in a process of its own."),
    ];
    draft
}
