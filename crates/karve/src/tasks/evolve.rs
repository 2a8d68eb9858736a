//! Programs that an evaluator scores: OpenEvolve, ShinkaEvolve and autoresearch. Only the code in
//! EVOLVE blocks may change; the build compares the rest with the original.

use super::draft::{CaseDraft, CommandsDraft, JudgedBy, ProjectDraft, ProjectPart, task_file};
use super::names::{dir_of, plain_name, stem_of};
use super::{FoundTask, ImportOptions, TaskFiles};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use toml::Value;

const SCORE: &str = include_str!("score.py");
const SCORE_PATH: &str = "karve/score.py";
const CASE: &str = "as-given";

const START: &str = "EVOLVE-BLOCK-START";
const END: &str = "EVOLVE-BLOCK-END";

/// The time limit of an experiment of autoresearch, in seconds.
const EXPERIMENT_S: u64 = 600;
/// Most bytes of all files of a task.
const COPIED_BYTES_MAX: usize = 64 << 20;

/// What an evaluator of a suite is called, and the program that it scores.
struct EvaluatedSuite {
    title: &'static str,
    form: &'static str,
    evaluator: &'static str,
    program: &'static str,
}

/// The tasks of OpenEvolve.
pub(super) fn find_openevolve(files: &TaskFiles, options: &ImportOptions) -> Vec<FoundTask> {
    let suite = EvaluatedSuite {
        title: "OpenEvolve",
        form: "openevolve",
        evaluator: "evaluator.py",
        program: "initial_program",
    };
    suite.find(files, options)
}

/// The tasks of ShinkaEvolve.
pub(super) fn find_shinka(files: &TaskFiles, options: &ImportOptions) -> Vec<FoundTask> {
    let suite = EvaluatedSuite {
        title: "ShinkaEvolve",
        form: "shinka",
        evaluator: "evaluate.py",
        program: "initial",
    };
    suite.find(files, options)
}

impl EvaluatedSuite {
    fn find(&self, files: &TaskFiles, options: &ImportOptions) -> Vec<FoundTask> {
        let is_evaluator = |path: &str| path.rsplit('/').next() == Some(self.evaluator);
        let found = files.ending(self.evaluator).filter(|(path, _)| is_evaluator(path));
        found
            .map(|(path, text)| {
                let dir = dir_of(path);
                let name = name_of(files, dir);
                let draft = self.draft(&name, dir, text, (files, options));
                FoundTask { title: format!("`{path}` of {}.", self.title), draft, name }
            })
            .collect()
    }

    fn draft(
        &self,
        name: &str,
        dir: &str,
        evaluator: &str,
        (files, options): (&TaskFiles, &ImportOptions),
    ) -> Result<ProjectDraft, String> {
        let own = below(files, dir);
        let is_program = |path: &str| !path.contains('/') && stem_of(path) == self.program;
        let program = own.iter().find(|part| is_program(&part.path) && part.path.contains('.'));
        let program = program.ok_or_else(|| format!("there is no {}.* beside it", self.program))?;
        if self.form == "openevolve" && !evaluator.contains("def evaluate(") {
            return Err("evaluator.py does not define evaluate".into());
        }
        let text = String::from_utf8_lossy(&program.bytes).into_owned();
        let blocks = blocks_of(&text)?;
        let language = program.path.rsplit('.').next().unwrap_or_default().to_owned();
        let mut notes = vec![format!(
            "No contract: the evaluator of the task loads the program and makes the inputs; karve \
             believes its score. A higher score is better, and it must be above 0."
        )];
        notes.push(match blocks {
            0 => format!("{} has no EVOLVE blocks: all of it may change.", program.path),
            n => format!(
                "Only the {n} EVOLVE block(s) of {} may change: the build compares the rest.",
                program.path
            ),
        });
        let task = json!({ "form": self.form, "program": program.path, "blocks": blocks > 0 });
        let mut draft = scored(name, options, &task);
        draft.backend = [language.clone(), language];
        draft.editable = vec![program.path.clone()];
        draft.notes = notes;
        draft.command_s = timeout_of(&own);
        draft.files.push(ProjectPart::text("karve/original", text));
        copy_into(&mut draft, own)?;
        Ok(draft)
    }
}

/// How many EVOLVE blocks a program has.
fn blocks_of(text: &str) -> Result<usize, String> {
    let mut n = 0;
    let mut is_inside = false;
    for line in text.lines() {
        match (line.contains(START), line.contains(END), is_inside) {
            (true, false, false) => is_inside = true,
            (false, true, true) => {
                is_inside = false;
                n += 1;
            }
            (false, false, _) => {}
            _ => return Err("its EVOLVE blocks are not closed one after the other".into()),
        }
    }
    if is_inside { Err("its last EVOLVE block is not closed".into()) } else { Ok(n) }
}

#[derive(Debug, Default, Deserialize)]
struct EvolveConfig {
    evaluator: Option<EvaluatorConfig>,
}

#[derive(Debug, Deserialize)]
struct EvaluatorConfig {
    timeout: Option<f64>,
}

/// The time limit of an evaluation, if a configuration says it.
fn timeout_of(own: &[ProjectPart]) -> Option<u64> {
    let config = own.iter().find(|part| part.path == "config.yaml")?;
    let text = std::str::from_utf8(&config.bytes).ok()?;
    let config: EvolveConfig = serde_saphyr::from_str(text).unwrap_or_default();
    let seconds = config.evaluator?.timeout?;
    (1.0..=86_400.0).contains(&seconds).then_some(seconds as u64)
}

/// `autoresearch.toml`, as the Rust program of that name has it.
#[derive(Debug, Deserialize)]
struct ResearchConfig {
    target_file: String,
    eval_command: String,
    metric_name: String,
    #[serde(default)]
    metric_direction: Option<String>,
    #[serde(default)]
    time_budget: Option<u64>,
}

/// The tasks of autoresearch: `train.py` beside `prepare.py` and `program.md`, or a manifest.
pub(super) fn find_autoresearch(files: &TaskFiles, options: &ImportOptions) -> Vec<FoundTask> {
    let named = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        ["program.md", "autoresearch.toml"].contains(&name)
    };
    let mut found: Vec<FoundTask> = Vec::new();
    let all = files.ending("program.md").chain(files.ending("autoresearch.toml"));
    for (path, text) in all.filter(|(path, _)| named(path)) {
        let dir = dir_of(path);
        let name = name_of(files, dir);
        let draft = research(text, path, &below(files, dir))
            .and_then(|config| research_draft(&name, &config, below(files, dir), options));
        found.push(FoundTask { title: format!("`{path}` of autoresearch."), draft, name });
    }
    found
}

fn research(text: &str, path: &str, own: &[ProjectPart]) -> Result<ResearchConfig, String> {
    if path.ends_with(".toml") {
        return toml::from_str(text).map_err(|error| {
            format!("autoresearch.toml: {}", karve_os::text::one_line(error.message(), 200))
        });
    }
    for name in ["train.py", "prepare.py"] {
        if !own.iter().any(|part| part.path == name) {
            return Err(format!("there is no {name} beside program.md"));
        }
    }
    Ok(ResearchConfig {
        target_file: "train.py".into(),
        eval_command: "uv run train.py".into(),
        metric_name: "val_bpb".into(),
        metric_direction: Some("lower".into()),
        time_budget: Some(EXPERIMENT_S),
    })
}

fn research_draft(
    name: &str,
    config: &ResearchConfig,
    own: Vec<ProjectPart>,
    options: &ImportOptions,
) -> Result<ProjectDraft, String> {
    if !own.iter().any(|part| part.path == config.target_file) {
        return Err("there is no file that its manifest calls the target".into());
    }
    let is_lower = match config.metric_direction.as_deref().unwrap_or("lower") {
        "lower" | "minimize" | "min" => true,
        "higher" | "maximize" | "max" => false,
        other => return Err(format!("`{other}` is not a direction of a metric")),
    };
    let task = json!({
        "form": "command", "program": config.target_file, "blocks": false,
        "command": config.eval_command, "metric": config.metric_name,
    });
    let mut draft = scored(name, options, &task);
    if let JudgedBy::Commands(commands) = &mut draft.judged {
        let better = if is_lower { "lower" } else { "higher" };
        commands.metric = metric_of(better);
        commands.reads = vec!["~/.cache/autoresearch".into(), "~/.cache/uv".into()];
        commands.commands.retain(|(key, _)| *key != "build");
    }
    draft.editable = vec![config.target_file.clone()];
    draft.command_s = Some(config.time_budget.unwrap_or(EXPERIMENT_S).clamp(1, 86_400));
    draft.notes = vec![
        "No contract: the program measures itself. The test is one run that must print its \
         metric, so it says nothing about correctness."
            .into(),
        "results.tsv, if there is one, is history, never evidence.".into(),
    ];
    copy_into(&mut draft, own)?;
    Ok(draft)
}

/// A project whose score a script reports.
fn scored(name: &str, options: &ImportOptions, task: &Json) -> ProjectDraft {
    let python = options.interpreter();
    let command = |what: &str| Value::String(format!("{python} {SCORE_PATH} {what}"));
    let mut draft = ProjectDraft::by_script(name, options, &json!({}));
    draft.judged = JudgedBy::Commands(CommandsDraft {
        commands: vec![
            ("build", command("check")),
            ("test", command("test")),
            ("bench", command("bench")),
        ],
        output: vec![("format", Value::String("metric".into()))],
        metric: metric_of("higher"),
        reads: Vec::new(),
    });
    draft.cases = vec![CaseDraft { name: CASE.into(), params: Vec::new() }];
    draft.files = vec![ProjectPart::text(SCORE_PATH, SCORE), task_file(task)];
    draft
}

fn metric_of(better: &str) -> Vec<(&'static str, Value)> {
    let text = |text: &str| Value::String(text.into());
    vec![("name", text("score")), ("unit", text("points")), ("better", text(better))]
}

/// The files of a directory and below it, relative to it.
fn below(files: &TaskFiles, dir: &str) -> Vec<ProjectPart> {
    let prefix = if dir.is_empty() { String::new() } else { format!("{dir}/") };
    let own = files.files.iter().filter(|(path, _)| !path.starts_with("../"));
    own.filter_map(|(path, bytes)| {
        let path = path.strip_prefix(&prefix)?.to_owned();
        Some(ProjectPart { path, bytes: bytes.clone() })
    })
    .collect()
}

/// Adds the files of a task to a project.
fn copy_into(draft: &mut ProjectDraft, own: Vec<ProjectPart>) -> Result<(), String> {
    let bytes: usize = own.iter().map(|part| part.bytes.len()).sum();
    if bytes > COPIED_BYTES_MAX {
        return Err(format!("its files have {bytes} bytes, more than {COPIED_BYTES_MAX}"));
    }
    let is_ours = |path: &str| {
        path.starts_with("karve/") || ["karve.toml", "README.md", ".gitignore"].contains(&path)
    };
    for mut part in own {
        if part.path == "README.md" {
            part.path = "TASK.md".into();
        }
        if !is_ours(&part.path) {
            draft.files.push(part);
        }
    }
    Ok(())
}

/// The name of a directory, or of the one that was named.
fn name_of(files: &TaskFiles, dir: &str) -> String {
    let whole = format!("{}/{dir}", files.root);
    plain_name(whole.trim_end_matches('/').rsplit('/').next().unwrap_or("task"))
}
