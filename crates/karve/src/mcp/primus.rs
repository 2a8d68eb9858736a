//! The tools of primus's program that the others have no name for: a tip, a quick validation of the
//! workspace, and the rows of a benchmark's table.
//!
//! What a quick validation reads is for the agent alone: nothing is decided by it.

use super::{McpServer, ToolResult, pretty, words};
use crate::project::tag_of;
use crate::steps::{AgentTip, WORKSPACE_DIR, add_tip};
use crate::tuner::copies::COPY_LIMIT;
use karve_core::charter::Charter;
use karve_core::measurement::Sample;
use karve_harness::commands::output::{self, OutputRow, ParseSpec};
use karve_harness::commands::{BenchParams, CommandVariant, Harness};
use karve_harness::outcome::{GateResult, split};
use karve_harness::store::Store;
use karve_numerics::case::{Case, CaseSet};
use karve_os::copy::copy_tree;
use karve_os::process::StopFlag;
use karve_os::sandbox::Sandbox;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::{schemars, tool, tool_router};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Characters of a table that is read.
const TABLE_CHARS_MAX: usize = 1 << 20;

/// A table as text.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[schemars(deny_unknown_fields)]
struct TableInput {
    /// What the benchmark printed.
    text: String,
}

#[tool_router(router = primus_tools, vis = "pub(super)")]
impl McpServer {
    #[tool(description = "Add a reusable lesson to the tips of this device, operation and \
                          backend, which later campaigns read. All four fields are needed.")]
    async fn append_tip(&self, Parameters(tip): Parameters<AgentTip>) -> ToolResult {
        let dir = self.place.pick().map_err(words)?;
        let campaign = self.read()?;
        let Some(charter) = campaign.charter() else {
            return Err("the campaign has no charter yet: call next".to_owned());
        };
        let campaigns = dir.path().parent().unwrap_or(dir.path());
        let path = add_tip(&charter.target, campaigns, &tip).map_err(words)?;
        pretty(&json!({ "tips": path.display().to_string() }))
    }

    #[tool(description = "Build, test and measure your workspace on the quick cases, before you \
                       submit it. The figures are for you: they decide nothing, and submit \
                       measures again.")]
    async fn run_quick_validation(&self) -> ToolResult {
        let Ok(_driving) = std::sync::Arc::clone(&self.driving).try_lock_owned() else {
            return Err("another call is running: wait for it, or cancel it".to_owned());
        };
        let server = self.clone();
        let work = tokio::task::spawn_blocking(move || server.validate_quickly());
        work.await.map_err(|error| format!("bug in karve: {error}"))?
    }

    #[tool(
        description = "Read what a benchmark printed as the campaign reads it: one row per \
                       shape with its check and its figures, or why it cannot be read",
        annotations(read_only_hint = true)
    )]
    async fn parse_bench_csv(&self, Parameters(table): Parameters<TableInput>) -> ToolResult {
        let campaign = self.read()?;
        let output = campaign.charter().map(|charter| charter.output.clone());
        let output = output.ok_or("the campaign has no charter yet: call next")?;
        let text: String = table.text.chars().take(TABLE_CHARS_MAX).collect();
        let format = serde_json::from_value(output.format.as_str().into());
        let spec = ParseSpec {
            format: format.map_err(|_| format!("there is no format {}", output.format))?,
            case_column: output.case_column.as_deref(),
            check_column: output.check_column.as_deref(),
            label: output.label.as_deref(),
            pattern: output.pattern.as_deref(),
        };
        let rows = output::parse(&text, &spec).map_err(|error| error.to_string())?;
        pretty(&rows.iter().map(row).collect::<Vec<_>>())
    }
}

impl McpServer {
    fn validate_quickly(&self) -> ToolResult {
        let dir = self.place.pick().map_err(words)?;
        let campaign = self.read()?;
        let Some(charter) = campaign.charter() else {
            return Err("the campaign has no charter yet: call next".to_owned());
        };
        let workspace = dir.join(WORKSPACE_DIR);
        if !workspace.is_dir() {
            return Err("there is no workspace now: it is there when next says implement".into());
        }
        if charter.contract.is_some() {
            return Err("under a contract karve calls the kernel itself: use submit".to_owned());
        }
        // The lock keeps other processes from measuring at the same time.
        let _store = Store::open(&dir, "karve mcp\n").map_err(words)?;
        // Commands see worktrees only, and leave nothing in the workspace.
        let tree = dir.worktrees().join("quick-validation");
        let _ = fs::remove_dir_all(&tree);
        copy_tree(&workspace, &tree, COPY_LIMIT)
            .map_err(|error| format!("cannot copy it: {error}"))?;
        let upstream = self.place.repo().map_err(words)?;
        let campaigns = dir.path().parent().unwrap_or(dir.path());
        let sandbox = Sandbox::of(&upstream.checkout(), campaigns, dir.path(), charter);
        let sandbox = sandbox.map_err(words)?;
        let harness = Harness::new(charter, &dir.join("tmp"), &tag_of(&dir), &StopFlag::new())
            .in_sandbox(sandbox.as_ref());
        let quick = campaign.cases_of(CaseSet::Quick).into_iter();
        let cases: Vec<Case> = quick.filter_map(|index| campaign.case(index)).collect();
        let read = split(quick_reading(&harness, &tree, &cases));
        let _ = fs::remove_dir_all(&tree);
        match read.map_err(words)? {
            Ok(samples) => pretty(&json!({
                "passed": true,
                "decides": "nothing; submit measures again",
                "cases": figures(charter, &cases, &samples),
            })),
            Err(gate) => pretty(&json!({ "passed": false, "why": gate.describe() })),
        }
    }
}

fn quick_reading(harness: &Harness, tree: &Path, cases: &[Case]) -> GateResult<Vec<Sample>> {
    harness.build(tree)?;
    harness.test(tree, cases, CommandVariant::Quick)?;
    harness.bench(tree, cases, BenchParams::fresh(CommandVariant::Quick)?)
}

fn figures(charter: &Charter, cases: &[Case], samples: &[Sample]) -> Vec<Value> {
    let metric = &charter.metric;
    let figure = |(case, sample): (&Case, &Sample)| {
        let name = metric.name.as_str();
        json!({ "case": case.name, name: sample.value, "unit": metric.unit })
    };
    cases.iter().zip(samples).map(figure).collect()
}

fn row(row: &OutputRow) -> Value {
    json!({
        "label": row.case,
        "params": row.params,
        "check": format!("{:?}", row.check).to_uppercase(),
        "values": row.values,
    })
}
