//! A project that an import proposes, and its `karve.toml`.

use super::ImportOptions;
use karve_numerics::draw::Draw;
use serde_json::{Value as Json, json};
use toml::{Table, Value};

/// The widest comment, in columns.
const WIDTH: usize = 96;
/// Cases from which on a quick subset is named, and how many it has.
const QUICK_FROM: usize = 6;
const QUICK: usize = 3;

/// The script that tests and measures a task in command mode, and what it reads.
pub(super) const RUN: &str = include_str!("run.py");
pub(super) const RUN_PATH: &str = "karve/run.py";
/// What an imported task is, for its scripts.
pub const TASK_PATH: &str = "karve/task.json";

/// How a candidate is judged.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum JudgedBy {
    /// karve calls it itself.
    Contract(ContractDraft),
    /// Commands of the project do.
    Commands(CommandsDraft),
}

/// A `[contract]` with a Python kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ContractDraft {
    /// The file of the kernel.
    pub(super) python: String,
    /// Keys besides those below, in order.
    pub(super) keys: Vec<(&'static str, Value)>,
    /// The arguments, as inline tables.
    pub(super) args: Vec<Table>,
    /// The file of the reference.
    pub(super) reference: String,
    /// Whether it computes in the types of the arguments.
    pub(super) is_native: bool,
}

/// `[commands]`, `[output]` and `[metric]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CommandsDraft {
    /// Keys of `[commands]`.
    pub(super) commands: Vec<(&'static str, Value)>,
    /// Keys of `[output]`.
    pub(super) output: Vec<(&'static str, Value)>,
    /// Keys of `[metric]`.
    pub(super) metric: Vec<(&'static str, Value)>,
    /// Paths outside the project that the commands read.
    pub(super) reads: Vec<String>,
}

/// A case, with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CaseDraft {
    /// Its name.
    pub(super) name: String,
    /// Its parameters.
    pub(super) params: Vec<(String, Value)>,
}

/// A file of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectPart {
    /// Relative to the project.
    pub path: String,
    /// Its contents.
    pub bytes: Vec<u8>,
}

impl ProjectPart {
    /// A file with a text.
    pub(super) fn text(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { path: path.into(), bytes: text.into().into_bytes() }
    }
}

/// A project that an import proposes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ProjectDraft {
    /// The directory.
    pub(super) name: String,
    /// The operation.
    pub(super) op: String,
    /// The backend and the language of the kernel.
    pub(super) backend: [String; 2],
    /// Requirements in words, for the agent.
    pub(super) constraints: Vec<String>,
    /// What a candidate may change.
    pub(super) editable: Vec<String>,
    /// How it is judged.
    pub(super) judged: JudgedBy,
    /// What is measured.
    pub(super) cases: Vec<CaseDraft>,
    /// The time limit of a command, in seconds.
    pub(super) command_s: Option<u64>,
    /// What a user must know, in sentences.
    pub(super) notes: Vec<String>,
    /// The files, without `karve.toml`.
    pub(super) files: Vec<ProjectPart>,
}

impl ProjectDraft {
    /// A task in command mode, by [`RUN`]. The cases are in `task` under `cases` and `tests`.
    pub(super) fn by_script(name: &str, options: &ImportOptions, task: &Json) -> Self {
        let python = options.interpreter();
        let empty = Vec::new();
        let cases = task["cases"].as_array().unwrap_or(&empty).iter();
        let named = |case: &Json| case["name"].as_str().unwrap_or_default().to_owned();
        let text = |text: String| Value::String(text);
        Self {
            name: name.to_owned(),
            op: name.to_owned(),
            backend: ["pytorch".into(), "Python".into()],
            constraints: Vec::new(),
            editable: Vec::new(),
            judged: JudgedBy::Commands(CommandsDraft {
                commands: vec![
                    ("test", text(format!("{python} {RUN_PATH} test"))),
                    ("bench", text(format!("{python} {RUN_PATH} bench {{case}}"))),
                ],
                output: vec![("format", text("metric".into()))],
                metric: vec![("name", text("time_us".into()))],
                reads: Vec::new(),
            }),
            cases: cases.map(|case| CaseDraft { name: named(case), params: Vec::new() }).collect(),
            command_s: None,
            notes: Vec::new(),
            files: vec![ProjectPart::text(RUN_PATH, RUN), task_file(task)],
        }
    }

    /// The text of `karve.toml`.
    pub(super) fn render(&self, options: &ImportOptions) -> String {
        let mut text = String::from(
            "# Written by \"karve import\". docs/karve-toml.md has every key; README.md in this\n\
             # directory says what the task is and where it differs from its original.\n",
        );
        for note in &self.notes {
            text.push_str(&remark(note));
        }
        let string = |text: &str| Value::String(text.to_owned());
        let list = |texts: &[String]| Value::Array(texts.iter().map(|t| string(t)).collect());
        let mut target = vec![
            ("op", string(&self.op)),
            ("backend", string(&self.backend[0])),
            ("language", string(&self.backend[1])),
            ("device", string(if options.is_cpu() { "cpu" } else { "gpu" })),
        ];
        if !self.constraints.is_empty() {
            target.push(("constraints", list(&self.constraints)));
        }
        section(&mut text, "target", &target);
        section(&mut text, "sources", &[("editable", list(&self.editable))]);
        match &self.judged {
            JudgedBy::Contract(contract) => contract.render(&mut text, options),
            JudgedBy::Commands(commands) => {
                section(&mut text, "commands", &commands.commands);
                section(&mut text, "output", &commands.output);
                section(&mut text, "metric", &commands.metric);
                let mut sandbox = vec![("caches", string("tree"))];
                if !commands.reads.is_empty() {
                    sandbox.push(("read", list(&commands.reads)));
                }
                section(&mut text, "sandbox", &sandbox);
            }
        }
        self.render_cases(&mut text);
        if let Some(seconds) = self.command_s {
            section(&mut text, "limits", &[("command_s", Value::Integer(seconds as i64))]);
        }
        text
    }

    fn render_cases(&self, text: &mut String) {
        text.push_str("\n[cases]\nlist = [\n");
        for case in &self.cases {
            let mut table = Table::new();
            table.insert("name".into(), Value::String(case.name.clone()));
            table.extend(case.params.iter().cloned());
            text.push_str(&format!("  {},\n", inline(&table)));
        }
        text.push_str("]\n");
        if self.cases.len() >= QUICK_FROM {
            let step = (self.cases.len() - 1) / (QUICK - 1);
            let quick = self.cases.iter().step_by(step).take(QUICK);
            let names = quick.map(|case| Value::String(case.name.clone())).collect();
            text.push_str(&format!("quick = {}\n", Value::Array(names)));
        }
    }

    /// The page that says what the task is.
    pub(super) fn readme(&self, title: &str) -> String {
        let mode = match self.judged {
            JudgedBy::Contract(_) => {
                "karve calls the kernel itself, draws its inputs, and compares every result with \
                 the reference (`[contract]`)."
            }
            JudgedBy::Commands(_) => {
                "The commands in `karve.toml` test and measure the kernel; what they say is \
                 believed."
            }
        };
        let mut text = format!("# {}\n\n{title}\n\n{mode}\n", self.name);
        if !self.notes.is_empty() {
            text.push_str("\n## What to know\n\n");
            for note in &self.notes {
                text.push_str(&format!("- {note}\n"));
            }
        }
        text.push_str("\n`karve lint-task` looks for what the task's own check lets through.\n");
        text
    }
}

impl ContractDraft {
    fn render(&self, text: &mut String, options: &ImportOptions) {
        let string = |text: &str| Value::String(text.to_owned());
        let mut keys = vec![("python", string(&self.python))];
        if let Some(python) = &options.python {
            keys.push(("interpreter", string(python)));
        }
        keys.push(("device", string(if options.is_cpu() { "cpu" } else { "cuda" })));
        keys.extend(self.keys.iter().cloned());
        section(text, "contract", &keys);
        if !self.args.is_empty() {
            text.push_str("args = [\n");
            for arg in &self.args {
                text.push_str(&format!("  {},\n", inline(arg)));
            }
            text.push_str("]\n");
        }
        let mut reference = vec![("python", string(&self.reference))];
        if self.is_native {
            reference.push(("precision", string("native")));
        }
        section(text, "contract.reference", &reference);
        // What a model must beat is not only the original, which starts as a copy of it.
        let is_model = self.keys.iter().any(|(key, _)| *key == "style");
        if is_model && !options.is_cpu() {
            section(text, "baselines.eager", &[("python", string(&self.reference))]);
            section(text, "baselines.compile", &[("compile", string("default"))]);
        }
    }
}

/// `karve/task.json`.
pub(super) fn task_file(task: &Json) -> ProjectPart {
    ProjectPart::text(TASK_PATH, format!("{task:#}\n"))
}

/// A tolerance, as `karve.toml` writes it.
pub(super) fn tolerance(absolute: f64, relative: f64) -> Value {
    let mut table = Table::new();
    table.insert("absolute".into(), Value::Float(absolute));
    table.insert("relative".into(), Value::Float(relative));
    Value::Table(table)
}

/// The same for [`TASK_PATH`].
pub(super) fn tolerance_json(absolute: f64, relative: f64) -> Json {
    json!({ "absolute": absolute, "relative": relative })
}

/// A draw, as `karve.toml` writes it.
pub(super) fn draw_value(draw: &Draw) -> Value {
    Value::try_from(draw).unwrap_or_else(|_| Value::String("normal".into()))
}

/// An argument of a contract.
pub(super) fn arg(name: &str, kind: &str, dtype: &str) -> Table {
    let mut table = Table::new();
    for (key, value) in [("name", name), ("kind", kind), ("dtype", dtype)] {
        table.insert(key.into(), Value::String(value.into()));
    }
    table
}

fn section(text: &mut String, name: &str, keys: &[(&'static str, Value)]) {
    text.push_str(&format!("\n[{name}]\n"));
    for (key, value) in keys {
        text.push_str(&format!("{key} = {}\n", value_text(value)));
    }
}

/// A value on one line; the keys of tables are in the order of [`inline`].
fn value_text(value: &Value) -> String {
    match value {
        Value::Table(table) => inline(table),
        other => other.to_string(),
    }
}

/// A table on one line, `name` and `kind` first.
fn inline(table: &Table) -> String {
    let first = ["name", "kind", "dtype", "shape", "value", "draw"];
    let rest = table.keys().map(String::as_str).filter(|key| !first.contains(key));
    let keys = first.into_iter().filter(|key| table.contains_key(*key)).chain(rest);
    let pairs = keys.filter_map(|key| {
        let plain = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        let name = if plain { key.to_owned() } else { Value::String(key.into()).to_string() };
        Some(format!("{name} = {}", value_text(table.get(key)?)))
    });
    format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
}

/// A note as a comment, wrapped between words.
fn remark(note: &str) -> String {
    let mut text = String::new();
    let mut line = "# -".to_owned();
    for word in note.replace(char::is_control, " ").split(' ') {
        if line.chars().count() + word.chars().count() >= WIDTH && line.len() > 3 {
            text.push_str(&format!("{}\n", line.trim_end()));
            line = "#  ".to_owned();
        }
        line.push(' ');
        line.push_str(word);
    }
    text.push_str(&format!("{}\n", line.trim_end()));
    text
}
