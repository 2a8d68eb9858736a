//! `karve.toml` as it is written: one type per table, from which its JSON schema is made too.
//!
//! The documentation of a field is what an editor shows next to the key, so it speaks to the
//! person who writes the file. Nothing here is checked beyond its shape; see `charter_of`.

use super::audit::AuditTable;
use super::sandbox::SandboxTable;
use super::values::{CaseEntry, PinValue, Scalar};
use karve_core::charter::{Better, ClockRule};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// What karve optimizes, how it is built, tested and measured, and by which rules.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "karve.toml")]
pub(super) struct File {
    /// What is optimized.
    pub(super) target: TargetTable,
    /// What a candidate may change.
    pub(super) sources: SourcesTable,
    /// The project's own commands, run by `sh` in the directory of this file.
    ///
    /// `{case}`, `{seed}`, `{out}`, `{depth}`, `{<parameter of the case>}` and `{<knob>}` are
    /// replaced; `{{` stands for a brace.
    #[serde(default)]
    pub(super) commands: CommandsTable,
    /// A kernel that karve calls itself, instead of a test and a benchmark of the project's own.
    pub(super) contract: Option<ContractTable>,
    /// How the output of the benchmark is read; needed unless there is a contract.
    pub(super) output: Option<OutputTable>,
    /// What is measured; needed unless there is a contract.
    pub(super) metric: Option<MetricTable>,
    /// Metrics of your own, of which `metric.name` selects one.
    #[serde(default)]
    pub(super) metrics: BTreeMap<String, MetricDefinition>,
    /// What the kernel is judged on.
    pub(super) cases: CasesTable,
    /// The rules; every key overrides the preset.
    #[serde(default)]
    pub(super) policy: PolicyTable,
    /// The bounds.
    #[serde(default)]
    pub(super) limits: LimitsTable,
    /// How the device is kept quiet while it is measured.
    #[serde(default)]
    pub(super) device: DeviceTable,
    /// What the audit of a candidate's source looks for.
    #[serde(default)]
    pub(super) audit: AuditTable,
    /// What commands and agents may see and touch.
    #[serde(default)]
    pub(super) sandbox: SandboxTable,
    /// Who proposes and implements.
    #[serde(default)]
    pub(super) agent: AgentTable,
    /// Programs that can be named as the agent.
    #[serde(default)]
    pub(super) agents: BTreeMap<String, AgentProgram>,
    /// Who takes which role; `karve roles` lists them. Without any, one agent does everything.
    #[serde(default)]
    pub(super) roles: BTreeMap<String, RoleTable>,
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
    /// When to be content: `>500 TFLOPS`, `<1.2 ms`, `>60% peak` or `>5x`.
    pub(super) goal: Option<String>,
    /// What must hold beyond the tests, in words, for the agent.
    #[serde(default)]
    pub(super) constraints: Vec<String>,
}

/// What a candidate may change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SourcesTable {
    /// Globs of the files that a candidate may change; everything else is protected.
    #[schemars(length(min = 1))]
    pub(super) granted: Vec<String>,
}

/// The project's own commands.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CommandsTable {
    /// Builds; leave it out when there is nothing to build.
    #[schemars(length(min = 1))]
    pub(super) build: Option<String>,
    /// Exits with 0 if and only if the kernel is right; needed unless there is a contract.
    #[schemars(length(min = 1))]
    pub(super) test: Option<String>,
    /// Measures; needed unless there is a contract.
    #[schemars(length(min = 1))]
    pub(super) bench: Option<String>,
    /// Runs before each timed run of either arm, not timed, such as one that empties caches.
    #[schemars(length(min = 1))]
    pub(super) condition: Option<String>,
    /// Prints a profile of the kernel; `auto`: karve runs the profilers that it finds.
    #[schemars(length(min = 1))]
    pub(super) profile: Option<String>,
    /// Prints the measured peak of the device.
    #[schemars(length(min = 1))]
    pub(super) peak: Option<String>,
    /// Globs of what the build makes; byte-identical ones mean that nothing changed.
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

/// How the output of the benchmark is read.
///
/// It is read from the file that `{out}` names if the benchmark command contains `{out}`, else
/// from standard output.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OutputTable {
    /// How the numbers are written.
    pub(super) format: FormatName,
    /// The column that names the case.
    pub(super) case_column: Option<String>,
    /// The column that says PASS or FAIL.
    pub(super) check_column: Option<String>,
    /// Which of several records, functions, groups or tables is meant.
    pub(super) label: Option<String>,
}

/// How the numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FormatName {
    /// A header and one row a case.
    Csv,
    /// One JSON document that holds the rows.
    Json,
    /// One JSON object a line.
    Jsonl,
    /// `METRIC name=number key=value` lines among other output.
    Metric,
    /// The file of `hyperfine --export-json`.
    Hyperfine,
    /// `pytest --print-record`.
    Pytest,
    /// `--benchmark_format=json` of Google Benchmark.
    GoogleBenchmark,
    /// The file of nvbench's `--json`.
    Nvbench,
    /// The table of nvbench's `--csv`.
    NvbenchCsv,
    /// The file of `pytest --benchmark-json`.
    PytestBenchmark,
    /// Criterion's `estimates.json`, one or several with their `benchmark.json` before them.
    Criterion,
    /// The lines of `cargo bench` with Rust's own harness.
    Libtest,
    /// The tables that Triton's `perf_report` prints or saves.
    Triton,
}

/// What is measured.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MetricTable {
    /// A column, one of `[metrics]`, or `latency`, `throughput`, `combined_step` or `ratio`.
    #[schemars(length(min = 1))]
    pub(super) name: String,
    /// Its unit; by default what the name ends with, as in `time_ms`.
    pub(super) unit: Option<String>,
    /// Which direction is better; by default lower for times and higher for rates.
    #[schemars(with = "Option<BetterName>")]
    pub(super) better: Option<Better>,
    /// Computed from columns, such as 6/(2/`Forward TFLOPS`+4/`Backward TFLOPS`).
    #[schemars(length(min = 1))]
    pub(super) expr: Option<String>,
    /// Floating-point operations of one case over its parameters, such as `2*M*N*K`.
    #[schemars(length(min = 1))]
    pub(super) work: Option<String>,
    /// Bytes that one case must read or write, each counted once, over its parameters, such as
    /// `4*(M*K+K*N+M*N)`.
    #[schemars(length(min = 1))]
    pub(super) bytes: Option<String>,
    /// Which clocks decide: the metric alone, also CPU time, or `auto`, which takes CPU time in
    /// where the metric is the time of a command with a single thread.
    #[schemars(with = "Option<ClockRuleName>")]
    pub(super) clocks: Option<ClockRule>,
    /// The column with the time of one call, for `latency`, `throughput` and `ratio`; by default
    /// that of the tool whose format is read. It ends with its unit, as in `time_ms`.
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

/// A metric of your own.
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
    /// Floating-point operations of one case over its parameters.
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
    /// The parameter that is halved when the device is out of memory.
    pub(super) halve: Option<String>,
    /// Names of the cases that are measured first, in every round.
    #[serde(default)]
    pub(super) quick: Vec<String>,
    /// Cases that no brief names; written like those of the list.
    #[serde(default)]
    pub(super) hidden: Vec<CaseEntry>,
    /// Names of the cases that may lose a little more than the others.
    #[serde(default)]
    pub(super) minor: Vec<String>,
}

/// The bounds.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LimitsTable {
    /// Rounds at most; by default those of the preset.
    #[schemars(range(min = 1, max = 100_000))]
    pub(super) rounds: Option<u32>,
    /// Hours of work at most; a paused campaign does not use them.
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
    /// What the agent may cost, in US dollars.
    pub(super) agent_usd: Option<f64>,
    /// Blocks of the final duel; 200 by default.
    #[schemars(range(min = 1, max = 4_000))]
    pub(super) final_blocks: Option<u32>,
}

/// How the device is kept quiet while it is measured.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DeviceTable {
    /// CPUs that the benchmark is held to, such as `[2, 3]`, or "auto" for the last one.
    pub(super) pin: Option<PinValue>,
    /// A block waits while the CPU pressure by others is above this percentage; 50 by default.
    #[schemars(range(min = 0, max = 100))]
    pub(super) pressure_max: Option<f64>,
    /// Seconds that one pause may take; 30 by default.
    #[schemars(range(min = 0, max = 3_600))]
    pub(super) pause_max_s: Option<u64>,
    /// Seconds to wait for another karve that holds the device; 3600 by default.
    #[schemars(range(min = 0, max = 604_800))]
    pub(super) lease_wait_s: Option<u64>,
    /// Locks the clocks of the device before the first block, such as `nvidia-smi -lgc 1500,1500`.
    #[schemars(length(min = 1))]
    pub(super) lock: Option<String>,
    /// Undoes `lock`, also after a crash, such as `nvidia-smi -rgc`.
    #[schemars(length(min = 1))]
    pub(super) unlock: Option<String>,
}

/// What an agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum AgentKind {
    /// Any program, in the contract of docs/agents.md.
    Command,
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// opencode.
    Opencode,
    /// aider.
    Aider,
    /// The Messages API of Anthropic.
    Anthropic,
    /// The Responses API of OpenAI.
    Openai,
    /// Chat Completions of OpenAI, and of servers that speak like it.
    #[serde(rename = "openai-chat")]
    OpenaiChat,
    /// The Gemini API of Google.
    Google,
}

/// A program that can be named as the agent.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AgentProgram {
    /// What it is; `command` where there is a command, else its name.
    pub(super) kind: Option<AgentKind>,
    /// The command line of a program in the contract of docs/agents.md.
    #[schemars(length(min = 1))]
    pub(super) command: Option<String>,
    /// Added to its environment.
    #[serde(default)]
    pub(super) env: BTreeMap<String, Scalar>,
    /// Variables with keys that a program gets; `NAME*` stands for all that start so. None by
    /// default.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub(super) pass: Vec<String>,
    /// Whether it is asked, after a round that taught something, to say it in words; not by
    /// default.
    #[serde(default)]
    pub(super) learn: bool,
    /// The program of a command-line agent, if it is not the usual one.
    #[schemars(length(min = 1))]
    pub(super) program: Option<String>,
    /// The model that a command-line agent or a model API is to use.
    #[schemars(length(min = 1))]
    pub(super) model: Option<String>,
    /// Further arguments of a command-line agent.
    #[serde(default)]
    pub(super) args: Vec<String>,
    /// The hosts that it may reach, such as `api.example.com` or `localhost:8080`; `*` for all. By
    /// default those of its model, where its kind says which they are.
    #[schemars(length(min = 1, max = 64))]
    pub(super) hosts: Option<Vec<String>>,
    /// Where a model API is, if it is not where it usually is.
    #[schemars(length(min = 1))]
    pub(super) base_url: Option<String>,
    /// The variable with the key of a model API, if it is not the usual one.
    #[schemars(length(min = 1))]
    pub(super) key_env: Option<String>,
    /// A command that prints the key of a model API.
    #[schemars(length(min = 1))]
    pub(super) key_command: Option<String>,
    /// What a million tokens of a model API cost, in US dollars.
    pub(super) price: Option<Price>,
    /// Tokens that one answer of a model API may have.
    #[schemars(range(min = 256, max = 1_000_000))]
    pub(super) max_tokens: Option<u32>,
    /// Tokens that the model of a model API can take in.
    #[schemars(range(min = 1_024, max = 100_000_000))]
    pub(super) context_tokens: Option<u64>,
    /// Tokens that a campaign may use of a model API; no limit by default.
    #[schemars(range(min = 1))]
    pub(super) tokens_max: Option<u64>,
    /// How often a question to a model API that failed is asked again; 6 by default.
    #[schemars(range(min = 0, max = 20))]
    pub(super) retries: Option<u32>,
    /// Milliseconds before it is asked again; each further time twice as long. 1000 by default.
    #[schemars(range(min = 1, max = 60_000))]
    pub(super) backoff_ms: Option<u64>,
}

/// What may happen in the repository.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GitTable {
    /// `auto` for `optimize/<campaign>`, `none` for hidden refs only, or a branch name.
    #[schemars(length(min = 1))]
    pub(super) branch: Option<String>,
    /// Whether the history before the parent is kept from agents and commands; not by default.
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
    /// Where every random draw comes from; by default derived from the name.
    #[schemars(range(min = 0, max = 9_007_199_254_740_991_u64))]
    pub(super) seed: Option<u64>,
    /// The one optimization to try: an entry of the library, `KNOB=VALUE,…`, `sweep`, or words.
    #[schemars(length(min = 1))]
    pub(super) only: Option<String>,
    /// A file with an analysis whose recommendations are tried one by one, as JSON or Markdown.
    #[schemars(length(min = 1))]
    pub(super) plan: Option<String>,
    /// Try what the first profile and the library suggest, one by one, and nothing else.
    #[serde(default)]
    pub(super) autopilot: bool,
    /// Rounds that one of these may take; 2 by default.
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
    /// Exits with 0 if and only if the kernel is right there.
    #[schemars(length(min = 1))]
    pub(super) test: String,
    /// Measures there.
    #[schemars(length(min = 1))]
    pub(super) bench: String,
}

pub(super) use super::api_table::Price;
pub(super) use super::contract_file::ContractTable;
pub(super) use super::knobs::{KnobTable, TuneTable};
pub(super) use super::names::{BetterName, ClockRuleName};
pub(super) use super::policy_file::{AcceptTable, PolicyTable};
pub(super) use super::roles::{AgentTable, RoleTable};
