//! Chat Completions of OpenAI, and of the many compatible servers: messages, streamed as deltas to
//! the one choice.

use super::conversation::{ConversationItem, ToolCall};
use super::reply::{ModelReply, ReplyEnd, ReplyPart, input_of};
use super::retry::stream_failure;
use super::tools::ToolSpec;
use super::{ApiQuestion, ApiRequest, WireFormat};
use crate::cli::turn_output::{count, text};
use serde_json::{Value, json};

/// The text comes before all tools.
const WORDS: u64 = 0;

/// Chat Completions.
pub(super) const WIRE: WireFormat = WireFormat {
    name: "openai-chat",
    title: "OpenAI Chat Completions API",
    key_env: "OPENAI_API_KEY",
    base_url: "https://api.openai.com/v1",
    max_tokens: 8_192,
    context_tokens: 32_768,
    writes_cache: false,
    headers: super::bearer,
    post,
    read,
    settle,
};

fn post(ask: &ApiQuestion<'_>) -> ApiRequest {
    let mut messages = vec![json!({"role": "system", "content": ask.system})];
    messages.extend(ask.items.iter().flat_map(messages_of));
    // OpenAI has renamed it; most other servers have not.
    let most = match ask.is_usual {
        true => "max_completion_tokens",
        false => "max_tokens",
    };
    let mut body = json!({
        "model": ask.model,
        "stream": true,
        "stream_options": {"include_usage": true},
        "messages": messages,
    });
    body[most] = ask.max_tokens.into();
    if !ask.tools.is_empty() {
        body["tools"] = ask.tools.iter().copied().map(tool_of).collect();
    }
    ApiRequest { path: "/chat/completions".into(), body }
}

fn tool_of(tool: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.schema(),
        },
    })
}

fn messages_of(item: &ConversationItem) -> Vec<Value> {
    match item {
        ConversationItem::Prompt(brief) => vec![json!({"role": "user", "content": brief})],
        ConversationItem::Reply(said) => said.raw.clone(),
        ConversationItem::Given(all) => {
            let results = all
                .iter()
                .map(|one| json!({"role": "tool", "tool_call_id": one.id, "content": one.text}));
            results.collect()
        }
    }
}

fn read(reply: &mut ModelReply, event: &Value) {
    if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
        reply.failure = Some(stream_failure(error));
        return;
    }
    if event.get("usage").is_some_and(Value::is_object) {
        reply.count(
            count(event, "/usage/prompt_tokens"),
            count(event, "/usage/prompt_tokens_details/cached_tokens"),
            count(event, "/usage/completion_tokens"),
        );
    }
    let Some(choice) = event.pointer("/choices/0") else {
        return;
    };
    let words = text(choice, "/delta/content");
    if !words.is_empty() {
        reply.append_text(WORDS, words);
    }
    let calls = choice.pointer("/delta/tool_calls").and_then(Value::as_array);
    for call in calls.into_iter().flatten() {
        read_call(reply, call);
    }
    match text(choice, "/finish_reason") {
        "" => {}
        "length" => reply.end = Some(ReplyEnd::Cut),
        "content_filter" => reply.end = Some(ReplyEnd::Declined("content_filter".into())),
        _ => reply.end = Some(ReplyEnd::Whole),
    }
}

/// The first delta of a tool names it, the others add to its arguments.
fn read_call(reply: &mut ModelReply, call: &Value) {
    let name = text(call, "/function/name");
    let args = text(call, "/function/arguments");
    let reported = call.get("index").and_then(Value::as_u64);
    let last = reply.next_place().saturating_sub(1);
    let at = match reported {
        Some(index) => WORDS + 1 + index.min(1 << 20),
        None if name.is_empty() => last,
        None => last + 1,
    };
    if reply.parts.contains_key(&at) {
        reply.append_call(at, args);
        return;
    }
    let id = match text(call, "/id") {
        "" => format!("call_{at}"),
        id => id.to_owned(),
    };
    let (name, args) = (name.to_owned(), args.to_owned());
    reply.begin(at, ReplyPart::Call { id, name, args });
}

fn settle(reply: &mut ModelReply) {
    let mut sent = Vec::new();
    for part in reply.parts.values() {
        match part {
            ReplyPart::Text(text) => reply.text.push_str(text),
            ReplyPart::Call { id, name, args } => {
                let input = input_of(args);
                let args = match &input {
                    Value::Null => "{}".to_owned(),
                    input => input.to_string(),
                };
                sent.push(json!({"id": id, "type": "function",
                    "function": {"name": name, "arguments": args}}));
                reply.calls.push(ToolCall { id: id.clone(), name: name.clone(), input });
            }
            ReplyPart::Other(_) => {}
        }
    }
    let mut said = json!({"role": "assistant", "content": reply.text});
    if !sent.is_empty() {
        said["tool_calls"] = sent.into();
    }
    reply.raw.push(said);
}
