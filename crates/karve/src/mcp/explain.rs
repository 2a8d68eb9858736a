//! Tools that explain: the generated code of the kernel, and why a round ended as it did.

use super::{McpServer, RoundInput, ToolResult, pretty, words};
use crate::explain::explain;
use karve_os::process::StopFlag;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::{schemars, tool, tool_router};
use serde::Deserialize;

/// Which code.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[schemars(deny_unknown_fields)]
struct CodeInput {
    /// A function whose name contains this. Default: the functions of the editable files.
    #[serde(default)]
    function: String,
}

#[tool_router(router = explain_tools, vis = "pub(super)")]
impl McpServer {
    #[tool(
        description = "The generated code of the incumbent: the functions of the editable files, \
                       their instructions, and their innermost loops as line numbers",
        annotations(read_only_hint = true)
    )]
    async fn explain(&self, Parameters(args): Parameters<CodeInput>) -> ToolResult {
        let (place, incumbent) = (self.place.clone(), self.read()?.incumbent().to_owned());
        let work = tokio::task::spawn_blocking(move || {
            let function = Some(args.function.as_str()).filter(|name| !name.is_empty());
            let revision = Some(incumbent.as_str()).filter(|commit| !commit.is_empty());
            explain(&place, revision, function, &StopFlag::new())
        });
        let code = work.await.map_err(|error| format!("bug in karve: {error}"))?;
        pretty(&code.map_err(words)?)
    }

    #[tool(
        description = "Why a round was kept, dropped or left undecided: the condition, its \
                       numbers, and what would change it",
        annotations(read_only_hint = true)
    )]
    async fn why(&self, Parameters(args): Parameters<RoundInput>) -> ToolResult {
        let campaign = self.read()?;
        let last = campaign.rounds().last().map_or(0, |round| round.number);
        let number = if args.round == 0 { last } else { args.round };
        match campaign.why(number) {
            Some(why) => pretty(&why),
            None => Err("there is no such finished round: see tried".to_owned()),
        }
    }
}
