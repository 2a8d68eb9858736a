//! The Responses API of OpenAI: output items, each reported in full when it is done. The server
//! stores nothing, so reasoning arrives encrypted and is sent back unchanged.

use super::conversation::{ConversationItem, ToolCall};
use super::reply::{ModelReply, ReplyEnd, ReplyPart, input_of};
use super::retry::stream_failure;
use super::tools::ToolSpec;
use super::{ApiQuestion, ApiRequest, WireFormat};
use crate::cli::turn_output::{count, message, text};
use serde_json::{Value, json};

/// The Responses API.
pub(super) const WIRE: WireFormat = WireFormat {
    name: "openai",
    title: "OpenAI Responses API",
    key_env: "OPENAI_API_KEY",
    base_url: "https://api.openai.com/v1",
    max_tokens: 16_384,
    context_tokens: 128_000,
    writes_cache: false,
    headers: super::bearer,
    post,
    read,
    settle,
};

fn post(ask: &ApiQuestion<'_>) -> ApiRequest {
    let input: Vec<Value> = ask.items.iter().flat_map(items_of).collect();
    let mut body = json!({
        "model": ask.model,
        "max_output_tokens": ask.max_tokens,
        "stream": true,
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "instructions": ask.system,
        "input": input,
    });
    if !ask.tools.is_empty() {
        body["tools"] = ask.tools.iter().copied().map(tool_of).collect();
    }
    ApiRequest { path: "/responses".into(), body }
}

fn tool_of(tool: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.schema(),
        "strict": false,
    })
}

fn items_of(item: &ConversationItem) -> Vec<Value> {
    match item {
        ConversationItem::Prompt(brief) => vec![json!({
            "role": "user",
            "content": [{"type": "input_text", "text": brief}],
        })],
        ConversationItem::Reply(said) => said.raw.clone(),
        ConversationItem::Given(all) => {
            let outputs = all.iter().map(|one| {
                json!({
                    "type": "function_call_output",
                    "call_id": one.id,
                    "output": one.text,
                })
            });
            outputs.collect()
        }
    }
}

fn read(reply: &mut ModelReply, event: &Value) {
    match text(event, "/type") {
        "response.output_item.done" => {
            let at = event.get("output_index").and_then(Value::as_u64);
            let at = at.unwrap_or_else(|| reply.next_place());
            reply.begin(at, ReplyPart::Other(event["item"].clone()));
        }
        "response.completed" => {
            take_count(reply, event);
            take_output(reply, event);
            reply.end = Some(ReplyEnd::Whole);
        }
        "response.incomplete" => {
            take_count(reply, event);
            reply.end = Some(match text(event, "/response/incomplete_details/reason") {
                "max_output_tokens" => ReplyEnd::Cut,
                other => ReplyEnd::Declined(message(other)),
            });
        }
        "response.failed" => {
            take_count(reply, event);
            reply.failure = Some(stream_failure(&event["response"]["error"]));
        }
        "error" => {
            let error = event.get("error").unwrap_or(event);
            reply.failure = Some(stream_failure(error));
        }
        _ => {}
    }
}

/// Some servers report the items only at the end.
fn take_output(reply: &mut ModelReply, event: &Value) {
    let items = event.pointer("/response/output").and_then(Value::as_array);
    if reply.parts.is_empty() {
        for item in items.into_iter().flatten() {
            reply.begin(reply.next_place(), ReplyPart::Other(item.clone()));
        }
    }
}

fn take_count(reply: &mut ModelReply, event: &Value) {
    reply.count(
        count(event, "/response/usage/input_tokens"),
        count(event, "/response/usage/input_tokens_details/cached_tokens"),
        count(event, "/response/usage/output_tokens"),
    );
}

fn settle(reply: &mut ModelReply) {
    for part in reply.parts.values() {
        let ReplyPart::Other(item) = part else {
            continue;
        };
        match text(item, "/type") {
            "message" => {
                let parts = item.get("content").and_then(Value::as_array);
                for part in parts.into_iter().flatten() {
                    reply.text.push_str(text(part, "/text"));
                }
            }
            "function_call" => reply.calls.push(ToolCall {
                id: text(item, "/call_id").to_owned(),
                name: text(item, "/name").to_owned(),
                input: input_of(text(item, "/arguments")),
            }),
            _ => {}
        }
        reply.raw.push(item.clone());
    }
}
