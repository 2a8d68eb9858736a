//! ComputeEval: problems with a build, a test and a benchmark command, as directories with
//! `problem-spec.yaml` or as lines of `problems.jsonl` from an unpacked release.

use super::draft::{CaseDraft, CommandsDraft, JudgedBy, ProjectDraft, ProjectPart};
use super::names::{dir_of, is_inside, plain_name};
use super::{FoundTask, ImportOptions, TaskFiles};
use karve_os::text::one_line;
use serde::Deserialize;
use serde_json::json;
use toml::Value;

/// Most problems of one file, and bytes of the files of one problem.
const PROBLEMS_MAX: usize = 5_000;
const BYTES_MAX: usize = 16 << 20;

/// A problem.
#[derive(Debug, Deserialize)]
struct CudaProblem {
    task_id: String,
    #[serde(default, alias = "problem_type", rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    prompt: String,
    #[serde(default)]
    build_command: Option<String>,
    test_command: String,
    #[serde(default)]
    benchmark_command: Option<String>,
    #[serde(default)]
    timing_mode: Option<TimingSpec>,
    #[serde(default)]
    timeout_seconds: Option<f64>,
    #[serde(default)]
    context_files: Vec<ProblemFile>,
    #[serde(default)]
    test_files: Vec<ProblemFile>,
    #[serde(default)]
    baseline_solution: Option<SolutionFiles>,
}

#[derive(Debug, Deserialize)]
struct TimingSpec {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Clone, Debug, Deserialize)]
struct ProblemFile {
    path: String,
    content: String,
}

#[derive(Debug, Deserialize)]
struct SolutionFiles {
    #[serde(default)]
    files: Vec<ProblemFile>,
}

/// All problems of some files.
pub(super) fn find(files: &TaskFiles, options: &ImportOptions) -> Vec<FoundTask> {
    let mut found = Vec::new();
    for (path, text) in files.ending("problems.jsonl") {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        for (n, line) in lines.take(PROBLEMS_MAX) {
            let place = format!("{path}:{}", n + 1);
            let problem: Result<CudaProblem, String> =
                serde_json::from_str(line).map_err(|error| one_line(&error.to_string(), 200));
            found.push(found_task(problem, &place, options));
        }
    }
    for (path, text) in files.ending("problem-spec.yaml") {
        let problem: Result<CudaProblem, String> = serde_saphyr::from_str(text)
            .map_err(|error| format!("problem-spec.yaml: {}", one_line(&error.to_string(), 200)));
        let problem = problem.map(|problem| problem.with_directory(files, dir_of(path)));
        found.push(found_task(problem, path, options));
    }
    found
}

fn found_task(
    problem: Result<CudaProblem, String>,
    place: &str,
    options: &ImportOptions,
) -> FoundTask {
    let title = format!("`{place}` of ComputeEval.");
    match problem {
        Err(why) => FoundTask { name: place.to_owned(), title, draft: Err(why) },
        Ok(problem) => {
            let name = plain_name(&problem.task_id);
            let draft = problem.draft(&name, options);
            FoundTask { name, title, draft }
        }
    }
}

impl CudaProblem {
    /// The problem with the files of its directory.
    fn with_directory(mut self, files: &TaskFiles, dir: &str) -> Self {
        let within = |part: &str| -> Vec<ProblemFile> {
            let prefix = if dir.is_empty() { format!("{part}/") } else { format!("{dir}/{part}/") };
            let own = files.files.keys().filter_map(|path| {
                let text = files.text(path)?;
                let path = path.strip_prefix(&prefix)?.to_owned();
                Some(ProblemFile { path, content: text.to_owned() })
            });
            own.collect()
        };
        let test = within("test").into_iter();
        let test = test.map(|one| ProblemFile { path: format!("test/{}", one.path), ..one });
        self.test_files.extend(test);
        self.context_files.extend(within("context"));
        self.baseline_solution = Some(SolutionFiles { files: within("solution") });
        self
    }

    fn draft(&self, name: &str, options: &ImportOptions) -> Result<ProjectDraft, String> {
        let solution = self.baseline_solution.as_ref().map_or(&[][..], |own| own.files.as_slice());
        if solution.is_empty() {
            return Err("it has no solution to start from".into());
        }
        let all: Vec<&ProblemFile> =
            self.context_files.iter().chain(&self.test_files).chain(solution).collect();
        if all.iter().map(|one| one.content.len()).sum::<usize>() > BYTES_MAX {
            return Err(format!("its files have more than {BYTES_MAX} bytes"));
        }
        if let Some(one) = all.iter().find(|one| !is_inside(&one.path)) {
            return Err(format!("the path `{}` cannot be used", one_line(&one.path, 80)));
        }
        let mut draft = ProjectDraft::by_script(name, options, &json!({}));
        draft.files = all
            .iter()
            .map(|one| ProjectPart::text(one.path.clone(), one.content.clone()))
            .collect();
        draft.files.push(ProjectPart::text("PROMPT.md", format!("{}\n", self.prompt.trim_end())));
        draft.backend = match self.kind.as_deref() {
            Some("cuda_python") => ["python".into(), "Python".into()],
            _ => ["cuda".into(), "CUDA".into()],
        };
        draft.judged = self.commands();
        draft.cases = vec![CaseDraft { name: "as given".into(), params: Vec::new() }];
        draft.editable = solution.iter().map(|one| one.path.clone()).collect();
        draft.command_s = self.timeout_seconds.map(|s| s.clamp(1.0, 86_400.0).ceil() as u64);
        draft.notes = self.notes();
        Ok(draft)
    }

    fn commands(&self) -> JudgedBy {
        let line = |text: &str| Value::String(escaped(text));
        let bench = self.benchmark_command.as_deref().unwrap_or(&self.test_command);
        let mut commands = Vec::new();
        commands.extend(self.build_command.as_deref().map(|text| ("build", line(text))));
        commands.extend([("test", line(&self.test_command)), ("bench", line(bench))]);
        let text = |text: &str| Value::String(text.into());
        JudgedBy::Commands(CommandsDraft {
            commands,
            output: vec![("format", text("metric"))],
            metric: vec![("name", text("wall_time")), ("unit", text("ms"))],
            reads: Vec::new(),
        })
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            "No contract: the test of the problem makes its inputs in the process of the kernel."
                .to_owned(),
        ];
        let kind = self.timing_mode.as_ref().map_or("process", |mode| mode.kind.as_str());
        if kind != "process" {
            notes.push(format!(
                "The official time is that of a part, `{}`, as a profiler sees it; here karve's \
                 clock measures the whole command.",
                one_line(kind, 20)
            ));
        }
        if self.benchmark_command.is_none() {
            notes.push("It has no benchmark: the test is measured.".into());
        }
        notes
    }
}

/// A command without placeholders: `{x}` becomes `{{x}}`, and `${X}` stays.
fn escaped(line: &str) -> String {
    let mut out = String::new();
    let mut is_variable = false;
    for c in line.chars() {
        match c {
            '{' if out.ends_with('$') => is_variable = true,
            '}' if is_variable => is_variable = false,
            '{' | '}' => out.push(c),
            _ => {}
        }
        out.push(c);
    }
    out
}
