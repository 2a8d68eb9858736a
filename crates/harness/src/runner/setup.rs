//! The terms of the kernel runner: where kernel and reference come from, and what a worker may do.

use super::clocks::threads_in_words;
use karve_core::measurement::Gate;
use karve_numerics::contract::{BaselineKernel, Contract, Kernel, Reference};
use karve_os::process::{Command, DeviceAccess, ReadableTree, StopFlag};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The project's configuration.
const CONFIG: &str = "karve.toml";

/// Everything that the kernel runner needs to know about a project.
#[derive(Clone, Debug)]
pub struct RunnerSetup {
    /// The contract.
    pub contract: Contract,
    /// The directory of `karve.toml` in a tree.
    pub workdir: String,
    /// A command in a tree, without its program: environment, mark, CPUs.
    pub command: Command,
    /// karve's own program, which also runs as a worker.
    pub worker: PathBuf,
    /// The seed of the weights of models, the same for all arms.
    pub weights: u64,
    /// The tree whose kernel is a baseline, and that baseline, if there is one. Beside it only the
    /// contract counts: it may be more precise than any kernel of the campaign.
    pub baseline: Option<(PathBuf, BaselineKernel)>,
    /// Where the reference of the unchanged project was set aside.
    pub reference: Option<PathBuf>,
    /// Where files may be written.
    pub scratch: PathBuf,
    /// What a worker may read besides its tree and the libraries of the system.
    pub readable: Vec<PathBuf>,
    /// How long a batch may take.
    pub limit: Duration,
    /// What the user asked for with Ctrl-C.
    pub stop: StopFlag,
}

impl RunnerSetup {
    /// The project's directory in a tree.
    pub(super) fn place(&self, tree: &Path) -> PathBuf {
        tree.join(&self.workdir)
    }

    /// What the worker of a file of a tree may read. The project's configuration has the hidden
    /// cases, and the history those of earlier versions.
    pub(super) fn readable(&self, tree: &Path, file: &Path) -> ReadableTree {
        let of_project = Path::new(&self.workdir).join(CONFIG);
        ReadableTree {
            root: tree.to_owned(),
            withheld: vec![of_project, CONFIG.into(), ".git".into(), ".karve".into()],
            more: self.readable.iter().cloned().chain([file.to_owned()]).collect(),
            device: match self.contract.modules.device {
                None => DeviceAccess::None,
                Some(_) => DeviceAccess::Driver,
            },
        }
    }

    /// Whether the threads and files of a worker are the kernel's: an interpreter and the driver of
    /// a device have their own, and the project may trust its baselines.
    pub(super) fn counts_threads(&self) -> bool {
        let on_host = !self.contract.is_on_device() && self.baseline.is_none();
        matches!(self.contract.kernel, Kernel::Library { .. }) && on_host
    }

    /// Whether a kernel has more threads than allowed, which its correctness check missed.
    pub(super) fn check_threads(&self, threads: usize) -> std::result::Result<(), Gate> {
        let most = self.contract.threads.max(1);
        if !self.counts_threads() || threads <= most as usize {
            return Ok(());
        }
        let may = threads_in_words(most);
        Err(Gate::Dishonest { why: format!("it left threads running, but may use only {may}") })
    }
}

/// What to fix when the reference fails.
pub(super) fn reference_hint(reference: &Reference) -> String {
    match reference {
        Reference::Library { path, .. } => format!(
            "fix the source of {path}, or contract.reference.library and .entry in karve.toml"
        ),
        Reference::Python { path, .. } => {
            format!("fix {path}, which contract.reference.python in karve.toml names")
        }
        Reference::Command { .. } => {
            "fix what contract.reference.command in karve.toml runs".to_owned()
        }
    }
}
