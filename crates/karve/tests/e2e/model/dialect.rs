//! The four dialects that agents and model APIs speak, as answers and as streams of events.

use super::{Step, TOKENS_IN, TOKENS_OUT, parts};
use serde_json::{Value, json};

/// How an agent speaks with its model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Dialect {
    Messages,
    Responses,
    Chat,
    Contents,
}

impl Dialect {
    pub(super) fn of(path: &str) -> Option<Self> {
        let known = [
            ("/messages", Self::Messages),
            ("/responses", Self::Responses),
            ("/chat/completions", Self::Chat),
            ("enerateContent", Self::Contents),
        ];
        let found = known.iter().find(|(end, _)| path.ends_with(end));
        found.map(|(_, dialect)| *dialect)
    }

    /// The whole answer.
    pub(super) fn whole(self, step: &Step, tools: &[String]) -> Value {
        let (text, call) = parts(step, tools);
        match self {
            Self::Messages => {
                let mut content = vec![];
                content.extend(text.map(|text| json!({"type": "text", "text": text})));
                let stop = if call.is_some() { "tool_use" } else { "end_turn" };
                content.extend(call.map(|(name, input)| {
                    json!({"type": "tool_use", "id": fresh("toolu"), "name": name, "input": input})
                }));
                json!({"id": fresh("msg"), "type": "message", "role": "assistant",
                    "model": "scripted", "content": content, "stop_reason": stop,
                    "stop_sequence": null,
                    "usage": {"input_tokens": TOKENS_IN, "output_tokens": TOKENS_OUT}})
            }
            Self::Responses => {
                let mut items = vec![];
                items.extend(text.map(|text| {
                    json!({"type": "message", "id": fresh("m"), "role": "assistant",
                        "status": "completed", "content": [
                            {"type": "output_text", "text": text, "annotations": []}]})
                }));
                items.extend(call.map(|(name, input)| {
                    json!({"type": "function_call", "id": fresh("fc"), "call_id": fresh("call"),
                        "name": name, "arguments": input.to_string(), "status": "completed"})
                }));
                json!({"id": fresh("resp"), "object": "response", "status": "completed",
                    "model": "scripted", "output": items, "usage": {
                        "input_tokens": TOKENS_IN, "output_tokens": TOKENS_OUT,
                        "total_tokens": TOKENS_IN + TOKENS_OUT}})
            }
            Self::Chat => {
                let finish = if call.is_some() { "tool_calls" } else { "stop" };
                let mut message = json!({"role": "assistant", "content": text});
                if let Some((name, input)) = call {
                    message["tool_calls"] = json!([{"index": 0, "id": fresh("call"),
                        "type": "function",
                        "function": {"name": name, "arguments": input.to_string()}}]);
                }
                json!({"id": fresh("chat"), "object": "chat.completion", "created": 1,
                    "model": "scripted", "usage": chat_usage(),
                    "choices": [{"index": 0, "finish_reason": finish, "message": message}]})
            }
            Self::Contents => {
                let mut parts = vec![];
                parts.extend(text.map(|text| json!({"text": text})));
                parts.extend(
                    call.map(
                        |(name, input)| json!({"functionCall": {"name": name, "args": input}}),
                    ),
                );
                json!({"modelVersion": "scripted", "candidates": [{"index": 0,
                    "finishReason": "STOP", "content": {"role": "model", "parts": parts}}],
                    "usageMetadata": {"promptTokenCount": TOKENS_IN,
                        "candidatesTokenCount": TOKENS_OUT,
                        "totalTokenCount": TOKENS_IN + TOKENS_OUT}})
            }
        }
    }

    /// The answer as a stream of events.
    pub(super) fn pieces(self, step: &Step, tools: &[String]) -> Vec<String> {
        let whole = self.whole(step, tools);
        match self {
            Self::Messages => messages_stream(&whole),
            Self::Responses => responses_stream(&whole),
            Self::Contents => vec![data(&whole)],
            Self::Chat => {
                let mut chunk = whole.clone();
                chunk["object"] = json!("chat.completion.chunk");
                chunk["usage"] = Value::Null;
                let finish = chunk["choices"][0]["finish_reason"].take();
                let delta = chunk["choices"][0]["message"].take();
                let part = |delta: &Value, finish: &Value| {
                    let mut part = chunk.clone();
                    part["choices"] =
                        json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
                    data(&part)
                };
                let mut last = chunk.clone();
                last["choices"] = json!([]);
                last["usage"] = chat_usage();
                vec![
                    part(&delta, &Value::Null),
                    part(&json!({}), &finish),
                    data(&last),
                    "data: [DONE]\n\n".into(),
                ]
            }
        }
    }
}

fn chat_usage() -> Value {
    json!({"prompt_tokens": TOKENS_IN, "completion_tokens": TOKENS_OUT,
        "total_tokens": TOKENS_IN + TOKENS_OUT})
}

fn messages_stream(whole: &Value) -> Vec<String> {
    let mut start = whole.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    let mut events = vec![json!({"type": "message_start", "message": start})];
    for (index, block) in whole["content"].as_array().unwrap().iter().enumerate() {
        let mut empty = block.clone();
        let delta = if block["type"] == "text" {
            empty["text"] = json!("");
            json!({"type": "text_delta", "text": block["text"]})
        } else {
            empty["input"] = json!({});
            json!({"type": "input_json_delta", "partial_json": block["input"].to_string()})
        };
        events.push(json!({"type": "content_block_start", "index": index,
            "content_block": empty}));
        events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let delta = json!({"stop_reason": whole["stop_reason"], "stop_sequence": null});
    events.push(json!({"type": "message_delta", "delta": delta, "usage": whole["usage"]}));
    events.push(json!({"type": "message_stop"}));
    events.iter().map(named).collect()
}

fn responses_stream(whole: &Value) -> Vec<String> {
    let mut start = whole.clone();
    start["status"] = json!("in_progress");
    start["output"] = json!([]);
    start["usage"] = Value::Null;
    let mut events = vec![json!({"type": "response.created", "response": start})];
    for (index, item) in whole["output"].as_array().unwrap().iter().enumerate() {
        let at = |kind: &str| json!({"type": kind, "output_index": index, "item": item});
        events.push(at("response.output_item.added"));
        events.push(at("response.output_item.done"));
    }
    events.push(json!({"type": "response.completed", "response": whole}));
    events.iter().map(named).collect()
}

fn named(event: &Value) -> String {
    let name = event["type"].as_str().unwrap_or_default();
    format!("event: {name}\n{}", data(event))
}

fn data(event: &Value) -> String {
    format!("data: {event}\n\n")
}

/// A name that no other thing has.
fn fresh(prefix: &str) -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(1);
    format!("{prefix}_{:08}", COUNT.fetch_add(1, Ordering::Relaxed))
}
