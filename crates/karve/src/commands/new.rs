//! `karve new`: creates a directory with a kernel, its contract and a reference, ready to run.

use crate::project::ProjectArgs;
use crate::ui;
use karve_harness::git::{self, CommitNote, NewFile, Repo};
use karve_os::clock;
use karve_os::error::{CommandError, Result, WithContext};
use std::fs;
use std::path::{Path, PathBuf};

/// Create a directory with a kernel, its contract and a reference, ready to run
///
/// Writes a kernel with knobs, its contract in karve.toml, a reference, a README and a .gitignore.
/// Makes it a git repository with one commit, unless it is already inside one.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve new --template c && cd c && karve run
  karve new --template python-numpy my-softmax")]
pub struct NewArgs {
    /// The template to start from
    #[arg(short, long, value_enum)]
    template: Template,
    /// The directory [default: the template's name]
    #[arg(value_name = "DIR")]
    into: Option<PathBuf>,
    /// Write into a directory that is not empty, overwriting files with the same names
    #[arg(short, long)]
    force: bool,
}

/// The templates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Template {
    /// A matrix product in C
    C,
    /// A softmax in Rust, with an entry point for C
    Rust,
    /// A softmax in Python, with NumPy
    PythonNumpy,
    /// A matrix product for a GPU, in Triton; needs PyTorch and a GPU
    Triton,
    /// A matrix product for a GPU, in CUDA; needs nvcc and a GPU
    Cuda,
    /// A matrix product for a GPU, in cuTile; needs PyTorch, cuda-tile and a GPU
    Cutile,
    /// A matrix product for a GPU, in the CuTe DSL; needs PyTorch, nvidia-cutlass-dsl and a GPU
    CuteDsl,
    /// A matrix product for an AMD GPU, in HIP; builds, but karve cannot call it yet
    Hip,
    /// A scaled sum for an AMD GPU, in FlyDSL; compiles, but karve cannot call it yet
    Flydsl,
}

/// The `.gitignore` of every template.
const GITIGNORE: &str = "/.karve/\n/build/\n__pycache__/\n";

/// Names and contents of files.
type TemplateFiles = &'static [(&'static str, &'static str)];

macro_rules! embedded {
    ($dir:literal: $($name:literal),+) => {
        &[$(($name, include_str!(concat!("../../templates/", $dir, "/", $name)))),+]
    };
}

impl Template {
    fn name(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::Rust => "rust",
            Self::PythonNumpy => "python-numpy",
            Self::Triton => "triton",
            Self::Cuda => "cuda",
            Self::Cutile => "cutile",
            Self::CuteDsl => "cute-dsl",
            Self::Hip => "hip",
            Self::Flydsl => "flydsl",
        }
    }

    fn files(self) -> TemplateFiles {
        match self {
            Self::C => embedded!("c": "README.md", "karve.toml", "kernel.c", "reference.c"),
            Self::Rust => embedded!("rust": "README.md", "karve.toml", "kernel.rs", "reference.rs"),
            Self::PythonNumpy => {
                embedded!("python-numpy": "README.md", "karve.toml", "kernel.py", "reference.py")
            }
            Self::Triton => {
                embedded!("triton": "README.md", "karve.toml", "kernel.py", "reference.py")
            }
            Self::Cuda => {
                embedded!("cuda": "README.md", "karve.toml", "kernel.cu", "reference.cu")
            }
            Self::Cutile => {
                embedded!("cutile": "README.md", "karve.toml", "kernel.py", "reference.py")
            }
            Self::CuteDsl => {
                embedded!("cute-dsl": "README.md", "karve.toml", "kernel.py", "reference.py")
            }
            Self::Hip => {
                embedded!("hip": "README.md", "karve.toml", "kernel.hip", "reference.hip")
            }
            Self::Flydsl => {
                embedded!("flydsl": "README.md", "karve.toml", "kernel.py", "reference.py")
            }
        }
    }

    /// What to do first: karve runs no kernels on AMD devices, so there the README says it.
    fn next(self) -> &'static str {
        match self {
            Self::Hip | Self::Flydsl => "read README.md: karve cannot call this kernel yet",
            Self::C
            | Self::Rust
            | Self::PythonNumpy
            | Self::Triton
            | Self::Cuda
            | Self::Cutile
            | Self::CuteDsl => "karve run",
        }
    }
}

impl NewArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let name = self.into.clone().unwrap_or_else(|| self.template.name().into());
        let dir = place.here()?.join(&name);
        let occupied = fs::read_dir(&dir).is_ok_and(|mut entries| entries.next().is_some());
        if occupied && !self.force {
            return Err(CommandError::usage(format!("{} is not empty", name.display()))
                .hint("choose another directory, or write into this one with --force"));
        }
        let mut files = vec![new_file((".gitignore", GITIGNORE))];
        files.extend(self.template.files().iter().copied().map(new_file));
        fs::create_dir_all(&dir).context(|| format!("cannot create {}", dir.display()))?;
        if is_in_repository(&dir) {
            write(&dir, &files)?;
            let name = name.display();
            ui::outln(&format!("wrote {name}"));
            ui::note(&format!(
                "note: {name} is inside another git repository and its files are not committed \
                there; a campaign only sees committed files"
            ));
            ui::outln(&format!(
                "next: git add {name} && git commit -m kernel && cd {name} && {}",
                self.template.next()
            ));
            return Ok(());
        }
        let message = format!("A starter kernel: {}\n", self.template.name());
        let note = CommitNote { message: &message, date: clock::now_s() };
        git::init_with(&dir, &files, &note)?;
        ui::outln(&format!("wrote {}, with one commit", name.display()));
        ui::outln(&format!("next: cd {} && {}", name.display(), self.template.next()));
        Ok(())
    }
}

fn new_file((path, text): (&str, &str)) -> NewFile {
    NewFile { path: path.to_owned(), bytes: text.as_bytes().to_vec(), executable: false }
}

/// Whether a directory is inside a repository, with or without a commit.
fn is_in_repository(dir: &Path) -> bool {
    let has_git = |dir: &Path| dir.join(".git").symlink_metadata().is_ok();
    dir.ancestors().any(has_git) || Repo::discover(dir).is_ok()
}

fn write(dir: &Path, files: &[NewFile]) -> Result<()> {
    for file in files {
        let path = dir.join(&file.path);
        fs::write(&path, &file.bytes).context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
