//! `karve mcp`: an MCP server for external agents that drive a campaign themselves.

use crate::mcp::{McpServer, StartPermission, http, stdio};
use crate::project::ProjectArgs;
use crate::{loopback, ui};
use karve_os::error::{CommandError, Result, WithContext};
use karve_os::process;
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use std::net::SocketAddr;
use std::path::Path;

/// What JSON-RPC calls a request that cannot be answered as it is.
const INVALID_REQUEST: i32 = -32_600;

/// The variable that holds the token of the HTTP server.
const TOKEN: &str = "KARVE_MCP_TOKEN";
/// Fewest characters of a token.
const TOKEN_CHARS_MIN: usize = 16;

/// Variables set for every process that a campaign starts.
const CAMPAIGN_VARIABLES: [&str; 2] = ["KARVE_TASK", process::CAMPAIGN_MARK];
/// The directory of campaigns, unless another one is configured.
const CAMPAIGNS: &str = ".karve";

/// Serve agents over MCP: they propose and implement, karve gates, measures and judges
///
/// On standard input and output, as agents start it, or over HTTP on loopback with a token.
/// Tools: next, propose, submit, verdict, status, tried, trend, profile, knowledge, report,
/// append_tip, run_quick_validation, parse_bench_csv.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  claude mcp add karve -- karve mcp --yes       register it with an agent
  karve mcp --http 127.0.0.1:7711               token from KARVE_MCP_TOKEN, or a new one is shown
  karve -C path/to/project mcp                  for a project in another directory")]
pub struct McpArgs {
    /// Serve HTTP on this loopback address instead of standard input and output
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,
    /// Let clients start a new campaign, under the charter of karve.toml
    #[arg(short, long)]
    yes: bool,
}

impl McpArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        // Report an unreadable project before a client connects.
        place.config()?;
        refuse_within(&place.here()?)?;
        let may = if self.yes { StartPermission::Begin } else { StartPermission::GoOn };
        let server = McpServer::new(place.clone(), may);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .context(|| "cannot start the server".to_owned())?;
        runtime.block_on(async {
            match self.http {
                Some(address) => serve_http(server, address).await,
                None => serve_stdio(server).await,
            }
        })
    }
}

/// An agent that karve drives may have karve among its MCP servers. It answers a brief; it must
/// not start a campaign within the campaign.
fn refuse_within(here: &Path) -> Result<()> {
    let is_asked = CAMPAIGN_VARIABLES.iter().any(|name| std::env::var_os(name).is_some());
    let in_campaign = here.iter().any(|part| part == CAMPAIGNS);
    match is_asked || in_campaign {
        true => Err(CommandError::usage("an agent of a campaign cannot drive another campaign")
            .hint("answer the brief you were given; see docs/agents.md")),
        false => Ok(()),
    }
}

async fn serve_stdio(server: McpServer) -> Result<()> {
    let failed = |error: String| {
        CommandError::environment("the client did not speak MCP")
            .cause(error)
            .hint("start \"karve mcp\" from an agent: \"claude mcp add karve -- karve mcp\"")
    };
    let serving = match server.serve(stdio::stdio()).await {
        Ok(serving) => serving,
        Err(ServerInitializeError::ExpectedInitializeRequest(Some(early))) => {
            refuse_early(&serde_json::json!(early)["id"]);
            return Err(failed("the first message was not \"initialize\"".to_owned()));
        }
        Err(ServerInitializeError::ExpectedInitializeRequest(None)) => {
            return Err(failed("the connection ended before \"initialize\"".to_owned()));
        }
        Err(error) => return Err(failed(error.to_string())),
    };
    let ended = serving.waiting().await;
    ended.map(|_| ()).map_err(|error| failed(error.to_string()))
}

/// Answers a request that came before the connection was set up. A notification gets no answer.
fn refuse_early(id: &serde_json::Value) {
    if !id.is_null() {
        let error = serde_json::json!({"code": INVALID_REQUEST, "message": "initialize first"});
        ui::outln(&serde_json::json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string());
    }
}

async fn serve_http(server: McpServer, address: SocketAddr) -> Result<()> {
    let listener = loopback::listen(address, "--http").await?;
    let at = listener.local_addr().context(|| "cannot get the server address".to_owned())?;
    let (token, is_new) = token()?;
    ui::note(&format!("serving http://{at}/"));
    if is_new {
        ui::note(&format!("token {token} (or set {TOKEN})"));
    }
    http::serve(server, listener, token).await
}

/// The token from the environment, or a new one.
fn token() -> Result<(String, bool)> {
    match std::env::var(TOKEN) {
        Ok(token) if token.len() >= TOKEN_CHARS_MIN => Ok((token, false)),
        Ok(_) => {
            Err(CommandError::usage(format!("{TOKEN} has fewer than {TOKEN_CHARS_MIN} characters"))
                .hint(format!("set a longer {TOKEN}, or unset it to get a new one")))
        }
        Err(_) => Ok((loopback::fresh_token()?, true)),
    }
}
