//! `karve.toml` as written: one type per table, which also generates its JSON schema.
//!
//! A field's documentation is what editors show. Only the shape is checked; see `charter_of`.

use super::agent_file::{AgentProgram, AgentTable, RoleAgentTable};
use super::audit::AuditTable;
use super::contract_file::{BASELINES_MAX, BaselineTable};
use super::values::{CaseEntry, OrNone, PinValue, Scalar};
use crate::remote::table::RemoteTable;
use karve_core::charter::{Better, ClockRule, GpuPlace};
use karve_harness::commands::output::OutputFormat;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// What karve optimizes, how it is built, tested and measured, and under which rules.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "karve.toml")]
pub(super) struct ConfigFile {
    /// What is optimized.
    pub(super) target: TargetTable,
    /// What a candidate may change.
    pub(super) sources: SourcesTable,
    /// The project's own commands, run by `sh` in the directory of this file.
    ///
    /// `{case}`, `{seed}`, `{out}`, `{depth}`, `{<parameter of the case>}` and `{<knob>}` are
    /// replaced; `{{` is a literal brace.
    #[serde(default)]
    pub(super) commands: CommandsTable,
    /// A kernel that karve calls itself, instead of the project's own test and benchmark.
    pub(super) contract: Option<ContractTable>,
    /// Other kernels for the contract, which ours is measured against, by their names.
    #[serde(default)]
    #[schemars(extend("maxProperties" = BASELINES_MAX))]
    pub(super) baselines: BTreeMap<String, BaselineTable>,
    /// How to read the output of the benchmark; required without a contract.
    pub(super) output: Option<OutputTable>,
    /// What is measured; required without a contract.
    pub(super) metric: Option<MetricTable>,
    /// Your own metrics; `metric.name` selects one.
    #[serde(default)]
    pub(super) metrics: BTreeMap<String, MetricDefinition>,
    /// What the kernel is judged on.
    pub(super) cases: CasesTable,
    /// The rules; every key overrides the preset.
    #[serde(default)]
    pub(super) policy: PolicyTable,
    /// The limits.
    #[serde(default)]
    pub(super) limits: LimitsTable,
    /// How to keep the device quiet while measuring.
    #[serde(default)]
    pub(super) device: DeviceTable,
    /// What the audit of a candidate's source looks for.
    #[serde(default)]
    pub(super) audit: AuditTable,
    /// What commands and agents may read and write.
    #[serde(default)]
    pub(super) sandbox: SandboxTable,
    /// Who proposes and implements.
    #[serde(default)]
    pub(super) agent: AgentTable,
    /// Programs that can be selected as the agent.
    #[serde(default)]
    pub(super) agents: BTreeMap<String, AgentProgram>,
    /// Which agent takes which role; `karve roles` lists the roles. By default one agent does all.
    #[serde(default)]
    pub(super) roles: BTreeMap<String, RoleAgentTable>,
    /// What may happen in the repository.
    #[serde(default)]
    pub(super) git: GitTable,
    /// The campaign itself.
    #[serde(default)]
    pub(super) campaign: CampaignTable,
    /// Work in a minimal stack extracted from the repository instead of in the repository.
    pub(super) workspace: Option<WorkspaceTable>,
    /// Tunables declared outside the source.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub(super) knobs: Vec<KnobTable>,
    /// How knobs are tuned.
    #[serde(default)]
    pub(super) tune: TuneTable,
    /// Other machines that build and measure; `karve run --on NAME` uses one.
    #[serde(default)]
    pub(super) remote: BTreeMap<String, RemoteTable>,
}

/// What is optimized.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TargetTable {
    /// The operation, such as `matmul`.
    #[schemars(length(min = 1))]
    pub(super) op: String,
    /// The backend, such as `c`, `triton` or `ck`.
    #[schemars(length(min = 1))]
    pub(super) backend: String,
    /// The language of the kernel; by default that of the backend.
    #[schemars(length(min = 1))]
    pub(super) language: Option<String>,
    /// The device it runs on; `cpu` by default.
    #[schemars(length(min = 1))]
    pub(super) device: Option<String>,
    /// Stop at this goal: `>500 TFLOPS`, `<1.2 ms`, `>60% peak` or `>5x`.
    pub(super) goal: Option<String>,
    /// Requirements beyond the tests, in words, for the agent.
    #[serde(default)]
    pub(super) constraints: Vec<String>,
    /// The document that describes the project to agents, such as `primus-turbo-develop`; for the
    /// manifest and the brief.
    #[schemars(length(min = 1))]
    pub(super) project_skill: Option<String>,
}

/// What a candidate may change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SourcesTable {
    /// Globs of the files that a candidate may change; everything else is read-only.
    #[schemars(length(min = 1))]
    pub(super) editable: Vec<String>,
}

/// The project's own commands.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CommandsTable {
    /// Builds; leave it out when there is nothing to build.
    #[schemars(length(min = 1))]
    pub(super) build: Option<String>,
    /// Exits with 0 if and only if the kernel is correct; required without a contract.
    #[schemars(length(min = 1))]
    pub(super) test: Option<String>,
    /// Measures; required without a contract.
    #[schemars(length(min = 1))]
    pub(super) bench: Option<String>,
    /// Runs untimed before each timed run of either side, for example to flush caches.
    #[schemars(length(min = 1))]
    pub(super) condition: Option<String>,
    /// Prints a profile of the kernel; with `auto`, karve runs the profilers it finds.
    #[schemars(length(min = 1))]
    pub(super) profile: Option<String>,
    /// Prints the measured peak of the device.
    #[schemars(length(min = 1))]
    pub(super) peak: Option<String>,
    /// The project's acceptance test: `karve apply` runs it before it hands a kernel back.
    #[schemars(length(min = 1))]
    pub(super) acceptance: Option<String>,
    /// Globs of the build outputs; if all are byte-identical, nothing changed.
    #[serde(default)]
    pub(super) artifacts: Vec<String>,
    /// Added to the environment of every command.
    #[serde(default)]
    pub(super) env: BTreeMap<String, Scalar>,
    /// Faster commands for the quick cases.
    #[serde(default)]
    pub(super) quick: QuickTable,
}

/// Faster commands for the quick cases.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct QuickTable {
    /// A faster test.
    #[schemars(length(min = 1))]
    pub(super) test: Option<String>,
    /// A faster benchmark.
    #[schemars(length(min = 1))]
    pub(super) bench: Option<String>,
}

/// How to read the output of the benchmark.
///
/// It is read from the file that `{out}` names if the benchmark command contains `{out}`,
/// otherwise from standard output.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OutputTable {
    /// How the numbers are written.
    pub(super) format: OutputFormat,
    /// The column that names the case.
    pub(super) case_column: Option<String>,
    /// The column that says PASS or FAIL.
    pub(super) check_column: Option<String>,
    /// Which of several records, functions, groups or tables to use.
    pub(super) label: Option<String>,
    /// The least signal-to-noise ratio, in decibels, of columns with `snr` in their names.
    pub(super) snr_db_min: Option<OrNone<f64>>,
    /// What a line looks like in the format `text`, such as `dot {case}: {time_us} us {}`.
    #[schemars(length(min = 1))]
    pub(super) pattern: Option<String>,
    /// How far the checksum that the benchmark reports may differ from the incumbent's on the same
    /// seed, relative to the larger one.
    pub(super) checksum_rel_max: Option<OrNone<f64>>,
}

/// What is measured.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MetricTable {
    /// A column, one of `[metrics]`, or `latency`, `throughput`, `combined_step` or `ratio`.
    #[schemars(length(min = 1))]
    pub(super) name: String,
    /// Its unit; by default the suffix of the name, as in `time_ms`.
    pub(super) unit: Option<String>,
    /// Which direction is better; by default lower for times and higher for rates.
    #[schemars(with = "Option<BetterName>")]
    pub(super) better: Option<Better>,
    /// Computed from columns, such as 6/(2/`Forward TFLOPS`+4/`Backward TFLOPS`).
    #[schemars(length(min = 1))]
    pub(super) expr: Option<String>,
    /// Floating-point operations of one case, in terms of its parameters, such as `2*M*N*K`.
    #[schemars(length(min = 1))]
    pub(super) work: Option<String>,
    /// Bytes that one case must read or write, each counted once, in terms of its parameters, such
    /// as `4*(M*K+K*N+M*N)`.
    #[schemars(length(min = 1))]
    pub(super) bytes: Option<String>,
    /// Which clocks decide: only the metric, also CPU time, or `auto`, which includes CPU time if
    /// the metric is the time of a single-threaded command.
    #[schemars(with = "Option<ClockRuleName>")]
    pub(super) clocks: Option<ClockRule>,
    /// The column with the time of one call, for `latency`, `throughput` and `ratio`; by default
    /// the one of the output format. It ends with its unit, as in `time_ms`.
    #[schemars(length(min = 1))]
    pub(super) time: Option<String>,
    /// The column with the time of a forward pass, for `combined_step`; `Forward Time (ms)` by
    /// default.
    #[schemars(length(min = 1))]
    pub(super) forward: Option<String>,
    /// The same for a backward pass; `Backward Time (ms)` by default.
    #[schemars(length(min = 1))]
    pub(super) backward: Option<String>,
    /// The column with the time of the reference, for `ratio`.
    #[schemars(length(min = 1))]
    pub(super) reference: Option<String>,
}

/// Your own metric.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MetricDefinition {
    /// Computed from columns and parameters.
    #[schemars(length(min = 1))]
    pub(super) expr: String,
    /// Its unit.
    pub(super) unit: Option<String>,
    /// Which direction is better; by default lower for times and higher for rates.
    #[schemars(with = "Option<BetterName>")]
    pub(super) better: Option<Better>,
    /// Floating-point operations of one case, in terms of its parameters.
    #[schemars(length(min = 1))]
    pub(super) work: Option<String>,
}

/// What the kernel is judged on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CasesTable {
    /// Cases such as `"M=192,N=192,K=192"`, or `{ name = "odd", M = 129 }`.
    #[serde(default)]
    pub(super) list: Vec<CaseEntry>,
    /// All combinations of these parameters: `{ b = [32], s = [1, 16] }`.
    #[serde(default)]
    pub(super) matrix: BTreeMap<String, Vec<Scalar>>,
    /// The parameter to halve when the device runs out of memory.
    pub(super) halve: Option<String>,
    /// Names of the cases that are measured first, in every round.
    #[serde(default)]
    pub(super) quick: Vec<String>,
    /// Cases that briefs never mention; written like those of the list.
    #[serde(default)]
    pub(super) hidden: Vec<CaseEntry>,
    /// Cases that count only from when there is evidence that the others are not enough; written
    /// like those of the list.
    #[serde(default)]
    pub(super) stress: Vec<CaseEntry>,
    /// Names of the cases that may slow down a little more than the others.
    #[serde(default)]
    pub(super) minor: Vec<String>,
}

/// The limits.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LimitsTable {
    /// Maximum number of rounds; by default the preset's.
    #[schemars(range(min = 1, max = 100_000))]
    pub(super) rounds: Option<u32>,
    /// Maximum hours of work; pauses do not count.
    pub(super) hours: Option<f64>,
    /// Seconds that one command may take; 900 by default.
    #[schemars(range(min = 1, max = 604_800))]
    pub(super) command_s: Option<u64>,
    /// Seconds that one turn of the agent may take; 3600 by default.
    #[schemars(range(min = 1, max = 604_800))]
    pub(super) agent_s: Option<u64>,
    /// Seconds that one duel may take; 3600 by default.
    #[schemars(range(min = 1, max = 604_800))]
    pub(super) duel_s: Option<u64>,
    /// Maximum cost of the agent, in US dollars.
    pub(super) agent_usd: Option<f64>,
    /// Blocks of the final duel; 200 by default.
    #[schemars(range(min = 1, max = 4_000))]
    pub(super) final_blocks: Option<u32>,
}

/// How to keep the device quiet while measuring.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DeviceTable {
    /// CPUs that the benchmark is pinned to, such as `[2, 3]`, or "auto" for the last one.
    pub(super) pin: Option<PinValue>,
    /// A block waits while CPU pressure from others is above this percentage; 50 by default.
    #[schemars(range(min = 0, max = 100))]
    pub(super) pressure_max: Option<f64>,
    /// Seconds that one pause may take; 3 by default.
    #[schemars(range(min = 0, max = 3_600))]
    pub(super) pause_max_s: Option<u64>,
    /// Seconds to wait for another karve that holds the device; 3600 by default.
    #[schemars(range(min = 0, max = 604_800))]
    pub(super) lease_wait_s: Option<u64>,
    /// Locks the clocks of the device before the first block, such as `nvidia-smi -lgc 1500,1500`.
    #[schemars(length(min = 1))]
    pub(super) lock: Option<String>,
    /// Undoes `lock`, even after a crash, such as `nvidia-smi -rgc`.
    #[schemars(length(min = 1))]
    pub(super) unlock: Option<String>,
    /// "elsewhere" if only the project's commands reach the GPU; `tilegym` checks it otherwise.
    #[schemars(with = "Option<GpuPlaceName>")]
    pub(super) gpu: Option<GpuPlace>,
}

/// What may happen in the repository.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GitTable {
    /// `auto` for `optimize/<campaign>`, or `cutile-perf-<op>-<date>` for `tilegym`; `none` for
    /// hidden refs only; or a branch name.
    #[schemars(length(min = 1))]
    pub(super) branch: Option<String>,
    /// Whether kept versions become commits of a branch; false is the same as branch `none`.
    pub(super) commit: Option<bool>,
    /// Whether the history before the parent is hidden from agents and commands; false by default.
    #[serde(default)]
    pub(super) sealed: bool,
}

/// The campaign itself.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CampaignTable {
    /// Its name; by default operation, backend, device and the minute it starts.
    #[schemars(length(min = 1))]
    pub(super) name: Option<String>,
    /// The directory that holds all campaigns; `.karve` by default.
    #[schemars(length(min = 1))]
    pub(super) root: Option<String>,
    /// The seed of all random choices; by default derived from the name.
    #[schemars(range(min = 0, max = 9_007_199_254_740_991_u64))]
    pub(super) seed: Option<u64>,
    /// The one optimization to try: a library entry, `KNOB=VALUE,…`, `sweep`, or free text.
    #[schemars(length(min = 1))]
    pub(super) only: Option<String>,
    /// A file with an analysis whose recommendations are tried one by one, as JSON or Markdown.
    #[schemars(length(min = 1))]
    pub(super) plan: Option<String>,
    /// Try what the first profile and the library suggest, one by one, and nothing else.
    #[serde(default)]
    pub(super) autopilot: bool,
    /// Maximum rounds for each of these; 2 by default.
    #[schemars(range(min = 1, max = 10))]
    pub(super) item_tries: Option<u32>,
}

/// Work in a minimal stack extracted from the repository.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkspaceTable {
    /// Globs of the files that are extracted.
    #[schemars(length(min = 1))]
    pub(super) files: Vec<String>,
    /// The commands of the integration gate, run in the whole repository.
    pub(super) integration: IntegrationTable,
}

/// The commands of the integration gate.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct IntegrationTable {
    /// Builds the whole repository.
    #[schemars(length(min = 1))]
    pub(super) build: Option<String>,
    /// Exits with 0 if and only if the kernel is correct there.
    #[schemars(length(min = 1))]
    pub(super) test: String,
    /// Measures there.
    #[schemars(length(min = 1))]
    pub(super) bench: String,
}

/// What commands and agents may read and write.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SandboxTable {
    /// `auto` sandboxes with what the host supports, `require` refuses to start if something is
    /// missing, `off` disables the sandbox; `auto` by default.
    pub(super) mode: Option<ModeName>,
    /// Whether the project's commands may use the network; false by default.
    #[serde(default)]
    pub(super) network: bool,
    /// Whether the agent may use the network; true by default.
    pub(super) agent_network: Option<bool>,
    /// Otherwise hidden files and directories outside the worktree that may be read.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub(super) read: Vec<String>,
    /// What tests and benchmarks may write: a worktree path such as `target`, or a full path.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub(super) write: Vec<String>,
    /// Environment variables to pass in addition to the usual ones; `NAME*` matches a prefix.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub(super) env: Vec<String>,
    /// `run` empties home and caches before every command, `tree` keeps them for commands in
    /// the same worktree; `run` by default.
    pub(super) caches: Option<CachesName>,
    /// Maximum memory for one command, in GiB; by default nine tenths of the machine's.
    #[schemars(range(min = 0.001, max = 1_000_000))]
    pub(super) memory_gib: Option<f64>,
    /// Maximum number of processes of one command at a time; 4096 by default.
    #[schemars(range(min = 1, max = 4_000_000))]
    pub(super) processes: Option<u32>,
}

/// Whether commands and agents are sandboxed.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ModeName {
    /// With what the host supports.
    Auto,
    /// With everything, or nothing runs.
    Require,
    /// Not at all.
    Off,
}

/// How long files that a command leaves in home and caches are kept.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum CachesName {
    /// Until the command ends.
    Run,
    /// As long as the worktree.
    Tree,
}

pub(super) use super::contract_file::ContractTable;
pub(super) use super::knobs::{KnobTable, TuneTable};
pub(super) use super::names::{BetterName, ClockRuleName, GpuPlaceName};
pub(super) use super::policy_file::{AcceptTable, PlaybookTable, PolicyTable};
