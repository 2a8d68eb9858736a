//! Workers for modules in Python: the program that serves, and what it is started with.
//!
//! The worker is one file, `worker.py`, which karve carries and writes where it may. A kernel finds
//! the files of its own tree; a reference is one file that finds no other. Nothing is taken from
//! the user's own Python directories, and every library is told how many threads it may start.

use super::arm::Program;
use super::protocol::Module;
use super::terms::Terms;
use karve_numerics::contract::{Kernel, Precision, PythonStyle, Reference};
use karve_os::error::{Context, Result};
use karve_os::process::{self, Command};
use std::fs;
use std::path::{Path, PathBuf};

/// The worker.
const WORKER: &str = include_str!("worker.py");

/// The interpreter, unless the contract names one.
const INTERPRETER: &str = "python3";

/// Variables that say how many threads a library starts.
const THREADS: [&str; 6] = [
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
];

/// Variables that say where compiled kernels are kept.
const CACHES: [&str; 5] = [
    "TRITON_CACHE_DIR",
    "TORCHINDUCTOR_CACHE_DIR",
    "TORCH_EXTENSIONS_DIR",
    "CUDA_CACHE_PATH",
    "NUMBA_CACHE_DIR",
];

/// Variables of the user's that change what Python does.
const FOREIGN: [&str; 6] = [
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "PYTHONOPTIMIZE",
    "PYTHONWARNINGS",
];

/// The kernel of a module.
pub(super) fn kernel(
    terms: &Terms,
    (dir, file): (&Path, &Path),
    style: PythonStyle,
) -> Result<Program> {
    let entry = match style {
        PythonStyle::Functions => "kernel_fn",
        PythonStyle::Models => "ModelNew",
    };
    // Each tree has its own: what one candidate compiled is not taken for another's.
    let name = dir.to_string_lossy().replace('/', "-");
    Ok(Program {
        command: command(terms, dir, &name)?,
        path: file.to_string_lossy().into_owned(),
        shown: match &terms.contract.kernel {
            Kernel::Python { path, .. } | Kernel::Library { path, .. } => path.clone(),
        },
        entry: entry.into(),
        module: Some(Module {
            device: terms.contract.modules.device.clone(),
            wide: false,
            alone: false,
            hidden: hidden(&terms.contract.reference),
            seed: terms.weights,
        }),
    })
}

/// The reference of a module.
pub(super) fn reference(
    terms: &Terms,
    (dir, file): (&Path, &Path),
    precision: Precision,
) -> Result<Program> {
    let entry = match &terms.contract.kernel {
        Kernel::Python {
            style: PythonStyle::Models,
            ..
        } => "Model",
        Kernel::Python { .. } | Kernel::Library { .. } => "reference_fn",
    };
    Ok(Program {
        command: command(terms, dir, "reference")?,
        path: file.to_string_lossy().into_owned(),
        shown: match &terms.contract.reference {
            Reference::Python { path, .. } | Reference::Library { path, .. } => path.clone(),
            Reference::Command { .. } => String::new(),
        },
        entry: entry.into(),
        module: Some(Module {
            device: terms.contract.modules.device.clone(),
            wide: precision == Precision::Wide,
            alone: true,
            hidden: Vec::new(),
            seed: terms.weights,
        }),
    })
}

/// The name under which a kernel would find the reference.
fn hidden(reference: &Reference) -> Vec<String> {
    match reference {
        Reference::Python { path, .. } => {
            let stem = Path::new(path).file_stem();
            stem.map(|stem| stem.to_string_lossy().into_owned())
                .into_iter()
                .collect()
        }
        Reference::Library { .. } | Reference::Command { .. } => Vec::new(),
    }
}

fn command(terms: &Terms, dir: &Path, cache: &str) -> Result<Command> {
    let mut command = command_of(terms, dir, cache, ("worker.py", WORKER))?;
    // For a device, compilers are started and drivers written to.
    if terms.contract.modules.device.is_none()
        && let process::Program::Argv(args) = &mut command.program
    {
        args.push(process::lock_text().into());
    }
    Ok(command)
}

/// The same for a program that karve carries.
pub(super) fn command_of(
    terms: &Terms,
    dir: &Path,
    cache: &str,
    program: (&str, &str),
) -> Result<Command> {
    let interpreter = terms.contract.modules.interpreter.as_deref();
    let worker = written(&terms.scratch, program)?;
    let args = vec![
        interpreter.unwrap_or(INTERPRETER).into(),
        // No bytecode is written, and nothing of the user's is imported.
        "-B".into(),
        "-s".into(),
        worker.into(),
    ];
    let mut command = Command {
        program: process::Program::Argv(args),
        dir: dir.to_owned(),
        ..terms.command.clone()
    };
    for name in FOREIGN {
        command = command.env_remove(name);
    }
    let threads = terms.contract.threads.max(1).to_string();
    for name in THREADS {
        command = command.env(name, &threads);
    }
    let caches = terms.scratch.join("caches").join(cache);
    for name in CACHES {
        let place = caches.join(name.to_lowercase());
        command = command.env(name, place.to_string_lossy());
    }
    Ok(command.env("PYTHONHASHSEED", "0"))
}

/// A program as a file.
fn written(scratch: &Path, (name, program): (&str, &str)) -> Result<PathBuf> {
    let dir = scratch.join("worker");
    let path = dir.join(name);
    let cannot = || format!("cannot write {}", path.display());
    if fs::read(&path).is_ok_and(|found| found == program.as_bytes()) {
        return Ok(path);
    }
    fs::create_dir_all(&dir).context(cannot)?;
    fs::write(&path, program).context(cannot)?;
    Ok(path)
}
