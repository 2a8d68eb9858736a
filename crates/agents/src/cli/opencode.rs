//! opencode: events of `opencode run --format json`. Tokens and cost are reported per step, and the
//! last step is the one that does not end with tool calls.

use super::turn_output::{TurnFailure, TurnOutput, count, message, money, text};
use super::{CliOutputParser, CliSpec, CliTurnRequest};
use crate::session_event::SessionEvent;
use serde_json::{Value, json};

/// opencode as a kind of agent.
pub(super) const SPEC: CliSpec = CliSpec {
    name: "opencode",
    title: "opencode",
    program: "opencode",
    install: "npm install -g opencode-ai",
    variables: &[
        "OPENCODE_*",
        "ANTHROPIC_*",
        "OPENAI_*",
        "GEMINI_*",
        "GOOGLE_*",
        "OPENROUTER_*",
        "DEEPSEEK_*",
        "MISTRAL_*",
        "OLLAMA_*",
        "AWS_*",
        "AZURE_*",
    ],
    set: &[("OPENCODE_DISABLE_AUTOUPDATE", "1"), ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1")],
    homes: &[".local/share/opencode", ".config/opencode"],
    home_variables: &["XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"],
    below: "opencode",
    hosts: &[],
    host_variables: &[],
    addresses: |_| Vec::new(),
    speaks: CliOutputParser::Events(read),
    session_events,
    arguments,
    settings,
};

fn arguments(ask: &CliTurnRequest<'_>) -> Vec<String> {
    ask.words(&["run", "--format", "json"], "-m", "--session")
}

/// Its permissions, which override its own files.
fn settings(ask: &CliTurnRequest<'_>) -> Vec<(String, String)> {
    let edit = if ask.task.changes_files() { "allow" } else { "deny" };
    let bash = if ask.confined { "allow" } else { "deny" };
    let content = json!({
        "autoupdate": false,
        "share": "disabled",
        "permission": { "edit": edit, "bash": bash, "webfetch": "deny" },
    });
    vec![("OPENCODE_CONFIG_CONTENT".to_owned(), content.to_string())]
}

fn read(heard: &mut TurnOutput, event: &Value) {
    let session = text(event, "/sessionID");
    if !session.is_empty() {
        heard.session = Some(session.to_owned());
    }
    match text(event, "/type") {
        "step_start" => heard.set_text(""),
        "text" => heard.append_text(text(event, "/part/text")),
        "tool_use" if text(event, "/part/state/status") == "error" => {
            let said = text(event, "/part/state/error").to_lowercase();
            if said.contains("permission") || said.contains("rejected") {
                heard.is_denied(text(event, "/part/tool"));
            }
        }
        "step_finish" => {
            heard.has_ended = text(event, "/part/reason") != "tool-calls";
            let kinds = [
                "/part/tokens/input",
                "/part/tokens/output",
                "/part/tokens/reasoning",
                "/part/tokens/cache/read",
                "/part/tokens/cache/write",
            ];
            let counts = kinds.iter().map(|path| count(event, path));
            heard.usage.tokens = counts.fold(heard.usage.tokens, u64::saturating_add);
            heard.usage.usd += money(event, "/part/cost");
        }
        "error" => {
            let name = text(event, "/error/name");
            let status = count(event, "/error/data/statusCode");
            let said = text(event, "/error/data/message");
            let status = if status == 0 { String::new() } else { status.to_string() };
            heard.failure = Some(TurnFailure::Api(message(&format!("{status} {name} {said}"))));
        }
        _ => {}
    }
}

/// Parses an event for display.
fn session_events(event: &Value) -> Vec<SessionEvent> {
    match text(event, "/type") {
        "text" => vec![SessionEvent::Text(text(event, "/part/text").to_owned())],
        "tool_use" => {
            let failed = text(event, "/part/state/status") == "error";
            let said = match failed {
                true => event.pointer("/part/state/error"),
                false => event.pointer("/part/state/output"),
            };
            vec![
                SessionEvent::calls(text(event, "/part/tool"), event.pointer("/part/state/input")),
                SessionEvent::tool_output(said, failed),
            ]
        }
        "error" => {
            let name = text(event, "/error/name");
            let said = text(event, "/error/data/message");
            vec![SessionEvent::Note(format!("{name} {said}"))]
        }
        _ => Vec::new(),
    }
}
