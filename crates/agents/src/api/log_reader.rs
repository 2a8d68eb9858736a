//! Reads the session log of a turn for display: the events of a response are assembled by their
//! API, and shown when the response is complete.

use super::conversation::ToolCall;
use super::reply::ModelReply;
use super::{ApiKind, WireFormat};
use crate::cli::turn_output::{count, text};
use crate::session_event::SessionEvent;
use serde_json::Value;
use std::collections::VecDeque;

/// Reads a session log line by line.
#[derive(Debug)]
pub struct SessionLogReader {
    wire: &'static WireFormat,
    /// The response that is not complete yet.
    reply: ModelReply,
    /// Tool calls that were not executed yet.
    calls: VecDeque<ToolCall>,
}

impl SessionLogReader {
    /// For the session log of a model API; none for other kinds of agents.
    pub fn of(agent: &str) -> Option<Self> {
        ApiKind::by_name(agent).map(|kind| Self {
            wire: kind.wire(),
            reply: ModelReply::default(),
            calls: VecDeque::new(),
        })
    }

    /// Processes a line between the first and the last.
    pub fn take(&mut self, line: &[u8]) -> Vec<SessionEvent> {
        let Ok(value) = serde_json::from_slice::<Value>(line) else {
            return vec![SessionEvent::Note(String::from_utf8_lossy(line).into_owned())];
        };
        let note = match text(&value, "/karve") {
            "" => {
                (self.wire.read)(&mut self.reply, &value);
                return Vec::new();
            }
            "question" => return self.rest(),
            "tool" => return self.used(&value),
            "compacted" => {
                let (bytes, to) = (count(&value, "/bytes"), count(&value, "/to"));
                format!("the conversation was shortened from {bytes} bytes to {to}")
            }
            "strange" => format!("strange: {}", text(&value, "/data")),
            name => format!("{name}: {}", text(&value, "/why")),
        };
        let mut reported = self.rest();
        reported.push(SessionEvent::Note(note));
        reported
    }

    /// The rest that was not shown yet.
    pub fn rest(&mut self) -> Vec<SessionEvent> {
        let mut reported = self.reply_events();
        let left = self.calls.drain(..);
        reported.extend(left.map(|call| SessionEvent::calls(&call.name, Some(&call.input))));
        reported
    }

    /// The text of the response; its tool calls are shown when they are executed.
    fn reply_events(&mut self) -> Vec<SessionEvent> {
        let mut reply = std::mem::take(&mut self.reply);
        (self.wire.settle)(&mut reply);
        self.calls.extend(reply.calls);
        match reply.text.trim().is_empty() {
            true => Vec::new(),
            false => vec![SessionEvent::Text(reply.text)],
        }
    }

    /// A tool call, with its output.
    fn used(&mut self, note: &Value) -> Vec<SessionEvent> {
        let mut reported = self.reply_events();
        self.calls.pop_front();
        let is_failed = note.get("failed").and_then(Value::as_bool) == Some(true);
        reported.push(SessionEvent::calls(text(note, "/name"), note.get("input")));
        reported.push(SessionEvent::tool_output(note.get("text"), is_failed));
        reported
    }
}
