//! How the workers of a project start: kernels, baselines and the reference.

use super::arm::{KernelWorker, StartingWorker, WorkerProgram};
use super::buffers::KernelBuffers;
use super::memory::gpu_failed;
use super::python;
use super::reference::{ReferenceRunner, ReferenceSource};
use super::setup::RunnerSetup;
use super::worker_failure::WorkerFailure;
use crate::outcome::GateResult;
use karve_core::measurement::{FailureCategory, Gate};
use karve_numerics::case::Case;
use karve_numerics::contract::{BaselineKernel, Kernel, NamedBaseline, Reference};
use karve_os::error::{CommandError, Result};
use karve_os::gpu::{self, SharedStage};
use karve_os::process::{Command, ReadableTree};
use std::path::Path;

impl RunnerSetup {
    /// The stage of the GPU that the kernel runs on, if it does.
    pub(super) fn stage(&self) -> Result<Option<SharedStage>> {
        if !self.contract.is_on_device() {
            return Ok(None);
        }
        let set = self.command.env.iter().rev().find(|(name, _)| gpu::VISIBLE.contains(&&**name));
        let number = gpu::number_of(set.map(|(_, value)| value.as_str()));
        python::start_server(self)?;
        SharedStage::open(number).map(Some).map_err(gpu_failed)
    }

    /// The kernel of a built tree.
    pub(super) fn kernel(&self, tree: &Path) -> GateResult<WorkerProgram> {
        let dir = self.place(tree);
        if let Some((_, baseline)) = self.baseline.as_ref().filter(|(of, _)| of == tree) {
            return self.baseline_program(tree, baseline);
        }
        match &self.contract.kernel {
            Kernel::Library { path, entry } => {
                let library = dir.join(path);
                if !is_plain(&library) {
                    return Err(not_made(path).into());
                }
                let readable = self.readable(tree, &library);
                Ok(self.prepared(self.library_program(readable, &library, path, entry)))
            }
            Kernel::Python { path, style } => {
                let file = dir.join(path);
                if !is_plain(&file) {
                    return Err(not_there(path).into());
                }
                let readable = self.readable(tree, &file);
                Ok(python::kernel(self, readable, &file, *style)?)
            }
        }
    }

    /// The same program with what prepares for its calls, if anything does.
    fn prepared(&self, program: WorkerProgram) -> WorkerProgram {
        let setup = self.contract.setup.as_ref().map(|setup| setup.entry.clone());
        WorkerProgram { setup, ..program }
    }

    /// A baseline in a built tree.
    fn baseline_program(
        &self,
        tree: &Path,
        baseline: &BaselineKernel,
    ) -> GateResult<WorkerProgram> {
        let file = self.place(tree).join(baseline.path());
        if !is_plain(&file) {
            return Err(baseline_lost(baseline.path()).into());
        }
        let readable = self.readable(tree, &file);
        match baseline {
            BaselineKernel::Library { path, entry } => {
                Ok(self.prepared(self.library_program(readable, &file, path, entry)))
            }
            BaselineKernel::Python { path, entry, compile } => {
                Ok(python::baseline(self, readable, &file, (path, entry), *compile)?)
            }
        }
    }

    /// A function of a shared object of a tree, which messages call `shown`.
    fn library_program(
        &self,
        tree: ReadableTree,
        library: &Path,
        shown: &str,
        entry: &str,
    ) -> WorkerProgram {
        WorkerProgram {
            command: self.own_worker(&self.place(&tree.root)),
            path: library.to_string_lossy().into_owned(),
            shown: shown.to_owned(),
            entry: entry.to_owned(),
            setup: None,
            module: None,
            passes_outputs: false,
            server: None,
            tree,
            scratch: self.scratch.clone(),
        }
    }

    /// karve's own worker, in a directory.
    fn own_worker(&self, dir: &Path) -> Command {
        let args = vec![self.worker.clone().into(), "worker".into()];
        Command {
            program: karve_os::process::Program::Argv(args),
            dir: dir.to_owned(),
            ..self.command.clone()
        }
    }

    /// Starts an arm with the kernel of a tree.
    pub(super) fn arm(&self, tree: &Path, stage: &KernelBuffers) -> GateResult<KernelWorker> {
        self.start_arm(tree, stage)?.ready()
    }

    /// Starts an arm with the kernel of a tree, without waiting for it.
    pub(super) fn start_arm(&self, tree: &Path, stage: &KernelBuffers) -> GateResult<StartingArm> {
        let program = self.kernel(tree)?;
        Ok(StartingArm {
            starting: KernelWorker::begin(&program, stage.memory(), self.limit, &self.stop)?,
            is_module: program.module.is_some(),
        })
    }

    /// Starts the reference, from the copy that was set aside or else from this tree.
    pub(super) fn start_reference(&self, tree: &Path, cases: &[&Case]) -> Result<ReferenceRunner> {
        let dir = self.place(tree);
        let (source, precision) = match &self.contract.reference {
            Reference::Library { path, entry, precision } => {
                let library = self.reference.clone().unwrap_or_else(|| dir.join(path));
                if !is_plain(&library) {
                    return Err(no_reference(&self.contract.reference));
                }
                let readable = self.readable(tree, &library);
                let program = self.library_program(readable, &library, path, entry);
                (ReferenceSource::Worker(program), *precision)
            }
            Reference::Command { line, precision } => {
                let files = self.scratch.join("reference");
                let quoted = files.to_string_lossy().replace('\'', r"'\''");
                let line = line.replace("{dir}", &format!("'{quoted}'"));
                let command = Command {
                    program: karve_os::process::Program::Shell(line),
                    dir,
                    ..self.command.clone()
                };
                (ReferenceSource::Command(command, files), *precision)
            }
            Reference::Python { path, precision } => {
                let file = self.reference.clone().unwrap_or_else(|| dir.join(path));
                if !is_plain(&file) {
                    return Err(no_reference(&self.contract.reference));
                }
                let readable = self.readable(tree, &file);
                let program = python::reference(self, readable, &file, *precision)?;
                (ReferenceSource::Worker(program), *precision)
            }
        };
        ReferenceRunner::start(self, &source, precision, cases)
    }
}

/// An arm that loads its kernel.
pub(super) struct StartingArm {
    starting: StartingWorker,
    is_module: bool,
}

impl StartingArm {
    /// Waits until it has loaded its kernel.
    pub(super) fn ready(self) -> GateResult<KernelWorker> {
        let gate = |broken| match broken {
            // A module that cannot be loaded corresponds to code that does not compile.
            WorkerFailure::Refused { shown, .. } if self.is_module => {
                Gate::BuildFailed { category: FailureCategory::BuildCompile, excerpt: shown }
            }
            broken => broken.gate("its start"),
        };
        self.starting.ready().map_err(|failure| failure.map(gate))
    }
}

/// The error of a tree that has no reference.
pub fn no_reference(reference: &Reference) -> CommandError {
    match reference {
        Reference::Library { path, .. } => CommandError::usage(format!(
            "the build does not produce the reference {path}"
        ))
        .hint("build it with commands.build, or fix contract.reference.library in karve.toml"),
        Reference::Python { path, .. } => CommandError::usage(format!(
            "there is no reference {path}"
        ))
        .hint(format!("write and commit {path}, or fix contract.reference.python in karve.toml")),
        Reference::Command { line, .. } => {
            CommandError::usage(format!("the reference `{line}` cannot be called"))
                .hint("fix contract.reference.command in karve.toml")
        }
    }
}

/// Refuses a built project whose baselines are not all there, in the directory of `karve.toml`.
pub fn check_baselines(dir: &Path, baselines: &[NamedBaseline]) -> Result<()> {
    let lost = baselines.iter().find(|baseline| !is_plain(&dir.join(baseline.kernel.path())));
    lost.map_or(Ok(()), |NamedBaseline { name, kernel }| Err(no_baseline(name, kernel)))
}

/// The error of a project whose baseline is not there.
pub fn no_baseline(name: &str, kernel: &BaselineKernel) -> CommandError {
    let path = kernel.path();
    let message = format!("there is no {path}, which [baselines.{name}] in karve.toml names");
    CommandError::usage(message).hint(match kernel {
        BaselineKernel::Library { .. } => {
            format!("make it with commands.build, or fix baselines.{name}.library in karve.toml")
        }
        BaselineKernel::Python { .. } => {
            format!("write and commit {path}, or fix baselines.{name}.python in karve.toml")
        }
    })
}

fn is_plain(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|data| data.is_file())
}

fn baseline_lost(path: &str) -> Gate {
    Gate::BuildFailed {
        category: FailureCategory::BuildLink,
        excerpt: format!("there is no {path}, which [baselines] in karve.toml names"),
    }
}

fn not_there(path: &str) -> Gate {
    Gate::BuildFailed {
        category: FailureCategory::BuildLink,
        excerpt: format!("there is no {path}, which contract.python in karve.toml names"),
    }
}

fn not_made(path: &str) -> Gate {
    Gate::BuildFailed {
        category: FailureCategory::BuildLink,
        excerpt: format!(
            "the build did not produce {path}, which contract.library in karve.toml names"
        ),
    }
}
