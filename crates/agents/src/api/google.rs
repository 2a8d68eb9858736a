//! The Gemini API of Google: parts of content. Thought signatures stay with their parts, which are
//! sent back unchanged.

use super::conversation::{ConversationItem, ToolCall, ToolOutput};
use super::reply::{ModelReply, ReplyEnd, ReplyPart};
use super::retry::stream_failure;
use super::tools::ToolSpec;
use super::{ApiQuestion, ApiRequest, WireFormat};
use crate::cli::turn_output::{count, message, text};
use serde_json::{Value, json};

/// The name prefix of a call that the API did not name.
const NAMELESS: &str = "karve_call_";

/// The Gemini API.
pub(super) const WIRE: WireFormat = WireFormat {
    name: "google",
    title: "Google Gemini API",
    key_env: "GEMINI_API_KEY",
    base_url: "https://generativelanguage.googleapis.com/v1beta",
    max_tokens: 16_384,
    context_tokens: 1_000_000,
    writes_cache: false,
    headers: |key| {
        let key = key.map(|key| ("x-goog-api-key", key.to_owned()));
        key.into_iter().collect()
    },
    post,
    read,
    settle,
};

fn post(ask: &ApiQuestion<'_>) -> ApiRequest {
    let contents: Vec<Value> = ask.items.iter().map(content_of).collect();
    let mut body = json!({
        "systemInstruction": {"parts": [{"text": ask.system}]},
        "contents": contents,
        "generationConfig": {"maxOutputTokens": ask.max_tokens},
    });
    if !ask.tools.is_empty() {
        let tools: Vec<Value> = ask.tools.iter().copied().map(tool_of).collect();
        body["tools"] = json!([{"functionDeclarations": tools}]);
    }
    ApiRequest { path: format!("/models/{}:streamGenerateContent?alt=sse", ask.model), body }
}

/// The API refuses an object without properties.
fn tool_of(tool: &ToolSpec) -> Value {
    let mut declared = json!({"name": tool.name, "description": tool.description});
    let schema = tool.schema();
    if schema["properties"].as_object().is_some_and(|all| !all.is_empty()) {
        declared["parameters"] = schema;
    }
    declared
}

fn content_of(item: &ConversationItem) -> Value {
    match item {
        ConversationItem::Prompt(brief) => json!({"role": "user", "parts": [{"text": brief}]}),
        ConversationItem::Reply(said) => json!({"role": "model", "parts": said.raw}),
        ConversationItem::Given(all) => {
            let parts: Vec<Value> = all.iter().map(response_of).collect();
            json!({"role": "user", "parts": parts})
        }
    }
}

fn response_of(given: &ToolOutput) -> Value {
    let key = if given.failed { "error" } else { "output" };
    let mut response = json!({"name": given.name, "response": {key: given.text}});
    if !given.id.starts_with(NAMELESS) {
        response["id"] = given.id.as_str().into();
    }
    json!({"functionResponse": response})
}

fn read(reply: &mut ModelReply, event: &Value) {
    if let Some(error) = event.get("error") {
        reply.failure = Some(stream_failure(error));
        return;
    }
    if event.get("usageMetadata").is_some() {
        let said = count(event, "/usageMetadata/candidatesTokenCount");
        let thought = count(event, "/usageMetadata/thoughtsTokenCount");
        reply.count(
            count(event, "/usageMetadata/promptTokenCount"),
            count(event, "/usageMetadata/cachedContentTokenCount"),
            said.saturating_add(thought),
        );
    }
    let blocked = text(event, "/promptFeedback/blockReason");
    if !blocked.is_empty() {
        reply.end = Some(ReplyEnd::Declined(message(blocked)));
    }
    let parts = event.pointer("/candidates/0/content/parts");
    for part in parts.and_then(Value::as_array).into_iter().flatten() {
        take_part(reply, part);
    }
    match text(event, "/candidates/0/finishReason") {
        "" => {}
        "STOP" => reply.end = Some(ReplyEnd::Whole),
        "MAX_TOKENS" => reply.end = Some(ReplyEnd::Cut),
        other => reply.end = Some(ReplyEnd::Declined(message(other))),
    }
}

/// Text continues the last text; everything else is a separate part.
fn take_part(reply: &mut ModelReply, part: &Value) {
    let is_plain = |part: &Value| {
        let fields = part.as_object().map_or(0, serde_json::Map::len);
        fields == 1 && part.get("text").is_some_and(Value::is_string)
    };
    let last = reply.parts.last_key_value();
    let last = last.filter(|(_, last)| matches!(last, ReplyPart::Other(last) if is_plain(last)));
    match last.map(|(at, _)| *at) {
        Some(at) if is_plain(part) => reply.adds_to(at, "text", text(part, "/text")),
        _ => reply.begin(reply.next_place(), ReplyPart::Other(part.clone())),
    }
}

fn settle(reply: &mut ModelReply) {
    for (at, part) in &reply.parts {
        let ReplyPart::Other(part) = part else {
            continue;
        };
        let is_thought = part.get("thought").and_then(Value::as_bool) == Some(true);
        if !is_thought {
            reply.text.push_str(text(part, "/text"));
        }
        if let Some(call) = part.get("functionCall") {
            let id = match text(call, "/id") {
                "" => format!("{NAMELESS}{at}"),
                id => id.to_owned(),
            };
            let input = match call.get("args") {
                None => json!({}),
                Some(args) if args.is_object() => args.clone(),
                Some(_) => Value::Null,
            };
            reply.calls.push(ToolCall { id, name: text(call, "/name").to_owned(), input });
        }
        reply.raw.push(part.clone());
    }
}
