//! Build, gate and benchmark a tree with the project's own commands.
//!
//! A failure of a candidate here is a `Gate`: an outcome, not an error of karve. Every command has
//! a limit, a bounded capture and a fresh seed; results are accepted only if they are complete.

pub mod output;

mod acceptance;
mod artifacts;
mod bench_run;
mod contract;
mod criterion_home;
mod delivered;
mod failure_text;
mod overwritten;
mod private;
mod profiled;
mod raw;
mod rows;
mod samples;
mod seeds;

use crate::outcome::GateResult;
pub use delivered::names_case;
use failure_text::wrong;
pub use profiled::{
    CodeRange, DIR_VARIABLE, PART, PRINTED, PROFILE_DIR, ProfiledRun, ProfilerOutput,
    ProfilerStart, StdoutWriter,
};
pub use raw::{RAW_BYTES_MAX, take as take_raw, take_usable};
pub use rows::knows_format;
pub use seeds::{BenchReading, SEED};

use crate::placeholders::expand;
pub use karve_core::charter::{Charter, Commands, Metric, OutputRule};
use karve_core::measurement::{Gate, Sample, classify_failure};
use karve_numerics::case::{Case, CaseSet};
use karve_numerics::space::{Delivery, KnobDeclaration};
use karve_os::error::Result;
use karve_os::process::{Command, CommandOutcome, Confinement, Exit, StopFlag, excerpt};
use karve_os::random::fresh_seed;
use karve_os::sandbox::{CommandPurpose, Sandbox};
use karve_os::{device, process};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Upper bound for the padding of a benchmark's environment, which moves the stack.
const PAD_BYTES_MAX: u64 = 4_096;

/// The variable that holds the padding.
const PAD: &str = "KARVE_PAD";

/// A variant of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandVariant {
    /// The usual one.
    Usual,
    /// The quick one, if there is one.
    Quick,
}

impl From<CaseSet> for CommandVariant {
    fn from(set: CaseSet) -> Self {
        match set {
            CaseSet::Quick => Self::Quick,
            CaseSet::Full | CaseSet::Hidden | CaseSet::Stress => Self::Usual,
        }
    }
}

/// The inputs of one benchmark run, the same for both arms of a duel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BenchParams {
    /// The seed of the inputs.
    pub seed: u64,
    /// Which variant of the command.
    pub variant: CommandVariant,
    /// Padding of the environment, in bytes.
    pub pad: u16,
}

impl BenchParams {
    /// An unpredictable call.
    pub fn fresh(variant: CommandVariant) -> Result<Self> {
        Ok(Self {
            seed: fresh_seed()?,
            variant,
            pad: u16::try_from(fresh_seed()? % PAD_BYTES_MAX).unwrap_or_default(),
        })
    }
}

/// The file with what the last build printed, while it runs too. It is beside the scratch
/// directory, where no candidate can put a link in its place.
pub const BUILD_OUTPUT: &str = "build.log";

/// The project's commands, ready to run.
#[derive(Clone, Debug)]
pub struct Harness {
    commands: Commands,
    output: OutputRule,
    metric: Metric,
    limit: Duration,
    workdir: String,
    /// Knobs that may have to be passed to commands.
    knobs: Vec<KnobDeclaration>,
    scratch: PathBuf,
    tag: String,
    stop: StopFlag,
    per_case: BTreeMap<String, CaseRunSettings>,
    /// The CPUs that benchmarks are pinned to.
    pinned: Vec<usize>,
    under_contract: Option<contract::HarnessContract>,
    /// What confines the commands.
    sandbox: Option<Arc<Sandbox>>,
    /// Environment variables of karve that no command gets.
    withheld: Vec<String>,
    /// Whether the output of benchmarks that can be used is kept too.
    keeps_output: bool,
    /// The byte that the allocator overwrites freed and fresh memory with, if it does.
    overwrites: Option<u8>,
}

/// Per-case settings besides the case's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaseRunSettings {
    /// How often the kernel is called in one run, if the benchmark uses `{repeats}`.
    pub repeats: u32,
    /// Microseconds of plain work that follow the benchmark in the same timed command.
    pub spin_us: Option<u64>,
}

impl Harness {
    /// The harness of a charter. Result files are written to `scratch`.
    pub fn new(charter: &Charter, scratch: &Path, tag: &str, stop: &StopFlag) -> Self {
        Self {
            commands: charter.commands.clone(),
            output: charter.output.clone(),
            metric: charter.metric.clone(),
            limit: Duration::from_secs(charter.limits.command_s),
            workdir: charter.workdir.clone(),
            knobs: charter.knobs.clone(),
            scratch: scratch.to_owned(),
            tag: tag.to_owned(),
            stop: stop.clone(),
            per_case: BTreeMap::new(),
            keeps_output: false,
            // CPUs that are not available are refused when the campaign starts.
            pinned: device::cpus_of(&charter.device.pin).unwrap_or_default(),
            under_contract: charter.contract.as_deref().map(|contract| contract::HarnessContract {
                contract: contract.clone(),
                reference: None,
                incumbent: None,
                asked: Default::default(),
                baseline: None,
            }),
            sandbox: None,
            withheld: Vec::new(),
            overwrites: None,
        }
    }

    /// The same harness with per-case settings, by the case's name.
    #[must_use]
    pub fn with_cases(mut self, per_case: BTreeMap<String, CaseRunSettings>) -> Self {
        self.per_case = per_case;
        self
    }

    /// The same harness with other commands.
    #[must_use]
    pub fn with_commands(mut self, commands: &Commands) -> Self {
        self.commands = commands.clone();
        self
    }

    /// The same harness with its commands confined.
    #[must_use]
    pub fn in_sandbox(mut self, sandbox: Option<&Arc<Sandbox>>) -> Self {
        self.sandbox = sandbox.cloned();
        self
    }

    /// The same harness, with some of karve's environment variables withheld from commands.
    #[must_use]
    pub fn withholding(mut self, variables: Vec<String>) -> Self {
        self.withheld = variables;
        self
    }

    /// The same harness with its limit capped at this.
    #[must_use]
    pub fn within_limit(mut self, most: Duration) -> Self {
        self.limit = self.limit.min(most);
        self
    }

    /// The time limit of a command.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// The same harness with another limit.
    #[must_use]
    pub fn with_limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The same harness with benchmarks pinned to some CPUs.
    #[must_use]
    pub fn pinned_to(mut self, cpus: &[usize]) -> Self {
        self.pinned = cpus.to_vec();
        self
    }

    /// Whether the user wants everything to stop immediately.
    pub fn stopped(&self) -> bool {
        self.stop.at_once()
    }

    /// Runs one line in a tree, in the directory of the project's `karve.toml`.
    fn run(&self, line: &str, tree: &Path, purpose: CommandPurpose) -> Result<CommandOutcome> {
        process::run(&self.command(line, tree, purpose)?, &self.stop)
    }

    fn command(&self, line: &str, tree: &Path, purpose: CommandPurpose) -> Result<Command> {
        let sandbox = self.sandbox.as_ref();
        let confinement = sandbox.map(|s| s.confine(purpose, tree)).transpose()?;
        Ok(self.within(line, tree, confinement.as_ref()))
    }

    fn within(&self, line: &str, tree: &Path, confinement: Option<&Confinement>) -> Command {
        let mut command = self.base(Command::line(line, &tree.join(&self.workdir)));
        for (name, value) in self.knobs_by(Delivery::Environment, tree) {
            command = command.env(&name, value);
        }
        if let Some((name, value)) = self.overwriting_variable() {
            command = command.env(name, value);
        }
        match confinement {
            Some(confinement) => command.confined(confinement),
            None => command,
        }
    }

    /// A command with the settings that all commands of this harness share.
    fn base(&self, command: Command) -> Command {
        let mut command = command.limit(self.limit).tag(&self.tag);
        for name in &self.withheld {
            command = command.env_remove(name);
        }
        for (name, value) in &self.commands.env {
            command = command.env(name, value);
        }
        command
    }

    /// Builds a tree.
    pub fn build(&self, tree: &Path) -> GateResult<()> {
        self.build_layout(tree, 0)
    }

    /// Builds a tree in one of its code layouts; 0 is the usual one.
    pub fn build_layout(&self, tree: &Path, layout: u32) -> GateResult<()> {
        if let Some(sandbox) = &self.sandbox {
            // A tree of the same name may have existed before.
            sandbox.forget(tree);
        }
        self.deliver(tree)?;
        let Some(line) = &self.commands.build else {
            return Ok(());
        };
        let mut values = self.placeholders(tree, 0, None);
        values.layout = Some(layout);
        let line = expand(line, None, &values)?;
        let command = self.command(&line, tree, CommandPurpose::Build)?.unaware();
        let command = command.shown_in(self.scratch.with_file_name(BUILD_OUTPUT));
        let run = self.private(tree, None).hide(process::run(&command, &self.stop)?);
        let gate = match run.exit {
            Exit::Code(0) => return Ok(()),
            Exit::TimedOut => Gate::TimedOut { what: "the build".into() },
            Exit::Code(_) | Exit::Signal(_) | Exit::Stopped | Exit::TooMuch(_) => {
                let excerpt = excerpt(&run);
                Gate::BuildFailed { category: classify_failure(true, &excerpt), excerpt }
            }
        };
        Err(gate.into())
    }

    /// Tests a built tree on every case, each with a fresh seed; stops at the first failure.
    pub fn test(&self, tree: &Path, cases: &[Case], variant: CommandVariant) -> GateResult<()> {
        if self.check_kernel(tree, cases)?.is_some() {
            return Ok(());
        }
        let line = match (variant, &self.commands.quick_test) {
            (CommandVariant::Quick, Some(quick)) => quick,
            (CommandVariant::Quick | CommandVariant::Usual, _) => &self.commands.test,
        };
        let trial = self.trial(tree, CommandPurpose::Test)?;
        if !names_case(line, cases) {
            return self.test_once(line, tree, trial.as_ref(), None);
        }
        for case in cases {
            self.test_once(line, tree, trial.as_ref(), Some(case))?;
        }
        Ok(())
    }

    /// Whether the test is run once for each of these cases, rather than once for all.
    pub fn tests_each_case(&self, cases: &[Case]) -> bool {
        let each = self.is_under_contract() || names_case(&self.commands.test, cases);
        !cases.is_empty() && each
    }

    /// The confinement of commands that write in a worktree, where none of it may persist.
    fn trial(&self, tree: &Path, purpose: CommandPurpose) -> Result<Option<Confinement>> {
        let sandbox = self.sandbox.as_ref();
        sandbox.map(|s| s.confine_trial(purpose, tree)).transpose()
    }

    fn test_once(
        &self,
        line: &str,
        tree: &Path,
        trial: Option<&Confinement>,
        case: Option<&Case>,
    ) -> GateResult<()> {
        let seed = fresh_seed()?;
        let line = expand(line, case, &self.placeholders(tree, seed, None))?;
        let command = self.within(&line, tree, trial).env(SEED, seed.to_string());
        let run = self.private(tree, Some(seed)).hide(process::run(&command, &self.stop)?);
        let name = case.map_or_else(|| "the test".to_owned(), |case| case.name.clone());
        let gate = match run.exit {
            Exit::Code(0) => return Ok(()),
            Exit::TimedOut => Gate::TimedOut { what: format!("the test on {name}") },
            Exit::Code(_) | Exit::Signal(_) | Exit::Stopped | Exit::TooMuch(_) => {
                wrong(&name, &run)
            }
        };
        Err(gate.on(case.map(std::slice::from_ref).unwrap_or_default()).into())
    }

    /// Benchmarks a built tree: one sample for each case, or why not.
    pub fn bench(&self, tree: &Path, cases: &[Case], call: BenchParams) -> GateResult<Vec<Sample>> {
        self.bench_with_checksums(tree, cases, call).map(|reading| reading.samples)
    }

    /// The same, with the checksums that the benchmark reports.
    pub fn bench_with_checksums(
        &self,
        tree: &Path,
        cases: &[Case],
        call: BenchParams,
    ) -> GateResult<BenchReading> {
        if let Some(samples) = self.read_alone(tree, cases)? {
            return Ok(BenchReading { samples, checksums: Vec::new() });
        }
        let line = match (call.variant, &self.commands.quick_bench) {
            (CommandVariant::Quick, Some(quick)) => quick,
            (CommandVariant::Quick | CommandVariant::Usual, _) => &self.commands.bench,
        };
        if !names_case(line, cases) {
            return self.bench_once(line, tree, cases, call);
        }
        let mut reading = BenchReading::default();
        for case in cases {
            let one = self.bench_once(line, tree, std::slice::from_ref(case), call)?;
            reading.samples.extend(one.samples);
            reading.checksums.extend(one.checksums);
        }
        Ok(reading)
    }

    /// Whether the benchmark lets karve choose how often the kernel is called in one run.
    pub fn lets_repeat(&self) -> bool {
        self.commands.bench.contains("{repeats}")
    }

    /// The project's directory in a tree.
    pub fn home(&self, tree: &Path) -> PathBuf {
        tree.join(&self.workdir)
    }

    /// What is measured.
    pub fn metric(&self) -> &Metric {
        &self.metric
    }

    fn bench_once(
        &self,
        line: &str,
        tree: &Path,
        cases: &[Case],
        call: BenchParams,
    ) -> GateResult<BenchReading> {
        let (run, text) = self.run_bench(line, tree, cases, call)?;
        let from_file = self.output.from_file.then_some(text.as_str());
        self.keep_usable(&run, from_file);
        let samples = self.read_samples(&run, &text, cases).map_err(|gate| {
            raw::keep(&self.scratch, &run, from_file);
            let private = self.private(tree, Some(call.seed));
            let shown = private.redact(&text);
            self.read_samples(&private.hide(run), &shown, cases).err().unwrap_or(gate)
        })?;
        Ok(BenchReading { samples, checksums: self.checksums_in(&text) })
    }

    /// Runs the command that measures the device's peak; returns nothing if there is none.
    pub fn peak(&self, tree: &Path) -> Result<BTreeMap<String, f64>> {
        let Some(line) = &self.commands.peak else {
            return Ok(BTreeMap::new());
        };
        let line = expand(line, None, &self.placeholders(tree, 0, None))?;
        let run = self.run(&line, tree, CommandPurpose::Measure)?;
        let spec = output::ParseSpec {
            format: output::OutputFormat::MetricLines,
            case_column: None,
            check_column: None,
            label: None,
            pattern: None,
        };
        if !run.exit.success() {
            return Ok(BTreeMap::new());
        }
        let rows = output::parse(&run.stdout.text(), &spec).unwrap_or_default();
        Ok(rows.into_iter().flat_map(|row| row.values).collect())
    }

    /// Runs the profile command, if there is one.
    pub fn profile(
        &self,
        tree: &Path,
        case: Option<&Case>,
        depth: &str,
    ) -> Result<Option<CommandOutcome>> {
        let Some(line) = &self.commands.profile else {
            return Ok(None);
        };
        let mut values = self.placeholders(tree, 0, None);
        values.depth = Some(depth.to_owned());
        let line = expand(line, case, &values)?;
        let trial = self.trial(tree, CommandPurpose::Profile)?;
        let command = self.within(&line, tree, trial.as_ref()).env(SEED, "0");
        process::run(&command, &self.stop).map(Some)
    }
}
