//! A model on loopback that plays a script, in the four dialects that agents speak.
//!
//! What it answers follows from the conversation alone: the last brief of karve in it says which
//! round and task it is, and as many steps of that script were played as there are results of tools
//! after that brief. So retries and conversations that go on need no state here.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// The largest request that is read.
const BODY_BYTES_MAX: usize = 64 << 20;
/// What every answer is said to have used.
pub(crate) const TOKENS_IN: u64 = 1_000;
pub(crate) const TOKENS_OUT: u64 = 50;

/// What the model does next.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Says something, which ends the turn.
    Say(String),
    /// Asks for a line in a shell.
    Shell(String),
    /// Answers with this status.
    Error(u16),
    /// Ends in the middle of a stream.
    Broken,
    /// Streams what is none.
    Garbage,
}

/// The steps of each round and task.
pub(crate) type Script = BTreeMap<(u32, &'static str), Vec<Step>>;

/// What was asked, as far as tests look at it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) round: u32,
    pub(crate) task: &'static str,
    /// Results of tools after the last brief.
    pub(crate) results: usize,
    /// How many briefs the conversation holds.
    pub(crate) briefs: usize,
    pub(crate) tools: Vec<String>,
}

/// The server; its threads end with the test.
#[derive(Debug)]
pub(crate) struct Model {
    port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Model {
    /// Starts to listen.
    pub(crate) fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (script, log) = (script.clone(), log.clone());
                // A client that goes away is its own affair.
                std::thread::spawn(move || serve(stream, &script, &log));
            }
        });
        Self { port, asked }
    }

    /// Where it is.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// What was asked so far, without what needs no answer from the script.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        let all = self.asked.lock().unwrap().clone();
        all.into_iter().filter(|asked| asked.round > 0).collect()
    }
}

fn serve(stream: TcpStream, script: &Script, log: &Mutex<Vec<Asked>>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut words = first.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else {
            break;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse::<usize>().ok()?.min(BODY_BYTES_MAX);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let path = path.split('?').next()?.to_owned();
    let mut out = Out { stream };
    if method != "POST" {
        return out.json(200, &json!({"object": "list", "data": [], "models": []}));
    }
    if path.ends_with("count_tokens") || path.ends_with(":countTokens") {
        return out.json(200, &json!({"input_tokens": 10, "totalTokens": 10}));
    }
    let dialect = Dialect::of(&path)?;
    let asked = understand(dialect, &body);
    let step = step_of(script, &asked);
    log.lock().ok()?.push(asked.clone());
    let wants_stream = body["stream"] == true || path.contains("streamGenerateContent");
    match step {
        Step::Error(status) => out.json(status, &error(status)),
        Step::Garbage => out.stream(&["data: {{{ no json\n\n".to_owned(), "\u{1}\n".to_owned()]),
        Step::Say(_) | Step::Shell(_) if !wants_stream => {
            out.json(200, &dialect.whole(&step, &asked.tools))
        }
        Step::Say(_) | Step::Shell(_) => out.stream(&dialect.pieces(&step, &asked.tools)),
        Step::Broken => {
            let pieces = dialect.pieces(&Step::Say("half of".into()), &asked.tools);
            out.stream(&pieces[..1])
        }
    }
}

/// The step that is due.
fn step_of(script: &Script, asked: &Asked) -> Step {
    // Without tools it is asked for a title, or whether it is there.
    if asked.tools.is_empty() || asked.round == 0 {
        return Step::Say("ready".into());
    }
    let steps = script.get(&(asked.round, asked.task));
    let steps = steps.map(Vec::as_slice).unwrap_or_default();
    let at = asked.results.min(steps.len().saturating_sub(1));
    let nothing = || Step::Say("{\"exhausted\": \"the script is at its end\"}".into());
    steps.get(at).cloned().unwrap_or_else(nothing)
}

fn error(status: u16) -> Value {
    let kind = match status {
        401 => "authentication_error",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        _ => "api_error",
    };
    let inner = json!({"type": kind, "message": "a scripted error", "code": status});
    json!({"type": "error", "error": inner})
}

/// The way back.
struct Out {
    stream: TcpStream,
}

impl Out {
    fn json(&mut self, status: u16, body: &Value) -> Option<()> {
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\nretry-after: 0\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        self.stream.write_all((head + &body).as_bytes()).ok()
    }

    fn stream(&mut self, pieces: &[String]) -> Option<()> {
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        self.stream.write_all(head.as_bytes()).ok()?;
        for piece in pieces {
            self.stream.write_all(piece.as_bytes()).ok()?;
        }
        self.stream.flush().ok()
    }
}

/// How an agent speaks with its model.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Dialect {
    Messages,
    Responses,
    Chat,
    Contents,
}

impl Dialect {
    fn of(path: &str) -> Option<Self> {
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
    fn whole(self, step: &Step, tools: &[String]) -> Value {
        let (text, call) = parts(step, tools);
        match self {
            Self::Messages => {
                let mut content = vec![];
                content.extend(text.map(|text| json!({"type": "text", "text": text})));
                let stop = if call.is_some() {
                    "tool_use"
                } else {
                    "end_turn"
                };
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
    fn pieces(self, step: &Step, tools: &[String]) -> Vec<String> {
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

/// What is said, and the tool that is asked for.
fn parts(step: &Step, tools: &[String]) -> (Option<String>, Option<(String, Value)>) {
    match step {
        Step::Say(text) => (Some(text.clone()), None),
        Step::Shell(line) => {
            let known = [
                "Bash",
                "bash",
                "exec_command",
                "run_shell_command",
                "shell_command",
            ];
            let name = known.iter().find(|name| tools.iter().any(|t| t == *name));
            let input = match name {
                Some(&"exec_command") => json!({"cmd": line}),
                Some(&"shell_command") => json!({"command": line}),
                _ => json!({"command": line, "description": "a step of the script"}),
            };
            let name = name.unwrap_or(&known[0]);
            (Some("I will.".into()), Some(((*name).to_owned(), input)))
        }
        Step::Error(_) | Step::Broken | Step::Garbage => (None, None),
    }
}

/// One thing in a conversation.
enum Turn {
    User(String),
    Result,
    Other,
}

fn understand(dialect: Dialect, body: &Value) -> Asked {
    let mut asked = Asked {
        round: 0,
        task: "",
        results: 0,
        briefs: 0,
        tools: tools_of(dialect, body),
    };
    for turn in turns(dialect, body) {
        match turn {
            Turn::Other => {}
            Turn::Result => asked.results += 1,
            Turn::User(text) => {
                let Some(at) = text.rfind("# Round ") else {
                    continue;
                };
                let line = &text[at + "# Round ".len()..];
                let number = line.split(':').next().unwrap_or_default();
                asked.round = number.trim().parse().unwrap_or(0);
                asked.task = match line.contains("## Mend it") {
                    true => "mend",
                    false if line.contains(": state one") => "propose",
                    false => "implement",
                };
                asked.briefs += 1;
                asked.results = 0;
            }
        }
    }
    asked
}

fn turns(dialect: Dialect, body: &Value) -> Vec<Turn> {
    let list = match dialect {
        Dialect::Messages | Dialect::Chat => &body["messages"],
        Dialect::Responses => &body["input"],
        Dialect::Contents => &body["contents"],
    };
    let mut turns = Vec::new();
    for item in list.as_array().into_iter().flatten() {
        let kind = item["type"].as_str().unwrap_or_default();
        if item["role"] == "tool" || kind.ends_with("_output") {
            turns.push(Turn::Result);
        } else if item["role"] == "user" {
            let parts = match dialect {
                Dialect::Contents => &item["parts"],
                Dialect::Messages | Dialect::Chat | Dialect::Responses => &item["content"],
            };
            match parts {
                Value::String(text) => turns.push(Turn::User(text.clone())),
                Value::Array(parts) => turns.extend(parts.iter().map(turn_of)),
                _ => turns.push(Turn::Other),
            }
        }
    }
    turns
}

fn turn_of(part: &Value) -> Turn {
    match part["text"].as_str() {
        Some(text) => Turn::User(text.to_owned()),
        None if part["type"] == "tool_result" => Turn::Result,
        None if part.get("functionResponse").is_some() => Turn::Result,
        None => Turn::Other,
    }
}

fn tools_of(dialect: Dialect, body: &Value) -> Vec<String> {
    let mut names = Vec::new();
    for tool in body["tools"].as_array().into_iter().flatten() {
        let found: Vec<&Value> = match dialect {
            Dialect::Messages | Dialect::Responses => vec![&tool["name"]],
            Dialect::Chat => vec![&tool["function"]["name"]],
            Dialect::Contents => {
                let declared = tool["functionDeclarations"].as_array();
                declared
                    .into_iter()
                    .flatten()
                    .map(|one| &one["name"])
                    .collect()
            }
        };
        names.extend(
            found
                .into_iter()
                .filter_map(Value::as_str)
                .map(str::to_owned),
        );
    }
    names
}
