//! The part of one model response received so far. Every API fills the same few fields.

use super::conversation::{ModelMessage, ToolCall};
use super::retry::ApiFailure;
use crate::cli::turn_output::TEXT_BYTES_MAX;
use crate::secrets::Secrets;
use karve_core::asking::budget::TokenCounts;
use karve_core::spending::tokens_instead;
use serde_json::Value;
use std::collections::BTreeMap;

/// Parts of one response.
const PARTS_MAX: usize = 256;

/// A part of a response, as it grows.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ReplyPart {
    /// Text.
    Text(String),
    /// A tool call.
    Call {
        id: String,
        name: String,
        /// Its arguments, as JSON text.
        args: String,
    },
    /// Content to send back unchanged.
    Other(Value),
}

/// How a response ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReplyEnd {
    /// It is complete.
    Whole,
    /// It hit the length limit.
    Cut,
    /// The model, or its safety filter, declined.
    Declined(String),
    /// The conversation exceeds the model's context.
    Full(String),
}

/// A response, as received so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ModelReply {
    /// The parts, by index.
    pub(super) parts: BTreeMap<u64, ReplyPart>,
    /// Their size, in bytes.
    bytes: usize,
    /// Whether there was more than the limit.
    pub(super) is_over: bool,
    /// What was used.
    pub(super) counted: TokenCounts,
    /// How it ended, as soon as that is known.
    pub(super) end: Option<ReplyEnd>,
    /// Its HTTP status.
    pub(super) status: Option<u16>,
    /// Whether a key was removed from it.
    pub(super) had_key: bool,
    /// The error reported in the stream.
    pub(super) failure: Option<ApiFailure>,
    /// The text, once it is complete.
    pub(super) text: String,
    /// Tool calls, once it is complete.
    pub(super) calls: Vec<ToolCall>,
    /// All of it in the API's own form, once it is complete.
    pub(super) raw: Vec<Value>,
}

impl ModelReply {
    /// Whether there is room for this many more bytes.
    fn fits(&mut self, bytes: usize) -> bool {
        self.bytes += bytes;
        self.is_over |= self.bytes > TEXT_BYTES_MAX;
        !self.is_over
    }

    /// Whether a key was removed from a tool's input.
    pub(super) fn masks(&self, call: &ToolCall) -> bool {
        self.had_key && Secrets::has_placeholder(&call.input.to_string())
    }

    /// Its token counts, given the bytes that were sent: the server's counts, unless no text of
    /// that size has so few tokens. The flag says whether karve estimated them. So a budget
    /// holds, whatever the server reports.
    pub(super) fn believed(&self, sent_bytes: usize) -> (TokenCounts, bool) {
        let reported = self.counted;
        // A server that refused has used nothing.
        if self.parts.is_empty() && self.end.is_none() {
            return (reported, false);
        }
        let input = tokens_instead(reported.all_input(), sent_bytes);
        let output = tokens_instead(reported.output, self.message_bytes());
        let mut counted = match input {
            None => reported,
            Some(input) => TokenCounts { input, ..TokenCounts::default() },
        };
        counted.output = output.unwrap_or(reported.output);
        (counted, input.is_some() || output.is_some())
    }

    /// Bytes of text and tool calls; content that is only sent back does not count.
    fn message_bytes(&self) -> usize {
        let bytes = |part: &ReplyPart| match part {
            ReplyPart::Text(text) => text.len(),
            ReplyPart::Call { name, args, .. } => name.len() + args.len(),
            ReplyPart::Other(_) => 0,
        };
        self.parts.values().map(bytes).sum()
    }

    /// Sets the counts of a server that includes the cached tokens in the input.
    pub(super) fn count(&mut self, input: u64, cached: u64, output: u64) {
        let cached = cached.min(input);
        self.counted = TokenCounts { input: input - cached, cached, output, ..self.counted };
    }

    /// Starts a part at an index.
    pub(super) fn begin(&mut self, at: u64, part: ReplyPart) {
        let bytes = match &part {
            ReplyPart::Text(text) => text.len(),
            ReplyPart::Call { id, name, args } => id.len() + name.len() + args.len(),
            ReplyPart::Other(value) => value.to_string().len(),
        };
        // The last index has none after it.
        if self.parts.len() >= PARTS_MAX || at == u64::MAX {
            self.is_over = true;
        } else if self.fits(bytes) {
            self.parts.insert(at, part);
        }
    }

    /// Appends text to the part at an index, which is created if needed.
    pub(super) fn append_text(&mut self, at: u64, more: &str) {
        if !self.parts.contains_key(&at) {
            self.begin(at, ReplyPart::Text(String::new()));
        }
        if self.fits(more.len())
            && let Some(ReplyPart::Text(text)) = self.parts.get_mut(&at)
        {
            text.push_str(more);
        }
    }

    /// Appends arguments to the tool call at an index.
    pub(super) fn append_call(&mut self, at: u64, more: &str) {
        if self.fits(more.len())
            && let Some(ReplyPart::Call { args, .. }) = self.parts.get_mut(&at)
        {
            args.push_str(more);
        }
    }

    /// Appends to a text within a part that is sent back unchanged.
    pub(super) fn adds_to(&mut self, at: u64, key: &str, more: &str) {
        if self.fits(more.len())
            && let Some(ReplyPart::Other(value)) = self.parts.get_mut(&at)
        {
            // In place: a copy for each piece of a long text would take minutes.
            match value.get_mut(key) {
                Some(Value::String(text)) => text.push_str(more),
                _ => value[key] = Value::from(more),
            }
        }
    }

    /// The index after the last part.
    pub(super) fn next_place(&self) -> u64 {
        self.parts.last_key_value().map_or(0, |(at, _)| at + 1)
    }

    /// What goes into the conversation.
    pub(super) fn message(&self) -> ModelMessage {
        let bytes = self.raw.iter().map(|value| value.to_string().len()).sum();
        ModelMessage { raw: self.raw.clone(), bytes }
    }
}

/// The arguments of a tool: an object, or null if the text is not one.
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
