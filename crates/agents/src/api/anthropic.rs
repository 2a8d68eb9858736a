//! The Messages API of Anthropic: blocks of content, streamed as deltas to the block at an index.

use super::conversation::{ConversationItem, ToolCall};
use super::reply::{ModelReply, ReplyEnd, ReplyPart, input_of};
use super::retry::stream_failure;
use super::tools::ToolSpec;
use super::{ApiQuestion, ApiRequest, WireFormat};
use crate::cli::turn_output::{message, text};
use serde_json::{Value, json};

/// The API version.
const VERSION: &str = "2023-06-01";

/// The Messages API.
pub(super) const WIRE: WireFormat = WireFormat {
    name: "anthropic",
    title: "Anthropic Messages API",
    key_env: "ANTHROPIC_API_KEY",
    base_url: "https://api.anthropic.com",
    max_tokens: 16_384,
    context_tokens: 200_000,
    writes_cache: true,
    headers: |key| {
        let mut headers = vec![("anthropic-version", VERSION.to_owned())];
        headers.extend(key.map(|key| ("x-api-key", key.to_owned())));
        headers
    },
    post,
    read,
    settle,
};

fn post(ask: &ApiQuestion<'_>) -> ApiRequest {
    let mut messages: Vec<Value> = ask.items.iter().map(message_of).collect();
    // Everything before this is the same in the next request.
    if let Some(last) = messages.last_mut().and_then(|one| one["content"].as_array_mut())
        && let Some(block) = last.last_mut()
    {
        block["cache_control"] = json!({"type": "ephemeral"});
    }
    let mut body = json!({
        "model": ask.model,
        "max_tokens": ask.max_tokens,
        "stream": true,
        "system": ask.system,
        "messages": messages,
    });
    if !ask.tools.is_empty() {
        body["tools"] = ask.tools.iter().copied().map(tool_of).collect();
    }
    ApiRequest { path: "/v1/messages".into(), body }
}

fn tool_of(tool: &ToolSpec) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.schema(),
    })
}

fn message_of(item: &ConversationItem) -> Value {
    match item {
        ConversationItem::Prompt(brief) => json!({
            "role": "user",
            "content": [{"type": "text", "text": brief}],
        }),
        ConversationItem::Reply(said) => json!({"role": "assistant", "content": said.raw}),
        ConversationItem::Given(all) => {
            let blocks = all.iter().map(|one| {
                json!({
                    "type": "tool_result",
                    "tool_use_id": one.id,
                    "content": one.text,
                    "is_error": one.failed,
                })
            });
            json!({"role": "user", "content": blocks.collect::<Vec<_>>()})
        }
    }
}

fn read(reply: &mut ModelReply, event: &Value) {
    let at = event.get("index").and_then(Value::as_u64).unwrap_or(0);
    match text(event, "/type") {
        "message_start" => count(reply, event.pointer("/message/usage")),
        "content_block_start" => begin(reply, at, &event["content_block"]),
        "content_block_delta" => {
            let delta = &event["delta"];
            match text(delta, "/type") {
                "text_delta" => reply.append_text(at, text(delta, "/text")),
                "input_json_delta" => reply.append_call(at, text(delta, "/partial_json")),
                "thinking_delta" => reply.adds_to(at, "thinking", text(delta, "/thinking")),
                "signature_delta" => reply.adds_to(at, "signature", text(delta, "/signature")),
                _ => {}
            }
        }
        "message_delta" => {
            count(reply, event.get("usage"));
            reply.end = end_of(text(event, "/delta/stop_reason"));
        }
        "error" => reply.failure = Some(stream_failure(&event["error"])),
        _ => {}
    }
}

fn begin(reply: &mut ModelReply, at: u64, block: &Value) {
    let part = match text(block, "/type") {
        "text" => ReplyPart::Text(text(block, "/text").to_owned()),
        "tool_use" => ReplyPart::Call {
            id: text(block, "/id").to_owned(),
            name: text(block, "/name").to_owned(),
            args: String::new(),
        },
        _ => ReplyPart::Other(block.clone()),
    };
    reply.begin(at, part);
}

fn end_of(reason: &str) -> Option<ReplyEnd> {
    match reason {
        "" => None,
        "max_tokens" => Some(ReplyEnd::Cut),
        "refusal" => Some(ReplyEnd::Declined("the model declined".into())),
        "model_context_window_exceeded" => Some(ReplyEnd::Full(message(reason))),
        _ => Some(ReplyEnd::Whole),
    }
}

/// Counts are reported at the start and, for the output, again at the end.
fn count(reply: &mut ModelReply, usage: Option<&Value>) {
    let Some(usage) = usage else { return };
    let counted = &mut reply.counted;
    for (name, count) in [
        ("input_tokens", &mut counted.input),
        ("cache_read_input_tokens", &mut counted.cached),
        ("cache_creation_input_tokens", &mut counted.written),
        ("output_tokens", &mut counted.output),
    ] {
        *count = usage.get(name).and_then(Value::as_u64).unwrap_or(*count);
    }
}

fn settle(reply: &mut ModelReply) {
    for part in reply.parts.values() {
        let block = match part {
            ReplyPart::Text(text) if text.is_empty() => continue,
            ReplyPart::Text(text) => {
                reply.text.push_str(text);
                json!({"type": "text", "text": text})
            }
            ReplyPart::Call { id, name, args } => {
                let input = input_of(args);
                let sent = match &input {
                    Value::Null => json!({}),
                    input => input.clone(),
                };
                reply.calls.push(ToolCall { id: id.clone(), name: name.clone(), input });
                json!({"type": "tool_use", "id": id, "name": name, "input": sent})
            }
            ReplyPart::Other(block) => block.clone(),
        };
        reply.raw.push(block);
    }
}
