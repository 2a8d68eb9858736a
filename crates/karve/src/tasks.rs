//! Tasks of other projects as projects of karve: what `karve import` writes.
//!
//! ```text
//! TaskFiles ──▶ one file per format ──▶ ProjectDraft ──▶ ImportedTask, its karve.toml checked
//! ```
//!
//! Nothing of a task is run here, and everything in it is untrusted: files are parsed as data, and
//! what cannot be determined that way is said.

mod computeeval;
mod draft;
mod evolve;
mod examine;
mod gpumode;
mod kernelbench;
mod lint;
mod names;
mod ordered;
mod python;
mod robust;
mod start;
mod traces;
mod tritonbench;

pub use draft::{ProjectPart, TASK_PATH};
pub use examine::{ExamineTask, TaskCheck, examine_quickly};
pub use lint::{AcceptedFault, TaskLint};

use crate::config::{self, CharterTime, Overrides};
use draft::{JudgedBy, ProjectDraft};
use karve_harness::project_file::FILE_NAME;
use karve_numerics::tensor::Dtype;
use karve_os::error::CommandError;
use std::collections::BTreeMap;
use std::path::Path;

/// The formats that can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum TaskFormat {
    /// KernelBench: files with Model, get_inputs and get_init_inputs
    Kernelbench,
    /// MultiKernelBench: the same files, in reference/CATEGORY
    Multikernelbench,
    /// GPU MODE: task.yml, reference.py and one file to submit
    Gpumode,
    /// FlashInfer-Bench: definitions and workloads
    Flashinfer,
    /// SOL-ExecBench: definition.json and workload.jsonl
    SolExecbench,
    /// robust-kbench: func_forward.py and config_forward.json
    RobustKbench,
    /// ComputeEval: problems.jsonl of an unpacked release, or problem-spec.yaml
    Computeeval,
    /// autoresearch: program.md and train.py, or autoresearch.toml
    Autoresearch,
    /// OpenEvolve: initial_program and evaluator.py
    Openevolve,
    /// ShinkaEvolve: initial and evaluate.py
    Shinka,
    /// TritonBench: files with an implementation and a test
    Tritonbench,
}

/// How tasks are imported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// The type that inputs and weights are converted to.
    pub dtype: Option<Dtype>,
    /// Where tensors are.
    pub device: TaskDevice,
    /// What runs Python files.
    pub python: Option<String>,
    /// The kernel to start from, in the format of the task.
    pub kernel: Option<String>,
}

/// Where the tensors of a task are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum TaskDevice {
    /// An NVIDIA GPU
    #[default]
    Cuda,
    /// The host
    Cpu,
}

impl ImportOptions {
    fn is_cpu(&self) -> bool {
        self.device == TaskDevice::Cpu
    }

    fn device_name(&self) -> &'static str {
        if self.is_cpu() { "cpu" } else { "cuda" }
    }

    fn interpreter(&self) -> &str {
        self.python.as_deref().unwrap_or("python3")
    }
}

/// The files of a checkout that hold tasks: paths with `/`, and contents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskFiles {
    /// The directory that was named, as an absolute path.
    pub root: String,
    /// Files that were read, relative to the directory that was named; those next to it have `../`.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Files that were too large to read, or of a kind that is not read.
    pub unread: Vec<String>,
}

impl TaskFiles {
    /// The text of a file, if it was read and is text.
    fn text(&self, path: &str) -> Option<&str> {
        std::str::from_utf8(self.files.get(path)?).ok()
    }

    /// The files whose names end in some way, with their texts.
    fn ending<'a>(&'a self, end: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let own =
            self.files.keys().filter(move |path| path.ends_with(end) && !path.starts_with("../"));
        own.filter_map(|path| Some((path.as_str(), self.text(path)?)))
    }
}

/// A task that became a project.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedTask {
    /// Its directory.
    pub name: String,
    /// Whether karve calls the kernel itself.
    pub has_contract: bool,
    /// How many cases are measured.
    pub n_cases: usize,
    /// What a user must know, in sentences.
    pub notes: Vec<String>,
    /// The files.
    pub files: Vec<ProjectPart>,
}

/// A task that could not be imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedTask {
    /// What it is called.
    pub name: String,
    /// Why not.
    pub why: String,
}

/// The tasks of some files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportResult {
    /// Those that became projects, with different names.
    pub imported: Vec<ImportedTask>,
    /// The others.
    pub refused: Vec<RefusedTask>,
}

/// What a format makes of one task: its title, and the project or why there is none.
struct FoundTask {
    name: String,
    title: String,
    draft: Result<ProjectDraft, String>,
}

impl TaskFormat {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernelbench => "kernelbench",
            Self::Multikernelbench => "multikernelbench",
            Self::Gpumode => "gpumode",
            Self::Flashinfer => "flashinfer",
            Self::SolExecbench => "sol-execbench",
            Self::RobustKbench => "robust-kbench",
            Self::Computeeval => "computeeval",
            Self::Autoresearch => "autoresearch",
            Self::Openevolve => "openevolve",
            Self::Shinka => "shinka",
            Self::Tritonbench => "tritonbench",
        }
    }

    /// The name of files that say which other files a task has, as `../eval.py`.
    pub fn manifest(self) -> Option<&'static str> {
        (self == Self::Gpumode).then_some("task.yml")
    }

    /// Whether inputs and weights can be converted to another type.
    pub fn takes_dtype(self) -> bool {
        matches!(self, Self::Kernelbench | Self::Multikernelbench | Self::RobustKbench)
    }

    /// What a directory with such tasks has.
    pub fn looks_like(self) -> &'static str {
        match self {
            Self::Kernelbench => "NAME.py files with `class Model` and get_inputs",
            Self::Multikernelbench => "reference/CATEGORY/NAME.py with `class Model`",
            Self::Gpumode => "task.yml beside reference.py",
            Self::Flashinfer => "definitions/NAME.json and workloads/NAME.jsonl",
            Self::SolExecbench => "definition.json beside workload.jsonl",
            Self::RobustKbench => "func_forward.py beside config_forward.json",
            Self::Computeeval => "problems.jsonl of a release that is unpacked with `tar`",
            Self::Autoresearch => "program.md beside train.py and prepare.py",
            Self::Openevolve => "evaluator.py beside initial_program.py",
            Self::Shinka => "evaluate.py beside initial.py",
            Self::Tritonbench => "NAME.py with a line of number signs before its test",
        }
    }

    fn find(self, files: &TaskFiles, options: &ImportOptions) -> Vec<FoundTask> {
        match self {
            Self::Kernelbench => kernelbench::find(files, options, "KernelBench"),
            Self::Multikernelbench => kernelbench::find(files, options, "MultiKernelBench"),
            Self::Gpumode => gpumode::find(files, options),
            Self::Flashinfer => traces::find_flashinfer(files, options),
            Self::SolExecbench => traces::find_sol(files, options),
            Self::RobustKbench => robust::find(files, options),
            Self::Computeeval => computeeval::find(files, options),
            Self::Autoresearch => evolve::find_autoresearch(files, options),
            Self::Openevolve => evolve::find_openevolve(files, options),
            Self::Shinka => evolve::find_shinka(files, options),
            Self::Tritonbench => tritonbench::find(files, options),
        }
    }
}

/// Turns all tasks of some files into projects.
pub fn import_tasks(
    format: TaskFormat,
    files: &TaskFiles,
    options: &ImportOptions,
) -> ImportResult {
    let mut result = ImportResult::default();
    for FoundTask { name, title, draft } in format.find(files, options) {
        let started = draft.and_then(|mut draft| match &options.kernel {
            Some(kernel) => start::start_from(format, &mut draft, kernel).map(|()| draft),
            None => Ok(draft),
        });
        match started.and_then(|draft| finished(draft, &title, options)) {
            Ok(mut task) => {
                task.name = names::unused(&task.name, &result.imported);
                result.imported.push(task);
            }
            Err(why) => result.refused.push(RefusedTask { name, why }),
        }
    }
    result
}

/// The project with its `karve.toml`, which karve itself must accept.
fn finished(
    draft: ProjectDraft,
    title: &str,
    options: &ImportOptions,
) -> Result<ImportedTask, String> {
    let text = draft.render(options);
    let now = CharterTime { minute: "2000-01-01 00:00".into() };
    let read = config::parse(&text, Path::new("/task"), &Overrides::default(), &now);
    read.map_err(|error: CommandError| format!("no karve.toml fits it: {error}"))?;
    let readme = draft.readme(title);
    let mut files = draft.files;
    files.push(ProjectPart::text("README.md", readme));
    files.push(ProjectPart::text(FILE_NAME, text));
    files.push(ProjectPart::text(".gitignore", "/.karve/\n__pycache__/\n"));
    if let Some(file) = files.iter().find(|file| !names::is_inside(&file.path)) {
        return Err(format!("its file `{}` is outside the project", file.path));
    }
    Ok(ImportedTask {
        name: draft.name,
        has_contract: matches!(draft.judged, JudgedBy::Contract(_)),
        n_cases: draft.cases.len(),
        notes: draft.notes,
        files,
    })
}

#[cfg(test)]
mod tests;
