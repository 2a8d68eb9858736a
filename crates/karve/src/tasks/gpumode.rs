//! GPU MODE: a `task.yml` with tests and benchmarks, `reference.py`, and one file to submit.
//!
//! `task.yml` is read as YAML, so `False` is false. The official evaluation passes cases as text,
//! and some of its versions read every word there as a string; the notes say where that matters.

use super::draft::{CaseDraft, CommandsDraft, JudgedBy, ProjectDraft, ProjectPart, RUN_PATH};
use super::names::{dir_of, is_inside, joined, param_name, plain_name};
use super::ordered::InOrder;
use super::python::PythonSource;
use super::{FoundTask, ImportOptions, TaskFiles};
use karve_os::text::one_line;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use toml::Value;

/// The file that a candidate changes, and what its source is called in `task.yml`.
const SUBMISSION: &str = "submission.py";
const SUBMITTED: &str = "@SUBMISSION@";

/// The wrapper of the official evaluation, for tasks on several GPUs.
const POPCORN: &str = include_str!("popcorn.py");
const POPCORN_PATH: &str = "karve/popcorn.py";

/// Most tests or benchmarks of a task.
const CASES_MAX: usize = 200;
/// The time limit of one step of the evaluation, in seconds, unless the task says otherwise.
const TIMEOUT_S: u64 = 180;

/// `task.yml`. Keys that say nothing about the task itself are left out.
#[derive(Debug, Deserialize)]
struct PopcornTask {
    files: Vec<PopcornFile>,
    #[serde(default)]
    lang: Option<String>,
    #[serde(default)]
    description: String,
    #[serde(default)]
    templates: BTreeMap<String, String>,
    #[serde(default)]
    tests: Vec<InOrder<Json>>,
    #[serde(default)]
    benchmarks: Vec<InOrder<Json>>,
    test_timeout: Option<u64>,
    ranked_timeout: Option<u64>,
    ranking_by: Option<String>,
    #[serde(default)]
    multi_gpu: bool,
}

#[derive(Debug, Deserialize)]
struct PopcornFile {
    name: String,
    source: String,
}

/// All tasks of some files.
pub(super) fn find(files: &TaskFiles, options: &ImportOptions) -> Vec<FoundTask> {
    let tasks =
        files.ending("task.yml").filter(|(path, _)| path.rsplit('/').next() == Some("task.yml"));
    tasks
        .map(|(path, text)| {
            let dir = dir_of(path);
            let whole = format!("{}/{dir}", files.root);
            let parts: Vec<&str> = whole.trim_end_matches('/').rsplitn(3, '/').take(2).collect();
            let name = plain_name(&parts.into_iter().rev().collect::<Vec<_>>().join("-"));
            let draft = draft_of(&name, dir, text, files, options);
            FoundTask { title: format!("`{path}` of GPU MODE."), draft, name }
        })
        .collect()
}

fn draft_of(
    name: &str,
    dir: &str,
    text: &str,
    files: &TaskFiles,
    options: &ImportOptions,
) -> Result<ProjectDraft, String> {
    let task: PopcornTask = serde_saphyr::from_str(text)
        .map_err(|error| format!("task.yml: {}", one_line(&error.to_string(), 200)))?;
    if task.lang.as_deref().is_some_and(|lang| lang != "py") {
        return Err("task.yml: only `lang: py` can be imported".into());
    }
    if task.benchmarks.is_empty() || task.benchmarks.len().max(task.tests.len()) > CASES_MAX {
        return Err(format!("task.yml: it must have 1 to {CASES_MAX} benchmarks and tests"));
    }
    let mut parts = copies(&task, dir, files)?;
    let mut notes = notes_on(&task, &parts);
    parts.push(ProjectPart::text(SUBMISSION, start_of(&task, dir, files, &mut notes)));
    let cases = cases_of(&task.benchmarks, "");
    let listed = json!({
        "form": "gpumode", "reference": "reference.py", "kernel": SUBMISSION,
        "device": options.device_name(), "multi_gpu": task.multi_gpu,
        "tests": json_cases(&cases_of(&task.tests, "test:")), "cases": json_cases(&cases),
    });
    let mut draft = ProjectDraft::by_script(name, options, &listed);
    if task.multi_gpu {
        draft.files.push(ProjectPart::text(POPCORN_PATH, POPCORN));
        draft.judged = by_popcorn(options);
    }
    draft.cases = cases.iter().map(|(name, args)| case_draft(name, args)).collect();
    draft.editable = vec![SUBMISSION.into()];
    draft.constraints = vec![first_line(&task.description)];
    draft.constraints.retain(|line| !line.is_empty());
    let [test, ranked] =
        [task.test_timeout, task.ranked_timeout].map(|limit| limit.unwrap_or(TIMEOUT_S));
    draft.command_s = Some(test.saturating_add(ranked));
    draft.notes = notes;
    draft.files.extend(parts);
    Ok(draft)
}

/// The files that the task names, under the names that they have in an evaluation.
fn copies(task: &PopcornTask, dir: &str, files: &TaskFiles) -> Result<Vec<ProjectPart>, String> {
    let mut parts = Vec::new();
    for PopcornFile { name, source } in task.files.iter().filter(|file| file.source != SUBMITTED) {
        if !is_inside(name) || name.starts_with("karve/") {
            return Err(format!("task.yml: the file name `{}` cannot be used", one_line(name, 80)));
        }
        let path = joined(dir, source);
        let Some(bytes) = files.files.get(&path) else {
            return Err(format!(
                "task.yml: its file `{}` is not there; import the directory that has it",
                one_line(source, 80)
            ));
        };
        parts.push(ProjectPart { path: name.clone(), bytes: bytes.clone() });
    }
    let has = |name: &str| parts.iter().any(|part| part.path == name);
    if !has("reference.py") {
        return Err("task.yml: it names no reference.py".into());
    }
    if !task.files.iter().any(|file| file.source == SUBMITTED) {
        return Err(format!("task.yml: no file has the source {SUBMITTED}"));
    }
    let reference = parts.iter().find(|part| part.path == "reference.py");
    let text = reference.map(|part| String::from_utf8_lossy(&part.bytes)).unwrap_or_default();
    for name in ["generate_input", "check_implementation"] {
        if !text.contains(name) {
            return Err(format!("reference.py does not define {name}"));
        }
    }
    Ok(parts)
}

/// The submission that a campaign starts from.
fn start_of(task: &PopcornTask, dir: &str, files: &TaskFiles, notes: &mut Vec<String>) -> String {
    let template = task.templates.get("Python").map(String::as_str).unwrap_or(SUBMISSION);
    let candidates = [joined(dir, SUBMISSION), joined(dir, template)];
    for path in &candidates {
        if let Some(text) = files.text(path).filter(|text| !is_stub(text)) {
            return text.to_owned();
        }
    }
    notes.push(
        "The task has no submission that works: the one here calls the reference. Replace it by a \
         baseline of your own before you measure."
            .into(),
    );
    "from reference import ref_kernel\n\n\ndef custom_kernel(data):\n    return ref_kernel(data)\n"
        .into()
}

/// Whether a submission has nothing in its function.
fn is_stub(text: &str) -> bool {
    let Some(source) = PythonSource::parse(text) else {
        return true;
    };
    match source.function("custom_kernel") {
        Some(function) => source.is_empty_function(function),
        // It may be an assignment.
        None => !text.contains("custom_kernel ="),
    }
}

/// What a user must know about the task, and where the official evaluation differs.
fn notes_on(task: &PopcornTask, parts: &[ProjectPart]) -> Vec<String> {
    let mut notes = vec![if task.multi_gpu {
        format!(
            "It runs on several GPUs: {POPCORN_PATH} starts the official eval.py, which makes the \
             inputs in the process of the kernel."
        )
    } else {
        format!(
            "No contract: the inputs are made by generate_input of the task, as a tree. \
             {RUN_PATH} makes them in a process of its own, and judges by check_implementation."
        )
    }];
    let eval = parts.iter().find(|part| part.path == "eval.py");
    let eval = eval.map(|part| String::from_utf8_lossy(&part.bytes)).unwrap_or_default();
    let all = task.tests.iter().chain(&task.benchmarks);
    let mut names: Vec<&str> = all
        .flat_map(|case| &case.0)
        .filter(|(_, value)| value.is_boolean())
        .map(|(name, _)| name.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    if !names.is_empty() && reads_words(&eval) && !task.multi_gpu {
        notes.push(format!(
            "The official eval.py reads {} as a string, which is true even if it says False; here \
             it is a boolean, so the two runs differ.",
            names.join(" and ")
        ));
    }
    if task.ranking_by.as_deref().unwrap_or("last") == "last" && task.benchmarks.len() > 1 {
        notes.push(
            "The official ranking counts only the last benchmark; karve counts all of them.".into(),
        );
    }
    notes
}

/// Whether an evaluation reads cases by an expression that leaves `False` a word.
pub(super) fn reads_words(eval: &str) -> bool {
    let knows = ["\"True\"", "'True'", "\"true\"", "'true'", "literal_eval", "json.loads"];
    eval.contains("re.match") && !knows.iter().any(|word| eval.contains(word))
}

/// Cases with different names.
fn cases_of(cases: &[InOrder<Json>], prefix: &str) -> Vec<(String, InOrder<Json>)> {
    let mut named: Vec<(String, InOrder<Json>)> = Vec::new();
    for case in cases {
        let pairs = case.0.iter().filter(|(key, _)| key != "seed");
        let parts = pairs.map(|(key, value)| match value {
            Json::String(text) => format!("{key}={}", plain_name(text)),
            other => format!("{key}={}", plain_name(&other.to_string())),
        });
        let mut name = format!("{prefix}{}", parts.collect::<Vec<_>>().join(","));
        let twins = named.iter().filter(|(own, _)| own.split('#').next() == Some(&name)).count();
        if twins > 0 || name == prefix {
            name = format!("{name}#{}", twins + 1);
        }
        named.push((name, case.clone()));
    }
    named
}

fn json_cases(cases: &[(String, InOrder<Json>)]) -> Json {
    let of = |(name, args): &(String, InOrder<Json>)| {
        let args: serde_json::Map<String, Json> = args.0.iter().cloned().collect();
        json!({ "name": name, "args": args })
    };
    cases.iter().map(of).collect()
}

fn case_draft(name: &str, args: &InOrder<Json>) -> CaseDraft {
    let value = |value: &Json| match (value.as_i64(), value) {
        (Some(number), _) => Value::Integer(number),
        (None, Json::String(text)) => Value::String(text.clone()),
        (None, other) => Value::String(other.to_string()),
    };
    let params = args.0.iter().filter(|(key, _)| param_name(key) == *key);
    let params = params.map(|(key, of)| (key.clone(), value(of)));
    CaseDraft { name: name.to_owned(), params: params.collect() }
}

fn by_popcorn(options: &ImportOptions) -> JudgedBy {
    let text = |text: String| Value::String(text);
    let python = options.interpreter();
    JudgedBy::Commands(CommandsDraft {
        commands: vec![
            ("test", text(format!("{python} {POPCORN_PATH} test"))),
            ("bench", text(format!("{python} {POPCORN_PATH} bench {{case}}"))),
        ],
        output: vec![("format", text("metric".into()))],
        metric: vec![("name", text("time_us".into()))],
        reads: Vec::new(),
    })
}

/// The first line of a description, for the agent.
fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    one_line(line, 300)
}
