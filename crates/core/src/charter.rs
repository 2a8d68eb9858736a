//! What the user agreed to before the first round; immutable.

mod asks;
mod demand;
mod goal;
mod knobs;
mod output_rule;
mod same_task;
mod sandbox;

pub use asks::{AskRule, TOKEN_BYTES};
pub use goal::Goal;
pub use knobs::{PoolMember, TuneRule};
pub use output_rule::OutputRule;
pub use sandbox::{Caches, SandboxMode, SandboxRule};

use crate::agenda::Agenda;
use crate::integrity::AuditRule;
use crate::policy::Policy;
use karve_numerics::case::{Case, CaseSet};
use karve_numerics::contract::{Contract, NamedBaseline};
use karve_numerics::space::KnobDeclaration;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything a campaign may do and is judged by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Charter {
    /// The campaign's name, also in its branch and its directory.
    pub name: String,
    /// When it was agreed, by the host's clock: `YYYY-MM-DD HH:MM`.
    pub created: String,
    /// What is optimized.
    pub target: Target,
    /// Where the work happens.
    pub mode: WorkMode,
    /// Globs of the files a candidate may change; all others are read-only.
    pub editable: Vec<String>,
    /// The project's commands.
    pub commands: Commands,
    /// A kernel that karve calls itself, instead of the commands that test and measure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<Box<Contract>>,
    /// Other kernels for the contract, which ours is measured against.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub baselines: Vec<NamedBaseline>,
    /// How the benchmark's output is read.
    pub output: OutputRule,
    /// What is measured.
    pub metric: Metric,
    /// What the kernel is judged on; hidden cases are never shown to an agent.
    pub cases: Vec<Case>,
    /// The rules.
    pub policy: Policy,
    /// The bounds.
    pub limits: Limits,
    /// How the device is kept quiet while it is measured.
    #[serde(default, skip_serializing_if = "DeviceRule::is_default")]
    pub device: DeviceRule,
    /// How candidates are audited.
    #[serde(default, skip_serializing_if = "AuditRule::is_default")]
    pub audit: AuditRule,
    /// What commands and agents may see and touch.
    #[serde(default, skip_serializing_if = "SandboxRule::is_default")]
    pub sandbox: SandboxRule,
    /// Who proposes and implements.
    pub agent: String,
    /// What to try, item by item; without it, whatever the agent proposes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agenda: Option<Box<Agenda>>,
    /// How agents are asked: how long a brief is, and in which roles.
    #[serde(default, skip_serializing_if = "AskRule::is_default")]
    pub asks: AskRule,
    /// Tunables declared outside the source.
    pub knobs: Vec<KnobDeclaration>,
    /// How knobs are tuned.
    #[serde(default, skip_serializing_if = "TuneRule::is_default")]
    pub tune: TuneRule,
    /// The machine that builds and measures, if it is not this one: `[remote.NAME]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// What may happen in the repository.
    pub branch: Branch,
    /// The directory of `karve.toml`, relative to the top of the repository; commands run there.
    #[serde(default)]
    pub workdir: String,
    /// Every draw that must be the same after a restart comes from here.
    pub seed: u64,
}

/// What is optimized.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// The operation, such as `matmul`.
    pub op: String,
    /// The backend, such as `c`, `triton` or `ck`.
    pub backend: String,
    /// The language of the kernel.
    pub language: String,
    /// The device it runs on.
    pub device: String,
    /// When the kernel is fast enough.
    pub goal: Option<Goal>,
    /// What must hold beyond the tests, in words, for the agent.
    pub constraints: Vec<String>,
    /// The document that describes the project to agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_skill: Option<String>,
}

/// Where the work happens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum WorkMode {
    /// In worktrees of the repository itself.
    Repo,
    /// In a minimal stack extracted from it; only the integration gate counts.
    Workspace {
        /// Globs of the files that are extracted.
        files: Vec<String>,
        /// The commands of the integration gate, run in the whole repository.
        integration: Box<Commands>,
    },
}

/// The project's commands; `{case}`, `{seed}`, `{out}` and `{<param>}` are replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commands {
    /// Builds; without it there is nothing to build.
    pub build: Option<String>,
    /// Exits with 0 if and only if the kernel is right.
    pub test: String,
    /// Measures.
    pub bench: String,
    /// Runs before each timed run of either arm, such as one that empties caches.
    #[serde(default)]
    pub condition: Option<String>,
    /// A faster test for the quick set.
    pub quick_test: Option<String>,
    /// A faster benchmark for the quick set.
    pub quick_bench: Option<String>,
    /// Prints a profile of the kernel.
    pub profile: Option<String>,
    /// Prints the measured peak of the device.
    pub peak: Option<String>,
    /// The project's own acceptance test, before a kernel is handed back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acceptance: Option<String>,
    /// Globs of what the build makes; byte-identical ones mean that nothing changed.
    pub artifacts: Vec<String>,
    /// Added to the environment of every command.
    pub env: BTreeMap<String, String>,
}

/// What is measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metric {
    /// The column, or the name of the expression.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Which direction is better.
    pub better: Better,
    /// Computed from columns, if it is not a column itself.
    pub expr: Option<String>,
    /// Work of one case, as an expression over its parameters, in floating-point operations.
    pub work: Option<String>,
    /// Bytes that one case must read or write, each counted once, as an expression over its
    /// parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<String>,
    /// Which clocks decide.
    #[serde(default)]
    pub clocks: ClockRule,
    /// The rates of the two passes that it is made of, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passes: Option<StepPasses>,
}

/// The rates of a forward and a backward pass, as expressions over columns, in the metric's unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepPasses {
    /// Of the forward pass.
    pub forward: String,
    /// Of the backward pass.
    pub backward: String,
}

/// The clocks of karve itself, around the whole command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnClock {
    /// Wall time.
    Wall,
    /// CPU time of the process tree.
    Cpu,
}

/// Which clocks decide a duel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockRule {
    /// The metric alone; also the default for logs that do not say.
    #[default]
    Metric,
    /// Also the second clock, where the metric is the time of a single-threaded command.
    Auto,
    /// Always also the second clock.
    Both,
}

/// Which direction is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Times.
    #[default]
    Lower,
    /// Rates.
    Higher,
}

impl Better {
    /// In a sentence.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lower => "lower",
            Self::Higher => "higher",
        }
    }
}

/// The bounds of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Rounds at most.
    pub rounds: u32,
    /// Wall time at most, in seconds of work; a paused campaign does not use it.
    pub wall_s: Option<u64>,
    /// Seconds one command may take.
    pub command_s: u64,
    /// Seconds one turn of an agent may take.
    pub agent_s: u64,
    /// Seconds one duel may take.
    pub duel_s: u64,
    /// What the agent may cost, in US dollars.
    pub agent_usd: Option<f64>,
    /// Blocks of the final duel.
    pub final_blocks: u32,
}

/// How the device is kept quiet while it is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceRule {
    /// Which CPUs the benchmark is pinned to.
    pub pin: Pin,
    /// A block waits while the CPU pressure is above this, in percent.
    pub pressure_max: f64,
    /// Seconds that one pause may take.
    pub pause_max_s: u64,
    /// Seconds to wait for another karve that holds the device.
    pub lease_wait_s: u64,
    /// Commands that lock the clocks of the device and unlock them again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clocks: Option<ClockLock>,
    /// Where the GPU of the target is.
    #[serde(skip_serializing_if = "GpuPlace::is_here")]
    pub gpu: GpuPlace,
    /// The member of the pool that it runs on, if one was named: it is leased by this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
}

/// Where the GPU of a target is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GpuPlace {
    /// In this machine.
    #[default]
    Here,
    /// Where only the commands of the project reach it.
    Elsewhere,
}

impl GpuPlace {
    #[allow(clippy::trivially_copy_pass_by_ref)] // Required by serde.
    fn is_here(&self) -> bool {
        *self == Self::Here
    }
}

impl DeviceRule {
    /// The pressure at which a block waits, in percent, unless the charter says otherwise.
    pub const PRESSURE_MAX: f64 = 50.0;
    /// Seconds of one pause, unless the charter says otherwise. A burst of work of another process
    /// ends in that time or lasts, and then the verdict copes with it: it only takes more blocks.
    pub const PAUSE_MAX_S: u64 = 3;
    /// Seconds to wait for another karve, unless the charter says otherwise: an hour.
    pub const LEASE_WAIT_S: u64 = 3_600;

    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for DeviceRule {
    fn default() -> Self {
        Self {
            pin: Pin::No,
            pressure_max: Self::PRESSURE_MAX,
            pause_max_s: Self::PAUSE_MAX_S,
            lease_wait_s: Self::LEASE_WAIT_S,
            clocks: None,
            gpu: GpuPlace::Here,
            member: None,
        }
    }
}

/// Which CPUs the benchmark is pinned to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Pin {
    /// It may run on all.
    #[default]
    No,
    /// The last one it may run on, if there are several.
    Auto,
    /// These.
    Cpus {
        /// Their numbers, as the kernel counts them.
        cpus: Vec<usize>,
    },
}

/// Commands that lock the clocks of the device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockLock {
    /// Run before the first block.
    pub lock: String,
    /// Unlocks them, whatever happens.
    pub unlock: String,
}

/// What may happen in the repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Branch {
    /// A branch follows the kept commits.
    Named {
        /// Its name.
        name: String,
    },
    /// Only hidden refs are written.
    Hidden,
}

/// The agent that is the built-in strategy.
pub const BUILTIN: &str = "builtin";
/// The agent that follows a script.
pub const SCRIPTED: &str = "scripted";
/// The name of an agent that drives the campaign itself.
pub const EXTERNAL: &str = "external";
/// The prefix of the name of an agent that is a recording.
pub const REPLAY: &str = "replay:";

impl Charter {
    /// Whether a recorded campaign is replayed.
    pub fn is_replay(&self) -> bool {
        self.agent.starts_with(REPLAY)
    }

    /// Whether its agent can have no idea of its own once it has none left.
    pub fn has_fixed_agent(&self) -> bool {
        [BUILTIN, SCRIPTED].contains(&self.agent.as_str()) || self.is_replay()
    }

    /// The same charter for a project in a subdirectory of its repository: globs and files become
    /// relative to the top of the repository.
    #[must_use]
    pub fn placed_in(mut self, workdir: &str) -> Self {
        if workdir.is_empty() {
            return self;
        }
        let place = |path: &mut String| *path = format!("{workdir}/{path}");
        self.editable.iter_mut().for_each(place);
        self.knobs.iter_mut().for_each(|knob| place(&mut knob.file));
        if let Some(table_of_roles) = self.asks.role_table.as_deref_mut() {
            let writes = table_of_roles.role.iter_mut().flat_map(|role| &mut role.writes);
            writes.for_each(place);
        }
        if let WorkMode::Workspace { files, .. } = &mut self.mode {
            files.iter_mut().for_each(place);
        }
        workdir.clone_into(&mut self.workdir);
        self
    }

    /// The evidence that the first keep needs.
    pub fn keep_evidence(&self) -> f64 {
        self.policy.accept.keep_evidence(self.limits.rounds, 0)
    }

    /// Indices of the visible cases, without those that are held back.
    pub fn visible_cases(&self) -> Vec<usize> {
        self.cases_where(|case| matches!(case.set, CaseSet::Quick | CaseSet::Full))
    }

    /// Indices of the cases that are held back until there is evidence that they are needed.
    pub fn stress_cases(&self) -> Vec<usize> {
        self.cases_where(|case| case.set == CaseSet::Stress)
    }

    /// Indices of the cases named quick; empty when the charter names none.
    pub fn quick_cases(&self) -> Vec<usize> {
        self.cases_where(|case| case.set == CaseSet::Quick)
    }

    /// Indices of the hidden cases.
    pub fn hidden_cases(&self) -> Vec<usize> {
        self.cases_where(|case| case.set == CaseSet::Hidden)
    }

    /// Indices of all cases, without those that are held back.
    pub fn all_cases(&self) -> Vec<usize> {
        self.cases_where(|case| case.set != CaseSet::Stress)
    }

    fn cases_where(&self, wanted: impl Fn(&Case) -> bool) -> Vec<usize> {
        (0..self.cases.len()).filter(|index| wanted(&self.cases[*index])).collect()
    }
}

impl Commands {
    /// Whether the build can produce other layouts of the same code: it names `{layout}`.
    pub fn has_layouts(&self) -> bool {
        let build = self.build.as_deref();
        build.is_some_and(|line| line.contains("{layout}"))
    }
}

impl Charter {
    /// What a gain rests on besides karve's own checks: without a contract, the project's own
    /// benchmark is believed. `None` under a contract.
    pub fn self_reported(&self) -> Option<&'static str> {
        match (&self.contract, self.metric.own_clock()) {
            (Some(_), _) => None,
            (None, Some(_)) => Some("self-reported: karve's clock, the project's own inputs"),
            (None, None) => Some("self-reported by the project's own benchmark"),
        }
    }
}

impl Metric {
    /// Whether it is about the backward pass, by its name.
    pub fn is_backward(&self) -> bool {
        let name = self.name.to_lowercase();
        name.contains("backward") || name.contains("bwd")
    }

    /// Seconds per unit, if the unit is a time.
    pub fn seconds_per_unit(&self) -> Option<f64> {
        Some(match self.unit.as_str() {
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        })
    }

    /// The clock of karve itself that this metric is, if it is one.
    pub fn own_clock(&self) -> Option<OwnClock> {
        match self.name.as_str() {
            "wall_time" => Some(OwnClock::Wall),
            "cpu_time" => Some(OwnClock::Cpu),
            _ => None,
        }
    }

    /// Operations per second per unit, if the unit is a rate of operations.
    pub fn rate_per_unit(&self) -> Option<f64> {
        Some(match self.unit.to_ascii_uppercase().trim_end_matches("/S") {
            "MFLOPS" | "MFLOP" => 1e6,
            "GFLOPS" | "GFLOP" => 1e9,
            "TFLOPS" | "TFLOP" => 1e12,
            _ => return None,
        })
    }

    /// ln(parent/candidate) as a speedup: positive is better, whichever direction counts.
    pub fn ln_speedup(&self, parent: f64, candidate: f64) -> f64 {
        match self.better {
            Better::Lower => parent.ln() - candidate.ln(),
            Better::Higher => candidate.ln() - parent.ln(),
        }
    }
}
