//! The harness under a contract: karve calls the kernel itself, in the kernel runner.

use super::Harness;
use crate::outcome::{BlockFailure, BlockResult, GateResult, IndexedCase};
use crate::runner::{self, DuelCase, KernelRunner, KernelScreen, RunnerSetup, SoloKernel};
use karve_core::measurement::Sample;
use karve_numerics::case::Case;
use karve_numerics::contract::{Arg, BaselineKernel, CaseTensorError, Contract, Reference};
use karve_os::error::{CommandError, ErrorKind, Result};
use karve_os::process::Command;
use karve_os::random::secret;
use karve_os::sandbox;
use karve_os::sync::locked;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// What a harness knows about a contract.
#[derive(Clone, Debug)]
pub(super) struct HarnessContract {
    pub(super) contract: Contract,
    /// The reference of the unchanged project, set aside.
    pub(super) reference: Option<PathBuf>,
    /// The incumbent's directory; a kernel is checked next to the incumbent.
    pub(super) incumbent: Option<PathBuf>,
    /// What references said of their arguments, by tree and text: asking takes seconds.
    pub(super) asked: Arc<Mutex<AskedInputs>>,
    /// The tree whose kernel is a baseline, and that baseline, if there is one.
    pub(super) baseline: Option<(PathBuf, BaselineKernel)>,
}

type AskedInputs = BTreeMap<(PathBuf, Option<Vec<u8>>), Vec<Arg>>;

impl Harness {
    /// Whether karve calls the kernel itself.
    pub fn is_under_contract(&self) -> bool {
        self.under_contract.is_some()
    }

    /// The same harness with the reference that was set aside.
    #[must_use]
    pub fn with_reference(mut self, reference: Option<PathBuf>) -> Self {
        if let Some(under) = &mut self.under_contract {
            under.reference = reference;
        }
        self
    }

    /// The same harness, in which a kernel is checked next to the incumbent's.
    #[must_use]
    pub fn beside(mut self, incumbent: &Path) -> Self {
        if let Some(under) = &mut self.under_contract {
            under.incumbent = Some(incumbent.to_owned());
        }
        self
    }

    /// The same harness, in which the kernel of a tree is a baseline. It is held to the contract,
    /// and not to the kernel that it is measured with.
    #[must_use]
    pub fn with_baseline(mut self, tree: &Path, baseline: &BaselineKernel) -> Self {
        if let Some(under) = &mut self.under_contract {
            under.baseline = Some((tree.to_owned(), baseline.clone()));
        }
        self
    }

    /// The shared object or module with the reference in a built tree, if there is one to set
    /// aside.
    pub fn reference_in(&self, tree: &Path) -> Option<PathBuf> {
        match &self.under_contract.as_ref()?.contract.reference {
            Reference::Library { path, .. } | Reference::Python { path, .. } => {
                Some(tree.join(&self.workdir).join(path))
            }
            Reference::Command { .. } => None,
        }
    }

    /// The arguments that the reference of a tree names.
    pub fn ask_inputs(&self, tree: &Path) -> Result<Vec<Arg>> {
        match &self.under_contract {
            Some(under) => runner::ask_inputs(&self.bare_terms(under)?, tree),
            None => Ok(Vec::new()),
        }
    }

    /// The terms of a tree. Outside a campaign its own reference supplies the arguments, if the
    /// contract leaves them to it.
    pub(super) fn terms(&self, under: &HarnessContract, tree: &Path) -> Result<RunnerSetup> {
        let mut terms = self.bare_terms(under)?;
        if terms.contract.modules.asks && terms.contract.written().next().is_none() {
            let text = self.reference_in(tree).and_then(|path| fs::read(path).ok());
            let mut asked = locked(&under.asked);
            terms.contract.args = match asked.entry((tree.to_owned(), text)) {
                Entry::Occupied(known) => known.get().clone(),
                Entry::Vacant(fresh) => fresh.insert(runner::ask_inputs(&terms, tree)?).clone(),
            };
        }
        Ok(terms)
    }

    fn bare_terms(&self, under: &HarnessContract) -> Result<RunnerSetup> {
        let mut command = self.base(Command::argv::<&str>([], Path::new("."))).pin(&self.pinned);
        command.memory_bytes = sandbox::most_memory();
        command.variables = self.sandbox.as_ref().map(|sandbox| sandbox.variables_of_kernel());
        Ok(RunnerSetup {
            contract: under.contract.clone(),
            workdir: self.workdir.clone(),
            command,
            reference: under.reference.clone(),
            baseline: under.baseline.clone(),
            scratch: self.scratch.clone(),
            readable: self.sandbox.as_ref().map(|sandbox| sandbox.readable()).unwrap_or_default(),
            limit: self.limit,
            stop: self.stop.clone(),
            worker: own_program()?,
            weights: secret()?,
        })
    }

    /// Runs the correctness check on the kernel of a built tree for some cases: its errors, or why
    /// it is refused. `None` if there is no contract.
    pub fn check_kernel(
        &self,
        tree: &Path,
        cases: &[Case],
    ) -> GateResult<Option<Vec<CaseTensorError>>> {
        let Some(under) = &self.under_contract else {
            return Ok(None);
        };
        let incumbent = under.incumbent.as_deref();
        runner::check_kernel(&self.terms(under, tree)?, tree, incumbent, cases).map(Some)
    }

    /// Checks the kernel of a built tree next to that of the original tree, on shapes that are not
    /// listed. Nothing is checked without a contract.
    pub fn check_beside_original(
        &self,
        tree: &Path,
        original: &Path,
        cases: &[Case],
    ) -> GateResult<()> {
        match &self.under_contract {
            Some(under) => {
                runner::check_beside_original(&self.terms(under, tree)?, tree, original, cases)
            }
            None => Ok(()),
        }
    }

    /// One reading of each case, or why not; `None` if there is no contract.
    pub(super) fn read_alone(
        &self,
        tree: &Path,
        cases: &[Case],
    ) -> GateResult<Option<Vec<Sample>>> {
        let Some(under) = &self.under_contract else {
            return Ok(None);
        };
        let terms = self.terms(under, tree)?;
        let mut samples = Vec::new();
        for (case, calls) in self.sized(cases) {
            let read = runner::reading(&terms, tree, &self.metric, case, calls);
            samples.push(read.map_err(|failure| failure.on(case))?);
        }
        Ok(Some(samples))
    }

    /// Cases with the calls in one batch of each.
    fn sized<'a>(&'a self, cases: &'a [Case]) -> impl Iterator<Item = (&'a Case, u32)> {
        cases.iter().map(|case| (case, self.of_cases(std::slice::from_ref(case)).repeats))
    }

    /// The same for a kernel that is alone, and the contract if that stays for several readings: on
    /// a device starting a process takes longer than a reading.
    fn lasting(&self, cases: &[Case]) -> Option<(&HarnessContract, Vec<(Case, u32)>)> {
        let under = self.under_contract.as_ref().filter(|_| self.screens())?;
        Some((under, self.sized(cases).map(|(case, calls)| (case.clone(), calls)).collect()))
    }

    /// Whether settings of the tuner are only screened before they are read: on a device the whole
    /// check takes much longer than a reading.
    pub fn screens(&self) -> bool {
        let under = self.under_contract.as_ref();
        under.is_some_and(|under| under.contract.is_on_device())
    }

    /// How many settings of a tree can be screened at the same time.
    pub fn screened_at_once(&self, tree: &Path, cases: &[Case]) -> Result<usize> {
        match &self.under_contract {
            Some(under) if self.screens() => {
                let sized: Vec<(&Case, u32)> = self.sized(cases).collect();
                runner::solo_kernels(&self.terms(under, tree)?, &sized)
            }
            _ => Ok(1),
        }
    }

    /// Screens settings of a tree; `None` if they are not screened.
    pub fn screen(&self, tree: &Path, cases: &[Case]) -> Result<Option<KernelScreen>> {
        let Some((under, cases)) = self.lasting(cases) else {
            return Ok(None);
        };
        KernelScreen::new(self.terms(under, tree)?, tree, cases).map(Some)
    }

    /// The kernel of a tree in a process for several readings; `None` if each has its own.
    pub fn solo(&self, tree: &Path, cases: &[Case]) -> GateResult<Option<SoloKernel>> {
        let Some((under, cases)) = self.lasting(cases) else {
            return Ok(None);
        };
        SoloKernel::start(&self.terms(under, tree)?, tree, cases).map(Some)
    }

    /// Calls in one batch on a case; `None` if there is no contract.
    pub fn calls_for(&self, tree: &Path, case: &Case) -> GateResult<Option<u32>> {
        match &self.under_contract {
            None => Ok(None),
            Some(under) => runner::calls_for(&self.terms(under, tree)?, tree, case)
                .map(Some)
                .map_err(|failure| failure.on(case)),
        }
    }

    /// Sets up a duel between the kernels of two built trees.
    pub fn duel(
        &self,
        [parent, candidate]: [PathBuf; 2],
        cases: &[IndexedCase],
    ) -> BlockResult<KernelRunner> {
        let Some(under) = &self.under_contract else {
            let message = "a kernel runner without a contract";
            return Err(CommandError::new(ErrorKind::Bug, message).into());
        };
        let terms = self.terms(under, &parent)?;
        let mut duel_cases = Vec::with_capacity(cases.len());
        for (index, case) in cases {
            let of_case = self.of_cases(std::slice::from_ref(case));
            let calls = match self.per_case.contains_key(&case.name) {
                true => of_case.repeats,
                false => runner::calls_for(&terms, &parent, case)
                    .map_err(|failure| failure.on(case).map(BlockFailure::Parent))?,
            };
            duel_cases.push(DuelCase {
                index: *index,
                case: case.clone(),
                calls,
                spin_ns: of_case.spin_us.unwrap_or(0) * 1_000 / u64::from(calls.max(1)),
            });
        }
        KernelRunner::start(&terms, &self.metric, [parent, candidate], duel_cases)
    }
}

/// karve's own program.
pub(super) fn own_program() -> Result<PathBuf> {
    std::env::current_exe()
        .map_err(|error| CommandError::environment("cannot find karve's own program").cause(error))
}
