//! Codex: events of `codex exec --json`. Its token counts are for the whole conversation, and it
//! reports no cost.

use super::turn_output::{TurnFailure, TurnOutput, count, message, text};
use super::{CliOutputParser, CliSpec, CliTurnRequest};
use crate::session_event::SessionEvent;
use karve_os::files;
use serde_json::Value;
use std::path::Path;

/// The largest settings file that is read.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// Codex as a kind of agent.
pub(super) const SPEC: CliSpec = CliSpec {
    name: "codex",
    title: "Codex",
    program: "codex",
    install: "npm install -g @openai/codex",
    variables: &["OPENAI_*", "CODEX_*", "AZURE_OPENAI_*"],
    set: &[],
    homes: &[".codex"],
    home_variables: &["CODEX_HOME"],
    below: "",
    hosts: &[("", "api.openai.com"), ("", "auth.openai.com"), ("", "chatgpt.com")],
    host_variables: &["OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT"],
    addresses,
    speaks: CliOutputParser::Events(read),
    session_events,
    arguments,
    settings: |_| Vec::new(),
};

/// The `base_url` of the providers in its `config.toml`.
fn addresses(home: &Path) -> Vec<String> {
    let text = files::read_text(&home.join("config.toml"), CONFIG_BYTES_MAX);
    let table: Option<toml::Table> = text.ok().and_then(|text| text.parse().ok());
    let providers = table.as_ref().and_then(|table| table.get("model_providers"));
    let providers = providers.and_then(toml::Value::as_table);
    let urls = providers.into_iter().flatten();
    let urls = urls.filter_map(|(_, provider)| provider.get("base_url")?.as_str());
    urls.map(str::to_owned).collect()
}

fn arguments(ask: &CliTurnRequest<'_>) -> Vec<String> {
    // Its own mount sandbox cannot be created inside karve's, which applies in any case.
    let sandbox = match (ask.confined, ask.task.changes_files()) {
        (true, _) => "danger-full-access",
        (false, true) => "workspace-write",
        (false, false) => "read-only",
    };
    let fixed = [
        "exec",
        "--json",
        "--skip-git-repo-check",
        "-s",
        sandbox,
        "-c",
        "approval_policy=\"never\"",
        "-c",
        "check_for_update_on_startup=false",
        "-c",
        "analytics.enabled=false",
    ];
    let mut args = ask.words(&fixed, "-m", "resume");
    // The brief comes from the standard input.
    args.push("-".to_owned());
    args
}

fn read(heard: &mut TurnOutput, event: &Value) {
    match text(event, "/type") {
        "thread.started" => heard.session = Some(text(event, "/thread_id").to_owned()),
        "item.completed" => match text(event, "/item/type") {
            "agent_message" => heard.set_text(text(event, "/item/text")),
            // For example that it does not know a model: the turn continues.
            "error" => heard.complaint = message(text(event, "/item/message")),
            "command_execution" | "file_change" if text(event, "/item/status") == "declined" => {
                heard.is_denied(text(event, "/item/type"));
            }
            _ => {}
        },
        "error" => heard.complaint = message(text(event, "/message")),
        "turn.failed" => {
            heard.has_ended = true;
            heard.failure = Some(TurnFailure::Api(message(text(event, "/error/message"))));
        }
        "turn.completed" => {
            heard.has_ended = true;
            // Cached and reasoning tokens are included in these.
            let counts = ["/usage/input_tokens", "/usage/output_tokens"];
            let counts = counts.iter().map(|path| count(event, path));
            heard.tokens_of_all = Some(counts.fold(0, u64::saturating_add));
        }
        _ => {}
    }
}

/// Parses an event for display.
fn session_events(event: &Value) -> Vec<SessionEvent> {
    let item = |path: &str| event.pointer(path);
    let failed = text(event, "/item/status") != "completed";
    let note = |path: &str| vec![SessionEvent::Note(text(event, path).to_owned())];
    match (text(event, "/type"), text(event, "/item/type")) {
        ("item.completed", "agent_message") => {
            vec![SessionEvent::Text(text(event, "/item/text").to_owned())]
        }
        ("item.completed", "command_execution") => vec![
            SessionEvent::calls("shell", item("/item/command")),
            SessionEvent::tool_output(item("/item/aggregated_output"), failed),
        ],
        ("item.completed", "file_change") => {
            vec![SessionEvent::calls("edit", item("/item/changes"))]
        }
        ("item.completed", "mcp_tool_call") => {
            let tool = format!("{}.{}", text(event, "/item/server"), text(event, "/item/tool"));
            let said = item("/item/result/content").or_else(|| item("/item/error"));
            vec![
                SessionEvent::calls(&tool, item("/item/arguments")),
                SessionEvent::tool_output(said, failed),
            ]
        }
        ("item.completed", "error") => note("/item/message"),
        ("error", _) => note("/message"),
        ("turn.failed", _) => note("/error/message"),
        _ => Vec::new(),
    }
}
