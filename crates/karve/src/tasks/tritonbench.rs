//! TritonBench: one file with an implementation, a line of number signs, and a test that runs it.

use super::draft::{ProjectDraft, ProjectPart, tolerance_json};
use super::names::{plain_name, stem_of};
use super::python::PythonSource;
use super::{FoundTask, ImportOptions, TaskFiles};
use serde_json::json;

/// How many number signs separate implementation and test, at least.
const SIGNS_MIN: usize = 100;
/// How close results must be; the suite itself compares them as text or by `allclose`.
const TOLERANCE: f64 = 1e-3;

/// All tasks of some files.
pub(super) fn find(files: &TaskFiles, options: &ImportOptions) -> Vec<FoundTask> {
    let tasks = files.ending(".py").filter_map(|(path, text)| Some((path, text, parts_of(text)?)));
    tasks
        .map(|(path, text, parts)| {
            let name = plain_name(stem_of(path));
            let draft = draft_of(&name, text, parts, options);
            FoundTask { title: format!("`{path}` of TritonBench."), draft, name }
        })
        .collect()
}

/// The implementation and the test of a file.
fn parts_of(text: &str) -> Option<(&str, &str)> {
    let is_rule = |line: &str| line.len() >= SIGNS_MIN && line.chars().all(|c| c == '#');
    let rule = text.lines().map(str::trim_end).find(|line| is_rule(line))?;
    text.split_once(rule)
}

fn draft_of(
    name: &str,
    text: &str,
    (own, test): (&str, &str),
    options: &ImportOptions,
) -> Result<ProjectDraft, String> {
    if !PythonSource::parse(text).is_some_and(|source| source.is_whole()) {
        return Err("it is not valid Python".into());
    }
    // The last one is what the file runs.
    let mut called = test.lines().rev().filter_map(|line| line.strip_prefix("def test"));
    let entry = called.find_map(|rest| rest.split_once('(').map(|(name, _)| name));
    let entry = entry.ok_or("there is no test function after the line of number signs")?;
    // The file ends with a call of its test, which the script makes itself.
    let is_call = |line: &str| !line.starts_with([' ', '\t', '#']) && line.contains("= test");
    let tests: Vec<&str> = test.lines().filter(|line| !is_call(line)).collect();
    let task = json!({
        "form": "suite", "reference": "reference.py", "kernel": "kernel.py",
        "device": options.device_name(), "tolerance": tolerance_json(TOLERANCE, TOLERANCE),
        "suite": "tests.py", "entry": format!("test{entry}"),
        "tests": [], "cases": [{ "name": "all-tests" }],
    });
    let mut draft = ProjectDraft::by_script(name, options, &task);
    let implementation = format!("{}\n", own.trim_end());
    draft.backend = ["triton".into(), "Python".into()];
    draft.files.push(ProjectPart::text("kernel.py", implementation.clone()));
    draft.files.push(ProjectPart::text("reference.py", implementation));
    draft.files.push(ProjectPart::text("tests.py", format!("{}\n", tests.join("\n").trim())));
    draft.editable = vec!["kernel.py".into()];
    draft.notes = vec![
        "No contract: the test makes its inputs where it calls the kernel. Its results are \
         compared with those of the original under the same seed, in another process."
            .into(),
        "What is measured is the whole test, with its inputs; TritonBench's tests are tiny.".into(),
    ];
    Ok(draft)
}
