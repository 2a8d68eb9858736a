//! A conversation, independent of any API: briefs, replies and tool output.
//!
//! When it grows too long for the model, `karve_core::asking::room` says what is left out.

use karve_core::asking::context_window::{self, ItemSize, ToolOutputSize};
use serde_json::Value;

/// One thing in a conversation.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ConversationItem {
    /// What karve asks: a brief.
    Prompt(String),
    /// The model's reply.
    Reply(ModelMessage),
    /// The output of its tools, in the order of its calls.
    Given(Vec<ToolOutput>),
}

/// A model's reply in its API's own form, to be sent back unchanged.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ModelMessage {
    /// Parts, blocks or items.
    pub(super) raw: Vec<Value>,
    /// Their size, in bytes.
    pub(super) bytes: usize,
}

/// A tool call by a model.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ToolCall {
    /// The id that its result must carry.
    pub(super) id: String,
    pub(super) name: String,
    /// An object, or null if it was not one.
    pub(super) input: Value,
}

/// The output of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ToolOutput {
    /// The id of its call.
    pub(super) id: String,
    pub(super) name: String,
    pub(super) text: String,
    /// Whether the tool refused or failed.
    pub(super) failed: bool,
}

impl ConversationItem {
    fn piece(&self) -> ItemSize {
        match self {
            Self::Prompt(text) => ItemSize::Prompt(text.len()),
            Self::Reply(said) => ItemSize::Reply(said.bytes),
            Self::Given(all) => ItemSize::Given(all.iter().map(ToolOutput::output_size).collect()),
        }
    }
}

impl ToolOutput {
    fn output_size(&self) -> ToolOutputSize {
        ToolOutputSize { text: self.text.len(), around: self.id.len() }
    }
}

/// A conversation within a round.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ApiConversation {
    /// The round, and which of several implementations.
    pub(super) of: (u32, u32),
    /// All of it, the oldest first.
    pub(super) items: Vec<ConversationItem>,
}

impl ApiConversation {
    /// The conversation that a turn continues: the last one, if it belongs to the same round and
    /// the same implementation, or else a new one. Implementations do not know of each other.
    pub(super) fn going_on(last: Option<Self>, of: (u32, u32)) -> Self {
        last.filter(|talk| talk.of == of).unwrap_or(Self { of, items: Vec::new() })
    }

    /// Its size, in bytes.
    pub(super) fn bytes(&self) -> usize {
        context_window::bytes_of(&self.pieces())
    }

    /// Shrinks it to a size if possible; returns whether it became smaller at all.
    pub(super) fn compact(&mut self, bytes_max: usize) -> bool {
        let before = self.bytes();
        let cut = context_window::cut(&self.pieces(), bytes_max);
        for (at, which) in cut.condensed {
            if let Some(ConversationItem::Given(all)) = self.items.get_mut(at)
                && let Some(one) = all.get_mut(which)
            {
                one.text = context_window::note_of(one.text.len());
            }
        }
        let mut at = 0;
        self.items.retain(|_| {
            at += 1;
            !cut.dropped.contains(&(at - 1))
        });
        self.bytes() < before
    }

    fn pieces(&self) -> Vec<ItemSize> {
        self.items.iter().map(ConversationItem::piece).collect()
    }
}
