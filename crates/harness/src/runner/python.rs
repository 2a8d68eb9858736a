//! Workers for Python modules: the worker program, and how it is started.
//!
//! The worker is a shared object, compiled from `crates/os/python_worker`, and `worker.py`, which
//! loads it; karve embeds both and writes them to a permitted directory. A kernel finds the files
//! of its own tree; a reference is one file that finds no other. Nothing is imported from the
//! user's own Python directories, and every library gets a thread limit. Workers for a device are
//! forked from a process that has imported PyTorch and Triton.

use super::arm::WorkerProgram;
use super::fork_servers::{self, CACHES, TEMPORARY};
use super::protocol::ModuleOptions;
use super::setup::RunnerSetup;
use karve_numerics::contract::{
    BaselineKernel, CompileMode, Kernel, Precision, PythonStyle, Reference,
};
use karve_os::error::{Result, WithContext};
use karve_os::process::{self, Command, DeviceAccess, ReadableTree};
use karve_os::random::secret;
use std::fs;
use std::path::{Path, PathBuf};

/// What starts the worker, and the name under which that finds the worker.
const WORKER: &str = include_str!("worker.py");
const NATIVE_WORKER: &str = "worker.so";

/// The interpreter, unless the contract names one.
const INTERPRETER: &str = "python3";

/// Variables that set how many threads a library starts.
const THREADS: [&str; 6] = [
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
];

/// The user's variables that change Python's behavior.
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
    terms: &RunnerSetup,
    tree: ReadableTree,
    file: &Path,
    style: PythonStyle,
) -> Result<WorkerProgram> {
    let shown = match &terms.contract.kernel {
        Kernel::Python { path, .. } | Kernel::Library { path, .. } => path,
    };
    let mut program = module(terms, tree, file, (shown, entry_of(style)))?;
    if let Some(options) = &mut program.module {
        options.hidden = hidden(&terms.contract.reference);
    }
    Ok(program)
}

/// A baseline in a module. It may import the reference, and in the reference's own file it returns
/// its results as the reference does.
pub(super) fn baseline(
    terms: &RunnerSetup,
    tree: ReadableTree,
    file: &Path,
    (path, entry): (&str, &str),
    compile: Option<CompileMode>,
) -> Result<WorkerProgram> {
    let mut program = module(terms, tree, file, (path, entry))?;
    if let Some(options) = &mut program.module {
        options.finds_project = true;
        options.compile = compile.map(|mode| mode.in_torch().to_owned());
    }
    if matches!(&terms.contract.reference, Reference::Python { path: of, .. } if of == path) {
        program.passes_outputs = false;
    }
    Ok(program)
}

/// A function or a model of a module, which messages call by its path in the project.
fn module(
    terms: &RunnerSetup,
    mut tree: ReadableTree,
    file: &Path,
    (shown, entry): (&str, &str),
) -> Result<WorkerProgram> {
    let dir = terms.place(&tree.root);
    // Each tree has its own: one candidate's compiled kernels are not used for another.
    let name = dir.to_string_lossy().replace('/', "-");
    Ok(WorkerProgram {
        command: command(terms, &mut tree, &name)?,
        path: file.to_string_lossy().into_owned(),
        shown: shown.to_owned(),
        entry: entry.to_owned(),
        setup: terms.contract.setup.as_ref().map(|setup| setup.entry.clone()),
        module: Some(ModuleOptions {
            device: terms.contract.modules.device.clone(),
            wide: false,
            alone: false,
            hidden: Vec::new(),
            seed: terms.weights,
            compile: None,
            finds_project: false,
        }),
        passes_outputs: terms.contract.modules.passes_outputs,
        server: server(terms)?,
        tree,
        scratch: terms.scratch.clone(),
    })
}

/// What a kernel's module defines.
pub(super) fn entry_of(style: PythonStyle) -> &'static str {
    match style {
        PythonStyle::Functions => "kernel_fn",
        PythonStyle::Models => "ModelNew",
    }
}

/// The words of the command that plays the call in a directory, which the command calls `shown`.
pub(super) fn player(terms: &RunnerSetup, dir: &Path, shown: &str) -> Result<Vec<String>> {
    written(dir, "worker.py", WORKER.as_bytes())?;
    let interpreter = terms.contract.modules.interpreter.as_deref().unwrap_or(INTERPRETER);
    let worker = format!("{shown}/worker/worker.py");
    Ok([interpreter, "-B", "-s", &worker, "--play", shown].map(str::to_owned).to_vec())
}

/// The reference of a module.
pub(super) fn reference(
    terms: &RunnerSetup,
    mut tree: ReadableTree,
    file: &Path,
    precision: Precision,
) -> Result<WorkerProgram> {
    let entry = match &terms.contract.kernel {
        Kernel::Python { style: PythonStyle::Models, .. } => "Model",
        Kernel::Python { .. } | Kernel::Library { .. } => "reference_fn",
    };
    Ok(WorkerProgram {
        command: command(terms, &mut tree, "reference")?,
        path: file.to_string_lossy().into_owned(),
        shown: match &terms.contract.reference {
            Reference::Python { path, .. } | Reference::Library { path, .. } => path.clone(),
            Reference::Command { .. } => String::new(),
        },
        entry: entry.into(),
        setup: None,
        module: Some(ModuleOptions {
            device: terms.contract.modules.device.clone(),
            wide: precision == Precision::Wide,
            alone: true,
            hidden: Vec::new(),
            seed: terms.weights,
            compile: None,
            finds_project: false,
        }),
        passes_outputs: false,
        server: server(terms)?,
        tree,
        scratch: terms.scratch.clone(),
    })
}

/// What forks workers that import slowly: those for a device.
fn server(terms: &RunnerSetup) -> Result<Option<Command>> {
    if !terms.contract.is_on_device() {
        return Ok(None);
    }
    let mut command = command_of(terms, &terms.scratch, "server", "worker.py", WORKER)?;
    // The same one, whatever the worker that is needed first may do.
    command.cpus.clear();
    command.limit = process::LIMIT_DEFAULT;
    if let process::Program::Argv(args) = &mut command.program {
        args.push("--fork".into());
    }
    Ok(Some(command))
}

/// Starts the server that workers are forked from, if they are and there is none: what it imports
/// takes seconds, in which something else can be done.
pub(super) fn start_server(terms: &RunnerSetup) -> Result<()> {
    let is_python = matches!(terms.contract.kernel, Kernel::Python { .. })
        || matches!(terms.contract.reference, Reference::Python { .. })
        || matches!(terms.baseline, Some((_, BaselineKernel::Python { .. })));
    let Some(server) = server(terms)?.filter(|_| is_python) else {
        return Ok(());
    };
    fork_servers::start(server, &terms.stop)
}

/// The name under which a kernel would find the reference.
fn hidden(reference: &Reference) -> Vec<String> {
    match reference {
        Reference::Python { path, .. } => {
            let stem = Path::new(path).file_stem();
            stem.map(|stem| stem.to_string_lossy().into_owned()).into_iter().collect()
        }
        Reference::Library { .. } | Reference::Command { .. } => Vec::new(),
    }
}

fn command(terms: &RunnerSetup, tree: &mut ReadableTree, cache: &str) -> Result<Command> {
    let dir = terms.place(&tree.root);
    written(&terms.scratch, NATIVE_WORKER, karve_os::PYTHON_WORKER)?;
    let mut command = command_of(terms, &dir, cache, "worker.py", WORKER)?;
    if tree.device != DeviceAccess::None {
        let caches = cache_dir(terms, cache);
        let temporary = caches.join(TEMPORARY.to_lowercase());
        fs::create_dir_all(&temporary)
            .context(|| format!("cannot create {}", temporary.display()))?;
        tree.device = DeviceAccess::Compilers(caches);
    }
    if let process::Program::Argv(args) = &mut command.program {
        args.push(process::worker_profile_text(tree).into());
    }
    Ok(command)
}

/// Where a worker may write what it compiles.
fn cache_dir(terms: &RunnerSetup, name: &str) -> PathBuf {
    terms.scratch.join("caches").join(name)
}

/// The same for a program that karve embeds.
pub(super) fn command_of(
    terms: &RunnerSetup,
    dir: &Path,
    cache: &str,
    name: &str,
    program: &str,
) -> Result<Command> {
    let interpreter = terms.contract.modules.interpreter.as_deref();
    let worker = written(&terms.scratch, name, program.as_bytes())?;
    let args = vec![
        interpreter.unwrap_or(INTERPRETER).into(),
        // No bytecode is written, and nothing from the user's directories is imported.
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
    let caches = cache_dir(terms, cache);
    for name in CACHES.into_iter().chain([TEMPORARY]) {
        let place = caches.join(name.to_lowercase());
        command = command.env(name, place.to_string_lossy());
    }
    // One process compiles: others would have to be waited for.
    let command = command.env("TORCHINDUCTOR_COMPILE_THREADS", "1");
    // Libraries name their directories after the user, whom a locked worker cannot look up.
    Ok(command.env("PYTHONHASHSEED", "0").env("USER", "karve"))
}

/// A program as a file. It replaces an older one at once, which a process may have mapped.
fn written(scratch: &Path, name: &str, program: &[u8]) -> Result<PathBuf> {
    let dir = scratch.join("worker");
    let path = dir.join(name);
    let cannot = || format!("cannot write {}", path.display());
    if fs::read(&path).is_ok_and(|found| found == program) {
        return Ok(path);
    }
    fs::create_dir_all(&dir).context(cannot)?;
    let fresh = dir.join(format!("{name}.{:x}", secret()?));
    fs::write(&fresh, program).context(cannot)?;
    fs::rename(&fresh, &path).context(cannot)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::arm::KernelWorker;
    use crate::runner::fork_servers::{SERVERS, forked, is_same_server};
    use crate::runner::memory::{ArmMemory, InputSharing, MemorySizes};
    use karve_os::process::{ChildProcess, StopFlag};
    use std::time::Duration;

    /// What `/proc` shows of a process.
    fn shown(child: &ChildProcess, file: &str) -> String {
        let pid = child.pid().expect("a process");
        fs::read_to_string(format!("/proc/{pid}/{file}")).expect("a file of /proc")
    }

    fn has_numpy(dir: &Path, stop: &StopFlag) -> bool {
        let probe = process::run(&Command::shell("python3 -c 'import numpy'", dir), stop);
        let found = probe.is_ok_and(|run| run.exit.success());
        if !found {
            println!("skipped: python3 has no NumPy");
        }
        found
    }

    fn parent_of(child: &ChildProcess) -> u32 {
        let status = shown(child, "status");
        let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        line.and_then(|id| id.trim().parse().ok()).expect("a parent")
    }

    #[test]
    fn a_forked_worker_is_as_one_that_was_started() {
        let dir = tempfile::tempdir().expect("a directory");
        let scratch = dir.path().canonicalize().expect("a directory");
        written(&scratch, NATIVE_WORKER, karve_os::PYTHON_WORKER).expect("a file");
        let worker = written(&scratch, "worker.py", WORKER.as_bytes()).expect("a file");
        let stop = StopFlag::new();
        let command = |last: &str| Command {
            program: process::Program::Argv(vec![
                INTERPRETER.into(),
                worker.clone().into(),
                last.into(),
            ]),
            ..Command::shell("", &scratch)
        };
        let server = command("--fork");
        if !has_numpy(&scratch, &stop) {
            return;
        }
        fs::create_dir(scratch.join("tree")).expect("a directory");
        let worker = Command {
            dir: scratch.join("tree"),
            cpus: vec![0],
            ..command("").env("FORKED", "yes")
        };
        let start = || forked(&server, &worker, &stop).expect("a worker");
        let mut first = start();
        let second = start();
        for child in [&first, &second] {
            let pid = child.pid().expect("a process");
            assert_eq!(parent_of(child), std::process::id());
            let cwd = fs::read_link(format!("/proc/{pid}/cwd")).expect("a link");
            assert_eq!(cwd, scratch.join("tree"));
            assert!(shown(child, "status").contains("Cpus_allowed_list:\t0\n"));
        }
        let mark = |child: &ChildProcess| {
            let all = shown(child, "environ");
            all.split('\0').find_map(|one| one.strip_prefix("KARVE_RUN=").map(str::to_owned))
        };
        assert!(mark(&first).is_some());
        assert_ne!(mark(&first), mark(&second));
        // One of them ends alone.
        first.end();
        assert_eq!(parent_of(&second), std::process::id());
        // A server that was killed is started again.
        let killed = {
            let servers = SERVERS.lock().expect("servers");
            let found = servers.iter().find(|(own, _)| is_same_server(own, &server));
            found.expect("a server").1.pid()
        };
        let kill = Command::shell(format!("kill -9 {}", killed.expect("a process")), &scratch);
        process::run(&kill, &stop).expect("a command");
        assert_eq!(parent_of(&start()), std::process::id());
    }

    /// What a module that is loaded in a locked worker tries: each line must hold.
    const TRIES: &str = r#"
import os, socket, subprocess, tempfile

def refused(call, *args):
    try:
        call(*args)
    except PermissionError:
        return True
    return False

with tempfile.NamedTemporaryFile() as file:
    file.write(b"cached")
os.rename(tempfile.mkdtemp(), os.environ["TRITON_CACHE_DIR"])
assert subprocess.run(["sh", "-c", ":"]).returncode == 0
assert refused(subprocess.run, ["env"])
assert refused(open, os.path.join(OUTSIDE, "file"), "w")
assert refused(open, os.path.join(OUTSIDE, "secret"))
assert refused(socket.socket)
assert refused(socket.socket(socket.AF_UNIX).connect, "nobody")
assert refused(os.kill, os.getppid(), 0)
assert refused(os.setsid)
kernel_fn = len
"#;

    #[test]
    fn a_worker_that_compiles_writes_only_to_its_cache_and_executes_only_compilers() {
        let dir = tempfile::tempdir().expect("a directory");
        let scratch = dir.path().canonicalize().expect("a directory");
        written(&scratch, NATIVE_WORKER, karve_os::PYTHON_WORKER).expect("a file");
        let worker = written(&scratch, "worker.py", WORKER.as_bytes()).expect("a file");
        let stop = StopFlag::new();
        if !has_numpy(&scratch, &stop) {
            return;
        }
        let (root, cache) = (scratch.join("tree"), scratch.join("cache"));
        fs::create_dir_all(&root).expect("a directory");
        fs::create_dir_all(cache.join("tmp")).expect("a directory");
        fs::write(scratch.join("secret"), "secret").expect("a file");
        let module = root.join("kernel.py");
        fs::write(&module, format!("OUTSIDE = {scratch:?}{TRIES}")).expect("a file");
        let tree = ReadableTree {
            root: root.clone(),
            more: vec![scratch.join("worker")],
            device: DeviceAccess::Compilers(cache.clone()),
            ..ReadableTree::default()
        };
        let command = |last: String| Command {
            program: process::Program::Argv(vec![
                INTERPRETER.into(),
                worker.clone().into(),
                last.into(),
            ]),
            ..Command::shell("", &root)
                .env("TMPDIR", cache.join("tmp").to_string_lossy())
                .env("TRITON_CACHE_DIR", cache.join("triton").to_string_lossy())
        };
        let program = WorkerProgram {
            command: command(process::worker_profile_text(&tree)),
            path: module.to_string_lossy().into_owned(),
            shown: "kernel.py".into(),
            entry: "kernel_fn".into(),
            setup: None,
            module: Some(ModuleOptions {
                device: None,
                wide: false,
                alone: false,
                hidden: Vec::new(),
                seed: 1,
                compile: None,
                finds_project: false,
            }),
            passes_outputs: false,
            server: Some(command("--fork".into())),
            tree,
            scratch: scratch.clone(),
        };
        let sizes = MemorySizes { input: 4096, output: 4096 };
        let memory = ArmMemory::new(sizes, None, InputSharing::Alone).expect("memory");
        let started = KernelWorker::start(&program, &memory, Duration::from_secs(60), &stop);
        let arm = started.unwrap_or_else(|why| panic!("{why:?}"));
        assert!(arm.check_children().is_ok());
        assert!(cache.join("triton").is_dir());
    }
}
