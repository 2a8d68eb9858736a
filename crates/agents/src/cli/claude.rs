//! Claude Code: events of `--output-format stream-json`. The result event says how a turn ended;
//! the exit code is 0 even if every tool was denied.

use super::turn_output::{TurnFailure, TurnOutput, count, message, money, text};
use super::{CliOutputParser, CliSpec, CliTurnRequest, TurnTask};
use crate::session_event::SessionEvent;
use serde_json::Value;

/// Claude Code as a kind of agent.
pub(super) const SPEC: CliSpec = CliSpec {
    name: "claude",
    title: "Claude Code",
    program: "claude",
    install: "npm install -g @anthropic-ai/claude-code",
    variables: &["ANTHROPIC_*", "CLAUDE_*", "AWS_*", "IS_SANDBOX"],
    set: &[("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"), ("DISABLE_AUTOUPDATER", "1")],
    homes: &[".claude", ".claude.json"],
    home_variables: &["CLAUDE_CONFIG_DIR"],
    below: "",
    hosts: &[
        ("", "api.anthropic.com"),
        ("", "console.anthropic.com"),
        ("", "platform.claude.com"),
        ("", "claude.ai"),
        ("CLAUDE_CODE_USE_BEDROCK", "*.amazonaws.com"),
        ("CLAUDE_CODE_USE_VERTEX", "*.googleapis.com"),
    ],
    host_variables: &[
        "ANTHROPIC_BASE_URL",
        "ANTHROPIC_BEDROCK_BASE_URL",
        "ANTHROPIC_VERTEX_BASE_URL",
    ],
    addresses: |_| Vec::new(),
    speaks: CliOutputParser::Events(read),
    session_events,
    arguments,
    settings: |_| Vec::new(),
};

fn arguments(ask: &CliTurnRequest<'_>) -> Vec<String> {
    // The candidate can change the project's own settings and servers, so they are not loaded.
    let mut args: Vec<String> = [
        "-p",
        "--output-format",
        "stream-json",
        "--verbose",
        "--setting-sources",
        "user",
        "--strict-mcp-config",
    ]
    .map(str::to_owned)
    .to_vec();
    let (mode, mut tools) = match ask.task {
        TurnTask::Learn | TurnTask::Trial => ("default", ""),
        TurnTask::Propose | TurnTask::Review | TurnTask::Profile => ("default", "Read,Grep,Glob"),
        TurnTask::Implement | TurnTask::Repair => ("acceptEdits", "Read,Grep,Glob,Edit,Write"),
    };
    // A shell is allowed only in karve's sandbox.
    let with_shell = format!("{tools},Bash");
    if ask.confined && !tools.is_empty() {
        tools = &with_shell;
        args.extend(["--allowedTools", "Bash"].map(str::to_owned));
    }
    args.extend(["--tools", tools, "--permission-mode", mode].map(str::to_owned));
    if let Some(model) = ask.model {
        args.extend(["--model".to_owned(), model.to_owned()]);
    }
    if let Some(usd) = ask.usd_left {
        args.extend(["--max-budget-usd".to_owned(), format!("{usd:.4}")]);
    }
    if let Some(session) = ask.session {
        args.extend(["--resume".to_owned(), session.to_owned()]);
    }
    args
}

fn read(heard: &mut TurnOutput, event: &Value) {
    let session = text(event, "/session_id");
    if !session.is_empty() {
        heard.session = Some(session.to_owned());
    }
    match text(event, "/type") {
        "assistant" => {
            let blocks = event.pointer("/message/content").and_then(Value::as_array);
            for block in blocks.into_iter().flatten() {
                if text(block, "/type") == "text" {
                    heard.set_text(text(block, "/text"));
                }
            }
        }
        "system" if text(event, "/subtype") == "api_retry" => {
            heard.complaint = format!("the server returned {}", status(event, "/error_status"));
        }
        "result" => read_result(heard, event),
        _ => {}
    }
}

/// Tokens of single messages are not added up: they are reported when a message starts.
fn read_result(heard: &mut TurnOutput, event: &Value) {
    heard.has_ended = true;
    let kinds = [
        "/usage/input_tokens",
        "/usage/cache_creation_input_tokens",
        "/usage/cache_read_input_tokens",
        "/usage/output_tokens",
    ];
    let counts = kinds.iter().map(|path| count(event, path));
    heard.usage.tokens = counts.fold(0, u64::saturating_add);
    // The cost is for the whole conversation, the tokens are for the turn.
    heard.usd_of_all = Some(money(event, "/total_cost_usd"));
    let denials = event.get("permission_denials").and_then(Value::as_array);
    for denial in denials.into_iter().flatten() {
        heard.is_denied(text(denial, "/tool_name"));
    }
    let result = text(event, "/result");
    let is_error = event.get("is_error").and_then(Value::as_bool) != Some(false);
    let errors = event.get("errors").map(Value::to_string);
    let errors = errors.unwrap_or_default();
    heard.failure = match text(event, "/subtype") {
        "success" if !is_error => None,
        "error_max_turns" => Some(TurnFailure::MaxTurns(message(&errors))),
        "error_max_budget_usd" => Some(TurnFailure::Budget(message(&errors))),
        "success" => {
            let status = status(event, "/api_error_status");
            Some(TurnFailure::Api(message(&format!("{status} {result}"))))
        }
        other => Some(TurnFailure::Api(message(&format!("{other} {result} {errors}")))),
    };
    if heard.failure.is_none() {
        heard.set_text(result);
    }
}

fn status(event: &Value, path: &str) -> String {
    match event.pointer(path) {
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::String(word)) => word.clone(),
        _ => String::new(),
    }
}

/// Parses an event for display.
fn session_events(event: &Value) -> Vec<SessionEvent> {
    let blocks = event.pointer("/message/content").and_then(Value::as_array);
    let blocks = blocks.into_iter().flatten();
    match text(event, "/type") {
        "assistant" | "user" => blocks.filter_map(block_event).collect(),
        "system" if text(event, "/subtype") == "api_retry" => {
            let status = status(event, "/error_status");
            vec![SessionEvent::Note(format!("the server returned {status}; retrying"))]
        }
        "result" => result_events(event),
        _ => Vec::new(),
    }
}

/// Parses the last event: what was denied, and the answer, which may not have appeared before.
fn result_events(event: &Value) -> Vec<SessionEvent> {
    let denials = event.get("permission_denials").and_then(Value::as_array);
    let denied = denials.into_iter().flatten();
    let denied = denied.map(|denial| format!("denied: {}", text(denial, "/tool_name")));
    let mut reported: Vec<SessionEvent> = denied.map(SessionEvent::Note).collect();
    let result = text(event, "/result").to_owned();
    match event.get("is_error").and_then(Value::as_bool) {
        Some(false) => reported.push(SessionEvent::Text(result)),
        Some(true) | None => reported.push(SessionEvent::Note(result)),
    }
    reported
}

/// Parses a block of a message.
fn block_event(block: &Value) -> Option<SessionEvent> {
    let is_error = || block.get("is_error").and_then(Value::as_bool) == Some(true);
    match text(block, "/type") {
        "text" => Some(SessionEvent::Text(text(block, "/text").to_owned())),
        "tool_use" => Some(SessionEvent::calls(text(block, "/name"), block.get("input"))),
        "tool_result" => Some(SessionEvent::tool_output(block.get("content"), is_error())),
        _ => None,
    }
}
