//! The kernel that a campaign starts from, if it is not the task's own: what `karve export` wrote,
//! or another solution in the same format.

use super::TaskFormat;
use super::draft::{JudgedBy, ProjectDraft, ProjectPart, TASK_PATH};
use super::names::is_inside;
use super::python::PythonSource;
use karve_os::text::one_line;
use serde::Deserialize;
use serde_json::Value as Json;
use toml::Value;

/// The file and the function that an imported definition has.
const KERNEL: &str = "kernel.py";
const ENTRY: &str = "kernel_fn";

/// A solution of FlashInfer-Bench or SOL-ExecBench, as far as it is needed.
#[derive(Debug, Deserialize)]
struct SolutionFile {
    definition: String,
    spec: SolutionSpec,
    sources: Vec<SolutionSource>,
}

#[derive(Debug, Deserialize)]
struct SolutionSpec {
    #[serde(default)]
    language: Option<String>,
    #[serde(default)]
    languages: Vec<String>,
    entry_point: String,
    #[serde(default = "yes")]
    destination_passing_style: bool,
}

#[derive(Debug, Deserialize)]
struct SolutionSource {
    path: String,
    content: String,
}

fn yes() -> bool {
    true
}

/// Replaces the kernel of a project.
pub(super) fn start_from(
    format: TaskFormat,
    draft: &mut ProjectDraft,
    kernel: &str,
) -> Result<(), String> {
    match format {
        TaskFormat::Kernelbench | TaskFormat::Multikernelbench => {
            let source = PythonSource::parse(kernel).filter(PythonSource::is_whole);
            let has = source.is_some_and(|source| source.class("ModelNew").is_some());
            has.then_some(()).ok_or("the kernel does not define class ModelNew")?;
            replace(draft, KERNEL, kernel);
        }
        TaskFormat::Gpumode => {
            let source = PythonSource::parse(kernel).filter(PythonSource::is_whole);
            let has = source.is_some() && kernel.contains("custom_kernel");
            has.then_some(()).ok_or("the kernel does not define custom_kernel")?;
            replace(draft, "submission.py", kernel);
        }
        TaskFormat::Flashinfer | TaskFormat::SolExecbench => from_solution(draft, kernel)?,
        _ => return Err(format!("{} has no kernels of its own", format.name())),
    }
    draft.notes.push("It starts from the kernel that --kernel named.".into());
    Ok(())
}

fn replace(draft: &mut ProjectDraft, path: &str, text: &str) {
    draft.files.retain(|file| file.path != path);
    draft.files.push(ProjectPart::text(path, text));
}

fn from_solution(draft: &mut ProjectDraft, text: &str) -> Result<(), String> {
    let solution: SolutionFile = serde_json::from_str(text)
        .map_err(|error| format!("the solution: {}", one_line(&error.to_string(), 200)))?;
    let task = draft.files.iter().find(|file| file.path == TASK_PATH);
    let task: Json =
        task.and_then(|file| serde_json::from_slice(&file.bytes).ok()).unwrap_or(Json::Null);
    if task["definition"] != solution.definition.as_str() {
        let name = one_line(&solution.definition, 80);
        return Err(format!("the solution is for the definition `{name}`"));
    }
    let spec = &solution.spec;
    let is_compiled = |language: &String| {
        ["cpp", "cuda", "cuda_cpp", "cutlass", "cudnn", "cublas"].contains(&language.as_str())
    };
    if spec.language.iter().chain(&spec.languages).any(is_compiled) {
        return Err("the solution is not in Python".into());
    }
    let (file, symbol) = spec.entry_point.split_once("::").unwrap_or_default();
    let is_name = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let module = file.trim_end_matches(".py").replace('/', ".");
    let is_entry = solution.sources.iter().any(|source| source.path == file);
    if !is_entry || symbol.is_empty() || !is_name(symbol) || !module.split('.').all(is_name) {
        return Err("the solution has no file::function that can be imported".into());
    }
    for source in &solution.sources {
        if !is_inside(&source.path) || source.path.starts_with("karve/") {
            return Err("the path of a source of the solution cannot be used".into());
        }
        replace(draft, &source.path, &source.content);
        if !draft.editable.contains(&source.path) {
            draft.editable.push(source.path.clone());
        }
    }
    let own = solution.sources.iter().find(|source| source.path == KERNEL);
    match own {
        Some(_) if file == KERNEL && symbol == ENTRY => {}
        Some(own) if file == KERNEL => {
            let text = format!("{}\n\n\n{ENTRY} = {symbol}\n", own.content.trim_end());
            replace(draft, KERNEL, &text);
        }
        Some(_) => return Err(format!("{KERNEL} of the solution is not its entry")),
        None => replace(draft, KERNEL, &format!("from {module} import {symbol} as {ENTRY}\n")),
    }
    match (&mut draft.judged, spec.destination_passing_style) {
        (_, false) => Ok(()),
        (JudgedBy::Contract(contract), true) => {
            contract.keys.push(("outputs", Value::String("arguments".into())));
            draft.notes.retain(|note| !note.starts_with("The kernel returns"));
            Ok(())
        }
        (JudgedBy::Commands(_), true) => {
            Err("the solution writes its outputs, and the commands of the task need them \
                 returned"
                .into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ImportOptions, TaskFiles, import_tasks};
    use super::*;
    use serde_json::json;

    fn definition() -> TaskFiles {
        let definition = json!({
            "name": "scale", "op_type": "scale", "axes": { "n": { "type": "var" } },
            "inputs": { "x": { "shape": ["n"], "dtype": "float32" } },
            "outputs": { "y": { "shape": ["n"], "dtype": "float32" } },
            "reference": "def run(x):\n    return 2 * x\n",
        });
        let inputs = json!({ "x": { "type": "random" } });
        let workload = json!({
            "definition": "scale",
            "workload": { "uuid": "w1", "axes": { "n": 64 }, "inputs": inputs },
        });
        let files = [
            ("definitions/scale.json", definition.to_string()),
            ("workloads/scale.jsonl", format!("{workload}\n")),
        ];
        let files = files.map(|(path, text)| (path.to_owned(), text.into_bytes()));
        TaskFiles { files: files.into(), ..TaskFiles::default() }
    }

    fn solution(path: &str, entry: &str, writes: bool) -> Json {
        json!({
            "name": "mine", "definition": "scale", "author": "me",
            "spec": {
                "language": "python", "target_hardware": ["cpu"], "entry_point": entry,
                "destination_passing_style": writes,
            },
            "sources": [{ "path": path, "content": "def twice(x):\n    return x + x\n" }],
        })
    }

    /// The files of the project and its refusal.
    fn imported(kernel: &Json) -> Result<Vec<(String, String)>, String> {
        let options = ImportOptions { kernel: Some(kernel.to_string()), ..Default::default() };
        let result = import_tasks(TaskFormat::Flashinfer, &definition(), &options);
        match result.imported.first() {
            None => Err(result.refused[0].why.clone()),
            Some(task) => Ok(task
                .files
                .iter()
                .map(|file| (file.path.clone(), String::from_utf8_lossy(&file.bytes).into()))
                .collect()),
        }
    }

    fn text_of(files: &[(String, String)], path: &str) -> String {
        files.iter().find(|(own, _)| own == path).map(|(_, text)| text.clone()).unwrap_or_default()
    }

    #[test]
    fn a_solution_becomes_the_kernel_whatever_its_file_and_function_are_called() {
        let files = imported(&solution("src/main.py", "src/main.py::twice", false)).unwrap();
        assert_eq!(text_of(&files, "kernel.py"), "from src.main import twice as kernel_fn\n");
        assert!(text_of(&files, "src/main.py").contains("x + x"));
        let config = text_of(&files, "karve.toml");
        assert!(config.contains("\"src/main.py\"") && !config.contains("\noutputs ="), "{config}");
        let files = imported(&solution("kernel.py", "kernel.py::twice", true)).unwrap();
        assert!(text_of(&files, "kernel.py").ends_with("\n\n\nkernel_fn = twice\n"));
        assert!(text_of(&files, "karve.toml").contains("\noutputs = \"arguments\""));
        // The workload is kept for an export.
        assert!(text_of(&files, TASK_PATH).contains("\"uuid\": \"w1\""));
    }

    #[test]
    fn a_solution_that_does_not_fit_is_refused() {
        let good = solution("kernel.py", "kernel.py::twice", false);
        let changed = |pointer: &str, value: &str| {
            let mut own = good.clone();
            *own.pointer_mut(pointer).unwrap() = json!(value);
            imported(&own).unwrap_err()
        };
        assert_eq!(changed("/definition", "other"), "the solution is for the definition `other`");
        assert_eq!(changed("/spec/language", "cuda"), "the solution is not in Python");
        for entry in ["kernel.py", "gone.py::twice", "kernel.py::", "kernel.py::a;b"] {
            let why = changed("/spec/entry_point", entry);
            assert!(why.contains("file::function"), "{entry}: {why}");
        }
        let mut out = solution("../x.py", "../x.py::twice", false);
        assert!(imported(&out).is_err());
        out["sources"] = json!([]);
        assert!(imported(&out).is_err());
        assert!(imported(&json!("x")).unwrap_err().starts_with("the solution: "));
    }
}
