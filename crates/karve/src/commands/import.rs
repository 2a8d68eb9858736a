//! `karve import`: turns tasks of other projects into projects of karve.

mod checkout;

use crate::project::ProjectArgs;
use crate::tasks::{ImportOptions, ImportResult, TaskDevice, TaskFormat, import_tasks};
use crate::ui;
use karve_harness::git::{self, CommitNote, NewFile, Repo};
use karve_numerics::tensor::Dtype;
use karve_os::error::{CommandError, ErrorKind, Result, WithContext};
use karve_os::text::safe;
use karve_os::{clock, files};
use std::fs;
use std::path::{Path, PathBuf};

/// How many tasks are listed one by one, and how many notes of each.
const LISTED_MAX: usize = 40;
const CHARS_MAX: usize = 240;

/// Turn tasks of KernelBench, GPU MODE and others into projects
///
/// PATH is a task or a directory with many, in your own checkout. Each becomes a directory with
/// karve.toml, the kernel to change, the reference, the cases and the tolerance of the task. Where
/// the inputs are plain random numbers, karve draws them itself under a contract; otherwise a
/// script makes them, in another process than the kernel's. What could not be determined is said.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve import kernelbench KernelBench/level1/23_Softmax.py
  karve import kernelbench KernelBench/level1 --dtype bf16 --out level1
  karve import gpumode reference-kernels/problems/pmpp_v2 --out pmpp
  karve import flashinfer flashinfer-trace --out flashinfer
  karve import openevolve openevolve/examples/circle_packing")]
pub struct TaskImportArgs {
    /// The form of the tasks
    #[arg(value_enum)]
    format: TaskFormat,
    /// A file or a directory with tasks
    #[arg(value_name = "PATH")]
    from: PathBuf,
    /// The directory that the projects are written to
    #[arg(long, value_name = "DIR", default_value = "tasks")]
    out: PathBuf,
    /// Convert inputs and weights to this type
    #[arg(long, value_enum)]
    dtype: Option<DtypeOption>,
    /// Where tensors are
    #[arg(long, value_enum, default_value = "cuda")]
    device: TaskDevice,
    /// The Python that runs kernels: a name on the PATH, or a full path [default: python3]
    #[arg(long, value_name = "PYTHON")]
    python: Option<String>,
    /// Start from this kernel in the format of the task, such as what `karve export` wrote
    #[arg(long, value_name = "FILE")]
    kernel: Option<PathBuf>,
    /// Write into a directory that is not empty, overwriting files with the same names
    #[arg(short, long)]
    force: bool,
}

/// Types that a task can be converted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum DtypeOption {
    /// 32 bits
    F32,
    /// 16 bits, IEEE 754
    F16,
    /// 16 bits, bfloat16
    Bf16,
}

impl DtypeOption {
    fn dtype(self) -> Dtype {
        match self {
            Self::F32 => Dtype::F32,
            Self::F16 => Dtype::F16,
            Self::Bf16 => Dtype::Bf16,
        }
    }
}

impl TaskImportArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        if self.dtype.is_some() && !self.format.takes_dtype() {
            let message = format!("tasks of {} have their own types", self.format.name());
            return Err(CommandError::usage(message).hint("leave --dtype out"));
        }
        let here = place.here()?;
        let out = here.join(&self.out);
        let is_occupied = fs::read_dir(&out).is_ok_and(|mut entries| entries.next().is_some());
        if is_occupied && !self.force {
            let message = format!("{} is not empty", self.out.display());
            return Err(CommandError::usage(message)
                .hint("choose another directory with --out, or write into this one with --force"));
        }
        let found = checkout::read(&here.join(&self.from), self.format)?;
        let kernel = self.kernel.as_ref().map(|path| {
            files::read_text(&here.join(path), files::WRITTEN_BYTES_MAX)
                .context(|| format!("cannot read {}", path.display()))
                .map_err(|error| error.hint("name a file with --kernel FILE"))
        });
        let options = ImportOptions {
            kernel: kernel.transpose()?,
            dtype: self.dtype.map(DtypeOption::dtype),
            device: self.device,
            python: self.python.clone(),
        };
        let result = import_tasks(self.format, &found, &options);
        if result.imported.is_empty() {
            return Err(self.nothing(&result));
        }
        if self.kernel.is_some() && result.imported.len() > 1 {
            let message = format!("{} has several tasks", self.from.display());
            return Err(CommandError::usage(message)
                .hint("name the one task that --kernel FILE belongs to as PATH"));
        }
        self.write(&out, &result)?;
        self.report(&result);
        Ok(())
    }

    fn nothing(&self, result: &ImportResult) -> CommandError {
        let (name, from) = (self.format.name(), self.from.display());
        let error = match result.refused.first() {
            None => CommandError::usage(format!("there is no task of {name} in {from}")),
            Some(first) => {
                let message = format!("no task of {name} in {from} could be imported");
                let cause = format!("{}: {}", safe(&first.name, 80), safe(&first.why, CHARS_MAX));
                CommandError::new(ErrorKind::Negative, message).cause(cause)
            }
        };
        let looks = self.format.looks_like();
        error.hint(format!("such a task is {looks}; \"karve help import\" lists other formats"))
    }

    /// Writes all projects, as one repository with one commit unless it is inside another.
    fn write(&self, out: &Path, result: &ImportResult) -> Result<()> {
        let mut files = Vec::new();
        for task in &result.imported {
            files.extend(task.files.iter().map(|file| NewFile {
                path: format!("{}/{}", task.name, file.path),
                bytes: file.bytes.clone(),
                executable: false,
            }));
        }
        fs::create_dir_all(out).context(|| format!("cannot create {}", out.display()))?;
        if !is_in_repository(out) {
            let message = format!("Tasks of {}\n", self.format.name());
            let note = CommitNote { message: &message, date: clock::now_s() };
            git::init_with(out, &files, &note)?;
            return Ok(());
        }
        for file in &files {
            let path = out.join(&file.path);
            let dir = path.parent().unwrap_or(out);
            fs::create_dir_all(dir).context(|| format!("cannot create {}", dir.display()))?;
            fs::write(&path, &file.bytes).context(|| format!("cannot write {}", path.display()))?;
        }
        ui::note(&format!(
            "note: {} is inside a git repository and its files are not committed there; a \
             campaign only sees committed files",
            self.out.display()
        ));
        Ok(())
    }

    fn report(&self, result: &ImportResult) {
        let tasks = &result.imported;
        for task in tasks.iter().take(LISTED_MAX) {
            let mode = if task.has_contract { "contract" } else { "commands" };
            let s = if task.n_cases == 1 { "" } else { "s" };
            ui::outln(&format!("{:<40} {mode}  {} case{s}", task.name, task.n_cases));
            if tasks.len() == 1 {
                for note in &task.notes {
                    ui::outln(&format!("  - {}", safe(note, CHARS_MAX)));
                }
            }
        }
        if tasks.len() > LISTED_MAX {
            ui::outln(&format!("and {} more", tasks.len() - LISTED_MAX));
        }
        for task in &result.refused {
            let (name, why) = (safe(&task.name, 80), safe(&task.why, CHARS_MAX));
            ui::outln(&format!("not imported: {name}: {why}"));
        }
        let contracts = tasks.iter().filter(|task| task.has_contract).count();
        ui::outln(&format!(
            "imported {} of {} tasks to {}: {contracts} with a contract, {} with commands",
            tasks.len(),
            tasks.len() + result.refused.len(),
            self.out.display(),
            tasks.len() - contracts
        ));
        let first = tasks.first().map_or("", |task| task.name.as_str());
        let to = self.out.join(first);
        ui::outln(&format!("next: cd {} && karve doctor && karve run", to.display()));
    }
}

/// Whether a directory is inside a repository, with or without a commit.
fn is_in_repository(dir: &Path) -> bool {
    let has_git = |dir: &Path| dir.join(".git").symlink_metadata().is_ok();
    dir.ancestors().any(has_git) || Repo::discover(dir).is_ok()
}
