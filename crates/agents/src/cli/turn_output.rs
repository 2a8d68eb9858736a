//! The state of a turn so far: the agent's reply, its usage, and what went wrong.
//!
//! Every dialect fills the same few fields, so that what counts as a failure is decided in one
//! place and by one rule.

use crate::session_log::SESSION_LOG_BYTES_MAX;
use karve_core::spending::AgentUsage;
use karve_os::process::{ExceededLimit, Exit};
use serde_json::Value;

/// The reply is kept up to this size.
pub(crate) const TEXT_BYTES_MAX: usize = 1 << 20;
/// At most this many denied tools are named.
const DENIED_MAX: usize = 10;
/// Characters of a message of a model or a program.
const MESSAGE_CHARS_MAX: usize = 500;

/// Why a turn failed. Each has a name, which the log shows first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TurnFailure {
    /// The model or its server refused.
    Api(String),
    /// It was not allowed to use a tool, and changed nothing.
    Denied(Vec<String>),
    /// It reached its limit of turns with the model.
    MaxTurns(String),
    /// It reached its budget.
    Budget(String),
    /// It exceeded its time limit.
    OverTime(u64),
    /// It was killed from outside, or crashed.
    Killed(String),
    /// Its output exceeded the storage limit.
    Flooded(u64),
    /// It ended without the event that ends a turn.
    NoResult(String),
    /// It exited normally without a reply and without a change.
    NoOutput,
    /// Its output is not in the expected format.
    Malformed(String),
    /// Its reply is too long for an answer.
    TooLong,
    /// Its answer was cut off.
    Cut,
    /// The conversation exceeds the model's context, whatever is left out.
    Context(String),
}

impl TurnFailure {
    /// The name, and the details.
    pub(crate) fn describe(&self) -> String {
        let reported = |name: &str, detail: &str| match detail.trim() {
            "" => name.to_owned(),
            detail => format!("{name}: {detail}"),
        };
        match self {
            Self::Api(said) => reported("api error", said),
            Self::Denied(tools) => {
                let tools = tools.join(", ");
                format!("denied: it is not allowed to use {tools}, and changed nothing")
            }
            Self::MaxTurns(said) => reported("max turns", said),
            Self::Budget(said) => reported("budget", said),
            Self::OverTime(limit_s) => format!("timeout: the agent ran for more than {limit_s} s"),
            Self::Killed(how) => reported("killed", how),
            Self::Flooded(bytes) => format!("flooded: it printed more than {bytes} bytes"),
            Self::NoResult(said) => reported("no result", said),
            Self::NoOutput => "empty reply: it exited normally and changed nothing".into(),
            Self::Malformed(said) => reported("malformed", said),
            Self::TooLong => format!("too long: the answer exceeds {TEXT_BYTES_MAX} bytes"),
            Self::Cut => "cut off: the answer is longer than max_tokens".into(),
            Self::Context(said) => reported("context", said),
        }
    }
}

impl TurnFailure {
    /// Whether a lost conversation can cause this failure.
    pub(super) fn is_of_start(&self) -> bool {
        match self {
            Self::Api(_) | Self::NoResult(_) | Self::NoOutput | Self::Malformed(_) => true,
            Self::Denied(_)
            | Self::MaxTurns(_)
            | Self::Budget(_)
            | Self::OverTime(_)
            | Self::Killed(_)
            | Self::Flooded(_)
            | Self::TooLong
            | Self::Cut
            | Self::Context(_) => false,
        }
    }
}

/// The state of a turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TurnOutput {
    /// The conversation's id, to resume it.
    pub(super) session: Option<String>,
    /// Its reply.
    pub(super) text: String,
    /// Whether the reply was longer than the limit.
    pub(super) is_cut: bool,
    /// What this turn used.
    pub(super) usage: AgentUsage,
    /// Tokens of the whole conversation, if only those are reported.
    pub(super) tokens_of_all: Option<u64>,
    /// US dollars of the whole conversation, if only those are reported.
    pub(super) usd_of_all: Option<f64>,
    /// Tools that it called without permission.
    pub(super) denied: Vec<String>,
    /// The error that it reports.
    pub(super) failure: Option<TurnFailure>,
    /// The last error message, which may not be a failure.
    pub(super) complaint: String,
    /// The last tool call, if results do not name their tool.
    pub(super) tool: String,
    /// Whether the event that ends a turn was seen.
    pub(super) has_ended: bool,
    /// How many events were parsed.
    pub(super) events: u64,
    /// How many lines were not events.
    pub(super) strange_lines: u64,
    /// The beginning of the first of them.
    pub(super) strange: String,
}

impl TurnOutput {
    /// Sets the reply.
    pub(super) fn set_text(&mut self, text: &str) {
        self.text.clear();
        self.is_cut = false;
        self.append_text(text);
    }

    /// Appends to the reply.
    pub(super) fn append_text(&mut self, text: &str) {
        let room = TEXT_BYTES_MAX.saturating_sub(self.text.len());
        if text.len() > room {
            self.is_cut = true;
            let end = (0..=room).rev().find(|at| text.is_char_boundary(*at));
            self.text.push_str(&text[..end.unwrap_or(0)]);
        } else {
            self.text.push_str(text);
        }
    }

    /// Sets the total usage of the conversation, given its usage before this turn: the turn's usage
    /// is the difference.
    pub(super) fn settle(&mut self, before: AgentUsage) -> AgentUsage {
        if let Some(tokens) = self.tokens_of_all {
            self.usage.tokens = tokens.saturating_sub(before.tokens);
        }
        if let Some(usd) = self.usd_of_all {
            // A smaller count than before means that the counter was reset.
            self.usage.usd = match usd < before.usd {
                true => usd,
                false => usd - before.usd,
            };
        }
        AgentUsage {
            tokens: self.tokens_of_all.unwrap_or(before.tokens),
            usd: self.usd_of_all.unwrap_or(before.usd),
            estimated: false,
        }
    }

    /// Records a tool that it may not use.
    pub(super) fn is_denied(&mut self, tool: &str) {
        let tool = message(tool);
        if self.denied.len() < DENIED_MAX && !self.denied.contains(&tool) {
            self.denied.push(tool);
        }
    }

    /// Whether the model was never asked.
    pub(super) fn never_asked_model(&self) -> bool {
        let is_by_model =
            matches!(self.failure, Some(TurnFailure::Api(_))) && self.session.is_some();
        self.usage.tokens == 0 && self.text.is_empty() && !is_by_model
    }

    /// Records a line that is not an event.
    pub(super) fn is_strange(&mut self, line: &[u8]) {
        self.strange_lines += 1;
        if self.strange_lines == 1 {
            let start = &line[..line.len().min(MESSAGE_CHARS_MAX)];
            self.strange = message(&String::from_utf8_lossy(start));
        }
    }

    /// Why the turn failed, if so: the agent's own report comes before its exit code.
    pub(super) fn judge(&self, exit: Exit, stderr: &str, limit_s: u64) -> Option<TurnFailure> {
        let said = || match (self.complaint.as_str(), message(last_lines(stderr))) {
            ("", said) => said,
            (complaint, said) if said.is_empty() => complaint.to_owned(),
            (complaint, said) => format!("{complaint}; {said}"),
        };
        match exit {
            Exit::TimedOut => return Some(TurnFailure::OverTime(limit_s)),
            Exit::Stopped => return Some(TurnFailure::Killed("stopped by the user".into())),
            Exit::TooMuch(ExceededLimit::Output) => {
                return Some(TurnFailure::Flooded(SESSION_LOG_BYTES_MAX));
            }
            Exit::TooMuch(_) | Exit::Signal(_) => {
                return Some(TurnFailure::Killed(exit.describe()));
            }
            Exit::Code(_) => {}
        }
        if let Some(fault) = &self.failure {
            return Some(fault.clone());
        }
        let strange = || format!("{} lines, such as {:?}", self.strange_lines, self.strange);
        match (exit, self.has_ended) {
            (Exit::Code(0), true) if self.is_cut => Some(TurnFailure::TooLong),
            (Exit::Code(0), true) => None,
            // How a shell reports a signal.
            (Exit::Code(code @ 129..=159), false) => {
                Some(TurnFailure::Killed(format!("exit code {code}")))
            }
            (_, false) if self.strange_lines > 0 => Some(TurnFailure::Malformed(strange())),
            (Exit::Code(0), false) if self.events == 0 => Some(TurnFailure::NoOutput),
            (exit, _) => {
                let said = said();
                let how = exit.describe();
                Some(TurnFailure::NoResult(match said.as_str() {
                    "" => how,
                    said => format!("{how}, {said}"),
                }))
            }
        }
    }
}

/// The end of a program's error output.
fn last_lines(stderr: &str) -> &str {
    let text = stderr.trim_end();
    let start = text.len().saturating_sub(MESSAGE_CHARS_MAX);
    let start = (start..=text.len()).find(|at| text.is_char_boundary(*at));
    &text[start.unwrap_or(0)..]
}

/// A message from outside: one line, bounded, without control characters.
pub(crate) fn message(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.chars().filter(|c| !c.is_control()).take(MESSAGE_CHARS_MAX).collect()
}

/// A text in an event.
pub(crate) fn text<'a>(event: &'a Value, path: &str) -> &'a str {
    event.pointer(path).and_then(Value::as_str).unwrap_or("")
}

/// A count in an event; zero if it is missing or not a count.
pub(crate) fn count(event: &Value, path: &str) -> u64 {
    event.pointer(path).and_then(Value::as_u64).unwrap_or(0)
}

/// An amount of money in an event.
pub(super) fn money(event: &Value, path: &str) -> f64 {
    let usd = event.pointer(path).and_then(Value::as_f64).unwrap_or(0.0);
    if usd.is_finite() { usd.max(0.0) } else { 0.0 }
}
