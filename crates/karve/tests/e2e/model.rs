//! A model on loopback that plays a script, in the four dialects that agents speak.
//!
//! What it answers follows from the conversation alone: the last brief of karve in it says which
//! round and task it is, and as many steps of that script were played as there are results of tools
//! after that brief. So retries and conversations that go on need no state here.

mod dialect;

use self::dialect::Dialect;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// The largest request that is read.
const BODY_BYTES_MAX: usize = 64 << 20;
/// The status of a request that is too long for the model.
const TOO_LONG: u16 = 413;
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
    /// Asks for a tool by its name.
    Tool(&'static str, Value),
    /// Answers with this status so often, then goes on.
    Flaky(u16, usize, Box<Step>),
    /// Refuses a request that is larger than this, as too long for the model.
    Within(usize, Box<Step>),
    /// Never answers.
    Hang,
    /// Says so many bytes.
    Huge(usize),
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
    /// The size of the request.
    pub(crate) bytes: usize,
}

/// The server; its threads end with the test.
#[derive(Debug)]
pub(crate) struct Model {
    port: u16,
    log: Arc<Mutex<Log>>,
}

/// All that was asked.
#[derive(Debug, Default)]
struct Log {
    asked: Vec<Asked>,
    /// The lines before the body of each request.
    heads: Vec<String>,
}

impl Model {
    /// Starts to listen.
    pub(crate) fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let log = Arc::new(Mutex::new(Log::default()));
        let kept = log.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (script, log) = (script.clone(), log.clone());
                // A client that goes away is its own affair.
                std::thread::spawn(move || serve(stream, &script, &log));
            }
        });
        Self { port, log: kept }
    }

    /// Where it is.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// What was asked so far, without what needs no answer from the script.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        let all = self.log.lock().unwrap().asked.clone();
        all.into_iter().filter(|asked| asked.round > 0).collect()
    }

    /// What came before the body of each request.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.log.lock().unwrap().heads.clone()
    }
}

fn serve(stream: TcpStream, script: &Script, log: &Mutex<Log>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut words = first.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut length = 0;
    let mut head = String::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else {
            break;
        };
        head.push_str(&line);
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
    let mut asked = understand(dialect, &body);
    asked.bytes = length;
    let step = step_now(step_of(script, &asked), &asked, &log.lock().ok()?.asked);
    log.lock().ok()?.asked.push(asked.clone());
    log.lock().ok()?.heads.push(head);
    let wants_stream = body["stream"] == true || path.contains("streamGenerateContent");
    match step {
        Step::Error(status) => out.json(status, &error(status)),
        Step::Hang => {
            // Until the client goes away.
            let _ = reader.read(&mut [0]);
            None
        }
        Step::Huge(bytes) => out.stream(&dialect.pieces(&Step::Say("x".repeat(bytes)), &[])),
        Step::Flaky(..) | Step::Within(..) => None,
        Step::Garbage => out.stream(&["data: {{{ no json\n\n".to_owned(), "\u{1}\n".to_owned()]),
        Step::Say(_) | Step::Shell(_) | Step::Tool(..) if !wants_stream => {
            out.json(200, &dialect.whole(&step, &asked.tools))
        }
        Step::Say(_) | Step::Shell(_) | Step::Tool(..) => {
            out.stream(&dialect.pieces(&step, &asked.tools))
        }
        Step::Broken => {
            let pieces = dialect.pieces(&Step::Say("half of".into()), &asked.tools);
            // One dialect has a single event, which says that it is the last.
            out.stream(&[pieces[0].replace("finishReason", "notYetReason")])
        }
    }
}

/// The step itself, given what was asked before.
fn step_now(step: Step, asked: &Asked, log: &[Asked]) -> Step {
    let same = |one: &&Asked| {
        (one.round, one.task, one.results) == (asked.round, asked.task, asked.results)
    };
    match step {
        Step::Flaky(status, times, _) if log.iter().filter(same).count() < times => {
            Step::Error(status)
        }
        Step::Within(bytes, _) if asked.bytes > bytes => Step::Error(TOO_LONG),
        Step::Flaky(_, _, then) | Step::Within(_, then) => step_now(*then, asked, log),
        other => other,
    }
}

/// The step that is due.
fn step_of(script: &Script, asked: &Asked) -> Step {
    // Without tools it is asked for a title, or whether it is there.
    if asked.round == 0 || (asked.tools.is_empty() && asked.task != "learn") {
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
        TOO_LONG => "request_too_large",
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

/// What is said, and the tool that is asked for.
fn parts(step: &Step, tools: &[String]) -> (Option<String>, Option<(String, Value)>) {
    match step {
        Step::Say(text) => (Some(text.clone()), None),
        Step::Shell(line) => {
            let known = ["Bash", "bash", "exec_command", "run_shell_command", "shell_command"];
            let name = known.iter().find(|name| tools.iter().any(|t| t == *name));
            let input = match name {
                Some(&"exec_command") => json!({"cmd": line}),
                Some(&"shell_command") => json!({"command": line}),
                _ => json!({"command": line, "description": "a step of the script"}),
            };
            let name = name.unwrap_or(&known[0]);
            (Some("I will.".into()), Some(((*name).to_owned(), input)))
        }
        Step::Tool(name, input) => (Some("I will.".into()), Some(((*name).into(), input.clone()))),
        Step::Error(_)
        | Step::Broken
        | Step::Garbage
        | Step::Flaky(..)
        | Step::Within(..)
        | Step::Hang
        | Step::Huge(_) => (None, None),
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
        bytes: 0,
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
                asked.task = match line.contains("## Fix it") {
                    true => "repair",
                    false if line.contains(": state one") => "propose",
                    false if line.contains(": say what it taught") => "learn",
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
                declared.into_iter().flatten().map(|one| &one["name"]).collect()
            }
        };
        names.extend(found.into_iter().filter_map(Value::as_str).map(str::to_owned));
    }
    names
}
