//! Gemini CLI: events of `-o stream-json`. Tools that it may not use are not offered to the model,
//! which then calls tools that do not exist.

use super::turn_output::{TurnFailure, TurnOutput, count, message, text};
use super::{CliOutputParser, CliSpec, CliTurnRequest};
use crate::session_event::SessionEvent;
use serde_json::Value;

/// Gemini CLI as a kind of agent.
pub(super) const SPEC: CliSpec = CliSpec {
    name: "gemini",
    title: "Gemini CLI",
    program: "gemini",
    install: "npm install -g @google/gemini-cli",
    variables: &["GEMINI_*", "GOOGLE_*"],
    set: &[("GEMINI_TELEMETRY_ENABLED", "false")],
    homes: &[".gemini"],
    home_variables: &["GEMINI_CLI_HOME"],
    below: "",
    hosts: &[
        ("", "generativelanguage.googleapis.com"),
        ("", "cloudcode-pa.googleapis.com"),
        ("", "oauth2.googleapis.com"),
        ("GOOGLE_GENAI_USE_VERTEXAI", "*.googleapis.com"),
    ],
    host_variables: &["GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL"],
    addresses: |_| Vec::new(),
    speaks: CliOutputParser::Events(read),
    session_events,
    arguments,
    settings: |_| Vec::new(),
};

fn arguments(ask: &CliTurnRequest<'_>) -> Vec<String> {
    let mode = match (ask.task.changes_files(), ask.confined) {
        (false, _) => "default",
        (true, true) => "yolo",
        (true, false) => "auto_edit",
    };
    let fixed = ["-o", "stream-json", "--skip-trust", "--approval-mode", mode];
    ask.words(&fixed, "-m", "--resume")
}

fn read(heard: &mut TurnOutput, event: &Value) {
    match text(event, "/type") {
        "init" => heard.session = Some(text(event, "/session_id").to_owned()),
        "message" if text(event, "/role") == "assistant" => {
            match event.get("delta").and_then(Value::as_bool) {
                Some(true) => heard.append_text(text(event, "/content")),
                Some(false) | None => heard.set_text(text(event, "/content")),
            }
        }
        // Text after a tool call is a new message.
        "tool_use" => {
            heard.set_text("");
            heard.tool = text(event, "/tool_name").to_owned();
        }
        "tool_result" if text(event, "/status") == "error" => {
            let said = event.get("error").map(Value::to_string).unwrap_or_default();
            if is_denial(&said) || is_denial(text(event, "/output")) {
                let tool = std::mem::take(&mut heard.tool);
                heard.is_denied(&tool);
            }
        }
        "error" => heard.complaint = message(text(event, "/message")),
        "result" => {
            heard.has_ended = true;
            heard.usage.tokens = count(event, "/stats/total_tokens");
            if text(event, "/status") != "success" {
                let said = event.get("error").map(Value::to_string).unwrap_or_default();
                heard.failure = Some(TurnFailure::Api(message(&said)));
            }
        }
        _ => {}
    }
}

fn is_denial(said: &str) -> bool {
    let said = said.to_lowercase();
    ["not found", "denied", "policy", "not allowed", "not_registered"]
        .iter()
        .any(|part| said.contains(part))
}

/// Parses an event for display.
fn session_events(event: &Value) -> Vec<SessionEvent> {
    match text(event, "/type") {
        "message" if text(event, "/role") == "assistant" => {
            let said = text(event, "/content").to_owned();
            vec![match event.get("delta").and_then(Value::as_bool) {
                Some(true) => SessionEvent::TextMore(said),
                Some(false) | None => SessionEvent::Text(said),
            }]
        }
        "tool_use" => {
            vec![SessionEvent::calls(text(event, "/tool_name"), event.get("parameters"))]
        }
        "tool_result" => {
            let failed = text(event, "/status") == "error";
            let said = event.get("output").or_else(|| event.get("error"));
            vec![SessionEvent::tool_output(said, failed)]
        }
        "error" => vec![SessionEvent::Note(text(event, "/message").to_owned())],
        _ => Vec::new(),
    }
}
