//! What was heard of one answer of a model so far. Every API fills the same few fields.

use super::retry::Failure;
use super::talk::{Call, Said};
use crate::cli::heard::TEXT_BYTES_MAX;
use crate::secrets::Secrets;
use karve_core::asking::budget::Counted;
use karve_core::spending::tokens_instead;
use serde_json::Value;
use std::collections::BTreeMap;

/// Parts of one answer.
const PARTS_MAX: usize = 256;

/// A part of an answer, as it grows.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    /// Words.
    Text(String),
    /// A tool that is asked for.
    Call {
        id: String,
        name: String,
        /// Its arguments, as JSON text.
        args: String,
    },
    /// What is to be sent back as it came.
    Other(Value),
}

/// How an answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// All was said.
    Whole,
    /// It would have been longer than it may.
    Cut,
    /// The model, or who watches over it, declined.
    Declined(String),
    /// The conversation is longer than the model can take in.
    Full(String),
}

/// What was heard of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Reply {
    /// The parts, by their place.
    pub(super) parts: BTreeMap<u64, Part>,
    /// What they hold, in bytes.
    bytes: usize,
    /// Whether there was more than is kept.
    pub(super) is_over: bool,
    /// What was used.
    pub(super) counted: Counted,
    /// How it ended, as soon as that is known.
    pub(super) end: Option<End>,
    /// The status that it began with.
    pub(super) status: Option<u16>,
    /// Whether a key was taken out of it.
    pub(super) had_key: bool,
    /// What the stream says went wrong.
    pub(super) fault: Option<Failure>,
    /// What was said, once it is whole.
    pub(super) text: String,
    /// Tools that are asked for, once it is whole.
    pub(super) calls: Vec<Call>,
    /// All of it in the form of the API, once it is whole.
    pub(super) raw: Vec<Value>,
}

impl Reply {
    /// Whether there is room for so many bytes more.
    fn has_room(&mut self, bytes: usize) -> bool {
        self.bytes += bytes;
        self.is_over |= self.bytes > TEXT_BYTES_MAX;
        !self.is_over
    }

    /// Whether a key was taken out of what a tool is to be given.
    pub(super) fn masks(&self, call: &Call) -> bool {
        self.had_key && Secrets::stood_in(&call.input.to_string())
    }

    /// What counts of it, given the bytes that were sent: what the server tells, unless no text has
    /// so few tokens. Tells whether karve counted by itself. So a budget holds, whatever is told.
    pub(super) fn believed(&self, sent_bytes: usize) -> (Counted, bool) {
        let told = self.counted;
        // A server that refused has used nothing.
        if self.parts.is_empty() && self.end.is_none() {
            return (told, false);
        }
        let input = tokens_instead(told.all_input(), sent_bytes);
        let output = tokens_instead(told.output, self.said_bytes());
        let mut counted = match input {
            None => told,
            Some(input) => Counted {
                input,
                ..Counted::default()
            },
        };
        counted.output = output.unwrap_or(told.output);
        (counted, input.is_some() || output.is_some())
    }

    /// Bytes of words and of what tools are asked for; what is only to be sent back does not count.
    fn said_bytes(&self) -> usize {
        let bytes = |part: &Part| match part {
            Part::Text(text) => text.len(),
            Part::Call { name, args, .. } => name.len() + args.len(),
            Part::Other(_) => 0,
        };
        self.parts.values().map(bytes).sum()
    }

    /// A part begins at a place.
    pub(super) fn begin(&mut self, at: u64, part: Part) {
        let bytes = match &part {
            Part::Text(text) => text.len(),
            Part::Call { id, name, args } => id.len() + name.len() + args.len(),
            Part::Other(value) => value.to_string().len(),
        };
        if self.parts.len() >= PARTS_MAX {
            self.is_over = true;
        } else if self.has_room(bytes) {
            self.parts.insert(at, part);
        }
    }

    /// More words of the part at a place, which begins with them if it is new.
    pub(super) fn says_more(&mut self, at: u64, more: &str) {
        if !self.parts.contains_key(&at) {
            self.begin(at, Part::Text(String::new()));
        }
        if self.has_room(more.len())
            && let Some(Part::Text(text)) = self.parts.get_mut(&at)
        {
            text.push_str(more);
        }
    }

    /// More arguments of the tool at a place.
    pub(super) fn asks_more(&mut self, at: u64, more: &str) {
        if self.has_room(more.len())
            && let Some(Part::Call { args, .. }) = self.parts.get_mut(&at)
        {
            args.push_str(more);
        }
    }

    /// More of a text within a part that is sent back as it came.
    pub(super) fn adds_to(&mut self, at: u64, key: &str, more: &str) {
        if self.has_room(more.len())
            && let Some(Part::Other(value)) = self.parts.get_mut(&at)
        {
            let before = value.get(key).and_then(Value::as_str).unwrap_or_default();
            let text = Value::from(format!("{before}{more}"));
            value[key] = text;
        }
    }

    /// The place after the last part.
    pub(super) fn next_place(&self) -> u64 {
        self.parts.last_key_value().map_or(0, |(at, _)| at + 1)
    }

    /// What goes into the conversation.
    pub(super) fn said(&self) -> Said {
        let bytes = self.raw.iter().map(|value| value.to_string().len()).sum();
        Said {
            raw: self.raw.clone(),
            bytes,
        }
    }
}

/// The arguments of a tool: an object, or null if the text is none.
pub(super) fn input_of(args: &str) -> Value {
    let args = match args.trim() {
        "" => "{}",
        args => args,
    };
    match serde_json::from_str(args) {
        Ok(Value::Object(fields)) => Value::Object(fields),
        Ok(_) | Err(_) => Value::Null,
    }
}
